// SPDX-License-Identifier: MIT
// fuse_pointwise: trees and DAGs of element-wise instructions become one `pointwise` with a body.
//
//     d = mul(a, b)
//     e = add(d, c)
//     f = tanh(e)       =>   f = pointwise(a, b, c), [tanh(add(mul(x0, x1), x2))]
//
// From its last instruction, the root, a group grows upwards: a producer joins when it is
// element-wise, has the root's lengths and is read inside the group only, so nothing is computed
// twice and nothing leaves but the root. Operands that are one constant in all places become
// literals of the body; others become its parameters. The body is written in the module's order for
// scalars, so equal groups have equal bodies.
//
// Of several products that meet in a group one is its own: what is made of another one alone stays
// outside, for that product to take it (silu(x A) * (x B), sums of integers with their scales).
// Bytes that are made of one product or of bytes stay together, however many steps they take, where
// the target makes a table of them. What else ends a product is its word too (product.h).
//
// Cost: every instruction is looked at a bounded number of times: a group takes at most MAX_BODY,
// or MAX_TABLE where it is a function of bytes.
#include "op/op.h"

#include <assert.h>
#include <string.h>

#include "pass/engine/body.h"
#include "pass/engine/constant.h"
#include "pass/engine/product.h"
#include "pass/engine/region.h"
#include "pass/engine/walk.h"

enum { MAX_BODY = 48, MAX_TABLE = 56, MAX_INPUTS = 12 };

// A group in which several products meet: which of them every instruction is made of, a bit each.
struct parts {
    struct mgx_ins *ins[MAX_TABLE]; // in order
    uint32_t made_of[MAX_TABLE];
    int count;
    uint32_t own;               // the product whose results the group works on ...
    struct mgx_ins *product;    // ... which is this one
    const struct mgx_ins *meet; // the first instruction that two meet in
};

struct group {
    struct mgx_ins *ins[MAX_TABLE]; // root first, then in the order of joining
    int count, most;
    struct mgx_ins *in[MAX_INPUTS]; // operands that become parameters
    int in_count;
    bool whole;                // all that could join does, also what ends a product
    const struct parts *parts; // NULL: no products meet
    const struct mgx_pass_options *options;
};

static bool is_elementwise(const struct mgx_ins *ins)
{
    return (ins->op->flags & MGX_OP_POINTWISE) && ins->op != &mgx_op_pointwise &&
           ins->mod_count == 0 && mgx_is_pure(ins) && mgx_type_is_number(ins->shape.type);
}

// Would the group's operands fit if `extra` joined?
static bool inputs_fit(struct group *g)
{
    g->in_count = 0;
    for (int i = 0; i < g->count; i++)
        for (int k = 0; k < g->ins[i]->in_count; k++) {
            struct mgx_ins *in = g->ins[i]->in[k];
            if (mgx_body_has(g->ins, g->count, in) || mgx_body_has(g->in, g->in_count, in) ||
                mgx_scalar_constant(in))
                continue;
            if (g->in_count == MAX_INPUTS)
                return false;
            g->in[g->in_count++] = in;
        }
    return true;
}

static uint32_t made_of(const struct parts *p, const struct mgx_ins *ins)
{
    for (int i = 0; i < p->count; i++)
        if (p->ins[i] == ins)
            return p->made_of[i];
    return 0;
}

static bool is_single(uint32_t bits)
{
    return bits && !(bits & (bits - 1));
}

// Whether bytes that are made on the way go on, inside of the group, with the product that it works
// on: the target says.
static bool goes_on(const struct group *g, const struct mgx_ins *in, bool own)
{
    struct mgx_ins *const product = own ? g->parts->product : NULL;
    const struct mgx_product_roles roles = {.product = product,
                                            .steps = g->ins,
                                            .step_count = g->count,
                                            .bytes = in,
                                            .meet = own ? g->parts->meet : NULL};
    return mgx_target_takes(g->options, &roles);
}

