// SPDX-License-Identifier: MIT
// Recurrent layers; see rnn.h.
//
//     packed:     [W of both directions | R per direction | last part of R | bias | extra |
//                  of bytes, by column of W, then of R: scales | sums]
//     workspace:  [input parts: step, batch, direction, gate, unit | per direction: h c reset gates |
//                  of bytes, for x, then per direction: start factors | bytes of A | a product's own]
#include "targets/cpu/kernel/product/rnn.h"

#include <assert.h>
#include <string.h>

#include "base/cancel.h"
#include "base/size.h"
#include "targets/cpu/kernel/rows/byte_range.h"
#include "targets/cpu/kernel/split.h"

// --- sizes ---

static int64_t gates_of(const struct mgx_rnn_desc *d)
{
    return d->kind == MGX_RNN_LSTM ? 4 : d->kind == MGX_RNN_GRU ? 3 : 1;
}

static bool splits_last(const struct mgx_rnn_desc *d)
{
    return d->kind == MGX_RNN_GRU && !d->linear_before_reset;
}

static int64_t extra_of(const struct mgx_rnn_desc *d) // floats per direction
{
    return d->kind == MGX_RNN_LSTM ? 3 * d->hidden : d->kind == MGX_RNN_GRU ? d->hidden : 0;
}

static int64_t columns_of(const struct mgx_rnn_desc *d) // of the input part
{
    return d->directions * gates_of(d) * d->hidden;
}

// Floats of the state of one direction.
static int64_t state_of(const struct mgx_rnn_desc *d)
{
    return d->batch * (3 + gates_of(d)) * d->hidden;
}

static size_t floats_bytes(int64_t floats)
{
    return mgx_align64((size_t)floats * sizeof(float));
}

// Where parts of the packed weights begin.
struct layout {
    size_t step[2], last, bias, extra, scales, sums, end;
};

static struct layout layout_of(const struct mgx_rnn_plan *plan)
{
    const struct mgx_rnn_desc *d = &plan->desc;
    const size_t directions = (size_t)d->directions;
    struct layout l;
    l.step[0] = mgx_align64(plan->input.packed_bytes);
    l.step[1] = l.step[0] + mgx_align64(plan->step[0].packed_bytes);
    l.last = l.step[1] + (directions - 1) * mgx_align64(plan->step[1].packed_bytes);
    l.bias = l.last + directions * mgx_align64(plan->last.packed_bytes);
    l.extra = l.bias + floats_bytes(columns_of(d));
    l.scales = l.extra + floats_bytes(d->directions * extra_of(d)) + 64; // a flag: has peepholes
    l.sums = l.scales + (d->bytes ? floats_bytes(2 * columns_of(d)) : 0);
    l.end = l.sums + (d->bytes ? floats_bytes(2 * columns_of(d)) : 0);
    return l;
}

// Of a product of bytes, the input's (direction -1) or that of a direction's steps: where its part
// of the workspace begins and what lies there.
struct room {
    size_t start, factors, a, own, end;
};

static struct room room_of(const struct mgx_rnn_plan *plan, int direction)
{
    const struct mgx_rnn_desc *d = &plan->desc;
    const bool input = direction < 0;
    const struct mgx_gemm_plan *gemm = input ? &plan->input : &plan->step[direction];
    const size_t values = floats_bytes(gemm->desc.n + MGX_RNN_ROOM);
    struct room r;
    r.start = input ? floats_bytes(d->steps * d->batch * columns_of(d)) +
                          (size_t)d->directions * floats_bytes(state_of(d))
                    : room_of(plan, direction - 1).end;
    r.factors = r.start + values;
    r.a = r.factors + values;
    r.own = r.a + mgx_align64((size_t)((input ? d->steps * d->input : d->hidden) * d->batch));
    r.end = r.own + mgx_gemm_workspace(gemm);
    return r;
}

// The input parts lie as the input does: by step, then batch, or by batch, then step.
static bool by_batch(const struct mgx_rnn_desc *d)
{
    return d->x_step != d->batch * d->x_batch && d->x_batch == d->steps * d->x_step;
}

// --- planning ---

