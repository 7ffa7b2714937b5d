// SPDX-License-Identifier: MIT
// Writing compiled programs into a container: which section holds what. docs/mxr.md is the
// specification, mxr_load.c reads it.
//
//     data      literals, small ones first; then constants as kernels packed them
//     info      {library, target, kind, kernels, options, literals}
//     program   the tree that a msgpack file would hold, with places in the data for literals
//     packs     of each packed constant: its key, and where it is
//     tuning    the entries of a tuning cache that chose a kernel
//     code      kernels as a device's compiler made them
//     portable  the tree of the program that is not compiled
//
// Of several compiled forms the second's sections are "info.1", "program.1" and so on. Bytes that
// are equal, in literals or packed constants of whatever form, are in the data once.
//
// Keys name the literals that were packed by their place in the file, so they mean the same to the
// process that loads it.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/size.h"
#include "base/version.h"
#include "format/container.h"
#include "format/mxr.h"
#include "format/mxr_write.h"

enum { INLINE = 64, ALIGN = 64, PAGE = 4096, LARGE = 32 << 10 };

// --- places of literals ---

struct blob {
    const void *data;
    size_t bytes;
    uint64_t at;
    bool twin; // of one that has the place
};

struct blobs {
    MGX_ARRAY(struct blob);
};

struct writer {
    struct mgx_container_writer file;
    const struct mgx_mxr_forms *what;
    struct mgx_mxr_places places;
    struct blobs blobs;     // by address, once placed
    struct mgx_map content; // struct piece by its size and sum
    struct mgx_str packs[MGX_MXR_FORMS];
    uint64_t literal_end, end; // of the data so far
};