// Is it for another reader, or none, to take? What is made of another product alone ends that one,
// and bytes where the group's own product ends. What makes floats of bytes stays with their reader,
// so that bytes are what lies in memory.
static bool ends_product(const struct group *g, const struct mgx_ins *in)
{
    const uint32_t made = g->parts ? made_of(g->parts, in) : 0;
    const bool single = is_single(made), own = single && made == g->parts->own;
    if (in->op == &mgx_op_quantizelinear)
        return !g->whole && ((single && !own) || !goes_on(g, in, own));
    return single && !own &&
           !(in->op == &mgx_op_dequantizelinear && in->in[0]->op == &mgx_op_quantizelinear);
}

// Scores of attention are of floats, and so is what joins them: a mask of 16 bits is converted
// before, mostly as a constant, or the scores would not be attention's (fuse_attention).
static bool widens_for_softmax(const struct group *g, const struct mgx_ins *in)
{
    const struct mgx_ins *root = g->ins[0];
    const enum mgx_type from = in->op == &mgx_op_convert ? in->in[0]->shape.type : MGX_FLOAT;
    return mgx_type_is_half_or_bf16(from) && in->shape.type == MGX_FLOAT && mgx_used_once(root) &&
           root->uses->user->op == &mgx_op_softmax;
}

static bool may_join(const struct group *g, const struct mgx_ins *in)
{
    const struct mgx_ins *root = g->ins[0];
    return in->owner == root->owner && is_elementwise(in) &&
           mgx_shape_same_lens(&in->shape, &root->shape) && !mgx_body_has(g->ins, g->count, in) &&
           mgx_body_keeps(g->ins, g->count, in) && !ends_product(g, in) &&
           !widens_for_softmax(g, in);
}

// Grows until nothing joins: an operand read twice joins once its last reader has.
static void grow(struct group *g)
{
    for (bool grew = true; grew;) {
        grew = false;
        for (int i = 0; i < g->count; i++)
            for (int k = 0; k < g->ins[i]->in_count && g->count < g->most; k++) {
                struct mgx_ins *in = g->ins[i]->in[k];
                if (!may_join(g, in))
                    continue;
                g->ins[g->count++] = in;
                if (inputs_fit(g))
                    grew = true;
                else
                    g->count--;
            }
    }
    inputs_fit(g);
}

// The bit of a product whose results go nowhere but into the group; 0: it is none.
static uint32_t bit_of(const struct group *g, int input)
{
    const struct mgx_ins *in = g->in[input], *root = g->ins[0];
    return mgx_is_product(in) && in->owner == root->owner &&
                   mgx_shape_same_lens(&in->shape, &root->shape) &&
                   mgx_body_keeps(g->ins, g->count, in)
               ? (uint32_t)1 << input
               : 0;
}

static uint32_t made_of_operand(const struct group *g, const struct parts *p,
                                const struct mgx_ins *in)
{
    for (int i = 0; i < g->in_count; i++)
        if (g->in[i] == in)
            return bit_of(g, i);
    return made_of(p, in);
}

// Of a whole group; false if no two products meet in it.
static bool find_parts(const struct group *g, struct parts *p)
{
    memcpy(p->ins, g->ins, sizeof p->ins);
    mgx_body_sort(p->ins, g->count);
    p->own = 0;
    p->product = NULL;
    p->meet = NULL;
    for (p->count = 0; p->count < g->count; p->count++) {
        const struct mgx_ins *ins = p->ins[p->count];
        uint32_t all = 0;
        for (int k = 0; k < ins->in_count; k++)
            all |= made_of_operand(g, p, ins->in[k]);
        p->made_of[p->count] = all;
        if (all && !is_single(all) && !p->own) { // the first that two meet in
            p->own = made_of_operand(g, p, ins->in[0]);
            p->own &= ~p->own + 1;
            p->meet = ins;
            for (int i = 0; i < g->in_count; i++)
                p->product = p->own >> i & 1 ? g->in[i] : p->product;
        }
    }
    return made_of(p, g->ins[0]) && !is_single(made_of(p, g->ins[0])) && p->own;
}

