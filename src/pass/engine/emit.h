// SPDX-License-Identifier: MIT
// Short forms for the instructions that rewrites make all the time.
//
// Each emits before `at` and returns its input unchanged when there is nothing to do. A NULL input
// gives NULL (builders are sticky).
#pragma once

#include "pass/engine/pass.h"

struct mgx_ins *mgx_emit_unary(struct mgx_ins *at, const struct mgx_op *op, struct mgx_ins *x);
struct mgx_ins *mgx_emit_binary(struct mgx_ins *at, const struct mgx_op *op, struct mgx_ins *x,
                                struct mgx_ins *y);
// With a number in all places.
struct mgx_ins *mgx_emit_with(struct mgx_ins *at, const struct mgx_op *op, struct mgx_ins *x,
                              double value);
// The value in another type.
struct mgx_ins *mgx_emit_convert(struct mgx_ins *at, struct mgx_ins *x, enum mgx_type type);
// A reshape, or squeeze or unsqueeze where that is all it is.
struct mgx_ins *mgx_emit_reshape(struct mgx_ins *at, struct mgx_ins *x, const int64_t *lens,
                                 int rank);
struct mgx_ins *mgx_emit_multibroadcast(struct mgx_ins *at, struct mgx_ins *x, const int64_t *lens,
                                        int rank);
struct mgx_ins *mgx_emit_transpose(struct mgx_ins *at, struct mgx_ins *x, const int *permutation,
                                   int rank);
struct mgx_ins *mgx_emit_slice(struct mgx_ins *at, struct mgx_ins *x, int axis, int64_t start,
                               int64_t end);
struct mgx_ins *mgx_emit_gather(struct mgx_ins *at, struct mgx_ins *x, struct mgx_ins *rows);
struct mgx_ins *mgx_emit_concat(struct mgx_ins *at, struct mgx_ins *const *in, int count, int axis);
// One value in all places of `like`'s lengths.
struct mgx_ins *mgx_emit_splat(struct mgx_ins *at, const struct mgx_shape *like, double value);
// The product of two known values as a literal of floats; NULL where they are not: each must be one
// value in all places, or a literal that lies row-major and has the elements of `shape`; and not
// many. For what a rule makes of every product of a model, which folding would take several steps
// for.
struct mgx_ins *mgx_emit_known_product(struct mgx_ins *at, const struct mgx_shape *shape,
                                       const struct mgx_ins *x, const struct mgx_ins *y);
// The same operator with the same attributes on other inputs.
struct mgx_ins *mgx_emit_again(struct mgx_ins *at, const struct mgx_ins *model,
                               struct mgx_ins *const *in, int count);

// Another operator that has the same attributes, as those of the model: a product of other types.
struct mgx_ins *mgx_emit_as(struct mgx_ins *at, const struct mgx_op *op,
                            const struct mgx_ins *model, struct mgx_ins_list in);

// An instruction's attributes, copied for editing by name before they are used for another one; the
// fields must exist and have that kind. NULL, and false, when out of memory.
void *mgx_edit_attr(struct mgx_program *p, const struct mgx_ins *ins);
bool mgx_edit_ints(struct mgx_program *p, const struct mgx_op *op, void *attr, const char *name,
                   const int64_t *v, int count);
void mgx_edit_int(const struct mgx_op *op, void *attr, const char *name, int64_t v);
void mgx_edit_bool(const struct mgx_op *op, void *attr, const char *name, bool v);
void mgx_edit_real(const struct mgx_op *op, void *attr, const char *name, double v);
// The same operator with edited attributes; NULL stays NULL.
struct mgx_ins *mgx_emit_edited(struct mgx_ins *at, const struct mgx_op *op, void *attr,
                                struct mgx_ins *const *in, int count);

// What a broadcast repeats: for each axis of the result the axis of `core` it walks, -1 where the
// same values repeat. Of multibroadcast, broadcast and scalar with static shapes.
struct mgx_spread {
    struct mgx_ins *core;
    int axis[MGX_MAX_RANK];
};
bool mgx_spread_of(struct mgx_ins *ins, struct mgx_spread *out);

// A value of `ins`'s type and lengths that varies along `axis` only, as a vector of that length:
// says whether it is one; emits the vector.
bool mgx_is_along(struct mgx_ins *ins, int axis);
struct mgx_ins *mgx_emit_along(struct mgx_ins *at, struct mgx_ins *ins, int axis);
// The other way: a vector laid along `axis` of a shape.
struct mgx_ins *mgx_emit_spread(struct mgx_ins *at, struct mgx_ins *vector, int axis,
                                const struct mgx_shape *like);
// Quantized values in a wider type, less their zero point: NULL, one value, or one for every place
// along `axis`.
struct mgx_ins *mgx_emit_shifted(struct mgx_ins *at, struct mgx_ins *x, struct mgx_ins *zero,
                                 int axis, enum mgx_type type);
