// SPDX-License-Identifier: MIT
// Values from nowhere: Const, Placeholder, Fill, ZerosLike, OnesLike, Range, LinSpace.
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "tf/graph.h"

static enum mgx_status constant(struct mgx_node *n)
{
    n->out[0] = mgx_tf_tensor(n, "value");
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_const = {.name = "Const", .import = constant};

// --- Placeholder ---

// The channel axis of a rank 4 input comes second in its parameter.
static void channels_first(int64_t *lens)
{
    const int64_t nchw[4] = {lens[0], lens[3], lens[1], lens[2]};
    memcpy(lens, nchw, sizeof nchw);
}

static bool lens_fit(const int64_t *declared, const int64_t *given, int rank)
{
    for (int i = 0; i < rank; i++)
        if (declared[i] >= 0 && declared[i] != given[i])
            return false;
    return true;
}

// Sizes given by the caller are the parameter's, whatever the input declares, its rank included;
// those that fit a declaration of rank 4 only in TensorFlow's order are taken to be in it.
static enum mgx_status given_lens(struct mgx_node *n, const struct mgx_tf_dims *given, bool turn,
                                  int *rank, int64_t *lens)
{
    int64_t declared[MGX_MAX_RANK];
    const bool comparable = turn && *rank == 4;
    memcpy(declared, lens, sizeof declared);
    for (size_t i = 0; i < given->count; i++) {
        if (given->dims[i] > (size_t)MGX_DIM_ANY)
            return mgx_node_invalid(n, "size %zu of axis %zu", given->dims[i], i);
        lens[i] = (int64_t)given->dims[i];
    }
    *rank = (int)given->count;
    if (!comparable)
        return MGX_OK;
    const bool in_tf_order = lens_fit(declared, lens, 4);
    channels_first(declared);
    if (in_tf_order && !lens_fit(declared, lens, 4))
        channels_first(lens);
    return MGX_OK;
}

static const struct mgx_tf_dims *find_given(const struct mgx_tf_options *o, const char *name)
{
    for (size_t i = 0; i < o->input_count; i++)
        if (strcmp(o->inputs[i].name, name) == 0)
            return &o->inputs[i];
    return NULL;
}

// An input of this name, with the options applied to what it declares (rank -1: nothing); in
// TensorFlow's order of axes. NULL with a failure.
static struct mgx_ins *parameter(struct mgx_node *n, const char *name, enum mgx_type type, int rank,
                                 int64_t lens[MGX_MAX_RANK])
{
    const struct mgx_tf_options *o = &n->tf->import->options;
    const struct mgx_tf_dims *given = find_given(o, name);
    const bool turn = o->nhwc && (given ? given->count == 4 : rank == 4);
    if (given) {
        if (given_lens(n, given, turn, &rank, lens) != MGX_OK)
            return NULL;
    } else {
        for (int i = 0; i < rank; i++)
            lens[i] = lens[i] <= 0 ? (int64_t)o->batch : lens[i];
        if (turn)
            channels_first(lens);
    }
    const struct mgx_shape shape =
        rank < 0 ? mgx_shape_unranked(type) : mgx_shape_make(type, rank, lens);
    if (rank >= 0 && mgx_shape_check(&shape, n->diag) != MGX_OK)
        return NULL;
    if (rank < 0 && !n->tf->import->shapeless)
        n->tf->import->shapeless = mgx_arena_strdup(&n->tf->import->arena, name);
    struct mgx_ins *x = mgx_add_parameter(mgx_program_main(n->module->program), name, &shape);
    return turn ? mgx_build_transpose(n, x, (int64_t[]){0, 2, 3, 1}, 4) : x;
}

static enum mgx_status placeholder(struct mgx_node *n)
{
    int rank;
    int64_t lens[MGX_MAX_RANK];
    const struct mgx_tf_graph *g = n->tf;
    if (g->up)
        return mgx_node_invalid(n, "a placeholder inside a function");
    if (g->effects) { // the name of a file to restore from
        n->out[0] = mgx_tf_new_handle(n, (struct mgx_tf_handle){.kind = MGX_TF_NOTHING});
        return MGX_OK;
    }
    TRY(mgx_tf_shape(n, "shape", &rank, lens));
    const char *name = mgx_map_find(&g->import->inputs, n->name);
    n->out[0] = parameter(n, name ? name : n->name, mgx_tf_type(n, "dtype", MGX_FLOAT), rank, lens);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_placeholder = {.name = "Placeholder", .import = placeholder};
const struct mgx_tf_op mgx_tf_placeholder_v2 = {.name = "PlaceholderV2", .import = placeholder};

// --- filled ---

static enum mgx_status fill(struct mgx_node *n)
{
    struct mgx_ints dims;
    int64_t lens[MGX_MAX_RANK];
    TRY(mgx_node_need(n, 2, 2));
    TRY(mgx_tf_need_ints(n, 0, "dims", &dims));
    if (dims.count > MGX_MAX_RANK)
        return mgx_node_invalid(n, "rank %d is above %d", dims.count, MGX_MAX_RANK);
    memcpy(lens, dims.v, (size_t)dims.count * sizeof *lens);
    struct mgx_shape shape = mgx_shape_make(n->in[1]->shape.type, dims.count, lens);
    TRY(mgx_shape_check(&shape, n->diag));
    n->out[0] = mgx_build_expand(n, n->in[1], dims.count, lens);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_fill = {.name = "Fill", .import = fill};

static enum mgx_status filled_like(struct mgx_node *n, double value)
{
    TRY(mgx_node_need(n, 1, 1));
    TRY(mgx_tf_need_static(n));
    const struct mgx_shape *s = &n->in[0]->shape;
    n->out[0] = mgx_build_filled(n, s->type, s->rank, s->lens, value);
    return MGX_OK;
}

static enum mgx_status zeros_like(struct mgx_node *n)
{
    return filled_like(n, 0);
}
const struct mgx_tf_op mgx_tf_zeros_like = {.name = "ZerosLike", .import = zeros_like};

static enum mgx_status ones_like(struct mgx_node *n)
{
    return filled_like(n, 1);
}
const struct mgx_tf_op mgx_tf_ones_like = {.name = "OnesLike", .import = ones_like};

// --- rows of numbers ---

static enum mgx_status line(struct mgx_node *n, enum mgx_type type, double start, double step,
                            double count)
{
    struct mgx_tensor t = {0};
    if (!(count >= 0 && count <= (double)INT32_MAX))
        return mgx_node_invalid(n, "%g values", count);
    const struct mgx_shape shape = mgx_shape_vector(type, (int64_t)count);
    TRY(mgx_build_create(n, &shape, &t));
    for (int64_t i = 0; i < shape.lens[0]; i++)
        mgx_store_double(type, t.data, i, start + (double)i * step);
    n->out[0] = mgx_add_literal(n->module, &t);
    mgx_tensor_release(&t);
    return MGX_OK;
}

// Integers as such: a double does not hold all of them.
static enum mgx_status whole_range(struct mgx_node *n, enum mgx_type type, const int64_t *v)
{
    int64_t way;
    if (v[2] == 0)
        return mgx_node_invalid(n, "delta is 0");
    if (v[2] == INT64_MIN || !mgx_sub_i64(v[1], v[0], &way) || way == INT64_MIN)
        return mgx_node_invalid(n, "from %lld to %lld by %lld", (long long)v[0], (long long)v[1],
                                (long long)v[2]);
    const int64_t count = mgx_max_i64(way / v[2] + (way % v[2] != 0 && (way < 0) == (v[2] < 0)), 0);
    if (count > INT32_MAX)
        return mgx_node_invalid(n, "%lld values", (long long)count);
    const struct mgx_shape shape = mgx_shape_vector(type, count);
    struct mgx_tensor t = {0};
    TRY(mgx_build_create(n, &shape, &t));
    for (int64_t i = 0; i < count; i++)
        mgx_store_int(type, t.data, i, v[0] + i * v[2]);
    n->out[0] = mgx_add_literal(n->module, &t);
    mgx_tensor_release(&t);
    return MGX_OK;
}

static enum mgx_status range(struct mgx_node *n)
{
    double v[3];
    int64_t whole[3];
    TRY(mgx_node_need(n, 3, 3));
    const enum mgx_type type = n->in[0]->shape.type;
    if (!mgx_type_is_float(type) && mgx_build_constant_int(n, 0, &whole[0]) &&
        mgx_build_constant_int(n, 1, &whole[1]) && mgx_build_constant_int(n, 2, &whole[2]))
        return whole_range(n, type, whole);
    bool known = true;
    for (int i = 0; i < 3; i++)
        known = known && mgx_build_constant_double(n, i, &v[i]);
    if (!known) {
        n->out[0] = mgx_build_emit_n(n, &mgx_op_dynamic_range, NULL, n->in, 3);
        return MGX_OK;
    }
    if (v[2] == 0)
        return mgx_node_invalid(n, "delta is 0");
    return line(n, type, v[0], v[2], fmax(ceil((v[1] - v[0]) / v[2]), 0));
}
const struct mgx_tf_op mgx_tf_range = {.name = "Range", .import = range};

static enum mgx_status lin_space(struct mgx_node *n)
{
    double start, stop;
    int64_t count = 0;
    TRY(mgx_node_need(n, 3, 3));
    TRY(mgx_tf_need_real(n, 0, "start", &start));
    TRY(mgx_tf_need_real(n, 1, "stop", &stop));
    TRY(mgx_tf_need_int(n, 2, "num", &count));
    return line(n, n->in[0]->shape.type, start,
                count > 1 ? (stop - start) / (double)(count - 1) : 0, (double)count);
}
const struct mgx_tf_op mgx_tf_lin_space = {.name = "LinSpace", .import = lin_space};
