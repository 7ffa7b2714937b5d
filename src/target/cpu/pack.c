// SPDX-License-Identifier: MIT
// What a plan keeps to its end: packed constants, found again by a key of bytes, and clean-up for
// kernels.
#include <string.h>

#include "target/cpu/cpu.h"

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
    const struct mgx_shape shape = mgx_shape_vector(MGX_UINT8, (int64_t)bytes);
    struct mgx_tensor t;
    if (mgx_tensor_create(&t, &shape, diag) != MGX_OK)
        return NULL;
    struct mgx_storage **list = plan->packed.v;
    if (plan->packed.count == plan->packed.capacity) {
        const size_t capacity = plan->packed.capacity ? 2 * plan->packed.capacity : 64;
        list = mgx_arena_array(&plan->arena, capacity, sizeof *list);
        if (list && plan->packed.count)
            memcpy(list, plan->packed.v, plan->packed.count * sizeof *list);
        if (list)
            plan->packed.capacity = capacity;
    }
    const void *kept_key = key ? mgx_arena_memdup(&plan->arena, key, key_size) : NULL;
    if (!list || (key && (!kept_key || !mgx_map_putn(&plan->packs, kept_key, key_size, t.data)))) {
        mgx_tensor_release(&t);
        mgx_fail_memory(diag);
        return NULL;
    }
    plan->packed.v = list;
    plan->packed.v[plan->packed.count++] = t.storage;
    plan->packed_bytes += bytes;
    return t.data;
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
