// SPDX-License-Identifier: MIT
// If, Loop, Scan: bodies become modules.
//
// A carried value may change its shape from round to round. The body is imported for the shapes the
// values start with; where a result does not fit them, with shapes that allow for both, until
// nothing changes.
#include <string.h>

#include "base/size.h"
#include "onnx/build.h"
#include "onnx/graph.h"
#include "op/rule/rule.h"

// The members of a tuple as the node's results.
static enum mgx_status spread(struct mgx_node *n, struct mgx_ins *tuple, int count)
{
    if (count < n->out_count)
        return mgx_node_invalid(n, "the body has %d results for %d outputs", count, n->out_count);
    for (int i = 0; i < n->out_count; i++)
        n->out[i] = mgx_build_member(n, tuple, i);
    return MGX_OK;
}

// --- If ---

static enum mgx_status branch_in_place(struct mgx_node *n, const char *name)
{
    int inputs = 0, outputs = 0;
    TRY(mgx_onnx_body_counts(n, name, &inputs, &outputs));
    if (outputs != n->out_count)
        return mgx_node_invalid(n, "%s has %d results for %d outputs", name, outputs, n->out_count);
    return mgx_onnx_inline(n, name, NULL, 0, n->out, n->out_count);
}

// Both branches. One that does not fit the sizes given need not fit if it never runs: a model for
// two rates of samples has a branch for each. It fails when it does.
static enum mgx_status branches(struct mgx_node *n, struct mgx_module *mod[2])
{
    static const char *const names[2] = {"then_branch", "else_branch"};
    const char *why[2] = {NULL, NULL};
    mod[0] = mod[1] = NULL;
    for (int i = 0; i < 2; i++) {
        mod[i] = mgx_onnx_branch(n, names[i], &why[i]);
        if (!mod[i] && !why[i])
            return n->diag->status;
    }
    if (why[0] && why[1])
        return mgx_node_invalid(n, "%s", why[0]);
    for (int i = 0; i < 2; i++)
        if (why[i])
            mod[i] = mgx_onnx_failing_branch(n, names[i], mod[1 - i], why[i]);
    return MGX_OK;
}

