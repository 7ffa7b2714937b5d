// SPDX-License-Identifier: MIT
// group[tag=attention]: dot(softmax(f(dot(q, k))), v) on the kernel of kernel/product/attention.h.
//
//     f                                    becomes
//     scores * c / d + mask, as spelled    scale and mask of the kernel
//     any other element-wise body          a block program over tiles of scores
//
// Of bfloat16 the products are quant_dot, and the softmax is rounded before the second one, the
// result perhaps after it.
//
// Operands of f have the scores' lengths and any strides but along the keys, where they are
// contiguous or the same for all.
#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "pass/engine/attention.h"
#include "pass/engine/region.h"
#include "targets/cpu/kernel/product/attention.h"
#include "targets/cpu/kernel/split.h"
#include "targets/cpu/lower/body.h"

struct operand {
    int input; // of the group; -1: the scores
    bool is_bool;
    int64_t row, col, batch[MGX_ATTENTION_BATCH];
};

struct attention {
    struct mgx_attention_plan plan;
    int q, k, v, mask; // inputs of the group, -1: none
    // For the block program; NULL otherwise:
    const struct cpu_body *body;
    struct operand operand[MGX_REGION_INPUTS];
    int operand_count;
    size_t scratch_offset, scratch_floats; // in the workspace; per thread
};

// The roles of the body's instructions; false where it is in no form known.
static bool find_parts(const struct mgx_plan_offer *c, struct mgx_attention_roles *p)
{
    assert(c->ins->mod_count == 1);
    const struct mgx_module *body = c->ins->mod[0];
    const int count = mgx_module_parameters(body, NULL, 0);
    const struct mgx_ins *last = mgx_module_result(body, 0);
    last = last->op == &mgx_op_convert ? last->in[0] : last; // what was rounded to bfloat16
    return count == c->in_count && count <= MGX_REGION_INPUTS && mgx_read_attention(last, p);
}

// --- f as scale and mask ---

// What a value inside f stands for outside it: the scores or a parameter of the group.
static const struct mgx_ins *outside(const struct mgx_attention_roles *p,
                                     const struct mgx_ins *node)
{
    const int i = p->between->op == &mgx_op_pointwise ? mgx_parameter_index(node) : -1;
    return i >= 0 ? p->between->in[i] : node;
}

static bool constant_of(const struct mgx_plan_offer *c, const struct mgx_attention_roles *p,
                        const struct mgx_ins *node, double *value)
{
    assert(node);
    const struct mgx_ins *leaf = outside(p, node);
    const int input = mgx_parameter_index(leaf);
    const struct mgx_tensor *t = leaf->literal ? leaf->literal : NULL;
    t = input >= 0 ? c->constant[input] : t;
    if (!t || t->shape.type != MGX_FLOAT || mgx_shape_space(&t->shape) != 1)
        return false;
    *value = *(const float *)t->data;
    return true;
}

// One step from the result of f towards the scores; NULL when it is none of those known.
static const struct mgx_ins *peel(const struct mgx_plan_offer *c,
                                  const struct mgx_attention_roles *p, const struct mgx_ins *node,
                                  double *scale, int *mask)
{
    double value;
    for (int i = 0; node->op == &mgx_op_mul && i < 2; i++)
        if (constant_of(c, p, node->in[i], &value)) {
            *scale *= value;
            return node->in[1 - i];
        }
    if (node->op == &mgx_op_div && constant_of(c, p, node->in[1], &value)) {
        *scale /= value;
        return node->in[0];
    }
    for (int i = 0; node->op == &mgx_op_add && *scale == 1 && *mask < 0 && i < 2; i++) {
        const int input = mgx_parameter_index(outside(p, node->in[i]));
        if (input >= 0 && c->in[input].type == MGX_FLOAT) {
            *mask = input;
            return node->in[1 - i];
        }
    }
    return NULL;
}

