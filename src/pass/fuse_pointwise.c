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
// Of bytes a sum of two products ends the first one, and a product of them too where the target
// multiplies bytes: there what is quantized in a few steps from bytes in memory is made on the way.
// Bytes that are made of one product or of bytes stay together, however many steps they take: a
// table.
//
// Cost: every instruction is looked at a bounded number of times: a group takes at most MAX_BODY,
// or MAX_TABLE where it is a function of bytes.
#include "op/op.h"

#include <assert.h>
#include <string.h>

#include "pass/engine/body.h"
#include "pass/engine/region.h"
#include "pass/engine/walk.h"

enum { MAX_BODY = 32, MAX_TABLE = 56, MAX_INPUTS = 12, MAX_CONSTANTS = 32 };

// A group in which several products meet: which of them every instruction is made of, a bit each.
struct parts {
    struct mgx_ins *ins[MAX_TABLE]; // in order
    uint32_t made_of[MAX_TABLE];
    int count;
    uint32_t own; // the product whose results the group works on
    bool joins;   // what they meet in is one more step of its end
};

struct group {
    struct mgx_ins *ins[MAX_TABLE]; // root first, then in the order of joining
    int count, most, table;
    struct mgx_ins *in[MAX_INPUTS]; // operands that become parameters
    int in_count;
    bool whole;                // all that could join does, also what ends a product
    bool bytes;                // the target multiplies them
    const struct parts *parts; // NULL: no products meet
};

static bool is_elementwise(const struct mgx_ins *ins)
{
    return (ins->op->flags & MGX_OP_POINTWISE) && ins->op != &mgx_op_pointwise &&
           ins->mod_count == 0 && mgx_is_pure(ins) && mgx_type_is_number(ins->shape.type);
}

// The constant that an operand is everywhere, or NULL: a literal of one value, behind broadcasts.
static const struct mgx_tensor *constant_of(const struct mgx_ins *ins)
{
    while ((ins->op == &mgx_op_multibroadcast || ins->op == &mgx_op_broadcast ||
            ins->op == &mgx_op_scalar) &&
           ins->in_count >= 1) // a second input gives lengths only
        ins = ins->in[0];
    if (!ins->literal || !mgx_type_is_number(ins->shape.type) || !mgx_shape_elements(&ins->shape))
        return NULL;
    return mgx_shape_space(&ins->shape) == 1 ? ins->literal : NULL;
}

static bool read_inside_only(const struct group *g, const struct mgx_ins *ins)
{
    for (const struct mgx_use *use = ins->uses; use; use = use->next)
        if (!mgx_body_has(g->ins, g->count, use->user))
            return false;
    return true;
}

// Would the group's operands fit if `extra` joined?
static bool inputs_fit(struct group *g)
{
    g->in_count = 0;
    for (int i = 0; i < g->count; i++)
        for (int k = 0; k < g->ins[i]->in_count; k++) {
            struct mgx_ins *in = g->ins[i]->in[k];
            if (mgx_body_has(g->ins, g->count, in) || mgx_body_has(g->in, g->in_count, in) ||
                constant_of(in))
                continue;
            if (g->in_count == MAX_INPUTS)
                return false;
            g->in[g->in_count++] = in;
        }
    return true;
}

// Is `ins` read, through the group alone, by `by`?
static bool leads_to(const struct group *g, const struct mgx_ins *ins, const struct mgx_ins *by,
                     int depth)
{
    for (int i = 0; i < by->in_count && depth > 0; i++)
        if (by->in[i] == ins ||
            (mgx_body_has(g->ins, g->count, by->in[i]) && leads_to(g, ins, by->in[i], depth - 1)))
            return true;
    return false;
}

static bool is_constant(const struct mgx_ins *ins)
{
    while ((ins->op == &mgx_op_multibroadcast || ins->op == &mgx_op_broadcast) &&
           ins->in_count == 1)
        ins = ins->in[0];
    return ins->literal != NULL;
}

// A step that costs no more than a few instructions.
static bool is_light(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_add || ins->op == &mgx_op_mul || ins->op == &mgx_op_sub ||
           ins->op == &mgx_op_max || ins->op == &mgx_op_min || ins->op == &mgx_op_relu ||
           ins->op == &mgx_op_clip || ins->op == &mgx_op_dequantizelinear ||
           ins->op == &mgx_op_quantizelinear;
}

// Is it made in light steps, that nobody else reads, of one array of bytes in memory and of
// constants? *from: that array, NULL before the first call.
static bool is_near_bytes(const struct mgx_ins *ins, const struct mgx_ins **from, int depth)
{
    if (!is_light(ins) || !mgx_used_once(ins) || depth == 0)
        return false;
    for (int i = 0; i < ins->in_count; i++) {
        const struct mgx_ins *in = ins->in[i];
        if (is_constant(in) || in == *from)
            continue;
        if (is_elementwise(in) && !mgx_type_is_byte(in->shape.type)) {
            if (!is_near_bytes(in, from, depth - 1))
                return false;
        } else if (*from || mgx_is_product(in) || !mgx_type_is_byte(in->shape.type)) {
            return false;
        } else {
            *from = in;
        }
    }
    return *from != NULL;
}

