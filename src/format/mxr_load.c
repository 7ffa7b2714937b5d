// SPDX-License-Identifier: MIT
// Reading compiled programs out of a container; mxr_container.c writes it. Of several forms all say
// what they are, and one is read.
#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "format/container.h"
#include "format/mxr.h"
#include "format/mxr_read.h"

enum { ALIGN = 64 };

struct load {
    struct mgx_container file;
    struct mgx_arena *arena;
    struct mgx_diag *diag;
    struct mgx_carry *forms[MGX_MXR_FORMS];
    int count;
};

// --- what a form is ---

static const char *text_of(struct mgx_arena *arena, const struct mgx_value *map, const char *key)
{
    const struct mgx_value *v = mgx_value_find(map, key);
    return mgx_value_is(v, MGX_VALUE_TEXT) ? mgx_arena_strdup(arena, v->data) : NULL;
}

static bool is_set(const struct mgx_value *map, const char *key)
{
    const struct mgx_value *v = mgx_value_find(map, key);
    return mgx_value_is(v, MGX_VALUE_INT) && v->i != 0;
}

static bool is_shared(const char *name)
{
    static const char *const names[] = {"offload_copy", "fast_math", "threads"};
    for (int i = 0; i < MGX_COUNT(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

// Whatever else is there; the loader takes what the target knows.
static bool read_own(const struct mgx_value *options, struct mgx_arena *arena,
                     struct mgx_settings *out)
{
    enum { MOST = 16 };
    bool good = true;
    for (const struct mgx_value *v = options ? options->first : NULL; v && good; v = v->next) {
        const char *value = mgx_value_is(v, MGX_VALUE_TEXT) && v->size ? v->data : NULL;
        if (mgx_value_is(v, MGX_VALUE_INT) && v->i != 0)
            value = "1";
        if (v->key && value && !is_shared(v->key) && out->count < MOST)
            good = mgx_settings_put(out, arena, v->key, value);
    }
    return good;
}

static enum mgx_status read_options(const struct mgx_value *v, struct mgx_carry *c,
                                    struct mgx_diag *diag)
{
    const struct mgx_value *threads = mgx_value_find(v, "threads");
    struct mgx_carry_options *out = &c->options;
    out->offload_copy = is_set(v, "offload_copy");
    out->fast_math = is_set(v, "fast_math");
    if (mgx_value_is(threads, MGX_VALUE_INT) && threads->i > 0 && threads->i <= 4096)
        out->threads = (int)threads->i;
    return read_own(v, &c->arena, &out->own) ? MGX_OK : mgx_fail_memory(diag);
}

static enum mgx_status read_info(struct load *l, int i)
{
    const uint8_t *data;
    size_t size;
    struct mgx_value *info;
    const struct mgx_value *target;
    struct mgx_carry *c = l->forms[i];
    TRY(mgx_container_find(&l->file, mgx_container_name(i, "info").text, &data, &size, l->diag));
    if (!data)
        return mgx_mxr_missing("info", "a file", l->diag);
    TRY(mgx_msgpack_read(l->arena, data, size, &info, l->diag));
    TRY(mgx_mxr_need(info, "target", MGX_VALUE_TEXT, "a file", &target, l->diag));
    if (target->size >= sizeof c->target)
        return mgx_mxr_missing("target", "a file", l->diag);
    memcpy(c->target, target->data, target->size + 1);
    c->kind = text_of(&c->arena, info, "kind");
    c->kernels = text_of(&c->arena, info, "kernels");
    const struct mgx_value *literals = mgx_value_find(info, "literals");
    c->literal_bytes =
        mgx_value_is(literals, MGX_VALUE_INT) && literals->i >= 0 ? (size_t)literals->i : SIZE_MAX;
    return read_options(mgx_value_find(info, "options"), c, l->diag);
}

// The first form is there in every file; a file with others has them all by number.
static enum mgx_status read_forms(struct load *l, struct mgx_storage *file)
{
    do {
        struct mgx_carry *c = mgx_carry_create();
        if (!c)
            return mgx_fail_memory(l->diag);
        c->file = mgx_storage_retain(file);
        l->forms[l->count++] = c;
        TRY(read_info(l, l->count - 1));
    } while (l->count < MGX_MXR_FORMS &&
             mgx_container_has(&l->file, mgx_container_name(l->count, "info").text));
    return MGX_OK;
}

// --- what is in it ---

static enum mgx_status add_pack(struct mgx_carry *c, const uint8_t *key, const uint64_t head[3],
                                struct mgx_diag *diag)
{
    assert(head[1] <= c->data_bytes && head[2] <= c->data_bytes - head[1]); // read_packs
    struct mgx_carry_pack *pack = MGX_NEW(&c->arena, struct mgx_carry_pack);
    if (!pack)
        return mgx_fail_memory(diag);
    *pack = (struct mgx_carry_pack){.key = (const char *)key,
                                    .key_size = (size_t)head[0],
                                    .data = c->data + head[1],
                                    .bytes = (size_t)head[2]};
    if (head[1] < c->literal_bytes)
        c->literal_bytes = (size_t)head[1];
    return mgx_map_putn(&c->by_key, pack->key, pack->key_size, pack) ? MGX_OK
                                                                     : mgx_fail_memory(diag);
}

static enum mgx_status read_packs(const struct load *l, const char *name, struct mgx_carry *c)
{
    const uint8_t *data;
    size_t size;
    struct mgx_diag *diag = l->diag;
    TRY(mgx_container_find(&l->file, name, &data, &size, diag));
    for (size_t at = 0; size - at >= 24;) {
        uint64_t head[3]; // key size, place, size
        memcpy(head, data + at, sizeof head);
        at += sizeof head;
        if (head[0] > size - at || head[1] % ALIGN || head[1] > c->data_bytes ||
            head[2] > c->data_bytes - head[1])
            return mgx_fail(diag, MGX_INVALID, "a packed constant beyond the data of its file");
        TRY(add_pack(c, data + at, head, diag));
        const size_t padded = ((size_t)head[0] + 7) & ~(size_t)7;
        at += padded < size - at ? padded : size - at;
    }
    return MGX_OK;
}

static enum mgx_status read_tree(const struct load *l, const struct mgx_op_set *ops,
                                 const char *name, struct mgx_carry *c, struct mgx_program **out)
{
    const uint8_t *data;
    size_t size;
    struct mgx_value *root;
    TRY(mgx_container_find(&l->file, name, &data, &size, l->diag));
    if (!data)
        return mgx_mxr_missing(name, "a file", l->diag);
    TRY(mgx_msgpack_read(l->arena, data, size, &root, l->diag));
    return mgx_mxr_build(out, ops, l->arena, NULL, c, root, l->diag);
}

static enum mgx_status read_form(const struct load *l, const struct mgx_op_set *ops, int i,
                                 struct mgx_carry *c, struct mgx_program **out)
{
    const uint8_t *text;
    TRY(mgx_container_take_data(&l->file, c, l->diag));
    if (i < 0)
        return read_tree(l, ops, "portable", c, out);
    TRY(read_packs(l, mgx_container_name(i, "packs").text, c));
    if (c->fits && c->options.threads != 1)
        mgx_carry_check_ahead(c);
    TRY(mgx_container_find(&l->file, mgx_container_name(i, "tuning").text, &text, &c->tuning_size,
                           l->diag));
    c->tuning = (const char *)text;
    c->has_code = mgx_container_has(&l->file, mgx_container_name(i, "code").text);
    if (c->trusted) { // else nobody looks at it
        TRY(mgx_container_find(&l->file, mgx_container_name(i, "code").text, &text, &c->code_size,
                               l->diag));
        c->code = text;
    }
    return read_tree(l, ops, mgx_container_name(i, "program").text, c, out);
}

// The carry of the form that was read is the program's from here on.
static enum mgx_status read_all(struct load *l, const struct mgx_op_set *ops,
                                struct mgx_storage *file, const struct mgx_carry_chooser *chooser,
                                struct mgx_program **out)
{
    int chosen = 0;
    TRY(mgx_container_open(&l->file, l->arena, file->data, file->bytes, l->diag));
    TRY(read_forms(l, file));
    if (chooser)
        TRY(chooser->choose(chooser->user, l->forms, l->count,
                            mgx_container_has(&l->file, "portable"), &chosen, l->diag));
    assert(chosen >= -1 && chosen < l->count);
    struct mgx_carry **carry = &l->forms[chosen < 0 ? 0 : chosen];
    TRY(read_form(l, ops, chosen, *carry, out));
    *carry = NULL;
    return MGX_OK;
}

// Kernels want their constants on 64 bytes: a mapping has that, bytes that were read may not.
static struct mgx_storage *aligned(struct mgx_storage *file)
{
    assert(file->data || !file->bytes);
    if ((uintptr_t)file->data % ALIGN == 0)
        return mgx_storage_retain(file);
    struct mgx_storage *copy = mgx_storage_create(NULL, file->bytes);
    if (copy)
        memcpy(copy->data, file->data, file->bytes);
    return copy;
}

enum mgx_status mgx_mxr_read_container(struct mgx_program **out, const struct mgx_op_set *ops,
                                       struct mgx_storage *file,
                                       const struct mgx_carry_chooser *chooser,
                                       struct mgx_diag *diag)
{
    struct mgx_arena arena;
    struct mgx_storage *bytes = aligned(file);
    struct load l = {.arena = &arena, .diag = diag};
    mgx_arena_init(&arena);
    const enum mgx_status status =
        bytes ? read_all(&l, ops, bytes, chooser, out) : mgx_fail_memory(diag);
    for (int i = 0; i < l.count; i++)
        mgx_carry_destroy(l.forms[i]);
    mgx_storage_release(bytes);
    mgx_arena_fini(&arena);
    return status;
}