static enum mgx_status check(const struct mgx_rnn_desc *d, struct mgx_diag *diag)
{
    if (d->steps < 0 || d->batch < 0 || d->input < 0 || d->hidden < 1 || d->directions < 1 ||
        d->directions > 2)
        return mgx_fail(diag, MGX_INVALID,
                        "recurrent layer of %lld steps, batch %lld, %lld inputs, %lld units, %d "
                        "directions",
                        (long long)d->steps, (long long)d->batch, (long long)d->input,
                        (long long)d->hidden, d->directions);
    int64_t size;
    const bool fits = d->hidden < INT32_MAX && d->input < INT32_MAX && d->batch < INT32_MAX &&
                      mgx_mul_i64(d->steps, d->batch, &size) &&
                      mgx_mul_i64(size, d->hidden, &size) && mgx_mul_i64(size, 256, &size) &&
                      mgx_mul_i64(d->batch, d->hidden * 64, &size);
    return fits ? MGX_OK : mgx_fail(diag, MGX_LIMIT, "recurrent layer sizes do not fit 64 bits");
}

// Rows of bytes lie one behind the other.
static void as_bytes(struct mgx_gemm_desc *g, const struct mgx_rnn_bytes *w)
{
    g->type = MGX_KERNEL_S8;
    g->a_type = MGX_KERNEL_U8;
    g->b_type = w->type;
    g->c_type = MGX_KERNEL_F32;
    g->a_row = g->k;
    g->b_zero = w->zero;
    g->weights = w->values;
}

static enum mgx_status plan_input(struct mgx_rnn_plan *plan, struct mgx_diag *diag)
{
    const struct mgx_rnn_desc *d = &plan->desc;
    const int64_t columns = columns_of(d);
    struct mgx_gemm_desc g = {
        .type = d->type,
        .isa = d->isa,
        .threads = d->threads,
        .m = d->steps * d->batch,
        .n = columns,
        .k = d->input,
        .a_row = by_batch(d) ? d->x_step : d->x_batch,
        .a_col = 1,
        .b_row = 1,
        .b_col = d->input,
        .c_row = columns,
        .packed = true,
    };
    if (d->bytes)
        as_bytes(&g, &d->w);
    else if (!by_batch(d) && d->x_step != d->batch * d->x_batch) { // no common row stride
        g.m = d->batch;
        g.batch[0] = d->steps;
        g.a_batch[0] = d->x_step;
        g.c_batch[0] = d->batch * columns;
    }
    return mgx_gemm_plan_init(&plan->input, &g, diag);
}

static struct mgx_gemm_desc step_desc(const struct mgx_rnn_plan *plan, int64_t gates)
{
    const struct mgx_rnn_desc *d = &plan->desc;
    return (struct mgx_gemm_desc){
        .type = d->type,
        .isa = d->isa,
        .threads = plan->divide_steps ? d->threads : 1,
        .m = mgx_ceil_div(d->batch, plan->parts),
        .n = gates * d->hidden,
        .k = d->hidden,
        .a_row = d->hidden,
        .a_col = 1,
        .b_row = 1,
        .b_col = d->hidden,
        .c_row = gates_of(d) * d->hidden,
        .packed = true,
    };
}

static enum mgx_status plan_step(struct mgx_rnn_plan *plan, int direction, struct mgx_diag *diag)
{
    const struct mgx_rnn_desc *d = &plan->desc;
    struct mgx_gemm_desc g = step_desc(plan, gates_of(d) - splits_last(d));
    if (d->bytes) {
        struct mgx_rnn_bytes r = d->r;
        r.values = (const char *)r.values + direction * g.n * g.k;
        r.zero = r.zero ? r.zero + direction * g.n : NULL;
        as_bytes(&g, &r);
    }
    return mgx_gemm_plan_init(&plan->step[direction], &g, diag);
}