static bool comes_from_bytes(const struct group *g, const struct mgx_ins *quantized)
{
    enum { LIGHT = 8 };
    const struct mgx_ins *from = NULL;
    return g->bytes && is_near_bytes(quantized, &from, LIGHT);
}

// Two values that are quantized, neither from the other, come from two products: one of them stays
// what it is in memory, of bytes, so that its product takes the step to bytes.
static bool parts_quantized(const struct group *g, const struct mgx_ins *in)
{
    enum { DEPTH = 16 };
    if (in->op != &mgx_op_quantizelinear || g->whole || comes_from_bytes(g, in))
        return false;
    for (int i = 1; i < g->count; i++)
        if (g->ins[i]->op == &mgx_op_quantizelinear && !leads_to(g, in, g->ins[i], DEPTH) &&
            !comes_from_bytes(g, g->ins[i]))
            return true;
    return false;
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

// Is it made of one product that can end with it: another one than the group's, or the group's, in
// bytes? A sum of two such is one more step of a product's end, and stays with it. What makes
// floats of bytes stays with their reader, so that bytes are what lies in memory.
static bool ends_product(const struct group *g, const struct mgx_ins *in)
{
    const uint32_t made = g->parts ? made_of(g->parts, in) : 0;
    if (!is_single(made))
        return false;
    if (in->op == &mgx_op_quantizelinear)
        return !g->parts->joins || made != g->parts->own;
    const bool reads_bytes =
        in->op == &mgx_op_dequantizelinear && in->in[0]->op == &mgx_op_quantizelinear;
    return made != g->parts->own && !reads_bytes;
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
           read_inside_only(g, in) && !parts_quantized(g, in) && !ends_product(g, in) &&
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
                   mgx_shape_same_lens(&in->shape, &root->shape) && read_inside_only(g, in)
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
    for (p->count = 0; p->count < g->count; p->count++) {
        const struct mgx_ins *ins = p->ins[p->count];
        uint32_t all = 0;
        for (int k = 0; k < ins->in_count; k++)
            all |= made_of_operand(g, p, ins->in[k]);
        p->made_of[p->count] = all;
        if (all && !is_single(all) && !p->own) { // the first that two meet in
            p->own = made_of_operand(g, p, ins->in[0]);
            p->own &= ~p->own + 1;
            p->joins = ins->op == &mgx_op_add || (g->bytes && ins->op == &mgx_op_mul);
        }
    }
    return made_of(p, g->ins[0]) && !is_single(made_of(p, g->ins[0])) && p->own;
}

// Whether its constants are no more than targets have room for, however long it is: what one value
// per column meets on its way is no table, but a program that runs.
static bool has_few_constants(const struct group *g)
{
    const struct mgx_ins *seen[MAX_CONSTANTS];
    int count = 0;
    for (int i = 0; i < g->count; i++)
        for (int k = 0; k < g->ins[i]->in_count; k++) {
            struct mgx_ins *in = g->ins[i]->in[k];
            int at = 0;
            while (at < count && seen[at] != in)
                at++;
            if (at < count || !constant_of(in))
                continue;
            if (count == MAX_CONSTANTS)
                return false;
            seen[count++] = in;
        }
    return true;
}

// Bytes that are made of one operand, through whatever other bytes, are a function of it: a table,
// where bytes or a product are what it works on.
static bool is_function(const struct group *g)
{
    const struct mgx_ins *varies = NULL;
    if (g->ins[0]->op != &mgx_op_quantizelinear || !has_few_constants(g))
        return false;
    for (int i = 0; i < g->in_count; i++) {
        if (is_constant(g->in[i]))
            continue;
        if (varies)
            return false;
        varies = g->in[i];
    }
    return varies && (mgx_is_product(varies) || mgx_type_is_byte(varies->shape.type));
}

// Whether it has values that are quantized on the way: they may come from several products.
static bool quantizes(const struct group *g)
{
    for (int i = 1; i < g->count; i++)
        if (g->ins[i]->op == &mgx_op_quantizelinear)
            return true;
    return false;
}

// Steps of a function of bytes: as many as the target makes a table of.
static int table_steps(const struct mgx_pass_options *options)
{
    const int most = options->target.table_steps;
    return most && most < MAX_TABLE ? most : MAX_TABLE;
}

// Grows, first to see what it is a function of and which products meet, then without what they end
// with.
static void grow_apart(struct group *g)
{
    struct parts p;
    g->most = g->ins[0]->op == &mgx_op_quantizelinear ? g->table : MAX_BODY;
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
    const struct mgx_tensor *constant = constant_of(in);
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
    if (m->bypass)
        return MGX_OK;
    struct mgx_ins *ins = m->last;
    while (ins) {
        struct mgx_ins *before = ins->prev;
        struct group g = {.ins = {ins},
                          .count = 1,
                          .table = table_steps(c->options),
                          .bytes = c->options->target.multiplies_bytes};
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
