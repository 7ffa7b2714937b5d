// SPDX-License-Identifier: MIT
// group[tag=attention]: dot(softmax(f(dot(q, k))), v) of floats as one kernel (on NVIDIA's cards
// kernel/attention.gpu of 16 bits and attention_float.gpu of 32, on AMD's attention_units.gpu), with f
// written into it. On NVIDIA's group[tag=attention_bytes] of fp8 too, attention.gpu with what rounds the
// weights, g, and what the sums become, h, written into it:
//
//     h(quant_dot(g(softmax(f(quant_dot(q, k)))), v))
//
// q, k, v and the result lie as they like. f is any element-wise instruction of the scores: masks
// and biases of any strides are read for two scores at a time, and once for two rows that share them;
// repeated constants are written as numbers.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "op/op.h"
#include "op/source.h"
#include "pass/engine/attention.h"
#include "pass/engine/constant.h"
#include "targets/gpu/emit/multiply.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/attention.h"
#include "targets/gpu/lower/ranged.h"
#include "targets/gpu/lower/tail.h"
#include "targets/gpu/lower/units.h"

enum { MOST_HEAD = 128, STEP = 16 };

// --- what is offered ---

static bool is_fp8(const struct mgx_ins *scores)
{
    return mgx_type_is_fp8(scores->in[0]->shape.type);
}

static bool read_group(const struct mgx_plan_offer *c, struct gpu_attention *a)
{
    const struct mgx_module *body = c->ins->mod[0];
    struct mgx_attention_roles roles;
    memset(a, 0, sizeof *a);
    if (mgx_is_group(c->ins, "attention_bytes"))
        return gpu_attention_bytes_read(c, a);
    if (!mgx_read_attention(mgx_module_result(body, 0), &roles) || roles.rounded)
        return false;
    a->weigh = roles.weigh;
    a->scores = roles.scores;
    a->between = roles.between;
    a->guarded = roles.guard != NULL;
    if (a->weigh->op != &mgx_op_dot ||
        (a->between && !gpu_body_around(a->between, a->scores, GPU_CALL_INPUTS - 4, a->extra,
                                        &a->extra_count, &a->place)))
        return false;
    a->q = mgx_parameter_index(a->scores->in[0]);
    a->k = mgx_parameter_index(a->scores->in[1]);
    a->v = mgx_parameter_index(a->weigh->in[1]);
    return a->q >= 0 && a->k >= 0 && a->v >= 0;
}

static bool is_ocp(enum mgx_type type)
{
    return type == MGX_FP8E4M3FN || type == MGX_FP8E5M2;
}

// All of one type, or of OCP's kinds of fp8 for NVIDIA's units.
static bool takes_types(const struct gpu_units *units, const struct mgx_ins *scores,
                        const struct mgx_ins *weigh)
{
    const enum mgx_type q = scores->in[0]->shape.type, k = scores->in[1]->shape.type;
    const enum mgx_type w = weigh->in[0]->shape.type, v = weigh->in[1]->shape.type;
    if (is_fp8(scores))
        return !units->instruction && is_ocp(q) && is_ocp(k) && is_ocp(w) && is_ocp(v);
    return k == q && v == q && weigh->shape.type == q;
}

bool gpu_attention_supports(const struct gpu_device *d, const struct mgx_ins *scores,
                            const struct mgx_ins *weigh)
{
    const struct mgx_shape *q = &scores->in[0]->shape;
    const enum mgx_type type = is_fp8(scores) ? MGX_HALF : q->type;
    const int64_t head = q->lens[q->rank - 1], head_v = weigh->shape.lens[weigh->shape.rank - 1];
    // A block walks all keys of its rows; many keys of one row are more than it should do alone.
    enum { FEW_ROWS = 8, FEW_KEYS = 512 };
    if (q->lens[q->rank - 2] < FEW_ROWS && scores->shape.lens[q->rank - 1] > FEW_KEYS)
        return false;
    const struct gpu_units *units = gpu_units_find(d, type);
    return units && (units->instruction || d->properties.version >= 80) &&
           takes_types(units, scores, weigh) && head % STEP == 0 && head_v % STEP == 0 &&
           head > 0 && head_v > 0 && head <= MOST_HEAD && head_v <= MOST_HEAD;
}

// --- how the work is divided ---

