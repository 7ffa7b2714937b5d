// SPDX-License-Identifier: MIT
// Constant, ConstantOfShape, EyeLike, Range and the other operators that make values of nothing.
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "import/spans.h"
#include "onnx/build.h"

// --- Constant: exactly one of its attributes ---

// The bytes lie in the block of the literal: the program's arena goes when instructions move.
static struct mgx_ins *strings(struct mgx_node *n, const char *const *v, int count, bool scalar)
{
    assert(count >= 0);
    struct mgx_diag *diag = &n->module->program->diag;
    const struct mgx_shape shape =
        scalar ? mgx_shape_scalar(MGX_STRING) : mgx_shape_vector(MGX_STRING, count);
    struct mgx_string *list = calloc((size_t)count + 1, sizeof *list);
    if (!list) {
        mgx_fail_memory(diag);
        return NULL;
    }
    for (int i = 0; i < count; i++)
        list[i] = (struct mgx_string){v[i], strlen(v[i])};
    const struct mgx_tensor lent = mgx_tensor_borrow(&shape, list);
    struct mgx_tensor own = {0};
    const enum mgx_status status = mgx_tensor_clone(&own, &lent, diag);
    free(list);
    struct mgx_ins *ins = status == MGX_OK ? mgx_add_literal(n->module, &own) : NULL;
    mgx_tensor_release(&own);
    return ins;
}

// Exactly one of the attributes says what the constant is.
static enum mgx_status check_one_value(struct mgx_node *n)
{
    static const char *const names[] = {"value",        "sparse_value", "value_int",
                                        "value_float",  "value_ints",   "value_floats",
                                        "value_string", "value_strings"};
    const char *found = NULL;
    for (int i = 0; i < MGX_COUNT(names); i++) {
        if (!mgx_onnx_has(n, names[i]))
            continue;
        if (found)
            return mgx_node_invalid(n, "has both %s and %s", found, names[i]);
        found = names[i];
    }
    return found ? MGX_OK : mgx_node_invalid(n, "has none of the value attributes");
}

