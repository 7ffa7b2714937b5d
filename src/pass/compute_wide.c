// SPDX-License-Identifier: MIT
// Computes in float what is of 16 bits, and stores 16 bits at the program's edges.
//
//     y = f(x)   of half   =>   y' = f(x'),  y = convert[half](y')        f reads x' again, not x
//
// For targets whose machine multiplies no 16-bit floats: their kernels would widen every operand
// and narrow every result, so what stands between two instructions stays wide. Weights, parameters,
// results, what only moves from one of those to another, and what bodies or callers read keep their
// 16 bits. An instruction of half gives then what it gives on float, rounded once to 16 bits where
// it is seen: half to even, infinity above the largest half.
//
// Seen means: a result, a conversion to another type than float, an operator whose value jumps
// (floor, comparisons, integers made of floats). Those read y, unless it is 0 or 1 anyway. What is
// quantized is rounded to fewer digits still: it is read in float, and so are its scales. A
// conversion to half that the program asks for and reads back as float rounds as it says, and so
// does what is added to a value that was clamped to 16 bits.
//
//     float   x' is x itself where x = convert[half](x'), else convert[float](x), made once
//
// compute_wide_early does so before quantized models are looked at, whose scales are of 16 bits:
// what they multiply is in float then. Products of bfloat16 that a target multiplies itself stay as
// they are. compute_wide_late does so where sizes are known only at run time, and in bodies: for
// targets that multiply 16 bits on a card, and leave those to the host.
//
// A target that multiplies bfloat16 itself (mgx_pass_target.multiplies_bf16) keeps the operands of
// its products:
//
//     dot[bf16](a, b)   =>   y' = quant_dot(a, b),  y = convert[bf16](y')        convolution alike
//
// The sums are floats, and what follows goes on from them. A value that a product reads, at once or
// moved, is rounded where it is made, and whoever else reads it reads that: it is in memory once,
// in 16 bits. Depthwise convolutions and a product of a column are no gain and stay in float, and
// so does what the target says (floats_pay).
//
// Constants are left to folding, which keeps large weights in 16 bits (mgx_is_widened_weights).
// O(instructions).
#include "pass/engine/constant.h"

#include <assert.h>
#include <string.h>

#include "op/reference/resize.h"
#include "pass/engine/emit.h"
#include "pass/engine/walk.h"

// Which of the three passes it is: EARLY leaves products that stay for later, LATE looks only where
// sizes are not known, and into bodies.
enum when { EARLY, MAIN, LATE };

struct wide {
    struct mgx_pass_call *call;
    struct mgx_module *module;
    struct mgx_map of; // a value of 16 bits -> the same in float
    enum when when;
    bool multiplies;       // products of bfloat16 stay
    struct mgx_map narrow; // values that such products read: they stay as they are
};

// Does not look at values: worth doing in 16 bits as long as its inputs have no wide form.
static bool only_moves(const struct mgx_op *op)
{
    return op->flags & (MGX_OP_VIEW | MGX_OP_RESHAPE | MGX_OP_HANDS_ON | MGX_OP_BLIND);
}

// A small change of the input may change the result by much: sees the 16 bits.
static bool jumps(const struct mgx_ins *ins)
{
    if (ins->op == &mgx_op_quantizelinear)
        return false;
    return !mgx_type_is_float(ins->shape.type) || ins->op->flags & (MGX_OP_TRUTH | MGX_OP_STEP);
}

static struct mgx_ins *known(const struct wide *w, const struct mgx_ins *x)
{
    return mgx_map_find_pointer(&w->of, x);
}

// Constants are converted where they are smallest: before they repeat, piece by piece, and in the
// scales of packed weights.
static struct mgx_ins *widened_constant(struct mgx_ins *at, struct mgx_ins *x)
{
    assert(at->owner && x);
    enum { PIECES = 16 };
    const struct mgx_op *op = x->op;
    struct mgx_ins *in[PIECES];
    const bool view = (op->flags & (MGX_OP_VIEW | MGX_OP_RESHAPE)) && x->in_count == 1 &&
                      mgx_shape_elements(&x->shape) >= mgx_shape_elements(&x->in[0]->shape);
    const bool passes = view || op == &mgx_op_broadcast || op == &mgx_op_dequantize_blocks ||
                        op == &mgx_op_dequantizelinear;
    if (!mgx_type_is_half_or_bf16(x->shape.type) || x->in_count > PIECES ||
        (!passes && !mgx_is_joined(x)))
        return mgx_type_is_half_or_bf16(x->shape.type) ? mgx_emit_convert(at, x, MGX_FLOAT) : x;
    for (int i = 0; i < x->in_count; i++)
        in[i] = widened_constant(at, x->in[i]);
    return mgx_emit_again(at, x, in, x->in_count);
}