static enum mgx_status import_if(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    const struct mgx_shape *asked = &n->in[0]->shape;
    if (mgx_shape_is_static(asked) && mgx_shape_elements(asked) != 1)
        return mgx_node_invalid(n, "the condition has %lld elements, not 1",
                                (long long)mgx_shape_elements(asked));
    int64_t condition = 0;
    if (mgx_build_constant_int(n, 0, &condition))
        return branch_in_place(n, condition ? "then_branch" : "else_branch");
    struct mgx_module *mod[2];
    TRY(branches(n, mod));
    if (!mod[0] || !mod[1])
        return MGX_OK; // the failure is recorded
    struct mgx_ins *y = mgx_build_emit_body(n, &mgx_op_if, NULL, n->in, 1, mod, 2);
    return y ? spread(n, y, mgx_module_result_count(mod[0])) : MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_if = {
    .name = "If", .import = import_if, .result = "B", .result_attribute = "then_branch"};

// --- carried values ---

// A carried optional that the body hands on as what it holds: made an optional again, so that the
// value is of one kind in every round.
static void wrap_optionals(struct mgx_module *body, const struct mgx_shape *shapes, int carried,
                           int first_result)
{
    const int count = mgx_module_result_count(body);
    struct mgx_ins **out = MGX_NEW_ARRAY(&body->program->arena, struct mgx_ins *, count);
    bool any = false;
    for (int i = 0; out && i < count; i++)
        out[i] = mgx_module_result(body, i);
    for (int i = 0; out && i < carried; i++) {
        struct mgx_ins **result = &out[first_result + i];
        if (shapes[i].type != MGX_TUPLE || (*result)->shape.type == MGX_TUPLE)
            continue;
        *result = mgx_emit(body, &mgx_op_optional_construct, NULL, MGX_IN(*result));
        any = true;
    }
    if (any)
        mgx_add_return(body, out, count);
}

// The body with parameters of shapes that hold in every round: `carried` of them from `first` on,
// whose results are the body's from `first_result` on.
static enum mgx_status import_body(struct mgx_node *n, struct mgx_shape *shapes, int count,
                                   int first, int carried, int first_result,
                                   struct mgx_module **out)
{
    *out = NULL;
    for (int round = 0; round <= MGX_WIDENINGS; round++) {
        struct mgx_module *body = mgx_onnx_body(n, "body", shapes, count);
        if (!body)
            return MGX_OK; // the failure is recorded
        if (mgx_module_result_count(body) < first_result + carried)
            return mgx_node_invalid(n, "the body has %d results, needs %d",
                                    mgx_module_result_count(body), first_result + carried);
        bool changed = false;
        wrap_optionals(body, shapes + first, carried, first_result);
        TRY(mgx_program_status(n->module->program, n->diag));
        for (int i = 0; i < carried; i++)
            TRY(mgx_build_widen(n, &mgx_module_result(body, first_result + i)->shape,
                                round + 1 >= MGX_WIDENINGS, &shapes[first + i], &changed));
        *out = body;
        if (!changed)
            return MGX_OK;
        mgx_program_remove_module(n->module->program, body);
    }
    return mgx_node_invalid(n, "carried values find no common shape");
}

// --- Loop ---

// A carried value that is declared as what the optional holds is taken out of it at the end.
static enum mgx_status loop_results(struct mgx_node *n, struct mgx_ins *y, struct mgx_module *body,
                                    int carried)
{
    TRY(spread(n, y, mgx_module_result_count(body) - 1));
    for (int i = 0; i < carried && i < n->out_count; i++) {
        const struct mgx_ins *result = mgx_module_result(body, i + 1);
        if (n->out[i] && mgx_is(result, &mgx_op_optional_construct) && result->in_count &&
            result->in[0]->shape.type != MGX_TUPLE && !result->origin.count)
            n->out[i] = mgx_build_unary(n, &mgx_op_optional_get_element, n->out[i]);
    }
    return MGX_OK;
}

// Exporters write a `while` with the largest trip count there is: as good as none.
static bool endless(struct mgx_node *n)
{
    int64_t trip;
    return mgx_build_constant_int(n, 0, &trip) && trip >= INT32_MAX;
}

// The trip count of a loop that has none, and the most rounds that any trip count may lead to (0:
// as many as it says), by what was asked for.
static void loop_bounds(struct mgx_node *n, bool has_trip, int64_t *trip, int64_t *most)
{
    const struct mgx_onnx_options *o = &n->graph->import->options;
    const bool limited = o->limit_loop_iterations != MGX_ONNX_LIMIT_LOOP;
    int64_t known;
    *trip = INT64_MAX;
    *most = limited || !has_trip ? o->limit_loop_iterations : 0;
    if (o->max_loop_iterations == MGX_ONNX_DEFAULT_LOOP ||
        (has_trip && mgx_build_constant_int(n, 0, &known)))
        return;
    const int64_t rounds = mgx_min_i64(o->max_loop_iterations, o->limit_loop_iterations);
    if (has_trip)
        *most = rounds;
    else
        *trip = rounds;
}

static enum mgx_status import_loop(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 0, -1));
    const int carried = n->in_count > 2 ? n->in_count - 2 : 0, count = carried + 2;
    struct mgx_shape *shapes = MGX_NEW_ARRAY(n->scratch, struct mgx_shape, count);
    struct mgx_ins **in = MGX_NEW_ARRAY(n->scratch, struct mgx_ins *, count);
    if (!shapes || !in)
        return mgx_fail_memory(n->diag);
    const struct mgx_shape number = mgx_shape_scalar(MGX_INT64);
    struct mgx_ins *trip = endless(n) ? NULL : mgx_node_in(n, 0);
    int64_t rounds, most;
    loop_bounds(n, trip != NULL, &rounds, &most);
    in[0] = trip ? trip : mgx_build_ints(n, &number, &rounds);
    in[1] = mgx_node_in(n, 1) ? n->in[1] : mgx_build_scalar(n, MGX_BOOL, 1);
    shapes[0] = number;
    shapes[1] = mgx_shape_scalar(MGX_BOOL);
    for (int i = 2; i < count; i++) {
        in[i] = n->in[i];
        if (!in[i])
            return mgx_node_invalid(n, "carried value %d is absent", i - 2);
        shapes[i] = mgx_build_plain(&in[i]->shape);
    }
    struct mgx_module *body = NULL;
    TRY(import_body(n, shapes, count, 2, carried, 1, &body));
    struct mgx_ins *y = mgx_build_emit_body(
        n, &mgx_op_loop, MGX_ATTRS(mgx_int("max_iterations", most)), in, count, &body, 1);
    return y ? loop_results(n, y, body, carried) : MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_loop = {.name = "Loop",
                                          .import = import_loop,
                                          .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX |
                                                   MGX_ONNX_SEQUENCE | MGX_ONNX_OPTIONAL,
                                          .result = "C",
                                          .result_attribute = "body"};

