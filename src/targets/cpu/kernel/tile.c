// SPDX-License-Identifier: MIT
// The micro-kernel families there are; see tile.h.
#include "targets/cpu/kernel/tile.h"

#include <stddef.h>

static int tile_size(const struct mgx_gemm_kernel *k)
{
    return k->rows * k->cols;
}

// The better one of two with equal sets: the largest tile, then the most values multiplied at once.
static bool is_better(const struct mgx_gemm_kernel *k, const struct mgx_gemm_kernel *than)
{
    const int a = tile_size(k), b = tile_size(than);
    return a != b ? a > b : k->group > than->group;
}

// The list has the best set first.
static const struct mgx_gemm_kernel *find(enum mgx_kernel_type type, mgx_isa isa, bool wide,
                                          int cols)
{
    const struct mgx_gemm_kernel *found = NULL;
    for (const struct mgx_kernel *const *at = mgx_gemm_kernels; *at; at++) {
        const struct mgx_gemm_kernel *k = (const struct mgx_gemm_kernel *)*at;
        if (found && found->base.needs != k->base.needs)
            break;
        if (k->type == type && mgx_isa_holds(isa, k->base.needs) &&
            (!wide || k->b_type == MGX_KERNEL_S16) && (!cols || k->cols == cols) &&
            (!found || is_better(k, found)))
            found = k;
    }
    return found;
}

const struct mgx_gemm_kernel *mgx_gemm_kernel(enum mgx_kernel_type type, mgx_isa isa)
{
    return find(type, isa, false, 0);
}

const struct mgx_gemm_kernel *mgx_integer_kernel(enum mgx_kernel_type type, mgx_isa isa,
                                                 enum mgx_kernel_type b_type, bool b_zero)
{
    return find(type, isa, type == MGX_KERNEL_S8 && (b_zero || b_type != MGX_KERNEL_S8), 0);
}

const struct mgx_gemm_kernel *mgx_gemm_kernel_of(enum mgx_kernel_type type, mgx_isa isa, int cols)
{
    return find(type, isa, false, cols);
}

const char *mgx_act_name(enum mgx_act act)
{
    static const char *const names[] = {
#define X(name, text, meaning) text,
        MGX_ACT_LIST(X)
#undef X
    };
    return names[act];
}
