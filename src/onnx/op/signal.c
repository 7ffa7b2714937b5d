// SPDX-License-Identifier: MIT
// Signals: DFT, STFT, the windows, MelWeightMatrix.
#include <assert.h>
#include <math.h>

#include "base/size.h"
#include "onnx/build.h"

// --- DFT ---

enum direction { FORWARD, INVERSE };

// As the node says, which half of the result is wanted (`onesided` where it does not).
static struct mgx_ins *transform(struct mgx_node *n, struct mgx_ins *x, struct mgx_ins *length,
                                 int64_t axis, enum direction way, int64_t onesided)
{
    struct mgx_ins *in[2] = {x, length};
    onesided = mgx_onnx_int(n, "onesided", onesided) != 0;
    return mgx_build_emit_n(n, &mgx_op_dft,
                            MGX_ATTRS(mgx_int("axis", axis), mgx_int("inverse", way == INVERSE),
                                      mgx_int("onesided", onesided)),
                            in, length ? 2 : 1);
}

// The axis is an attribute (default 1) in opset 17, an input (default -2) since 20.
static enum mgx_status dft(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, n->opset < 20 ? 2 : 3));
    int64_t given = n->opset < 20 ? mgx_onnx_int(n, "axis", 1) : -2;
    const int rank = mgx_build_rank(n->in[0]);
    if (rank < 0 || (mgx_node_in(n, 2) && !mgx_build_constant_int(n, 2, &given)))
        return mgx_onnx_defer(n);
    int axis = 0;
    TRY(mgx_build_axis(n, given, rank, &axis));
    const enum direction way = mgx_onnx_int(n, "inverse", 0) ? INVERSE : FORWARD;
    n->out[0] = transform(n, n->in[0], mgx_node_in(n, 1), axis, way, 0);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_dft = {.name = "DFT", .import = dft};

// --- STFT ---

struct frames {
    int64_t length, count, step, taken; // taken: entries of a frame that are read, the rest is 0
};

static enum mgx_status read_frames(struct mgx_node *n, struct frames *f, bool *later)
{
    const struct mgx_ins *window = mgx_node_in(n, 2);
    *later = !mgx_build_is_static(n->in[0]) || (window && !mgx_build_is_static(window)) ||
             !mgx_build_constant_int(n, 1, &f->step);
    if (*later)
        return MGX_OK;
    const struct mgx_shape *x = &n->in[0]->shape;
    if (x->rank != 3 || (window && window->shape.rank != 1))
        return mgx_node_invalid(n, "signal has rank %d, window %d", x->rank,
                                window ? window->shape.rank : 1);
    f->length = window ? window->shape.lens[0] : x->lens[1];
    *later = mgx_node_in(n, 3) && !mgx_build_constant_int(n, 3, &f->length);
    if (*later)
        return MGX_OK;
    if (f->length < 1 || f->length > x->lens[1] || f->step < 1)
        return mgx_node_invalid(n, "frames of %lld every %lld in a signal of %lld",
                                (long long)f->length, (long long)f->step, (long long)x->lens[1]);
    f->count = (x->lens[1] - f->length) / f->step + 1;
    f->taken = window ? mgx_min_i64(window->shape.lens[0], f->length) : f->length;
    return MGX_OK;
}

// (batch, frames, entries, parts): the signal's frames times the window.
static struct mgx_ins *cut_frames(struct mgx_node *n, const struct frames *f)
{
    struct mgx_ins *start = mgx_build_iota(n, MGX_INT64, f->count);
    start = start ? mgx_build_per_axis(n, start, 0, 2) : NULL;
    struct mgx_ins *index = mgx_build_add(n, mgx_build_with(n, &mgx_op_mul, start, (double)f->step),
                                          mgx_build_iota(n, MGX_INT64, f->taken));
    struct mgx_ins *y = mgx_build_gather(n, n->in[0], index, 1);
    struct mgx_ins *window = mgx_node_in(n, 2);
    if (!window)
        return y;
    if (window->shape.lens[0] > f->taken)
        window = mgx_build_slice(n, window, 0, 0, f->taken);
    return mgx_build_mul(n, y, mgx_build_unsqueeze(n, window, (int64_t[]){1}, 1));
}

static enum mgx_status stft(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 4));
    struct frames f = {0};
    bool later = false;
    TRY(read_frames(n, &f, &later));
    if (later)
        return mgx_onnx_defer(n);
    struct mgx_ins *length = mgx_build_literal_ints(n, &f.length, 1);
    n->out[0] = transform(n, cut_frames(n, &f), length, 2, FORWARD, 1);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_stft = {.name = "STFT", .import = stft};

// --- windows: a0 - a1 cos(2 pi i / N) + a2 cos(4 pi i / N) ---

enum { LENGTH_LIMIT = 1 << 26 }; // of a window, or entries of a matrix

