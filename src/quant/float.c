// SPDX-License-Identifier: MIT
// Quantization to half and bfloat16.
//
//     normalize_ops, optimize_module      constants are folded while they have all their digits
//     eliminate_data_type                 float and double: op(x) => convert(op(convert[half](x)))
//     optimize_module                     conversions that meet go, literals become half
//
// What only moves values keeps its type; the conversions around it move along. Numbers beyond the
// narrow type become its largest ones: as infinities, masks would make NaN of rows that are masked
// out. isinf keeps its type, since it asks for just that.
//
// Boxes stay as they are: what nonmaxsuppression and roialign read as such, what that is made of by
// element-wise work, sums and moves, back to the products, and what these make of it. Half counts
// half pixels in a picture of 1,024, has no number for an area of 256 x 256, and detectors push
// the boxes of class c aside by c pictures before they suppress them, where half knows no pixels.
//
// Products of what was dequantized stay too: their operands have 8 bits, and targets multiply
// those, with scales that are floats. So does what leads to nothing but quantizing, element-
// wise: it is a product's end as a rule, and half would round what is rounded then, and have
// to be kept from infinities. Where two products meet one of them waits in memory, in half.
#include <assert.h>
#include <string.h>

#include "base/size.h"

#include "pass/data_type.h"
#include "quant/quant.h"

static bool is_named(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0 || strcmp(names[i], "all") == 0)
            return true;
    return count == 0;
}

// The operators that are not asked for; ends with NULL. NULL when out of memory.
static const struct mgx_op *const *others(struct mgx_arena *arena, const char *const *names,
                                          size_t count)
{
    int all, kept = 0;
    const struct mgx_op *const *ops = mgx_op_all(&all);
    const struct mgx_op **list = MGX_NEW_ARRAY(arena, const struct mgx_op *, all + 1);
    for (int i = 0; list && i < all; i++)
        if (!is_named(names, count, ops[i]->name) || ops[i] == &mgx_op_isinf)
            list[kept++] = ops[i];
    return list;
}

// --- boxes ---

static struct mgx_ins *boxes_of(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_nonmaxsuppression ? ins->in[0]
           : ins->op == &mgx_op_roialign        ? ins->in[1]
                                                : NULL;
}

// Does it make places of places? Sums and maxima push boxes aside and clip them; of nodes that wait
// for their sizes nobody knows, and what follows them is computed in float anyway.
static bool computes_places(const struct mgx_ins *ins)
{
    static const struct mgx_op *const movers[] = {&mgx_op_concat, &mgx_op_gather, &mgx_op_gathernd,
                                                  &mgx_op_contiguous, &mgx_op_identity};
    const bool number = ins->shape.type == MGX_FLOAT || ins->shape.type == MGX_DOUBLE;
    bool moves = ins->op->expand ||
                 ins->op->flags & (MGX_OP_POINTWISE | MGX_OP_REDUCE | MGX_OP_VIEW | MGX_OP_RESHAPE);
    for (int i = 0; i < MGX_COUNT(movers); i++)
        moves |= ins->op == movers[i];
    return number && moves && ins->in_count > 0;
}

// False when out of memory.
static bool spare(struct mgx_map *spared, struct mgx_ins *ins)
{
    return mgx_map_find_pointer(spared, ins) || mgx_map_put_pointer(spared, ins, ins);
}

// What boxes are made of; the map is walked while it grows, in order of insertion.
static bool spare_before(struct mgx_map *spared)
{
    for (uint32_t at = 0; at < spared->count; at++) {
        const struct mgx_ins *ins = spared->entries[at].value;
        for (int i = 0; i < ins->in_count; i++) {
            const bool boxes = !boxes_of(ins) || ins->in[i] == boxes_of(ins);
            if (boxes && computes_places(ins->in[i]) && !spare(spared, ins->in[i]))
                return false;
        }
    }
    return true;
}

static bool spare_after(struct mgx_map *spared)
{
    for (uint32_t at = 0; at < spared->count; at++) {
        const struct mgx_ins *ins = spared->entries[at].value;
        for (const struct mgx_use *use = boxes_of(ins) ? NULL : ins->uses; use; use = use->next)
            if (computes_places(use->user) && !spare(spared, use->user))
                return false;
    }
    return true;
}

// False when out of memory.
static bool spare_boxes(struct mgx_map *spared, const struct mgx_program *p)
{
    for (int m = 0; m < p->module_count; m++)
        for (struct mgx_ins *ins = p->modules[m]->first; ins; ins = ins->next)
            if (boxes_of(ins) && !spare(spared, ins))
                return false;
    return spare_before(spared) && spare_after(spared);
}

// --- between quantized values ---

static bool is_dequantized(const struct mgx_ins *ins)
{
    while (ins->in_count && (ins->op->flags & (MGX_OP_VIEW | MGX_OP_RESHAPE)))
        ins = ins->in[0];
    return ins->op == &mgx_op_dequantizelinear && mgx_type_bits(ins->in[0]->shape.type) == 8;
}

