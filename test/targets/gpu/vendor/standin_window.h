// SPDX-License-Identifier: MIT
// Convolutions in the host's memory, in double: what the stand-ins for cuDNN and MIOpen share. Tensors
// are image, weights and result.
#pragma once

#include "standin_blas.h"

struct blas_window {
    int type, axes;
    int64_t lens[3][5], strides[3][5], step[3], far[3], before[3];
    void *data[3];
    void *workspace;
    size_t workspace_bytes;
};

// The offset of entry number `e` of the last `axes` axes, whose places go to `at`.
static inline int64_t blas_offset(const int64_t *lens, const int64_t *strides, int rank, int64_t e,
                                  int64_t *at)
{
    int64_t sum = 0;
    for (int i = rank - 1; i >= 0; e /= lens[i--]) {
        at[i] = e % lens[i];
        sum += at[i] * strides[i];
    }
    return sum;
}

static inline double blas_taps(const struct blas_window *w, const int64_t *y)
{
    const int rank = w->axes + 2;
    const int64_t *wl = w->lens[1], group = y[1] / (w->lens[2][1] / (w->lens[0][1] / wl[1]));
    int64_t taps = 1, t[5] = {0};
    double sum = 0;
    for (int i = 1; i < rank; i++)
        taps *= wl[i];
    for (int64_t e = 0; e < taps; e++) {
        const int64_t from = blas_offset(wl + 1, w->strides[1] + 1, rank - 1, e, t + 1);
        int64_t at = y[0] * w->strides[0][0] + (group * wl[1] + t[1]) * w->strides[0][1];
        bool inside = true;
        for (int i = 0; i < w->axes; i++) {
            const int64_t x = y[i + 2] * w->step[i] - w->before[i] + t[i + 2] * w->far[i];
            inside = inside && x >= 0 && x < w->lens[0][i + 2];
            at += x * w->strides[0][i + 2];
        }
        if (inside)
            sum += blas_load(w->type, w->data[0], at) *
                   blas_load(w->type, w->data[1], y[1] * w->strides[1][0] + from);
    }
    return sum;
}

static inline void blas_convolve(void *data)
{
    const struct blas_window *w = data;
    int64_t count = 1, y[5];
    if (w->workspace_bytes)
        memset(w->workspace, 0xcd, w->workspace_bytes);
    for (int i = 0; i < w->axes + 2; i++)
        count *= w->lens[2][i];
    for (int64_t e = 0; e < count; e++) {
        const int64_t at = blas_offset(w->lens[2], w->strides[2], w->axes + 2, e, y);
        blas_store(w->type, w->data[2], at, blas_taps(w, y));
    }
}

// Groups of the image's channels, and a result of the size that the window makes.
static inline bool blas_window_is_sound(const struct blas_window *w, const int64_t *after)
{
    if (w->lens[0][1] % w->lens[1][1] || w->lens[2][1] != w->lens[1][0] ||
        w->lens[0][0] != w->lens[2][0])
        return false;
    for (int i = 0; i < w->axes; i++) {
        const int64_t room =
            w->lens[0][i + 2] + w->before[i] + after[i] - (w->lens[1][i + 2] - 1) * w->far[i] - 1;
        if (room < 0 || w->lens[2][i + 2] != room / w->step[i] + 1)
            return false;
    }
    return true;
}