struct division {
    int64_t batches;
    int warps, keys;             // of a block, 16 rows each; that a warp looks at together
    int shares;                  // warps that take the same rows and different keys
    int beside;                  // blocks that shall fit on a multiprocessor
    bool groups;                 // warpgroups multiply
    bool fp8;                    // weights are rounded after the division by their sum
    bool direct;                 // which becomes half in registers
    size_t shared;               // bytes, beyond what the text declares
    const struct gpu_units *amd; // the kernel of AMD's units; NULL: those of NVIDIA's
};

// What the units multiply.
static enum mgx_type type_of(const struct mgx_plan_offer *c, const struct division *d)
{
    return d->fp8 ? MGX_HALF : c->out->type;
}

static size_t shared_bytes(enum mgx_type type, const struct division *d, int64_t all_keys,
                           int64_t head, int64_t head_v)
{
    const size_t pad = d->groups ? 0 : 16;
    const size_t pitch =
        (size_t)(head + head_v) * 2 + 2 * pad; // of a key and its value, in 16 bits
    const int64_t keys = (int64_t)d->keys * d->shares;
    const bool twice = type == MGX_FLOAT || (all_keys > keys && !d->fp8); // pieces, or buffers
    const size_t copies = twice ? 2 : 1;
    const size_t pass = copies * (size_t)keys * pitch;
    const size_t desk = (16 * (size_t)(head_v + 8) + 32) * sizeof(float); // where shares meet
    const size_t desks = d->shares > 1 ? desk * (size_t)d->warps : 0;
    const size_t rows = (size_t)(d->warps / d->shares) * STEP;
    const size_t q = type == MGX_FLOAT ? 0 : rows * ((size_t)head * 2 + pad);
    const size_t lines = rows * (size_t)head + (size_t)keys * (size_t)(head + head_v); // of fp8
    // What the text declares besides: powers of keys and values, and a block's range.
    const size_t declared = type == MGX_FLOAT ? 8 * (size_t)keys + 8 * 32 * (size_t)d->warps : 0;
    return (type == MGX_FLOAT ? 128 : 1024) + q + (pass > desks ? pass : desks) + declared +
           (d->fp8 && !d->direct ? lines + 1024 : 0);
}

// Blocks are few: two warps take the same rows and half of the keys each, as many at a time as
// registers and shared memory allow.
static void share(struct division *d, const struct mgx_plan_offer *c, int64_t keys, int64_t head,
                  int64_t head_v)
{
    const size_t most = gpu_machine(c->machine)->device->properties.shared_bytes;
    struct division s = *d;
    if (keys < 4 * STEP)
        return;
    s.shares = 2;
    s.warps = 4;
    const int64_t tiles = (keys + 2 * STEP - 1) / (2 * STEP), limit = head_v <= 64 ? 7 : 4;
    for (s.keys = (int)(tiles < limit ? tiles : limit) * STEP; s.keys > STEP; s.keys -= STEP) {
        s.shared = shared_bytes(type_of(c, d), &s, keys, head, head_v);
        if (s.shared <= most / 2)
            break;
    }
    if (s.keys > STEP)
        *d = s;
}

// The same of floats: so many that all keys are brought at once, and eight warps bring them.
static void share_floats(struct division *d, const struct mgx_plan_offer *c, int64_t high,
                         int64_t keys, int64_t head, int64_t head_v)
{
    enum { WARPS = 8, PART = 32 };
    const struct gpu_properties *card = &gpu_machine(c->machine)->device->properties;
    const bool fewest = d->batches * ((high + 3) / 4) * 2 <= card->units;
    struct division s = *d;
    if (keys <= PART || high <= 1)
        return;
    s.shares = keys > 2 * s.keys && fewest ? 4 : 2;
    s.keys = keys <= 2 * PART ? PART : s.keys;
    s.warps = high == 2 ? 2 * s.shares : WARPS;
    s.shared = shared_bytes(MGX_FLOAT, &s, keys, head, head_v);
    if (s.shared <= card->shared_bytes)
        *d = s;
}