struct piece {
    uint64_t bytes, sum; // the key
    const void *data;
    uint64_t at;
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

// Where bytes lie that are equal to these; else they get a place, and `twin` is false. Different
// bytes of one size and sum have places of their own, at which only the first are found again.
static bool place_bytes(struct writer *w, const void *data, size_t bytes, uint64_t *at, bool *twin)
{
    const struct piece key = {.bytes = bytes, .sum = mgx_checksum(data, bytes)};
    const size_t size = offsetof(struct piece, data);
    struct piece *known = mgx_map_findn(&w->content, (const char *)&key, size);
    *twin = known && memcmp(known->data, data, bytes) == 0;
    *at = *twin ? known->at : place(w, bytes);
    if (known)
        return true;
    struct piece *piece = mgx_arena_memdup(w->file.arena, &key, sizeof key);
    if (!piece)
        return false;
    piece->data = data;
    piece->at = *at;
    return mgx_map_putn(&w->content, (const char *)piece, size, piece);
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
    return MGX_PUSH(&w->blobs, w->file.arena, (struct blob){t->data, bytes, 0, false}) &&
           mgx_map_put_pointer(seen, t->data, (void *)(uintptr_t)w->blobs.count);
}

static bool collect_from(struct writer *w, struct mgx_map *seen, const struct mgx_program *p)
{
    bool good = true;
    for (int m = 0; m < p->module_count; m++)
        for (const struct mgx_ins *ins = p->modules[m]->first; ins && good; ins = ins->next)
            good = !ins->literal || note(w, seen, ins->literal);
    return good;
}

static bool collect(struct writer *w)
{
    struct mgx_map seen = {0};
    bool good = !w->what->portable || collect_from(w, &seen, w->what->portable);
    for (int i = 0; i < w->what->count && good; i++)
        good = collect_from(w, &seen, w->what->v[i].p);
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
            assert(b->bytes > INLINE); // shorter ones are in the tree
            if (!place_bytes(w, b->data, b->bytes, &b->at, &b->twin))
                return mgx_fail_memory(w->file.diag);
            assert(b->at % ALIGN == 0);
            if (!mgx_map_put_pointer(&w->places.at, b->data, (void *)(uintptr_t)(b->at + 1)))
                return mgx_fail_memory(w->file.diag);
        }
    w->literal_end = w->end = (w->end + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    mgx_map_fini(&w->content); // a packed constant never lies among the literals
    return MGX_OK;
}

static enum mgx_status write_literals(struct writer *w)
{
    const size_t count = (size_t)w->blobs.count;
    if (count)
        qsort(w->blobs.v, count, sizeof *w->blobs.v, by_place);
    for (size_t i = 0; i < count; i++) {
        const struct blob *b = &w->blobs.v[i];
        if (!b->twin)
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

// {key size, place, size, key}. Nothing if its sources will have no names in the file.
static enum mgx_status put_pack(struct writer *w, const struct mgx_carry_pack *pack,
                                struct mgx_str *out)
{
    static const char zeros[8];
    const size_t name = strlen(pack->key) + 1;
    struct mgx_carry_source source[MGX_CARRY_SOURCES];
    uint64_t at;
    bool twin;
    memcpy(source, pack->key + name, sizeof source);
    for (int i = 0; i < MGX_CARRY_SOURCES; i++)
        if (pack->source[i]) {
            source[i].number = MGX_CARRY_FILE;
            if (!find_source(w, pack->source[i], &source[i].offset))
                return MGX_OK;
        }
    assert(name + sizeof source <= pack->key_size);
    if (!place_bytes(w, pack->data, pack->bytes, &at, &twin))
        return mgx_fail_memory(w->file.diag);
    put_number(out, pack->key_size);
    put_number(out, at);
    put_number(out, pack->bytes);
    mgx_str_putn(out, pack->key, name);
    mgx_str_putn(out, (const char *)source, sizeof source);
    mgx_str_putn(out, pack->key + name + sizeof source, pack->key_size - name - sizeof source);
    mgx_str_putn(out, zeros, -pack->key_size & 7);
    assert(out->failed || out->size % 8 == 0);
    return twin ? MGX_OK : mgx_container_data(&w->file, at, pack->data, pack->bytes);
}

static enum mgx_status write_packs(struct writer *w)
{
    assert(w->end % PAGE == 0); // literals end a page
    for (int f = 0; f < w->what->count; f++) {
        const struct mgx_carry *carry = w->what->v[f].carry;
        for (int64_t i = 0; i < carry->packs.count; i++)
            TRY(put_pack(w, &carry->packs.v[i], &w->packs[f]));
        if (w->packs[f].failed)
            return mgx_fail_memory(w->file.diag);
    }
    return MGX_OK;
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

static enum mgx_status write_info(struct writer *w, const char *name, const struct mgx_carry *c)
{
    struct mgx_arena *arena = w->file.arena;
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
    mgx_value_put(info, "literals", mgx_value_int(arena, (int64_t)w->literal_end));
    return arena->failed ? mgx_fail_memory(w->file.diag) : write_tree(w, name, info);
}

static enum mgx_status write_form(struct writer *w, int i, const struct mgx_value *root)
{
    const struct mgx_carry *c = w->what->v[i].carry;
    TRY(write_info(w, mgx_container_name(i, "info").text, c));
    TRY(write_tree(w, mgx_container_name(i, "program").text, root));
    TRY(mgx_container_section(&w->file, mgx_container_name(i, "packs").text,
                              mgx_str_text(&w->packs[i]), w->packs[i].size));
    if (c->tuning_size)
        TRY(mgx_container_section(&w->file, mgx_container_name(i, "tuning").text, c->tuning,
                                  c->tuning_size));
    if (c->code_size)
        TRY(mgx_container_section(&w->file, mgx_container_name(i, "code").text, c->code,
                                  c->code_size));
    return MGX_OK;
}

// The trees are made first: they may fail, and nothing is written then.
static enum mgx_status write_all(struct writer *w)
{
    assert(!w->end && !w->blobs.count && w->what->count >= 1 && w->what->count <= MGX_MXR_FORMS);
    const struct mgx_mxr_forms *what = w->what;
    struct mgx_arena *arena = w->file.arena;
    struct mgx_value *root[MGX_MXR_FORMS], *portable = NULL;
    TRY(place_literals(w));
    for (int i = 0; i < what->count; i++)
        TRY(mgx_mxr_program_value(arena, what->v[i].p, what->v[i].carry->target, &w->places,
                                  &root[i], w->file.diag));
    if (what->portable)
        TRY(mgx_mxr_program_value(arena, what->portable, NULL, &w->places, &portable,
                                  w->file.diag));
    TRY(mgx_container_begin(&w->file));
    TRY(write_literals(w));
    TRY(write_packs(w));
    TRY(mgx_container_end_data(&w->file));
    for (int i = 0; i < what->count; i++)
        TRY(write_form(w, i, root[i]));
    if (portable)
        TRY(write_tree(w, "portable", portable));
    return mgx_container_end(&w->file);
}

enum mgx_status mgx_mxr_write_container(struct mgx_sink *sink, const struct mgx_mxr_forms *what,
                                        struct mgx_diag *diag)
{
    assert(sink && sink->write && what);
    struct mgx_arena arena;
    mgx_arena_init(&arena);
    struct writer w = {.file = {.sink = sink, .arena = &arena, .diag = diag}, .what = what};
    const enum mgx_status status = write_all(&w);
    mgx_map_fini(&w.places.at);
    mgx_map_fini(&w.content);
    for (int i = 0; i < MGX_MXR_FORMS; i++)
        mgx_str_fini(&w.packs[i]);
    mgx_arena_fini(&arena);
    return status;
}
