// SPDX-License-Identifier: MIT
// Element-wise instructions: `pointwise` with its body, or a lone scalar operator, as a block
// program over the result.
//
//     axes in the result's order of memory, merged where every operand allows:
//     outer ... outer | run: blocks of 256; an operand steps 0 (one value), 1, or is gathered
//
// Short runs (a slice of a wider image's channels, a factor per channel) are done several at a
// time: what does not lie side by side is gathered into one block, which costs less than a dispatch
// per run.
//
// Work is cut into blocks, numbered through, and dealt to threads in ranges. Cost: one dispatch per
// line and block.
#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "plan/table.h"
#include "targets/cpu/kernel/end/end.h"
#include "targets/cpu/kernel/move/bytes.h"
#include "targets/cpu/lower/body.h"
#include "targets/cpu/lower/scaled.h"
#include "targets/cpu/lower/typed.h"

enum { MAX_IN = 16, PARALLEL_ELEMENTS = 1 << 15 };

struct loops {
    int rank; // of the outer axes
    int64_t lens[MGX_MAX_RANK];
    int64_t out[MGX_MAX_RANK], in[MAX_IN][MGX_MAX_RANK]; // strides in elements
    int64_t run, out_step, in_step[MAX_IN];
    int64_t blocks_per_run, blocks;
};

struct pointwise {
    const struct cpu_body *body;     // of floats and bools
    const struct cpu_typed *typed;   // or of any types
    const uint8_t *table;            // or a function of one byte
    const struct cpu_scaled *scaled; // or bytes times a factor
    bool quantizes;                  // or floats that become bytes by one scale
    int in_count;
    struct loops loops;
    int threads;
    size_t thread_floats; // of scratch: temporaries, then one block per operand
};

static void sort_axes(const struct mgx_shape *out, int *order, int *count)
{
    assert(out->rank >= 0 && out->rank <= MGX_MAX_RANK);
    *count = 0;
    for (int i = 0; i < out->rank; i++)
        if (out->lens[i] != 1)
            order[(*count)++] = i;
    cpu_sort_axes(out, order, *count);
}

// Does axis `a` continue axis `last` of the loops in every operand?
static bool continues(const struct loops *l, const struct mgx_plan_offer *c, int a, int last)
{
    const int64_t n = c->out->lens[a];
    if (l->out[last] != c->out->strides[a] * n)
        return false;
    for (int i = 0; i < c->in_count; i++)
        if (l->in[i][last] != c->in[i].strides[a] * n)
            return false;
    return true;
}

// The axes in the result's order of memory, merged where every operand allows.
static void merge_axes(struct loops *l, const struct mgx_plan_offer *c)
{
    int order[MGX_MAX_RANK], count;
    sort_axes(c->out, order, &count);
    l->rank = 0;
    for (int k = 0; k < count; k++) {
        const int a = order[k];
        const bool merged = l->rank && continues(l, c, a, l->rank - 1);
        const int to = merged ? l->rank - 1 : l->rank++;
        l->lens[to] = c->out->lens[a] * (merged ? l->lens[to] : 1);
        l->out[to] = c->out->strides[a];
        for (int i = 0; i < c->in_count; i++)
            l->in[i][to] = c->in[i].strides[a];
    }
}

// The innermost axis becomes the run.
static void take_run(struct loops *l, int in_count)
{
    l->run = l->out_step = 1;
    if (!l->rank)
        return;
    l->rank--;
    l->run = l->lens[l->rank];
    l->out_step = l->out[l->rank];
    for (int i = 0; i < in_count; i++)
        l->in_step[i] = l->in[i][l->rank];
}

static void plan_loops(struct loops *l, const struct mgx_plan_offer *c)
{
    assert(c->in_count <= MAX_IN);
    merge_axes(l, c);
    take_run(l, c->in_count);
    l->blocks_per_run = (l->run + MGX_BLOCK - 1) / MGX_BLOCK;
    l->blocks = l->blocks_per_run * mgx_product(l->lens, l->rank);
}

