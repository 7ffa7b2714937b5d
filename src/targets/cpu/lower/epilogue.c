// SPDX-License-Identifier: MIT
// Epilogues; see epilogue.h. What is no activation of sums, bias and residual (epilogue_match.c),
// nor ends in bytes (epilogue_bytes.c), runs as a block program.
#include "targets/cpu/lower/epilogue_match.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "op/op.h"
#include "pass/engine/constant.h"
#include "plan/table.h"
#include "targets/cpu/kernel/move/convert.h"
#include "targets/cpu/kernel/product/copy_rows.h"

static bool match_simple(struct cpu_match *m)
{
    const struct mgx_ins *root = cpu_match_root(m);
    if (m->c->out->type == MGX_BF16) { // rounded where it is stored
        if (root->op != &mgx_op_convert)
            return false;
        if (cpu_match_leaf(m, root->in[0]) == m->main)
            return true;
        root = root->in[0];
    }
    if (cpu_match_value(m, root))
        return true;
    cpu_match_reset(m->out);
    // act(sum + bias) + residual, or times one
    const bool times = root->op == &mgx_op_mul;
    for (int i = 0; (times || root->op == &mgx_op_add) && i < 2; i++) {
        const int input = cpu_match_operand(m, root->in[i]);
        if (input < 0 || !cpu_match_residual(m, input, MGX_FLOAT))
            continue;
        if (cpu_match_value(m, root->in[1 - i]) && m->out->residual < 0) {
            cpu_match_add(m, input, times ? CPU_OPERAND_TIMES : CPU_OPERAND_AFTER);
            return true;
        }
        cpu_match_reset(m->out);
    }
    return false;
}

// --- the general way ---

static int64_t row_offset(const struct cpu_epilogue_operand *o, int64_t row)
{
    assert(row >= 0 && o->rank <= CPU_EPILOGUE_AXES);
    int64_t offset = o->rank ? 0 : row * o->row;
    for (int k = 0; k < o->rank; k++) {
        offset += row % o->len[k] * o->stride[k];
        row /= o->len[k];
    }
    return offset;
}

// n columns of an operand in one row; in `room` where they do not lie side by side.
static struct mgx_block_operand load(const struct cpu_epilogue_run *run,
                                     const struct cpu_epilogue_operand *o, int64_t row,
                                     int64_t column, int n, float *room)
{
    assert(o->input >= 0 && n <= MGX_BLOCK && run->args->in[o->input]);
    return cpu_body_load(run->epilogue->body->isa, run->args->in[o->input], o->type,
                         row_offset(o, row) + column * o->col, o->col, n, room);
}

static void run_row(const struct cpu_epilogue_run *run, const struct mgx_tile *tile, int r,
                    float *scratch)
{
    const struct cpu_epilogue *e = run->epilogue;
    float *room = scratch + mgx_block_scratch(&e->body->block),
          *row = tile->data + r * tile->stride;
    const int64_t y = tile->row + r * tile->row_step;
    for (int first = 0; first < tile->cols; first += MGX_BLOCK) {
        const int n = tile->cols - first < MGX_BLOCK ? tile->cols - first : MGX_BLOCK;
        struct mgx_block_operand in[CPU_EPILOGUE_INPUTS];
        float *out = row + first;
        for (int i = 0; i < e->operand_count; i++)
            in[i] = e->operand[i].input < 0 ? (struct mgx_block_operand){out, false}
                                            : load(run, &e->operand[i], y, tile->col + first, n,
                                                   room + (size_t)i * MGX_BLOCK);
        mgx_block_run(&e->body->block, in, &out, n, scratch);
    }
}

// The row that all of them have, `rows` times.
static void repeat_row(const struct mgx_block_operand *x, int cols, int rows, float *room)
{
    const float first = x->data[0]; // which may be in `room`
    if (x->scalar) {
        for (int i = 0; i < rows * cols; i++)
            room[i] = first;
        return;
    }
    for (int i = x->data == room; i < rows; i++)
        memcpy(room + i * cols, x->data, (size_t)cols * sizeof *room);
}

