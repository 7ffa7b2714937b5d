// SPDX-License-Identifier: MIT
// Recurrent layers: RNN, GRU and LSTM in the meaning of ONNX, one or two directions.
//
//     LSTM  i, o, f = F(. + p * c)   c' = f * c + i * G(.)    h' = o * H(c')
//     GRU   z, r = F(.)   n = G(x-part + r * h-part)          h' = (1 - z) * n + z * h
//     RNN                                                     h' = F(.)
//
// The part of the input of all steps is one multiplication beforehand; a step is one multiplication
// of the state with the recurrent weights, and the arithmetic of the gates on vectors. Work is
// divided by direction and by batch, without any synchronisation; only when that leaves threads
// idle and a step is large, each step's multiplication is divided instead.
//
// Weights may be bytes (rnn_bytes.c): then what they multiply is rounded to bytes too, with one
// scale for the input of all steps, and one for the states of all batch entries in every step, as
// DynamicQuantizeLinear finds it; the batch is not divided then. Sums are exact. A quarter of the
// memory, which keeps larger weights in L2 from step to step.
#pragma once

#include <stddef.h>

#include "targets/cpu/kernel/product/gemm.h"
#include "targets/cpu/kernel/rows/byte_range.h"

enum mgx_rnn_kind { MGX_RNN_PLAIN, MGX_RNN_GRU, MGX_RNN_LSTM };

struct mgx_rnn_act {
    enum mgx_act act;
    float a, b;
};

// What weights stand for that are bytes: (w - zero) * scale, by column of all directions' gates.
// Which bytes they are decides how they are packed.
struct mgx_rnn_bytes {
    enum mgx_kernel_type type; // S8 or U8
    const void *values;
    const float *scale;
    const int32_t *zero; // NULL: none
};

// Strides are in elements; values of one step, batch entry and direction are contiguous.
struct mgx_rnn_desc {
    enum mgx_kernel_type type;
    mgx_isa isa;
    int threads;
    enum mgx_rnn_kind kind;
    int64_t steps, batch, input, hidden;
    int directions;
    bool reverse; // the only direction runs backwards; of two, the second one always does
    int64_t x_step, x_batch;
    int64_t y_step, y_direction, y_batch;
    int64_t state_direction, state_batch; // of initial and final h and c
    struct mgx_rnn_act f[2], g[2], h[2];  // per direction
    float clip;                           // of what goes into an activation; 0: none
    bool linear_before_reset;             // GRU: the h-part has a bias and is multiplied by r
    bool input_forget;                    // LSTM: f = 1 - i
    bool bytes;                           // LSTM: weights are such
    struct mgx_rnn_bytes w, r;
    // Weights as ONNX has them, rows contiguous: W [directions][gates * hidden][input],
    // R [directions][gates * hidden][hidden], B [directions][2 * gates * hidden],
    // P [directions][3 * hidden]. Gates are i o f c, z r h, or one.
};

struct mgx_rnn_plan {
    struct mgx_rnn_desc desc;
    struct mgx_gemm_plan input;   // of all steps, both directions
    struct mgx_gemm_plan step[2]; // of one step, by direction: all gates, or without a GRU's last
    struct mgx_gemm_plan last;    // of a GRU that resets before it multiplies
    int parts;                    // of the batch
    bool divide_steps;
    size_t packed_bytes, workspace_bytes;
};

struct mgx_rnn_args {
    const float *x;
    const void *packed;
    const float *initial_h, *initial_c; // NULL: zero
    const int32_t *lengths;             // steps of each batch entry; NULL: all
    float *y, *final_h, *final_c;       // each may be NULL
    void *workspace;                    // aligned to 64
};

enum mgx_status mgx_rnn_plan_init(struct mgx_rnn_plan *plan, const struct mgx_rnn_desc *desc,
                                  struct mgx_diag *diag) MGX_NODISCARD;
// Weights are floats or bytes, as planned. `b` and `p` may be NULL.
void mgx_rnn_pack(const struct mgx_rnn_plan *plan, const void *w, const void *r, const float *b,
                  const float *p, void *packed);
void mgx_rnn_run(const struct mgx_rnn_plan *plan, const struct mgx_rnn_args *args,
                 struct mgx_pool *pool);

// --- products of bytes ---

// Rows of A become bytes with one scale, then they are multiplied.
struct mgx_rnn_product {
    const struct mgx_gemm_plan *plan;
    const void *packed;  // B
    const float *scale;  // of its columns
    const int32_t *sums; // of its columns, zero points off
    float *factors;      // room, MGX_RNN_ROOM more than columns
    int32_t *start;      // likewise
    uint8_t *a;          // room for the rows, one behind the other
    const float *bias;   // NULL: none
    float *c;
    void *workspace;
};

enum { MGX_RNN_ROOM = MGX_TILE_MAX_COLS * MGX_TILE_MAX_PANELS };

// Multiplies the rows of A that `how` has made bytes of.
void mgx_rnn_multiply(const struct mgx_rnn_product *p, const struct mgx_range_bytes *how,
                      struct mgx_pool *pool);
// Of every row of w, `depth` long: its sum, the zero points off.
void mgx_rnn_sums(const struct mgx_rnn_bytes *w, int64_t rows, int64_t depth, int32_t *sums);

// --- the arithmetic of a step, per instruction set ---

// Gate k of the input part is at x + k * hidden, of the recurrent part at r + k * hidden.
struct mgx_gates_args {
    const struct mgx_rnn_desc *desc;
    int direction;
    const float *x, *r;
    // LSTM: peepholes i o f, or NULL. GRU with linear before reset: bias of the h-part.
    const float *extra;
    float *h, *c; // the state; c: LSTM
    float *reset; // GRU: takes r * h
    float *y;     // takes h too, unless NULL
};

struct mgx_gates_kernel {
    struct mgx_kernel base;
    void (*plain)(const struct mgx_gates_args *args);
    void (*lstm)(const struct mgx_gates_args *args);
    void (*gru)(const struct mgx_gates_args *args);       // linear before reset: in one go
    void (*gru_reset)(const struct mgx_gates_args *args); // otherwise: first reset = F(r) * h,
    void (*gru_last)(const struct mgx_gates_args *args);  // then, with the last part, the rest
};

MGX_KERNEL_KIND(gates)
