// SPDX-License-Identifier: MIT
// rnn, gru, lstm, quant_lstm, and of these two the last cells or all states, on the kernels of
// kernel/product/rnn.h.
//
// Weights, bias and peepholes must be constants, and what bytes stand for; activations sigmoid,
// tanh and relu, with which exporters get by.
#include <assert.h>
#include <string.h>

#include "base/checksum.h"
#include "op/lstm.h"
#include "op/op.h"
#include "targets/cpu/kernel/product/rnn.h"
#include "targets/cpu/lower/integer.h"
#include "targets/cpu/lower/lower.h"

enum { X, W, R, BIAS, LENGTHS, H0, C0, PEEPHOLES, W_SCALE, W_ZERO, R_SCALE, R_ZERO, OPERANDS };

struct rnn {
    struct mgx_rnn_plan plan;
    const void *packed;
    bool has[OPERANDS];
    enum mgx_rnn_gives gives;
    int64_t hidden_values; // of all hidden states; the last cell states lie behind them
};

static bool find_kind(const struct mgx_op *op, enum mgx_rnn_kind *kind)
{
    if (op == &mgx_op_lstm || mgx_rnn_gives(op) != MGX_RNN_HIDDEN || mgx_rnn_is_of_bytes(op))
        *kind = MGX_RNN_LSTM;
    else if (op == &mgx_op_gru)
        *kind = MGX_RNN_GRU;
    else if (op == &mgx_op_rnn)
        *kind = MGX_RNN_PLAIN;
    else
        return false;
    return true;
}

static bool find_act(const char *name, struct mgx_rnn_act *act)
{
    assert(name && act);
    static const struct {
        const char *name;
        enum mgx_act act;
    } acts[] = {{"sigmoid", MGX_ACT_SIGMOID}, {"tanh", MGX_ACT_TANH}, {"relu", MGX_ACT_RELU}};
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        if (strcmp(acts[i].name, name) == 0) {
            act->act = acts[i].act;
            return true;
        }
    return false;
}

static bool find_acts(const struct mgx_ins *ins, struct mgx_rnn_desc *d)
{
    assert(d->directions == 1 || d->directions == 2);
    const struct mgx_field *field = mgx_field_find(ins->op, "actv_func");
    const struct mgx_strings names =
        *(const struct mgx_strings *)((const char *)ins->attr + field->offset);
    const int each = d->kind == MGX_RNN_LSTM ? 3 : d->kind == MGX_RNN_GRU ? 2 : 1;
    for (int k = 0; k < d->directions; k++) {
        struct mgx_rnn_act *act[3] = {&d->f[k], &d->g[k], &d->h[k]};
        for (int i = 0; i < each; i++)
            if (!names.count ||
                !find_act(names.v[mgx_rnn_func_at(names.count, each, k * each + i)], act[i]))
                return false;
    }
    return true;
}

// Is operand i of the type that the kernels take?
static bool suits(const struct mgx_plan_offer *c, int i)
{
    const enum mgx_type type = c->in[i].type;
    if (mgx_rnn_is_of_bytes(c->ins->op) && (i == W || i == R || i == W_ZERO || i == R_ZERO))
        return mgx_type_is_byte(type);
    return type == (i == LENGTHS ? MGX_INT32 : MGX_FLOAT);
}

static bool is_weight(int i)
{
    return i == W || i == R || i == BIAS || i >= PEEPHOLES;
}

static bool find_operands(struct mgx_plan_offer *c, struct rnn *v)
{
    for (int i = 0; i < OPERANDS; i++) {
        // What was left out has no elements, whether it is `undefined` still or a literal by now.
        v->has[i] = i < c->in_count && (i < BIAS || mgx_shape_elements(&c->in[i]) > 0);
        if (!v->has[i])
            continue;
        if (is_weight(i) && !c->constant[i])
            return mgx_plan_unfit(c, "weights are not constant");
        if (!suits(c, i))
            return mgx_plan_unfit(c, "operands are not float");
        if (i != X && !mgx_shape_is_standard(&c->in[i]))
            return mgx_plan_wish(c, i, MGX_PLAN_ROW_MAJOR, "an operand is not row-major");
    }
    return true;
}