static bool is_scale_and_mask(const struct mgx_plan_offer *c, const struct mgx_attention_roles *p,
                              double *scale, int *mask)
{
    const struct mgx_ins *node = p->between;
    *scale = 1;
    *mask = -1;
    if (!node) // the softmax reads the scores themselves
        return true;
    if (node->op == &mgx_op_pointwise)
        node = mgx_module_result(node->mod[0], 0);
    while (node && outside(p, node) != p->scores)
        node = peel(c, p, node, scale, mask);
    return node != NULL;
}

// --- f as a block program ---

static const float *row_of(const struct operand *o, const struct mgx_plan_args *args,
                           int64_t offset, int n, float *buffer)
{
    if (!o->is_bool)
        return (const float *)args->in[o->input] + offset;
    const unsigned char *from = (const unsigned char *)args->in[o->input] + offset;
    for (int j = 0; j < n; j++)
        buffer[j] = from[j * o->col] != 0;
    return buffer;
}

struct job {
    const struct attention *g;
    const struct mgx_plan_args *args;
};

static void run_hook(void *user, const int64_t *at, const struct mgx_tile *tile)
{
    assert(((const struct job *)user)->g->body && tile->rows > 0 && tile->cols > 0);
    const struct job *job = user;
    const struct attention *g = job->g;
    float *scratch = (float *)(void *)((char *)job->args->workspace + g->scratch_offset) +
                     (size_t)tile->thread * g->scratch_floats;
    float *buffers = scratch + mgx_block_scratch(&g->body->block);
    struct mgx_block_operand in[MGX_REGION_INPUTS];
    for (int r = 0; r < tile->rows; r++)
        for (int first = 0; first < tile->cols; first += MGX_BLOCK) {
            const int n = tile->cols - first < MGX_BLOCK ? tile->cols - first : MGX_BLOCK;
            float *out = tile->data + r * tile->stride + first;
            for (int i = 0; i < g->operand_count; i++) {
                const struct operand *o = &g->operand[i];
                int64_t offset = (tile->row + r) * o->row + (tile->col + first) * o->col;
                for (int b = 0; b < g->plan.desc.batch_rank; b++)
                    offset += at[b] * o->batch[b];
                const float *data = o->input < 0 ? out
                                                 : row_of(o, job->args, offset, n,
                                                          buffers + (int64_t)i * MGX_BLOCK);
                in[i] = (struct mgx_block_operand){(float *)data, o->input >= 0 && o->col == 0};
            }
            mgx_block_run(&g->body->block, in, &out, n, scratch);
        }
}

static bool set_operand(struct mgx_plan_offer *c, const struct mgx_attention_roles *p, int input,
                        struct operand *o)
{
    assert(input >= 0 && input < c->in_count);
    const struct mgx_shape *s = &c->in[input], *scores = &p->scores->shape;
    const int rank = scores->rank;
    if ((s->type != MGX_FLOAT && s->type != MGX_BOOL) || !mgx_shape_same_lens(s, scores))
        return mgx_plan_unfit(c, "an operand between the products is neither float nor bool");
    *o = (struct operand){.input = input, .is_bool = s->type == MGX_BOOL};
    o->col = s->lens[rank - 1] == 1 ? 0 : s->strides[rank - 1];
    o->row = s->lens[rank - 2] == 1 ? 0 : s->strides[rank - 2];
    for (int i = 0; i < rank - 2; i++)
        o->batch[i] = s->lens[i] == 1 ? 0 : s->strides[i];
    if (o->col != 0 && o->col != 1)
        return mgx_plan_wish(c, input, MGX_PLAN_ROW_MAJOR,
                             "an operand between the products is not contiguous along the keys");
    return true;
}

static bool compile_between(struct mgx_plan_offer *c, const struct mgx_attention_roles *p,
                            struct attention *g)
{
    const struct mgx_ins *f = p->between;
    g->body = cpu_body_compile(c, f);
    if (!g->body || g->body->out_count != 1 || g->body->out_type[0] != MGX_FLOAT ||
        f->in_count > MGX_REGION_INPUTS || g->body->in_count != f->in_count)
        return false;
    g->operand_count = f->in_count;
    for (int i = 0; i < f->in_count; i++) {
        const int input = mgx_parameter_index(f->in[i]);
        g->operand[i] = (struct operand){.input = -1};
        if (f->in[i] != p->scores && (input < 0 || !set_operand(c, p, input, &g->operand[i])))
            return false;
    }
    return true;
}