// --- Scan ---

struct scan {
    int states, sequences;
    struct mgx_ints input_axes, input_directions, output_axes, output_directions;
};

// A list has an entry for each, or none at all.
static enum mgx_status check_count(struct mgx_node *n, const char *name, struct mgx_ints list,
                                   int count)
{
    return !list.count || list.count == count
               ? MGX_OK
               : mgx_node_invalid(n, "%s has %d entries for %d", name, list.count, count);
}

static enum mgx_status check_directions(struct mgx_node *n, struct mgx_ints directions)
{
    for (int i = 0; i < directions.count; i++)
        if (directions.v[i] != 0 && directions.v[i] != 1)
            return mgx_node_invalid(n, "direction %d is %lld, neither 0 nor 1", i,
                                    (long long)directions.v[i]);
    return MGX_OK;
}

static enum mgx_status read_scan(struct mgx_node *n, int inputs, struct scan *s)
{
    const int64_t sequences = mgx_onnx_int(n, "num_scan_inputs", 0);
    if (sequences < 1 || sequences > inputs)
        return mgx_node_invalid(n, "num_scan_inputs is %lld for %d inputs", (long long)sequences,
                                inputs);
    s->sequences = (int)sequences;
    s->states = inputs - s->sequences;
    s->input_axes = mgx_onnx_ints(n, "scan_input_axes");
    s->input_directions = mgx_onnx_ints(n, n->opset < 9 ? "directions" : "scan_input_directions");
    s->output_axes = mgx_onnx_ints(n, "scan_output_axes");
    s->output_directions = mgx_onnx_ints(n, "scan_output_directions");
    TRY(check_count(n, "scan_input_axes", s->input_axes, s->sequences));
    TRY(check_count(n, "scan_input_directions", s->input_directions,
                    n->opset < 9 ? s->input_directions.count : s->sequences));
    TRY(check_directions(n, s->input_directions));
    return check_directions(n, s->output_directions);
}

// A shape without one of its axes.
static enum mgx_status without_axis(struct mgx_node *n, const struct mgx_shape *s, int axis,
                                    struct mgx_shape *out)
{
    struct mgx_dim *dims = MGX_NEW_ARRAY(&n->module->program->arena, struct mgx_dim, s->rank);
    if (!dims)
        return mgx_fail_memory(n->diag);
    for (int i = 0, k = 0; i < s->rank; i++)
        if (i != axis)
            dims[k++] = mgx_shape_dim(s, i);
    *out = mgx_shape_from_dims(s->type, s->rank - 1, dims);
    return MGX_OK;
}

