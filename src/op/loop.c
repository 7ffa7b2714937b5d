// SPDX-License-Identifier: MIT
// loop: a body run again and again, carrying values and collecting others.
//
//     for (i = 0; i < trip && cond; i++)  (cond, carried..., row...) = body(i, cond, carried...)
//     y = (carried..., rows stacked along a new first axis...)
//
// Inputs: trip count, condition, initial carried values. An absent trip count is the largest int64;
// max_iterations bounds it then (0: no bound of its own). Rows stack in true number, not padded;
// direction 1 stacks from the end. Carried values may change shape from one iteration to the next.
// Cost: the body's, plus one copy of each collected row.
#include "base/size.h"

#include <assert.h>

#include "op/rule/body.h"

struct loop {
    int64_t max_iterations;
    struct mgx_ints scan_output_directions;
};

static const struct mgx_field fields[] = {
    MGX_INT(struct loop, max_iterations), MGX_INTS(struct loop, scan_output_directions), {0}};

// The rounds it may make at most, MGX_DIM_ANY if nothing says; and whether it makes just as many,
// since the body hands its condition through.
static int64_t most_rounds(const struct mgx_shape_call *c, bool *exactly)
{
    const int64_t limit = ((const struct loop *)c->attr)->max_iterations;
    int64_t most = limit > 0 ? mgx_min_i64(limit, MGX_DIM_ANY) : MGX_DIM_ANY;
    *exactly = false;
    if (!c->values || !c->values[0] || mgx_shape_elements(&c->values[0]->shape) != 1)
        return most;
    const int64_t trip = mgx_load_int(c->in[0]->type, c->values[0]->data, 0);
    most = mgx_min_i64(most, mgx_max_i64(trip, 0));
    if (!c->values[1] || mgx_shape_elements(&c->values[1]->shape) != 1)
        return most;
    if (mgx_load_int(c->in[1]->type, c->values[1]->data, 0) == 0)
        most = 0;
    const struct mgx_ins *cond = mgx_module_result(c->mod[0], 0);
    const bool always = cond->literal && mgx_shape_elements(&cond->shape) == 1 &&
                        mgx_load_int(cond->shape.type, cond->literal->data, 0);
    struct mgx_ins *params[2];
    const bool through = mgx_module_parameters(c->mod[0], params, 2) >= 2 && cond == params[1];
    *exactly = most < MGX_DIM_ANY && trip < INT64_MAX && (always || through);
    return most;
}

static enum mgx_status row_shape(struct mgx_shape_call *c, const struct mgx_shape *row,
                                 bool exactly, int64_t rounds, struct mgx_shape *out)
{
    if (row->type == MGX_SEQUENCE || row->type == MGX_TUPLE)
        return mgx_fail(c->diag, MGX_INVALID, "loop: rows are tensors, the body makes one a %s",
                        mgx_type_name(row->type));
    if (row->unranked) {
        *out = *row;
        return MGX_OK;
    }
    if (row->rank == MGX_MAX_RANK)
        return mgx_fail(c->diag, MGX_LIMIT, "loop: rows of rank %d cannot be stacked", row->rank);
    struct mgx_dim *dims = MGX_NEW_ARRAY(c->arena, struct mgx_dim, row->rank + 1);
    if (!dims)
        return mgx_fail_memory(c->diag);
    dims[0] = (struct mgx_dim){.min = exactly ? rounds : 0, .max = rounds};
    for (int i = 0; i < row->rank; i++)
        dims[i + 1] = mgx_shape_dim(row, i);
    *out = mgx_shape_from_dims(row->type, row->rank + 1, dims);
    return MGX_OK;
}

