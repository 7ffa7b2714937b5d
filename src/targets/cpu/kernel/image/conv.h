// SPDX-License-Identifier: MIT
// Convolution of one, two or three spatial dimensions over channels-last tensors, and its
// transpose.
//
// A convolution is a matrix multiplication whose A is never built: a row of A is an output pixel,
// and a tap (kernel element) is an offset into the input. The methods differ in where the rows come
// from:
//
//     direct      the input itself: no padding, or zeros stand around each image in memory already
//     strip       a band of input rows, copied into per-thread scratch with its padding; the only
//                 copy of the input, made where it is used. Also for inputs that are not
//                 channels-last
//     unrolled    every pixel's taps written out (im2col), block by block; for wide dilations
//     winograd2/4 3 x 3, stride 1, any dilation: 2 x 2 or 4 x 4 outputs per tile, 2.25 or 4 times
//                 fewer products; of floats, or of bytes, where the sums are exact
//     depthwise   groups of one channel, of 2, 4 or 8 in and out, or of 1 in and up to 8 out: a
//                 kernel of its own, of floats; of one channel also of bytes
//     phases      transposed: one ordinary convolution per residue of the output modulo the stride
//
// Kernel elements whose pixels are contiguous in memory melt into one deeper tap: the first layer
// of an image network multiplies 7 taps of 21 instead of 49 of 3.
//
// A depthwise convolution may be fed by an ordinary one (the expansion of an inverted residual, the
// first layer of a network): its input is made row by row in scratch, some rows ahead of where they
// are read, and is never in memory as a whole.
//
// A factor per input channel (squeeze and excitation) is taken into a copy of the packed weights,
// which are fewer than the pixels' values where this is asked for; tile methods and floats alone.
//
// A plan is made once per shape and method, weights are packed for the plan, running it neither
// allocates nor fails, and results do not depend on the number of threads.
#pragma once

#include <stddef.h>

#include "targets/cpu/kernel/product/ahead.h"
#include "targets/cpu/kernel/tile/tile.h"
#include "targets/cpu/machine/pool.h"

enum { MGX_CONV_DIMS = 3 }; // depth, height, width; unused leading ones have size and kernel 1

#define MGX_CONV_METHOD_LIST(X)                                                                    \
    X(MGX_CONV_DIRECT, "direct")                                                                   \
    X(MGX_CONV_STRIP, "strip")                                                                     \
    X(MGX_CONV_UNROLLED, "unrolled")                                                               \
    X(MGX_CONV_WINOGRAD2, "winograd2")                                                             \
    X(MGX_CONV_WINOGRAD4, "winograd4")                                                             \
    X(MGX_CONV_WINOGRAD_BYTES, "winograd4_bytes")                                                  \
    X(MGX_CONV_DEPTHWISE, "depthwise")                                                             \
    X(MGX_CONV_DEPTHWISE_BYTES, "depthwise_bytes")                                                 \
    X(MGX_CONV_PHASES, "phases")

enum mgx_conv_method {
#define X(name, text) name,
    MGX_CONV_METHOD_LIST(X)
#undef X
        MGX_CONV_METHOD_COUNT
};