// False when out of memory.
static bool spare_products(struct mgx_map *spared, const struct mgx_program *p)
{
    for (int m = 0; m < p->module_count; m++)
        for (struct mgx_ins *ins = p->modules[m]->first; ins; ins = ins->next)
            if ((ins->op == &mgx_op_dot || ins->op == &mgx_op_convolution) &&
                is_dequantized(ins->in[0]) && is_dequantized(ins->in[1]) && !spare(spared, ins))
                return false;
    return true;
}

// Element-wise, or a softmax.
static bool leads_on(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_softmax || (ins->op->flags & MGX_OP_POINTWISE);
}

// The product that it is made of by element-wise work; NULL: none.
static const struct mgx_ins *product_of(const struct mgx_ins *ins, int depth)
{
    const struct mgx_ins *found = NULL;
    if (ins->op == &mgx_op_dot || ins->op == &mgx_op_convolution)
        return ins;
    const bool goes_on = leads_on(ins) && ins->op != &mgx_op_quantizelinear;
    for (int i = 0; i < ins->in_count && depth > 0 && goes_on && !found; i++)
        found = product_of(ins->in[i], depth - 1);
    return found;
}

// Two products meet in it: the results of one wait in memory for the other's.
static bool mixes(const struct mgx_ins *ins)
{
    enum { DEPTH = 8 };
    const struct mgx_ins *found = NULL;
    bool several = false;
    for (int i = 0; i < ins->in_count; i++) {
        const struct mgx_ins *product = product_of(ins->in[i], DEPTH);
        several = several || (found && product && product != found);
        found = found ? found : product;
    }
    return several;
}

// Is it quantized by all who read it, or a part of what is?
static bool is_quantized(const struct mgx_map *spared, const struct mgx_ins *ins)
{
    bool is = ins->uses;
    for (const struct mgx_use *use = ins->uses; use && is; use = use->next) {
        const struct mgx_ins *user = use->user;
        is = user->op == &mgx_op_quantizelinear
                 ? user->in[0] == ins && mgx_type_bits(user->shape.type) == 8
                 : leads_on(user) && mgx_map_find_pointer(spared, user);
    }
    return is;
}

// False when out of memory.
static bool spare_ends(struct mgx_map *spared, const struct mgx_program *p)
{
    for (int m = 0; m < p->module_count; m++)
        for (struct mgx_ins *ins = p->modules[m]->last; ins; ins = ins->prev)
            if (leads_on(ins) && ins->shape.type == MGX_FLOAT && is_quantized(spared, ins) &&
                !mixes(ins) && !spare(spared, ins))
                return false;
    return true;
}

static enum mgx_status narrow(struct mgx_pass_call *c, const struct mgx_data_types *types)
{
    for (int i = 0; i < c->program->module_count; i++)
        if (!c->program->modules[i]->bypass)
            TRY(mgx_eliminate_data_type(c, c->program->modules[i], types));
    return mgx_program_status(c->program, c->diag);
}

enum mgx_status mgx_quantize_float(struct mgx_program *p, enum mgx_type type,
                                   const char *const *names, size_t count, struct mgx_diag *diag)
{
    assert(mgx_type_is_half_or_bf16(type));
    assert(!p->executable);
    static const struct mgx_pass *const before[] = {&mgx_pass_normalize_ops,
                                                    &mgx_pass_optimize_module, NULL};
    static const struct mgx_pass *const after[] = {&mgx_pass_optimize_module,
                                                   &mgx_pass_dead_code_elimination, NULL};
    static const struct mgx_pass_options options = {.fast_math = false};
    struct mgx_arena scratch;
    struct mgx_map spared = {0};
    mgx_arena_init(&scratch);
    const struct mgx_data_types types = {.types =
                                             MGX_TYPE_BIT(MGX_FLOAT) | MGX_TYPE_BIT(MGX_DOUBLE),
                                         .target = type,
                                         .keep = others(&scratch, names, count),
                                         .spared = &spared,
                                         .saturate = true};
    struct mgx_pass_call call = {
        .program = p, .scratch = &scratch, .options = &options, .diag = diag};
    enum mgx_status status =
        types.keep ? mgx_run_passes(p, before, &options, diag) : mgx_fail_memory(diag);
    if (status == MGX_OK &&
        !(spare_boxes(&spared, p) && spare_products(&spared, p) && spare_ends(&spared, p)))
        status = mgx_fail_memory(diag);
    if (status == MGX_OK)
        status = narrow(&call, &types);
    if (status == MGX_OK)
        status = mgx_run_passes(p, after, &options, diag);
    if (status == MGX_OK)
        status = mgx_program_check_files(p, diag);
    mgx_map_fini(&spared);
    mgx_arena_fini(&scratch);
    return status;
}
