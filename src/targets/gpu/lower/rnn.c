// SPDX-License-Identifier: MIT
// rnn, gru, lstm, lstm_last_cell and lstm_states, one launch for all steps.
//
//     kernel/rnn_cluster.gpu    Hopper: products with the inputs of all steps first; then the steps, by
//                               clusters of eight blocks that keep their rows of R
//     kernel/rnn.gpu            any card, any sizes: a sequence is one block's. Right, and without the
//                               host, rather than fast
#include <inttypes.h>
#include <stdio.h>

#include "op/lstm.h"
#include "op/op.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/lower.h"

enum { X, W, R, BIAS, LENGTHS, H0, C0, PEEPHOLES, INPUTS };
enum { MOST_HIDDEN = 2048, ACTS = 3 };

struct cell {
    const struct mgx_op *op;
    const char *name;
    int gates, acts;
};

static const struct cell cells[] = {
    {&mgx_op_rnn, "RNN", 1, 1},          {&mgx_op_gru, "GRU", 3, 2},
    {&mgx_op_lstm, "LSTM", 4, 3},        {&mgx_op_lstm_last_cell, "LSTM", 4, 3},
    {&mgx_op_lstm_states, "LSTM", 4, 3},
};

static bool given(const struct mgx_plan_offer *c, int input)
{
    return input < c->in_count && !mgx_shape_is_absent(&c->in[input]);
}

static int directions(const struct mgx_plan_offer *c)
{
    return mgx_ins_int(c->ins, "direction") == MGX_RNN_BIDIRECTIONAL ? 2 : 1;
}

// --- activations ---

static const struct {
    const char *name, *text;
} acts[] = {
    {"sigmoid", "1.0f / (1.0f + exp(-x))"},
    {"tanh", "tanh(x)"},
    {"relu", "x != x || x > 0 ? x : 0"},
};

static const char *act_text(const char *name)
{
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
        const char *a = acts[i].name, *b = name;
        while (*a && (*b | 0x20) == *a)
            a++, b++;
        if (!*a && !*b)
            return acts[i].text;
    }
    return NULL;
}

// The functions act<i>(dir, x); false for an activation that has no text.
static bool emit_acts(struct mgx_str *out, const struct mgx_plan_offer *c, const struct cell *cell)
{
    const struct mgx_rnn_attr *a = c->ins->attr;
    const int dirs = directions(c), all = cell->acts * dirs;
    const int listed = a->actv_func.count < all ? a->actv_func.count : all;
    for (int i = 0; i < cell->acts; i++) {
        const bool clips = a->clip > 0 && i < 2;
        mgx_str_printf(out, "FUNCTION float act%d(int dir, float x)\n{\n", i);
        if (clips) {
            mgx_str_put(out, "    const float most = ");
            gpu_emit_real(out, a->clip);
            mgx_str_put(out, ";\n    x = x > most ? most : x < -most ? -most : x;\n");
        }
        for (int dir = dirs - 1; dir >= 0; dir--) {
            const int at = dir * cell->acts + i;
            const int from = at < listed ? at : mgx_rnn_func_at(listed, cell->acts, at);
            const char *text = listed > 0 ? act_text(a->actv_func.v[from]) : NULL;
            if (!text)
                return false;
            mgx_str_printf(
                out, dir ? "    if (dir == 1)\n        return %s;\n" : "    return %s;\n", text);
        }
        mgx_str_put(out, "}\n\n");
    }
    return true;
}

// --- where things lie ---

static void define_at(struct mgx_str *out, const char *name, const char *first, const char *second,
                      const struct mgx_shape *s, int a, int b)
{
    mgx_str_printf(out, "#define %s(%s, %s) ((i64)(%s) * %" PRId64 " + (i64)(%s) * %" PRId64 ")\n",
                   name, first, second, first, s->strides[a], second, s->strides[b]);
}

static void define_bias(struct mgx_str *out, const struct mgx_plan_offer *c, const char *name,
                        int64_t offset)
{
    const struct mgx_shape *s = &c->in[BIAS];
    mgx_str_printf(out, "#define %s(dir, row) ", name);
    if (given(c, BIAS))
        mgx_str_printf(
            out, "LOAD(in3, (i64)(dir) * %" PRId64 " + (i64)((row) + %" PRId64 ") * %" PRId64 ")\n",
            s->strides[0], offset, s->strides[1]);
    else
        mgx_str_put(out, "0.0f\n");
}