// --- choosing ---

static void set_batches(const struct mgx_shape *s, int64_t *strides)
{
    assert(s->rank - 2 <= MGX_ATTENTION_BATCH);
    for (int i = 0; i < s->rank - 2; i++)
        strides[i] = s->lens[i] == 1 ? 0 : s->strides[i];
}

static bool suits(struct mgx_plan_offer *c, const struct mgx_attention_roles *p,
                  const struct attention *g)
{
    const struct mgx_shape *q = &c->in[g->q], *k = &c->in[g->k], *v = &c->in[g->v], *y = c->out;
    const int n = y->rank;
    const bool narrow =
        q->type == MGX_BF16 && mgx_gemm_kernel(MGX_KERNEL_BF16, cpu_offered(c)->isa);
    const enum mgx_type type = narrow ? MGX_BF16 : MGX_FLOAT;
    if (q->type != type || k->type != type || v->type != type ||
        (y->type != MGX_FLOAT && y->type != type) || n - 2 > MGX_ATTENTION_BATCH ||
        !mgx_shape_elements(&p->scores->shape))
        return mgx_plan_unfit(c, "not float, empty, or too many batch axes");
    if (y->strides[n - 1] != 1 && y->lens[n - 1] != 1)
        return mgx_plan_unfit(c, "columns of the result are not contiguous");
    if (q->strides[n - 1] != 1 && q->lens[n - 1] != 1)
        return mgx_plan_wish(c, g->q, MGX_PLAN_ROW_MAJOR, "rows of the queries are not contiguous");
    return true;
}

static void describe(const struct mgx_plan_offer *c, const struct attention *g,
                     struct mgx_attention_desc *d)
{
    const struct mgx_shape *q = &c->in[g->q], *k = &c->in[g->k], *v = &c->in[g->v], *y = c->out;
    const int n = y->rank;
    *d = (struct mgx_attention_desc){.isa = cpu_offered(c)->isa,
                                     .type = q->type == MGX_BF16 ? MGX_KERNEL_BF16 : MGX_KERNEL_F32,
                                     .y_type =
                                         y->type == MGX_BF16 ? MGX_KERNEL_BF16 : MGX_KERNEL_F32,
                                     .threads = c->machine->threads,
                                     .queries = q->lens[n - 2],
                                     .keys = k->lens[n - 1],
                                     .depth = q->lens[n - 1],
                                     .columns = v->lens[n - 1],
                                     .batch_rank = n - 2,
                                     .q_row = q->strides[n - 2],
                                     .k_row = k->strides[n - 2],
                                     .k_col = k->strides[n - 1],
                                     .v_row = v->strides[n - 2],
                                     .v_col = v->strides[n - 1],
                                     .y_row = y->strides[n - 2],
                                     .scale = 1};
    assert(d->queries == y->lens[n - 2] && y->lens[n - 1] == d->columns);
    assert(k->lens[n - 2] == d->depth && v->lens[n - 2] == d->keys);
}

static void describe_batches(const struct mgx_plan_offer *c, const struct attention *g,
                             struct mgx_attention_desc *d)
{
    memcpy(d->batch, c->out->lens, (size_t)d->batch_rank * sizeof *d->batch);
    set_batches(&c->in[g->q], d->q_batch);
    set_batches(&c->in[g->k], d->k_batch);
    set_batches(&c->in[g->v], d->v_batch);
    set_batches(c->out, d->y_batch);
}

