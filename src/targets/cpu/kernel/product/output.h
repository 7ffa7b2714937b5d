// SPDX-License-Identifier: MIT
// From an epilogue to what the micro-kernel does in registers and what is left for the tile in L1.
// Private to the kernels built on tile.h.
#pragma once

#include <math.h>
#include <stddef.h>

#include "targets/cpu/kernel/end/finish.h"
#include "targets/cpu/kernel/move/convert.h"
#include "targets/cpu/kernel/tile/tile.h"

static inline void mgx_output_clamp(const struct mgx_epilogue *e, struct mgx_tile_args *args)
{
    args->clamp = e->act == MGX_ACT_RELU || e->act == MGX_ACT_CLIP;
    args->low = e->act == MGX_ACT_RELU ? 0.0f : e->a;
    args->high = e->act == MGX_ACT_RELU ? INFINITY : e->b;
}

// Whether results of this type end as the description says: bytes always by one.
static inline bool mgx_requant_fits(const struct mgx_requant *q, enum mgx_kernel_type type)
{
    return mgx_kernel_size(type) == 1 ? q && !q->floats
                                      : !q || (q->floats && type == MGX_KERNEL_F32);
}

// A residual's type in memory, where the result has this one; bytes have their own.
static inline enum mgx_kernel_type mgx_residual_type(const struct mgx_epilogue *e,
                                                     enum mgx_kernel_type type)
{
    return e->residual_form == MGX_RESIDUAL_F32    ? MGX_KERNEL_F32
           : e->residual_form == MGX_RESIDUAL_BF16 ? MGX_KERNEL_BF16
           : e->residual_form == MGX_RESIDUAL_F16  ? MGX_KERNEL_F16
                                                   : type;
}

// Bytes of a residual's value.
static inline int64_t mgx_residual_size(const struct mgx_epilogue *e, enum mgx_kernel_type type)
{
    return e->residual == MGX_RESIDUAL_BYTES ? 1 : mgx_kernel_size(mgx_residual_type(e, type));
}

// Whether a residual meets what the activation has made.
static inline bool mgx_residual_late(const struct mgx_epilogue *e)
{
    return e->residual == MGX_RESIDUAL_AFTER || e->residual == MGX_RESIDUAL_TIMES;
}

// Whether registers do all of it.
static inline bool mgx_output_simple(const struct mgx_epilogue *e)
{
    return e->act <= MGX_ACT_CLIP && !e->factor && !mgx_residual_late(e) && !e->hook;
}

// Whether results of this type can end in registers, a step to bytes included.
static inline bool mgx_output_in_registers(const struct mgx_epilogue *e, enum mgx_kernel_type type)
{
    return mgx_output_simple(e) &&
           (e->requant ? e->residual != MGX_RESIDUAL_BEFORE && !e->requant->term
                       : type == MGX_KERNEL_F32 || type == MGX_KERNEL_S32);
}

// Whether tiles are made in scratch as floats and stored from there.
static inline bool mgx_output_converts(const struct mgx_gemm_kernel *kernel,
                                       const struct mgx_epilogue *e, enum mgx_kernel_type type)
{
    const bool late = mgx_residual_late(e);
    const enum mgx_kernel_type added = e->residual ? mgx_residual_type(e, type) : MGX_KERNEL_F32;
    if (e->requant || type == MGX_KERNEL_S32)
        return e->requant != NULL;
    if (type == MGX_KERNEL_F32)
        return added != MGX_KERNEL_F32 && (!kernel->narrows || added != MGX_KERNEL_BF16 || late);
    return type != MGX_KERNEL_BF16 || !kernel->narrows || added == MGX_KERNEL_F16 ||
           !mgx_output_simple(e);
}

// The rest, for a tile that has just been stored. `residual` belongs to the tile's first value.
static inline void mgx_output_finish(const struct mgx_gemm_kernel *kernel,
                                     const struct mgx_epilogue *e, const struct mgx_tile *tile,
                                     const float *residual, int64_t residual_stride,
                                     void *hook_user)
{
    const bool late = mgx_residual_late(e);
    struct mgx_epilogue here = *e;
    if (e->a_column)
        here.a_column += tile->col;
    if (e->factor) {
        here.factor += tile->col;
        here.term += tile->col;
    }
    if (e->act > MGX_ACT_CLIP || e->factor || late)
        mgx_finish_kernel(kernel->base.needs)
            ->run(tile->data, tile->stride, tile->rows, tile->cols, &here, late ? residual : NULL,
                  residual_stride);
    if (e->hook)
        e->hook(hook_user, tile);
}

// The same for a tile in scratch whose results are bf16, which the kernel rounds to `to`.
static inline void mgx_output_round(const struct mgx_gemm_kernel *kernel,
                                    const struct mgx_epilogue *e, const struct mgx_tile *tile,
                                    const float *residual, int64_t residual_stride, void *hook_user,
                                    uint16_t *to, int64_t to_stride)
{
    const bool alone = e->act > MGX_ACT_CLIP && !e->factor && !e->hook && !mgx_residual_late(e);
    struct mgx_epilogue here = *e;
    if (e->a_column)
        here.a_column += tile->col;
    if (!alone && !mgx_output_simple(e))
        mgx_output_finish(kernel, e, tile, residual, residual_stride, hook_user);
    kernel->round(tile->data, tile->stride, tile->rows, tile->cols, alone ? &here : NULL, to,
                  to_stride);
}

// Whether tiles in scratch are rounded so.
static inline bool mgx_output_rounds(const struct mgx_gemm_kernel *kernel,
                                     enum mgx_kernel_type type)
{
    return kernel->round && type == MGX_KERNEL_BF16;
}