static void define_start(struct mgx_str *out, const struct mgx_plan_offer *c, const char *name,
                         int input)
{
    const struct mgx_shape *s = &c->in[input];
    mgx_str_printf(out, "#define %s(dir, b, j) ", name);
    if (given(c, input))
        mgx_str_printf(out,
                       "LOAD(in%d, (i64)(dir) * %" PRId64 " + (i64)(b) * %" PRId64
                       " + (i64)(j) * %" PRId64 ")\n",
                       input, s->strides[0], s->strides[1], s->strides[2]);
    else
        mgx_str_put(out, "0.0f\n");
}

static void define_optional(struct mgx_str *out, const struct mgx_plan_offer *c, int64_t hidden)
{
    mgx_str_put(out, "#define LENGTH(b) ((i64)");
    if (given(c, LENGTHS)) {
        char at[48];
        snprintf(at, sizeof at, "(i64)(b) * %" PRId64, c->in[LENGTHS].strides[0]);
        gpu_emit_load(out, c->in[LENGTHS].type, "in4", at); // floats are lengths too
    } else {
        mgx_str_put(out, "STEPS");
    }
    mgx_str_put(out, ")\n");
    mgx_str_put(out, "#define PEEP(dir, gate, j) ");
    if (given(c, PEEPHOLES))
        mgx_str_printf(out,
                       "LOAD(in7, (i64)(dir) * %" PRId64 " + (i64)((gate) * %" PRId64
                       " + (j)) * %" PRId64 ")\n",
                       c->in[PEEPHOLES].strides[0], hidden, c->in[PEEPHOLES].strides[1]);
    else
        mgx_str_put(out, "0.0f\n");
    define_start(out, c, "START_H", H0);
    define_start(out, c, "START_C", C0);
}

static void define_out(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    const struct mgx_shape *s = c->out;
    const enum mgx_rnn_gives gives = mgx_rnn_gives(c->ins->op);
    const bool last_cell = gives == MGX_RNN_LAST_CELL;
    const int k = last_cell ? 0 : 1;
    mgx_str_printf(out, "#define HIDDEN_STATES %d\n#define LAST_CELL %d\n",
                   (gives & MGX_RNN_HIDDEN) != 0, (gives & MGX_RNN_LAST_CELL) != 0);
    mgx_str_printf(out,
                   "#define OUT_AT(t, dir, b, j) ((i64)(t) * %" PRId64 " + (i64)(dir) * %" PRId64
                   " + (i64)(b) * %" PRId64 " + (i64)(j) * %" PRId64 ")\n",
                   last_cell ? 0 : s->strides[0], s->strides[k], s->strides[k + 1],
                   s->strides[k + 2]);
    mgx_str_put(out, "#define STORE(at, y) out[at] = ");
    gpu_emit_narrowed(out, s->type, "y");
    mgx_str_put(out, "\n#define LOAD(p, at) ");
    gpu_emit_load(out, s->type, "(p)", "at");
    mgx_str_printf(out, "\n#define OUT_TYPE %s\n", gpu_type_memory(s->type));
}