// The body is handed what run_round makes: a counter, a flag, and the values carried.
static enum mgx_status check_parameters(struct mgx_shape_call *c)
{
    const struct mgx_shape counter = mgx_shape_scalar(MGX_INT64), flag = mgx_shape_scalar(MGX_BOOL);
    const struct mgx_shape **given = MGX_NEW_ARRAY(c->arena, const struct mgx_shape *, c->in_count);
    if (!given)
        return mgx_fail_memory(c->diag);
    given[0] = &counter;
    given[1] = &flag;
    for (int i = 2; i < c->in_count; i++)
        given[i] = c->in[i];
    return mgx_body_takes(c, c->mod[0], given, c->in_count);
}

static enum mgx_status require_body(struct mgx_shape_call *c)
{
    if (c->mod_count != 1)
        return mgx_fail(c->diag, MGX_INVALID, "loop: takes one module, given %d", c->mod_count);
    if (!mgx_type_is_integral(c->in[0]->type))
        return mgx_fail(c->diag, MGX_INVALID, "loop: the trip count is %s, not an integer",
                        mgx_type_name(c->in[0]->type));
    TRY(check_parameters(c));
    const int results = mgx_module_result_count(c->mod[0]), carried = c->in_count - 2;
    if (results < 1 + carried)
        return mgx_fail(c->diag, MGX_INVALID, "loop: body has %d results, needs at least %d",
                        results, 1 + carried);
    return MGX_OK;
}

// What a value may be before the loop and behind the body.
static enum mgx_status carried_shape(struct mgx_shape_call *c, int i, const struct mgx_shape *body,
                                     struct mgx_shape *out)
{
    const struct mgx_shape *given = c->in[i + 2];
    if (given->type != body->type)
        return mgx_fail(c->diag, MGX_INVALID, "loop: carried value %d is %s, the body makes it %s",
                        i, mgx_type_name(given->type), mgx_type_name(body->type));
    return mgx_shape_join(c->arena, given, body, out) ? MGX_OK : mgx_fail_memory(c->diag);
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(require_body(c));
    const int results = mgx_module_result_count(c->mod[0]), carried = c->in_count - 2;
    struct mgx_shape *sub = MGX_NEW_ARRAY(c->arena, struct mgx_shape, results);
    if (!sub)
        return mgx_fail_memory(c->diag);
    bool exactly;
    const int64_t rounds = most_rounds(c, &exactly);
    for (int i = 0; i < results - 1; i++) {
        const struct mgx_shape *body = mgx_body_result(c->mod[0], i + 1);
        if (i < carried)
            TRY(carried_shape(c, i, body, &sub[i]));
        else
            TRY(row_shape(c, body, exactly, rounds, &sub[i]));
    }
    *out = mgx_shape_tuple(sub, results - 1);
    return MGX_OK;
}

// --- collected rows ---

struct rows {
    MGX_ARRAY(struct mgx_tensor);
};

static enum mgx_status push(struct mgx_compute_call *c, struct rows *r, struct mgx_tensor *take)
{
    assert(r->count >= 0);
    if (!MGX_PUSH(r, c->scratch, *take))
        return mgx_fail_memory(c->diag);
    *take = (struct mgx_tensor){0};
    return MGX_OK;
}

// Rows become one tensor; without any, one would be `foreseen` (ranges at their least), with 0 in
// front.
static enum mgx_status stack(struct mgx_compute_call *c, const struct rows *r,
                             const struct mgx_shape *foreseen, bool from_end,
                             struct mgx_tensor *out)
{
    const struct mgx_shape *row = r->count ? &r->v[0].shape : foreseen;
    int64_t lens[MGX_MAX_RANK + 1] = {r->count};
    if (row->rank >= MGX_MAX_RANK)
        return mgx_fail(c->diag, MGX_LIMIT, "loop: rows of rank %d cannot be stacked", row->rank);
    for (int i = 0; i < row->rank; i++)
        lens[i + 1] = mgx_shape_dim(row, i).min;
    const struct mgx_shape shape = mgx_shape_make(row->type, row->rank + 1, lens);
    TRY(mgx_tensor_create(out, &shape, c->diag));
    const int64_t step = shape.rank ? shape.strides[0] : 1;
    for (int64_t i = 0; i < r->count; i++) {
        if (!mgx_shape_same_lens(&r->v[i].shape, row) || r->v[i].shape.type != row->type) {
            mgx_tensor_release(out);
            return mgx_fail(c->diag, MGX_INVALID, "loop: rows 0 and %lld differ in shape",
                            (long long)i);
        }
        const struct mgx_shape slot = mgx_shape_make(row->type, row->rank, row->lens);
        struct mgx_tensor to =
            mgx_tensor_part(out, &slot, (from_end ? r->count - 1 - i : i) * step);
        mgx_tensor_copy(&r->v[i], &to);
    }
    return MGX_OK;
}

