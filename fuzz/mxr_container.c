// SPDX-License-Identifier: MIT
// A compiled program's file whose sums are right and whose content is anything: it must be refused
// with a text, or give a program that verifies, plans and explains itself.
//
// The input is {size of the program, size of the table of packed constants, program, table, data};
// the frame around them is made here, for the kernels and the machine that read it, since a fuzzer
// does not find checksums. The program stands there as two forms and as the portable one, and each of
// them is loaded.
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "format/container.h"
#include "plan/kernel_set.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum mgx_status to_string(struct mgx_sink *sink, const void *data, size_t size,
                                 struct mgx_diag *diag)
{
    struct mgx_str *out = sink->user;
    mgx_str_putn(out, data, size);
    return out->failed ? mgx_fail_memory(diag) : MGX_OK;
}

static enum mgx_status put_info(struct mgx_container_writer *w, const char *name, const char *kind)
{
    struct mgx_value *info = mgx_value_new(w->arena, MGX_VALUE_MAP);
    struct mgx_value *options = mgx_value_new(w->arena, MGX_VALUE_MAP);
    struct mgx_str text = {0};
    struct mgx_sink sink = {.write = to_string, .user = &text};
    mgx_value_put(options, "isa", mgx_value_text(w->arena, "generic"));
    mgx_value_put(options, "threads", mgx_value_int(w->arena, 1));
    mgx_value_put(info, "target", mgx_value_text(w->arena, "cpu"));
    mgx_value_put(info, "kind", mgx_value_text(w->arena, kind));
    mgx_value_put(info, "kernels", mgx_value_text(w->arena, mgx_kernel_set()));
    mgx_value_put(info, "options", options);
    enum mgx_status status = mgx_msgpack_write(&sink, info, w->diag);
    if (status == MGX_OK)
        status = mgx_container_section(w, name, mgx_str_text(&text), text.size);
    mgx_str_fini(&text);
    return status;
}

static enum mgx_status frame(struct mgx_container_writer *w, const uint8_t *data, size_t size)
{
    uint32_t sizes[2] = {0};
    const size_t head = size < sizeof sizes ? size : sizeof sizes;
    memcpy(sizes, data, head);
    data += head;
    size -= head;
    const size_t program = sizes[0] < size ? sizes[0] : size;
    const size_t packs = sizes[1] < size - program ? sizes[1] : size - program;
    const size_t rest = program + packs;
    TRY(mgx_container_begin(w));
    TRY(mgx_container_data(w, 0, data + rest, size - rest));
    TRY(mgx_container_end_data(w));
    TRY(put_info(w, "info", "cpu abacus"));
    TRY(mgx_container_section(w, "program", data, program));
    TRY(mgx_container_section(w, "packs", data + program, packs));
    TRY(put_info(w, "info.1", "cpu generic"));
    TRY(mgx_container_section(w, "program.1", data, program));
    TRY(mgx_container_section(w, "packs.1", data + program, packs));
    TRY(mgx_container_section(w, "portable", data, program));
    return mgx_container_end(w);
}

static void load(const struct mgx_str *file, const char *target, bool portable)
{
    migraphx_program_t p = NULL;
    migraphx_file_options_t options;
    char *text = NULL;
    if (migraphx_file_options_create(&options) != migraphx_status_success)
        return;
    if (migraphx_file_options_set_target(options, target) != migraphx_status_success ||
        migraphx_file_options_set_portable(options, portable) != migraphx_status_success)
        abort();
    if (migraphx_load_buffer(&p, file->text, file->size, options) == migraphx_status_success) {
        if (migraphx_program_verify(p) != migraphx_status_success ||
            (!portable && migraphx_program_explain(&text, p) != migraphx_status_success))
            abort();
    } else {
        const char *why = NULL;
        migraphx_get_last_error(&why);
        if (!why || !why[0])
            abort();
    }
    migraphx_string_destroy(text);
    migraphx_program_destroy(p);
    migraphx_file_options_destroy(options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mgx_arena arena;
    struct mgx_diag diag;
    struct mgx_str file = {0};
    struct mgx_sink sink = {.write = to_string, .user = &file};
    mgx_arena_init(&arena);
    mgx_diag_clear(&diag);
    struct mgx_container_writer w = {.sink = &sink, .arena = &arena, .diag = &diag};
    if (frame(&w, data, size) == MGX_OK) {
        load(&file, NULL, false);
        load(&file, "ref", false);
        load(&file, NULL, true);
    }
    mgx_str_fini(&file);
    mgx_arena_fini(&arena);
    return 0;
}
