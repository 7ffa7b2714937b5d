// SPDX-License-Identifier: MIT
// Loops that certainly make so many rounds become those rounds.
//
//     scan[body](state, x of length T)          =>  body(state, x[0]), body(.., x[1]), ...
//     loop[body](literal trip, true, carried)   =>  body(0, true, carried), body(1, true, ..), ...
//     get_tuple_elem[i] of it                   =>  the last state, or the rows one after the other
//
// For targets that plan steps of fixed sizes and have none for a body: rounds of such a loop depend
// on each other, so a round is as long as its steps whoever starts them.
//
// Holds: everything is static, but for states that are sequences; the body makes its condition no
// shorter than the trip count, nobody reads the tuple but member by member, and what comes out is
// at most MOST instructions; bodies with bodies of their own wait until those are gone. O(rounds x
// instructions of the body).
#include <assert.h>

#include "base/size.h"
#include "op/op.h"
#include "pass/engine/constant.h"
#include "pass/engine/emit.h"
#include "pass/engine/walk.h"
#include "pass/pass.h"

enum { MOST = 8192 };

// A loop and its rounds so far.
struct rounds {
    struct mgx_ins *ins;
    struct mgx_module *body;
    struct mgx_arena *scratch;
    int64_t count;
    int states, rows;           // values handed round, rows that are collected
    int first_state;            // of the body's results
    struct mgx_ins **params;    // of the body
    struct mgx_ins **args;      // of the round at work
    struct mgx_ins **collected; // rows x count
    struct mgx_ins **made;      // by the number of a body's instruction: the round's own
};

// Where a state is among the arguments: behind the counter and the flag of a loop.
static int state_at(const struct rounds *r, int i)
{
    return i + 2 * r->first_state;
}

static int64_t pick(struct mgx_ints list, int i)
{
    return i < list.count ? list.v[i] : 0;
}

// --- what is unrolled ---

static bool is_plain(const struct mgx_ins *ins)
{
    return mgx_shape_is_static(&ins->shape) && mgx_type_is_number(ins->shape.type);
}

// A state may be a sequence too, or an optional one, which the rounds hand on.
static bool is_state(const struct mgx_ins *ins)
{
    return is_plain(ins) || ins->shape.type == MGX_SEQUENCE || ins->shape.type == MGX_TUPLE;
}

static bool body_is_flat(const struct mgx_module *body)
{
    for (const struct mgx_ins *ins = body->first; ins; ins = ins->next)
        if (ins->mod_count || (ins->op->flags & MGX_OP_IMPURE && !ins->op->expand) ||
            (ins->op->flags & MGX_OP_EFFECT && !(ins->op->flags & MGX_OP_BUILTIN)))
            return false;
    return true;
}

static int64_t trip_of_scan(const struct mgx_ins *ins)
{
    const int states = ins->in_count - (int)mgx_ins_int(ins, "num_scan_inputs");
    if (states >= ins->in_count || states < 0)
        return -1;
    const struct mgx_shape *x = &ins->in[states]->shape;
    const int64_t axis = pick(mgx_ins_ints(ins, "scan_input_axes"), 0);
    return mgx_shape_is_static(x) ? x->lens[axis < 0 ? axis + x->rank : axis] : -1;
}

// -1 where the condition may end it sooner.
static int64_t trip_of_loop(const struct mgx_ins *ins)
{
    double trip, go, always;
    struct mgx_ins *params[2];
    const struct mgx_ins *cond = mgx_module_result(ins->mod[0], 0);
    const int64_t limit = mgx_ins_int(ins, "max_iterations");
    if (!mgx_splat_value(ins->in[0], &trip) || !mgx_splat_value(ins->in[1], &go) || trip > MOST)
        return -1;
    while (mgx_is(cond, &mgx_op_identity))
        cond = cond->in[0];
    const bool through = mgx_module_parameters(ins->mod[0], params, 2) >= 2 && cond == params[1];
    if (!through && !(cond->literal && mgx_splat_value(cond, &always) && always != 0))
        return -1;
    const int64_t rounds = go == 0 ? 0 : (int64_t)trip;
    return limit > 0 ? mgx_min_i64(limit, rounds) : rounds;
}

