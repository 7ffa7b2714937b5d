// SPDX-License-Identifier: MIT
// Tensors; see tensor.h.
//
// Storage made here is one block, its `owner`: the header, then the bytes on the next 64-byte line.
// String bytes of a clone follow their elements in the same block; members of a tuple are an array
// in the block, released with it. A sequence that grows keeps room behind its members, so that all
// its versions share one block. Copies walk memory in the order of the destination with axes merged
// where both sides allow it, so equal layouts are one memcpy. Cost: O(elements).
#include "ir/tensor.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/memory.h"
#include "base/size.h"
#include "ir/inside.h"

enum { LINE = 64 };
static_assert(sizeof(struct mgx_storage) <= LINE, "the header must fit before the first line");

// --- storage ---

struct mgx_storage *mgx_storage_retain(struct mgx_storage *storage)
{
    if (storage) {
        const int owners = atomic_fetch_add_explicit(&storage->refs, 1, memory_order_relaxed);
        assert(owners > 0 && owners < INT_MAX);
        (void)owners;
    }
    return storage;
}

void mgx_storage_release(struct mgx_storage *storage)
{
    if (!storage)
        return;
    assert(storage->release); // asked before: after its last owner but one it may be gone
    const int owners = atomic_fetch_sub_explicit(&storage->refs, 1, memory_order_acq_rel);
    assert(owners > 0);
    if (owners == 1)
        storage->release(storage);
}

static void free_storage(struct mgx_storage *storage)
{
    mgx_budget_give(storage->bytes);
    free(storage->owner);
}

// A block for a header and `total` bytes behind it, on a line; *block is what is to be freed. Small
// ones are aligned by hand: the allocator has them at hand by size, and those that it aligns not.
static struct mgx_storage *allocate(size_t total, void **block)
{
    enum { SMALL = 1 << 14 };
    if (total > SMALL - LINE)
        return *block = mgx_memory_aligned(LINE, total);
    *block = malloc(total + LINE);
    return (struct mgx_storage *)(((uintptr_t)*block + LINE - 1) & ~(uintptr_t)(LINE - 1));
}

// NULL when out of memory.
static struct mgx_storage *storage_create(size_t bytes)
{
    size_t total;
    if (!mgx_add_size(bytes, 2 * LINE - 1, &total) || !mgx_budget_take(bytes))
        return NULL;
    void *block;
    struct mgx_storage *storage = allocate(total & ~(size_t)(LINE - 1), &block);
    if (!block) {
        mgx_budget_give(bytes);
        return NULL;
    }
    *storage = (struct mgx_storage){
        .data = (char *)storage + LINE, .bytes = bytes, .release = free_storage, .owner = block};
    assert((uintptr_t)storage->data % LINE == 0);
    assert((char *)storage->data - (char *)block <= 2 * LINE); // room for it was asked for
    atomic_init(&storage->refs, 1);
    return storage;
}

static void free_elsewhere(struct mgx_storage *storage)
{
    storage->memory->free(storage->memory, storage->data);
    free(storage);
}

struct mgx_storage *mgx_storage_create(const struct mgx_memory *memory, size_t bytes)
{
    if (!memory)
        return storage_create(bytes);
    struct mgx_storage *storage = calloc(1, sizeof *storage);
    void *data = storage ? memory->allocate(memory, bytes ? bytes : 1) : NULL;
    if (!data) {
        free(storage);
        return NULL;
    }
    assert((uintptr_t)data % LINE == 0); // what memory.h asks of every memory
    *storage = (struct mgx_storage){
        .data = data, .bytes = bytes, .release = free_elsewhere, .memory = memory};
    atomic_init(&storage->refs, 1);
    return storage;
}

// --- groups ---

// The block of a tuple or sequence: its member tensors, then their shapes.
struct members {
    struct mgx_tensor *tensors;
    struct mgx_shape *shapes;
};

static struct members members_of(const struct mgx_storage *storage, int count)
{
    assert(storage->bytes >= (size_t)count * sizeof(struct mgx_tensor));
    struct mgx_tensor *tensors = storage->data;
    return (struct members){tensors, (struct mgx_shape *)(tensors + count)};
}

