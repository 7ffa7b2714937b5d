// SPDX-License-Identifier: MIT
// Values made of totals get them, and what lies between, for themselves.
//
//     lo = min(reduce_min(x), 0);  s = f(lo, reduce_max(x));  z = g(s, lo)
//         =>   s as it was;  z = g(s, min(reduce_min'(x), 0))
//
// A total is a reduction of a whole tensor to one value. Here s and z are read elsewhere, lo is
// not: with one reader for every instruction in front of it fuse_pointwise makes one body of a
// value, and fuse_totals one group. Runs before them; what merges equal instructions would undo it.
// x is read once more for a value that had to be made anew, and once less for every two totals in a
// group.
#include "pass/engine/emit.h"
#include "pass/engine/region.h"
#include "pass/engine/total.h"
#include "pass/engine/walk.h"

enum { MOST = 16 }; // copies for one value

struct job {
    struct mgx_pass_call *c;
    int left;
};

// Read by more than the next step of the same kind of work: it lies in memory anyway.
static bool is_value(const struct mgx_ins *ins)
{
    if (!mgx_is_one_step(ins))
        return false;
    for (const struct mgx_use *use = ins->uses; use; use = use->next)
        if (!mgx_is_one_step(use->user))
            return true;
    return false;
}

// Of what lies in front of a value; the value itself is the end of another one's.
static bool has_total(const struct mgx_ins *ins, int depth)
{
    for (int i = 0; i < ins->in_count; i++) {
        const struct mgx_ins *in = ins->in[i];
        if (mgx_is_total(in) ||
            (depth < MOST && mgx_is_one_step(in) && !is_value(in) && has_total(in, depth + 1)))
            return true;
    }
    return false;
}

static bool own(struct job *job, struct mgx_ins *ins);

static bool own_input(struct job *job, struct mgx_ins *ins, int i)
{
    struct mgx_ins *in = ins->in[i];
    const bool total = mgx_is_total(in);
    if (!total && (!mgx_is_one_step(in) || is_value(in)))
        return true;
    if (!mgx_used_once(in)) {
        if (job->left-- == 0)
            return false;
        in = mgx_emit_again(ins, in, in->in, in->in_count);
        if (!in)
            return false;
        mgx_set_input(ins, i, in);
        job->c->changed = true;
    }
    return total || own(job, in);
}

static bool own(struct job *job, struct mgx_ins *ins)
{
    for (int i = 0; i < ins->in_count; i++)
        if (!own_input(job, ins, i))
            return false;
    return true;
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    MGX_EACH (ins, m) {
        struct job job = {c, MOST};
        if (is_value(ins) && has_total(ins, 0))
            (void)own(&job, ins);
    }
    return mgx_program_status(c->program, c->diag);
}

const struct mgx_pass mgx_pass_repeat_totals = {
    .name = "repeat_totals",
    .meaning = "gives values made of totals those for themselves",
    .module = run,
};
