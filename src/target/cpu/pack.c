// SPDX-License-Identifier: MIT
// What a plan keeps to its end: packed constants, found again by a key of bytes, and clean-up for
// kernels.
//
// Constants lie one behind the other in chunks that grow with what is there already, up to 32 MiB,
// so that even small ones share large pages; of a chunk's rest nothing is ever touched.
#include <string.h>

#include "base/page.h"
#include "target/cpu/cpu.h"
#include "target/cpu/kernel/split.h"

static bool keep(struct cpu_plan *plan, struct mgx_storage *storage)
{
    struct mgx_storage **list = plan->packed.v;
    if (plan->packed.count == plan->packed.capacity) {
        const size_t capacity = plan->packed.capacity ? 2 * plan->packed.capacity : 64;
        list = mgx_arena_array(&plan->arena, capacity, sizeof *list);
        if (!list)
            return false;
        if (plan->packed.count)
            memcpy(list, plan->packed.v, plan->packed.count * sizeof *list);
        plan->packed.capacity = capacity;
    }
    plan->packed.v = list;
    plan->packed.v[plan->packed.count++] = storage;
    return true;
}

static bool add_chunk(struct cpu_plan *plan, size_t bytes, struct mgx_diag *diag)
{
    enum { LEAST = 256 << 10, MOST = 32 << 20 };
    size_t size = plan->packed_bytes < LEAST ? LEAST : plan->packed_bytes;
    size = size > MOST ? MOST : size;
    size = size < bytes ? bytes : size;
    const struct mgx_shape shape = mgx_shape_vector(MGX_UINT8, (int64_t)size);
    struct mgx_tensor t;
    if (mgx_tensor_create(&t, &shape, diag) != MGX_OK)
        return false;
    if (!keep(plan, t.storage)) {
        mgx_tensor_release(&t);
        mgx_fail_memory(diag);
        return false;
    }
    mgx_page_large(t.data, size);
    plan->chunk = t.data;
    plan->chunk_left = size;
    return true;
}

// `bytes` of the current chunk, 64-byte aligned.
static void *take(struct cpu_plan *plan, size_t bytes, struct mgx_diag *diag)
{
    if ((!plan->chunk || bytes > plan->chunk_left) && !add_chunk(plan, bytes, diag))
        return NULL;
    unsigned char *data = plan->chunk;
    const size_t step = mgx_align64(bytes);
    plan->chunk_left -= step < plan->chunk_left ? step : plan->chunk_left;
    plan->chunk += step;
    return data;
}

enum { LATE_BYTES = 512 << 20 };

// What a kernel chosen at run time packs stays with the plan, so that other sizes find it, while
// there is room; else it goes with the choice.
static struct cpu_plan *owner_of(struct cpu_plan *plan, const void *key, size_t key_size,
                                 size_t bytes)
{
    struct cpu_plan *parent = plan->parent;
    if (!parent || !key)
        return plan;
    if (mgx_map_findn(&parent->packs, key, key_size))
        return parent;
    if (bytes > LATE_BYTES || parent->late_bytes > LATE_BYTES - bytes)
        return plan;
    parent->late_bytes += bytes;
    return parent;
}

void *cpu_pack(struct cpu_plan *plan, const void *key, size_t key_size, size_t bytes, bool *found,
               struct mgx_diag *diag)
{
    *found = false;
    plan = owner_of(plan, key, key_size, bytes);
    void *data = key ? mgx_map_findn(&plan->packs, key, key_size) : NULL;
    if (data) {
        *found = true;
        return data;
    }
    data = take(plan, bytes, diag);
    if (!data)
        return NULL;
    const void *kept_key = key ? mgx_arena_memdup(&plan->arena, key, key_size) : NULL;
    if (key && (!kept_key || !mgx_map_putn(&plan->packs, kept_key, key_size, data))) {
        mgx_fail_memory(diag);
        return NULL;
    }
    plan->packed_bytes += bytes;
    return data;
}

bool cpu_at_end(struct cpu_plan *plan, void (*fn)(void *user), void *user, struct mgx_diag *diag)
{
    struct cpu_end *end = MGX_NEW(&plan->arena, struct cpu_end);
    if (!end) {
        fn(user);
        mgx_fail_memory(diag);
        return false;
    }
    *end = (struct cpu_end){plan->ends, fn, user};
    plan->ends = end;
    return true;
}
