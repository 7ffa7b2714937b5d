// SPDX-License-Identifier: MIT
// Variables of a SavedModel; see bundle.h.
#include "tf/bundle.h"

#include <string.h>

#include "base/size.h"
#include "base/str.h"

static enum mgx_status bad(struct mgx_diag *diag, const char *what)
{
    return mgx_fail(diag, MGX_INVALID, "variables/variables.index: %s", what);
}

// --- the table ---

enum { SHARED = 64 };                         // whole keys to the bytes of the file, at most
enum { FOOTER = 48, MAGIC = 8, TRAILER = 5 }; // of a block: kind of compression, checksum
#define TABLE_MAGIC 0xdb4775248b80fb57u

static uint64_t little(const uint8_t *p, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)p[i] << (8 * i);
    return value;
}

// Castagnoli's polynomial, as the table masks it.
static uint32_t checksum(const uint8_t *p, size_t size)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < size; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

// A block by its handle: two varints, offset and size.
static enum mgx_status find_block(const struct mgx_file *file, struct mgx_wire *handle,
                                  struct mgx_wire *out, struct mgx_diag *diag)
{
    *out = (struct mgx_wire){0};
    uint64_t offset = 0, size = 0;
    size_t end;
    if (!mgx_wire_varint(handle, &offset) || !mgx_wire_varint(handle, &size))
        return bad(diag, "a block's handle is cut off");
    if (size > SIZE_MAX - TRAILER || !mgx_add_size(offset, size + TRAILER, &end) ||
        end > file->size)
        return bad(diag, "a block lies beyond the end");
    const uint8_t *p = file->data + offset;
    if (p[size] != 0)
        return mgx_fail(diag, MGX_UNSUPPORTED,
                        "variables/variables.index: a compressed block (kind %d)", p[size]);
    if (checksum(p, size + 1) != little(p + size + 1, 4))
        return bad(diag, "a block's checksum does not match");
    *out = mgx_wire_of(p, size);
    return MGX_OK;
}

struct entries { // of a block, one after the other
    struct mgx_wire rest;
    struct mgx_str key;
    struct mgx_wire value;
    size_t *room; // bytes that keys may still take together
};

// The restart points at the end only serve searching.
static enum mgx_status open_entries(struct mgx_wire block, size_t *room, struct entries *e,
                                    struct mgx_diag *diag)
{
    const size_t size = (size_t)(block.end - block.p);
    const uint64_t restarts = size >= 4 ? little(block.end - 4, 4) : 0;
    if (size < 4 || restarts > (size - 4) / 4)
        return bad(diag, "a block is cut off");
    *e = (struct entries){.rest = mgx_wire_of(block.p, size - 4 - 4 * (size_t)restarts),
                          .room = room};
    return MGX_OK;
}

static bool next_entry(struct entries *e, const char **why)
{
    uint64_t shared = 0, own = 0, size = 0;
    *why = NULL;
    if (e->rest.p == e->rest.end)
        return false;
    *why = "an entry is cut off";
    if (!mgx_wire_varint(&e->rest, &shared) || !mgx_wire_varint(&e->rest, &own) ||
        !mgx_wire_varint(&e->rest, &size))
        return false;
    const size_t left = (size_t)(e->rest.end - e->rest.p);
    if (shared > e->key.size || own > left || size > left - own)
        return false;
    *why = "its keys share more than a table's do";
    if (shared + own > *e->room)
        return false;
    *e->room -= shared + own;
    e->key.size = shared;
    mgx_str_putn(&e->key, (const char *)e->rest.p, own);
    e->value = mgx_wire_of(e->rest.p + own, size);
    e->rest.p += own + size;
    *why = e->key.failed ? "no memory" : NULL;
    return !e->key.failed;
}

// --- its contents ---

static enum mgx_status keep_entry(struct mgx_tf_bundle *b, const struct entries *e,
                                  struct mgx_arena *arena, struct mgx_diag *diag)
{
    struct mgx_wire *value = mgx_arena_memdup(arena, &e->value, sizeof e->value);
    const char *key = mgx_arena_strndup(arena, mgx_str_text(&e->key), e->key.size);
    if (!value || !key || !mgx_map_putn(&b->entries, key, e->key.size, value))
        return mgx_fail_memory(diag);
    return MGX_OK;
}

