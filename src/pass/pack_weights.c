// SPDX-License-Identifier: MIT
// Quantized weights of products become packed ones.
//
//     dot(x, dequantizelinear(w, scale, zero))             =>
//     dot(x, transpose(dequantize_blocks(w', scale', zero')))
//
// w is a constant matrix of numbers of 8 bits or fewer, as it comes or transposed; scale and zero
// are constants that stay the same along the depth, over all of it or over blocks of 16 and more.
// They are looked at value by value, whatever they were broadcast with. Signed numbers are raised
// by half their range, which is what stands for zero where there are no zero points.
//
// For targets that multiply by packed weights; one that says what it supports is asked about each
// product, with tag "packed_weights". Left alone: weights that anything but a product
// reads, small ones, and products whose other factor is dequantized too, which integers multiply.
// Cost: some passes over the weights.
#include <assert.h>
#include <string.h>

#include "op/eval/eval.h"
#include "pass/engine/constant.h"
#include "pass/engine/emit.h"
#include "pass/engine/region.h"
#include "pass/engine/walk.h"

// The parts as matrices, depth first: {k, n}, any strides.
struct weights {
    struct mgx_tensor q, scale, zero; // zero.data NULL: none
    int64_t k, n, block;
    int bits;
    bool is_signed;
};

// 8, 4 or 2; 0: integers of another width, or none.
static int bits_of(enum mgx_type type)
{
    const int bits = mgx_type_is_integral(type) ? mgx_type_bits(type) : 0;
    return bits <= 8 ? bits : 0;
}

// --- which ---

static bool only_products(const struct mgx_ins *ins, int depth)
{
    for (const struct mgx_use *use = ins->uses; use; use = use->next) {
        const struct mgx_ins *user = use->user;
        const bool swap = user->op == &mgx_op_transpose && depth && only_products(user, depth - 1);
        if (!swap && !(user->op == &mgx_op_dot && use->slot == 1 && user->owner == ins->owner))
            return false;
    }
    return ins->uses != NULL;
}

static bool reads_numbers(const struct mgx_ins *dot)
{
    return mgx_strip_views(dot->in[0])->op != &mgx_op_dequantizelinear;
}

static bool is_supported(const struct mgx_pass_call *c, struct mgx_ins *dot)
{
    const struct mgx_pass_options *o = c->options;
    const struct mgx_region one = {.ins = {dot}, .count = 1};
    return !o->target.supports || o->target.supports(o->target.user, "packed_weights", &one);
}

// The dequantization that a product reads as its second factor, and whether it is transposed.
static struct mgx_ins *find_packed(struct mgx_module *m, const struct mgx_ins *dot,
                                   bool *transposed)
{
    enum { LARGE = 16 << 10 }; // elements
    struct mgx_ins *d = dot->in[1];
    *transposed = d->op == &mgx_op_transpose;
    d = *transposed ? d->in[0] : d;
    if (d->op != &mgx_op_dequantizelinear || d->shape.rank != 2 || dot->shape.rank < 2 ||
        !mgx_shape_is_static(&d->shape) || !bits_of(d->in[0]->shape.type) ||
        mgx_shape_elements(&d->shape) < LARGE || !mgx_is_constant(m, d) || !only_products(d, 1))
        return NULL;
    return d;
}

// --- values ---

// What a constant holds; views stay views.
static enum mgx_status evaluate(struct mgx_eval *eval, struct mgx_arena *scratch,
                                const struct mgx_ins *ins, int depth, struct mgx_tensor *out,
                                struct mgx_diag *diag)
{
    enum { MOST = 4 };
    struct mgx_tensor value[MOST] = {{.data = NULL}};
    const struct mgx_tensor *in[MOST];
    enum mgx_status status = MGX_OK;
    *out = (struct mgx_tensor){.data = NULL};
    if (ins->literal) {
        *out = mgx_tensor_share(ins->literal);
        return MGX_OK;
    }
    if (ins->in_count > MOST || !depth)
        return mgx_fail(diag, MGX_UNSUPPORTED, "too deep");
    for (int i = 0; i < ins->in_count; i++) {
        in[i] = &value[i];
        if (status == MGX_OK)
            status = evaluate(eval, scratch, ins->in[i], depth - 1, &value[i], diag);
    }
    if (status == MGX_OK)
        status = mgx_eval_op(eval, ins->op, ins->attr, in, ins->in_count, NULL, 0, &ins->shape, out,
                             diag);
    for (int i = 0; i < ins->in_count; i++)
        mgx_tensor_release(&value[i]);
    return status;
}

