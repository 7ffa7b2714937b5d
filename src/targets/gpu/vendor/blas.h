// SPDX-License-Identifier: MIT
// A product as BLAS counts: matrices lie column by column. What lies by rows is there the transpose,
// so that the right operand comes first, and rows are columns:
//
//     out = a b,  by rows    =>    out' = b' a',  by columns: columns x rows
#pragma once

#include "targets/gpu/vendor/vendor.h"

enum { GPU_BLAS_FIRST, GPU_BLAS_SECOND, GPU_BLAS_ADDED, GPU_BLAS_RESULT, GPU_BLAS_MATRICES };

struct gpu_blas {
    int64_t m, n, k;
    bool transposed[2]; // the first two
    struct {
        int64_t rows, columns, line, batch; // as they lie
    } matrix[GPU_BLAS_MATRICES];            // without one that is added: as the result
};

struct gpu_blas gpu_blas_of(const struct gpu_vendor_product *product);

// What follows the sum, by the numbers that cuBLASLt and hipBLASLt share; an operand that is added is
// none of them.
int gpu_blas_epilogue(unsigned last);
