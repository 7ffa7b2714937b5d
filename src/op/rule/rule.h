// SPDX-License-Identifier: MIT
// What shape rules and computes share: checks with MIGraphX's wording, axis handling, walking,
// converting.
#pragma once

#include "op/eval/eval.h"

// --- which inputs are sizes (sized_by) ---
uint32_t mgx_sized_by_first(const struct mgx_ins *ins);
uint32_t mgx_sized_by_all(const struct mgx_ins *ins);
uint32_t mgx_sized_by_rest(const struct mgx_ins *ins); // all but the first

// --- checks for shape rules; each names the operator in its message ---
// "<op>: Dimensions do not match", "<op>: Types do not match", "<op>: Wrong number of arguments:
// expected ..."
enum mgx_status mgx_require_same_type(struct mgx_shape_call *c) MGX_NODISCARD;
// Static lengths are equal, ranges may match.
enum mgx_status mgx_require_same_lens(struct mgx_shape_call *c) MGX_NODISCARD;
// The failure itself: "<op>: Dimensions do not match: input 0 is {2, 3}, input 1 is {2, 4}".
enum mgx_status mgx_fail_lens(struct mgx_shape_call *c, int a, int b);
enum mgx_status mgx_require_rank(struct mgx_shape_call *c, int input, int min_rank,
                                 int max_rank) MGX_NODISCARD;
enum mgx_status mgx_require_integral(struct mgx_shape_call *c, int input) MGX_NODISCARD;
// bool, integer or float: what can be loaded as a double or an integer.
enum mgx_status mgx_require_number(struct mgx_shape_call *c, int input) MGX_NODISCARD;
enum mgx_status mgx_require_float(struct mgx_shape_call *c, int input) MGX_NODISCARD;
// The length of an axis agrees with *want, which is narrowed by it; or is `length`.
enum mgx_status mgx_require_length(struct mgx_shape_call *c, int input, int axis,
                                   struct mgx_dim *want) MGX_NODISCARD;
enum mgx_status mgx_require_fixed(struct mgx_shape_call *c, int input, int axis,
                                  int64_t length) MGX_NODISCARD;
// Is this the result of `undefined`, standing for an optional input that is not there? Converting
// it to another float type makes no value of it.
bool mgx_shape_is_absent(const struct mgx_shape *s);
// A negative axis counts from the end; out of range fails: "<op>: axis 5 is out of range for rank
// 4".
enum mgx_status mgx_normalize_axis(struct mgx_shape_call *c, int64_t axis, int rank,
                                   int *out) MGX_NODISCARD;
// Axes into a set of flags; duplicates fail. An empty list leaves all flags false.
enum mgx_status mgx_normalize_axes(struct mgx_shape_call *c, struct mgx_ints axes, int rank,
                                   bool *flags) MGX_NODISCARD;
enum mgx_status mgx_require_permutation(struct mgx_shape_call *c, struct mgx_ints permutation,
                                        int rank) MGX_NODISCARD;
// The known value of an input as integers (of any integral type) into the call's arena; false in
// *known if unknown.
enum mgx_status mgx_known_ints(struct mgx_shape_call *c, int input, bool *known,
                               struct mgx_ints *out) MGX_NODISCARD;
// A dims array of the shape's ranges in the call's arena, for a rule to edit (NULL when out of
// memory).
struct mgx_dim *mgx_edit_dims(struct mgx_shape_call *c, const struct mgx_shape *s, int rank);
// Lengths from integers, as MGX_MAX_RANK editable ranges; negative lengths and too many fail.
enum mgx_status mgx_dims_of_ints(struct mgx_shape_call *c, struct mgx_ints lens,
                                 struct mgx_dim **out, int *rank) MGX_NODISCARD;
// The same from what a broadcast is told: lens, else ranges, else the shape of input 1.
enum mgx_status mgx_target_dims(struct mgx_shape_call *c, struct mgx_ints lens,
                                struct mgx_dims ranges, struct mgx_dim **out,
                                int *rank) MGX_NODISCARD;
// Narrows a range to what another one allows too; keeps the name and optimals of the tighter one.
void mgx_dim_meet(struct mgx_dim *d, struct mgx_dim by);
// Result of ranges: static if all are fixed.
struct mgx_shape mgx_shape_from_dims(enum mgx_type type, int rank, const struct mgx_dim *dims);
// Result of an element-wise operator: lengths are what all inputs agree on; the layout is that of
// the packed inputs where they agree, of a lone unpacked one's order, else row-major.
struct mgx_shape mgx_pointwise_shape(const struct mgx_shape_call *c, enum mgx_type type);

