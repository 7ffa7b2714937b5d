// SPDX-License-Identifier: MIT
// See carry.h.
#include "ir/carry.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/size.h"
#include "base/thread.h"

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
    mgx_carry_end_ahead(c);
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
    for (size_t i = at / MGX_CARRY_CHUNK; i * MGX_CARRY_CHUNK < end; i++) {
        unsigned char unknown = UNKNOWN; // one that was checked ahead stays so
        atomic_compare_exchange_strong(&c->state[i], &unknown, MARKED);
    }
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
    const bool good = c->sum(c->data + begin, bytes) == c->sums[i];
    if (good)
        atomic_store(&c->state[i], CHECKED);
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

// --- checking ahead ---

struct mgx_carry_ahead {
    pthread_t thread;
    atomic_bool stop;
};

// Chunk by chunk; one that two constants share is checked once.
static void check_pack(struct mgx_carry *c, const struct mgx_carry_pack *pack)
{
    const size_t at = (uintptr_t)pack->data - (uintptr_t)c->data;
    for (size_t i = at / MGX_CARRY_CHUNK; i * MGX_CARRY_CHUNK < at + pack->bytes; i++) {
        if (atomic_load(&c->ahead->stop))
            return;
        if (atomic_load(&c->state[i]) != CHECKED)
            check_chunk(c, i);
    }
}

static void *check_all(void *user)
{
    struct mgx_carry *c = user;
    for (uint32_t i = 0; i < c->by_key.count && !atomic_load(&c->ahead->stop); i++)
        check_pack(c, c->by_key.entries[i].value);
    return NULL;
}

void mgx_carry_check_ahead(struct mgx_carry *c)
{
    assert(!c->ahead);
    if (!c->file || !c->by_key.count || !(c->ahead = calloc(1, sizeof *c->ahead)))
        return;
    if (!mgx_thread_start(&c->ahead->thread, check_all, c)) {
        free(c->ahead);
        c->ahead = NULL;
    }
}

void mgx_carry_end_ahead(struct mgx_carry *c)
{
    if (!c->ahead)
        return;
    atomic_store(&c->ahead->stop, true);
    pthread_join(c->ahead->thread, NULL);
    free(c->ahead);
    c->ahead = NULL;
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
