// SPDX-License-Identifier: MIT
// group[tag=attention_bytes]: h(quant_dot(g(softmax(f(quant_dot(q, k, p, z)))), v, z, y)) as one
// kernel of NVIDIA's matrix units (kernel/attention_bytes.gpu), with f, g and h written into it.
//
// q, k, v and the result lie as they like; f reads what attention.h says, g and h are of one value.
#include <inttypes.h>
#include <string.h>

#include "op/op.h"
#include "op/source.h"
#include "pass/engine/constant.h"
#include "pass/engine/region.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/attention.h"
#include "targets/gpu/lower/tail.h"
#include "targets/gpu/lower/units.h"

enum { MOST_HEAD = 128, DEEP = 32, STEP = 16, PAD = 16 };
#define LOG2E 1.4426950408889634

struct bytes {
    struct gpu_attention a;
    int warps, keys; // of a block; that are walked together
    int shares;      // warps that take the same rows
    bool lowest;     // weights are bytes above the lowest one, else above 0
};

// --- what is offered ---

static const struct mgx_ins *made_of(const struct mgx_ins *ins, const struct mgx_op *op)
{
    for (int i = 0; i < ins->in_count; i++)
        if (ins->in[i]->op == op)
            return ins->in[i];
    return NULL;
}

static bool quantizes_alone(const struct bytes *b)
{
    return b->lowest && b->a.narrow->op == &mgx_op_quantizelinear &&
           b->a.narrow->in[0] == b->a.softmax;
}

bool gpu_attention_bytes_read(const struct mgx_plan_offer *c, struct gpu_attention *a)
{
    const struct mgx_module *body = c->ins->mod[0];
    const struct mgx_ins *last = mgx_module_result(body, 0);
    memset(a, 0, sizeof *a);
    a->after = last->op == &mgx_op_quant_dot ? NULL : last;
    a->weigh = a->after ? made_of(last, &mgx_op_quant_dot) : last;
    a->narrow = a->weigh ? a->weigh->in[0] : NULL;
    a->softmax = a->narrow ? made_of(a->narrow, &mgx_op_softmax) : NULL;
    a->between = a->softmax ? a->softmax->in[0] : NULL;
    if (a->between && a->between->op == &mgx_op_quant_dot) {
        a->scores = a->between;
        a->between = NULL;
    }
    a->scores = a->between ? made_of(a->between, &mgx_op_quant_dot) : a->scores;
    if (!a->scores || (a->between && !gpu_body_around(a->between, a->scores, GPU_CALL_INPUTS - 4,
                                                      a->extra, &a->extra_count, &a->place)))
        return false;
    a->q = mgx_parameter_index(a->scores->in[0]);
    a->k = mgx_parameter_index(a->scores->in[1]);
    a->v = mgx_parameter_index(a->weigh->in[1]);
    return a->q >= 0 && a->k >= 0 && a->v >= 0;
}

bool gpu_attention_bytes_supports(const struct gpu_device *d, const struct mgx_ins *scores,
                                  const struct mgx_ins *weigh)
{
    const struct mgx_shape *q = &scores->in[0]->shape;
    const int64_t head = q->lens[q->rank - 1], head_v = weigh->shape.lens[weigh->shape.rank - 1];
    enum { FEW_ROWS = 8, FEW_KEYS = 512 };
    if (q->lens[q->rank - 2] < FEW_ROWS && scores->shape.lens[q->rank - 1] > FEW_KEYS)
        return false;
    const struct gpu_units *units = gpu_units_find(d, MGX_INT8);
    return units && !units->instruction && d->properties.version >= 80 && head % DEEP == 0 &&
           head_v % STEP == 0 && head > 0 && head_v > 0 && head <= MOST_HEAD && head_v <= MOST_HEAD;
}

// Does f read nothing that kernels do not compute, and h make nothing such?
bool gpu_attention_bytes_reads(const struct mgx_ins *between, const struct mgx_ins *last)
{
    const enum mgx_type out = last->shape.type;
    bool reads = gpu_type_class(out) != GPU_NONE || out == MGX_FP8E4M3FN || out == MGX_FP8E5M2;
    for (int i = 0; i < between->in_count; i++)
        reads = reads && gpu_type_class(between->in[i]->shape.type) != GPU_NONE;
    return reads;
}