// Do the loops go over all elements of the result and of every operand?
__attribute__((unused)) static bool covers(const struct loops *l, const struct mgx_plan_offer *c)
{
    bool good =
        l->run * mgx_product(l->lens, l->rank) == mgx_shape_elements(c->out) &&
        l->blocks_per_run * MGX_BLOCK >= l->run &&
        cpu_reaches(c->out, cpu_reach(l->lens, l->out, l->rank) + (l->run - 1) * l->out_step);
    for (int i = 0; i < c->in_count && good; i++)
        good = cpu_reaches(&c->in[i], cpu_reach(l->lens, l->in[i], l->rank) +
                                          (l->run > 1 ? (l->run - 1) * l->in_step[i] : 0));
    return good;
}

static bool same_layout(const struct mgx_shape *a, const struct mgx_shape *b)
{
    assert(mgx_shape_is_static(a) && mgx_shape_is_static(b));
    if (a->type != b->type || a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->lens[i] != b->lens[i] || (a->lens[i] != 1 && a->strides[i] != b->strides[i]))
            return false;
    return true;
}

// As a program of floats, which is faster, or of any types.
static bool compile(struct mgx_plan_offer *c, struct pointwise *p)
{
    p->body = cpu_body_compile(c, c->ins);
    if (p->body && (p->body->out_count != 1 || p->body->in_count != c->in_count))
        return mgx_plan_unfit(c, "the body has several results");
    if (!p->body && c->diag->status == MGX_OK)
        p->typed = cpu_typed_compile(c, c->ins);
    const struct mgx_module *body = c->ins->mod_count ? c->ins->mod[0] : NULL;
    struct mgx_ins *from[1];
    if (p->body && body && mgx_module_parameters(body, from, 1) == 1 && p->body->out_count == 1)
        p->table = mgx_plan_table_of(c->arena, body, from[0]);
    return p->body || p->typed;
}

// Whether the loops are such that bytes lie side by side and the factor does, or is one value, and
// the shift as the factor.
static bool scales(const struct pointwise *p)
{
    const struct loops *l = &p->loops;
    const struct cpu_scaled *s = p->scaled;
    const int64_t step = s ? l->in_step[s->factor] : -1;
    return s && l->in_step[s->x] == 1 && l->out_step == 1 && (step == 0 || step == 1) &&
           (s->shift < 0 || l->in_step[s->shift] == step);
}

static bool is_value(const struct mgx_shape *s, enum mgx_type type)
{
    return s->type == type && mgx_shape_space(s) == 1;
}

// Whether floats side by side become bytes side by side, all by one scale and zero point.
static bool quantizes(const struct pointwise *p, const struct mgx_plan_offer *c)
{
    const enum mgx_type to = c->out->type;
    return p->body && c->ins->op == &mgx_op_quantizelinear && mgx_type_is_byte(to) &&
           c->in[0].type == MGX_FLOAT && is_value(&c->in[1], MGX_FLOAT) &&
           (c->in_count == 2 || is_value(&c->in[2], to)) && p->loops.in_step[0] == 1 &&
           p->loops.out_step == 1;
}

static bool takes(const struct mgx_op *op)
{
    return op == &mgx_op_pointwise || (op->flags & MGX_OP_POINTWISE) || op == &mgx_op_convert ||
           op == &mgx_op_identity;
}

static size_t scratch_of(const struct pointwise *p)
{
    return p->typed
               ? cpu_typed_scratch(p->typed) / sizeof(float)
               : (size_t)mgx_block_scratch(&p->body->block) + (size_t)(p->in_count + 1) * MGX_BLOCK;
}