// Emits one scan over `in`, states first; *results is how many it has.
static enum mgx_status emit_scan(struct mgx_node *n, const struct scan *s,
                                 struct mgx_ins *const *in, struct mgx_ins **out, int *results)
{
    const int count = s->states + s->sequences;
    struct mgx_shape *shapes = MGX_NEW_ARRAY(n->scratch, struct mgx_shape, count);
    if (!shapes)
        return mgx_fail_memory(n->diag);
    for (int i = 0; i < s->states; i++)
        shapes[i] = mgx_build_plain(&in[i]->shape);
    for (int i = s->states; i < count; i++) {
        int axis = 0;
        const int k = i - s->states, rank = mgx_build_rank(in[i]);
        TRY(mgx_build_axis(n, k < s->input_axes.count ? s->input_axes.v[k] : 0, rank, &axis));
        TRY(without_axis(n, &in[i]->shape, axis, &shapes[i]));
    }
    struct mgx_module *body = NULL;
    TRY(import_body(n, shapes, count, 0, s->states, 0, &body));
    if (!body)
        return MGX_OK;
    *results = mgx_module_result_count(body);
    TRY(check_count(n, "scan_output_axes", s->output_axes, *results - s->states));
    TRY(check_count(n, "scan_output_directions", s->output_directions, *results - s->states));
    *out = mgx_build_emit_body(
        n, &mgx_op_scan,
        MGX_ATTRS(
            mgx_int("num_scan_inputs", s->sequences),
            mgx_ints("scan_input_axes", s->input_axes.v, s->input_axes.count),
            mgx_ints("scan_input_directions", s->input_directions.v, s->input_directions.count),
            mgx_ints("scan_output_axes", s->output_axes.v, s->output_axes.count),
            mgx_ints("scan_output_directions", s->output_directions.v, s->output_directions.count)),
        in, count, &body, 1);
    return MGX_OK;
}

