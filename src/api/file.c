// SPDX-License-Identifier: MIT
// Programs and arguments in files.
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "format/mxr.h"
#include "plan/kernel_set.h"

struct migraphx_file_options {
    enum mgx_file_form form;
};

static void file_options_fini(struct migraphx_file_options *o)
{
    (void)o;
}

static enum mgx_status file_options_copy(struct migraphx_file_options *out,
                                         const struct migraphx_file_options *in,
                                         struct mgx_diag *diag)
{
    (void)diag;
    *out = *in;
    return MGX_OK;
}

API_HANDLE(file_options)

migraphx_status migraphx_file_options_create(migraphx_file_options_t *out)
{
    API_NEED(out);
    API_DIAG(diag);
    struct migraphx_file_options *o = API_NEW(struct migraphx_file_options);
    if (!o)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    *out = o;
    return migraphx_status_success;
}

migraphx_status migraphx_file_options_set_file_format(migraphx_file_options_t file_options,
                                                      const char *format)
{
    API_NEED(file_options);
    API_NEED(format);
    static const char *const names[] = {
        [MGX_FORM_MSGPACK] = "msgpack", [MGX_FORM_JSON] = "json", [MGX_FORM_NETRON] = "netron"};
    for (int i = 0; i < MGX_COUNT(names); i++)
        if (strcmp(format, names[i]) == 0) {
            file_options->form = (enum mgx_file_form)i;
            return migraphx_status_success;
        }
    return mgx_api_bad("Unknown format: %s", format);
}

// --- saving ---

// --- loading ---

// Is the compiled form for this machine and these kernels?
static enum mgx_status look_at(struct mgx_carry *c, const struct mgx_target *target,
                               const struct mgx_compile_options *options, struct mgx_diag *diag)
{
    struct mgx_str kind = {0};
    if (!c->file || !c->kind || !c->kernels || !target->kind)
        return MGX_OK;
    enum mgx_status status = target->kind(options, &kind, diag);
    if (status == MGX_OK && strcmp(c->kind, mgx_str_text(&kind)) != 0)
        c->why = mgx_arena_printf(&c->arena,
                                  "the file was compiled for %s, this is %s: it is compiled anew",
                                  c->kind, mgx_str_text(&kind));
    else if (status == MGX_OK && strcmp(c->kernels, mgx_kernel_set()) != 0)
        c->why = "the file was compiled for kernels of another version: it is compiled anew";
    c->fits = status == MGX_OK && !c->why && !c->arena.failed;
    mgx_str_fini(&kind);
    return status;
}

// What the file says of the target's own settings, as far as the target keeps them in files.
static enum mgx_status find_settings(struct mgx_carry *c, const struct mgx_target *target,
                                     struct mgx_settings *out, struct mgx_diag *diag)
{
    const char *isa = mgx_api_environment()->isa;
    bool good = true;
    for (const char *const *name = target->keeps; name && *name && good; name++)
        good = mgx_settings_put(out, &c->arena, *name, mgx_setting(&c->options.own, *name));
    if (isa && !mgx_setting(out, "isa"))
        good = good && mgx_settings_put(out, &c->arena, "isa", isa);
    return good ? MGX_OK : mgx_fail_memory(diag);
}

static enum mgx_status compile(struct mgx_program *p, struct mgx_diag *diag)
{
    struct mgx_carry *c = p->carry;
    const struct mgx_target *target = mgx_target_find(c->target);
    if (!target)
        return mgx_fail(diag, MGX_NOT_FOUND,
                        "the program is compiled for target '%s', which is not built in",
                        c->target);
    struct migraphx_compile_options o = {.values = {.offload_copy = c->options.offload_copy,
                                                    .fast_math = c->options.fast_math,
                                                    .threads = c->options.threads}};
    TRY(find_settings(c, target, &o.values.own, diag));
    TRY(look_at(c, target, &o.values, diag));
    if (!c->fits) { // passes read literals
        mgx_carry_mark_literals(c);
        TRY(mgx_carry_check(c, diag));
    }
    return mgx_api_compile(p, target, &o, diag);
}

// A program that was saved compiled is compiled when it is loaded; takes it over, also on failure.
static enum mgx_status finish(migraphx_program_t *out, struct mgx_program *take,
                              struct mgx_diag *diag)
{
    enum mgx_status status = take->carry ? compile(take, diag) : MGX_OK;
    if (status == MGX_OK)
        return mgx_api_program_new(out, take, diag);
    mgx_program_destroy(take);
    return status;
}

migraphx_status migraphx_load(migraphx_program_t *out, const char *name,
                              migraphx_file_options_t options)
{
    API_NEED(out);
    API_NEED(name);
    API_NEED(options);
    API_DIAG(diag);
    struct mgx_program *p;
    enum mgx_status status = mgx_mxr_load(&p, &mgx_api_ops, name, options->form, &diag);
    if (status == MGX_OK)
        status = finish(out, p, &diag);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_save(migraphx_program_t p, const char *name,
                              migraphx_file_options_t options)
{
    API_NEED(p);
    API_NEED(name);
    API_NEED(options);
    API_DIAG(diag);
    enum mgx_status status = mgx_api_prove(p->p, &diag);
    struct mgx_carry *carry = NULL;
    if (status == MGX_OK)
        status = mgx_api_carry(p->p, options->form == MGX_FORM_MSGPACK, &carry, &diag);
    if (status == MGX_OK)
        status = mgx_mxr_save(p->p, carry, name, options->form, &diag);
    mgx_carry_destroy(carry);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_load_buffer(migraphx_program_t *out, const void *data, size_t size,
                                     migraphx_file_options_t options)
{
    API_NEED(out);
    API_NEED(data);
    API_NEED(options);
    API_DIAG(diag);
    struct mgx_program *p;
    enum mgx_status status =
        mgx_mxr_load_buffer(&p, &mgx_api_ops, data, size, options->form, &diag);
    if (status == MGX_OK)
        status = finish(out, p, &diag);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_save_buffer(char **out, size_t *out_size, const_migraphx_program_t program,
                                     migraphx_file_options_t options)
{
    API_NEED(out);
    API_NEED(out_size);
    API_NEED(program);
    API_NEED(options);
    API_DIAG(diag);
    struct mgx_str bytes = {0};
    enum mgx_status status = mgx_api_prove(program->p, &diag);
    struct mgx_carry *carry = NULL;
    if (status == MGX_OK)
        status = mgx_api_carry(program->p, options->form == MGX_FORM_MSGPACK, &carry, &diag);
    if (status == MGX_OK)
        status = mgx_mxr_save_buffer(program->p, carry, options->form, &bytes, &diag);
    mgx_carry_destroy(carry);
    if (status == MGX_OK) {
        *out_size = bytes.size;
        status = mgx_api_take_text(&bytes, out, &diag);
    } else
        mgx_str_fini(&bytes);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_argument_save(const_migraphx_argument_t a, const char *filename)
{
    API_NEED(a);
    API_NEED(filename);
    API_DIAG(diag);
    return mgx_api_leave(mgx_tensor_save(&a->value, filename, &diag), &diag);
}

migraphx_status migraphx_argument_load(migraphx_argument_t *out, const char *filename)
{
    API_NEED(out);
    API_NEED(filename);
    API_DIAG(diag);
    struct mgx_tensor t;
    enum mgx_status status = mgx_tensor_load(&t, filename, &diag);
    if (status == MGX_OK)
        status = mgx_api_argument_new(out, &t, &diag);
    return mgx_api_leave(status, &diag);
}