// --- how the work is divided ---

static int64_t batches_of(const struct mgx_shape *s)
{
    int64_t batches = 1;
    for (int i = 0; i < s->rank - 2; i++)
        batches *= s->lens[i];
    return batches;
}

static size_t shared_bytes(const struct bytes *b)
{
    const struct mgx_shape *q = &b->a.scores->in[0]->shape, *w = &b->a.weigh->shape;
    const size_t head = (size_t)q->lens[q->rank - 1], head_v = (size_t)w->lens[w->rank - 1];
    const size_t rows = (size_t)(b->warps / b->shares) * STEP, keys = (size_t)b->keys;
    const int64_t scored = b->a.scores->shape.lens[q->rank - 1];
    const size_t desks = (size_t)b->warps * (head_v * STEP + 64) * sizeof(float);
    const size_t there = scored > b->keys ? 2 : 1; // groups
    return PAD + rows * (head + PAD) + there * keys * (head + PAD + head_v + PAD) +
           keys * 2 * sizeof(int32_t) + (b->shares > 1 ? desks : 0);
}

enum { GROUP = 128, WARPS = 4, MOST_WARPS = 7, SMALL_HEAD = 64, IN_REGISTERS = 208 };

// May a warp hold the scores of all keys, if they are few enough? Then nothing else may want registers.
static bool holds_all(const struct mgx_plan_offer *c, const struct bytes *b, int64_t keys)
{
    const struct mgx_shape *q = &b->a.scores->in[0]->shape, *w = &b->a.weigh->shape;
    bool alone = true;
    for (int e = 0; e < b->a.extra_count; e++) {
        double number;
        alone = alone && mgx_splat_value(c->ins->in[b->a.extra[e]], &number);
    }
    return alone && keys <= IN_REGISTERS && q->lens[q->rank - 1] <= SMALL_HEAD &&
           w->lens[w->rank - 1] <= SMALL_HEAD;
}

// Warps of a block that holds all scores: those that leave the fewest idle.
static int fewest_idle(int64_t high)
{
    int best = WARPS;
    for (int n = WARPS + 1; n <= MOST_WARPS; n++)
        if ((high + n - 1) / n * n <= (high + best - 1) / best * best)
            best = n;
    return best;
}

// Keys together: all of them where warps share or hold them, else groups of 128 at most, which are walked
// twice if there are several.
static void group_keys(struct bytes *b, int64_t keys, bool all)
{
    const bool at_once = all || (b->shares > 1 && keys <= 2 * GROUP);
    const int64_t step = DEEP * b->shares, most = at_once ? 2 * GROUP : GROUP;
    const int64_t groups = (keys + most - 1) / most;
    b->keys = (int)(((keys + groups - 1) / groups + step - 1) / step * step);
}

// Up to 256 keys are shared by two warps, so that registers do for others, and more where blocks are few, by
// four where they are fewer; up to 128 by none where blocks are many, nor up to 208 if a warp can hold them; if there is room
// for what they show each other.
static void divide(const struct mgx_plan_offer *c, struct bytes *b)
{
    const struct gpu_properties *card = &gpu_machine(c->machine)->device->properties;
    const struct mgx_shape *s = &b->a.scores->shape;
    const int64_t keys = s->lens[s->rank - 1], high = (s->lens[s->rank - 2] + STEP - 1) / STEP;
    const int64_t work = batches_of(s) * high, at_once = WARPS * (int64_t)card->units;
    const bool all = work >= 2 * at_once && holds_all(c, b, keys);
    b->warps = WARPS;
    b->shares = (keys <= 2 * GROUP && keys > DEEP) || (keys > 2 * GROUP && work < at_once) ? 2 : 1;
    if (b->shares == 2 && keys > 2 * DEEP && 2 * work < at_once)
        b->shares = WARPS;
    else if (all || (keys <= GROUP && work >= 2 * at_once))
        b->shares = 1;
    if (all && keys > GROUP)
        b->warps = fewest_idle(high);
    group_keys(b, keys, all);
    if (shared_bytes(b) > card->shared_bytes) {
        b->shares = 1;
        b->warps = WARPS;
        group_keys(b, keys, false);
    }
    while (b->warps > b->shares &&
           (work * b->shares + b->warps - 1) / b->warps < (int64_t)card->units)
        b->warps /= 2;
}

