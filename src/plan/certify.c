// SPDX-License-Identifier: MIT
// See certify.h. The rules:
//
//  1. Every value ends at a root, lies inside it, and has the lengths of its instruction's result.
//  2. Every operand of a step is where the step's address says: root, side, and the offsets of all
//     views on the way added up; bytes of a scratch block are inside it.
//  3. A step works on one side, but for a transfer, and its kernel's inputs and result are there.
//  4. A root is alive (first to last) at every step that touches it, and until the end if it is a
//     result whose size comes at run time; at every step of a bundle, if one of its steps touches it;
//     every slot is dropped once, by its last step. No bundle of several steps has a transfer, at which
//     a stretch ends: the steps behind it would run twice.
//  5. Of the scratch blocks, what a step writes (its result, its workspace) overlaps nothing that is
//     alive then, but for the input whose bytes the result takes over.
//
// Cost: steps times roots alive, for rule 5; beyond LOOKS of them it is asked of the first steps
// only.
#include "plan/certify.h"

#include <inttypes.h>

#include "op/op.h"
#include "plan/transfer.h"

enum { LOOKS = 1 << 24 };

struct certificate {
    const struct mgx_build *b;
    const struct mgx_plan *plan;
    int step; // being looked at
    struct mgx_diag *diag;
};

static enum mgx_status broken(const struct certificate *c, const char *rule)
{
    const struct mgx_plan_step *step = &c->plan->steps[c->step];
    return mgx_fail(c->diag, MGX_INTERNAL, "plan: step %d (%s by %s): %s", c->step,
                    step->ins->op->name, step->kernel ? step->kernel->name : "no kernel", rule);
}

static bool is_block(const struct mgx_plan_value *root)
{
    return root->place == MGX_PLAN_SCRATCH && !root->dynamic;
}

// --- 1: values ---

static bool has_lengths(const struct mgx_plan_value *v)
{
    const struct mgx_shape *s = &v->shape, *declared = &v->ins->shape;
    return v->dynamic || (mgx_shape_is_static(s) && s->type == declared->type) ||
           v->ins->op == &mgx_op_concat; // a slice of it is its instruction's too
}

static enum mgx_status check_values(const struct certificate *c)
{
    for (int64_t i = 0; i < c->b->all.count; i++) {
        struct mgx_plan_value *v = c->b->all.v[i];
        const bool planned = v >= c->plan->values && v < c->plan->values + c->plan->value_count;
        if (!mgx_plan_lies_inside(v))
            return mgx_fail(c->diag, MGX_INTERNAL, "plan: a value of %s leaves its root",
                            v->ins->op->name);
        if (!has_lengths(v) || (planned && !v->dynamic && mgx_shape_is_static(&v->ins->shape) &&
                                !mgx_shape_same_lens(&v->shape, &v->ins->shape)))
            return mgx_fail(c->diag, MGX_INTERNAL, "plan: a value of %s has other lengths",
                            v->ins->op->name);
    }
    return MGX_OK;
}

// --- 2 and 3: addresses ---

static int64_t offset_of(const struct mgx_plan_value *v)
{
    int64_t sum = 0;
    for (; v->root != v; v = v->root)
        sum += v->offset;
    return sum + (v->place == MGX_PLAN_SCRATCH ? (int64_t)v->scratch : 0);
}

static bool is_where(const struct certificate *c, struct mgx_plan_value *v,
                     const struct mgx_plan_ref *ref)
{
    const struct mgx_plan_value *root = mgx_plan_root(v, NULL);
    if (ref->place != root->place || ref->side != root->side || ref->index != root->index ||
        ref->data != root->data)
        return false;
    if (v->dynamic || root->dynamic)
        return true;
    const int64_t end = offset_of(v) + (int64_t)mgx_shape_bytes(&v->shape);
    return ref->offset == offset_of(v) &&
           (!is_block(root) || end <= (int64_t)c->plan->block[root->side].bytes ||
            !mgx_shape_bytes(&v->shape));
}

// Skipped, and what nobody else reads either: unread.c took the step that would make it.
static bool is_nowhere(const struct mgx_plan_step *step, int i)
{
    const struct mgx_plan_value *root = mgx_plan_root(step->in_value[i], NULL);
    return step->skip[i] && is_block(root) && root->last < root->first;
}

static enum mgx_status check_operands(const struct certificate *c, const struct mgx_plan_step *step)
{
    const bool transfer = mgx_plan_is_transfer(step);
    if (!is_where(c, step->out_value, &step->out))
        return broken(c, "its result is not where its address says");
    if (!transfer && step->out.side != step->side)
        return broken(c, "its result is on the other side");
    for (int i = 0; i < step->in_count; i++) {
        if (!is_nowhere(step, i) && !is_where(c, step->in_value[i], &step->in[i]))
            return broken(c, "an input is not where its address says");
        if (!transfer && !step->skip[i] && step->in[i].side != step->side)
            return broken(c, "an input is on the other side");
    }
    return MGX_OK;
}