// Bytes that are made of one operand, through whatever other bytes, are a function of it: a table,
// where bytes or a product are what it works on and the target takes it whole.
static bool is_function(const struct group *g)
{
    struct mgx_ins *varies = NULL;
    if (g->ins[0]->op != &mgx_op_quantizelinear)
        return false;
    for (int i = 0; i < g->in_count; i++) {
        if (mgx_is_spread_literal(g->in[i]))
            continue;
        if (varies)
            return false;
        varies = g->in[i];
    }
    const struct mgx_product_roles roles = {
        .product = varies, .steps = g->ins, .step_count = g->count};
    return varies && (mgx_is_product(varies) || mgx_type_is_byte(varies->shape.type)) &&
           mgx_target_takes(g->options, &roles);
}

// Whether it has values that are quantized on the way: they may come from several products.
static bool quantizes(const struct group *g)
{
    for (int i = 1; i < g->count; i++)
        if (g->ins[i]->op == &mgx_op_quantizelinear)
            return true;
    return false;
}

// Grows, first to see what it is a function of and which products meet, then without what they end
// with.
static void grow_apart(struct group *g)
{
    struct parts p;
    g->most = g->ins[0]->op == &mgx_op_quantizelinear ? MAX_TABLE : MAX_BODY;
    g->whole = true;
    grow(g);
    g->whole = false;
    const bool meet = find_parts(g, &p);
    if (!meet && (is_function(g) || (!quantizes(g) && g->count <= MAX_BODY)))
        return;
    g->most = MAX_BODY;
    g->count = 1;
    g->parts = meet ? &p : NULL;
    grow(g);
    g->parts = NULL;
}

// --- the body ---

// Constants that are one value everywhere; all else has a parameter.
static struct mgx_ins *make_constant(struct mgx_body *b, struct mgx_ins *in)
{
    const struct mgx_tensor *constant = mgx_scalar_constant(in);
    return constant ? mgx_body_note(b, in, mgx_body_scalar(b, constant)) : NULL;
}

static enum mgx_status build_body(struct mgx_pass_call *c, struct group *g, struct mgx_module **out)
{
    assert(g->count > 0);
    struct mgx_body b = {.make = make_constant};
    struct mgx_ins *last = NULL;
    if (!mgx_body_begin(&b, c->program, "pointwise"))
        return mgx_program_status(c->program, c->diag);
    *out = b.module;
    for (int i = 0; i < g->in_count; i++) {
        const struct mgx_shape scalar = mgx_shape_scalar(g->in[i]->shape.type);
        mgx_body_param(&b, g->in[i], &scalar);
    }
    mgx_body_sort(g->ins, g->count);
    for (int i = 0; i < g->count; i++)
        last = mgx_body_copy(&b, g->ins[i]);
    mgx_add_return(b.module, &last, 1);
    mgx_body_end(&b);
    return mgx_program_status(c->program, c->diag);
}

static enum mgx_status fuse(struct mgx_pass_call *c, struct group *g, struct mgx_ins *root)
{
    struct mgx_module *body;
    TRY(build_body(c, g, &body));
    struct mgx_ins *fused =
        mgx_insert(root->owner, root, &mgx_op_pointwise, NULL, g->in, g->in_count, &body, 1);
    TRY(mgx_program_status(c->program, c->diag));
    for (int i = 0; i < g->count; i++)
        mgx_copy_origin(fused, g->ins[i]);
    mgx_replace_uses(root, fused);
    for (int i = g->count; i-- > 0;)
        mgx_remove(g->ins[i]);
    c->changed = true;
    return MGX_OK;
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    struct mgx_ins *ins = m->last;
    while (ins) {
        struct mgx_ins *before = ins->prev;
        struct group g = {.ins = {ins}, .count = 1, .options = c->options};
        if (is_elementwise(ins) && ins->uses)
            grow_apart(&g);
        if (g.count > 1 && g.in_count > 0) {
            while (before && mgx_body_has(g.ins, g.count, before))
                before = before->prev; // the group's instructions go
            // A group that reads constants and parameters of the front only may leave `before`
            // NULL.
            TRY(fuse(c, &g, ins));
        }
        ins = before;
    }
    return MGX_OK;
}

const struct mgx_pass mgx_pass_fuse_pointwise = {
    .name = "fuse_pointwise",
    .meaning = "element-wise instructions that feed each other become one with a body",
    .module = run,
    .by_size = true,
};