static enum mgx_status read_block(struct mgx_tf_bundle *b, struct mgx_wire block, size_t *room,
                                  struct mgx_arena *arena, struct mgx_diag *diag)
{
    struct entries e;
    const char *why = NULL;
    TRY(open_entries(block, room, &e, diag));
    enum mgx_status status = MGX_OK;
    while (status == MGX_OK && next_entry(&e, &why))
        status = keep_entry(b, &e, arena, diag);
    mgx_str_fini(&e.key);
    return status == MGX_OK && why ? bad(diag, why) : status;
}

// The index block has a handle of a block of entries under each of its keys.
static enum mgx_status read_table(struct mgx_tf_bundle *b, const struct mgx_file *file,
                                  struct mgx_arena *arena, struct mgx_diag *diag)
{
    if (file->size < FOOTER || little(file->data + file->size - MAGIC, MAGIC) != TABLE_MAGIC)
        return bad(diag, "not a table of variables");
    struct mgx_wire footer = mgx_wire_of(file->data + file->size - FOOTER, FOOTER - MAGIC);
    struct mgx_wire block;
    uint64_t skipped;
    if (!mgx_wire_varint(&footer, &skipped) || !mgx_wire_varint(&footer, &skipped))
        return bad(diag, "the footer is cut off");
    TRY(find_block(file, &footer, &block, diag));
    struct entries index;
    const char *why = NULL;
    // Writers begin a key anew every 16 entries, so whole keys are at most 16 times as long as
    // theirs.
    size_t room = file->size <= SIZE_MAX / SHARED ? file->size * SHARED : SIZE_MAX;
    TRY(open_entries(block, &room, &index, diag));
    enum mgx_status status = MGX_OK;
    size_t read = 0; // blocks do not overlap, so together they are no longer than the file
    while (status == MGX_OK && next_entry(&index, &why)) {
        status = find_block(file, &index.value, &block, diag);
        read += (size_t)(block.end - block.p) + TRAILER;
        if (status == MGX_OK && read > file->size)
            status = bad(diag, "blocks overlap");
        if (status == MGX_OK)
            status = read_block(b, block, &room, arena, diag);
    }
    mgx_str_fini(&index.key);
    return status == MGX_OK && why ? bad(diag, why) : status;
}

// The entry without a name says how many shards there are and in which byte order.
static enum mgx_status read_head(struct mgx_tf_bundle *b, struct mgx_diag *diag)
{
    const struct mgx_wire *head = mgx_map_findn(&b->entries, "", 0);
    struct mgx_wire_field f;
    int64_t big_endian = 0;
    if (!head)
        return bad(diag, "no header");
    struct mgx_wire w = *head;
    while (mgx_wire_next(&w, &f)) {
        if (f.number == 1)
            mgx_wire_int(&w, &f, &b->shards);
        else if (f.number == 2)
            mgx_wire_int(&w, &f, &big_endian);
    }
    if (w.bad || b->shards < 1 || b->shards > 99999)
        return bad(diag, w.bad ? w.bad : "the number of shards makes no sense");
    return big_endian ? mgx_fail(diag, MGX_UNSUPPORTED, "big-endian variables are not supported")
                      : MGX_OK;
}

static enum mgx_status open_beside(struct mgx_source *source, const char *name,
                                   struct mgx_arena *arena, struct mgx_source_file **out,
                                   struct mgx_diag *diag)
{
    if (!name)
        return mgx_fail_memory(diag);
    const struct mgx_slice location = {name, strlen(name)};
    return mgx_source_beside(source, NULL, location, arena, out, diag);
}

enum mgx_status mgx_tf_bundle_open(struct mgx_tf_bundle *b, struct mgx_source *source,
                                   struct mgx_arena *arena, struct mgx_diag *diag)
{
    struct mgx_source_file *index;
    if (b->open)
        return MGX_OK;
    TRY(open_beside(source, "variables/variables.index", arena, &index, diag));
    TRY(read_table(b, index->file, arena, diag));
    TRY(read_head(b, diag));
    b->open = true;
    return MGX_OK;
}

void mgx_tf_bundle_fini(struct mgx_tf_bundle *b)
{
    mgx_map_fini(&b->entries);
}

// --- one variable ---

struct place {
    int64_t type, shard, offset, size;
    struct mgx_wire shape;
    bool sliced;
};