// The first input whose bytes the result may take.
static int work_in_place(const struct mgx_plan_offer *c)
{
    for (int i = 0; i < c->in_count; i++)
        if (same_layout(&c->in[i], c->out) && !mgx_shape_is_broadcasted(&c->in[i]))
            return i;
    return -1;
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    const int64_t elements = mgx_shape_elements(c->out);
    if (!takes(c->ins->op))
        return mgx_plan_refuse(c);
    if (c->in_count > MAX_IN || c->in_count < 1)
        return mgx_plan_decline(c, "too many inputs");
    struct pointwise *p = MGX_NEW(c->arena, struct pointwise);
    if (!p)
        return mgx_plan_no_memory(c);
    p->in_count = c->in_count;
    if (!compile(c, p))
        return mgx_plan_refuse(c);
    plan_loops(&p->loops, c);
    p->scaled = p->body && c->ins->mod_count ? cpu_scaled_of(c, c->ins->mod[0]) : NULL;
    p->scaled = scales(p) ? p->scaled : NULL;
    p->quantizes = quantizes(p, c);
    c->detail = p->typed ? "typed" : p->table ? "table" : p->scaled ? "scaled" : NULL;
    assert(!elements || covers(&p->loops, c));
    if (!elements)
        p->loops.blocks = 0;
    p->threads = cpu_tasks(c, elements, PARALLEL_ELEMENTS, c->machine->threads);
    p->thread_floats = scratch_of(p);
    c->workspace = p->thread_floats * sizeof(float) * (size_t)c->machine->threads;
    c->in_place = work_in_place(c);
    c->state = p;
    return MGX_PLAN_TAKEN;
}

struct job {
    const struct pointwise *p;
    const struct mgx_plan_args *args;
    int tasks;
    struct mgx_end_step to_byte[2]; // where it quantizes
};

static void set_bytes(const struct pointwise *p, const struct mgx_plan_args *args,
                      struct mgx_end_step step[2])
{
    const bool is_signed = p->body->out_type[0] == MGX_INT8;
    const void *zero = p->in_count > 2 ? args->in[2] : NULL;
    mgx_end_to_byte(*(const float *)args->in[1],
                    !zero       ? 0
                    : is_signed ? *(const int8_t *)zero
                                : *(const uint8_t *)zero,
                    is_signed, step);
}

// Blocks of a run from number `first` on, `left` of them or as many as are one call; returns how
// many.
static int64_t quantize(const struct job *job, int64_t from, int64_t to, int64_t first,
                        int64_t left)
{
    enum { MOST = 1 << 20 };
    const struct loops *l = &job->p->loops;
    const int64_t at = first * MGX_BLOCK,
                  blocks = mgx_min_i64(mgx_min_i64(left, l->blocks_per_run - first), MOST),
                  n = mgx_min_i64(blocks * MGX_BLOCK, l->run - at);
    assert(n > 0);
    const struct mgx_end_rows rows = {.from = (const float *)job->args->in[0] + from + at,
                                      .rows = 1,
                                      .cols = n,
                                      .to = (char *)job->args->out + to + at};
    mgx_end_kernel(job->p->body->isa)->run(job->to_byte, 2, &rows);
    return blocks;
}

static void run_typed(const struct job *job, const int64_t *in_offset, int64_t out_offset,
                      int64_t first, int n, float *scratch)
{
    assert(n > 0 && first + n <= job->p->loops.run);
    const struct loops *l = &job->p->loops;
    int64_t offset[MAX_IN];
    for (int i = 0; i < job->p->in_count; i++)
        offset[i] = in_offset[i] + first * l->in_step[i];
    const struct cpu_typed_args args = {.in = job->args->in,
                                        .offset = offset,
                                        .step = l->in_step,
                                        .out = job->args->out,
                                        .out_offset = out_offset + first * l->out_step,
                                        .out_step = l->out_step};
    cpu_typed_run(job->p->typed, &args, n, scratch);
}

// `rows` runs, or n values of one.
static void look_up(const struct job *job, int64_t from, int64_t to, int64_t rows, int n)
{
    assert(n > 0 && n <= MGX_BLOCK && job->p->in_count == 1);
    const struct loops *l = &job->p->loops;
    const uint8_t *table = job->p->table, *x = (const uint8_t *)job->args->in[0] + from;
    uint8_t *y = (uint8_t *)job->args->out + to;
    const int64_t x_row = l->rank ? l->in[0][l->rank - 1] : 0,
                  y_row = l->rank ? l->out[l->rank - 1] : 0;
    if (l->in_step[0] == 1 && l->out_step == 1) {
        mgx_bytes_kernel(job->p->body->isa)->look_up(table, x, x_row, y, y_row, rows, n);
        return;
    }
    for (; rows > 0; rows--, x += x_row, y += y_row)
        for (int i = 0; i < n; i++)
            y[i * l->out_step] = table[x[i * l->in_step[0]]];
}