// Rows whose columns lie side by side, and which lie at one distance.
static void copy_rows(const struct cpu_epilogue_run *run, const struct cpu_epilogue_operand *o,
                      enum mgx_kernel_type type, const struct mgx_tile *tile, int r, int rows,
                      float *room)
{
    const int64_t row_bytes = tile->cols * (int64_t)sizeof *room,
                  at = (tile->row + r * tile->row_step) * o->row + tile->col;
    const struct mgx_copy_rows copy = {.isa = run->epilogue->body->isa,
                                       .from = type,
                                       .to = MGX_KERNEL_F32,
                                       .row = o->row * tile->row_step,
                                       .col = 1,
                                       .rows = rows,
                                       .elements = tile->cols,
                                       .to_row = row_bytes,
                                       .to_bytes = row_bytes};
    mgx_copy_rows(&copy, (const char *)run->args->in[o->input] + at * mgx_kernel_size(type),
                  (char *)room);
}

// Rows of an operand, side by side in `room`.
static void load_rows(const struct cpu_epilogue_run *run, const struct cpu_epilogue_operand *o,
                      const struct mgx_tile *tile, int r, int rows, float *room)
{
    const int cols = tile->cols;
    enum mgx_kernel_type type;
    const bool same = !o->rank && o->row == 0;
    if (!o->rank && !same && o->col == 1 && cpu_kernel_type(o->type, &type)) {
        copy_rows(run, o, type, tile, r, rows, room);
        return;
    }
    const int here = same ? rows : 1; // that one load is for
    for (int i = 0; i < rows; i += here, room += cols) {
        const int64_t y = tile->row + (r + i) * tile->row_step;
        const struct mgx_block_operand x = load(run, o, y, tile->col, cols, room);
        repeat_row(&x, cols, here, room);
    }
}

// Several short rows as one block: a line of the program costs as much for few values as for many.
static void run_rows(const struct cpu_epilogue_run *run, const struct mgx_tile *tile, int r,
                     int rows, float *scratch)
{
    const struct cpu_epilogue *e = run->epilogue;
    const size_t row_bytes = (size_t)tile->cols * sizeof *scratch;
    float *room = scratch + mgx_block_scratch(&e->body->block),
          *data = tile->data + r * tile->stride;
    const bool together = tile->stride == tile->cols;
    float *out = together ? data : room + (size_t)e->operand_count * MGX_BLOCK;
    struct mgx_block_operand in[CPU_EPILOGUE_INPUTS];
    for (int i = 0; i < rows && !together; i++)
        memcpy(out + i * tile->cols, data + i * tile->stride, row_bytes);
    for (int i = 0; i < e->operand_count; i++) {
        float *values = e->operand[i].input < 0 ? out : room + (size_t)i * MGX_BLOCK;
        if (e->operand[i].input >= 0)
            load_rows(run, &e->operand[i], tile, r, rows, values);
        in[i] = (struct mgx_block_operand){values, false};
    }
    mgx_block_run(&e->body->block, in, &out, rows * tile->cols, scratch);
    for (int i = 0; i < rows && !together; i++)
        memcpy(data + i * tile->stride, out + i * tile->cols, row_bytes);
}

static void run_tile(void *user, const struct mgx_tile *tile)
{
    const struct cpu_epilogue_run *run = user;
    const struct cpu_epilogue *e = run->epilogue;
    float *scratch = (float *)(void *)((char *)run->args->workspace + e->scratch_offset) +
                     (size_t)tile->thread * e->scratch_floats;
    const int most = tile->cols < MGX_BLOCK ? MGX_BLOCK / tile->cols : 1;
    for (int r = 0, rows; r < tile->rows; r += rows) {
        rows = tile->rows - r < most ? tile->rows - r : most;
        if (rows > 1)
            run_rows(run, tile, r, rows, scratch);
        else
            run_row(run, tile, r, scratch);
    }
}