// x in float, for `at`; rounded: as its 16 bits have it.
static struct mgx_ins *widened(struct wide *w, struct mgx_ins *at, struct mgx_ins *x, bool rounded)
{
    struct mgx_ins *const there = known(w, x), *y = there;
    const bool exact =
        y && ((y->op->flags & MGX_OP_TRUTH) || (y->op == &mgx_op_convert && y->in[0] == x));
    if (!mgx_type_is_half_or_bf16(x->shape.type) || (y && (exact || !rounded)))
        return y ? y : x;
    y = mgx_is_constant(w->module, x) ? widened_constant(at, x)
                                      : mgx_emit_convert(at, x, MGX_FLOAT);
    if (y && !there && !mgx_map_put_pointer(&w->of, x, y))
        mgx_fail_memory(w->call->diag);
    return y;
}

static bool is_late(const struct mgx_ins *ins)
{
    bool late = !mgx_shape_is_static(&ins->shape);
    for (int i = 0; i < ins->in_count; i++)
        late |= !mgx_shape_is_static(&ins->in[i]->shape);
    return late || ins->owner != mgx_program_main(ins->owner->program);
}

// --- products of 16 bits ---

// Convolutions of few channels are work for kernels of their own.
static bool has_depth(const struct mgx_ins *conv)
{
    enum { LEAST = 16 };
    return mgx_ins_int(conv, "group") == 1 || conv->in[1]->shape.lens[1] >= LEAST;
}

// Behind views; it has no 16 bits but those of its scale.
static bool is_dequantized(const struct mgx_ins *x)
{
    for (int depth = 0; depth < 8 && only_moves(x->op) && x->in_count == 1; depth++)
        x = x->in[0];
    return x->op == &mgx_op_dequantizelinear;
}

static bool stays_product(const struct wide *w, struct mgx_ins *ins)
{
    const bool conv = ins->op == &mgx_op_convolution;
    const struct mgx_pass_options *o = w->call->options;
    const bool stays = w->multiplies && (conv || ins->op == &mgx_op_dot) &&
                       ins->shape.type == MGX_BF16 && ins->in[0]->shape.type == MGX_BF16 &&
                       ins->in[1]->shape.type == MGX_BF16 && !is_late(ins) &&
                       mgx_shape_elements(&ins->shape) > 0 && !mgx_is_constant(w->module, ins) &&
                       !is_dequantized(ins->in[0]) && !is_dequantized(ins->in[1]) &&
                       (conv ? mgx_is_constant(w->module, ins->in[1]) && has_depth(ins)
                             : ins->shape.lens[ins->shape.rank - 1] > 1);
    return stays && !(o->target.floats_pay && o->target.floats_pay(o->target.user, ins));
}

// What this pass has made of such.
static bool is_narrow_product(const struct mgx_ins *ins)
{
    return (ins->op == &mgx_op_quant_dot || ins->op == &mgx_op_quant_convolution) &&
           ins->in[0]->shape.type == MGX_BF16;
}

// An image made larger by its nearest pixels moves too, with a kernel for that.
static bool moves(const struct wide *w, const struct mgx_ins *ins)
{
    if (ins->op != &mgx_op_resize || !w->multiplies)
        return only_moves(ins->op);
    const struct mgx_resize *how = ins->attr;
    const struct mgx_shape *x = &ins->in[0]->shape, *y = &ins->shape;
    return ins->in_count == 1 && x->rank == 4 && mgx_shape_is_static(x) && mgx_shape_is_static(y) &&
           x->lens[0] == y->lens[0] && x->lens[1] == y->lens[1] &&
           strcmp(how->mode, "nearest") == 0 &&
           strcmp(how->coordinate_transformation_mode, "tf_crop_and_resize") != 0;
}

static bool is_read_narrow(const struct wide *w, const struct mgx_ins *x)
{
    return mgx_map_find_pointer(&w->narrow, x) != NULL;
}