// `rows` runs, or n values of one.
static void scale(const struct job *job, const int64_t *in_offset, int64_t to, int64_t rows,
                  int64_t n)
{
    const struct loops *l = &job->p->loops;
    const struct cpu_scaled *s = job->p->scaled;
    const int k = l->rank - 1;
    const struct mgx_byte_scale_args args = {
        .x = (const uint8_t *)job->args->in[s->x] + in_offset[s->x],
        .factor = (const float *)job->args->in[s->factor] + in_offset[s->factor],
        .shift = s->shift < 0 ? NULL : (const float *)job->args->in[s->shift] + in_offset[s->shift],
        .y = (uint8_t *)job->args->out + to,
        .x_row = k < 0 ? 0 : l->in[s->x][k],
        .factor_row = k < 0 ? 0 : l->in[s->factor][k],
        .shift_row = k < 0 || s->shift < 0 ? 0 : l->in[s->shift][k],
        .y_row = k < 0 ? 0 : l->out[k],
        .rows = rows,
        .cols = n,
        .one_factor = l->in_step[s->factor] == 0};
    s->run(&s->step, &args);
}

static void run_block(const struct job *job, const int64_t *in_offset, int64_t out_offset,
                      int64_t first, int n, float *scratch)
{
    assert(n > 0 && n <= MGX_BLOCK && first >= 0 && first + n <= job->p->loops.run);
    const struct pointwise *p = job->p;
    if (p->typed) {
        run_typed(job, in_offset, out_offset, first, n, scratch);
        return;
    }
    if (p->table) {
        look_up(job, in_offset[0] + first * p->loops.in_step[0],
                out_offset + first * p->loops.out_step, 1, n);
        return;
    }
    if (p->scaled) {
        int64_t from[MAX_IN];
        for (int i = 0; i < p->in_count; i++)
            from[i] = in_offset[i] + first * p->loops.in_step[i];
        scale(job, from, out_offset + first, 1, n);
        return;
    }
    const struct cpu_body *body = p->body;
    float *room = scratch + mgx_block_scratch(&body->block);
    struct mgx_block_operand in[MAX_IN];
    for (int i = 0; i < body->in_count; i++)
        in[i] = cpu_body_load(p->body->isa, job->args->in[i], body->in_type[i],
                              in_offset[i] + first * p->loops.in_step[i], p->loops.in_step[i], n,
                              room + (size_t)i * MGX_BLOCK);
    float *last = room + (size_t)body->in_count * MGX_BLOCK;
    const int64_t to = out_offset + first * p->loops.out_step;
    const bool direct = body->out_type[0] == MGX_FLOAT && (p->loops.out_step == 1 || n == 1);
    float *out = direct ? (float *)job->args->out + to : last;
    mgx_block_run(&body->block, in, &out, n, scratch);
    if (!direct)
        cpu_body_store(body->isa, job->args->out, body->out_type[0], to, p->loops.out_step, n,
                       last);
}

// `rows` runs side by side: those of operand `i`, `row` elements apart.
static struct mgx_block_operand load_runs(const struct job *job, int i, int64_t offset, int rows,
                                          float *room)
{
    assert(rows > 0 && rows * job->p->loops.run <= MGX_BLOCK && job->p->loops.rank > 0);
    const struct loops *l = &job->p->loops;
    const enum mgx_type type = job->p->body->in_type[i];
    const mgx_isa isa = job->p->body->isa;
    const int64_t row = l->in[i][l->rank - 1], step = l->in_step[i];
    const int run = (int)l->run;
    if (row == 0 && step == 0)
        return cpu_body_load(isa, job->args->in[i], type, offset, 0, 1, room);
    if (type == MGX_FLOAT && step == 1 && row == l->run)
        return (struct mgx_block_operand){(float *)job->args->in[i] + offset, false};
    for (int r = 0; r < rows; r++) {
        float *to = room + r * run;
        const struct mgx_block_operand x =
            cpu_body_load(isa, job->args->in[i], type, offset + r * row, step, run, to);
        for (int k = 0; x.scalar && k < run; k++)
            to[k] = *x.data;
        if (!x.scalar && x.data != to)
            memcpy(to, x.data, (size_t)run * sizeof *to);
    }
    return (struct mgx_block_operand){room, false};
}