// A broadcast of any kind is read where it lies: its rows by their axes, its columns one by one.
static bool place_broadcast(const struct cpu_match *m, int input, struct cpu_epilogue_operand *o)
{
    assert(input >= 0 && input < m->c->in_count);
    const struct mgx_shape *x = &m->c->in[input], *y = m->c->out;
    int order[MGX_MAX_RANK];
    if (!mgx_shape_same_lens(x, y) || !mgx_shape_is_broadcasted(x))
        return false;
    o->col = x->strides[m->column];
    o->rank = 0;
    for (int i = cpu_match_row_axes(m, order) - 1; i >= 0; i--) {
        const int64_t len = y->lens[order[i]], stride = x->strides[order[i]];
        const int k = o->rank - 1;
        if (k >= 0 && stride == o->stride[k] * o->len[k]) {
            o->len[k] *= len;
            continue;
        }
        if (o->rank == CPU_EPILOGUE_AXES)
            return false;
        o->len[o->rank] = len;
        o->stride[o->rank++] = stride;
    }
    return true;
}

static bool place_operand(const struct cpu_match *m, int input, struct cpu_epilogue_operand *o)
{
    o->input = input;
    o->type = input >= 0 ? m->c->in[input].type : MGX_FLOAT;
    o->rank = 0;
    return input >= 0 &&
           (cpu_match_steps(m, input, &o->row, &o->col) || place_broadcast(m, input, o));
}

static bool match_general(struct cpu_match *m)
{
    assert(m->last != m->main);
    struct cpu_epilogue *e = m->out;
    e->body = cpu_body_compile(m->c, m->last);
    if (!e->body || e->body->out_count != 1 || e->body->out_type[0] != m->c->out->type ||
        m->c->out->type == MGX_BOOL)
        return false;
    if (m->last->in_count > CPU_EPILOGUE_INPUTS)
        return mgx_plan_unfit(m->c, "the epilogue's operands have no simple form");
    e->operand_count = m->last->in_count;
    for (int i = 0; i < m->last->in_count; i++) {
        e->operand[i].input = -1;
        if (m->last->in[i] == m->main)
            continue;
        if (!place_operand(m, cpu_match_input(m, m->last->in[i]), &e->operand[i])) {
            if (e->operand[i].input >= 0)
                m->c->want_in[e->operand[i].input] = MGX_PLAN_LIKE_RESULT;
            m->c->why = "the epilogue's operands have no simple form";
            return false;
        }
    }
    e->floats.block = run_tile;
    return m->c->out->type == MGX_FLOAT || m->c->out->type == MGX_BF16 || cpu_match_plain_bytes(m);
}

// The same of integers counts as the operator.
static bool is_main(const struct mgx_op *op, const struct mgx_op *wanted)
{
    return op == wanted || (wanted == &mgx_op_dot && op == &mgx_op_quant_dot) ||
           (wanted == &mgx_op_convolution && op == &mgx_op_quant_convolution) ||
           (wanted == &mgx_op_convolution_backwards && op == &mgx_op_quant_convolution_backwards);
}

static bool find_roles(struct cpu_match *m, const struct mgx_op *op)
{
    struct mgx_product_roles *roles = &m->roles;
    if (!mgx_read_product(m->c->ins, roles) || m->c->ins->in_count > CPU_EPILOGUE_INPUTS ||
        !is_main(roles->product->op, op) || roles->make || roles->pad ||
        (roles->factor && op != &mgx_op_convolution))
        return false;
    m->main = roles->product;
    m->last = roles->end ? roles->end : roles->product;
    return true;
}

// The product before the main operator: the factor is the broadcast one; the number of the other.
static int find_factor(struct cpu_match *m)
{
    const struct mgx_ins *mul = m->roles.factor;
    if (!mul)
        return mgx_product_operand(&m->roles, 0);
    const int a = cpu_match_input(m, mul->in[0]), b = cpu_match_input(m, mul->in[1]);
    if (a < 0 || b < 0)
        return -1;
    const bool swapped = mgx_shape_is_broadcasted(&m->c->in[a]);
    m->out->factor = swapped ? a : b;
    return swapped ? b : a;
}

