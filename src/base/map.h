// SPDX-License-Identifier: MIT
// Hash map from strings or pointers to pointers: open addressing, power-of-two size, at most 3/4
// full. Holds: keys are borrowed and must outlive the map (names live in an arena). No removal; a
// value may be overwritten. Order of iteration is order of insertion, so that nothing printed
// depends on hashing. Cost: O(1) per operation, some 40 bytes
// per entry.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mgx_map_entry {
    const char *key; // string bytes, or the pointer itself in a pointer map
    size_t key_size; // length of a string key; SIZE_MAX marks a pointer key
    void *value;
};

struct mgx_map {
    struct mgx_map_entry *entries; // in order of insertion
    uint64_t *slots;               // upper half of the hash, then index + 1 into entries; 0 = free
    uint32_t count;
    uint32_t slot_count;
};

void mgx_map_fini(struct mgx_map *map); // {0} is an empty map

// Insert or overwrite. False when out of memory (the map is unchanged).
bool mgx_map_put(struct mgx_map *map, const char *key, void *value);
bool mgx_map_putn(struct mgx_map *map, const char *key, size_t size, void *value);
bool mgx_map_put_pointer(struct mgx_map *map, const void *key, void *value);

// NULL when absent; use the _entry forms when NULL is a legal value.
void *mgx_map_find(const struct mgx_map *map, const char *key);
void *mgx_map_findn(const struct mgx_map *map, const char *key, size_t size);
void *mgx_map_find_pointer(const struct mgx_map *map, const void *key);
struct mgx_map_entry *mgx_map_find_entry(const struct mgx_map *map, const char *key, size_t size);

uint64_t mgx_hash_bytes(const void *data, size_t size, uint64_t seed);
