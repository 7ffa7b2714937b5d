// SPDX-License-Identifier: MIT
// Rows of the table of scalar operators (op/pointwise_rows.h), for whoever compiles element-wise
// code.
//
// A row holds the operator's expression twice: as C functions, which are the reference, and as the
// very same source text, which code generators paste. The text is written in the common subset of
// C, CUDA C and OpenCL C over the operands x, y, z and the attributes a and b (alpha, beta); it may
// call the mathematical functions that all three have and the helpers of mgx_pointwise_prelude.
#pragma once

#include "ir/op.h"

// MGX_PW_add, ...
enum mgx_pw {
#define PRELUDE(...)
#define ROW_REAL(name, ...) MGX_PW_##name,
#define ROW_ALL(name, ...) MGX_PW_##name,
#define ROW_WRAP(name, ...) MGX_PW_##name,
#define ROW_INT(name, ...) MGX_PW_##name,
#define ROW_ALPHA(name, ...) MGX_PW_##name,
#define ROW_LINE(name, ...) MGX_PW_##name,
#define ROW_WHERE(name, ...) MGX_PW_##name,
#include "op/pointwise_rows.h"
    MGX_PW_COUNT
};

enum mgx_pw_result {
    MGX_PW_SAME, // the operands' type
    MGX_PW_BOOL, // bool whatever the operands are
};

struct mgx_pointwise {
    enum mgx_pw code;
    int arity;
    enum mgx_pw_result result;
    int attrs; // how many of the attributes alpha and beta it reads, as `a` and `b`
    // Text over floating point; NULL when the operator is for integers (and bool) alone.
    const char *real;
    // Text over signed and unsigned 64-bit integers. NULL: integers are computed through `real` in
    // double. When `wraps` is set arithmetic is modulo 2^64: do it on unsigned operands, then
    // narrow.
    const char *sint, *uint;
    bool wraps;
    double (*real_fn)(double x, double y, double z, double a, double b);
    int64_t (*sint_fn)(int64_t x, int64_t y, int64_t z);
    uint64_t (*uint_fn)(uint64_t x, uint64_t y, uint64_t z);
};

struct mgx_line_attr { // of rows with attributes; beta is 0 where a row reads alpha alone
    double alpha, beta;
};

// The row of an operator; NULL if it is not one of the table.
const struct mgx_pointwise *mgx_pointwise_find(const struct mgx_op *op);

// Source of the helper functions that texts call. Before it a generator defines the types i64 and
// u64 and the macro PW_FN ("static", "__device__", ...).
extern const char mgx_pointwise_prelude[];