static void describe_directions(const struct mgx_ins *ins, struct mgx_rnn_desc *d)
{
    const int64_t direction = mgx_ins_int(ins, "direction");
    assert(direction >= 0 && direction <= 2);
    d->directions = direction == 2 ? 2 : 1;
    d->reverse = direction == 1;
    d->clip = (float)mgx_ins_real(ins, "clip");
    d->linear_before_reset = d->kind == MGX_RNN_GRU && mgx_ins_int(ins, "linear_before_reset");
    d->input_forget = d->kind == MGX_RNN_LSTM && mgx_ins_int(ins, "input_forget");
}

static void describe_sizes(const struct mgx_plan_offer *c, enum mgx_rnn_gives gives,
                           struct mgx_rnn_desc *d)
{
    const bool cell = gives == MGX_RNN_LAST_CELL;
    const struct mgx_shape *x = &c->in[X], *y = c->out;
    d->steps = x->lens[0];
    d->batch = x->lens[1];
    d->input = x->lens[2];
    d->hidden = mgx_ins_int(c->ins, "hidden_size");
    assert(c->in[R].lens[2] == d->hidden && c->in[W].lens[2] == d->input && d->hidden > 0);
    assert(c->in[W].lens[0] == d->directions && c->in[R].lens[0] == d->directions);
    d->x_step = x->strides[0];
    d->x_batch = x->strides[1];
    d->state_batch = d->hidden;
    d->state_direction = d->hidden * d->batch;
    d->y_step = cell ? 0 : y->strides[0];
    d->y_direction = cell ? 0 : y->strides[1];
    d->y_batch = cell ? 0 : y->strides[2];
}

// Why the kernel cannot have it; NULL if it can.
static const char *refuses(const struct mgx_plan_offer *c, enum mgx_rnn_gives gives,
                           struct mgx_rnn_desc *d)
{
    const bool cell = gives & MGX_RNN_LAST_CELL;
    const struct mgx_shape *x = &c->in[X], *y = c->out;
    return !mgx_shape_elements(x) || !mgx_shape_elements(y) ? "empty"
           : x->strides[2] != 1 && x->lens[2] != 1 ? "the input's features are not contiguous"
           : y->strides[y->rank - 1] != 1 && y->lens[y->rank - 1] != 1 ? "states are not contiguous"
           : cell && !mgx_shape_is_standard(y)                         ? "states are not row-major"
           : !find_acts(c->ins, d) ? "an activation has no vector form"
                                   : NULL;
}

static bool describe(struct mgx_plan_offer *c, const struct rnn *v, struct mgx_rnn_desc *d)
{
    d->isa = cpu_offered(c)->isa;
    d->threads = c->machine->threads;
    describe_directions(c->ins, d);
    describe_sizes(c, v->gives, d);
    const char *why = refuses(c, v->gives, d);
    return !why || mgx_plan_wish(c, X, MGX_PLAN_ROW_MAJOR, why);
}

// What bytes stand for, by column: operand `at` has the scales, the next one the zero points.
static bool describe_bytes(struct mgx_plan_offer *c, const struct rnn *v, int weights, int at,
                           struct mgx_rnn_bytes *out)
{
    const int64_t dirs = c->in[weights].lens[0], rows = c->in[weights].lens[1];
    const struct mgx_tensor *scale = c->constant[at],
                            *zero = v->has[at + 1] ? c->constant[at + 1] : NULL;
    float *scales = MGX_NEW_ARRAY(c->arena, float, dirs *rows);
    int32_t *zeros = MGX_NEW_ARRAY(c->arena, int32_t, dirs * rows);
    if (!scales || !zeros) {
        mgx_fail_memory(c->diag);
        return false;
    }
    bool any = false;
    for (int64_t i = 0; i < dirs * rows; i++) {
        scales[i] = ((const float *)scale->data)[c->in[at].lens[1] == 1 ? i / rows : i];
        const int64_t k = zero && c->in[at + 1].lens[1] == 1 ? i / rows : i;
        zeros[i] = !zero                          ? 0
                   : zero->shape.type == MGX_INT8 ? ((const int8_t *)zero->data)[k]
                                                  : ((const uint8_t *)zero->data)[k];
        any = any || zeros[i];
    }
    *out = (struct mgx_rnn_bytes){
        .values = cpu_integer_weights(c, weights), .scale = scales, .zero = any ? zeros : NULL};
    return cpu_kernel_type(c->in[weights].type, &out->type);
}

static void fill(const struct mgx_plan_fill *f, int part, int parts)
{
    (void)parts;
    if (part == 0)
        mgx_rnn_pack(f->kernel, f->source[0], f->source[1], f->source[2], f->source[3], f->packed);
}

