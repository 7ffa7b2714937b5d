// SPDX-License-Identifier: MIT
// The table of element types as kernels see them; type.h says how.
#include "targets/gpu/emit/type.h"

#include <assert.h>
#include <math.h>

#include "op/source.h"

struct row {
    enum gpu_class class;
    const char *memory;
    const char *load, *store; // functions of the prelude; NULL: plain access
};

static const struct row rows[MGX_TYPE_COUNT] = {
    [MGX_BOOL] = {GPU_UNSIGNED, "u8", NULL, NULL},
    [MGX_HALF] = {GPU_REAL, "u16", "load_half", "store_half"},
    [MGX_BF16] = {GPU_REAL, "u16", "load_bf16", "store_bf16"},
    [MGX_FLOAT] = {GPU_REAL, "float", NULL, NULL},
    [MGX_DOUBLE] = {GPU_REAL, "double", NULL, NULL},
    [MGX_UINT8] = {GPU_UNSIGNED, "u8", NULL, NULL},
    [MGX_UINT16] = {GPU_UNSIGNED, "u16", NULL, NULL},
    [MGX_UINT32] = {GPU_UNSIGNED, "u32", NULL, NULL},
    [MGX_UINT64] = {GPU_UNSIGNED, "u64", NULL, NULL},
    [MGX_INT8] = {GPU_SIGNED, "i8", NULL, NULL},
    [MGX_INT16] = {GPU_SIGNED, "i16", NULL, NULL},
    [MGX_INT32] = {GPU_SIGNED, "i32", NULL, NULL},
    [MGX_INT64] = {GPU_SIGNED, "i64", NULL, NULL},
};

enum gpu_class gpu_type_class(enum mgx_type type)
{
    return rows[type].class;
}

const char *gpu_type_memory(enum mgx_type type)
{
    assert(rows[type].class != GPU_NONE);
    return rows[type].memory;
}

const char *gpu_type_value(enum mgx_type type)
{
    assert(rows[type].class != GPU_NONE && mgx_source_type(type));
    return mgx_source_type(type);
}

void gpu_emit_load(struct mgx_str *out, enum mgx_type type, const char *array, const char *at)
{
    const struct row *r = &rows[type];
    if (r->load)
        mgx_str_printf(out, "%s(%s, %s)", r->load, array, at);
    else
        mgx_str_printf(out, "(%s)%s[%s]", gpu_type_value(type), array, at);
}

void gpu_emit_store(struct mgx_str *out, enum mgx_type type, const char *array, const char *at,
                    const char *value)
{
    const struct row *r = &rows[type];
    if (r->store)
        mgx_str_printf(out, "%s(%s, %s, %s);", r->store, array, at, value);
    else
        mgx_str_printf(out, "%s[%s] = (%s)(%s);", array, at, r->memory, value);
}

void gpu_emit_real(struct mgx_str *out, double x)
{
    if (isnan(x))
        mgx_str_put(out, "FLOAT_OF_BITS(0x7fc00000u)");
    else if (isinf(x))
        mgx_str_put(out, x < 0 ? "FLOAT_OF_BITS(0xff800000u)" : "FLOAT_OF_BITS(0x7f800000u)");
    else
        mgx_str_printf(out, "%.9ef", (double)(float)x);
}