// --- 4: lives ---

static bool lives_at(struct mgx_plan_value *v, int step)
{
    const struct mgx_plan_value *root = mgx_plan_root(v, NULL);
    return root->first <= step && step <= root->last;
}

static enum mgx_status check_lives(const struct certificate *c, const struct mgx_plan_step *step)
{
    if (!lives_at(step->out_value, c->step))
        return broken(c, "its result is not alive");
    for (int i = 0; i < step->in_count; i++)
        if (!step->skip[i] && !lives_at(step->in_value[i], c->step))
            return broken(c, "an input is not alive");
    return MGX_OK;
}

// Bundles that were found before values had their places work as one step.
static enum mgx_status check_bundle(const struct certificate *c, const struct mgx_plan_step *step)
{
    const int ends[] = {mgx_plan_bundle_first(c->plan, c->step),
                        mgx_plan_bundle_last(c->plan, c->step)};
    bool alive = true;
    if (ends[0] < ends[1] && mgx_plan_is_transfer(step))
        return broken(c, "a copy within a bundle, which a stretch ends at");
    for (int end = 0; end < 2; end++) {
        alive = alive && lives_at(step->out_value, ends[end]);
        for (int i = 0; i < step->in_count; i++)
            alive = alive && (step->skip[i] || lives_at(step->in_value[i], ends[end]));
    }
    return alive || !c->plan->machine->target->gather
               ? MGX_OK
               : broken(c, "a value that its bundle touches is not alive all the while");
}

static enum mgx_status check_drops(struct certificate *c)
{
    struct mgx_arena arena;
    mgx_arena_init(&arena);
    int *dropped = MGX_NEW_ARRAY(&arena, int, c->plan->dynamic_count + 1); // by step, + 1
    enum mgx_status status = dropped ? MGX_OK : mgx_fail_memory(c->diag);
    for (c->step = 0; c->step < c->plan->step_count && status == MGX_OK; c->step++) {
        const struct mgx_plan_step *step = &c->plan->steps[c->step];
        for (int i = 0; i < step->drop_count && status == MGX_OK; i++) {
            if (dropped[step->drop[i]])
                status = broken(c, "a slot is dropped again");
            dropped[step->drop[i]] = c->step + 1;
        }
    }
    for (int k = 0; k < c->plan->result_count && status == MGX_OK; k++) {
        const struct mgx_plan_value *v = c->plan->results[k].value;
        if (v->place == MGX_PLAN_DYNAMIC && dropped[v->index])
            status = mgx_fail(c->diag, MGX_INTERNAL, "plan: result %d is dropped by step %d", k,
                              dropped[v->index] - 1);
    }
    mgx_arena_fini(&arena);
    return status;
}

// --- 5: what a step writes is nobody else's ---

struct range {
    size_t begin, end;
};

static bool overlap(struct range a, struct range b)
{
    return a.begin < b.end && b.begin < a.end;
}

static struct range range_of(const struct mgx_plan_value *root)
{
    return (struct range){root->scratch, root->scratch + mgx_shape_bytes(&root->shape)};
}

// Does another root that is alive at this step lie in these bytes? `but` is the step's own.
static bool is_taken(const struct certificate *c, struct range bytes, enum mgx_plan_side side,
                     const struct mgx_plan_value *but)
{
    for (int64_t i = 0; i < c->b->all.count; i++) {
        const struct mgx_plan_value *v = c->b->all.v[i];
        if (v->root == v && v != but && is_block(v) && v->side == side && v->first <= c->step &&
            c->step <= v->last && overlap(bytes, range_of(v)))
            return true;
    }
    return false;
}

static enum mgx_status check_writes(const struct certificate *c, const struct mgx_plan_step *step)
{
    const struct mgx_plan_value *root = mgx_plan_root(step->out_value, NULL);
    if (is_block(root) && is_taken(c, range_of(root), root->side, root))
        return broken(c, "it writes where another value lives");
    const struct range work = {step->workspace_scratch, step->workspace_scratch + step->workspace};
    if (step->workspace && work.end > c->plan->block[step->side].bytes)
        return broken(c, "its workspace leaves the block");
    if (step->workspace && is_taken(c, work, step->side, NULL))
        return broken(c, "its workspace lies where a value lives");
    return MGX_OK;
}

enum mgx_status mgx_plan_certify(const struct mgx_build *b, struct mgx_diag *diag)
{
    struct certificate c = {.b = b, .plan = b->plan, .diag = diag};
    const int64_t looks = LOOKS / (b->all.count + 1);
    TRY(check_values(&c));
    for (c.step = 0; c.step < b->plan->step_count; c.step++) {
        const struct mgx_plan_step *step = &b->plan->steps[c.step];
        TRY(check_operands(&c, step));
        TRY(check_lives(&c, step));
        TRY(check_bundle(&c, step));
        if (c.step < looks)
            TRY(check_writes(&c, step));
    }
    return check_drops(&c);
}