static void emit_sizes(struct mgx_str *out, const struct mgx_plan_offer *c, const struct cell *cell)
{
    const struct mgx_shape *x = &c->in[X];
    const int64_t hidden = mgx_ins_int(c->ins, "hidden_size");
    mgx_str_printf(out,
                   "#define CELL %s\n#define STEPS %" PRId64 "\n#define BATCH %" PRId64
                   "\n#define IN %" PRId64 "\n#define HIDDEN %" PRId64 "\n",
                   cell->name, x->lens[0], x->lens[1], x->lens[2], hidden);
    mgx_str_printf(
        out, "#define X_STEP %" PRId64 "\n#define W_STEP %" PRId64 "\n#define R_STEP %" PRId64 "\n",
        x->strides[2], c->in[W].strides[2], c->in[R].strides[2]);
    define_at(out, "X_AT", "t", "b", x, 0, 1);
    define_at(out, "W_AT", "dir", "row", &c->in[W], 0, 1);
    define_at(out, "R_AT", "dir", "row", &c->in[R], 0, 1);
    define_bias(out, c, "FROM_BIAS", 0);
    define_bias(out, c, "BACK_BIAS", cell->gates * hidden);
    define_optional(out, c, hidden);
    define_out(out, c);
    const bool reverse = mgx_ins_int(c->ins, "direction") == MGX_RNN_REVERSE;
    mgx_str_printf(out, "#define BACKWARDS(dir) (%d || (dir) == 1)\n", reverse);
    mgx_str_printf(out, "#define LINEAR_RESET %d\n#define COUPLED %d\n",
                   c->ins->op == &mgx_op_gru && mgx_ins_int(c->ins, "linear_before_reset") != 0,
                   cell->gates == 4 && mgx_ins_int(c->ins, "input_forget") != 0);
    for (int i = 0; i < ACTS; i++)
        mgx_str_printf(out, "#define ACT%d(dir, x) act%d(dir, x)\n", i, i);
    mgx_str_put(out, "#define PARAMS");
    for (int i = 0; i < c->in_count; i++)
        if (given(c, i))
            mgx_str_printf(out, ", const GLOBAL %s *in%d", gpu_type_memory(c->in[i].type), i);
    mgx_str_put(out, "\n");
}

// --- the step on Hopper ---

enum { RANKS = 8, MOST_KEPT = 128, MOST_TOGETHER = 4, MOST_CLUSTERED = 1024, TILE = 32 };

struct call {             // state of a step
    struct gpu_call base; // first: its unit, and the kernel `run`
    void *from;           // the kernel of the inputs
    struct gpu_launch from_how;
};

static bool takes_cluster(const struct mgx_plan_offer *c)
{
    const struct gpu_device *d = gpu_machine(c->machine)->device;
    const int64_t hidden = mgx_ins_int(c->ins, "hidden_size");
    const bool resets = c->ins->op == &mgx_op_gru && !mgx_ins_int(c->ins, "linear_before_reset");
    return d->properties.features & GPU_TENSOR_MAPS && hidden % 64 == 0 &&
           hidden <= MOST_CLUSTERED && !resets && c->in[R].strides[2] == 1;
}

static struct call *make_cluster(struct mgx_plan_offer *c, const struct cell *cell,
                                 struct gpu_launch *how, struct mgx_str *text)
{
    const int64_t hidden = mgx_ins_int(c->ins, "hidden_size"), batch = c->in[X].lens[1];
    const int64_t rows = c->in[X].lens[0] * batch, columns = directions(c) * cell->gates * hidden;
    const int64_t passes = (cell->gates * hidden / RANKS + 31) / 32;
    int together = 1;
    while (together < MOST_TOGETHER && together < batch)
        together *= 2;
    const int64_t groups = (batch + together - 1) / together;
    struct call *k = MGX_NEW(c->arena, struct call);
    if (!k)
        return NULL;
    mgx_str_printf(text,
                   "#define RANKS %d\n#define TOGETHER %d\n#define KEEP %d\n"
                   "#define DIRECTIONS %d\n",
                   RANKS, together, passes * hidden / 8 <= MOST_KEPT, directions(c));
    GPU_PUT(text, tiles);
    GPU_PUT(text, cluster);
    GPU_PUT(text, rnn_cluster);
    *k = (struct call){
        .from_how = {.grid = {(unsigned)((columns + TILE - 1) / TILE),
                              (unsigned)((rows + TILE - 1) / TILE), 1},
                     .block = {GPU_THREADS, 1, 1},
                     .dependent =
                         gpu_machine(c->machine)->device->properties.features & GPU_DEPENDENT}};
    *how = (struct gpu_launch){.grid = {(unsigned)(RANKS * directions(c) * groups), 1, 1},
                               .block = {GPU_THREADS, 1, 1},
                               .cluster = RANKS};
    c->workspace = (size_t)(rows * columns) * sizeof(float);
    return k;
}

static enum mgx_status finish(struct mgx_plan *plan, const struct mgx_plan_step *step,
                              struct mgx_diag *diag)
{
    struct call *k = step->state;
    (void)plan;
    TRY(gpu_unit_kernel(k->base.unit, "from", 0, &k->from, diag));
    return gpu_unit_kernel(k->base.unit, "run", k->base.how.shared, &k->base.kernel, diag);
}