static void free_members(struct mgx_storage *storage)
{
    struct mgx_tensor *tensors = storage->data;
    const size_t count = storage->bytes / (sizeof *tensors + sizeof(struct mgx_shape));
    assert(storage->bytes == count * (sizeof *tensors + sizeof(struct mgx_shape)));
    for (size_t i = 0; i < count; i++)
        mgx_tensor_release(&tensors[i]);
    free_storage(storage);
}

// A sequence has one shape for all members: theirs if they agree, else only the type is said.
static int element_shape(const struct mgx_tensor *members, int count, struct mgx_shape *shapes)
{
    if (count == 0)
        return 0;
    shapes[0] = members[0].shape;
    for (int i = 1; i < count; i++)
        if (!mgx_shape_equal(&members[i].shape, &shapes[0])) {
            shapes[0] = mgx_shape_unranked(members[0].shape.type);
            break;
        }
    return 1;
}

static void release_all(struct mgx_tensor *members, int count)
{
    assert(count >= 0 && (members || !count));
    for (int i = 0; i < count; i++)
        mgx_tensor_release(&members[i]);
}

enum mgx_status mgx_tensor_group(struct mgx_tensor *out, struct mgx_tensor *take_members, int count,
                                 bool sequence, struct mgx_diag *diag)
{
    *out = (struct mgx_tensor){0};
    assert(count >= 0);
    const size_t bytes = (size_t)count * (sizeof(struct mgx_tensor) + sizeof(struct mgx_shape));
    struct mgx_storage *storage = storage_create(bytes);
    if (!storage) {
        release_all(take_members, count);
        return mgx_fail_memory(diag);
    }
    storage->release = free_members;
    const struct members m = members_of(storage, count);
    int shape_count = count;
    if (sequence)
        shape_count = element_shape(take_members, count, m.shapes);
    for (int i = 0; i < count; i++) {
        m.tensors[i] = take_members[i];
        if (!sequence)
            m.shapes[i] = take_members[i].shape;
        take_members[i] = (struct mgx_tensor){0};
    }
    assert(shape_count == (sequence ? count > 0 : count)); // one for all members, or one for each
    out->shape = mgx_shape_tuple(shape_count ? m.shapes : NULL, shape_count);
    if (sequence)
        out->shape.type = MGX_SEQUENCE;
    out->storage = storage;
    out->sub = m.tensors;
    out->sub_count = count;
    return MGX_OK;
}

// --- sequences that grow ---

// Every version of a sequence is the first members of one block. What is appended to the longest
// goes into the room behind it, where no other version looks; who claims a place first has it, and
// who comes second copies.
//
//     version 2:  [ 0 1 ]
//     version 3:  [ 0 1 2 ]
//     block:      [ 0 1 2 | room ]    used = 3
struct growing {
    atomic_int used;
    int capacity;
    struct mgx_shape same, any; // what a version says of its members: they agree, or only the type
    struct mgx_tensor members[];
};

static void free_growing(struct mgx_storage *storage)
{
    struct growing *g = storage->data;
    release_all(g->members, atomic_load(&g->used));
    free_storage(storage);
}

static bool claim(struct mgx_storage *storage, int place)
{
    if (!storage || storage->release != free_growing)
        return false;
    struct growing *g = storage->data;
    return place < g->capacity && atomic_compare_exchange_strong(&g->used, &place, place + 1);
}

// A block of its own for the members of `from`, the next place claimed; NULL when out of memory.
static struct mgx_storage *regrow(const struct mgx_tensor *from, const struct mgx_shape *member)
{
    const size_t capacity = (size_t)from->sub_count + (size_t)from->sub_count / 2 + 4;
    size_t bytes;
    if (capacity > INT_MAX || !mgx_mul_size(capacity, sizeof *from, &bytes) ||
        !mgx_add_size(bytes, sizeof(struct growing), &bytes))
        return NULL;
    struct mgx_storage *storage = storage_create(bytes);
    if (!storage)
        return NULL;
    storage->release = free_growing;
    struct growing *g = storage->data;
    atomic_init(&g->used, from->sub_count + 1);
    g->capacity = (int)capacity;
    g->same = from->sub_count ? from->sub[0].shape : *member;
    g->any = mgx_shape_unranked(member->type);
    for (int i = 0; i < from->sub_count; i++)
        g->members[i] = mgx_tensor_share(&from->sub[i]);
    return storage;
}

