// SPDX-License-Identifier: MIT
// Hash map; see map.h. Linear probing; the seed is fixed on purpose, because results and printed
// text must not differ between runs. A hostile model can at worst make look-ups linear, which its
// node limit bounds.
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

void mgx_map_fini(struct mgx_map *map)
{
    free(map->entries);
    free(map->slots);
    *map = (struct mgx_map){0};
}

uint64_t mgx_hash_bytes(const void *data, size_t size, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t h = seed ^ 0x9E3779B97F4A7C15u ^ (size * 0xFF51AFD7ED558CCDu);
    while (size >= 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        h = (h ^ w) * 0xC4CEB9FE1A85EC53u;
        h ^= h >> 29;
        p += 8;
        size -= 8;
    }
    uint64_t tail = 0;
    if (size)
        memcpy(&tail, p, size);
    h = (h ^ tail) * 0xC4CEB9FE1A85EC53u;
    return h ^ (h >> 32);
}

static uint64_t hash_key(const char *key, size_t size)
{
    return size == SIZE_MAX ? mgx_hash_bytes(&key, sizeof key, 1) : mgx_hash_bytes(key, size, 0);
}

static bool same_key(const struct mgx_map_entry *e, const char *key, size_t size)
{
    if (e->key_size != size)
        return false;
    return size == SIZE_MAX ? e->key == key : memcmp(e->key, key, size) == 0;
}

enum { INDEX_BITS = 32 };
#define INDEX_MASK (((uint64_t)1 << INDEX_BITS) - 1)

// The slot that holds the key, or the free slot where it would go. The part of the hash that stands
// in the slot keeps strangers from being looked at: keys lie anywhere in a file.
static uint64_t *find_slot(const struct mgx_map *map, const char *key, size_t size, uint64_t hash)
{
    const uint32_t mask = map->slot_count - 1;
    uint32_t at = (uint32_t)hash & mask;
    for (; map->slots[at]; at = (at + 1) & mask)
        if (((map->slots[at] ^ hash) & ~INDEX_MASK) == 0 &&
            same_key(&map->entries[(map->slots[at] & INDEX_MASK) - 1], key, size))
            break;
    return &map->slots[at];
}

static bool grow(struct mgx_map *map)
{
    if (map->slot_count >= UINT32_MAX / 2)
        return false;
    const uint32_t slot_count = map->slot_count ? map->slot_count * 2 : 16;
    uint64_t *slots = calloc(slot_count, sizeof *slots);
    struct mgx_map_entry *entries =
        slots ? realloc(map->entries, (size_t)slot_count / 4 * 3 * sizeof *entries) : NULL;
    if (!entries) {
        free(slots);
        return false;
    }
    free(map->slots);
    map->slots = slots;
    map->entries = entries;
    map->slot_count = slot_count;
    for (uint32_t i = 0; i < map->count; i++) {
        const uint64_t hash = hash_key(entries[i].key, entries[i].key_size);
        *find_slot(map, entries[i].key, entries[i].key_size, hash) = (hash & ~INDEX_MASK) | (i + 1);
    }
    return true;
}

bool mgx_map_putn(struct mgx_map *map, const char *key, size_t size, void *value)
{
    if (map->count + 1 > map->slot_count / 4 * 3 && !grow(map))
        return false;
    const uint64_t hash = hash_key(key, size);
    uint64_t *slot = find_slot(map, key, size, hash);
    if (!*slot) {
        map->entries[map->count] = (struct mgx_map_entry){.key = key, .key_size = size};
        *slot = (hash & ~INDEX_MASK) | ++map->count;
    }
    map->entries[(*slot & INDEX_MASK) - 1].value = value;
    return true;
}

bool mgx_map_put(struct mgx_map *map, const char *key, void *value)
{
    return mgx_map_putn(map, key, strlen(key), value);
}

bool mgx_map_put_pointer(struct mgx_map *map, const void *key, void *value)
{
    return mgx_map_putn(map, key, SIZE_MAX, value);
}

struct mgx_map_entry *mgx_map_find_entry(const struct mgx_map *map, const char *key, size_t size)
{
    if (!map->count)
        return NULL;
    const uint64_t slot = *find_slot(map, key, size, hash_key(key, size));
    return slot ? &map->entries[(slot & INDEX_MASK) - 1] : NULL;
}

void *mgx_map_findn(const struct mgx_map *map, const char *key, size_t size)
{
    const struct mgx_map_entry *e = mgx_map_find_entry(map, key, size);
    return e ? e->value : NULL;
}

void *mgx_map_find(const struct mgx_map *map, const char *key)
{
    return mgx_map_findn(map, key, strlen(key));
}

void *mgx_map_find_pointer(const struct mgx_map *map, const void *key)
{
    return mgx_map_findn(map, key, SIZE_MAX);
}