// --- the rounds ---

struct state {
    struct mgx_tensor *args; // iteration, condition, carried...
    struct rows *rows;
    struct mgx_arena scratch; // of one round, behind what stays
    struct mgx_arena_mark stays;
    int carried, row_count;
    int64_t iteration;
    bool cond;
};

static enum mgx_status first_state(struct mgx_compute_call *c, struct state *s)
{
    s->carried = c->in_count - 2;
    s->row_count = mgx_module_result_count(c->mod[0]) - 1 - s->carried;
    s->args = MGX_NEW_ARRAY(c->scratch, struct mgx_tensor, c->in_count);
    s->rows = MGX_NEW_ARRAY(c->scratch, struct rows, s->row_count);
    if (!s->args || !s->rows)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < s->carried; i++)
        s->args[i + 2] = mgx_tensor_share(c->in[i + 2]);
    return MGX_OK;
}

// The body may keep its counter (as a carried value or a row); then the next round gets another.
static enum mgx_status own(struct mgx_compute_call *c, struct mgx_tensor *t, enum mgx_type type)
{
    if (t->storage && atomic_load_explicit(&t->storage->refs, memory_order_acquire) == 1)
        return MGX_OK;
    const struct mgx_shape shape = mgx_shape_scalar(type);
    mgx_tensor_release(t);
    return mgx_tensor_create(t, &shape, c->diag);
}

static enum mgx_status start_round(struct mgx_compute_call *c, struct state *s)
{
    TRY(own(c, &s->args[0], MGX_INT64));
    TRY(own(c, &s->args[1], MGX_BOOL));
    *(int64_t *)s->args[0].data = s->iteration;
    *(unsigned char *)s->args[1].data = s->cond;
    return MGX_OK;
}

// What the body made: whether to go on, what is carried, the rows.
static enum mgx_status keep_results(struct mgx_compute_call *c, struct state *s,
                                    struct mgx_tensor *results)
{
    if (mgx_shape_elements(&results[0].shape) != 1)
        return mgx_fail(c->diag, MGX_INVALID, "loop: the body's condition has not one element");
    s->cond = mgx_load_int(results[0].shape.type, results[0].data, 0) != 0;
    for (int i = 0; i < s->carried; i++) {
        mgx_tensor_release(&s->args[i + 2]);
        s->args[i + 2] = results[i + 1];
        results[i + 1] = (struct mgx_tensor){0};
    }
    for (int i = 0; i < s->row_count; i++)
        TRY(push(c, &s->rows[i], &results[1 + s->carried + i]));
    return MGX_OK;
}

static enum mgx_status run_round(struct mgx_compute_call *c, struct state *s)
{
    TRY(mgx_eval_round(c));
    TRY(start_round(c, s));
    struct mgx_compute_call round = *c;
    round.scratch = &s->scratch;
    struct mgx_tensor *results;
    int count;
    TRY(mgx_body_run(&round, 0, s->args, c->in_count, &results, &count));
    const enum mgx_status status = keep_results(c, s, results);
    mgx_tensors_release(results, count);
    mgx_arena_rewind(&s->scratch, s->stays);
    return status;
}

