// SPDX-License-Identifier: MIT
// The table of element types as kernels see them; type.h says how.
#include "targets/gpu/emit/type.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "op/source.h"

struct row {
    enum gpu_class class;
    const char *memory;
    const char *widen, *narrow; // functions of the prelude; NULL: a cast
};

static const struct row rows[MGX_TYPE_COUNT] = {
    [MGX_BOOL] = {GPU_UNSIGNED, "u8", NULL, NULL},
    [MGX_HALF] = {GPU_REAL, "u16", "of_half", "to_half"},
    [MGX_BF16] = {GPU_REAL, "u16", "of_bf16", "to_bf16"},
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
    // Element-wise work alone: they have no class.
    [MGX_INT4] = {GPU_NONE, "u8", "of_int4", "to_int4"},
    [MGX_INT2] = {GPU_NONE, "u8", "of_int2", "to_int2"},
    [MGX_UINT4] = {GPU_NONE, "u8", "of_uint4", "to_uint4"},
    [MGX_UINT2] = {GPU_NONE, "u8", "of_uint2", "to_uint2"},
    [MGX_FP8E4M3FN] = {GPU_NONE, "u8", "of_e4m3fn", "to_e4m3fn"},
    [MGX_FP8E4M3FNUZ] = {GPU_NONE, "u8", "of_e4m3fnuz", "to_e4m3fnuz"},
    [MGX_FP8E5M2] = {GPU_NONE, "u8", "of_e5m2", "to_e5m2"},
    [MGX_FP8E5M2FNUZ] = {GPU_NONE, "u8", "of_e5m2fnuz", "to_e5m2fnuz"},
    [MGX_FP4] = {GPU_NONE, "u8", "of_e2m1", "to_e2m1"},
    [MGX_FP8E8M0] = {GPU_NONE, "u8", "of_e8m0", "to_e8m0"},
};

bool gpu_type_is_elementwise(enum mgx_type type)
{
    return rows[type].memory != NULL;
}

enum gpu_class gpu_type_class(enum mgx_type type)
{
    return rows[type].class;
}

const char *gpu_type_memory(enum mgx_type type)
{
    assert(rows[type].memory);
    return rows[type].memory;
}

const char *gpu_type_value(enum mgx_type type)
{
    assert(rows[type].memory && mgx_source_type(type));
    return mgx_source_type(type);
}

void gpu_emit_widened(struct mgx_str *out, enum mgx_type type, const char *element)
{
    const struct row *r = &rows[type];
    if (r->widen)
        mgx_str_printf(out, "%s(%s)", r->widen, element);
    else
        mgx_str_printf(out, "(%s)%s", gpu_type_value(type), element);
}

void gpu_emit_narrowed(struct mgx_str *out, enum mgx_type type, const char *value)
{
    const struct row *r = &rows[type];
    mgx_str_printf(out, r->narrow ? "%s(%s)" : "(%s)(%s)", r->narrow ? r->narrow : r->memory,
                   value);
}

void gpu_emit_load(struct mgx_str *out, enum mgx_type type, const char *array, const char *at)
{
    char element[96];
    snprintf(element, sizeof element, "%s[%s]", array, at);
    gpu_emit_widened(out, type, element);
}

void gpu_emit_store(struct mgx_str *out, enum mgx_type type, const char *array, const char *at,
                    const char *value)
{
    mgx_str_printf(out, "%s[%s] = ", array, at);
    gpu_emit_narrowed(out, type, value);
    mgx_str_put(out, ";");
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

void gpu_define(struct mgx_str *out, const char *name, int64_t value)
{
    mgx_str_printf(out, "#define %s %" PRId64 "\n", name, value);
}

void gpu_define_real(struct mgx_str *out, const char *name, double value)
{
    mgx_str_printf(out, "#define %s ", name);
    gpu_emit_real(out, value);
    mgx_str_put(out, "\n");
}

void gpu_define_load(struct mgx_str *out, const char *type_name, const char *load,
                     enum mgx_type type, const char *array)
{
    if (type_name)
        mgx_str_printf(out, "#define %s %s\n", type_name, gpu_type_memory(type));
    mgx_str_printf(out, "#define %s(at) ", load);
    gpu_emit_load(out, type, array, "at");
    mgx_str_put(out, "\n");
}