// Warps of a multiprocessor that find registers.
static int resident(const struct bytes *b, int64_t keys)
{
    enum { SMALL = 64, MANY = 16, MORE = 14, SOME = 12, FEWER = 8 };
    const struct mgx_shape *q = &b->a.scores->in[0]->shape, *w = &b->a.weigh->shape;
    if (b->keys / b->shares <= SMALL)
        return MANY;
    if (b->shares == 1 && keys > GROUP && keys <= b->keys)
        return b->warps == WARPS ? SOME : MORE;
    return keys <= b->keys && q->lens[q->rank - 1] <= SMALL && w->lens[w->rank - 1] <= SMALL
               ? SOME
               : FEWER;
}

// --- text ---

static int zero_of(const struct mgx_plan_offer *c, const struct mgx_ins *dot, int operand)
{
    double value = 0;
    const int at = operand + 2;
    const int input = at < dot->in_count ? mgx_parameter_index(dot->in[at]) : -1;
    return input >= 0 && mgx_splat_value(c->ins->in[input], &value) ? (int)value : 0;
}

static const char *type_of(const struct mgx_plan_offer *c, int input)
{
    return c->in[input].type == MGX_INT8 ? "s8" : "u8";
}

// Weights, `steps` of which are 1, as bytes from the lowest one on: none is above 1, so where 255 steps are 1 or more
// nothing saturates.
static void put_narrow_share(struct mgx_str *out, enum mgx_type type, double steps)
{
    const bool saturates = steps > UINT8_MAX * (1 + 0x1p-20);
    mgx_str_put(out, "#define NARROW_FACTOR ");
    gpu_emit_real(out, (float)(saturates ? steps / UINT8_MAX : steps));
    mgx_str_put(out, "\nFUNCTION u32 narrow(float w, float scale)\n{\n");
    if (saturates)
        mgx_str_printf(out, "    return (u32)quick_last_share(w * scale, (float)%d, (float)%d);\n",
                       (int)mgx_type_lowest(type), (int)mgx_type_highest(type));
    else
        mgx_str_printf(out, "    return BITS_OF_FLOAT(fmaf(w, scale, 12582912.0f + %d));\n",
                       (int)mgx_type_lowest(type));
}

// Weights are bytes above their zero point, the lowest one or 0. Alone, a scale is a factor.
static bool emit_narrow(struct mgx_str *out, const struct mgx_plan_offer *c, const struct bytes *b)
{
    const enum mgx_type type = b->a.narrow->shape.type;
    double scale;
    if (quantizes_alone(b)) {
        const int input = mgx_parameter_index(b->a.narrow->in[1]);
        if (input < 0 || !mgx_splat_value(c->ins->in[input], &scale))
            return false;
        put_narrow_share(out, type, 1 / scale);
    } else {
        mgx_str_put(out, "#define NARROW_FACTOR 1\nFUNCTION u32 narrow(float w, float scale)\n{\n"
                         "    const float s = w * scale;\n");
        if (!gpu_attention_numbers(out, c, b->a.narrow, b->a.softmax, 0))
            return false;
        gpu_emit_call(out, "narrow_body", type, b->a.narrow->in_count);
        mgx_str_put(out, "    return (u32)y;\n");
    }
    mgx_str_printf(out, "}\n#define NARROW_SIGN %s\n",
                   type == MGX_INT8 && b->lowest ? "0x80808080u" : "0");
    return true;
}

