// SPDX-License-Identifier: MIT
// A tensor is a shape over bytes, with a share in whatever keeps the bytes alive.
//
// Holds: storage is reference-counted and read-only once a second owner exists. A borrowed tensor
// has no storage; who borrows sees to it that the bytes outlive the tensor. A tuple or sequence
// tensor has `sub` members and no data of its own; its storage owns the members. Shapes of tensors
// are static. Bytes may lie in another memory than the host's (memory.h); what reads or writes
// elements here asserts that they do not. Data lies where its type wants it, with one exception: a
// large literal of floats, halves or bfloat16 may be a view of a model file, at any address.
// mgx_load, mgx_tensor_copy and evaluation take it as it is; who reads through a typed pointer
// aligns it first.
#pragma once

#include <stdatomic.h>

#include "ir/memory.h"
#include "ir/shape.h"

struct mgx_storage {
    atomic_int refs;
    void *data;
    size_t bytes;
    void (*release)(
        struct mgx_storage *storage); // frees data and the storage itself; called at zero refs
    void *owner;                      // whatever release needs
    const struct mgx_memory *memory;  // that data lies in; NULL: the host's
    bool grows; // of a tensor with room behind each of its lines: who can leave it so may
};

struct mgx_tensor {
    struct mgx_shape shape;
    void *data; // first element; may point into the middle of the storage
    struct mgx_storage *storage;
    struct mgx_tensor *sub;
    int sub_count;
};

struct mgx_storage *mgx_storage_retain(struct mgx_storage *storage); // NULL is allowed in both
void mgx_storage_release(struct mgx_storage *storage);

// Uninitialised bytes of a memory, 64-byte aligned; NULL when there is no room.
struct mgx_storage *mgx_storage_create(const struct mgx_memory *memory, size_t bytes);
// Heap storage for a shape's bytes, 64-byte aligned, uninitialised; strings start out empty.
enum mgx_status mgx_tensor_create(struct mgx_tensor *out, const struct mgx_shape *shape,
                                  struct mgx_diag *diag) MGX_NODISCARD;
// The same in a memory, of a static shape of numbers; NULL: the host's.
enum mgx_status mgx_tensor_create_on(struct mgx_tensor *out, const struct mgx_shape *shape,
                                     const struct mgx_memory *memory,
                                     struct mgx_diag *diag) MGX_NODISCARD;
// The memory that the bytes lie in; NULL: the host's, as of everything borrowed.
static inline const struct mgx_memory *mgx_tensor_memory(const struct mgx_tensor *t)
{
    return t->storage ? t->storage->memory : NULL;
}
// Sharing: a second owner of the same bytes; a view with another shape, `byte_offset` further on.
struct mgx_tensor mgx_tensor_share(const struct mgx_tensor *t);
struct mgx_tensor mgx_tensor_view(const struct mgx_tensor *t, const struct mgx_shape *shape,
                                  int64_t byte_offset);
struct mgx_tensor mgx_tensor_borrow(const struct mgx_shape *shape, const void *data);
// Takes over the members (their shares pass to the result, also on failure). sequence: true for
// MGX_SEQUENCE.
enum mgx_status mgx_tensor_group(struct mgx_tensor *out, struct mgx_tensor *take_members, int count,
                                 bool sequence, struct mgx_diag *diag) MGX_NODISCARD;
// `sequence` with a share of `add` at its end. The sequence stays what it was; its result shares
// its block of members if nothing else was appended to it before, so n appends in a row cost O(n).
enum mgx_status mgx_tensor_append(struct mgx_tensor *out, const struct mgx_tensor *sequence,
                                  const struct mgx_tensor *add,
                                  struct mgx_diag *diag) MGX_NODISCARD;
void mgx_tensor_release(struct mgx_tensor *t); // drops the share and zeroes *t

// Element-wise copy between any strides; types and lengths must agree (asserted). Strings copy
// pointers.
void mgx_tensor_copy(const struct mgx_tensor *from, struct mgx_tensor *to);
// A packed row-major copy of its own, strings and members included.
enum mgx_status mgx_tensor_clone(struct mgx_tensor *out, const struct mgx_tensor *t,
                                 struct mgx_diag *diag) MGX_NODISCARD;
// Shares when the tensor is standard already, else clones.
enum mgx_status mgx_tensor_pack(struct mgx_tensor *out, const struct mgx_tensor *t,
                                struct mgx_diag *diag) MGX_NODISCARD;
bool mgx_tensor_is_aligned(const struct mgx_tensor *t);
// The same shape, strides included, over bytes that lie where their type wants them: a share when
// they do, else a copy of all that the shape spans.
enum mgx_status mgx_tensor_align(struct mgx_tensor *out, const struct mgx_tensor *t,
                                 struct mgx_diag *diag) MGX_NODISCARD;
// Same lengths and same values; floats within a few ULP when `exact` is false (MIGraphX's
// float_equal).
bool mgx_tensor_equal(const struct mgx_tensor *a, const struct mgx_tensor *b, bool exact);
// "1, 2, 3": all elements in row-major order, numbers with 6 significant digits.
void mgx_tensor_print(struct mgx_str *out, const struct mgx_tensor *t);

// All values as doubles / integers into a caller's array of mgx_shape_elements() entries,
// row-major.
void mgx_tensor_to_doubles(const struct mgx_tensor *t, double *out);
void mgx_tensor_to_ints(const struct mgx_tensor *t, int64_t *out);
// MIGraphX's reproducible pseudo-random filling (xorshf96, see the C API's argument_generate).
void mgx_tensor_generate(struct mgx_tensor *t, uint64_t seed);
