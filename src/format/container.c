// SPDX-License-Identifier: MIT
// See container.h. Numbers are little-endian; tables are read where they lie, hence the assertion
// on the machine's order of bytes.
#include "format/container.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/checksum.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are used as they lie");

enum { ALIGN = 64, FRAME = 64, NEW_SUMS = 3 };

// The first byte is one that no msgpack value begins with; the rest shows what a transfer as text
// did to the file.
static const char MAGIC[8] = {'\xc1', 'M', 'X', 'R', '\r', '\n', '\x1a', '\n'};
static const char END[8] = {'e', 'n', 'd', ' ', 'M', 'X', 'R', '\n'};

struct header {
    char magic[8];
    uint32_t version, data_at;
    uint64_t zero[6];
};

struct trailer {
    uint64_t size, table_at, count, table_sum;
    uint64_t zero[2];
    uint64_t sum; // of the words before
    char magic[8];
};

static_assert(sizeof(struct header) == FRAME && sizeof(struct trailer) == FRAME, "no padding");
static_assert(sizeof(struct mgx_container_section) == 40, "no padding");

struct mgx_container_name mgx_container_name(int i, const char *name)
{
    struct mgx_container_name out;
    const int size = snprintf(out.text, sizeof out.text, i ? "%s.%d" : "%s", name, i);
    assert(i >= 0 && size > 0 && (size_t)size < sizeof out.text);
    (void)size;
    return out;
}

// --- writing ---

static enum mgx_status put(struct mgx_container_writer *w, const void *data, size_t size)
{
    assert(data || !size);
    if (size)
        TRY(w->sink->write(w->sink, data, size, w->diag));
    w->sink->at += size;
    return MGX_OK;
}

static enum mgx_status pad_to(struct mgx_container_writer *w, size_t align)
{
    assert(align && (align & (align - 1)) == 0 && align <= MGX_CONTAINER_DATA);
    static const char zeros[MGX_CONTAINER_DATA];
    return put(w, zeros, (size_t)(-w->sink->at & (align - 1)));
}

enum mgx_status mgx_container_begin(struct mgx_container_writer *w)
{
    assert(!w->sink->at && !w->count && !w->fill);
    struct header h = {.version = MGX_CONTAINER_VERSION, .data_at = MGX_CONTAINER_DATA};
    memcpy(h.magic, MAGIC, sizeof MAGIC);
    w->chunk = mgx_arena_alloc(w->arena, MGX_CARRY_CHUNK);
    if (!w->chunk)
        return mgx_fail_memory(w->diag);
    TRY(put(w, &h, sizeof h));
    return pad_to(w, MGX_CONTAINER_DATA);
}

static enum mgx_status flush(struct mgx_container_writer *w)
{
    assert(w->fill <= MGX_CARRY_CHUNK);
    if (!w->fill)
        return MGX_OK;
    if (!MGX_PUSH(&w->sums, w->arena, mgx_checksum(w->chunk, w->fill)))
        return mgx_fail_memory(w->diag);
    TRY(put(w, w->chunk, w->fill));
    w->fill = 0;
    return MGX_OK;
}

// Without bytes: zeros.
static enum mgx_status append(struct mgx_container_writer *w, const uint8_t *data, uint64_t size)
{
    for (uint64_t done = 0; done < size;) {
        const uint64_t room = MGX_CARRY_CHUNK - w->fill;
        const size_t part = (size_t)(size - done < room ? size - done : room);
        if (data)
            memcpy(w->chunk + w->fill, data + done, part);
        else
            memset(w->chunk + w->fill, 0, part);
        w->fill += part;
        done += part;
        assert(w->fill <= MGX_CARRY_CHUNK && done <= size);
        if (w->fill == MGX_CARRY_CHUNK)
            TRY(flush(w));
    }
    return MGX_OK;
}

enum mgx_status mgx_container_data(struct mgx_container_writer *w, uint64_t at, const void *data,
                                   size_t size)
{
    const uint64_t now = w->sink->at + w->fill - MGX_CONTAINER_DATA;
    assert(at >= now && at % ALIGN == 0);
    TRY(append(w, NULL, at - now));
    assert(w->sink->at + w->fill - MGX_CONTAINER_DATA == at);
    return append(w, data, size);
}

static enum mgx_status add_section(struct mgx_container_writer *w, const char *name, uint64_t at,
                                   uint64_t size, uint64_t sum)
{
    assert(w->count < MGX_CONTAINER_SECTIONS && strlen(name) < MGX_CONTAINER_NAME);
    assert(!w->count || at >= w->sections[w->count - 1].at + w->sections[w->count - 1].size);
    struct mgx_container_section *s = &w->sections[w->count++];
    *s = (struct mgx_container_section){.at = at, .size = size, .sum = sum};
    memcpy(s->name, name, strlen(name));
    return MGX_OK;
}

enum mgx_status mgx_container_end_data(struct mgx_container_writer *w)
{
    assert(!w->count); // the data comes first
    TRY(flush(w));
    TRY(add_section(w, "data", MGX_CONTAINER_DATA, w->sink->at - MGX_CONTAINER_DATA, 0));
    return mgx_container_section(w, "sums", w->sums.v, (size_t)w->sums.count * sizeof *w->sums.v);
}

enum mgx_status mgx_container_section(struct mgx_container_writer *w, const char *name,
                                      const void *data, size_t size)
{
    assert(w->count > 0 && !w->fill); // the data is closed
    TRY(pad_to(w, ALIGN));
    TRY(add_section(w, name, w->sink->at, size, mgx_checksum(data, size)));
    return put(w, data, size);
}