// What the operator hands the body, and what that makes.
static bool describe(struct rounds *r)
{
    const struct mgx_ins *ins = r->ins;
    const bool scan = mgx_is(ins, &mgx_op_scan);
    r->body = ins->mod[0];
    r->count = scan ? trip_of_scan(ins) : trip_of_loop(ins);
    r->states = scan ? ins->in_count - (int)mgx_ins_int(ins, "num_scan_inputs") : ins->in_count - 2;
    r->first_state = scan ? 0 : 1;
    r->rows = mgx_module_result_count(r->body) - r->first_state - r->states;
    return r->count > 0 && r->rows >= 0 &&
           r->count * (r->body->count + 2 * ins->in_count + r->rows) <= MOST;
}

static bool suits(struct rounds *r)
{
    const struct mgx_ins *ins = r->ins;
    bool good = mgx_only_members_read(ins) && body_is_flat(ins->mod[0]) && describe(r) &&
                mgx_module_parameters(r->body, NULL, 0) == ins->in_count;
    for (int i = 0; i < ins->in_count && good; i++)
        good = i < state_at(r, r->states) && i >= state_at(r, 0) ? is_state(ins->in[i])
                                                                 : is_plain(ins->in[i]);
    for (int i = r->first_state + r->states; good && i < mgx_module_result_count(r->body); i++)
        good = is_plain(mgx_module_result(r->body, i));
    for (int i = 0; i < r->states && good; i++) { // a state keeps its shape
        const struct mgx_ins *from = ins->in[state_at(r, i)];
        const struct mgx_ins *to = mgx_module_result(r->body, r->first_state + i);
        good = is_plain(from) ? is_plain(to) && mgx_shape_same_lens(&from->shape, &to->shape)
                              : from->shape.type == to->shape.type;
    }
    return good;
}

// --- a round ---

// Position t of a sequence, without its axis.
static struct mgx_ins *cut(const struct rounds *r, int i, int64_t t)
{
    struct mgx_ins *x = r->ins->in[i];
    const int64_t given = pick(mgx_ins_ints(r->ins, "scan_input_axes"), i - r->states);
    const int axis = (int)(given < 0 ? given + x->shape.rank : given);
    if (pick(mgx_ins_ints(r->ins, "scan_input_directions"), i - r->states) == 1)
        t = r->count - 1 - t;
    int64_t lens[MGX_MAX_RANK];
    for (int k = 0, at = 0; k < x->shape.rank; k++)
        if (k != axis)
            lens[at++] = x->shape.lens[k];
    x = mgx_emit_slice(r->ins, x, axis, t, t + 1);
    return mgx_emit_reshape(r->ins, x, lens, r->ins->in[i]->shape.rank - 1);
}

static void set_arguments(struct rounds *r, int64_t t)
{
    const bool scan = r->first_state == 0;
    if (!scan) {
        r->args[0] = mgx_literal_double(r->ins->owner, r->params[0]->shape.type, (double)t);
        r->args[1] = mgx_literal_double(r->ins->owner, r->params[1]->shape.type, 1);
    }
    for (int i = r->states; scan && i < r->ins->in_count; i++)
        r->args[i] = cut(r, i, t);
}

// What stands for an instruction of the body in this round; what is captured stands for itself.
static struct mgx_ins *own(const struct rounds *r, struct mgx_ins *ins)
{
    return ins->owner == r->body ? r->made[ins->index] : ins;
}

// A literal of the body is one of the module around it, once for all rounds.
static struct mgx_ins *make(struct rounds *r, struct mgx_ins *from)
{
    struct mgx_ins **in = MGX_NEW_ARRAY(r->scratch, struct mgx_ins *, from->in_count);
    if (from->literal)
        return r->made[from->index] ? r->made[from->index]
                                    : mgx_add_literal(r->ins->owner, from->literal);
    for (int i = 0; in && i < from->in_count; i++)
        if (!(in[i] = own(r, from->in[i])))
            return NULL;
    struct mgx_ins *to =
        in ? mgx_insert(r->ins->owner, r->ins, from->op, from->attr, in, from->in_count, NULL, 0)
           : NULL;
    if (to)
        mgx_copy_origin(to, from);
    return to;
}