// What the body's results would be in a round of what is carried now.
static enum mgx_status foresee(struct mgx_compute_call *c, const struct state *s,
                               const struct mgx_shape **results)
{
    static const struct mgx_shape counter = {.type = MGX_INT64}, flag = {.type = MGX_BOOL};
    const struct mgx_shape **given =
        MGX_NEW_ARRAY(c->scratch, const struct mgx_shape *, c->in_count);
    if (!given)
        return mgx_fail_memory(c->diag);
    given[0] = &counter;
    given[1] = &flag;
    for (int i = 0; i < s->carried; i++)
        given[i + 2] = &s->args[i + 2].shape;
    return mgx_body_foresee(c, 0, given, results);
}

static enum mgx_status finish(struct mgx_compute_call *c, struct state *s)
{
    const struct loop *a = c->attr;
    struct mgx_tensor *out =
        MGX_NEW_ARRAY(c->scratch, struct mgx_tensor, s->carried + s->row_count);
    const struct mgx_shape **body =
        MGX_NEW_ARRAY(c->scratch, const struct mgx_shape *, 1 + s->carried + s->row_count);
    if (!out || !body)
        return mgx_fail_memory(c->diag);
    if (s->iteration == 0 && s->row_count)
        TRY(foresee(c, s, body));
    for (int i = 0; i < s->carried; i++)
        out[i] = mgx_tensor_share(&s->args[i + 2]);
    enum mgx_status status = MGX_OK;
    for (int i = 0; i < s->row_count && status == MGX_OK; i++) {
        const bool from_end =
            i < a->scan_output_directions.count && a->scan_output_directions.v[i] == 1;
        status = stack(c, &s->rows[i], body[1 + s->carried + i], from_end, &out[s->carried + i]);
    }
    if (status != MGX_OK) {
        mgx_tensors_release(out, s->carried + s->row_count);
        return status;
    }
    return mgx_body_give(c, out, s->carried + s->row_count);
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct loop *a = c->attr;
    int64_t trip, cond;
    TRY(mgx_scalar_int(c, 0, &trip));
    TRY(mgx_scalar_int(c, 1, &cond));
    struct state s = {.cond = cond != 0};
    mgx_arena_init(&s.scratch);
    (void)!mgx_arena_alloc(&s.scratch, 1); // its block is every round's
    s.stays = mgx_arena_mark(&s.scratch);
    enum mgx_status status = first_state(c, &s);
    for (; status == MGX_OK && s.iteration < trip && s.cond; s.iteration++) {
        if (a->max_iterations > 0 && s.iteration >= a->max_iterations)
            status = trip == INT64_MAX ? MGX_LIMIT : MGX_OK;
        if (status == MGX_LIMIT)
            mgx_fail(c->diag, MGX_LIMIT, "loop: still running after %lld iterations",
                     (long long)a->max_iterations);
        if (a->max_iterations > 0 && s.iteration >= a->max_iterations)
            break;
        status = run_round(c, &s);
    }
    if (status == MGX_OK)
        status = finish(c, &s);
    if (s.args)
        mgx_tensors_release(s.args, c->in_count);
    for (int i = 0; s.rows && i < s.row_count; i++)
        mgx_tensors_release(s.rows[i].v, (int)s.rows[i].count);
    mgx_arena_fini(&s.scratch);
    return status;
}

// By the trip count and the condition.
static uint32_t sized_by(const struct mgx_ins *ins)
{
    return ins->in_count > 1 ? 3 : 0;
}

const struct mgx_op mgx_op_loop = {
    .name = "loop",
    .meaning = "body repeated while the condition holds, at most `trip` times",
    .fields = fields,
    .attr_size = sizeof(struct loop),
    .in_min = 2,
    .in_max = -1,
    .flags = MGX_OP_AGGREGATE | MGX_OP_UNRANKED,
    .shape = shape,
    .compute = compute,
    .sized_by = sized_by,
};