// Batch entries are independent; a tile's worth of them should stay together.
static void divide(struct mgx_rnn_plan *plan)
{
    const struct mgx_rnn_desc *d = &plan->desc;
    const int64_t most = mgx_ceil_div(d->threads, d->directions);
    plan->parts = d->bytes ? 1 : (int)mgx_max_i64(mgx_min_i64(d->batch / 7, most), 1);
    const double products =
        (double)d->batch * (double)(gates_of(d) * d->hidden) * (double)d->hidden;
    const double bytes = sizeof(float) * (double)(gates_of(d) * d->hidden) * (double)d->hidden;
    plan->divide_steps =
        plan->parts * d->directions < d->threads &&
        mgx_split_tasks(2 * products + MGX_WORK_PER_BYTE * bytes, d->threads) > 2 * d->directions;
    if (plan->divide_steps)
        plan->parts = 1;
}

enum mgx_status mgx_rnn_plan_init(struct mgx_rnn_plan *plan, const struct mgx_rnn_desc *desc,
                                  struct mgx_diag *diag)
{
    *plan = (struct mgx_rnn_plan){.desc = *desc};
    TRY(check(desc, diag));
    divide(plan);
    TRY(plan_input(plan, diag));
    for (int i = 0; i < desc->directions; i++)
        TRY(plan_step(plan, i, diag));
    if (splits_last(desc)) {
        const struct mgx_gemm_desc last = step_desc(plan, 1);
        TRY(mgx_gemm_plan_init(&plan->last, &last, diag));
    }
    plan->packed_bytes = layout_of(plan).end;
    // Multiplications of floats need no memory of their own: B is packed, A has contiguous depth.
    assert(desc->bytes ||
           (!mgx_gemm_workspace(&plan->input) && !mgx_gemm_workspace(&plan->step[0])));
    plan->workspace_bytes =
        desc->bytes ? room_of(plan, desc->directions - 1).end : room_of(plan, -1).start;
    return MGX_OK;
}

// --- packing ---

// Weights may lie in a file, at any address.
static float load(const void *floats, int64_t i)
{
    float value;
    memcpy(&value, (const char *)floats + (size_t)i * sizeof value, sizeof value);
    return value;
}

static void pack_bias(const struct mgx_rnn_desc *d, const float *b, float *bias, float *extra)
{
    const int64_t gates = gates_of(d) * d->hidden;
    memset(bias, 0, (size_t)columns_of(d) * sizeof *bias);
    memset(extra, 0, (size_t)(d->directions * extra_of(d)) * sizeof *extra);
    if (!b)
        return;
    const bool apart = d->kind == MGX_RNN_GRU && d->linear_before_reset;
    for (int i = 0; i < d->directions; i++, b += 2 * gates, bias += gates)
        for (int64_t j = 0; j < gates; j++) {
            const bool own = apart && j >= 2 * d->hidden;
            bias[j] = own ? load(b, j) : load(b, j) + load(b, gates + j);
            if (own)
                extra[i * d->hidden + j - 2 * d->hidden] = load(b, gates + j);
        }
}

static void pack_bytes(const struct mgx_rnn_plan *plan, const void *w, const void *r, char *to)
{
    const struct mgx_rnn_desc *d = &plan->desc;
    const struct layout l = layout_of(plan);
    const int64_t columns = columns_of(d);
    const struct mgx_rnn_bytes now[2] = {{d->w.type, w, d->w.scale, d->w.zero},
                                         {d->r.type, r, d->r.scale, d->r.zero}};
    float *scales = (float *)(void *)(to + l.scales);
    int32_t *sums = (int32_t *)(void *)(to + l.sums);
    for (int i = 0; i < 2; i++, scales += columns, sums += columns) {
        memcpy(scales, now[i].scale, (size_t)columns * sizeof *scales);
        mgx_rnn_sums(&now[i], columns, i ? d->hidden : d->input, sums);
    }
}

