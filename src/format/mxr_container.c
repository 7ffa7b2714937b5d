// SPDX-License-Identifier: MIT
// Compiled programs in a container: which section holds what. docs/mxr.md is the specification.
//
//     data     literals, small ones first; then constants as kernels packed them
//     info     {library, target, kind, kernels, options}
//     program  the tree that a msgpack file would hold, with places in the data for literals
//     packs    of each packed constant: its key, and where it is
//     tuning   the entries of a tuning cache that chose a kernel
//
// Keys name the literals that were packed by their place in the file, so they mean the same to the
// process that loads it.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/version.h"
#include "format/container.h"
#include "format/mxr.h"
#include "format/mxr_read.h"
#include "format/mxr_write.h"

enum { INLINE = 64, ALIGN = 64, PAGE = 4096, LARGE = 32 << 10 };

// --- places of literals ---

struct blob {
    const void *data;
    size_t bytes;
    uint64_t at;
};

struct blobs {
    MGX_ARRAY(struct blob);
};

struct writer {
    struct mgx_container_writer file;
    const struct mgx_program *p;
    const struct mgx_carry *carry;
    struct mgx_mxr_places places;
    struct blobs blobs; // by address, once placed
    struct mgx_str packs;
    uint64_t end; // of the data so far
};

static uint64_t place(struct writer *w, size_t bytes)
{
    const uint64_t align = bytes >= LARGE ? PAGE : ALIGN;
    const uint64_t at = (w->end + align - 1) & ~(align - 1);
    assert(at >= w->end && at - w->end < align);
    w->end = at + bytes;
    assert(w->end - bytes == at);
    return at;
}

// The same bytes may be shown by literals of several shapes: the longest counts.
static bool note(struct writer *w, struct mgx_map *seen, const struct mgx_tensor *t)
{
    assert(t->data || !mgx_shape_bytes(&t->shape));
    const size_t bytes = mgx_shape_bytes(&t->shape);
    if (!mgx_type_is_number(t->shape.type) || !t->data || bytes <= INLINE)
        return true;
    const uintptr_t known = (uintptr_t)mgx_map_find_pointer(seen, t->data);
    if (known) {
        struct blob *b = &w->blobs.v[known - 1];
        b->bytes = b->bytes > bytes ? b->bytes : bytes;
        return true;
    }
    return MGX_PUSH(&w->blobs, w->file.arena, (struct blob){t->data, bytes, 0}) &&
           mgx_map_put_pointer(seen, t->data, (void *)(uintptr_t)w->blobs.count);
}

static bool collect(struct writer *w)
{
    struct mgx_map seen = {0};
    bool good = true;
    for (int m = 0; m < w->p->module_count; m++)
        for (const struct mgx_ins *ins = w->p->modules[m]->first; ins && good; ins = ins->next)
            good = !ins->literal || note(w, &seen, ins->literal);
    mgx_map_fini(&seen);
    return good;
}

