// SPDX-License-Identifier: MIT
// Chains of views, each as short as it can be:
//
//     transpose(transpose(x))      =>  transpose(x)
//     reshape(reshape(x))          =>  reshape(x)
//     transpose of lengths of 1    =>  reshape(x)
//     reshape(transpose(reshape))  =>  what remains of it, often nothing
//     multibroadcast(unsqueeze(x)) =>  broadcast(x)
//     reshape(multibroadcast(x))   =>  multibroadcast(reshape(multibroadcast(x)))   copies less
//
// and everything else that view.h knows to be the same. The chain above an instruction is followed
// as far as it has a normal form; it is written anew when that takes fewer steps, or as many
// without a transpose, or when a reshape then copies fewer elements of what is repeated. A chain
// that others read half-way is not made to copy bytes a second time.
#include "pass/engine/emit.h"

#include <assert.h>

#include "pass/engine/view.h"
#include "pass/rules/rules.h"

enum { MAX_CHAIN = 12 }; // what was simplified before is short already

struct chain {
    struct mgx_ins *link[MAX_CHAIN]; // [0] is the last instruction, each reads the next
    int count;
};

static bool is_link(const struct mgx_ins *ins, const struct mgx_module *m)
{
    return ins->owner == m && mgx_is_reshaper(ins) &&
           (!mgx_is(ins, &mgx_op_contiguous) || mgx_used_once(ins));
}

static void follow(struct chain *c, struct mgx_ins *ins)
{
    c->count = 0;
    c->link[c->count++] = ins;
    for (ins = ins->in[0]; c->count < MAX_CHAIN && is_link(ins, c->link[0]->owner);
         ins = ins->in[0])
        c->link[c->count++] = ins;
}

static bool describe(const struct chain *c, int count, struct mgx_view *v)
{
    assert(count > 0);
    bool ok = mgx_view_start(v, &c->link[count - 1]->in[0]->shape);
    for (int i = count - 1; i >= 0 && ok; i--)
        ok = mgx_view_apply(v, c->link[i]);
    return ok;
}

static bool moves(const struct mgx_ins *ins)
{
    return mgx_is(ins, &mgx_op_transpose) || mgx_is(ins, &mgx_op_multibroadcast) ||
           mgx_is(ins, &mgx_op_broadcast);
}

// How many elements reshapes of what lies transposed or repeated make, at most.
static int64_t copied(const struct chain *c, int count)
{
    int64_t most = 0;
    bool moved = false;
    for (int i = count - 1; i >= 0; i--) {
        if (moved && (c->link[i]->op->flags & MGX_OP_RESHAPE))
            most = mgx_max_i64(most, mgx_shape_elements(&c->link[i]->shape));
        moved |= moves(c->link[i]);
    }
    return most;
}

static bool is_better(const struct chain *c, int count, const struct mgx_view *v,
                      const struct mgx_view_plan *plan)
{
    bool transposes = false, shared = false;
    for (int i = 0; i < count; i++) {
        transposes |= mgx_is(c->link[i], &mgx_op_transpose);
        shared |= i > 0 && !mgx_used_once(c->link[i]);
    }
    const int64_t now = copied(c, count);
    if (plan->widen && mgx_view_copied(v, plan) != now)
        return mgx_view_copied(v, plan) < now;
    if (shared && mgx_view_copies(plan))
        return false;
    if (plan->steps != count)
        return plan->steps < count;
    return (transposes && !plan->transpose) || (now > 0 && !mgx_view_copies(plan));
}

// Could a view alone be none at all, or none that transposes? Most are not looked at further.
static bool is_light(const struct mgx_ins *ins)
{
    return mgx_is(ins, &mgx_op_transpose) || !mgx_shape_is_static(&ins->in[0]->shape) ||
           mgx_shape_same_lens(&ins->shape, &ins->in[0]->shape);
}

static struct mgx_ins *shorten(struct mgx_rewriter *r, struct mgx_ins *ins,
                               const struct mgx_match *m)
{
    (void)r, (void)m;
    struct chain c;
    struct mgx_view v;
    struct mgx_view_plan plan;
    if (mgx_is(ins, &mgx_op_contiguous) || mgx_is(ins, &mgx_op_identity) || !mgx_is_reshaper(ins))
        return NULL;
    follow(&c, ins);
    for (int count = c.count; count > !is_light(c.link[0]); count--) {
        if (!describe(&c, count, &v) || !mgx_view_plan(&v, &plan) ||
            !is_better(&c, count, &v, &plan))
            continue;
        return mgx_view_emit(ins, c.link[count - 1]->in[0], &v, &plan);
    }
    return NULL;
}

static const struct mgx_rule rules[] = {
    {"reshape|transpose|squeeze|unsqueeze|flatten|multibroadcast|broadcast ~> the shortest chain",
     .rewrite = shorten},
};

const struct mgx_rules mgx_rules_chain = {rules, MGX_COUNT(rules)};