// Warpgroups, where there are rows for them: 64 a block, as many keys at a time as leave room for
// three blocks, of fp8 twice as many; so many groups that the last one is nearly full.
static struct division divide_for_groups(int64_t batches, int64_t keys, int64_t head_v, bool fp8)
{
    struct division d = {.batches = batches, .warps = 4, .shares = 1, .groups = true, .fp8 = fp8};
    const int64_t tiles = (keys + STEP - 1) / STEP, most = (head_v <= 64 ? 8 : 4) * (fp8 ? 2 : 1);
    const int64_t groups = (tiles + most - 1) / most;
    enum { MANY = 128 };
    d.keys = (int)((tiles + groups - 1) / groups) * STEP;
    d.direct = fp8 && groups == 1;
    d.beside = d.keys <= 64 && head_v <= 64 ? 4 : d.keys <= MANY && head_v <= 64 ? 3 : 2;
    d.beside += d.direct && head_v <= 64 && d.keys > MANY;
    return d;
}

// Keys together: 64, or so many more that the last group is nearly full and registers do for other
// blocks. Warps: few where blocks are few; else so that few rows are missing and keys are read seldom.
static struct division divide(const struct mgx_plan_offer *c, int64_t rows, int64_t keys,
                              int64_t head, int64_t head_v, bool fp8)
{
    const int units = gpu_machine(c->machine)->device->properties.units;
    const bool wide = c->out->type == MGX_FLOAT && !fp8;
    struct division d = {.batches = 1, .warps = 2, .shares = 1, .beside = 1, .fp8 = fp8};
    for (int i = 0; i < c->out->rank - 2; i++)
        d.batches *= c->out->lens[i];
    if (!wide && gpu_machine(c->machine)->device->properties.version == 90 && head % 64 == 0 &&
        head_v % 64 == 0 && d.batches * ((rows + 63) / 64) * 2 > units)
        return divide_for_groups(d.batches, keys, head_v, fp8);
    const int64_t tiles = (keys + STEP - 1) / STEP, high = (rows + STEP - 1) / STEP;
    const bool many = !wide && head_v <= 64 && tiles > (fp8 ? 16 : 8);
    const int64_t most = fp8 ? (head_v <= 64 ? 16 : 8) : many ? 8 : 4;
    const int64_t groups = (tiles + most - 1) / most;
    d.keys = (int)((tiles + groups - 1) / groups) * STEP;
    if (wide)
        d.keys = head + head_v > MOST_HEAD ? 32 : 64;
    if (wide && high > 2)
        d.warps = 4; // bringing a block of keys takes longer than its products
    if (d.batches * ((high + 3) / 4) < 2 * (int64_t)units) {
        if (wide)
            share_floats(&d, c, high, keys, head, head_v);
        else if (d.batches * high <= 4 * (int64_t)units)
            share(&d, c, keys, head, head_v);
        return d;
    }
    int64_t least = INT64_MAX;
    for (int warps = 4; warps <= (wide ? 4 : 7); warps++) {
        const int64_t cost = (high + warps - 1) / warps * (warps + 1); // 1: what reading keys costs
        if (cost < least)
            d.warps = warps;
        least = cost < least ? cost : least;
    }
    if (many && !fp8) // else registers suffice as they are
        d.beside = (groups == 2 ? 16 : 12) / d.warps;
    return d;
}

// Fewer keys together where a card has little shared memory.
static void fit(struct division *d, const struct mgx_plan_offer *c, int64_t keys, int64_t head,
                int64_t head_v)
{
    const size_t most = gpu_machine(c->machine)->device->properties.shared_bytes;
    const enum mgx_type type = type_of(c, d);
    while ((d->shared = shared_bytes(type, d, keys, head, head_v)) > most && type != MGX_FLOAT &&
           d->keys > STEP)
        d->keys -= STEP;
}

// On AMD's cards: a wave for 16 rows, as many keys as leave room in shared memory for two blocks.
static struct division divide_for_waves(const struct mgx_plan_offer *c,
                                        const struct gpu_units *units, int64_t rows, int64_t keys,
                                        int64_t head, int64_t head_v)
{
    const int64_t room = (int64_t)gpu_machine(c->machine)->device->properties.shared_bytes / 2;
    const int64_t bytes = (int64_t)mgx_type_size(c->out->type), pad = 16;
    const int64_t high = (rows + STEP - 1) / STEP, tiles = (keys + STEP - 1) / STEP;
    struct division d = {.batches = 1, .shares = 1, .amd = units};
    for (int i = 0; i < c->out->rank - 2; i++)
        d.batches *= c->out->lens[i];
    d.warps = high < 4 ? (int)high : 4;
    const int64_t most =
        units->wave == 32 && head + head_v > 64 ? 2 : 4; // as registers suffice for
    d.keys = (int)(tiles < most ? tiles : most) * STEP;
    while (d.keys > STEP && d.keys * (head * bytes + pad) + head_v * (d.keys * bytes + pad) > room)
        d.keys -= STEP;
    return d;
}