// Of what bytes stand for, which is packed beside them.
static int64_t checksum_of(const struct mgx_rnn_bytes *w, const int64_t *lens)
{
    const size_t columns = (size_t)(lens[0] * lens[1]);
    return (int64_t)((w->scale ? mgx_checksum(w->scale, columns * sizeof *w->scale) : 0) ^
                     (w->zero ? ~mgx_checksum(w->zero, columns * sizeof *w->zero) : 0));
}

static bool pack(struct mgx_plan_offer *c, struct rnn *v)
{
    assert(c->constant[W] && c->constant[R]);
    const void *data[4] = {c->constant[W]->data, c->constant[R]->data,
                           v->has[BIAS] ? c->constant[BIAS]->data : NULL,
                           v->has[PEEPHOLES] ? c->constant[PEEPHOLES]->data : NULL};
    const struct mgx_plan_fill how = {.fill = fill,
                                      .kernel = &v->plan,
                                      .source = {data[0], data[1], data[2], data[3]},
                                      .source_bytes = mgx_shape_bytes(&c->constant[W]->shape)};
    const int64_t desc[] = {cpu_offered(c)->isa, checksum_of(&v->plan.desc.w, c->in[W].lens),
                            checksum_of(&v->plan.desc.r, c->in[R].lens)};
    const struct mgx_plan_key key = {.kernel = "rnn",
                                     .desc = desc,
                                     .desc_bytes = sizeof desc,
                                     .source = {data[0], data[1], data[2], data[3]}};
    v->packed = mgx_plan_pack(c->store, &key, v->plan.packed_bytes, &how, c->diag);
    if (!v->packed)
        return false;
    c->skip_in[W] = c->skip_in[R] = true;
    c->packed_bytes += v->plan.packed_bytes;
    for (int i = BIAS; i < c->in_count; i++)
        c->skip_in[i] = !v->has[i] || is_weight(i);
    return true;
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct mgx_rnn_desc desc = {.reverse = false};
    if (!find_kind(c->ins->op, &desc.kind))
        return mgx_plan_refuse(c);
    struct rnn *v = MGX_NEW(c->arena, struct rnn);
    if (!v)
        return mgx_plan_no_memory(c);
    v->gives = mgx_rnn_gives(c->ins->op);
    desc.bytes = mgx_rnn_is_of_bytes(c->ins->op);
    if (!find_operands(c, v) || !describe(c, v, &desc) ||
        (desc.bytes && (!describe_bytes(c, v, W, W_SCALE, &desc.w) ||
                        !describe_bytes(c, v, R, R_SCALE, &desc.r))))
        return mgx_plan_refuse(c);
    if (mgx_rnn_plan_init(&v->plan, &desc, c->diag) != MGX_OK || !pack(c, v))
        return mgx_plan_refuse(c);
    static const int gates[] = {[MGX_RNN_PLAIN] = 1, [MGX_RNN_GRU] = 3, [MGX_RNN_LSTM] = 4};
    v->hidden_values = desc.steps * desc.batch * desc.directions * desc.hidden;
    c->flops = 2 * (double)v->hidden_values * gates[desc.kind] * (double)(desc.input + desc.hidden);
    c->workspace = v->plan.workspace_bytes;
    c->state = v;
    return MGX_PLAN_TAKEN;
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    (void)diag;
    const struct rnn *v = step->state;
    assert(v->packed && cpu_has_room(step, args, 0) && step->workspace >= v->plan.workspace_bytes);
    float *cells = args->out;
    if (v->gives == MGX_RNN_STATES)
        cells += v->hidden_values;
    const struct mgx_rnn_args a = {.x = args->in[X],
                                   .packed = v->packed,
                                   .initial_h = v->has[H0] ? args->in[H0] : NULL,
                                   .initial_c = v->has[C0] ? args->in[C0] : NULL,
                                   .lengths = v->has[LENGTHS] ? args->in[LENGTHS] : NULL,
                                   .y = v->gives & MGX_RNN_HIDDEN ? args->out : NULL,
                                   .final_c = v->gives & MGX_RNN_LAST_CELL ? cells : NULL,
                                   .workspace = args->workspace};
    mgx_rnn_run(&v->plan, &a, cpu_pool(args));
    return MGX_OK;
}

CPU_KERNEL(rnn, 90)
const struct mgx_plan_kernel cpu_kernel_rnn = {.name = "rnn", .prepare = prepare, .run = run};
