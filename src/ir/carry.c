// SPDX-License-Identifier: MIT
// See carry.h.
#include "ir/carry.h"

#include <assert.h>
#include <stdlib.h>

#include "base/checksum.h"
#include "base/size.h"

enum { UNKNOWN, MARKED, CHECKED };

struct mgx_carry *mgx_carry_create(void)
{
    struct mgx_carry *c = calloc(1, sizeof *c);
    if (c)
        mgx_arena_init(&c->arena);
    return c;
}

void mgx_carry_destroy(struct mgx_carry *c)
{
    if (!c)
        return;
    mgx_map_fini(&c->by_key);
    mgx_storage_release(c->file);
    mgx_arena_fini(&c->arena);
    free(c);
}

// --- marking ---

static size_t chunk_count(const struct mgx_carry *c)
{
    assert(c->state || !c->data_bytes);
    return (c->data_bytes + MGX_CARRY_CHUNK - 1) / MGX_CARRY_CHUNK;
}

void mgx_carry_mark(struct mgx_carry *c, const void *data, size_t bytes)
{
    const size_t at = (uintptr_t)data - (uintptr_t)c->data;
    if (!c->file || !bytes || at >= c->data_bytes)
        return;
    const size_t end = bytes < c->data_bytes - at ? at + bytes : c->data_bytes;
    for (size_t i = at / MGX_CARRY_CHUNK; i * MGX_CARRY_CHUNK < end; i++)
        if (atomic_load(&c->state[i]) == UNKNOWN)
            atomic_store(&c->state[i], MARKED);
}

void mgx_carry_mark_literals(struct mgx_carry *c)
{
    assert(c->literal_bytes <= c->data_bytes);
    mgx_carry_mark(c, c->data, c->literal_bytes);
}

const void *mgx_carry_find(struct mgx_carry *c, const void *key, size_t size, size_t bytes)
{
    const struct mgx_carry_pack *pack = mgx_map_findn(&c->by_key, key, size);
    if (!pack || pack->bytes != bytes)
        return NULL;
    assert((const char *)pack->data >= (const char *)c->data);
    assert(pack->bytes <= c->data_bytes);
    mgx_carry_mark(c, pack->data, pack->bytes);
    return pack->data;
}

// --- checking ---

static bool check_chunk(struct mgx_carry *c, size_t i)
{
    assert(i < chunk_count(c));
    const size_t begin = i * MGX_CARRY_CHUNK, rest = c->data_bytes - begin;
    const size_t bytes = rest < MGX_CARRY_CHUNK ? rest : MGX_CARRY_CHUNK;
    const bool good = mgx_checksum(c->data + begin, bytes) == c->sums[i];
    atomic_store(&c->state[i], good ? CHECKED : MARKED);
    return good;
}

bool mgx_carry_check_part(struct mgx_carry *c, int part, int parts)
{
    assert(part >= 0 && part < parts);
    const int64_t count = (int64_t)chunk_count(c);
    const size_t end = (size_t)mgx_part_begin(count, part + 1, parts);
    bool good = true;
    for (size_t i = (size_t)mgx_part_begin(count, part, parts); i < end && good; i++)
        if (atomic_load(&c->state[i]) == MARKED)
            good = check_chunk(c, i);
    return good;
}

static bool check_now(struct mgx_carry *c, size_t at, size_t end)
{
    assert(at < end && end <= c->data_bytes);
    bool good = true;
    for (size_t i = at / MGX_CARRY_CHUNK; i * MGX_CARRY_CHUNK < end && good; i++)
        if (atomic_load(&c->state[i]) != CHECKED)
            good = check_chunk(c, i);
    return good;
}

enum mgx_status mgx_carry_check_now(struct mgx_carry *c, const void *data, size_t bytes,
                                    struct mgx_diag *diag)
{
    const size_t at = (uintptr_t)data - (uintptr_t)c->data;
    if (!c->file || !bytes || at >= c->data_bytes)
        return MGX_OK;
    const size_t end = bytes < c->data_bytes - at ? at + bytes : c->data_bytes;
    return check_now(c, at, end) ? MGX_OK : mgx_carry_damaged(diag);
}

enum mgx_status mgx_carry_damaged(struct mgx_diag *diag)
{
    return mgx_fail(diag, MGX_INVALID,
                    "the saved program is damaged: a checksum of its weights "
                    "differs");
}

enum mgx_status mgx_carry_check(struct mgx_carry *c, struct mgx_diag *diag)
{
    return !c->file || mgx_carry_check_part(c, 0, 1) ? MGX_OK : mgx_carry_damaged(diag);
}
