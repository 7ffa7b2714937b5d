// SPDX-License-Identifier: MIT
// The table of sizes: rows by their lengths, and in order of use; see sizes_own.h.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "targets/sizes_own.h"

size_t mgx_sizes_key_bytes(const struct mgx_sizes *s)
{
    return (size_t)s->len_count * sizeof(int64_t) + s->values.bytes;
}

void mgx_sizes_unlink_use(struct mgx_sizes *s, struct mgx_size *k)
{
    *(k->newer ? &k->newer->older : &s->newest) = k->older;
    *(k->older ? &k->older->newer : &s->oldest) = k->newer;
}

void mgx_sizes_link_newest(struct mgx_sizes *s, struct mgx_size *k)
{
    k->newer = NULL;
    k->older = s->newest;
    *(s->newest ? &s->newest->newer : &s->oldest) = k;
    s->newest = k;
}

struct mgx_size *mgx_sizes_find(struct mgx_sizes *s, const int64_t *lens, uint64_t hash)
{
    struct mgx_size *k = s->bucket[hash % MGX_SIZES_BUCKETS];
    while (k && !(k->hash == hash && memcmp(k->lens, lens, mgx_sizes_key_bytes(s)) == 0))
        k = k->next;
    return k;
}

struct mgx_size *mgx_sizes_add(struct mgx_sizes *s, const int64_t *lens, uint64_t hash)
{
    struct mgx_size *k = calloc(1, sizeof *k + mgx_sizes_key_bytes(s));
    if (!k)
        return NULL;
    memcpy(k->lens, lens, mgx_sizes_key_bytes(s));
    k->hash = hash;
    k->bytes = sizeof *k + mgx_sizes_key_bytes(s);
    k->next = s->bucket[hash % MGX_SIZES_BUCKETS];
    s->bucket[hash % MGX_SIZES_BUCKETS] = k;
    s->bytes += k->bytes;
    s->met++;
    mgx_sizes_link_newest(s, k);
    return k;
}

static void unlink_row(struct mgx_sizes *s, struct mgx_size *k)
{
    struct mgx_size **at = &s->bucket[k->hash % MGX_SIZES_BUCKETS];
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    mgx_sizes_unlink_use(s, k);
    s->bytes -= k->bytes;
    s->met--;
    s->plans -= k->state == MGX_SIZE_READY;
    s->dropped += k->state == MGX_SIZE_READY;
}

void mgx_sizes_destroy_row(struct mgx_size *k)
{
    mgx_program_destroy(k->program);
    free(k);
}

// Takes the oldest rows out until the rest fits; they go when the lock is not held.
struct mgx_size *mgx_sizes_shrink(struct mgx_sizes *s)
{
    struct mgx_size *gone = NULL;
    for (struct mgx_size *k = s->oldest, *newer; k && s->bytes > s->limit; k = newer) {
        newer = k->newer;
        if (k->users)
            continue;
        unlink_row(s, k);
        k->next = gone;
        gone = k;
    }
    return gone;
}

void mgx_sizes_destroy_rows(struct mgx_size *k)
{
    for (struct mgx_size *next; k; k = next) {
        next = k->next;
        mgx_sizes_destroy_row(k);
    }
}