static void run_rows(const struct job *job, const int64_t *in_offset, int64_t to, int rows,
                     float *scratch)
{
    assert(rows > 0 && rows * job->p->loops.run <= MGX_BLOCK);
    const struct pointwise *p = job->p;
    const struct cpu_body *body = p->body;
    const struct loops *l = &p->loops;
    const int64_t row = l->out[l->rank - 1];
    float *room = scratch + mgx_block_scratch(&body->block);
    float *last = room + (size_t)body->in_count * MGX_BLOCK;
    struct mgx_block_operand in[MAX_IN];
    for (int i = 0; i < body->in_count; i++)
        in[i] = load_runs(job, i, in_offset[i], rows, room + (size_t)i * MGX_BLOCK);
    const bool direct = body->out_type[0] == MGX_FLOAT && l->out_step == 1 && row == l->run;
    float *out = direct ? (float *)job->args->out + to : last;
    mgx_block_run(&body->block, in, &out, rows * (int)l->run, scratch);
    for (int r = 0; r < rows && !direct; r++)
        cpu_body_store(body->isa, job->args->out, body->out_type[0], to + r * row, l->out_step,
                       (int)l->run, last + r * l->run);
}

static void run_part(void *user, int task, int thread)
{
    const struct job *job = user;
    const struct pointwise *p = job->p;
    const struct loops *l = &p->loops;
    float *scratch = (float *)job->args->workspace + (size_t)thread * p->thread_floats;
    const int64_t end = l->blocks * (task + 1) / job->tasks;
    for (int64_t at = l->blocks * task / job->tasks; at < end;) {
        int64_t index = at / l->blocks_per_run, out = 0, in[MAX_IN] = {0};
        for (int k = l->rank - 1; k >= 0; k--) {
            const int64_t i = index % l->lens[k];
            index /= l->lens[k];
            out += i * l->out[k];
            for (int o = 0; o < p->in_count; o++)
                in[o] += i * l->in[o][k];
        }
        if (p->body && l->rank > 0 && 2 * l->run <= MGX_BLOCK) {
            const int64_t inner = l->lens[l->rank - 1],
                          left = mgx_min_i64(inner - at % inner, end - at),
                          rows =
                              p->table || p->scaled ? left : mgx_min_i64(MGX_BLOCK / l->run, left);
            if (p->table)
                look_up(job, in[0], out, rows, (int)l->run);
            else if (p->scaled)
                scale(job, in, out, rows, l->run);
            else
                run_rows(job, in, out, (int)rows, scratch);
            at += rows;
            continue;
        }
        if (p->quantizes) {
            at += quantize(job, in[0], out, at % l->blocks_per_run, end - at);
            continue;
        }
        for (int64_t b = at % l->blocks_per_run; b < l->blocks_per_run && at < end; b++, at++)
            run_block(job, in, out, b * MGX_BLOCK,
                      (int)mgx_min_i64(MGX_BLOCK, l->run - b * MGX_BLOCK), scratch);
    }
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    (void)diag;
    const struct pointwise *p = step->state;
    assert(cpu_has_room(step, args, p->thread_floats * sizeof(float)));
    struct job job = {p, args, (int)mgx_min_i64(p->threads, p->loops.blocks), {{0}}};
    if (p->quantizes)
        set_bytes(p, args, job.to_byte);
    mgx_pool_run(cpu_pool(args), job.tasks, run_part, &job);
    return MGX_OK;
}

CPU_KERNEL(pointwise, 160)
const struct mgx_plan_kernel cpu_kernel_pointwise = {
    .name = "pointwise", .prepare = prepare, .run = run};