static enum mgx_status constant(struct mgx_node *n)
{
    TRY(check_one_value(n));
    const struct mgx_ints ints = mgx_onnx_ints(n, "value_ints");
    const struct mgx_doubles reals = mgx_onnx_reals(n, "value_floats");
    const struct mgx_strings texts = mgx_onnx_texts(n, "value_strings");
    const struct mgx_shape int_vector = mgx_shape_vector(MGX_INT64, ints.count);
    const struct mgx_shape real_vector = mgx_shape_vector(MGX_FLOAT, reals.count);
    const struct mgx_shape int_scalar = mgx_shape_scalar(MGX_INT64);
    if (mgx_onnx_has(n, "value"))
        n->out[0] = mgx_onnx_tensor(n, "value");
    else if (mgx_onnx_has(n, "sparse_value"))
        n->out[0] = mgx_onnx_tensor(n, "sparse_value");
    else if (mgx_onnx_has(n, "value_int"))
        n->out[0] = mgx_build_ints(n, &int_scalar, (int64_t[]){mgx_onnx_int(n, "value_int", 0)});
    else if (mgx_onnx_has(n, "value_float"))
        n->out[0] = mgx_build_scalar(n, MGX_FLOAT, mgx_onnx_real(n, "value_float", 0));
    else if (mgx_onnx_has(n, "value_ints"))
        n->out[0] = mgx_build_ints(n, &int_vector, ints.v);
    else if (mgx_onnx_has(n, "value_floats"))
        n->out[0] = mgx_build_doubles(n, &real_vector, reals.v);
    else if (mgx_onnx_has(n, "value_string"))
        n->out[0] =
            strings(n, (const char *const[]){mgx_onnx_text(n, "value_string", "")}, 1, true);
    else
        n->out[0] = strings(n, texts.v, texts.count, false);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_constant_ = {.name = "Constant", .import = constant};

// --- ConstantOfShape ---

static enum mgx_status constant_of_shape(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    struct mgx_ins *value =
        mgx_onnx_has(n, "value") ? mgx_onnx_tensor(n, "value") : mgx_build_scalar(n, MGX_FLOAT, 0);
    struct mgx_ints dims = {0};
    if (!value)
        return MGX_OK;
    if (mgx_shape_elements(&value->shape) != 1)
        return mgx_node_invalid(n, "value has %lld elements, not 1",
                                (long long)mgx_shape_elements(&value->shape));
    value = mgx_build_reshape(n, value, (int64_t[]){1}, 1);
    if (!mgx_node_constant_ints(n, 0, &dims)) {
        if (!mgx_build_is_static(n->in[0]))
            return mgx_onnx_defer(n);
        n->out[0] = mgx_build_emit(n, &mgx_op_broadcast_with_dims, NULL, MGX_IN(value, n->in[0]));
        return MGX_OK;
    }
    if (dims.count > MGX_MAX_RANK)
        return mgx_node_unsupported(n, "rank %d is above %d", dims.count, MGX_MAX_RANK);
    if (dims.count == 0)
        n->out[0] = mgx_build_squeeze(n, value, (int64_t[]){0}, 1);
    else
        n->out[0] = mgx_build_expand(n, value, dims.count, dims.v);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_constant_of_shape = {.name = "ConstantOfShape",
                                                       .import = constant_of_shape,
                                                       .result = "v",
                                                       .result_attribute = "value"};

// --- Expand ---

static enum mgx_status expand(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    struct mgx_ins *x = n->in[0];
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    struct mgx_ints dims = {0};
    if (!mgx_node_constant_ints(n, 1, &dims) || !mgx_build_is_static(x)) {
        if (!mgx_build_is_static(n->in[1]))
            return mgx_onnx_defer(n);
        n->out[0] = mgx_build_emit(n, &mgx_op_broadcast_with_dims, NULL, MGX_IN(x, n->in[1]));
        return MGX_OK;
    }
    if (dims.count > MGX_MAX_RANK)
        return mgx_node_unsupported(n, "rank %d is above %d", dims.count, MGX_MAX_RANK);
    struct mgx_shape target = mgx_shape_make(x->shape.type, dims.count, dims.v);
    int rank = 0;
    int64_t lens[MGX_MAX_RANK];
    if (!mgx_build_common_lens(&x->shape, &target, &rank, lens))
        return mgx_node_invalid(n, "the input does not broadcast to the given shape");
    n->out[0] = mgx_build_expand(n, x, rank, lens);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_expand = {
    .name = "Expand", .import = expand, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};

// --- EyeLike ---

static enum mgx_status eye_like(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    struct mgx_ins *x = n->in[0];
    enum mgx_type type = x->shape.type;
    if (mgx_onnx_has(n, "dtype"))
        TRY(mgx_onnx_type(n, mgx_onnx_int(n, "dtype", 1), &type));
    if (!mgx_build_is_static(x))
        return mgx_onnx_defer(n);
    if (x->shape.rank != 2)
        return mgx_node_invalid(n, "input has rank %d, not 2", x->shape.rank);
    const int64_t rows = x->shape.lens[0], columns = x->shape.lens[1];
    const int64_t k = mgx_onnx_int(n, "k", 0);
    struct mgx_ins *row = mgx_build_iota(n, MGX_INT64, rows);
    row = row ? mgx_build_per_axis(n, row, 0, 2) : NULL;
    struct mgx_ins *column = mgx_build_iota(n, MGX_INT64, columns);
    if (k > columns || k < -rows) { // off the matrix
        n->out[0] = mgx_build_filled(n, type, 2, x->shape.lens, 0);
        return MGX_OK;
    }
    n->out[0] = mgx_build_convert(
        n, mgx_build_equal(n, column, mgx_build_with(n, &mgx_op_add, row, (double)k)), type);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_eye_like = {
    .name = "EyeLike", .import = eye_like, .result = "@0", .result_attribute = "dtype"};

// --- Range ---

enum { RANGE_LIMIT = 1 << 24 }; // longer constant ones are made at run time

static double at(enum mgx_type type, const double *v, int64_t i)
{
    assert(i >= 0);
    return type == MGX_FLOAT ? (double)((float)v[0] + (float)((float)i * (float)v[2]))
                             : v[0] + (double)i * v[2];
}

static bool is_constant_one(struct mgx_node *n, int input)
{
    double value;
    return mgx_build_constant_double(n, input, &value) && value == 1;
}

// As long as an axis of which the name is known.
static void name_length(struct mgx_node *n)
{
    struct mgx_dim length[MGX_MAX_RANK];
    int count = 0;
    struct mgx_ins *way = mgx_build_way(n, n->in[0], n->in[1]);
    if (way && mgx_build_spans(way, length, &count) && count == 1 &&
        (length[0].name || length[0].min == length[0].max))
        n->out[0] = mgx_build_reshape_by(n, n->out[0], way);
}

static enum mgx_status range(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 3, 3));
    double v[3]; // start, limit, delta: exact, as integers beyond 2^53 have no use here
    bool known = true;
    for (int i = 0; i < 3; i++)
        known &= mgx_build_constant_double(n, i, &v[i]) && fabs(v[i]) < 0x1p53;
    const double count = known ? fmax(ceil((v[1] - v[0]) / v[2]), 0) : 0;
    if (known && v[2] == 0)
        return mgx_node_invalid(n, "delta is 0");
    if (!known || !(count <= RANGE_LIMIT)) {
        n->out[0] = mgx_build_emit_n(n, &mgx_op_dynamic_range, NULL, n->in, 3);
        if (is_constant_one(n, 2)) // positions of new tokens: from the past to past + tokens
            name_length(n);
        return MGX_OK;
    }
    const enum mgx_type type = n->in[0]->shape.type;
    const struct mgx_shape shape = mgx_shape_vector(type, (int64_t)count);
    double *values = MGX_NEW_ARRAY(n->scratch, double, shape.lens[0]);
    if (!values)
        return mgx_fail_memory(n->diag);
    for (int64_t i = 0; i < shape.lens[0]; i++)
        values[i] = at(type, v, i);
    n->out[0] = mgx_build_doubles(n, &shape, values);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_range = {.name = "Range", .import = range};

// --- Trilu ---

// As long as the axis, by name.
static struct mgx_ins *named_indices(struct mgx_node *n, struct mgx_ins *x, int axis)
{
    struct mgx_ins *indices = mgx_build_indices(n, x, axis);
    return mgx_build_fixed_dim(x, axis)
               ? indices
               : mgx_build_reshape_by(n, indices, mgx_build_dim(n, x, axis));
}

static enum mgx_status trilu(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 2));
    struct mgx_ins *x = n->in[0];
    const int rank = mgx_build_rank(x);
    if (rank < 0)
        return mgx_onnx_defer(n);
    if (rank < 2)
        return mgx_node_invalid(n, "input has rank %d, below 2", rank);
    const double rows = (double)mgx_shape_dim(&x->shape, rank - 2).max,
                 columns = (double)mgx_shape_dim(&x->shape, rank - 1).max;
    const bool upper = mgx_onnx_int(n, "upper", 1) != 0;
    struct mgx_ins *row = named_indices(n, x, rank - 2);
    row = row ? mgx_build_per_axis(n, row, 0, 2) : NULL;
    struct mgx_ins *column = named_indices(n, x, rank - 1);
    struct mgx_ins *k = mgx_node_in(n, 1);
    struct mgx_ins *edge = row;
    if (k) { // the diagonal as a scalar, wherever it comes from; far outside it is as good as next
             // to the matrix
        k = mgx_build_rank(k) ? mgx_build_reshape(n, k, (int64_t[]){1}, 0) : k;
        k = mgx_build_clamp(n, k, -rows, columns);
        edge = mgx_build_add(n, row, k);
    }
    struct mgx_ins *drop =
        upper ? mgx_build_less(n, column, edge) : mgx_build_greater(n, column, edge);
    n->out[0] = mgx_build_where(n, drop, mgx_build_like(n, x, 0), x);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_trilu = {
    .name = "Trilu", .import = trilu, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};
