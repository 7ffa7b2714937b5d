// SPDX-License-Identifier: MIT
// A product as it is offered: what the kernels that compute products on different units share.
#pragma once

#include "targets/gpu/lower/lower.h"

struct gpu_product {
    const struct mgx_ins *ins;  // dot or convolution
    const struct mgx_ins *tail; // reads it and gives the result; NULL: the product is the result
    // Makes the left operand of the one offered, or the given extra of the other sum; NULL: it is that.
    const struct mgx_ins *make;
    int operand[2];                          // numbers of its inputs in the offer
    int extra[GPU_CALL_INPUTS], extra_count; // of the tail's other inputs, in its order
    int place;                               // of the product among the tail's inputs
    uint64_t real; // of products of bytes: the tail's operands that come as floats, a bit each
    const struct mgx_ins *pad; // of the image that `make` makes, before the convolution; NULL: none
    int given; // 1 + which of the extras is not read, but comes with the sum; 0: none
    int64_t rows, columns, depth, batches;
    // Zero points that the kernel takes off: where there are some, of either operand; gpu_product_read_zeros.
    bool has_zeros;
    int zero[2];
    int together; // groups of a convolution that make one batch entry; 0: each its own
};

// What is offered, with its sizes. Why it is not a product that can be computed here; NULL: it is.
const char *gpu_product_read(const struct mgx_plan_offer *c, struct gpu_product *p);
// The same, and with zero points of bytes that are known, whose constants run does not read.
const char *gpu_product_read_zeros(struct mgx_plan_offer *c, struct gpu_product *p);
// What sums are: floats, doubles, integers of 64 bits, of bytes those of 32.
enum mgx_type gpu_product_sum(const struct gpu_product *p);
bool gpu_product_is_float(const struct gpu_product *p);
// Are both operands bytes, without zero points, and sums of 32 bits?
bool gpu_product_is_bytes(const struct gpu_product *p);
// Are both operands fp8, of whichever kinds? Sums are float.
bool gpu_product_is_fp8(const struct gpu_product *p);
bool gpu_product_is_dot(const struct gpu_product *p); // else a convolution
// Channels of one tap: of all groups of a batch entry.
int64_t gpu_product_channels(const struct mgx_plan_offer *c, const struct gpu_product *p);
// How many of a convolution's groups, of so many channels each, are best multiplied as if they were one,
// with weights of zero where a column is not of a channel's group: where the units, which take `block`
// values of the depth at once, have least to do. Their channels begin at a multiple of `line`. 1: each by
// itself; 0: there is no such number.
int gpu_product_gather(const struct gpu_product *p, int64_t channels, int64_t block, int64_t line);
// The text's last line: PARAMS, what the tail reads, behind a comma each, and FINISH(sum, batch, row,
// column), or FINISH(sum, other, batch, row, column) with the extra that is given; it stores in `c`.
// After the text of gpu_emit_bodies, and SUM, the sum's type.
void gpu_product_emit_finish(struct mgx_str *out, const struct mgx_plan_offer *c,
                             const struct gpu_product *p);
// Places before the image along spatial axis i, and what lies there.
int64_t gpu_product_before(const struct gpu_product *p, int i);
int gpu_product_beside(const struct gpu_product *p);
// Does the tail's operand i come as a float, though it is an integer?
static inline bool gpu_product_is_real(const struct gpu_product *p, int i)
{
    return p->real >> i & 1;
}
// TAKEN, the sum's type as the tail takes it.
void gpu_product_emit_real(struct mgx_str *out, const struct gpu_product *p);
// Functions find_a, find_b, load_a and load_b: where a value is, -1 for a zero beside the image, and
// the value as SUM.
void gpu_product_emit_loads(struct mgx_str *out, const struct mgx_plan_offer *c,
                            const struct gpu_product *p);
// The text of gpu::product's kernel, its launch and what is said of it. Why it cannot be written; NULL
// if it can.
const char *gpu_product_emit(struct mgx_str *text, const struct mgx_plan_offer *c,
                             const struct gpu_product *p, struct gpu_launch *how,
                             const char **detail);