enum mgx_status mgx_container_end(struct mgx_container_writer *w)
{
    assert(w->count > 0 && w->count <= MGX_CONTAINER_SECTIONS && !w->fill);
    const size_t bytes = (size_t)w->count * sizeof *w->sections;
    TRY(pad_to(w, ALIGN));
    struct trailer t = {.table_at = w->sink->at,
                        .count = (uint64_t)w->count,
                        .table_sum = mgx_checksum(w->sections, bytes)};
    TRY(put(w, w->sections, bytes));
    TRY(pad_to(w, ALIGN));
    t.size = w->sink->at + sizeof t;
    assert(t.table_at % ALIGN == 0 && t.size % ALIGN == 0);
    t.sum = mgx_checksum(&t, offsetof(struct trailer, sum));
    memcpy(t.magic, END, sizeof END);
    return put(w, &t, sizeof t);
}

// --- reading ---

bool mgx_container_is(const void *data, size_t size)
{
    return size >= sizeof MAGIC && memcmp(data, MAGIC, sizeof MAGIC) == 0;
}

static enum mgx_status bad(struct mgx_diag *diag, const char *what)
{
    return mgx_fail(diag, MGX_INVALID, "the saved program is damaged: %s", what);
}

static enum mgx_status check_header(struct mgx_container *c, struct mgx_diag *diag)
{
    struct header h;
    memcpy(&h, c->bytes, sizeof h);
    if (h.version > MGX_CONTAINER_VERSION)
        return mgx_fail(diag, MGX_UNSUPPORTED,
                        "the saved program has format version %u, readable are 1 to %d", h.version,
                        MGX_CONTAINER_VERSION);
    bool good = h.version >= 1 && h.data_at == MGX_CONTAINER_DATA;
    for (int i = 0; i < 6; i++)
        good = good && h.zero[i] == 0;
    c->sum = h.version < NEW_SUMS ? mgx_checksum_old : mgx_checksum;
    return good ? MGX_OK : bad(diag, "its header");
}

// Is this range inside the file, between header and trailer?
static bool inside(const struct mgx_container *c, uint64_t at, uint64_t size)
{
    assert(c->size >= 2 * FRAME);
    return at >= FRAME && at <= c->size - FRAME && size <= c->size - FRAME - at;
}

enum mgx_status mgx_container_open(struct mgx_container *c, struct mgx_arena *arena,
                                   const void *bytes, size_t size, struct mgx_diag *diag)
{
    struct trailer t;
    *c = (struct mgx_container){.bytes = bytes, .size = size};
    if (size < 2 * FRAME)
        return bad(diag, "it is cut off");
    TRY(check_header(c, diag));
    memcpy(&t, c->bytes + size - FRAME, sizeof t);
    if (memcmp(t.magic, END, sizeof END) != 0)
        return bad(diag, "it is cut off, or has something behind its end");
    if (t.sum != c->sum(&t, offsetof(struct trailer, sum)) || t.size != size)
        return bad(diag, "its trailer");
    const uint64_t table = t.count * sizeof *c->table;
    if (t.count > MGX_CONTAINER_SECTIONS || !inside(c, t.table_at, table) ||
        t.table_sum != c->sum(c->bytes + t.table_at, (size_t)table))
        return bad(diag, "its table of sections");
    c->table = mgx_arena_memdup(arena, c->bytes + t.table_at, (size_t)table);
    c->count = (int)t.count;
    return c->table ? MGX_OK : mgx_fail_memory(diag);
}

static const struct mgx_container_section *find_section(const struct mgx_container *c,
                                                        const char *name)
{
    assert(strlen(name) < MGX_CONTAINER_NAME);
    for (int i = 0; i < c->count; i++)
        if (strncmp(c->table[i].name, name, MGX_CONTAINER_NAME) == 0)
            return &c->table[i];
    return NULL;
}

bool mgx_container_has(const struct mgx_container *c, const char *name)
{
    return find_section(c, name) != NULL;
}

enum mgx_status mgx_container_find(const struct mgx_container *c, const char *name,
                                   const uint8_t **data, size_t *size, struct mgx_diag *diag)
{
    const struct mgx_container_section *s = find_section(c, name);
    *data = NULL;
    *size = 0;
    if (!s)
        return MGX_OK;
    if (s->at % 8 || !inside(c, s->at, s->size) ||
        c->sum(c->bytes + s->at, (size_t)s->size) != s->sum)
        return mgx_fail(diag, MGX_INVALID, "the saved program is damaged: its section \"%s\"",
                        name);
    *data = c->bytes + s->at;
    *size = (size_t)s->size;
    return MGX_OK;
}

enum mgx_status mgx_container_take_data(const struct mgx_container *c, struct mgx_carry *out,
                                        struct mgx_diag *diag)
{
    const struct mgx_container_section *s = find_section(c, "data");
    const uint8_t *sums;
    size_t size;
    TRY(mgx_container_find(c, "sums", &sums, &size, diag));
    if (!s || !sums || s->at % ALIGN || !inside(c, s->at, s->size) ||
        size / sizeof(uint64_t) != (s->size + MGX_CARRY_CHUNK - 1) / MGX_CARRY_CHUNK)
        return bad(diag, "its data");
    out->data = c->bytes + s->at;
    out->data_bytes = (size_t)s->size;
    if (out->literal_bytes > out->data_bytes)
        out->literal_bytes = out->data_bytes;
    out->sums = (const uint64_t *)sums;
    out->sum = c->sum;
    out->state = mgx_arena_alloc(&out->arena, size / sizeof(uint64_t) + 1);
    return out->state ? MGX_OK : mgx_fail_memory(diag);
}