// narrow() and result().
static bool emit_ends(struct mgx_str *out, const struct mgx_plan_offer *c, const struct bytes *b,
                      uint64_t real)
{
    const enum mgx_type type = c->out->type;
    if (!emit_narrow(out, c, b))
        return false;
    mgx_str_printf(out, "#define OUT %s\n#define WORDS %d\nFUNCTION OUT result(float s)\n{\n",
                   gpu_type_memory(type), mgx_type_size(type) == 1);
    if (!b->a.after) {
        mgx_str_put(out, "    return (OUT)s;\n}\n");
        return true;
    }
    if (!gpu_attention_numbers(out, c, b->a.after, b->a.weigh, real))
        return false;
    gpu_emit_call(out, "after_body", type, b->a.after->in_count);
    mgx_str_put(out, "    return ");
    gpu_emit_narrowed(out, type, "y");
    mgx_str_put(out, ";\n}\n");
    return true;
}

static int place_of(const struct mgx_ins *ins, const struct mgx_ins *value)
{
    for (int i = 0; ins && i < ins->in_count; i++)
        if (ins->in[i] == value)
            return i;
    return -1;
}

// Are softmax's inputs numbers of a byte's steps, none so large that its power would need another
// base than 1, or its exponent lose what a byte shows?
static bool is_bounded(const struct mgx_ins *between)
{
    enum { MOST_POWER = 32 };
    const struct mgx_ins *last =
        between->mod_count > 0 ? mgx_module_result(between->mod[0], 0) : between;
    double step;
    return last->op == &mgx_op_dequantizelinear && mgx_type_is_byte(last->in[0]->shape.type) &&
           mgx_splat_value(last->in[1], &step) && step * UINT8_MAX * LOG2E <= MOST_POWER &&
           step > 0;
}

// Is the number of those steps all that is made, by the functions that know 1.5 * 2^23?
static bool leaves_steps(const struct bytes *b)
{
    return is_bounded(b->a.between) && mgx_source_step(b->a.between) > 0 &&
           gpu_real_operands(b->a.between, b->a.place);
}

// Of what softmax sees, exponents: of steps the base takes off the 1.5 * 2^23 that they lie above. What it is rounded
// by all powers of a row have, so that their shares have not.
static void emit_power(struct mgx_str *out, const struct bytes *b)
{
    const bool steps = leaves_steps(b);
    const float factor = (float)(steps ? mgx_source_step(b->a.between) * LOG2E : LOG2E);
    mgx_str_printf(out, "#define BOUNDED %d\n#define POWER_FACTOR ", is_bounded(b->a.between));
    gpu_emit_real(out, factor);
    mgx_str_put(out, "\n#define POWER_BASE ");
    gpu_emit_real(out, steps ? (float)(12582912.0 * factor) : 0);
    mgx_str_put(out, "\n");
}

static const char *emit_functions(struct mgx_str *out, const struct mgx_plan_offer *c,
                                  const struct bytes *b)
{
    const int place = place_of(b->a.after, b->a.weigh);
    const struct gpu_function all[] = {
        {.name = "body",
         .ins = b->a.between,
         .real = gpu_real_operands(b->a.between, b->a.place),
         .steps = leaves_steps(b)},
        {.name = "narrow_body", .ins = quantizes_alone(b) ? NULL : b->a.narrow},
        {.name = "after_body",
         .ins = b->a.after,
         .real = b->a.after ? gpu_real_operands(b->a.after, place) : 0},
    };
    const char *why = gpu_emit_functions(out, c, all, MGX_COUNT(all));
    if (why)
        return why;
    emit_power(out, b);
    gpu_attention_between(out, c, &b->a, all[0].real);
    return emit_ends(out, c, b, all[2].real) ? NULL : "an end of several values";
}

