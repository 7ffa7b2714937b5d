// SPDX-License-Identifier: MIT
// The micro-kernel families there are; see tile.h.
#include "targets/cpu/kernel/tile/tile.h"

#include <stddef.h>

// What is asked for; `a` and `b` of bytes alone.
struct wanted {
    enum mgx_kernel_type type, a, b;
    mgx_isa isa;
    bool zeros; // B has zero points
    int cols;   // of a panel; 0: any
};

static int tile_size(const struct mgx_gemm_kernel *k)
{
    return k->rows * k->cols;
}

static bool takes_bytes(const struct mgx_gemm_kernel *k, const struct wanted *w)
{
    const bool a = !mgx_kernel_is_signed(k->a_type) || mgx_kernel_is_signed(w->a);
    return a && (mgx_gemm_widens(k) || (k->b_type == w->b && !w->zeros));
}

static bool kernel_fits(const struct mgx_gemm_kernel *k, const struct wanted *w)
{
    return k->type == w->type && mgx_isa_holds(w->isa, k->base.needs) &&
           (!w->cols || k->cols == w->cols) &&
           (!mgx_kernel_is_signed(w->type) || takes_bytes(k, w));
}

// The better one of two with equal sets: the largest tile, then the most values multiplied at once,
// then what takes A as it is.
static bool is_better(const struct mgx_gemm_kernel *k, const struct mgx_gemm_kernel *than,
                      const struct wanted *w)
{
    const int a = tile_size(k), b = tile_size(than);
    if (a != b)
        return a > b;
    return k->group != than->group ? k->group > than->group
                                   : k->a_type == w->a && than->a_type != w->a;
}

// The list has the best set first.
static const struct mgx_gemm_kernel *find_kernel(const struct wanted *w)
{
    const struct mgx_gemm_kernel *found = NULL;
    for (const struct mgx_kernel *const *at = mgx_gemm_kernels; *at; at++) {
        const struct mgx_gemm_kernel *k = (const struct mgx_gemm_kernel *)*at;
        if (found && found->base.needs != k->base.needs)
            break;
        if (kernel_fits(k, w) && (!found || is_better(k, found, w)))
            found = k;
    }
    return found;
}

const struct mgx_gemm_kernel *mgx_gemm_kernel(enum mgx_kernel_type type, mgx_isa isa)
{
    return mgx_gemm_kernel_of(type, isa, 0);
}

const struct mgx_gemm_kernel *mgx_integer_kernel(enum mgx_kernel_type type, mgx_isa isa,
                                                 enum mgx_kernel_type a_type,
                                                 enum mgx_kernel_type b_type, bool b_zero)
{
    const struct wanted w = {.type = type, .a = a_type, .b = b_type, .isa = isa, .zeros = b_zero};
    return find_kernel(&w);
}

const struct mgx_gemm_kernel *mgx_gemm_kernel_of(enum mgx_kernel_type type, mgx_isa isa, int cols)
{
    const struct wanted w = {
        .type = type, .a = MGX_KERNEL_U8, .b = MGX_KERNEL_S8, .isa = isa, .cols = cols};
    return find_kernel(&w);
}