enum mgx_status mgx_tensor_append(struct mgx_tensor *out, const struct mgx_tensor *sequence,
                                  const struct mgx_tensor *add, struct mgx_diag *diag)
{
    assert(sequence->shape.type == MGX_SEQUENCE);
    const int count = sequence->sub_count;
    *out = (struct mgx_tensor){0};
    struct mgx_storage *storage = claim(sequence->storage, count)
                                      ? mgx_storage_retain(sequence->storage)
                                      : regrow(sequence, &add->shape);
    if (!storage)
        return mgx_fail_memory(diag);
    struct growing *g = storage->data;
    assert(count < g->capacity && count < atomic_load(&g->used));
    g->members[count] = mgx_tensor_share(add);
    const bool agreed =
        !count || (sequence->shape.sub_count && mgx_shape_equal(&sequence->shape.sub[0], &g->same));
    const bool agree = agreed && mgx_shape_equal(&add->shape, &g->same);
    out->shape = mgx_shape_sequence(agree ? &g->same : &g->any);
    out->storage = storage;
    out->sub = g->members;
    out->sub_count = count + 1;
    return MGX_OK;
}

// --- making ---

static enum mgx_status create_tuple(struct mgx_tensor *out, const struct mgx_shape *shape,
                                    struct mgx_diag *diag)
{
    const int count = shape->type == MGX_TUPLE ? shape->sub_count : 0;
    struct mgx_tensor *members = calloc((size_t)count + 1, sizeof *members);
    if (!members)
        return mgx_fail_memory(diag);
    enum mgx_status status = MGX_OK;
    for (int i = 0; i < count && status == MGX_OK; i++)
        status = mgx_tensor_create(&members[i], &shape->sub[i], diag);
    if (status == MGX_OK)
        status = mgx_tensor_group(out, members, count, shape->type == MGX_SEQUENCE, diag);
    else
        release_all(members, count);
    free(members);
    return status;
}

enum mgx_status mgx_tensor_create(struct mgx_tensor *out, const struct mgx_shape *shape,
                                  struct mgx_diag *diag)
{
    *out = (struct mgx_tensor){0};
    TRY(mgx_shape_check(shape, diag));
    if (shape->type == MGX_TUPLE || shape->type == MGX_SEQUENCE)
        return create_tuple(out, shape, diag);
    if (!mgx_shape_is_static(shape))
        return mgx_fail(diag, MGX_INVALID, "a tensor cannot be created of a dynamic shape");
    const size_t bytes = mgx_shape_bytes(shape);
    struct mgx_storage *storage = storage_create(bytes);
    if (!storage)
        return mgx_fail(diag, MGX_NO_MEMORY, "out of memory: a tensor of %zu bytes", bytes);
    if (shape->type == MGX_STRING)
        memset(storage->data, 0, bytes);
    *out = (struct mgx_tensor){.shape = *shape, .data = storage->data, .storage = storage};
    return MGX_OK;
}

enum mgx_status mgx_tensor_create_on(struct mgx_tensor *out, const struct mgx_shape *shape,
                                     const struct mgx_memory *memory, struct mgx_diag *diag)
{
    if (!memory)
        return mgx_tensor_create(out, shape, diag);
    *out = (struct mgx_tensor){0};
    TRY(mgx_shape_check(shape, diag));
    assert(mgx_shape_is_static(shape) && shape->type != MGX_STRING && shape->type != MGX_TUPLE &&
           shape->type != MGX_SEQUENCE);
    const size_t bytes = mgx_shape_bytes(shape);
    struct mgx_storage *storage = mgx_storage_create(memory, bytes);
    if (!storage)
        return mgx_fail(diag, MGX_NO_MEMORY, "out of memory: a tensor of %zu bytes on %s", bytes,
                        memory->name);
    *out = (struct mgx_tensor){.shape = *shape, .data = storage->data, .storage = storage};
    return MGX_OK;
}