// Numpy's broadcasting of one axis: what d and `by` may become together; false if never.
bool mgx_dim_broadcast(struct mgx_dim *d, struct mgx_dim by);
// The same for whole shapes, aligned at the last axis, into ranges `dims` of *rank entries.
enum mgx_status mgx_broadcast_dims(struct mgx_shape_call *c, const struct mgx_shape *s,
                                   struct mgx_dim *dims, int *rank) MGX_NODISCARD;
// What is true of both: equal parts stay, differing lengths become ranges, differing ranks
// unranked. False when out of memory or when the types differ.
bool mgx_shape_join(struct mgx_arena *arena, const struct mgx_shape *a, const struct mgx_shape *b,
                    struct mgx_shape *out);
// Known rank, lengths unknown (at most `max`).
enum mgx_status mgx_shape_any(struct mgx_shape_call *c, enum mgx_type type, int rank, int64_t max,
                              struct mgx_shape *out) MGX_NODISCARD;
// The same elements in the same order under other lengths, without moving a byte. False if the
// strides do not allow it. Element counts must agree.
bool mgx_shape_regroup(const struct mgx_shape *s, int rank, const int64_t *lens,
                       struct mgx_shape *out);

// Number of elements, or the largest one that ranges allow; kept below 2^62.
int64_t mgx_elements_max(const struct mgx_shape *s);

// --- computes that several operators share ---
// The members of a tuple result, each of its part of c->out_shape; on failure nothing is left.
enum mgx_status mgx_eval_members(struct mgx_compute_call *c, struct mgx_tensor *out,
                                 int count) MGX_NODISCARD;
// A view operator whose result starts at the first element of input 0.
enum mgx_status mgx_compute_view(struct mgx_compute_call *c) MGX_NODISCARD;
// MGX_OP_RESHAPE: a view of a standard input, else a copy in row-major order.
enum mgx_status mgx_compute_reshape(struct mgx_compute_call *c) MGX_NODISCARD;
// A part of `t` without a share of its own: other lengths and strides, `element` offset further on.
struct mgx_tensor mgx_tensor_part(const struct mgx_tensor *t, const struct mgx_shape *shape,
                                  int64_t element);
// The one value of a scalar operand; fails if it has none or several.
enum mgx_status mgx_scalar_int(struct mgx_compute_call *c, int input, int64_t *out) MGX_NODISCARD;
// An index from a tensor, negative ones counted from the end; out of range fails with
// "<op>: index 7 is out of range for axis 0 of length 3".
enum mgx_status mgx_wrap_index(struct mgx_compute_call *c, int64_t index, int axis, int64_t length,
                               int64_t *out) MGX_NODISCARD;

// --- walking several tensors of equal lengths together ---
// Collapses axes that are contiguous in all of them; element i of the current run of tensor k lies
// at offset[k] + i * step[k], runs come in row-major order:
//     for (mgx_walk_start(&w, shapes, 2); !w.done; mgx_walk_next(&w))
//         for (int64_t i = 0; i < w.run; i++) ...
enum { MGX_WALK_MAX = 12 };
struct mgx_walk {
    int rank, count; // collapsed axes outside the run; number of tensors
    int64_t lens[MGX_MAX_RANK];
    int64_t strides[MGX_WALK_MAX][MGX_MAX_RANK];
    int64_t at[MGX_MAX_RANK];
    int64_t offset[MGX_WALK_MAX]; // of the current run, in elements
    int64_t run;                  // its length
    int64_t step[MGX_WALK_MAX];   // element step inside the run
    int64_t look;                 // elements until it looks whether it is cancelled
    bool done;
};
// Shapes must have equal lengths (rank 0 counts as {1}). Empty shapes give done at once, and so
// does a run that was cancelled (base/cancel.h).
void mgx_walk_start(struct mgx_walk *w, const struct mgx_shape *const *shapes, int count);
void mgx_walk_next(struct mgx_walk *w);

// --- values ---
// All elements as doubles/int64 in row-major order in the scratch arena; NULL when out of memory
// (c->diag is set).
double *mgx_scratch_doubles(struct mgx_compute_call *c, const struct mgx_tensor *t);
int64_t *mgx_scratch_ints(struct mgx_compute_call *c, const struct mgx_tensor *t);
// Row-major doubles/ints into a tensor of any strides.
void mgx_write_doubles(struct mgx_tensor *t, const double *values);
void mgx_write_ints(struct mgx_tensor *t, const int64_t *values);
// True when arithmetic on this type should be done in int64 (integers of any width, bool), not
// double.
bool mgx_computes_as_int(enum mgx_type type);