static bool run_round(struct rounds *r, int64_t t)
{
    set_arguments(r, t);
    for (int i = 0; i < r->ins->in_count; i++)
        r->made[r->params[i]->index] = r->args[i];
    for (struct mgx_ins *from = r->body->first; from; from = from->next)
        if (from->op != &mgx_op_param && from->op != &mgx_op_return &&
            from->op != &mgx_op_comment && !(r->made[from->index] = make(r, from)))
            return false;
    for (int i = 0; i < r->rows; i++)
        r->collected[i * r->count + t] =
            own(r, mgx_module_result(r->body, r->first_state + r->states + i));
    for (int i = 0; i < r->states; i++)
        r->args[state_at(r, i)] = own(r, mgx_module_result(r->body, r->first_state + i));
    return true;
}

// --- its results ---

static struct mgx_ins *stack(const struct rounds *r, int row)
{
    const bool scan = r->first_state == 0;
    struct mgx_ins **rows = r->collected + row * r->count;
    const struct mgx_shape *s = &rows[0]->shape;
    const int64_t given = scan ? pick(mgx_ins_ints(r->ins, "scan_output_axes"), row) : 0;
    const int axis = (int)(given < 0 ? given + s->rank + 1 : given);
    const bool turned = pick(mgx_ins_ints(r->ins, "scan_output_directions"), row) == 1;
    int64_t lens[MGX_MAX_RANK + 1];
    for (int k = 0, at = 0; k <= s->rank; k++)
        lens[k] = k == axis ? 1 : s->lens[at++];
    const int rank = s->rank + 1;
    for (int64_t t = 0; t < r->count; t++)
        rows[t] = mgx_emit_reshape(r->ins, rows[t], lens, rank);
    for (int64_t t = 0; turned && t < r->count / 2; t++) {
        struct mgx_ins *other = rows[t];
        rows[t] = rows[r->count - 1 - t];
        rows[r->count - 1 - t] = other;
    }
    return r->count == 1 ? rows[0] : mgx_emit_concat(r->ins, rows, (int)r->count, axis);
}

static bool hand_out(struct rounds *r)
{
    struct mgx_ins **results = MGX_NEW_ARRAY(r->scratch, struct mgx_ins *, r->states + r->rows);
    for (int i = 0; results && i < r->states; i++)
        results[i] = r->args[state_at(r, i)];
    for (int i = 0; results && i < r->rows; i++)
        if (!(results[r->states + i] = stack(r, i)))
            return false;
    for (struct mgx_use *use = r->ins->uses, *next; results && use; use = next) {
        next = use->next;
        struct mgx_ins *by = results[mgx_ins_int(use->user, "index")];
        if (use->user == use->user->owner->last)
            mgx_add_return(use->user->owner, &by, 1);
        mgx_replace_uses(use->user, by);
    }
    return results != NULL;
}

static bool unroll(struct rounds *r)
{
    const struct mgx_ins *ins = r->ins;
    mgx_module_number(r->body);
    r->params = MGX_NEW_ARRAY(r->scratch, struct mgx_ins *, ins->in_count);
    r->args = MGX_NEW_ARRAY(r->scratch, struct mgx_ins *, ins->in_count);
    r->made = MGX_NEW_ARRAY(r->scratch, struct mgx_ins *, r->body->count);
    r->collected = MGX_NEW_ARRAY(r->scratch, struct mgx_ins *, r->rows * r->count);
    if (!r->params || !r->args || !r->made || !r->collected)
        return false;
    mgx_module_parameters(r->body, r->params, ins->in_count);
    for (int i = 0; i < r->states; i++)
        r->args[state_at(r, i)] = ins->in[state_at(r, i)];
    for (int64_t t = 0; t < r->count; t++)
        if (!run_round(r, t))
            return false;
    return hand_out(r);
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    MGX_EACH (ins, m) {
        struct rounds r = {.ins = ins, .scratch = c->scratch};
        const bool loops = mgx_is(ins, &mgx_op_scan) || mgx_is(ins, &mgx_op_loop);
        if (!loops || ins->mod_count != 1 || !suits(&r))
            continue;
        if (!unroll(&r)) {
            TRY(mgx_program_status(c->program, c->diag));
            return mgx_fail_memory(c->diag);
        }
        c->changed = true;
    }
    return mgx_program_status(c->program, c->diag);
}

const struct mgx_pass mgx_pass_unroll = {
    .name = "unroll",
    .meaning = "loops that certainly make so many rounds become those rounds",
    .module = run,
    .by_size = true,
};