// --- text ---

// Its last rounding, and what cuts it off before, are left to what stores pairs.
static bool is_cut(const struct mgx_ins *ins)
{
    return ins && mgx_source_end(ins) == MGX_END_CUT;
}

// The number by which an element-wise instruction of the group, or its body, multiplies `value` and does nothing
// else; 0: it does something else. `cut`: it may be rounded to fp8 behind that.
static double factor_of(const struct mgx_plan_offer *c, const struct mgx_ins *ins,
                        const struct mgx_ins *value, bool cut)
{
    const bool body = ins->op == &mgx_op_pointwise;
    const struct mgx_ins *x = body ? mgx_module_result(ins->mod[0], 0) : ins;
    double factor = 0;
    if (cut && mgx_source_end(ins) == MGX_END_CUT)
        x = x->in[0]->in[0];
    if (x->op != &mgx_op_mul)
        return 0;
    for (int i = 0; i < 2; i++) {
        const struct mgx_ins *in[2] = {x->in[i], x->in[1 - i]};
        for (int k = 0; k < 2 && body; k++)
            in[k] = mgx_parameter_index(in[k]) >= 0 ? ins->in[mgx_parameter_index(in[k])] : in[k];
        const int input = mgx_parameter_index(in[1]);
        const struct mgx_ins *number = input >= 0 ? c->ins->in[input] : in[1];
        if (in[0] == value && mgx_splat_value(number, &factor) && factor > 0 && factor < 1e30)
            return factor;
    }
    return 0;
}

// What all scores, and all weights, are multiplied by has its place elsewhere: those instructions are left out.
static void leave_factors(struct mgx_str *out, const struct mgx_plan_offer *c,
                          struct gpu_attention *a)
{
    const double score = a->between ? factor_of(c, a->between, a->scores, false) : 0;
    const double weight = a->narrow ? factor_of(c, a->narrow, a->softmax, true) : 0;
    mgx_str_put(out, "#define SCORE_FACTOR ");
    gpu_emit_real(out, score ? (float)score : 1);
    mgx_str_put(out, "\n#define WEIGHT_FACTOR ");
    gpu_emit_real(out, weight ? (float)weight : 1);
    mgx_str_put(out, "\n");
    if (score) {
        a->between = NULL;
        a->extra_count = 0;
    }
    a->bare = weight > 0;
}

// The functions of f, g and h, and what f reads.
static const char *emit_between(struct mgx_str *out, const struct mgx_plan_offer *c,
                                const struct gpu_attention *a)
{
    const struct gpu_function all[] = {
        {.name = "body", .ins = a->between},
        {.name = "narrow_body",
         .ins = a->bare ? NULL : a->narrow,
         .stored = is_cut(a->narrow),
         .cut = true},
        {.name = "after_body", .ins = a->after, .stored = is_cut(a->after), .cut = true}};
    const bool any = a->between || (a->narrow && !a->bare) || a->after;
    const char *why = any ? gpu_emit_functions(out, c, all, MGX_COUNT(all)) : NULL;
    if (!why)
        gpu_attention_between(out, c, a, 0);
    return why;
}

// Two results of a function of one value, beside each other: `pair`, which `make` makes of floats.
struct pair {
    const char *name, *type, *make, *body;
    const struct mgx_ins *ins, *value; // NULL: the value itself
};

static bool emit_pair(struct mgx_str *out, const struct mgx_plan_offer *c, const struct pair *p)
{
    mgx_str_printf(out, "FUNCTION float %s_one(float s)\n{\n", p->name);
    if (p->ins && !gpu_attention_numbers(out, c, p->ins, p->value, 0))
        return false;
    if (p->ins)
        gpu_emit_call(out, p->body, p->ins->shape.type, p->ins->in_count);
    mgx_str_printf(out,
                   "    return %s;\n}\nFUNCTION %s %s_pair(float x, float y)\n{\n"
                   "    x = %s_one(x), y = %s_one(y);\n    return %s;\n}\n",
                   p->ins ? "y" : "s", p->type, p->name, p->name, p->name, p->make);
    return true;
}