void mgx_rnn_pack(const struct mgx_rnn_plan *plan, const void *w, const void *r, const float *b,
                  const float *p, void *packed)
{
    const struct mgx_rnn_desc *d = &plan->desc;
    const struct layout l = layout_of(plan);
    const int64_t value = d->bytes ? 1 : sizeof(float), state = d->hidden * d->hidden * value;
    char *to = packed;
    mgx_gemm_pack(&plan->input, w, to);
    for (int i = 0; i < d->directions; i++) {
        const char *from = (const char *)r + i * gates_of(d) * state;
        mgx_gemm_pack(&plan->step[i], from, to + l.step[i]);
        if (splits_last(d))
            mgx_gemm_pack(&plan->last, from + 2 * state,
                          to + l.last + (size_t)i * mgx_align64(plan->last.packed_bytes));
    }
    if (d->bytes)
        pack_bytes(plan, w, r, to);
    float *extra = (float *)(void *)(to + l.extra);
    pack_bias(d, b, (float *)(void *)(to + l.bias), extra);
    if (d->kind == MGX_RNN_LSTM && p)
        memcpy(extra, p, (size_t)(d->directions * extra_of(d)) * sizeof *extra);
    to[l.scales - 64] = d->kind == MGX_RNN_LSTM && p;
}

// --- running ---

struct job {
    const struct mgx_rnn_plan *plan;
    const struct mgx_rnn_args *args;
    const float *inputs;
    char *states; // of direction 0
};

// One direction of a range of batch entries.
struct part {
    const struct job *job;
    const struct mgx_rnn_desc *d;
    const struct mgx_gates_kernel *gates;
    struct mgx_pool *pool; // divides steps; NULL: it does not
    int direction;
    int64_t begin, rows;              // batch entries
    float *h, *c, *reset, *recurrent; // of the first of them
    const float *extra;
    struct mgx_gemm_plan step, last;
    struct mgx_gemm_args step_args, last_args;
    struct mgx_rnn_product product; // of bytes
};

static void load_state(const float *from, const struct part *part, float *to)
{
    const struct mgx_rnn_desc *d = part->d;
    for (int64_t b = 0; b < part->rows; b++, to += d->hidden)
        if (from)
            memcpy(to,
                   from + part->direction * d->state_direction + (part->begin + b) * d->state_batch,
                   (size_t)d->hidden * sizeof *to);
        else
            memset(to, 0, (size_t)d->hidden * sizeof *to);
}

static void save_state(const float *from, const struct part *part, float *to)
{
    const struct mgx_rnn_desc *d = part->d;
    for (int64_t b = 0; to && b < part->rows; b++)
        memcpy(to + part->direction * d->state_direction + (part->begin + b) * d->state_batch,
               from + b * d->hidden, (size_t)d->hidden * sizeof *to);
}

static int64_t length_of(const struct part *part, int64_t row)
{
    const int32_t *lengths = part->job->args->lengths;
    const int64_t length = lengths ? lengths[part->begin + row] : part->d->steps;
    return mgx_min_i64(mgx_max_i64(length, 0), part->d->steps);
}

static float *y_at(const struct part *part, int64_t row, int64_t t)
{
    const struct mgx_rnn_desc *d = part->d;
    float *y = part->job->args->y;
    return y ? y + t * d->y_step + part->direction * d->y_direction +
                   (part->begin + row) * d->y_batch
             : NULL;
}

// Steps behind an entry's length are zero.
static void clear_rest(const struct part *part)
{
    for (int64_t row = 0; part->job->args->y && row < part->rows; row++)
        for (int64_t t = length_of(part, row); t < part->d->steps; t++)
            memset(y_at(part, row, t), 0, (size_t)part->d->hidden * sizeof(float));
}

typedef void (*gates_fn)(const struct mgx_gates_args *args);

// Runs `fn` on every entry that still has a step number `s`.
static void run_gates(const struct part *part, int64_t s, gates_fn fn)
{
    const struct mgx_rnn_desc *d = part->d;
    const int64_t gates = gates_of(d) * d->hidden, columns = columns_of(d);
    const bool backwards = part->direction || d->reverse;
    for (int64_t row = 0; row < part->rows; row++) {
        const int64_t length = length_of(part, row), t = backwards ? length - 1 - s : s;
        if (s >= length)
            continue;
        const int64_t b = part->begin + row;
        const int64_t at = by_batch(d) ? b * d->steps + t : t * d->batch + b;
        const struct mgx_gates_args args = {
            .desc = d,
            .direction = part->direction,
            .x = part->job->inputs + at * columns + part->direction * gates,
            .r = part->recurrent + row * gates,
            .extra = part->extra,
            .h = part->h + row * d->hidden,
            .c = part->c + row * d->hidden,
            .reset = part->reset + row * d->hidden,
            .y = y_at(part, row, t),
        };
        fn(&args);
    }
}