static double value_at(const struct mgx_tensor *t, int64_t k, int64_t n)
{
    assert(k >= 0 && n >= 0);
    return mgx_load_double(t->shape.type, t->data,
                           k * t->shape.strides[0] + n * t->shape.strides[1]);
}

// Depth first.
static void turn(struct mgx_tensor *t)
{
    assert(t->shape.rank == 2);
    const int64_t len = t->shape.lens[0], stride = t->shape.strides[0];
    t->shape.lens[0] = t->shape.lens[1];
    t->shape.strides[0] = t->shape.strides[1];
    t->shape.lens[1] = len;
    t->shape.strides[1] = stride;
}

static enum mgx_status read_parts(const struct mgx_ins *d, bool transposed, struct weights *w,
                                  struct mgx_arena *scratch, struct mgx_diag *diag)
{
    enum { DEPTH = 8 };
    struct mgx_tensor *const part[] = {&w->q, &w->scale, &w->zero};
    struct mgx_eval eval = {.strings = scratch};
    for (int i = 0; i < d->in_count; i++) {
        TRY(evaluate(&eval, scratch, d->in[i], DEPTH, part[i], diag));
        if (transposed)
            turn(part[i]);
    }
    w->k = w->q.shape.lens[0];
    w->n = w->q.shape.lens[1];
    w->bits = bits_of(w->q.shape.type);
    w->is_signed = !mgx_type_is_unsigned(w->q.shape.type);
    return MGX_OK;
}

// --- blocks ---

static bool stays(const struct mgx_tensor *t, int64_t block, int64_t k, int64_t n)
{
    if (!t->data || t->shape.strides[0] == 0)
        return true;
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; i % block && j < n; j++)
            if (value_at(t, i, j) != value_at(t, i - i % block, j))
                return false;
    return true;
}

// The longest block that neither scales nor zero points change in; 0 if it is too short.
static int64_t find_block(const struct weights *w)
{
    const int64_t whole = (w->k + 15) / 16 * 16;
    if (stays(&w->scale, whole, w->k, w->n) && stays(&w->zero, whole, w->k, w->n))
        return whole;
    for (int64_t block = 1024; block >= 16; block /= 2)
        if (block < whole && stays(&w->scale, block, w->k, w->n) &&
            stays(&w->zero, block, w->k, w->n))
            return block;
    return 0;
}

// --- packing ---

static int raised(const struct weights *w, double q)
{
    return (int)q + (w->is_signed ? 1 << (w->bits - 1) : 0);
}

static void pack_values(const struct weights *w, int64_t blocks, uint8_t *to)
{
    assert(blocks > 0 && to);
    const int64_t bytes = w->block * w->bits / 8, per = 8 / w->bits;
    memset(to, 0, (size_t)(w->n * blocks * bytes));
    for (int64_t k = 0; k < w->k; k++)
        for (int64_t n = 0; n < w->n; n++) {
            const int q = raised(w, value_at(&w->q, k, n));
            const int64_t in_block = k % w->block;
            to[(n * blocks + k / w->block) * bytes + in_block / per] |=
                (uint8_t)(q << in_block % per * w->bits);
        }
}

static struct mgx_ins *add(struct mgx_module *m, struct mgx_tensor *t)
{
    struct mgx_ins *literal = mgx_add_literal(m, t);
    mgx_tensor_release(t);
    return literal;
}