// From the last instruction to the first, so that readers come before what they read.
static enum mgx_status find_narrow(struct wide *w)
{
    for (struct mgx_ins *ins = w->module->last; ins; ins = ins->prev) {
        if (!stays_product(w, ins) && !is_narrow_product(ins) &&
            !(moves(w, ins) && is_read_narrow(w, ins)))
            continue;
        for (int i = 0; i < ins->in_count; i++)
            if (ins->in[i]->shape.type == MGX_BF16 &&
                !mgx_map_put_pointer(&w->narrow, ins->in[i], ins->in[i]))
                return mgx_fail_memory(w->call->diag);
    }
    return MGX_OK;
}

static struct mgx_ins *product_of(struct mgx_ins *ins)
{
    if (ins->op == &mgx_op_dot)
        return mgx_emit_before(ins, &mgx_op_quant_dot, NULL, MGX_IN(ins->in[0], ins->in[1]));
    return mgx_emit_as(ins, &mgx_op_quant_convolution, ins, MGX_IN(ins->in[0], ins->in[1]));
}

static bool concerns(const struct wide *w, struct mgx_ins *ins)
{
    if (moves(w, ins) && is_read_narrow(w, ins))
        return false;
    if (w->when == LATE && !is_late(ins))
        return false;
    if (ins->op == &mgx_op_convert || (ins->op->flags & MGX_OP_BUILTIN) || !mgx_is_pure(ins) ||
        mgx_op_find(ins->op->name) != ins->op || mgx_is_constant(w->module, ins))
        return false;
    bool any = false, wide = false;
    for (int i = 0; i < ins->in_count; i++) {
        any |= mgx_type_is_half_or_bf16(ins->in[i]->shape.type);
        wide |= known(w, ins->in[i]) != NULL;
    }
    return any && (wide || !only_moves(ins->op));
}

static bool same_sizes(const struct mgx_shape *a, const struct mgx_shape *b)
{
    return a->unranked == b->unranked && mgx_shape_is_static(a) == mgx_shape_is_static(b) &&
           (!mgx_shape_is_static(a) || mgx_shape_same_lens(a, b));
}

// Does the operator work on float, and is its result the same but for its type?
static bool may_be_wide(const struct wide *w, const struct mgx_ins *ins)
{
    struct mgx_arena *scratch = w->call->scratch;
    const int n = ins->in_count;
    struct mgx_shape *shapes = MGX_NEW_ARRAY(scratch, struct mgx_shape, n), shape;
    const struct mgx_shape **in = MGX_NEW_ARRAY(scratch, const struct mgx_shape *, n);
    const struct mgx_tensor **values = MGX_NEW_ARRAY(scratch, const struct mgx_tensor *, n);
    if (!shapes || !in || !values)
        return false;
    for (int i = 0; i < n; i++) {
        const bool narrow = mgx_type_is_half_or_bf16(ins->in[i]->shape.type);
        shapes[i] = ins->in[i]->shape;
        shapes[i].type = narrow ? MGX_FLOAT : shapes[i].type;
        in[i] = &shapes[i];
        values[i] = narrow ? NULL : ins->in[i]->literal;
    }
    struct mgx_diag why = {0};
    struct mgx_shape_call call = {.op = ins->op,
                                  .attr = ins->attr,
                                  .in = in,
                                  .in_count = n,
                                  .values = values,
                                  .arena = scratch,
                                  .diag = &why};
    const enum mgx_type type =
        mgx_type_is_half_or_bf16(ins->shape.type) ? MGX_FLOAT : ins->shape.type;
    return mgx_op_shape(&call, &shape) == MGX_OK && shape.type == type && type != MGX_TUPLE &&
           type != MGX_SEQUENCE && same_sizes(&shape, &ins->shape);
}

// May it be a mask, a number so large that it was clamped to the largest of 16 bits? What is added
// to that must vanish in it, as it does in 16 bits, or a row that is masked whole is no longer
// even.
static bool is_clamped(const struct mgx_ins *x)
{
    for (int depth = 0; depth < 8 && only_moves(x->op) && x->in_count == 1; depth++)
        x = x->in[0];
    return x->op == &mgx_op_convert && x->in[0]->op == &mgx_op_clip;
}

static bool adds_mask(const struct mgx_ins *ins)
{
    return (ins->op == &mgx_op_add || ins->op == &mgx_op_sub) &&
           (is_clamped(ins->in[0]) || is_clamped(ins->in[1]));
}

