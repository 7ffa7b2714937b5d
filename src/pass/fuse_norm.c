// SPDX-License-Identifier: MIT
// Layer and root-mean-square normalisations become one group.
//
//     ((x - mean(x)) / sqrt(mean((x - mean(x))^2) + e)) * scale + shift  =>  group[tag=layer_norm]
//     x / sqrt(mean(x^2) + e) * scale                                    =>  group[tag=rms_norm]
//
// A rounding to bfloat16 behind it is taken along where the target multiplies that.
//
// An epsilon that 16 bits have made 0 is not there.
//
// A group's body holds the instructions as they were, so the reference can run it, and so does
// every target whose kernels decline.
#include <assert.h>

#include "op/op.h"
#include "pass/engine/match.h"
#include "pass/engine/region.h"
#include "pass/engine/walk.h"

// x, m: the mean; d: x - mean; q: the squares; v: their mean; e: epsilon; r: the root; other
// letters: views on the way.
static const char *const norm_forms[] = {
    "mul(d:sub(x, a:multibroadcast(m:reduce_mean(x))), "
    "b:multibroadcast(r:rsqrt(s:add(v:reduce_mean(q:sqdiff(x, a)), "
    "e#))))",
    "mul(d:sub(x, a:multibroadcast(m:reduce_mean(x))), "
    "b:multibroadcast(r:rsqrt(s:add(v:reduce_mean(q:mul(d, d)), e#))))",
    "div(d:sub(x, a:multibroadcast(m:reduce_mean(x))), "
    "b:multibroadcast(r:sqrt(s:add(v:reduce_mean(q:mul(d, d)), e#))))",
    "div(d:sub(x, a:multibroadcast(m:reduce_mean(x))), "
    "b:multibroadcast(r:sqrt(s:add(v:reduce_mean(q:sqdiff(x, a)), "
    "e#))))",
    "mul(d:sub(x, a:multibroadcast(m:reduce_mean(x))), "
    "b:multibroadcast(r:rsqrt(v:reduce_mean(q:mul(d, d)))))",
    "mul(d:sub(x, a:multibroadcast(m:reduce_mean(x))), "
    "b:multibroadcast(r:rsqrt(v:reduce_mean(q:sqdiff(x, a)))))",
    "div(d:sub(x, a:multibroadcast(m:reduce_mean(x))), "
    "b:multibroadcast(r:sqrt(v:reduce_mean(q:mul(d, d)))))",
    "div(d:sub(x, a:multibroadcast(m:reduce_mean(x))), "
    "b:multibroadcast(r:sqrt(v:reduce_mean(q:sqdiff(x, a)))))",
    "mul(x, b:multibroadcast(r:rsqrt(s:add(v:reduce_mean(q:mul(x, x)), e#))))",
    "div(x, b:multibroadcast(r:sqrt(s:add(v:reduce_mean(q:mul(x, x)), e#))))",
    "div(x, b:multibroadcast(r:sqrt(v:reduce_mean(q:mul(x, x)))))",
};

enum { RMS_FORM = 8 }; // the first without a mean
enum { NORM_FORMS = sizeof norm_forms / sizeof *norm_forms };

// Images lie channels last between convolutions; rows over their pixels would have to be copied.
static bool is_image(const struct mgx_ins *reduce, int first)
{
    assert(first >= 0 || reduce->shape.rank >= 0);
    return first == 2 && reduce->in[0]->shape.rank > 3;
}

// One value per position of the axes from `first` on, side by side, the same for all rows.
static bool along_rows(const struct mgx_ins *ins, int first)
{
    assert(first >= 0);
    const struct mgx_shape *s = &ins->shape;
    int64_t step = 1;
    for (int i = s->rank - 1; i >= 0; i--) {
        if (s->lens[i] != 1 && s->strides[i] != (i >= first ? step : 0))
            return false;
        step *= s->lens[i];
    }
    return s->rank > 0;
}

// Scale and shift that follow, while each is the only reader.
static struct mgx_ins *extend(struct mgx_region *r, struct mgx_ins *last, int first)
{
    static const struct mgx_op *const follow[] = {&mgx_op_mul, &mgx_op_add};
    for (int i = 0; i < 2 && mgx_used_once(last); i++) {
        struct mgx_ins *user = last->uses->user;
        if (user->op != follow[i] || user->owner != last->owner)
            continue;
        const struct mgx_ins *other = user->in[user->in[0] == last ? 1 : 0];
        if (other == last || !along_rows(other, first) || !mgx_region_add(r, user))
            break;
        last = user;
    }
    return last;
}

// Adds the rounding to bfloat16 that alone reads the result; the last instruction then.
static struct mgx_ins *add_rounding(struct mgx_region *r, struct mgx_ins *last)
{
    struct mgx_ins *user = mgx_used_once(last) ? last->uses->user : NULL;
    const bool rounds = user && user->op == &mgx_op_convert && user->shape.type == MGX_BF16 &&
                        user->owner == last->owner;
    return rounds && mgx_region_add(r, user) ? user : last;
}

struct norm {
    struct mgx_match match;
    int first; // axis of a row
    bool rms;
};

static void parse_forms(struct mgx_pattern *forms)
{
    for (int i = 0; i < NORM_FORMS; i++) {
        const char *text = norm_forms[i];
        const bool good = mgx_pattern_parse(&forms[i], &text);
        assert(good);
        (void)good;
    }
}

static bool find_norm(const struct mgx_pattern *forms, struct mgx_ins *ins, struct norm *n)
{
    if (ins->op != &mgx_op_mul && ins->op != &mgx_op_div)
        return false;
    int form = 0;
    while (form < NORM_FORMS && !mgx_pattern_match(&forms[form], ins, &n->match))
        form++;
    if (form == NORM_FORMS || ins->shape.type != MGX_FLOAT || !mgx_shape_is_static(&ins->shape))
        return false;
    const struct mgx_ins *mean = mgx_var(&n->match, 'v');
    n->rms = form >= RMS_FORM;
    n->first = mgx_first_reduced(mean);
    return n->first >= 0 && !is_image(mean, n->first) &&
           (n->rms || mgx_first_reduced(mgx_var(&n->match, 'm')) == n->first);
}

static void gather_norm(const struct norm *n, struct mgx_ins *ins, struct mgx_region *region)
{
    *region = (struct mgx_region){.count = 0};
    for (const char *letter = n->rms ? "qvsrb" : "madqvsrb"; *letter; letter++)
        if (mgx_var(&n->match, *letter))
            mgx_region_add(region, mgx_var(&n->match, *letter));
    mgx_region_add(region, ins);
}

static enum mgx_status fuse_norms(struct mgx_pass_call *c, struct mgx_module *m)
{
    struct mgx_pattern forms[NORM_FORMS];
    parse_forms(forms);
    for (struct mgx_ins *ins = m->first, *next; ins; ins = next) {
        struct norm norm;
        struct mgx_region region;
        next = ins->next;
        if (!find_norm(forms, ins, &norm))
            continue;
        gather_norm(&norm, ins, &region);
        struct mgx_ins *last = extend(&region, ins, norm.first);
        if (c->options->target.multiplies_bf16)
            last = add_rounding(&region, last);
        if (!mgx_region_closed(&region))
            continue;
        next = last->next; // everything of the group lies before it
        TRY(mgx_region_fuse(c, &region, norm.rms ? "rms_norm" : "layer_norm"));
    }
    return MGX_OK;
}

const struct mgx_pass mgx_pass_fuse_norm = {
    .name = "fuse_norm",
    .meaning = "layer and root-mean-square normalisations become one group",
    .module = fuse_norms,
    .by_size = true,
};
