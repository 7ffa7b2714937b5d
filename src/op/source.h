// SPDX-License-Identifier: MIT
// Source text of element-wise code, made from the rows of the table of scalar operators: what a
// code generator pastes into a kernel for a pointwise instruction or a fused body.
//
//     body { x, y }:  z = add(x, y)      PW_FN void f(pw_real x0, pw_real x1, pw_real *y0)
//                     relu(z)            {
//                                            const pw_real v0 = (float)(pw_add_real(x0, x1));
//                                            const pw_real v1 = (float)(pw_relu_real(v0));
//                                            *y0 = v1;
//                                        }
//
// The text keeps to what C, CUDA C, HIP and OpenCL C have in common. The dialect defines, before
// it:
//
//     i64, u64              integers of 64 bits
//     PW_FN                 how a function begins: static, static __device__ __forceinline__, ...
//     pw_real               what floats are computed in: float, or double for the reference's bits
//     pw_half(x), pw_bf16(x)   a pw_real rounded to the nearest value of the narrow type
//     pw_e4m3fn(x), pw_e4m3fnuz(x), pw_e5m2(x), pw_e5m2fnuz(x), pw_e2m1(x), pw_e8m0(x)
//                           likewise
//
// It may define PW_QUANTIZES and, before the text, pw_rounded(q, low, high): q rounded to the
// nearest integer, ties to even, between low and high, low where q is no number; and
// pw_quantized(q, zero, low, high), the same of the sum with zero, as an integer; and for shares,
// of which 0 stands for low and 1 for high, pw_quantized_share(q, scale, low, high), and the same
// without a zero point, pw_rounded_share(q, scale, low, high, zero). 1 / scale is how many steps
// there are. Of pw_last_share, nothing but a result, the last 8 bits are pw_quantized_share's. And
// pw_steps_share, as pw_rounded_share, of a result whose steps are left to whoever reads it.
//
// A body that has a table computes the byte that the table is of and looks up its result, or what
// is found on the way to it; the dialect defines PW_TABLE, how an array of bytes begins that all
// functions read, and may define PW_LOOK_UP(table, i), where a copy of it is nearer.
//
// Values of float and of narrower floats are pw_real, doubles double, bool and signed integers i64,
// other integers u64; loading and storing is the kernel's own affair (mgx_source_type names the
// type). After every operator the value is rounded to its declared type, as without fusion.
//
// Holds: with pw_real = double the text computes, bit for bit, what the reference computes (a test
// compiles every row and proves it). Cost: one pass over the body, O(values^2) for their names.
#pragma once

#include "base/str.h"
#include "ir/module.h"
#include "op/pointwise.h"

enum { MGX_SOURCE_CLASSES = 4 }; // pw_real, double, i64, u64

struct mgx_source {
    struct mgx_str *out;
    bool done[MGX_PW_COUNT][MGX_SOURCE_CLASSES]; // rows whose functions are written
    bool doubles;                                // ... and the helpers for doubles
    uint64_t real;    // parameters of integers that are given as pw_real, a bit each
    bool leaves;      // the last body's rounding to fp8 is left to whoever stores the result ...
    bool leaves_cut;  // ... and what cuts it off to that range before (mgx_source_end)
    bool leaves_step; // that what it is a number of steps of is left, as mgx_source_step says
    const uint8_t *table; // NULL, or what the next body's result is for each byte of `byte`, one of
    const struct mgx_ins *byte;  // its instructions or parameters
    const struct mgx_ins *found; // what the table gives: one of its instructions; NULL: the result
};

// Writes the helpers that the texts call; `out` is the caller's and collects everything.
void mgx_source_begin(struct mgx_source *s, struct mgx_str *out);
// Writes function `name` for a body of scalar operators: parameters by value in order, results by
// pointer. MGX_UNSUPPORTED, naming the operator or type, when the rows do not cover it; nothing of
// the function is written then. A lack of memory shows in out->failed.
enum mgx_status mgx_source_body(struct mgx_source *s, const char *name,
                                const struct mgx_module *body, struct mgx_diag *diag) MGX_NODISCARD;
// The same for one element-wise instruction, whose inputs are the parameters.
enum mgx_status mgx_source_ins(struct mgx_source *s, const char *name, const struct mgx_ins *ins,
                               struct mgx_diag *diag) MGX_NODISCARD;
// How an element-wise instruction ends: by what is rounded to OCP's fp8, which storing rounds once
// more, to the same; and by what is cut off to the type's range before that, which storing may do
// too.
enum mgx_source_end { MGX_END_PLAIN, MGX_END_ROUNDED, MGX_END_CUT };
enum mgx_source_end mgx_source_end(const struct mgx_ins *ins);
// The step that an element-wise body's result is a number of: of a byte's, quantized as a share and
// dequantized again. 0: it ends in another way.
double mgx_source_step(const struct mgx_ins *ins);
// May this operand of an element-wise instruction be given as a pw_real, though it is an integer?
// What dequantizes reads it, nothing else.
bool mgx_source_takes_real(const struct mgx_ins *ins, int operand);
// The type that a value is held in; NULL for types that no text is made for.
const char *mgx_source_type(enum mgx_type type);