// The product of bytes of the input, or of a direction's steps.
static struct mgx_rnn_product product_of(const struct mgx_rnn_plan *plan,
                                         const struct mgx_rnn_args *args, int direction)
{
    const struct mgx_rnn_desc *d = &plan->desc;
    const struct layout l = layout_of(plan);
    const struct room room = room_of(plan, direction);
    const char *packed = args->packed;
    char *own = args->workspace;
    const bool input = direction < 0;
    const int64_t column = input ? 0 : columns_of(d) + direction * gates_of(d) * d->hidden;
    return (struct mgx_rnn_product){
        .plan = input ? &plan->input : &plan->step[direction],
        .packed = packed + (input ? 0 : l.step[direction]),
        .scale = (const float *)(const void *)(packed + l.scales) + column,
        .sums = (const int32_t *)(const void *)(packed + l.sums) + column,
        .factors = (float *)(void *)(own + room.factors),
        .start = (int32_t *)(void *)(own + room.start),
        .a = (uint8_t *)own + room.a,
        .workspace = own + room.own,
    };
}

// The states of entries that have step s.
static void multiply_states(struct part *part, int64_t s)
{
    const struct mgx_rnn_desc *d = part->d;
    struct mgx_byte_range range = {0, 0};
    for (int64_t row = 0; row < part->rows; row++)
        if (s < length_of(part, row))
            mgx_byte_range_widen(d->isa, part->h + row * d->hidden, d->hidden, &range);
    const struct mgx_range_bytes how = mgx_byte_range_bytes(&range);
    for (int64_t row = 0; row < part->rows; row++)
        mgx_byte_range_run(d->isa, &how, part->h + row * d->hidden, d->hidden,
                           part->product.a + row * d->hidden);
    mgx_rnn_multiply(&part->product, &how, part->pool);
}

static void run_steps(struct part *part)
{
    const struct mgx_rnn_desc *d = part->d;
    const struct mgx_gates_kernel *k = part->gates;
    int64_t steps = 0;
    for (int64_t row = 0; row < part->rows; row++)
        steps = mgx_max_i64(steps, length_of(part, row));
    for (int64_t s = 0; s < steps && !mgx_cancelled(); s++) {
        if (d->bytes)
            multiply_states(part, s);
        else
            mgx_gemm_run(&part->step, &part->step_args, part->pool);
        if (splits_last(d)) {
            run_gates(part, s, k->gru_reset);
            mgx_gemm_run(&part->last, &part->last_args, part->pool);
            run_gates(part, s, k->gru_last);
        } else
            run_gates(part, s,
                      d->kind == MGX_RNN_LSTM  ? k->lstm
                      : d->kind == MGX_RNN_GRU ? k->gru
                                               : k->plain);
    }
}

// Points the part's multiplications at its state and weights.
static void set_multiplications(struct part *part)
{
    const struct mgx_rnn_plan *plan = part->job->plan;
    const struct mgx_rnn_desc *d = part->d;
    const struct layout l = layout_of(plan);
    const size_t direction = (size_t)part->direction;
    const char *packed = part->job->args->packed;
    part->step = plan->step[direction];
    part->last = plan->last;
    part->step.desc.m = part->last.desc.m = part->rows; // the plan was made for at least as many
    part->step_args = (struct mgx_gemm_args){
        .a = part->h,
        .b = packed + l.step[direction],
        .c = part->recurrent,
    };
    part->last_args = (struct mgx_gemm_args){
        .a = part->reset,
        .b = packed + l.last + direction * mgx_align64(plan->last.packed_bytes),
        .c = part->recurrent + 2 * d->hidden,
    };
    const float *extra = (const float *)(const void *)(packed + l.extra);
    if (d->kind == MGX_RNN_GRU || packed[l.scales - 64])
        part->extra = extra + part->direction * extra_of(d);
    if (d->bytes) {
        part->product = product_of(plan, part->job->args, part->direction);
        part->product.c = part->recurrent;
    }
}