static int by_place(const void *a, const void *b)
{
    assert(((const struct blob *)a)->data && ((const struct blob *)b)->data);
    const struct blob *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

static int by_address(const void *a, const void *b)
{
    const struct blob *x = a, *y = b;
    return (uintptr_t)x->data < (uintptr_t)y->data ? -1 : (uintptr_t)x->data > (uintptr_t)y->data;
}

static enum mgx_status place_literals(struct writer *w)
{
    if (!collect(w))
        return mgx_fail_memory(w->file.diag);
    for (int large = 0; large < 2; large++)
        for (int64_t i = 0; i < w->blobs.count; i++) {
            struct blob *b = &w->blobs.v[i];
            if ((b->bytes > MGX_CARRY_CHUNK) != large)
                continue;
            b->at = place(w, b->bytes);
            assert(b->bytes > INLINE); // shorter ones are in the tree
            assert(b->at % ALIGN == 0);
            if (!mgx_map_put_pointer(&w->places.at, b->data, (void *)(uintptr_t)(b->at + 1)))
                return mgx_fail_memory(w->file.diag);
        }
    w->end = (w->end + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    return MGX_OK;
}

static enum mgx_status write_literals(struct writer *w)
{
    const size_t count = (size_t)w->blobs.count;
    if (count)
        qsort(w->blobs.v, count, sizeof *w->blobs.v, by_place);
    for (size_t i = 0; i < count; i++) {
        const struct blob *b = &w->blobs.v[i];
        TRY(mgx_container_data(&w->file, b->at, b->data, b->bytes));
    }
    if (count)
        qsort(w->blobs.v, count, sizeof *w->blobs.v, by_address);
    return MGX_OK;
}

// --- packed constants ---

// Where in the file the byte at this address will be; false if it is in no literal.
static bool find_source(const struct writer *w, const void *data, int64_t *offset)
{
    int64_t low = 0, high = w->blobs.count; // the last blob that begins at or before it
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if ((uintptr_t)w->blobs.v[middle].data <= (uintptr_t)data)
            low = middle + 1;
        else
            high = middle;
    }
    const struct blob *b = low ? &w->blobs.v[low - 1] : NULL;
    const size_t inside = b ? (uintptr_t)data - (uintptr_t)b->data : 0;
    if (!b || inside >= b->bytes)
        return false;
    *offset = (int64_t)(MGX_CONTAINER_DATA + b->at + inside);
    // Back from the place in the file to the address.
    assert((const char *)b->data + (*offset - MGX_CONTAINER_DATA - (int64_t)b->at) == data);
    return true;
}

static void put_number(struct mgx_str *out, uint64_t number)
{
    assert(out);
    mgx_str_putn(out, (const char *)&number, sizeof number);
}

// {key size, place, size, key}. False if its sources will have no names in the file.
static bool put_pack(struct writer *w, const struct mgx_carry_pack *pack, uint64_t *at)
{
    static const char zeros[8];
    const size_t name = strlen(pack->key) + 1;
    struct mgx_carry_source source[MGX_CARRY_SOURCES];
    memcpy(source, pack->key + name, sizeof source);
    for (int i = 0; i < MGX_CARRY_SOURCES; i++)
        if (pack->source[i]) {
            source[i].number = MGX_CARRY_FILE;
            if (!find_source(w, pack->source[i], &source[i].offset))
                return false;
        }
    assert(name + sizeof source <= pack->key_size);
    *at = place(w, pack->bytes);
    put_number(&w->packs, pack->key_size);
    put_number(&w->packs, *at);
    put_number(&w->packs, pack->bytes);
    mgx_str_putn(&w->packs, pack->key, name);
    mgx_str_putn(&w->packs, (const char *)source, sizeof source);
    mgx_str_putn(&w->packs, pack->key + name + sizeof source,
                 pack->key_size - name - sizeof source);
    mgx_str_putn(&w->packs, zeros, -pack->key_size & 7);
    assert(w->packs.failed || w->packs.size % 8 == 0);
    return true;
}

static enum mgx_status write_packs(struct writer *w)
{
    assert(w->end % PAGE == 0 && w->packs.size == 0); // literals end a page
    for (int64_t i = 0; i < w->carry->packs.count; i++) {
        const struct mgx_carry_pack *pack = &w->carry->packs.v[i];
        uint64_t at;
        if (put_pack(w, pack, &at))
            TRY(mgx_container_data(&w->file, at, pack->data, pack->bytes));
    }
    return w->packs.failed ? mgx_fail_memory(w->file.diag) : MGX_OK;
}

// --- writing ---

static enum mgx_status to_string(struct mgx_sink *sink, const void *data, size_t size,
                                 struct mgx_diag *diag)
{
    struct mgx_str *out = sink->user;
    mgx_str_putn(out, data, size);
    return out->failed ? mgx_fail_memory(diag) : MGX_OK;
}

static enum mgx_status write_tree(struct writer *w, const char *name, const struct mgx_value *v)
{
    struct mgx_str text = {0};
    struct mgx_sink sink = {.write = to_string, .user = &text};
    enum mgx_status status = mgx_msgpack_write(&sink, v, w->file.diag);
    if (status == MGX_OK)
        status = mgx_container_section(&w->file, name, mgx_str_text(&text), text.size);
    mgx_str_fini(&text);
    return status;
}

static struct mgx_value *flag(struct mgx_arena *arena, bool value)
{
    return mgx_value_int(arena, value);
}

// Settings of a target's own stand beside the shared ones: what is on as 1, all else as a text.
static void put_own(struct mgx_arena *arena, struct mgx_value *options,
                    const struct mgx_settings *own)
{
    for (int i = 0; i < own->count; i++) {
        const char *value = own->list[i].value;
        mgx_value_put(options, own->list[i].name,
                      strcmp(value, "1") == 0 ? flag(arena, true) : mgx_value_text(arena, value));
    }
}

static enum mgx_status write_info(struct writer *w)
{
    struct mgx_arena *arena = w->file.arena;
    const struct mgx_carry *c = w->carry;
    struct mgx_value *info = mgx_value_new(arena, MGX_VALUE_MAP);
    struct mgx_value *options = mgx_value_new(arena, MGX_VALUE_MAP);
    mgx_value_put(options, "offload_copy", flag(arena, c->options.offload_copy));
    mgx_value_put(options, "fast_math", flag(arena, c->options.fast_math));
    mgx_value_put(options, "threads", mgx_value_int(arena, c->options.threads));
    put_own(arena, options, &c->options.own);
    mgx_value_put(info, "library", mgx_value_text(arena, MGX_VERSION));
    mgx_value_put(info, "target", mgx_value_text(arena, c->target));
    mgx_value_put(info, "kind", mgx_value_text(arena, c->kind));
    mgx_value_put(info, "kernels", mgx_value_text(arena, c->kernels));
    mgx_value_put(info, "options", options);
    return arena->failed ? mgx_fail_memory(w->file.diag) : write_tree(w, "info", info);
}

static enum mgx_status write_all(struct writer *w)
{
    assert(!w->end && !w->blobs.count);
    struct mgx_value *root;
    TRY(place_literals(w));
    TRY(mgx_mxr_program_value(w->file.arena, w->p, w->carry->target, &w->places, &root,
                              w->file.diag));
    TRY(mgx_container_begin(&w->file));
    TRY(write_literals(w));
    TRY(write_packs(w));
    TRY(mgx_container_end_data(&w->file));
    TRY(write_info(w));
    TRY(write_tree(w, "program", root));
    TRY(mgx_container_section(&w->file, "packs", mgx_str_text(&w->packs), w->packs.size));
    if (w->carry->tuning_size)
        TRY(mgx_container_section(&w->file, "tuning", w->carry->tuning, w->carry->tuning_size));
    return mgx_container_end(&w->file);
}

enum mgx_status mgx_mxr_write_container(struct mgx_sink *sink, const struct mgx_program *p,
                                        const struct mgx_carry *carry, struct mgx_diag *diag)
{
    assert(sink && sink->write && carry);
    struct mgx_arena arena;
    mgx_arena_init(&arena);
    struct writer w = {
        .file = {.sink = sink, .arena = &arena, .diag = diag}, .p = p, .carry = carry};
    const enum mgx_status status = write_all(&w);
    mgx_map_fini(&w.places.at);
    mgx_str_fini(&w.packs);
    mgx_arena_fini(&arena);
    return status;
}

// --- reading ---

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

static enum mgx_status read_info(const struct mgx_container *file, struct mgx_arena *arena,
                                 struct mgx_carry *c, struct mgx_diag *diag)
{
    const uint8_t *data;
    size_t size;
    struct mgx_value *info;
    const struct mgx_value *target;
    TRY(mgx_container_find(file, "info", &data, &size, diag));
    if (!data)
        return mgx_mxr_missing("info", "a file", diag);
    TRY(mgx_msgpack_read(arena, data, size, &info, diag));
    TRY(mgx_mxr_need(info, "target", MGX_VALUE_TEXT, "a file", &target, diag));
    if (target->size >= sizeof c->target)
        return mgx_mxr_missing("target", "a file", diag);
    memcpy(c->target, target->data, target->size + 1);
    c->kind = text_of(&c->arena, info, "kind");
    c->kernels = text_of(&c->arena, info, "kernels");
    return read_options(mgx_value_find(info, "options"), c, diag);
}

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

static enum mgx_status read_packs(const struct mgx_container *file, struct mgx_carry *c,
                                  struct mgx_diag *diag)
{
    const uint8_t *data;
    size_t size;
    TRY(mgx_container_find(file, "packs", &data, &size, diag));
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

static enum mgx_status read_tuning(const struct mgx_container *file, struct mgx_carry *c,
                                   struct mgx_diag *diag)
{
    const uint8_t *text;
    TRY(mgx_container_find(file, "tuning", &text, &c->tuning_size, diag));
    c->tuning = (const char *)text;
    return MGX_OK;
}

static enum mgx_status read_program(struct mgx_program **out, const struct mgx_op_set *ops,
                                    const struct mgx_container *file, struct mgx_arena *arena,
                                    struct mgx_carry *c, struct mgx_diag *diag)
{
    const uint8_t *data;
    size_t size;
    struct mgx_value *root;
    TRY(mgx_container_find(file, "program", &data, &size, diag));
    if (!data)
        return mgx_mxr_missing("program", "a file", diag);
    TRY(mgx_msgpack_read(arena, data, size, &root, diag));
    return mgx_mxr_build(out, ops, arena, NULL, c, root, diag);
}

static enum mgx_status read_all(struct mgx_program **out, const struct mgx_op_set *ops,
                                struct mgx_arena *arena, struct mgx_carry *c, struct mgx_diag *diag)
{
    struct mgx_container file;
    TRY(mgx_container_open(&file, arena, c->file->data, c->file->bytes, diag));
    TRY(mgx_container_take_data(&file, c, diag));
    TRY(read_info(&file, arena, c, diag));
    TRY(read_packs(&file, c, diag));
    TRY(read_tuning(&file, c, diag));
    return read_program(out, ops, &file, arena, c, diag);
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
                                       struct mgx_storage *file, struct mgx_diag *diag)
{
    struct mgx_arena arena;
    struct mgx_carry *c = mgx_carry_create();
    mgx_arena_init(&arena);
    if (c)
        c->file = aligned(file);
    enum mgx_status status =
        c && c->file ? read_all(out, ops, &arena, c, diag) : mgx_fail_memory(diag);
    if (status != MGX_OK)
        mgx_carry_destroy(c);
    mgx_arena_fini(&arena);
    return status;
}