static bool find_main_inputs(struct cpu_match *m)
{
    m->out->main_count = m->main->in_count;
    if (m->out->main_count > MGX_COUNT(m->out->main_in))
        return false;
    for (int i = 0; i < m->main->in_count; i++) {
        m->out->main_in[i] = i ? mgx_product_operand(&m->roles, i) : find_factor(m);
        if (m->out->main_in[i] < 0)
            return false;
    }
    return true;
}

// What follows the main operator, in the simplest form that has it.
static bool match_last(struct cpu_match *m)
{
    const bool bytes = mgx_type_is_byte(m->c->out->type);
    if (m->last == m->main)
        return true;
    if (bytes ? m->out->integer && cpu_match_bytes(m) : match_simple(m))
        return true;
    cpu_match_reset(m->out);
    if (!bytes && m->out->integer && cpu_match_floats(m))
        return true;
    cpu_match_reset(m->out);
    m->out->bytes = NULL;
    return match_general(m);
}

// --- what passes are told ---

// More constants than a block program has room for make no table.
static bool has_few_constants(const struct mgx_product_roles *roles)
{
    enum { MOST = 32 };
    const struct mgx_ins *seen[MOST];
    int count = 0;
    for (int i = 0; i < roles->step_count; i++)
        for (int k = 0; k < roles->steps[i]->in_count; k++) {
            const struct mgx_ins *in = roles->steps[i]->in[k];
            int at = 0;
            while (at < count && seen[at] != in)
                at++;
            if (at < count || !mgx_scalar_constant(in))
                continue;
            if (count == MOST)
                return false;
            seen[count++] = in;
        }
    return true;
}

// Behind bytes an end mixes in one operand, as a sum; and one line leads to its bytes: two values
// that are quantized, neither from the other, come from two products.
static bool takes_bytes(const struct mgx_product_roles *roles)
{
    if (roles->meet && roles->meet->op != &mgx_op_add)
        return false;
    for (int i = 1; i < roles->step_count; i++)
        if (roles->steps[i]->op == &mgx_op_quantizelinear &&
            !mgx_step_leads(roles, roles->bytes, roles->steps[i]))
            return false;
    return true;
}

bool cpu_takes(void *user, const struct mgx_product_roles *roles)
{
    (void)user;
    if (roles->bytes)
        return takes_bytes(roles);
    if (roles->steps) // a function of bytes
        return roles->step_count <= MGX_PLAN_TABLE_STEPS && has_few_constants(roles);
    return !roles->make && !roles->pad && !roles->end && !roles->zeros;
}

bool cpu_epilogue_match(struct mgx_plan_offer *c, const struct mgx_op *op, struct cpu_epilogue *out,
                        const struct mgx_ins **main)
{
    assert(op == &mgx_op_dot || op == &mgx_op_convolution || op == &mgx_op_convolution_backwards);
    struct cpu_match m = {.c = c, .out = out, .column = op == &mgx_op_dot ? c->out->rank - 1 : 1};
    *out = (struct cpu_epilogue){
        .bias = -1, .residual = -1, .factor = -1, .scale = -1, .scale_value = 1};
    if (!find_roles(&m, op))
        return false;
    *main = m.main;
    out->integer = m.main->shape.type == MGX_INT32;
    return find_main_inputs(&m) && match_last(&m);
}

static void list_floats(const struct cpu_floats_end *f, struct mgx_end *end)
{
    const struct mgx_end_step operand = {
        .kind = f->place == CPU_OPERAND_TIMES ? MGX_END_MULTIPLY : MGX_END_ADD, .type = f->operand};
    if (f->place == CPU_OPERAND_FIRST)
        mgx_end_then(end, operand);
    if (f->act != MGX_ACT_NONE)
        mgx_end_then(end, (struct mgx_end_step){.kind = MGX_END_ACT,
                                                .act = {f->act, f->a, f->b, f->a_column}});
    if (f->factor)
        mgx_end_then(
            end, (struct mgx_end_step){.kind = MGX_END_COLUMNS, .columns = {f->factor, f->term}});
    if (f->place == CPU_OPERAND_AFTER || f->place == CPU_OPERAND_TIMES)
        mgx_end_then(end, operand);
    if (f->block)
        mgx_end_then(end, (struct mgx_end_step){.kind = MGX_END_BLOCK, .block = f->block});
}