static void run_part(const struct job *job, int direction, int64_t begin, int64_t end,
                     struct mgx_pool *pool)
{
    const struct mgx_rnn_desc *d = &job->plan->desc;
    struct part part = {
        .job = job,
        .d = d,
        .gates = mgx_gates_kernel(d->isa),
        .pool = pool,
        .direction = direction,
        .begin = begin,
        .rows = end - begin,
    };
    const int64_t values = d->batch * d->hidden, first = begin * d->hidden;
    float *state = (float *)(void *)(job->states + (size_t)direction * floats_bytes(state_of(d)));
    part.h = state + first;
    part.c = state + values + first;
    part.reset = state + 2 * values + first;
    part.recurrent = state + 3 * values + gates_of(d) * first;
    load_state(job->args->initial_h, &part, part.h);
    load_state(job->args->initial_c, &part, part.c);
    load_state(NULL, &part, part.reset);
    set_multiplications(&part);
    clear_rest(&part);
    run_steps(&part);
    save_state(part.h, &part, job->args->final_h);
    save_state(part.c, &part, job->args->final_c);
}

static void run_task(void *user, int task, int thread)
{
    (void)thread;
    const struct job *job = user;
    const int64_t batch = job->plan->desc.batch;
    const int parts = job->plan->parts, i = task % parts;
    run_part(job, task / parts, batch * i / parts, batch * (i + 1) / parts, NULL);
}

// x of entry b in step t.
static const float *x_at(const struct mgx_rnn_desc *d, const struct mgx_rnn_args *args, int64_t t,
                         int64_t b)
{
    return args->x + t * d->x_step + b * d->x_batch;
}

// Steps behind the longest sequence have no part in the range.
static struct mgx_byte_range range_of_input(const struct mgx_rnn_desc *d,
                                            const struct mgx_rnn_args *args)
{
    struct mgx_byte_range range = {0, 0};
    int64_t steps = args->lengths ? 0 : d->steps;
    for (int64_t b = 0; args->lengths && b < d->batch; b++)
        steps = mgx_max_i64(steps, mgx_min_i64(args->lengths[b], d->steps));
    for (int64_t t = 0; t < steps; t++)
        for (int64_t b = 0; b < d->batch; b++)
            mgx_byte_range_widen(d->isa, x_at(d, args, t, b), d->input, &range);
    return range;
}

static void multiply_input(const struct mgx_rnn_plan *plan, const struct mgx_rnn_args *args,
                           const float *bias, struct mgx_pool *pool)
{
    const struct mgx_rnn_desc *d = &plan->desc;
    const struct mgx_byte_range range = range_of_input(d, args);
    const struct mgx_range_bytes how = mgx_byte_range_bytes(&range);
    struct mgx_rnn_product product = product_of(plan, args, -1);
    product.bias = bias;
    product.c = args->workspace;
    for (int64_t t = 0; t < d->steps; t++)
        for (int64_t b = 0; b < d->batch; b++) {
            const int64_t at = by_batch(d) ? b * d->steps + t : t * d->batch + b;
            mgx_byte_range_run(d->isa, &how, x_at(d, args, t, b), d->input,
                               product.a + at * d->input);
        }
    mgx_rnn_multiply(&product, &how, pool);
}

void mgx_rnn_run(const struct mgx_rnn_plan *plan, const struct mgx_rnn_args *args,
                 struct mgx_pool *pool)
{
    const struct mgx_rnn_desc *d = &plan->desc;
    const size_t inputs = floats_bytes(d->steps * d->batch * columns_of(d));
    struct job job = {plan, args, args->workspace, (char *)args->workspace + inputs};
    const struct mgx_gemm_args input = {
        .a = args->x,
        .b = args->packed,
        .bias = (const float *)(const void *)((const char *)args->packed + layout_of(plan).bias),
        .c = args->workspace,
    };
    if (d->bytes)
        multiply_input(plan, args, input.bias, pool);
    else
        mgx_gemm_run(&plan->input, &input, pool);
    if (!plan->divide_steps)
        mgx_pool_run(pool, d->directions * plan->parts, run_task, &job);
    else
        for (int i = 0; i < d->directions; i++)
            run_part(&job, i, 0, d->batch, pool);
}