static enum mgx_status window(struct mgx_node *n, double a0, double a1, double a2)
{
    TRY(mgx_node_need(n, 1, 1));
    enum mgx_type type = MGX_FLOAT;
    int64_t size = 0;
    TRY(mgx_onnx_type(n, mgx_onnx_int(n, "output_datatype", 1), &type));
    if (!mgx_build_constant_int(n, 0, &size))
        return mgx_onnx_defer(n);
    if (size < 0 || size > LENGTH_LIMIT)
        return mgx_node_invalid(n, "size is %lld", (long long)size);
    const double period = (double)mgx_max_i64(mgx_onnx_int(n, "periodic", 1) ? size : size - 1, 1);
    double *v = MGX_NEW_ARRAY(n->scratch, double, size);
    if (!v)
        return mgx_fail_memory(n->diag);
    for (int64_t i = 0; i < size; i++) {
        const double turn = 2 * M_PI * (double)i / period;
        v[i] = a0 - a1 * cos(turn) + a2 * cos(2 * turn);
    }
    const struct mgx_shape shape = mgx_shape_vector(type, size);
    n->out[0] = mgx_build_doubles(n, &shape, v);
    return MGX_OK;
}

static enum mgx_status hann(struct mgx_node *n)
{
    return window(n, 0.5, 0.5, 0);
}
const struct mgx_onnx_op mgx_onnx_hann_window = {
    .name = "HannWindow", .import = hann, .result = "@f", .result_attribute = "output_datatype"};

static enum mgx_status hamming(struct mgx_node *n)
{
    return window(n, 25.0 / 46, 21.0 / 46, 0);
}
const struct mgx_onnx_op mgx_onnx_hamming_window = {.name = "HammingWindow",
                                                    .import = hamming,
                                                    .result = "@f",
                                                    .result_attribute = "output_datatype"};

static enum mgx_status blackman(struct mgx_node *n)
{
    return window(n, 0.42, 0.5, 0.08);
}
const struct mgx_onnx_op mgx_onnx_blackman_window = {.name = "BlackmanWindow",
                                                     .import = blackman,
                                                     .result = "@f",
                                                     .result_attribute = "output_datatype"};

// --- MelWeightMatrix ---

static double mel(double hertz)
{
    return 2595 * log10(1 + hertz / 700);
}

static double hertz(double m)
{
    return 700 * (pow(10, m / 2595) - 1);
}

// Triangles over the spectrum's bins, corners equally far apart in mel.
static void fill_triangles(double *v, int64_t rows, int64_t columns, const int64_t *corner)
{
    for (int64_t i = 0; i < columns; i++) {
        const int64_t left = corner[i], top = corner[i + 1], right = corner[i + 2];
        for (int64_t k = left; k <= top && k < rows; k++)
            v[k * columns + i] = top == left ? 1 : (double)(k - left) / (double)(top - left);
        for (int64_t k = top; k < right && k < rows; k++)
            v[k * columns + i] = (double)(right - k) / (double)(right - top);
    }
}

static enum mgx_status mel_weights(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 5, 5));
    mgx_node_ask(n, 0, 5);
    int64_t bins = 0, length = 0, rate = 0;
    double low = 0, high = 0;
    enum mgx_type type = MGX_FLOAT;
    TRY(mgx_onnx_type(n, mgx_onnx_int(n, "output_datatype", 1), &type));
    if (!mgx_build_constant_int(n, 0, &bins) || !mgx_build_constant_int(n, 1, &length) ||
        !mgx_build_constant_int(n, 2, &rate) || !mgx_build_constant_double(n, 3, &low) ||
        !mgx_build_constant_double(n, 4, &high))
        return mgx_onnx_defer(n);
    const bool sound = bins >= 1 && length >= 1 && rate >= 1 && low >= 0 && high >= low &&
                       bins < LENGTH_LIMIT && length < LENGTH_LIMIT && high < 0x1p40;
    if (!sound || bins * (length / 2 + 1) > LENGTH_LIMIT)
        return mgx_node_invalid(n, "%lld bins from a transform of %lld at %lld hertz",
                                (long long)bins, (long long)length, (long long)rate);
    const int64_t rows = length / 2 + 1;
    double *v = MGX_NEW_ARRAY(n->scratch, double, bins *rows);
    int64_t *corner = MGX_NEW_ARRAY(n->scratch, int64_t, bins + 2);
    if (!v || !corner)
        return mgx_fail_memory(n->diag);
    const double step = (mel(high) - mel(low)) / (double)(bins + 2);
    for (int64_t i = 0; i < bins + 2; i++)
        corner[i] = (int64_t)floor((double)(length + 1) * hertz(mel(low) + step * (double)i) /
                                   (double)rate);
    fill_triangles(v, rows, bins, corner);
    const struct mgx_shape shape = mgx_shape_make(type, 2, (int64_t[]){rows, bins});
    n->out[0] = mgx_build_doubles(n, &shape, v);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_mel_weight_matrix = {.name = "MelWeightMatrix",
                                                       .import = mel_weights,
                                                       .result = "@f",
                                                       .result_attribute = "output_datatype"};