static enum mgx_status run_cluster(const struct mgx_plan_step *step,
                                   const struct mgx_plan_args *args, struct mgx_diag *diag)
{
    const struct call *k = step->state;
    struct gpu_device *d = gpu_machine(args->machine)->device;
    struct gpu_arg list[INPUTS + 2];
    list[0] = (struct gpu_arg){&args->out, sizeof(void *), true};
    list[1] = (struct gpu_arg){&args->workspace, sizeof(void *), true};
    for (int i = 0; i < k->base.in_count; i++)
        list[i + 2] = (struct gpu_arg){&args->in[k->base.in[i]], sizeof(void *), true};
    void *stream = gpu_queue_stream(args->queue);
    TRY(d->api->launch(d, stream, k->from, &k->from_how, list + 1, k->base.in_count + 1, diag));
    return d->api->launch(d, stream, k->base.kernel, &k->base.how, list, k->base.in_count + 2,
                          diag);
}

static const struct cell *find_cell(const struct mgx_plan_offer *c)
{
    for (size_t i = 0; i < sizeof cells / sizeof *cells && !c->copy_only && !c->dynamic; i++)
        if (cells[i].op == c->ins->op)
            return &cells[i];
    return NULL;
}

static const char *refuses(const struct mgx_plan_offer *c)
{
    const enum mgx_type type = c->out->type;
    if (gpu_type_class(type) != GPU_REAL || type == MGX_DOUBLE)
        return "values that are not summed in float";
    if (given(c, LENGTHS) && gpu_type_class(c->in[LENGTHS].type) == GPU_NONE)
        return "lengths of a type that kernels do not compute";
    return mgx_shape_elements(c->out) == 0 || mgx_ins_int(c->ins, "hidden_size") > MOST_HIDDEN
               ? "a state that does not fit the shared memory, or none"
               : NULL;
}

// What is offered, as text without its kernels; why not.
static const char *read(struct mgx_plan_offer *c, const struct cell *cell, struct mgx_str *text)
{
    const char *why = refuses(c);
    if (!why && !emit_acts(text, c, cell))
        why = "an activation with parameters";
    if (!why)
        emit_sizes(text, c, cell);
    else
        mgx_str_fini(text);
    return why;
}

static int list_inputs(struct mgx_plan_offer *c, int *in)
{
    int count = 0;
    for (int i = 0; i < c->in_count; i++) {
        c->skip_in[i] = !given(c, i);
        if (given(c, i))
            in[count++] = i;
    }
    return count;
}

static enum mgx_plan_answer prepare_cluster(struct mgx_plan_offer *c)
{
    const struct cell *cell = find_cell(c);
    struct mgx_str text = {0};
    struct gpu_launch how;
    int in[INPUTS];
    if (!cell || !takes_cluster(c))
        return gpu_decline(c, cell ? "no clusters, or sizes that they do not share"
                                   : "not a recurrent layer");
    const char *why = read(c, cell, &text);
    if (why)
        return gpu_decline(c, why);
    struct call *k = make_cluster(c, cell, &how, &text);
    if (!k) {
        mgx_str_fini(&text);
        return mgx_plan_no_memory(c);
    }
    const int count = list_inputs(c, in);
    c->detail = "clusters that keep their weights";
    return gpu_take_call(c, &k->base, &text, &how, in, count);
}

static const struct gpu_family family = {finish};

const struct mgx_plan_kernel gpu_kernel_rnn_cluster = {
    .name = "gpu::rnn", .prepare = prepare_cluster, .run = run_cluster, .more = &family};

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    const struct cell *cell = find_cell(c);
    struct mgx_str text = {0};
    int in[INPUTS];
    const char *why = cell ? read(c, cell, &text) : "not a recurrent layer";
    if (why)
        return gpu_decline(c, why);
    GPU_PUT(&text, rnn);
    const int count = list_inputs(c, in);
    const struct gpu_launch how = {.grid = {(unsigned)(c->in[X].lens[1] * directions(c)), 1, 1},
                                   .block = {GPU_THREADS, 1, 1}};
    c->detail = "a sequence a block";
    return gpu_take(c, &text, &how, in, count);
}

const struct mgx_plan_kernel gpu_kernel_rnn = {
    .name = "gpu::rnn", .prepare = prepare, .run = gpu_run_call};
