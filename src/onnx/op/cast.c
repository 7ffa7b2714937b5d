// SPDX-License-Identifier: MIT
// Cast and CastLike. To the float8 types values beyond the largest become that one unless
// saturate=0; to float8e8m0, powers of two, round_mode says which neighbour is taken.
#include <assert.h>
#include <string.h>

#include "onnx/build.h"

static bool saturates(enum mgx_type from, enum mgx_type to)
{
    return mgx_type_is_fp8(to) && mgx_type_is_number(from);
}

// Values and infinities beyond the range of `type` brought to its ends; NaN stays.
static struct mgx_ins *into_range(struct mgx_node *n, struct mgx_ins *x, enum mgx_type type)
{
    assert(mgx_type_is_number(type));
    if (x->shape.type == MGX_FLOAT || x->shape.type == MGX_DOUBLE ||
        mgx_type_is_half_or_bf16(x->shape.type))
        return mgx_build_clamp(n, x, mgx_type_lowest(type), mgx_type_highest(type));
    return mgx_build_clamp(n, mgx_build_convert(n, x, MGX_FLOAT), mgx_type_lowest(type),
                           mgx_type_highest(type));
}

static enum mgx_status cast(struct mgx_node *n, enum mgx_type type)
{
    struct mgx_ins *x = n->in[0];
    const enum mgx_type from = x->shape.type;
    if (from == type) {
        n->out[0] = mgx_build_unary(n, &mgx_op_identity, x);
        return MGX_OK;
    }
    if (type == MGX_FP8E8M0) {
        n->out[0] =
            mgx_build_emit(n, &mgx_op_convert_e8m0,
                           MGX_ATTRS(mgx_text("rounding", mgx_onnx_text(n, "round_mode", "up")),
                                     mgx_int("saturate", mgx_onnx_int(n, "saturate", 1) != 0)),
                           MGX_IN(x));
        return MGX_OK;
    }
    if (saturates(from, type) && mgx_onnx_int(n, "saturate", 1)) {
        if (mgx_build_rank(x) < 0)
            return mgx_onnx_defer(n);
        x = into_range(n, x, type);
    }
    const bool tiny =
        type == MGX_INT4 || type == MGX_UINT4 || type == MGX_INT2 || type == MGX_UINT2;
    if (tiny && mgx_type_is_float(from)) // wraps as integers do, where convert would saturate
        x = mgx_build_convert(n, x, MGX_INT32);
    n->out[0] = mgx_build_convert(n, x, type);
    return MGX_OK;
}

// Before opset 6 the type was given by name.
static enum mgx_status type_by_name(struct mgx_node *n, enum mgx_type *out)
{
    static const char *const names[] = {"",        "FLOAT",  "UINT8",  "INT8",   "UINT16",
                                        "INT16",   "INT32",  "INT64",  "STRING", "BOOL",
                                        "FLOAT16", "DOUBLE", "UINT32", "UINT64"};
    const char *name = mgx_onnx_text(n, "to", "");
    for (int i = 1; i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(names[i], name) == 0)
            return mgx_onnx_type(n, i, out);
    return mgx_node_invalid(n, "type \"%s\" is unknown", name);
}

static enum mgx_status import_cast(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    enum mgx_type type = MGX_FLOAT;
    if (!mgx_onnx_has(n, "to"))
        return mgx_node_invalid(n, "attribute \"to\" is missing");
    if (n->opset < 6)
        TRY(type_by_name(n, &type));
    else
        TRY(mgx_onnx_type(n, mgx_onnx_int(n, "to", 0), &type));
    return cast(n, type);
}
const struct mgx_onnx_op mgx_onnx_cast = {.name = "Cast",
                                          .import = import_cast,
                                          .takes = MGX_ONNX_TEXT,
                                          .result = "@f",
                                          .result_attribute = "to"};

static enum mgx_status cast_like(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    return cast(n, n->in[1]->shape.type);
}
const struct mgx_onnx_op mgx_onnx_cast_like = {
    .name = "CastLike", .import = cast_like, .takes = MGX_ONNX_TEXT, .result = "1"};