static struct mgx_ins *emit(struct mgx_ins *at, const struct weights *w, struct mgx_diag *diag)
{
    const int64_t blocks = (w->k + w->block - 1) / w->block;
    const bool zeros = w->zero.data || !w->is_signed;
    const struct mgx_shape q = mgx_shape_make(
                               MGX_UINT8, 3,
                               (const int64_t[]){w->n, blocks, w->block * w->bits / 8}),
                           s = mgx_shape_make(w->scale.shape.type, 2,
                                              (const int64_t[]){w->n, blocks}),
                           z = mgx_shape_make(MGX_UINT8, 2, (const int64_t[]){w->n, blocks});
    struct mgx_tensor values, scale, zero = {.data = NULL};
    if (mgx_tensor_create(&values, &q, diag) != MGX_OK)
        return NULL;
    if (mgx_tensor_create(&scale, &s, diag) != MGX_OK ||
        mgx_tensor_create(&zero, &z, diag) != MGX_OK) {
        mgx_tensor_release(&values);
        return NULL;
    }
    pack_values(w, blocks, values.data);
    for (int64_t n = 0; n < w->n; n++)
        for (int64_t b = 0; b < blocks; b++) {
            mgx_store_double(s.type, scale.data, n * blocks + b,
                             value_at(&w->scale, b * w->block, n));
            ((uint8_t *)zero.data)[n * blocks + b] =
                (uint8_t)raised(w, w->zero.data ? value_at(&w->zero, b * w->block, n) : 0);
        }
    struct mgx_ins *in[] = {add(at->owner, &values), add(at->owner, &scale),
                            zeros ? add(at->owner, &zero) : NULL};
    const struct mgx_attr *attrs = MGX_ATTRS(mgx_int("bits", w->bits), mgx_int("columns", w->k));
    if (zeros)
        return mgx_emit_before(at, &mgx_op_dequantize_blocks, attrs, MGX_IN(in[0], in[1], in[2]));
    mgx_tensor_release(&zero);
    return mgx_emit_before(at, &mgx_op_dequantize_blocks, attrs, MGX_IN(in[0], in[1]));
}

static void release(struct weights *w)
{
    mgx_tensor_release(&w->q);
    mgx_tensor_release(&w->scale);
    mgx_tensor_release(&w->zero);
}

// What cannot be evaluated stays as it is.
static enum mgx_status rewrite(struct mgx_pass_call *c, struct mgx_ins *d, bool transposed)
{
    const int order[] = {1, 0};
    struct weights w = {.q = {.data = NULL}};
    struct mgx_diag why = {0};
    enum mgx_status status = read_parts(d, transposed, &w, c->scratch, &why);
    w.block = status == MGX_OK ? find_block(&w) : 0;
    struct mgx_ins *packed = w.block ? emit(d, &w, c->diag) : NULL;
    release(&w);
    if (mgx_status_is_final(status))
        return mgx_fail(c->diag, status, "%s", why.text);
    if (!packed)
        return c->diag->status;
    if (!transposed)
        packed = mgx_emit_transpose(d, packed, order, 2);
    if (!packed)
        return mgx_program_status(c->program, c->diag);
    mgx_replace(d, packed);
    c->changed = true;
    return MGX_OK;
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    mgx_mark_constants(m);
    for (struct mgx_ins *ins = m->first, *next; ins; ins = next) {
        bool transposed;
        next = ins->next;
        const bool may = ins->op == &mgx_op_dot && reads_numbers(ins) && is_supported(c, ins);
        struct mgx_ins *d = may ? find_packed(m, ins, &transposed) : NULL;
        if (d)
            TRY(rewrite(c, d, transposed));
    }
    return mgx_program_status(c->program, c->diag);
}

const struct mgx_pass mgx_pass_pack_weights = {
    .name = "pack_weights",
    .meaning = "quantized weights of products become packed ones",
    .module = run,
};