static enum mgx_status read_place(struct mgx_wire w, struct place *p, struct mgx_diag *diag)
{
    struct mgx_wire_field f;
    *p = (struct place){.shape = mgx_wire_of("", 0)};
    while (mgx_wire_next(&w, &f)) {
        if (f.number == 1)
            mgx_wire_int(&w, &f, &p->type);
        else if (f.number == 2)
            mgx_wire_message(&w, &f, &p->shape);
        else if (f.number == 3)
            mgx_wire_int(&w, &f, &p->shard);
        else if (f.number == 4)
            mgx_wire_int(&w, &f, &p->offset);
        else if (f.number == 5)
            mgx_wire_int(&w, &f, &p->size);
        else if (f.number == 7)
            p->sliced = true;
    }
    return w.bad ? mgx_wire_fail(&w, "BundleEntryProto", diag) : MGX_OK;
}

static enum mgx_status shape_of(const struct place *p, struct mgx_shape *shape,
                                struct mgx_diag *diag)
{
    int64_t lens[MGX_MAX_RANK];
    int rank;
    enum mgx_type type;
    TRY(mgx_tf_type_of(p->type, &type, diag));
    TRY(mgx_tf_read_shape(p->shape, &rank, lens, diag));
    for (int i = 0; i < rank; i++)
        if (lens[i] < 0)
            rank = -1;
    if (rank < 0 || type == MGX_STRING)
        return mgx_fail(diag, MGX_UNSUPPORTED, "a variable of unknown shape or of strings");
    *shape = mgx_shape_make(type, rank, lens);
    return mgx_shape_check(shape, diag);
}

static enum mgx_status check_place(const struct place *p, struct mgx_slice name, size_t need,
                                   size_t have, struct mgx_diag *diag)
{
    if (p->size < 0 || (size_t)p->size != need)
        return mgx_fail(diag, MGX_INVALID, "variable \"%.*s\" has %lld bytes, its shape needs %zu",
                        MGX_SLICE(name), (long long)p->size, need);
    if (p->offset < 0 || (size_t)p->offset > have || need > have - (size_t)p->offset)
        return mgx_fail(diag, MGX_INVALID,
                        "variable \"%.*s\" at %lld, %zu bytes long, is beyond the %zu bytes of its "
                        "shard",
                        MGX_SLICE(name), (long long)p->offset, need, have);
    return MGX_OK;
}

static enum mgx_status open_shard(const struct mgx_tf_bundle *b, int64_t number,
                                  struct mgx_source *source, struct mgx_arena *arena,
                                  struct mgx_source_file **out, struct mgx_diag *diag)
{
    if (number < 0 || number >= b->shards)
        return mgx_fail(diag, MGX_INVALID, "shard %lld of %lld", (long long)number,
                        (long long)b->shards);
    const char *path = mgx_arena_printf(arena, "variables/variables.data-%05d-of-%05d", (int)number,
                                        (int)b->shards);
    return open_beside(source, path, arena, out, diag);
}

enum mgx_status mgx_tf_bundle_find(const struct mgx_tf_bundle *b, struct mgx_slice name,
                                   struct mgx_source *source, struct mgx_arena *arena,
                                   struct mgx_shape *shape, struct mgx_region *out,
                                   struct mgx_diag *diag)
{
    const struct mgx_wire *entry = mgx_map_findn(&b->entries, name.text, name.size);
    struct place p;
    struct mgx_source_file *shard;
    TRY(mgx_name_check(name, "the name of a variable", diag));
    if (!entry || !name.size)
        return mgx_fail(diag, MGX_INVALID, "the model has no variable \"%.*s\"", MGX_SLICE(name));
    TRY(read_place(*entry, &p, diag));
    TRY(shape_of(&p, shape, diag));
    if (p.sliced)
        return mgx_fail(diag, MGX_UNSUPPORTED, "variable \"%.*s\" is stored in slices",
                        MGX_SLICE(name));
    TRY(open_shard(b, p.shard, source, arena, &shard, diag));
    const size_t need = mgx_shape_bytes(shape);
    TRY(check_place(&p, name, need, shard->file->size, diag));
    *out = (struct mgx_region){shard->file->data ? shard->file->data + p.offset : NULL, need,
                               shard->file, shard->storage};
    return MGX_OK;
}
