// SPDX-License-Identifier: MIT
// What a plan keeps to its end: packed constants, found again by a key of bytes, and clean-up for
// kernels. Packing is put off until all kernels are chosen; then it runs in parallel, and what it
// has read of a mapped model leaves memory behind it.
//
// Constants lie one behind the other in chunks that grow with what is there already, up to 32 MiB,
// so that even small ones share large pages; of a chunk's rest nothing is ever touched.
#include <string.h>

#include "base/cancel.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/size.h"
#include "targets/cpu/cpu.h"
#include "targets/cpu/kernel/split.h"

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
    plan->packed_bytes += bytes;
    return data;
}

// --- filling ---

struct wave {
    const struct cpu_fill *fill;
    int first, parts;
};

static void fill_part(void *user, int task, int thread)
{
    (void)thread;
    const struct wave *w = user;
    const struct cpu_fill *f = w->fill;
    const int part = w->first + task;
    const size_t begin = mgx_part_begin((int64_t)f->packed_bytes, part, w->parts),
                 end = mgx_part_begin((int64_t)f->packed_bytes, part + 1, w->parts);
    mgx_memory_begin((char *)f->packed + begin, end - begin);
    f->fill(f, part, w->parts);
}

// In waves of a few MiB. Packing reads its source from front to back, so behind each wave the pages
// of a mapped model may leave memory again, and a model takes hardly more than its packed form.
static void fill_now(struct cpu_plan *plan, const struct cpu_fill *f)
{
    enum { PART = 2 << 20, SMALL = 64 << 10, LAG = 16 << 20 };
    for (int i = 0; i < MGX_COUNT(f->source); i++)
        cpu_join_fill(plan, f->source[i], false);
    const int threads = f->source_bytes < SMALL ? 1 : plan->threads;
    const size_t pieces = f->source_bytes / PART / (size_t)threads + 1;
    const int parts = (int)pieces * threads;
    for (int first = 0; first < parts && !mgx_cancelled(); first += threads) {
        struct wave w = {f, first, parts};
        mgx_pool_run(plan->pool, threads, fill_part, &w);
        // What a part reads may begin some way before its share of the bytes.
        const size_t end = f->source_bytes / (size_t)parts * (size_t)(first + threads);
        const size_t begin = end > LAG ? end - LAG : 0;
        mgx_file_forget_at((const char *)f->source[0] + begin, end - begin);
    }
    mgx_file_forget_at(f->source[0], f->source_bytes);
    for (int i = 0; i < MGX_COUNT(f->source); i++)
        cpu_join_drop(plan, f->source[i]);
}

enum mgx_status cpu_fill_all(struct cpu_plan *plan, struct mgx_diag *diag)
{
    for (const struct cpu_fill *f = plan->first_fill; f && !mgx_cancelled(); f = f->next)
        fill_now(plan, f);
    plan->first_fill = plan->last_fill = NULL;
    return mgx_cancel_check(diag);
}

// --- packing ---

enum { LATE_BYTES = 512 << 20 };

// What a kernel chosen at run time packs stays with the plan, so that other sizes find it, while
// there is room; else it goes with the choice.
static struct cpu_plan *owner_of(struct cpu_plan *plan, const void *key, size_t key_size,
                                 size_t bytes)
{
    struct cpu_plan *parent = plan->parent;
    if (!parent)
        return plan;
    if (mgx_map_findn(&parent->packs, key, key_size))
        return parent;
    if (bytes > LATE_BYTES || parent->late_bytes > LATE_BYTES - bytes)
        return plan;
    parent->late_bytes += bytes;
    return parent;
}

void *cpu_pack(struct cpu_plan *plan, const void *key, size_t key_size, size_t bytes,
               const struct cpu_fill *how, struct mgx_diag *diag)
{
    plan = owner_of(plan, key, key_size, bytes);
    void *data = mgx_map_findn(&plan->packs, key, key_size);
    if (data)
        return data;
    const void *kept_key = mgx_arena_memdup(&plan->arena, key, key_size);
    struct cpu_fill *fill = mgx_arena_memdup(&plan->arena, how, sizeof *how);
    if (!kept_key || !fill) {
        mgx_fail_memory(diag);
        return NULL;
    }
    if (!(data = take(plan, bytes, diag)))
        return NULL;
    if (!mgx_map_putn(&plan->packs, kept_key, key_size, data)) {
        mgx_fail_memory(diag);
        return NULL;
    }
    fill->packed = data;
    fill->packed_bytes = bytes;
    if (!plan->fill_later) {
        fill_now(plan, fill);
        return data;
    }
    *(plan->last_fill ? &plan->last_fill->next : &plan->first_fill) = fill;
    plan->last_fill = fill;
    return data;
}

// --- constants that stay as they are ---

// The bytes of a root that a step reads, moved to an address that suits their type.
static enum mgx_status align_root(struct cpu_plan *plan, struct cpu_value *root,
                                  struct mgx_diag *diag)
{
    const struct mgx_tensor t = mgx_tensor_borrow(&root->shape, root->data);
    if (root->place == CPU_CONST)
        cpu_join_fill(plan, root->data, true);
    if (root->place != CPU_CONST || mgx_tensor_is_aligned(&t))
        return MGX_OK;
    const size_t bytes = (size_t)mgx_shape_space(&root->shape) * mgx_type_size(root->shape.type);
    void *data = take(plan, bytes, diag);
    if (!data)
        return diag->status;
    memcpy(data, root->data, bytes);
    mgx_file_forget_at(root->data, bytes);
    root->data = data;
    return MGX_OK;
}

// Its kernel is chosen at run time, and knows constants by their addresses (choice.h).
static bool is_dynamic(const struct cpu_step *step)
{
    bool dynamic = step->out_value->dynamic;
    for (int i = 0; i < step->in_count && !dynamic; i++)
        dynamic = step->in_value[i]->dynamic;
    return dynamic;
}

enum mgx_status cpu_align_constants(struct cpu_plan *plan, struct mgx_diag *diag)
{
    for (int s = 0; s < plan->step_count; s++) {
        const struct cpu_step *step = &plan->steps[s];
        for (int i = 0; i < step->in_count && !is_dynamic(step); i++) {
            const bool any_address = step->kernel == &cpu_kernel_gather && i == 0; // copies bytes
            if (!step->skip[i] && !any_address)
                TRY(align_root(plan, cpu_root(step->in_value[i], NULL), diag));
        }
    }
    return MGX_OK;
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
