// SPDX-License-Identifier: MIT
// From the list that tiles end by to what the micro-kernel does in registers. Private to the
// kernels built on tile.h.
#pragma once

#include <math.h>

#include "targets/cpu/kernel/move/convert.h"
#include "targets/cpu/kernel/tile/tile.h"

static inline void mgx_output_clamp(const struct mgx_end *end, struct mgx_tile_args *args)
{
    const struct mgx_end_step *act = &end->step[mgx_end_adds_first(end)];
    args->clamp = mgx_end_in_registers(end) > mgx_end_adds_first(end);
    args->low = args->clamp && act->act.act == MGX_ACT_CLIP ? act->act.a : 0.0f;
    args->high = args->clamp && act->act.act == MGX_ACT_CLIP ? act->act.b : INFINITY;
}

static inline bool mgx_output_has_bytes(const struct mgx_end *end)
{
    return mgx_end_bytes(end) < end->count;
}

// Whether results of this type end so: bytes always by a list that makes them.
static inline bool mgx_output_fits(const struct mgx_end *end, enum mgx_kernel_type type)
{
    return mgx_kernel_is_byte(type) ? mgx_end_makes_bytes(end)
                                    : !mgx_output_has_bytes(end) ||
                                          (!mgx_end_makes_bytes(end) && mgx_kernel_is_plain(type));
}

// Bytes of a value of the operand; 0: none is read.
static inline int64_t mgx_output_operand_size(const struct mgx_end *end)
{
    const struct mgx_end_step *reader = mgx_end_reader(end);
    return !reader ? 0 : reader->kind == MGX_END_MIX ? 1 : mgx_kernel_size(reader->type);
}

// Whether floats are read, and these are of another type.
static inline bool mgx_output_widens(const struct mgx_end *end)
{
    const struct mgx_end_step *reader = mgx_end_reader(end);
    return reader && reader->kind != MGX_END_MIX && !mgx_kernel_is_plain(reader->type);
}

// Whether registers do all that is done to floats.
static inline bool mgx_output_simple(const struct mgx_end *end)
{
    return mgx_end_in_registers(end) == mgx_end_bytes(end);
}

static inline bool mgx_output_has_term(const struct mgx_end *end)
{
    for (int i = 0; i < end->count; i++)
        if (end->step[i].kind == MGX_END_MIX && end->step[i].mix.term)
            return true;
    return false;
}

// Whether results of this type can end in registers, steps to bytes included.
static inline bool mgx_output_in_registers(const struct mgx_end *end, enum mgx_kernel_type type)
{
    return mgx_output_simple(end) &&
           (mgx_output_has_bytes(end) ? !mgx_end_adds_first(end) && !mgx_output_has_term(end)
                                      : mgx_kernel_is_plain(type) || mgx_kernel_is_sums(type));
}

// The list for kernels that end in registers; none where these end in floats by themselves.
static inline struct mgx_end_list mgx_output_listed(const struct mgx_end *end)
{
    return mgx_output_has_bytes(end) ? mgx_end_whole(end) : (struct mgx_end_list){.step = NULL};
}

// Whether the kernel itself rounds to this type, and reads it.
static inline bool mgx_output_rounds(const struct mgx_gemm_kernel *kernel,
                                     enum mgx_kernel_type type)
{
    return kernel->narrows && type == kernel->type;
}

// Whether tiles are made in scratch as floats and stored from there.
static inline bool mgx_output_converts(const struct mgx_gemm_kernel *kernel,
                                       const struct mgx_end *end, enum mgx_kernel_type type)
{
    const struct mgx_end_step *reader = mgx_end_reader(end);
    const bool late = reader && !mgx_end_adds_first(end);
    const enum mgx_kernel_type added = mgx_output_widens(end) ? reader->type : MGX_KERNEL_F32;
    if (mgx_output_has_bytes(end) || mgx_kernel_is_sums(type))
        return mgx_output_has_bytes(end);
    const bool as_is = mgx_kernel_is_plain(added) || mgx_output_rounds(kernel, added);
    if (mgx_kernel_is_plain(type))
        return !mgx_kernel_is_plain(added) && (!as_is || late);
    return !mgx_output_rounds(kernel, type) || !as_is || !mgx_output_simple(end);
}