static const char *two_of(enum mgx_type type)
{
    return type == MGX_FP8E4M3FN ? "two_e4m3fn(x, y)"
           : type == MGX_FP8E5M2 ? "two_e5m2(x, y)"
           : type == MGX_HALF    ? "pair_half(x, y)"
           : type == MGX_BF16    ? "pair_bf16(x, y)"
                                 : "BITS_OF_FLOAT(x) | (u64)BITS_OF_FLOAT(y) << 32";
}

// How operands lie and results leave, and of fp8 what rounds the weights.
static bool emit_ends(struct mgx_str *out, const struct mgx_plan_offer *c,
                      const struct gpu_attention *a, bool direct)
{
    static const char *const words[] = {[1] = "u8", [2] = "u16", [4] = "u32", [8] = "u64"};
    const size_t size = mgx_type_size(c->out->type);
    const bool fp8 = a->narrow;
    mgx_str_printf(out,
                   "#define FP8 %d\n#define DIRECT %d\n#define ELEMENT %s\n#define OUT %s\n"
                   "#define PAIR %s\n",
                   fp8, direct, fp8 ? "u8" : "u16", words[size], words[2 * size]);
    mgx_str_printf(out, "#define E5M2_Q %d\n#define E5M2_K %d\n#define E5M2_V %d\n",
                   c->in[a->q].type == MGX_FP8E5M2, c->in[a->k].type == MGX_FP8E5M2,
                   c->in[a->v].type == MGX_FP8E5M2);
    const struct pair weights = {"weight",
                                 "u32",
                                 !fp8 ? two_of(c->out->type)
                                 : a->narrow->shape.type == MGX_FP8E5M2
                                     ? "halves_e5m2(two_e5m2(x, y))"
                                     : "halves_e4m3fn(two_e4m3fn(x, y))",
                                 "narrow_body",
                                 a->bare ? NULL : a->narrow,
                                 a->softmax};
    const struct pair results = {"result",     "PAIR",   two_of(c->out->type),
                                 "after_body", a->after, a->weigh};
    return emit_pair(out, c, &weights) && emit_pair(out, c, &results);
}

// What the card's units multiply by, before the kernel.
static void emit_units(struct mgx_str *out, const struct division *d, enum mgx_type type, bool tf32)
{
    const bool bf16 = type == MGX_BF16;
    const char *name = bf16 ? "bf16" : "f16";
    if (d->amd) {
        gpu_emit_units(out, d->amd, 1);
        return;
    }
    GPU_PUT(out, lines);
    GPU_PUT(out, tiles);
    mgx_str_printf(out,
                   "#define WARPGROUPS %d\n#define SHARES %d\n#define PER_SM %d\n"
                   "#define PIECES %d\n#define MMA_TYPE \"%s\"\n",
                   d->groups, d->shares, d->beside, tf32 ? 1 : 2, name);
    if (!d->groups)
        return;
    gpu_emit_multiply(
        out, &(struct gpu_multiply){.name = "score_step", .type = name, .columns = d->keys});
    gpu_emit_multiply(
        out,
        &(struct gpu_multiply){
            .name = "weigh_step", .type = name, .columns = 64, .registers = true, .turned = true});
}

static void emit_floats(struct mgx_str *out, bool ranged)
{
    mgx_str_printf(out, "#define RANGED %d\n#define WIDTH (WARPS * 32)\n", ranged);
    GPU_PUT(out, ordered_bits);
    GPU_PUT(out, extremes);
    GPU_PUT(out, attention_float);
}

static const char *emit(struct mgx_str *out, const struct mgx_plan_offer *c,
                        struct gpu_attention *a, const struct division *d, bool ranged)
{
    const struct mgx_shape *q = &c->in[a->q], *k = &c->in[a->k], *v = &c->in[a->v];
    const int r = q->rank;
    mgx_str_printf(out,
                   "#define ROWS %" PRId64 "\n#define KEYS %" PRId64 "\n#define HEAD %" PRId64
                   "\n#define HEAD_V %" PRId64 "\n#define WARPS %d\n#define KEYS_AT_ONCE %d\n",
                   q->lens[r - 2], k->lens[r - 1], q->lens[r - 1], v->lens[r - 1], d->warps,
                   d->keys);
    const char *guard = a->guarded ? "(total) == 0 ? 0.0f : " : "";
    mgx_str_printf(out, "#define PART_OF(x, total) (%s(x) / (total))\n", guard);
    emit_units(out, d, type_of(c, d), gpu_machine(c->machine)->tf32);
    gpu_attention_operand(out, 'Q', q, r - 2, r - 1);
    gpu_attention_operand(out, 'K', k, r - 1, r - 2);
    gpu_attention_operand(out, 'V', v, r - 2, r - 1);
    gpu_attention_operand(out, 'C', c->out, r - 2, r - 1);
    if (!d->amd && type_of(c, d) != MGX_FLOAT)
        leave_factors(out, c, a);
    const char *why = emit_between(out, c, a);
    if (why)
        return why;
    if (d->amd) {
        GPU_PUT(out, attention_units);
        return NULL;
    }
    if (type_of(c, d) == MGX_FLOAT) {
        emit_floats(out, ranged);
        return NULL;
    }
    if (!emit_ends(out, c, a, d->direct))
        return "an end of several values";
    GPU_PUT(out, attention);
    return NULL;
}