bool mgx_tensor_lies_inside(const struct mgx_tensor *t)
{
    const struct mgx_storage *storage = t->storage;
    const size_t bytes = t->sub || !storage || !t->data ? 0 : mgx_shape_bytes(&t->shape);
    const uintptr_t at = (uintptr_t)t->data, begin = bytes ? (uintptr_t)storage->data : 0;
    return !bytes ||
           (at >= begin && at - begin <= storage->bytes && bytes <= storage->bytes - (at - begin));
}

struct mgx_tensor mgx_tensor_share(const struct mgx_tensor *t)
{
    assert(mgx_tensor_lies_inside(t));
    mgx_storage_retain(t->storage);
    assert(!t->storage || atomic_load(&t->storage->refs) > 1); // the giver's share and the new one
    return *t;
}

// A view has a share in the bytes and may outlive whoever says its shape, so it must not need that
// shape's memory. Shapes of groups point into their own storage.
__attribute__((unused)) static bool points_nowhere(const struct mgx_shape *s)
{
    return !s->dims && !s->sub_count;
}

struct mgx_tensor mgx_tensor_view(const struct mgx_tensor *t, const struct mgx_shape *shape,
                                  int64_t byte_offset)
{
    assert(!t->sub && byte_offset >= 0 && points_nowhere(shape));
    struct mgx_tensor view = mgx_tensor_share(t);
    view.shape = *shape;
    if (byte_offset)
        view.data = (char *)t->data + byte_offset;
    assert(mgx_tensor_lies_inside(&view));
    return view;
}

struct mgx_tensor mgx_tensor_borrow(const struct mgx_shape *shape, const void *data)
{
    return (struct mgx_tensor){.shape = *shape, .data = (void *)(uintptr_t)data};
}

void mgx_tensor_release(struct mgx_tensor *t)
{
    mgx_storage_release(t->storage);
    *t = (struct mgx_tensor){0};
}

// --- copying ---

// Two tensors walked together: axes outermost first in the destination's memory order, axes of
// length 1 dropped, neighbours merged where they are one run on both sides.
struct copy {
    int rank;
    int64_t lens[MGX_MAX_RANK + 1];
    int64_t from[MGX_MAX_RANK + 1], to[MGX_MAX_RANK + 1]; // strides in elements
};

// Do the merged axes reach as far as those of the shape did?
__attribute__((unused)) static bool spans(const struct copy *c, const int64_t *strides,
                                          const struct mgx_shape *s)
{
    int64_t reach = 1, count = 1;
    for (int i = 0; i < c->rank; i++) {
        reach += (c->lens[i] - 1) * strides[i];
        count *= c->lens[i];
    }
    return count == mgx_shape_elements(s) && reach == mgx_shape_space(s);
}

static void plan_copy(struct copy *c, const struct mgx_shape *from, const struct mgx_shape *to)
{
    int permutation[MGX_MAX_RANK];
    mgx_shape_permutation(to, permutation);
    c->rank = 0;
    for (int i = 0; i < to->rank; i++) {
        const int axis = permutation[i];
        const int64_t length = to->lens[axis];
        const int64_t a = axis < from->rank ? from->strides[axis] : 0, b = to->strides[axis];
        if (length == 1)
            continue;
        const int last = c->rank - 1;
        if (last >= 0 && c->from[last] == a * length && c->to[last] == b * length) {
            c->lens[last] *= length;
            c->from[last] = a;
            c->to[last] = b;
            continue;
        }
        c->lens[c->rank] = length;
        c->from[c->rank] = a;
        c->to[c->rank++] = b;
    }
    if (c->rank == 0) {
        c->lens[0] = c->from[0] = c->to[0] = 1;
        c->rank = 1;
    }
    assert(spans(c, c->from, from) && spans(c, c->to, to));
}