// `y` takes the place of `ins`, whose type it has once it is stored.
static enum mgx_status put(struct wide *w, struct mgx_ins *ins, struct mgx_ins *y, bool rounds)
{
    const bool narrow = mgx_type_is_half_or_bf16(ins->shape.type), read = is_read_narrow(w, ins);
    struct mgx_ins *stored = y;
    if (y && narrow)
        stored = mgx_emit_convert(ins, y, ins->shape.type);
    if (!stored)
        return mgx_program_status(w->call->program, w->call->diag);
    if (narrow && !rounds && !read && !mgx_map_put_pointer(&w->of, stored, y))
        return mgx_fail_memory(w->call->diag);
    mgx_copy_origin(y, ins);
    mgx_replace(ins, stored);
    w->call->changed = true;
    return MGX_OK;
}

static enum mgx_status rewrite(struct wide *w, struct mgx_ins *ins)
{
    struct mgx_ins **in = MGX_NEW_ARRAY(w->call->scratch, struct mgx_ins *, ins->in_count);
    const bool rounded = jumps(ins), narrow = mgx_type_is_half_or_bf16(ins->shape.type);
    const bool rounds = narrow && adds_mask(ins);
    if (!in)
        return mgx_fail_memory(w->call->diag);
    for (int i = 0; i < ins->in_count; i++)
        in[i] = widened(w, ins, ins->in[i], rounded);
    return put(w, ins, mgx_emit_again(ins, ins, in, ins->in_count), rounds);
}

// Conversions that are there. To 16 bits: arithmetic goes on from what is converted. To float: it
// is there already, unless the program has just rounded it (what this pass makes has no mark yet).
static enum mgx_status read_convert(struct wide *w, struct mgx_ins *ins)
{
    struct mgx_ins *x = ins->in[0], *y = known(w, x);
    bool noted = true;
    if (mgx_is_constant(w->module, ins))
        return MGX_OK;
    if (mgx_type_is_half_or_bf16(ins->shape.type) && x->shape.type == MGX_FLOAT) {
        noted = mgx_map_put_pointer(&w->of, ins, x);
    } else if (mgx_type_is_half_or_bf16(x->shape.type) && ins->shape.type == MGX_FLOAT) {
        const bool asked = x->op == &mgx_op_convert && x->mark == MGX_MARK_VARIABLE;
        if (!y)
            noted = mgx_map_put_pointer(&w->of, x, ins);
        else if (!asked) {
            mgx_replace(ins, y);
            w->call->changed = true;
        }
    } else if (y && (y->op->flags & MGX_OP_TRUTH)) {
        mgx_replace(ins, mgx_emit_convert(ins, y, ins->shape.type));
        w->call->changed = true;
    }
    return noted ? MGX_OK : mgx_fail_memory(w->call->diag);
}

static enum mgx_status widen(struct mgx_pass_call *c, struct mgx_module *m, enum when when)
{
    struct wide w = {.call = c, .module = m, .when = when};
    w.multiplies = c->options->target.multiplies_bf16 && when != LATE;
    enum mgx_status status = MGX_OK;
    mgx_mark_constants(m); // what this pass makes stays unknown
    if (w.multiplies)
        status = find_narrow(&w);
    for (struct mgx_ins *ins = m->first, *next; ins && status == MGX_OK; ins = next) {
        next = ins->next;
        if (ins->op == &mgx_op_convert)
            status = read_convert(&w, ins);
        else if (stays_product(&w, ins))
            status = w.when == EARLY ? MGX_OK : put(&w, ins, product_of(ins), false);
        else if (concerns(&w, ins) && may_be_wide(&w, ins))
            status = rewrite(&w, ins);
        if (status == MGX_OK)
            status = mgx_program_status(c->program, c->diag);
    }
    mgx_map_fini(&w.of);
    mgx_map_fini(&w.narrow);
    return status;
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    return widen(c, m, MAIN);
}

static enum mgx_status run_early(struct mgx_pass_call *c, struct mgx_module *m)
{
    return widen(c, m, EARLY);
}

static enum mgx_status run_late(struct mgx_pass_call *c, struct mgx_module *m)
{
    return widen(c, m, LATE);
}

const struct mgx_pass mgx_pass_compute_wide_early = {
    .name = "compute_wide_early",
    .meaning = "computes what quantized values of half and bfloat16 meet in float",
    .module = run_early,
};

const struct mgx_pass mgx_pass_compute_wide_late = {
    .name = "compute_wide_late",
    .meaning = "computes half and bfloat16 in float where sizes are known only at run time",
    .module = run_late,
};

const struct mgx_pass mgx_pass_compute_wide = {
    .name = "compute_wide",
    .meaning = "computes half and bfloat16 in float; 16 bits stay at the program's edges",
    .module = run,
};