static enum mgx_status import_scan(struct mgx_node *n)
{
    TRY(mgx_node_need_all(n));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    struct scan s;
    struct mgx_ins *y = NULL;
    int results = 0;
    TRY(read_scan(n, n->in_count, &s));
    TRY(emit_scan(n, &s, n->in, &y, &results));
    return y ? spread(n, y, results) : MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_scan = {.name = "Scan",
                                          .since = 9,
                                          .import = import_scan,
                                          .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX,
                                          .result = "B",
                                          .result_attribute = "body"};

// --- Scan of opset 8: everything has a batch axis in front ---

// One batch entry of an input: a parameter of the module m.
static struct mgx_ins *entry_of(struct mgx_node *n, struct mgx_module *m, const struct mgx_ins *x,
                                int i)
{
    struct mgx_shape entry;
    if (without_axis(n, &x->shape, 0, &entry) != MGX_OK)
        return NULL;
    return mgx_add_parameter(m, mgx_arena_printf(n->scratch, "%s_entry_%d", m->name, i), &entry);
}

// The first `length` steps (a vector of one) of a sequence.
static struct mgx_ins *cut_steps(struct mgx_node *n, struct mgx_ins *x, struct mgx_ins *length)
{
    const int64_t zero = 0;
    return mgx_build_emit(n, &mgx_op_slice,
                          MGX_ATTRS(mgx_ints("axes", &zero, 1), mgx_ints("starts", &zero, 1)),
                          MGX_IN(x, length));
}

// Rows of a short sequence with zeros after them, as many as `like` has steps.
static struct mgx_ins *fill_steps(struct mgx_node *n, struct mgx_ins *rows, struct mgx_ins *length,
                                  struct mgx_ins *like)
{
    if (!rows || rows->shape.unranked)
        return rows;
    const int rank = rows->shape.rank;
    const int64_t zeros[2 * MGX_MAX_RANK] = {0};
    struct mgx_ins *steps = mgx_build_emit(
        n, &mgx_op_dimensions_of, MGX_ATTRS(mgx_int("start", 0), mgx_int("end", 1)), MGX_IN(like));
    struct mgx_ins *parts[3] = {mgx_build_literal_ints(n, zeros, rank),
                                mgx_build_sub(n, steps, length),
                                mgx_build_literal_ints(n, zeros, rank - 1)};
    struct mgx_ins *pads = mgx_build_concat(n, 0, parts, rank > 1 ? 3 : 2);
    return mgx_build_emit(n, &mgx_op_pad, NULL, MGX_IN(rows, pads));
}

// A module whose parameters are one batch entry of each input (and its number of steps, if those
// differ); the scan goes into it.
static enum mgx_status batch_body(struct mgx_node *n, const struct scan *s, struct mgx_module *m,
                                  int *results)
{
    const int count = s->states + s->sequences;
    struct mgx_node inner = *n; // emits into the entry's module
    struct mgx_ins **in = MGX_NEW_ARRAY(n->scratch, struct mgx_ins *, count), *length = NULL;
    inner.module = m;
    if (!in)
        return mgx_fail_memory(n->diag);
    for (int i = 0; i < count; i++)
        in[i] = entry_of(n, m, n->in[i + 1], i);
    struct mgx_ins *whole = in[s->states];
    if (n->in[0]) {
        length = entry_of(n, m, n->in[0], count);
        length = length ? mgx_build_reshape(&inner, length, (int64_t[]){1}, 1) : NULL;
        for (int i = s->states; i < count; i++)
            in[i] = cut_steps(&inner, in[i], length);
    }
    for (int i = 0; i < count; i++)
        if (!in[i])
            return mgx_program_status(n->module->program, n->diag);
    struct mgx_ins *tuple = NULL;
    TRY(emit_scan(&inner, s, in, &tuple, results));
    struct mgx_ins **members = MGX_NEW_ARRAY(n->scratch, struct mgx_ins *, *results);
    if (!members)
        return mgx_fail_memory(n->diag);
    for (int i = 0; i < *results; i++) {
        members[i] = mgx_build_member(&inner, tuple, i);
        if (length && i >= s->states)
            members[i] = fill_steps(&inner, members[i], length, whole);
    }
    mgx_add_return(m, members, *results);
    return MGX_OK;
}

static enum mgx_status check_scan_8(struct mgx_node *n)
{
    if (n->in_count < 2)
        return mgx_node_invalid(n, "%d inputs, at least 2 are needed", n->in_count);
    for (int i = 0; i < n->in_count; i++)
        if (i ? !n->in[i] || mgx_build_rank(n->in[i]) == 0
              : n->in[0] && mgx_build_rank(n->in[0]) != 1)
            return mgx_node_invalid(n, "input %d is absent or has the wrong rank", i);
    return MGX_OK;
}

// A scan over the batch whose body is the scan over steps.
static enum mgx_status import_scan_8(struct mgx_node *n)
{
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    TRY(check_scan_8(n));
    struct scan s;
    int results = 0, count = n->in_count - 1;
    TRY(read_scan(n, count, &s));
    struct mgx_module *m = mgx_program_add_module(
        n->module->program, mgx_arena_printf(n->scratch, "%s_batch", n->graph->label));
    struct mgx_ins **in = MGX_NEW_ARRAY(n->scratch, struct mgx_ins *, n->in_count);
    if (!m || !in)
        return mgx_fail_memory(n->diag);
    TRY(batch_body(n, &s, m, &results));
    memcpy(in, n->in + 1, (size_t)count * sizeof(struct mgx_ins *));
    if (n->in[0])
        in[count++] = n->in[0];
    struct mgx_ins *y = mgx_build_emit_body(
        n, &mgx_op_scan, MGX_ATTRS(mgx_int("num_scan_inputs", count)), in, count, &m, 1);
    return y ? spread(n, y, results) : MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_scan_8 = {.name = "Scan",
                                            .since = 8,
                                            .until = 8,
                                            .import = import_scan_8,
                                            .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX,
                                            .result = "B",
                                            .result_attribute = "body"};
