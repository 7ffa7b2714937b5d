// SPDX-License-Identifier: MIT
// A pad goes into the padding of what reads it.
//
//     conv[padding=p](pad[q](x), w)   =>  conv[padding=p+q](x, w)       zeros; im2col likewise
//     pooling[padding=p](pad[q](x))   =>  pooling[padding=p+q](x)
//     pad[0](x)                       =>  x
//
// ... and what only ever reads padding goes (taps.c).
//
// Holds: the pad is of spatial axes only, constant and not negative. An average counts the zeros it
// reads: it takes them as padding that counts, so what padding it has already must count too. A
// maximum takes only what never wins, in windows that also see something else. Rounding up
// (ceil_mode) makes padding and input differ at the end, so such poolings keep their pads.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "pass/engine/emit.h"
#include "pass/engine/rewrite.h"
#include "pass/rules/rules.h"

enum { MAX_SPATIAL = MGX_MAX_RANK - 2, AVERAGE = 0, MAXIMUM = 1 };

// Padding before and after each spatial axis; false if the pad does anything else.
static bool read_pad(const struct mgx_ins *pad, int64_t *out)
{
    const struct mgx_ints pads = mgx_ins_ints(pad, "pads");
    const int rank = pad->shape.rank;
    if (pad->in_count != 1 || mgx_ins_int(pad, "mode") != 0 || pads.count != 2 * rank || rank < 3)
        return false;
    for (int i = 0; i < 2 * rank; i++)
        if (pads.v[i] < 0 || (i % rank < 2 && pads.v[i] != 0))
            return false;
    for (int d = 2; d < rank; d++) {
        out[d - 2] = pads.v[d];
        out[d - 2 + rank - 2] = pads.v[d + rank];
    }
    return true;
}

// Adds the padding that the operator has; false if that is not plain numbers.
static bool add_padding(const struct mgx_ins *ins, int spatial, int64_t *sum, bool *had)
{
    assert(spatial > 0 && spatial <= MGX_MAX_RANK - 2);
    const struct mgx_ints own = mgx_ins_ints(ins, "padding");
    *had = false;
    if (mgx_ins_int(ins, "padding_mode") != 0 || (own.count != spatial && own.count != 2 * spatial))
        return false;
    for (int i = 0; i < 2 * spatial; i++) {
        const int64_t p = own.v[i % own.count];
        *had |= p != 0;
        if (p < 0 || !mgx_add_i64(sum[i], p, &sum[i]))
            return false;
    }
    return true;
}

// The shorter form where both sides are alike.
static int shorten(const int64_t *padding, int spatial)
{
    assert(spatial > 0);
    return memcmp(padding, padding + spatial, (size_t)spatial * sizeof *padding) == 0 ? spatial
                                                                                      : 2 * spatial;
}

// The attributes of `ins` with another padding.
static struct mgx_ins *emit_padded(struct mgx_rewriter *r, struct mgx_ins *ins, struct mgx_ins *x,
                                   const int64_t *padding, int count, bool count_pads)
{
    struct mgx_ins *in[2] = {x, ins->in_count > 1 ? ins->in[1] : NULL};
    void *attr = mgx_edit_attr(r->call->program, ins);
    if (!mgx_edit_ints(r->call->program, ins->op, attr, "padding", padding, count))
        return NULL;
    if (count_pads)
        mgx_edit_bool(ins->op, attr, "count_include_pad", true);
    return mgx_emit_edited(ins, ins->op, attr, in, ins->in_count);
}

static struct mgx_ins *into_product(struct mgx_rewriter *r, struct mgx_ins *ins,
                                    const struct mgx_match *m)
{
    struct mgx_ins *pad = mgx_var(m, 'p');
    int64_t padding[2 * MAX_SPATIAL];
    bool had;
    const int spatial = pad->shape.rank - 2;
    if (ins->in[0] != pad || ins->in_count > 2 || mgx_ins_real(pad, "value") != 0 ||
        !read_pad(pad, padding) || !add_padding(ins, spatial, padding, &had))
        return NULL;
    return emit_padded(r, ins, pad->in[0], padding, shorten(padding, spatial), false);
}

static bool windows_see_input(const struct mgx_ins *ins, const int64_t *padding, int spatial)
{
    assert(spatial > 0);
    const struct mgx_ints lengths = mgx_ins_ints(ins, "lengths"),
                          dilations = mgx_ins_ints(ins, "dilations");
    for (int i = 0; i < dilations.count; i++)
        if (dilations.v[i] != 1)
            return false;
    for (int i = 0; i < 2 * spatial; i++)
        if (lengths.count != spatial || padding[i] >= lengths.v[i % spatial])
            return false;
    return true;
}

static bool never_wins(const struct mgx_ins *pad)
{
    const double value = mgx_ins_real(pad, "value");
    return mgx_type_is_float(pad->shape.type) ? value == -INFINITY
                                              : value <= mgx_type_lowest(pad->shape.type);
}

static struct mgx_ins *into_pooling(struct mgx_rewriter *r, struct mgx_ins *ins,
                                    const struct mgx_match *m)
{
    struct mgx_ins *pad = mgx_var(m, 'p');
    int64_t padding[2 * MAX_SPATIAL];
    bool had;
    const int spatial = pad->shape.rank - 2;
    const int64_t mode = mgx_ins_int(ins, "mode");
    if (mgx_ins_int(ins, "ceil_mode") || mgx_ins_int(ins, "dyn_global") ||
        !read_pad(pad, padding) || !add_padding(ins, spatial, padding, &had))
        return NULL;
    if (mode == MAXIMUM ? !never_wins(pad) : mgx_ins_real(pad, "value") != 0)
        return NULL;
    if (!windows_see_input(ins, padding, spatial) ||
        (mode == AVERAGE && had && !mgx_ins_int(ins, "count_include_pad")))
        return NULL;
    return emit_padded(r, ins, pad->in[0], padding, shorten(padding, spatial), mode == AVERAGE);
}

static struct mgx_ins *drop_nothing(struct mgx_rewriter *r, struct mgx_ins *ins,
                                    const struct mgx_match *m)
{
    (void)r, (void)m;
    const struct mgx_ints pads = mgx_ins_ints(ins, "pads");
    for (int i = 0; i < pads.count; i++)
        if (pads.v[i] != 0)
            return NULL;
    return pads.count == 2 * ins->shape.rank ? ins->in[0] : NULL;
}

static const struct mgx_rule rules[] = {
    {"pad(x) ~> x, for pads of nothing", .rewrite = drop_nothing},
    {"convolution|quant_convolution|im2col(p:pad, w) ~> conv[padding](x, w)", MGX_IF_STATIC,
     .rewrite = into_product},
    {"pooling(p:pad) ~> pooling[padding](x)", MGX_IF_STATIC, .rewrite = into_pooling},
};

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    static const struct mgx_rules own = {rules, MGX_COUNT(rules)};
    return mgx_apply_tables(c, m, (const struct mgx_rules *const[]){&own, &mgx_rules_taps}, 2);
}

const struct mgx_pass mgx_pass_eliminate_pad = {
    .name = "eliminate_pad",
    .meaning = "folds pads into convolutions and poolings, drops what reads padding only",
    .module = run,
};
