// SPDX-License-Identifier: MIT
// The geometry of sliding windows, which convolutions, poolings and their relatives share.
//
// Along one spatial axis, output o sees inputs  o * stride + t * dilation - begin,  t < kernel:
//
//     begin            end
//     |~~~~|xxxxxxxxxxx|~~|        ~ padding, x input
//     [k . k . k]                  kernel 3, dilation 2; reach = (kernel - 1) * dilation + 1
//           [k . k . k]            one stride further
//
// Attributes come in MIGraphX's form: `padding` holds one number per axis (the same on both sides)
// or two (all begins, then all ends); a padding_mode other than 0 ignores it and pads so that the
// output has ceil(in / stride) places. All numbers are checked to stay below 2^31, lengths are
// below 2^40, so sums and products here fit in 64 bits; where they might not they are checked.
#pragma once

#include "base/size.h"
#include "ir/module.h"
#include "op/rule/rule.h"

enum mgx_padding_mode { MGX_PADDING_GIVEN, MGX_PADDING_SAME_LOWER, MGX_PADDING_SAME_UPPER };

struct mgx_window_attr {
    struct mgx_ints padding, stride, dilation;
    int64_t padding_mode, group;
    bool ceil; // round the number of places up, as poolings may
};

// The window of an instruction as it is written: the attributes that its operator has, by name. The
// lists belong to the instruction.
struct mgx_window_attr mgx_window_of(const struct mgx_ins *ins);
// Are all values there for so many axes, and is the padding the written one?
bool mgx_window_is_explicit(const struct mgx_window_attr *a, int spatial);
bool mgx_window_is_unpadded(const struct mgx_window_attr *a);

// One spatial axis of an actual call.
struct mgx_window {
    int64_t in, kernel, stride, dilation, begin, end, out;
};

// For shape rules: checks all attributes for `rank` spatial axes.
enum mgx_status mgx_window_check(struct mgx_shape_call *c, const struct mgx_window_attr *a,
                                 int rank) MGX_NODISCARD;
// Output range of spatial axis i. A kernel that does not fit fails unless the input is empty.
enum mgx_status mgx_window_dim(struct mgx_shape_call *c, const struct mgx_window_attr *a, int i,
                               struct mgx_dim in, struct mgx_dim kernel,
                               struct mgx_dim *out) MGX_NODISCARD;
// The same for the transposed direction: (in - 1) * stride + reach - begin - end, where the end may
// be negative and lengthens the output.
enum mgx_status mgx_window_back_dim(struct mgx_shape_call *c, const struct mgx_window_attr *a,
                                    int i, struct mgx_dim in, struct mgx_dim kernel,
                                    struct mgx_dim *out) MGX_NODISCARD;
// For computes, after the shape rule has passed: the number of places (below zero when the kernel
// does not fit), and the window along spatial axis i.
int64_t mgx_window_places(const struct mgx_window_attr *a, int i, int64_t in, int64_t kernel);
struct mgx_window mgx_window_at(const struct mgx_window_attr *a, int i, int64_t in, int64_t kernel,
                                int64_t out);
// As above for the transposed direction, where `in` and `out` have changed places: the result
// describes the forward window whose transpose is meant.
struct mgx_window mgx_window_back_at(const struct mgx_window_attr *a, int i, int64_t in,
                                     int64_t kernel, int64_t out);

// The taps t of output o that fall inside the input: from *first to before *last, first input
// index.
static inline int64_t mgx_window_clip(const struct mgx_window *w, int64_t o, int64_t *first,
                                      int64_t *last)
{
    const int64_t at = o * w->stride - w->begin;
    *first = at >= 0 ? 0 : mgx_min_i64(w->kernel, (w->dilation - 1 - at) / w->dilation);
    const int64_t room = w->in - at; // taps t with t * dilation < room are before the end
    *last = room <= 0 ? *first : mgx_min_i64(w->kernel, (room - 1) / w->dilation + 1);
    *last = mgx_max_i64(*last, *first);
    return at + *first * w->dilation;
}

// The taps of output o inside the input or the padding behind it; those before the padding in front
// do not exist.
static inline int64_t mgx_window_padded(const struct mgx_window *w, int64_t o)
{
    const int64_t room = w->in + w->end - (o * w->stride - w->begin);
    return room <= 0 ? 0 : mgx_min_i64(w->kernel, (room - 1) / w->dilation + 1);
}
