// SPDX-License-Identifier: MIT
// A shape is a type, lengths and strides (in elements), or ranges of lengths where it is dynamic.
//
// A plain value: copy it freely. Views (transpose, slice, broadcast) are shapes over someone else's
// bytes, and layout is nothing but strides: NHWC is a stride order. What a shape points to (dims,
// sub) is immutable and belongs to an arena that outlives it.
//
// Holds: rank <= MGX_MAX_RANK. Rank 0 is a scalar; MIGraphX shows it as lengths {1}, strides {0},
// and so do printing and the C API, while inside it stays rank 0. A dynamic shape has `dims`, one
// range per axis, lens[i] is dims[i].max and strides mean nothing. `unranked` (only the ONNX
// importer makes such) says that nothing but the type is known before the run. A tuple has one
// `sub` per member, a sequence one for all its members.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"
#include "ir/type.h"

enum { MGX_MAX_RANK = 16 };

// A range of lengths. Two axes of the same non-NULL name always have the same length at run time.
struct mgx_dim {
    int64_t min, max;
    const char *name;
    const int64_t *optimals; // sorted; sizes worth compiling for
    int optimal_count;
};

// "Any length": the max of a dimension of which nothing is known.
#define MGX_DIM_ANY ((int64_t)1 << 40)

struct mgx_shape {
    enum mgx_type type;
    int rank;
    int64_t lens[MGX_MAX_RANK];
    int64_t strides[MGX_MAX_RANK];
    const struct mgx_dim *dims;
    const struct mgx_shape *sub;
    int sub_count;
    bool unranked;
};

// --- making (none of these can fail; products are checked by mgx_shape_check) ---
struct mgx_shape mgx_shape_make(enum mgx_type type, int rank,
                                const int64_t *lens); // row-major, packed
struct mgx_shape mgx_shape_strided(enum mgx_type type, int rank, const int64_t *lens,
                                   const int64_t *strides);
struct mgx_shape mgx_shape_scalar(enum mgx_type type);
struct mgx_shape mgx_shape_vector(enum mgx_type type, int64_t length);
struct mgx_shape mgx_shape_unranked(enum mgx_type type);
// Dynamic unless every range is fixed; `dims` is kept and must outlive the shape.
struct mgx_shape mgx_shape_dynamic(enum mgx_type type, int rank, const struct mgx_dim *keep_dims);
struct mgx_shape mgx_shape_tuple(const struct mgx_shape *keep_sub, int count);
struct mgx_shape mgx_shape_sequence(const struct mgx_shape *keep_element);
// The same lengths (or ranges) with another type, packed row-major.
struct mgx_shape mgx_shape_retype(const struct mgx_shape *s, enum mgx_type type);
// Lengths of `s`, packed in the order of strides of `like` (same rank).
struct mgx_shape mgx_shape_like_order(const struct mgx_shape *s, const struct mgx_shape *like);
// The axis order of memory, slowest first: NHWC over NCHW lengths gives {0, 2, 3, 1}.
void mgx_shape_permutation(const struct mgx_shape *s, int *permutation);
// Deep copy of dims/sub into an arena. False when out of memory.
// Whoever keeps a shape beyond the call that it came with keeps such a copy (docs/memory.md).
bool mgx_shape_copy(struct mgx_arena *arena, const struct mgx_shape *s, struct mgx_shape *out);
// Is all that the shape points to the arena's? For assertions where shapes are kept.
bool mgx_shape_lies_in(const struct mgx_shape *s, const struct mgx_arena *arena);

// --- asking ---
bool mgx_shape_is_static(
    const struct mgx_shape *s); // no ranges anywhere, tuples included; never unranked
static inline bool mgx_shape_is_number(const struct mgx_shape *s) // of a known rank
{
    return mgx_type_is_number(s->type) && !s->unranked;
}
bool mgx_shape_is_standard(const struct mgx_shape *s);    // packed, row-major
bool mgx_shape_is_packed(const struct mgx_shape *s);      // elements fill their space, in any order
bool mgx_shape_is_transposed(const struct mgx_shape *s);  // strides not in descending order
bool mgx_shape_is_broadcasted(const struct mgx_shape *s); // some stride is 0 over a length above 1
bool mgx_shape_is_scalar(const struct mgx_shape *s);      // one value: rank 0, or all strides 0
bool mgx_shape_equal(const struct mgx_shape *a,
                     const struct mgx_shape *b); // type, lens/ranges, strides
// Equal lengths or equal ranges; rank 0 counts as {1}. Ignores type and strides.
bool mgx_shape_same_lens(const struct mgx_shape *a, const struct mgx_shape *b);
// Could the two be the same at run time? Equal where static, ranges overlapping where not.
bool mgx_shape_may_match(const struct mgx_shape *a, const struct mgx_shape *b);
// Could a value of one be handed on as the other? Of the same type, in members too, and may match;
// a tuple without members is an absent optional of any.
bool mgx_shape_may_be(const struct mgx_shape *a, const struct mgx_shape *b);

// Number of elements (0 if any length is 0); of a static shape that passed mgx_shape_check.
int64_t mgx_shape_elements(const struct mgx_shape *s);
// Elements spanned in memory: 1 + sum((len-1)*stride), 0 if empty.
int64_t mgx_shape_space(const struct mgx_shape *s);
size_t mgx_shape_bytes(const struct mgx_shape *s); // space * type size (fp4x2: bytes as they are)
// Bytes of one row of a packed shape: all that lies under one index of the axis and those before.
size_t mgx_shape_row_bytes(const struct mgx_shape *s, int axis);
// Rank, lengths >= 0, and elements, space and bytes representable (below 2^62). Every shape from
// outside is checked once; results of shape rules are checked by mgx_op_shape.
enum mgx_status mgx_shape_check(const struct mgx_shape *s, struct mgx_diag *diag) MGX_NODISCARD;

// Element number (row-major over lens) to element offset in memory.
int64_t mgx_shape_index(const struct mgx_shape *s, int64_t element);
int64_t mgx_shape_offset(const struct mgx_shape *s, const int64_t *at);
void mgx_shape_multi(const struct mgx_shape *s, int64_t element, int64_t *at);
// Odometer: steps `at` to the next position in row-major order; false after the last.
bool mgx_shape_next(const struct mgx_shape *s, int64_t *at);

// Range of one axis, whether static or not.
struct mgx_dim mgx_shape_dim(const struct mgx_shape *s, int axis);
// An axis that may count from the end, known to be in range.
static inline int mgx_wrap_axis(int64_t axis, int rank)
{
    return (int)(axis < 0 ? axis + rank : axis);
}
static inline bool mgx_dim_is_fixed(const struct mgx_dim *d)
{
    return d->min == d->max;
}
bool mgx_dim_equal(const struct mgx_dim *a, const struct mgx_dim *b); // min, max and optimals
// Are they one length in every run? They are fixed and equal, or have one name.
bool mgx_dim_same(const struct mgx_dim *a, const struct mgx_dim *b);

// "float_type, {1, 3}, {3, 1}", "dynamic, float_type, {[1..4], 3}", "[<shape>, <shape>]", rank 0 as
// {1}, {0}.
void mgx_shape_print(struct mgx_str *out, const struct mgx_shape *s);