static const char *refuses(const struct mgx_plan_offer *c, struct gpu_attention *a)
{
    if (c->copy_only || c->dynamic ||
        (!mgx_is_group(c->ins, "attention") && !mgx_is_group(c->ins, "attention_bytes")))
        return "not an attention";
    if (!read_group(c, a) || (a->narrow && !is_fp8(a->scores)))
        return "a group that is not an attention of floats, or between fp8";
    if (!gpu_attention_supports(gpu_machine(c->machine)->device, a->scores, a->weigh))
        return "heads or types that this card's matrix units do not take";
    for (int e = 0; e < a->extra_count; e++)
        if (gpu_type_class(c->in[a->extra[e]].type) == GPU_NONE)
            return "a type that kernels do not compute";
    return NULL;
}

static const char *describe(const struct mgx_plan_offer *c, const struct gpu_units *units)
{
    struct mgx_str text = {0};
    mgx_str_printf(&text, "one pass, matrix units (%s)",
                   units->instruction ? units->instruction : units->name);
    const char *detail = mgx_arena_strdup(c->arena, mgx_str_text(&text));
    mgx_str_fini(&text);
    return detail;
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct gpu_attention a;
    struct mgx_str text = {0};
    const char *why = refuses(c, &a);
    if (why)
        return gpu_decline(c, why);
    const struct mgx_shape *q = &c->in[a.q];
    const int64_t rows = q->lens[q->rank - 2], keys = c->in[a.k].lens[q->rank - 1];
    const int64_t head = q->lens[q->rank - 1], head_v = c->out->lens[q->rank - 1];
    const bool fp8 = is_fp8(a.scores);
    const struct gpu_units *units =
        gpu_units_find(gpu_machine(c->machine)->device, fp8 ? MGX_HALF : q->type);
    struct division d = units->instruction ? divide_for_waves(c, units, rows, keys, head, head_v)
                                           : divide(c, rows, keys, head, head_v, fp8);
    if (!d.amd)
        fit(&d, c, keys, head, head_v);
    if (d.batches > 65535)
        return gpu_decline(c, "larger than the grid");
    const int together = d.warps / d.shares * STEP; // rows of a block
    const struct gpu_launch how = {
        .grid = {(unsigned)((rows + together - 1) / together), (unsigned)d.batches, 1},
        .block = {(unsigned)(d.warps * units->wave), 1, 1},
        .shared = d.shared};
    const int64_t blocks = (int64_t)how.grid[0] * how.grid[1];
    const bool ranged = !d.amd && gpu_is_ranged(c) && blocks <= GPU_RANGES_MOST;
    why = emit(&text, c, &a, &d, ranged);
    if (why) {
        mgx_str_fini(&text);
        return gpu_decline(c, why);
    }
    int in[GPU_CALL_INPUTS] = {a.q, a.k, a.v};
    memcpy(in + 3, a.extra, (size_t)a.extra_count * sizeof *in);
    c->flops = 2.0 * (double)d.batches * (double)rows * (double)keys * (double)(head + head_v);
    c->detail = describe(c, units);
    const enum mgx_plan_answer answer = gpu_take(c, &text, &how, in, 3 + a.extra_count);
    if (answer == MGX_PLAN_TAKEN && ranged)
        gpu_leave_ranges(c, blocks);
    return answer;
}

const struct mgx_plan_kernel gpu_kernel_attention = {
    .name = "gpu::attention", .prepare = prepare, .run = gpu_run_call};