static void then_scale(struct mgx_end *end, float factor)
{
    if (factor != 1)
        mgx_end_then(end, (struct mgx_end_step){.kind = MGX_END_SCALE, .scale = factor});
}

// What is made of the value's own byte.
static void list_first(const struct cpu_bytes_end *q, struct mgx_end *end)
{
    mgx_end_then(end, (struct mgx_end_step){.kind = MGX_END_CLAMP,
                                            .clamp = {q->divisor, q->low, q->high, q->saturates}});
    if (q->middle)
        mgx_end_then(end,
                     (struct mgx_end_step){.kind = MGX_END_TABLE,
                                           .table = {q->middle, q->middle_low, q->middle_zero}});
    if (q->rounds)
        mgx_end_then(end, (struct mgx_end_step){.kind = MGX_END_ROUND});
}

// An operand or a term beside it, and an activation behind. Steps that change nothing are left out.
static void list_second(const struct cpu_bytes_end *q, struct mgx_end *end)
{
    if (q->residual || q->term)
        mgx_end_then(end, (struct mgx_end_step){.kind = MGX_END_MIX,
                                                .mix = {.keep = q->keep,
                                                        .share = q->share,
                                                        .term = q->term,
                                                        .reads = q->residual,
                                                        .is_signed = q->residual_signed,
                                                        .zero = q->residual_zero}});
    else
        then_scale(end, q->keep);
    if (isfinite(q->low2) || isfinite(q->high2))
        mgx_end_then(end,
                     (struct mgx_end_step){.kind = MGX_END_CLAMP,
                                           .clamp = {1, q->low2, q->high2, q->saturates_last}});
}

static void list_bytes(const struct cpu_bytes_end *q, struct mgx_end *end)
{
    list_first(q, end);
    if (cpu_bytes_has_second(q))
        list_second(q, end);
    if (!q->floats) {
        mgx_end_then(end, (struct mgx_end_step){.kind = MGX_END_BYTE,
                                                .byte = {q->table, q->is_signed, q->zero}});
        return;
    }
    if (q->rounds_last)
        mgx_end_then(end, (struct mgx_end_step){.kind = MGX_END_ROUND});
    then_scale(end, q->unit);
}

struct mgx_end cpu_epilogue_list(const struct cpu_epilogue *e)
{
    struct mgx_end end = {.count = 0};
    list_floats(&e->floats, &end);
    if (e->bytes)
        list_bytes(e->bytes, &end);
    return end;
}

const char *cpu_epilogue_detail(const struct mgx_plan_offer *c, const struct mgx_end *end,
                                const char *detail)
{
    if (!end->count)
        return detail;
    struct mgx_str steps = {0};
    mgx_end_print(end, &steps);
    const char *text = mgx_arena_printf(c->arena, "%s, then %s", detail, mgx_str_text(&steps));
    mgx_str_fini(&steps);
    return text;
}

void cpu_epilogue_finish(struct mgx_plan_offer *c, struct cpu_epilogue *e)
{
    if (!e->body)
        return;
    e->scratch_floats = (size_t)mgx_block_scratch(&e->body->block) +
                        ((size_t)e->operand_count + 1) * MGX_BLOCK; // and the tile's rows
    e->scratch_offset = (c->workspace + 63) / 64 * 64;
    assert(e->scratch_offset >= c->workspace && e->operand_count <= CPU_EPILOGUE_INPUTS);
    c->workspace =
        e->scratch_offset + e->scratch_floats * sizeof(float) * (size_t)c->machine->threads;
}

void cpu_epilogue_start(const struct cpu_epilogue *e, const struct mgx_plan_args *args,
                        struct cpu_epilogue_run *run)
{
    assert(e->bias < 0 || args->in[e->bias]);
    assert(e->residual < 0 || args->in[e->residual]);
    run->epilogue = e;
    run->args = args;
    run->bias = e->bias >= 0 ? args->in[e->bias] : NULL;
    run->residual = e->residual >= 0 ? args->in[e->residual] : NULL;
}