// `count` elements of `size` bytes; steps are in bytes.
static void copy_run(const char *from, int64_t from_step, char *to, int64_t to_step, int64_t count,
                     size_t size)
{
    assert(count > 0 && size);
    if (from_step == (int64_t)size && to_step == (int64_t)size) {
        memcpy(to, from, (size_t)count * size);
        return;
    }
#define RUN(bytes)                                                                                 \
    case bytes:                                                                                    \
        for (int64_t i = 0; i < count; i++)                                                        \
            memcpy(to + i * to_step, from + i * from_step, bytes);                                 \
        break
    switch (size) {
        RUN(1);
        RUN(2);
        RUN(4);
        RUN(8);
        RUN(16);
    default:
        assert(!"an element has 1, 2, 4, 8 or 16 bytes");
    }
#undef RUN
}

static void copy_dense(const struct mgx_tensor *from, struct mgx_tensor *to)
{
    const size_t size = mgx_type_size(to->shape.type);
    struct copy c;
    plan_copy(&c, &from->shape, &to->shape);
    const int inner = c.rank - 1;
    const char *source = from->data;
    char *target = to->data;
    int64_t at[MGX_MAX_RANK + 1] = {0};
    for (int axis = inner; axis >= 0;) {
        copy_run(source, c.from[inner] * (int64_t)size, target, c.to[inner] * (int64_t)size,
                 c.lens[inner], size);
        for (axis = inner - 1; axis >= 0; axis--) { // odometer over the outer axes
            source += c.from[axis] * (int64_t)size;
            target += c.to[axis] * (int64_t)size;
            if (++at[axis] < c.lens[axis])
                break;
            source -= c.from[axis] * (int64_t)size * c.lens[axis];
            target -= c.to[axis] * (int64_t)size * c.lens[axis];
            at[axis] = 0;
        }
    }
}

// Do the two have the same bytes at the ends and at some places between, found not by steps but by
// number? Not asked of bytes that stand for several elements or are read and written at once.
__attribute__((unused)) static bool samples_agree(const struct mgx_tensor *from,
                                                  const struct mgx_tensor *to)
{
    const int64_t count = mgx_shape_elements(&to->shape), size = mgx_type_size(to->shape.type);
    const char *a = from->data, *b = to->data;
    const bool apart =
        a + mgx_shape_bytes(&from->shape) <= b || b + mgx_shape_bytes(&to->shape) <= a;
    enum { SAMPLES = 13 };
    for (int64_t k = 0; k < SAMPLES && count && apart && !mgx_shape_is_broadcasted(&to->shape);
         k++) {
        const int64_t i = (int64_t)((double)(count - 1) * (double)k / (SAMPLES - 1));
        if (memcmp(a + mgx_shape_index(&from->shape, i) * size,
                   b + mgx_shape_index(&to->shape, i) * size, (size_t)size) != 0)
            return false;
    }
    return true;
}

void mgx_tensor_copy(const struct mgx_tensor *from, struct mgx_tensor *to)
{
    assert(!mgx_tensor_memory(from) && !mgx_tensor_memory(to));
    assert(from->shape.type == to->shape.type && from->sub_count == to->sub_count);
    for (int i = 0; i < from->sub_count; i++)
        mgx_tensor_copy(&from->sub[i], &to->sub[i]);
    assert(from->sub || mgx_shape_same_lens(&from->shape, &to->shape));
    if (mgx_shape_elements(&to->shape) > 0)
        copy_dense(from, to);
    assert(from->sub || samples_agree(from, to));
}