static void emit_sizes(struct mgx_str *out, const struct mgx_plan_offer *c, const struct bytes *b)
{
    const struct mgx_shape *q = &c->in[b->a.q], *k = &c->in[b->a.k], *v = &c->in[b->a.v];
    const int r = q->rank;
    GPU_PUT(out, lines);
    GPU_PUT(out, tiles);
    mgx_str_printf(out,
                   "#define ROWS %" PRId64 "\n#define KEYS %" PRId64 "\n#define HEAD %" PRId64
                   "\n#define HEAD_V %" PRId64 "\n#define WARPS %d\n#define KEYS_AT_ONCE %d\n"
                   "#define SHARES %d\n#define PER_SM %d\n",
                   q->lens[r - 2], k->lens[r - 1], q->lens[r - 1], v->lens[r - 1], b->warps,
                   b->keys, b->shares, resident(b, k->lens[r - 1]) / b->warps);
    mgx_str_printf(out, "#define ZQ %d\n#define ZK %d\n#define ZV %d\n", zero_of(c, b->a.scores, 0),
                   zero_of(c, b->a.scores, 1), zero_of(c, b->a.weigh, 1));
    mgx_str_printf(out, "#define TYPE_Q \"%s\"\n#define TYPE_K \"%s\"\n#define TYPE_V \"%s\"\n",
                   type_of(c, b->a.q), type_of(c, b->a.k), type_of(c, b->a.v));
    gpu_attention_operand(out, 'Q', q, r - 2, r - 1);
    gpu_attention_operand(out, 'K', k, r - 1, r - 2);
    gpu_attention_operand(out, 'V', v, r - 2, r - 1);
    gpu_attention_operand(out, 'C', c->out, r - 2, r - 1);
}

static const char *refuses(const struct mgx_plan_offer *c, struct bytes *b)
{
    memset(b, 0, sizeof *b);
    if (c->copy_only || c->dynamic || !mgx_is_group(c->ins, "attention_bytes"))
        return "not an attention of bytes";
    if (!gpu_attention_bytes_read(c, &b->a) || !b->a.between)
        return "a group that is not an attention of bytes";
    if (!mgx_type_is_byte(b->a.scores->in[0]->shape.type))
        return "an attention of fp8";
    if (!gpu_attention_bytes_supports(gpu_machine(c->machine)->device, b->a.scores, b->a.weigh))
        return "heads that this card's matrix units do not take";
    if (gpu_type_class(c->out->type) == GPU_NONE ||
        !gpu_attention_bytes_reads(b->a.between, mgx_module_result(c->ins->mod[0], 0)))
        return "a type that kernels do not compute";
    return NULL;
}

static const char *detail_of(const struct bytes *b, int64_t keys)
{
    if (keys > b->keys)
        return "two passes, matrix units (mma)";
    return b->shares == 1 && keys > GROUP ? "one pass, a warp all keys, matrix units (mma)"
                                          : "one pass, matrix units (mma)";
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct bytes b;
    struct mgx_str text = {0};
    const char *why = refuses(c, &b);
    if (why)
        return gpu_decline(c, why);
    const struct mgx_shape *s = &b.a.scores->shape;
    const int64_t rows = s->lens[s->rank - 2], batches = batches_of(s);
    if (batches > UINT16_MAX)
        return gpu_decline(c, "larger than the grid");
    b.lowest = zero_of(c, b.a.weigh, 0) == (int)mgx_type_lowest(b.a.narrow->shape.type);
    divide(c, &b);
    emit_sizes(&text, c, &b);
    why = emit_functions(&text, c, &b);
    if (why) {
        mgx_str_fini(&text);
        return gpu_decline(c, why);
    }
    GPU_PUT(&text, attention_bytes);
    const int together = b.warps / b.shares * STEP; // rows of a block
    const struct gpu_launch how = {
        .grid = {(unsigned)((rows + together - 1) / together), (unsigned)batches, 1},
        .block = {(unsigned)(b.warps * 32), 1, 1},
        .shared = shared_bytes(&b)};
    int in[GPU_CALL_INPUTS] = {b.a.q, b.a.k, b.a.v};
    memcpy(in + 3, b.a.extra, (size_t)b.a.extra_count * sizeof *in);
    const struct mgx_shape *q = &c->in[b.a.q];
    c->flops = 2.0 * (double)batches * (double)rows * (double)s->lens[s->rank - 1] *
               (double)(q->lens[q->rank - 1] + c->out->lens[s->rank - 1]);
    c->detail = detail_of(&b, s->lens[s->rank - 1]);
    return gpu_take(c, &text, &how, in, 3 + b.a.extra_count);
}

const struct mgx_plan_kernel gpu_kernel_attention_bytes = {
    .name = "gpu::attention_bytes", .prepare = prepare, .run = gpu_run_call};