// Types are those of gemm.h: x and y may be f32, f16 or bf16, or bytes to int32 or to floats by a
// scale per channel. Winograd knows bytes, and f32 with results of
// f32 or bf16. Sizes are positive;
// strides are in elements. Output channels are contiguous, within a pixel that
// may be wider than they are: a concatenation is written in place.
struct mgx_conv_desc {
    enum mgx_kernel_type type; // multiplied as F32, BF16 (or F32 without the instruction), S8
    enum mgx_kernel_type x_type, w_type, y_type; // in memory; the residual is of y's type
    int x_zero;            // of bytes: what stands for zero, also in the padding
    const int32_t *w_zero; // [out_channels] or NULL: the same of the weights, as in gemm.h
    mgx_isa isa;
    int threads;
    bool transposed;
    bool x_scaled; // x is multiplied by a factor per channel (args.x_scale) on its way in
    // Every output is a sum of its own products: no Winograd, whose tiles add and subtract inputs
    // first, so that one that is not finite, or very large, spoils its neighbours' outputs too.
    bool exact;
    int64_t batch, groups, in_channels, out_channels; // channels of all groups together
    int64_t in[MGX_CONV_DIMS], out[MGX_CONV_DIMS], kernel[MGX_CONV_DIMS];
    int64_t stride[MGX_CONV_DIMS], dilation[MGX_CONV_DIMS];
    int64_t pad[MGX_CONV_DIMS]; // before; what is needed behind follows from `out`
    // Zeros in memory around every image, along each dimension, that may be read: the border.
    int64_t border_before[MGX_CONV_DIMS], border_after[MGX_CONV_DIMS];
    int64_t x_batch, x_space[MGX_CONV_DIMS], x_channel;
    int64_t y_batch, y_space[MGX_CONV_DIMS];
    int64_t residual_batch, residual_space[MGX_CONV_DIMS];
    // The weight between channel i of the input and o of the output, both within group g, is at
    // g * w_group + o * w_out + i * w_in + the kernel position along w_space.
    int64_t w_group, w_out, w_in, w_space[MGX_CONV_DIMS];
    // What will be packed, where that is known: how bytes are packed depends on their values. NULL:
    // it is not.
    const void *weights;
    struct mgx_end end; // rows of a tile are output pixels, counted over all images
    // The convolution that makes x, row by row; NULL: x is in memory. The y_* of the first and the
    // x_* of the second are not used then. The second is depthwise, the first has a single group;
    // between them are floats, which the first may make of bf16 and the second may end in bf16.
    const struct mgx_conv_desc *feed;
};

struct mgx_conv_plan;

struct mgx_conv_args {
    const void *x; // first value of the first image, behind its border
    const void *packed;
    const float *bias;  // [out_channels]; may be NULL
    const float *scale; // [out_channels]; integer sums become floats by it; needed unless they stay
    const int *x_zero;  // in place of the description's, which is 0 then; NULL: that one
    const int32_t *start; // [out_channels] and room behind, with x_zero: see gemm.h
    const float *x_scale; // [in_channels], if x_scaled
    const void *residual;
    void *y;
    void *workspace; // aligned to 64
    void *hook_user;
    const struct mgx_ahead *next;     // by thread: what a later step reads first; NULL: not known
    const struct mgx_conv_args *feed; // of the feed: all but y, workspace and its feed
};

struct mgx_conv_choice {
    enum mgx_conv_method method;
    double seconds; // estimated; only good for comparing
};

// The methods that can run `desc`, best first; returns how many were written, at most
// MGX_CONV_METHOD_COUNT. For measuring; mgx_conv_plan_create alone takes the first.
int mgx_conv_choices(const struct mgx_conv_desc *desc, struct mgx_conv_choice *choices);

// `method` MGX_CONV_METHOD_COUNT: the best estimate. Depth of recursion: one.
enum mgx_status mgx_conv_plan_create(const struct mgx_conv_desc *desc, enum mgx_conv_method method,
                                     struct mgx_conv_plan **out,
                                     struct mgx_diag *diag) MGX_NODISCARD;
void mgx_conv_plan_destroy(struct mgx_conv_plan *plan); // NULL is allowed

// The plan of the feed, for its weights; NULL: none.
const struct mgx_conv_plan *mgx_conv_plan_feed(const struct mgx_conv_plan *plan);
enum mgx_conv_method mgx_conv_plan_method(const struct mgx_conv_plan *plan);
const struct mgx_gemm_kernel *mgx_conv_plan_kernel(const struct mgx_conv_plan *plan);
const char *mgx_conv_method_name(enum mgx_conv_method method);
size_t mgx_conv_packed_bytes(const struct mgx_conv_plan *plan);
size_t mgx_conv_workspace(const struct mgx_conv_plan *plan);

// Writes mgx_conv_packed_bytes(), aligned to 64.
void mgx_conv_pack(const struct mgx_conv_plan *plan, const void *weights, void *packed);
// A share of the same, in any order and by any thread; it reads about that share of the weights.
// Float weights may lie at any address.
void mgx_conv_pack_part(const struct mgx_conv_plan *plan, const void *weights, void *packed,
                        int part, int parts);

// What `thread` reads first of packed weights, as far as the method says.
struct mgx_ahead mgx_conv_first_read(const struct mgx_conv_plan *plan, const void *packed,
                                     int thread);

void mgx_conv_run(const struct mgx_conv_plan *plan, const struct mgx_conv_args *args,
                  struct mgx_pool *pool);
