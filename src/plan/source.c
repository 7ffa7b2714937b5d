// SPDX-License-Identifier: MIT
// Where constants come from: which literal, or what else, an address belongs to; see store.h.
//
// Cost: finding a constant by its address is a search among the ranges, which are kept in order.
#include <assert.h>

#include "ir/carry.h"
#include "plan/store.h"

bool mgx_plan_note_source(struct mgx_plan_store *store, const void *data, size_t bytes,
                          struct mgx_carry_source source)
{
    assert(data);
    if (!mgx_array_reserve(&store->ranges.array, 1, sizeof *store->ranges.v, &store->arena))
        return false;
    struct mgx_plan_range *ranges = store->ranges.v;
    const uintptr_t begin = (uintptr_t)data;
    int64_t at =
        store->ranges.count++; // by address: literals of a mapped file mostly come in order
    for (; at > 0 && ranges[at - 1].begin > begin; at--)
        ranges[at] = ranges[at - 1];
    ranges[at] = (struct mgx_plan_range){begin, begin + (bytes ? bytes : 1), source};
    assert(at + 1 == store->ranges.count || ranges[at].begin <= ranges[at + 1].begin);
    return true;
}

static const struct mgx_plan_range *find_range(const struct mgx_plan_store *store, const void *data)
{
    const uintptr_t at = (uintptr_t)data;
    int64_t low = 0, high = store->ranges.count; // the last range that begins at or before it
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (store->ranges.v[middle].begin <= at)
            low = middle + 1;
        else
            high = middle;
    }
    while (low > 0 && at >= store->ranges.v[low - 1].end) // a shorter one in a longer one
        low--;
    return low > 0 ? &store->ranges.v[low - 1] : NULL;
}

struct mgx_carry_source mgx_plan_source_of(const struct mgx_plan_store *store, const void *data)
{
    const struct mgx_plan_range *range = find_range(store, data); // a late one's has its own copies
    if (!range && store->parent)
        range = find_range(store->parent, data);
    assert(range && range->begin <= (uintptr_t)data && (uintptr_t)data < range->end);
    return (struct mgx_carry_source){
        range->source.number, range->source.offset + (int64_t)((uintptr_t)data - range->begin)};
}

const void *mgx_plan_source_at(const struct mgx_program *p, const struct mgx_carry_source *source)
{
    const struct mgx_storage *storage = NULL;
    if (source->number == MGX_CARRY_FILE)
        storage = p->carry->file;
    else if (source->number > 0)
        storage = p->literals.v[source->number - 1];
    return storage ? (const char *)storage->data + source->offset : NULL;
}

bool mgx_plan_note_copy(struct mgx_plan_store *store, const void *copy, size_t bytes,
                        const void *data)
{
    return mgx_plan_note_source(store, copy, bytes, mgx_plan_source_of(store, data));
}