// Room for the string bytes follows the elements in the block of *out.
static enum mgx_status clone_strings(struct mgx_tensor *out, const struct mgx_tensor *t,
                                     const struct mgx_shape *shape, struct mgx_diag *diag)
{
    assert(t->shape.type == MGX_STRING && !mgx_tensor_memory(t));
    const int64_t count = mgx_shape_elements(shape);
    const struct mgx_string *source = t->data;
    size_t bytes = (size_t)count * sizeof *source;
    for (int64_t i = 0; i < count; i++)
        if (!mgx_add_size(bytes, source[mgx_shape_index(&t->shape, i)].size, &bytes))
            return mgx_fail_memory(diag);
    struct mgx_storage *storage = storage_create(bytes);
    if (!storage)
        return mgx_fail_memory(diag);
    struct mgx_string *target = storage->data;
    char *text = (char *)(target + count);
    for (int64_t i = 0; i < count; i++) {
        const struct mgx_string from = source[mgx_shape_index(&t->shape, i)];
        if (from.size)
            memcpy(text, from.text, from.size);
        target[i] = (struct mgx_string){text, from.size};
        text += from.size;
    }
    assert((size_t)(text - (char *)target) == bytes); // the room was counted right
    *out = (struct mgx_tensor){.shape = *shape, .data = target, .storage = storage};
    return MGX_OK;
}

static enum mgx_status each_member(struct mgx_tensor *out, const struct mgx_tensor *t,
                                   struct mgx_diag *diag)
{
    assert(t->sub || !t->sub_count);
    struct mgx_tensor *members = calloc((size_t)t->sub_count + 1, sizeof *members);
    if (!members)
        return mgx_fail_memory(diag);
    enum mgx_status status = MGX_OK;
    for (int i = 0; i < t->sub_count && status == MGX_OK; i++)
        status = mgx_tensor_clone(&members[i], &t->sub[i], diag);
    if (status == MGX_OK)
        status = mgx_tensor_group(out, members, t->sub_count, t->shape.type == MGX_SEQUENCE, diag);
    else
        release_all(members, t->sub_count);
    free(members);
    return status;
}

enum mgx_status mgx_tensor_clone(struct mgx_tensor *out, const struct mgx_tensor *t,
                                 struct mgx_diag *diag)
{
    *out = (struct mgx_tensor){0};
    if (t->shape.type == MGX_TUPLE || t->shape.type == MGX_SEQUENCE)
        return each_member(out, t, diag);
    const struct mgx_shape shape = mgx_shape_retype(&t->shape, t->shape.type);
    if (shape.type == MGX_STRING)
        return clone_strings(out, t, &shape, diag);
    TRY(mgx_tensor_create(out, &shape, diag));
    mgx_tensor_copy(t, out);
    return MGX_OK;
}

enum mgx_status mgx_tensor_pack(struct mgx_tensor *out, const struct mgx_tensor *t,
                                struct mgx_diag *diag)
{
    if (!t->sub && !mgx_shape_is_standard(&t->shape))
        return mgx_tensor_clone(out, t, diag);
    *out = mgx_tensor_share(t);
    return MGX_OK;
}

// --- alignment ---

bool mgx_tensor_is_aligned(const struct mgx_tensor *t)
{
    enum { WIDEST = 8 }; // of a scalar: complex and string elements are pairs
    if (t->sub || !t->data || t->shape.type == MGX_TUPLE || t->shape.type == MGX_SEQUENCE)
        return true;
    const size_t size = mgx_type_size(t->shape.type);
    return (uintptr_t)t->data % (size < WIDEST ? size : WIDEST) == 0;
}

enum mgx_status mgx_tensor_align(struct mgx_tensor *out, const struct mgx_tensor *t,
                                 struct mgx_diag *diag)
{
    assert(!mgx_tensor_memory(t));
    *out = (struct mgx_tensor){0};
    if (mgx_tensor_is_aligned(t)) {
        *out = mgx_tensor_share(t);
        return MGX_OK;
    }
    const size_t bytes = (size_t)mgx_shape_space(&t->shape) * mgx_type_size(t->shape.type);
    struct mgx_storage *storage = storage_create(bytes);
    if (!storage)
        return mgx_fail_memory(diag);
    memcpy(storage->data, t->data, bytes);
    *out = (struct mgx_tensor){.shape = t->shape, .data = storage->data, .storage = storage};
    return MGX_OK;
}