static bool describe_mask(struct mgx_plan_offer *c, const struct mgx_attention_roles *p,
                          const struct attention *g, struct mgx_attention_desc *d)
{
    struct operand mask;
    if (!set_operand(c, p, g->mask, &mask))
        return false;
    d->masked = true;
    d->mask_row = mask.row;
    d->mask_col = mask.col;
    memcpy(d->mask_batch, mask.batch, sizeof d->mask_batch);
    return true;
}

static bool describe_between(struct mgx_plan_offer *c, const struct mgx_attention_roles *p,
                             struct attention *g, struct mgx_attention_desc *d)
{
    double scale;
    if (!is_scale_and_mask(c, p, &scale, &g->mask)) {
        d->hook = run_hook;
        return compile_between(c, p, g);
    }
    d->scale = (float)scale;
    return g->mask < 0 || describe_mask(c, p, g, d);
}

static bool find_inputs(const struct mgx_attention_roles *p, struct attention *g)
{
    g->q = mgx_parameter_index(p->scores->in[0]);
    g->k = mgx_parameter_index(p->scores->in[1]);
    g->v = mgx_parameter_index(p->weigh->in[1]);
    g->mask = -1;
    return g->q >= 0 && g->k >= 0 && g->v >= 0;
}

static bool plan_call(struct mgx_plan_offer *c, const struct mgx_attention_roles *p,
                      struct attention *g, struct mgx_attention_desc *d)
{
    if (!find_inputs(p, g) || !suits(c, p, g))
        return false;
    describe(c, g, d);
    d->guarded = p->guard != NULL;
    assert(d->keys == p->scores->shape.lens[p->scores->shape.rank - 1]);
    describe_batches(c, g, d);
    return describe_between(c, p, g, d) && mgx_attention_plan_init(&g->plan, d, c->diag) == MGX_OK;
}

// The block program's room for every thread, behind the kernel's own.
static void take_scratch(struct mgx_plan_offer *c, struct attention *g, int64_t threads)
{
    g->scratch_offset = mgx_align64(c->workspace);
    g->scratch_floats =
        (size_t)mgx_block_scratch(&g->body->block) + (size_t)g->operand_count * MGX_BLOCK;
    c->workspace =
        g->scratch_offset + g->scratch_floats * sizeof(float) * (size_t)mgx_max_i64(threads, 1);
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct mgx_attention_roles p;
    struct mgx_attention_desc desc;
    if (!mgx_is_group(c->ins, "attention"))
        return mgx_plan_refuse(c);
    struct attention *g = MGX_NEW(c->arena, struct attention);
    if (!g)
        return mgx_plan_no_memory(c);
    if (!find_parts(c, &p))
        return mgx_plan_decline(c, "the body is not in the form known");
    if (!plan_call(c, &p, g, &desc))
        return mgx_plan_refuse(c);
    c->workspace = mgx_attention_workspace(&g->plan);
    if (g->body)
        take_scratch(c, g, desc.threads);
    c->flops =
        2.0 * (double)mgx_shape_elements(&p.scores->shape) * (double)(desc.depth + desc.columns);
    const bool narrow = !mgx_kernel_is_plain(desc.type);
    c->detail = g->body  ? narrow ? "bf16, block program" : "block program"
                : narrow ? "bf16, scale and mask"
                         : "scale and mask";
    c->state = g;
    return MGX_PLAN_TAKEN;
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    (void)diag;
    const struct attention *g = step->state;
    assert(args->in[g->q] && args->in[g->k] && args->in[g->v]);
    struct job job = {g, args};
    const struct mgx_attention_args a = {.q = args->in[g->q],
                                         .k = args->in[g->k],
                                         .v = args->in[g->v],
                                         .mask = g->mask >= 0 ? args->in[g->mask] : NULL,
                                         .y = args->out,
                                         .workspace = args->workspace,
                                         .hook_user = &job};
    mgx_attention_run(&g->plan, &a, cpu_pool(args));
    return MGX_OK;
}

CPU_KERNEL(attention, 40)
const struct mgx_plan_kernel cpu_kernel_attention = {
    .name = "attention", .prepare = prepare, .run = run};
