// SPDX-License-Identifier: MIT
// Depthwise convolutions of images that lie channels last, by constants, with the element-wise
// instruction that reads them: kernel/depthwise.gpu with sizes and tail written for the instruction.
//
//     y[n, c, o] = sum over taps of x[n, c, o * stride + t * dilation - begin] * w[c, 0, t]
//
// Sums are float, those of bytes whole numbers: kernel/depthwise_bytes.gpu, where four channels are a
// word. Cost: an input row is read once for every row of taps and every few places.
#include <inttypes.h>
#include <stdio.h>

#include "op/op.h"
#include "op/reference/window.h"
#include "pass/engine/constant.h"
#include "targets/gpu/emit/move.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/emit/wide.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/ranged.h"
#include "targets/gpu/lower/tail.h"

enum { MOST_LANES = 16, MOST_TAPS = 11, MOST_ALL_TAPS = 49, MOST_WIDE = 4, MOST_SPAN = 9 };
enum { WORD = 4, MOST_TALL = 2, LANES_OF_WORDS = 32 };

struct depthwise {
    struct gpu_tail tail;
    struct mgx_window window[2]; // height, width
    int v, wide, tall, lanes, groups;
    int64_t count; // groups of places
    bool bytes;    // sums of a few products are exact in a float
    bool words;    // four channels are multiplied as a word
    bool ragged;   // words, of which the last one of a pixel begins within another
    int zero;      // goes off the weights; 0: nothing does
};

static const char *read(const struct mgx_plan_offer *c, struct depthwise *d)
{
    if ((!gpu_tail_read(c, &mgx_op_convolution, &d->tail) &&
         !gpu_tail_read(c, &mgx_op_quant_convolution, &d->tail)) ||
        d->tail.ins->in_count != 2)
        return "not a convolution";
    const struct mgx_ins *ins = d->tail.ins;
    const struct mgx_shape *x = &c->in[d->tail.operand[0]], *w = &c->in[d->tail.operand[1]];
    const int64_t group = mgx_ins_int(ins, "group");
    if (x->rank != 4 || group < 2 || x->lens[1] != group || c->out->lens[1] != group)
        return "a convolution that is not depthwise, or not of images";
    d->bytes = ins->shape.type == MGX_INT32 && mgx_type_is_byte(x->type) &&
               (mgx_type_is_byte(w->type) || w->type == MGX_INT16); // bytes less a zero point
    if (!d->bytes &&
        (gpu_type_class(x->type) != GPU_REAL || x->type == MGX_DOUBLE || w->type != x->type ||
         ins->shape.type == MGX_DOUBLE || gpu_type_class(ins->shape.type) != GPU_REAL))
        return "a convolution that is not summed in float";
    if (!c->constant[d->tail.operand[1]])
        return "weights that are computed";
    const struct mgx_window_attr a = gpu_tail_window(&d->tail);
    for (int i = 0; i < 2; i++) {
        d->window[i] = mgx_window_at(&a, i, x->lens[i + 2], w->lens[i + 2], c->out->lens[i + 2]);
        if (d->window[i].kernel > MOST_TAPS || d->window[i].dilation > MOST_TAPS ||
            d->window[i].stride > MOST_TAPS)
            return "windows that are too wide";
    }
    return d->window[0].kernel * d->window[1].kernel > MOST_ALL_TAPS ? "windows that are too wide"
                                                                     : NULL;
}

// Places a thread: many where threads are many all the same, and windows overlap.
static int wide_of(const struct mgx_plan_offer *c, const struct depthwise *d)
{
    enum { ENOUGH = 1 << 15 };
    const int64_t threads = mgx_shape_elements(c->out) / d->v;
    int wide = d->window[1].kernel * d->window[1].dilation > d->window[1].stride ? MOST_WIDE : 1;
    while (wide > 1 && (threads / wide < ENOUGH || c->out->lens[3] < wide ||
                        (wide - 1) * d->window[1].stride + d->window[1].kernel > MOST_SPAN))
        wide /= 2;
    return wide;
}

// Lanes that divide the channels evenly, or nearly so.
static int lanes_of(int64_t chunks, int most)
{
    int lanes = chunks < most ? (int)chunks : most;
    while (chunks % lanes != 0)
        lanes--;
    return lanes < most / 4 && chunks > lanes ? most / 2 : lanes;
}

// Rows of places a thread: a row of pixels is turned once for all of them.
static int tall_of(const struct mgx_plan_offer *c, const struct depthwise *d)
{
    enum { ENOUGH = 1 << 15 };
    const int64_t threads = mgx_shape_elements(c->out) / d->v / d->wide;
    const struct mgx_window *w = &d->window[0];
    int tall = d->words && w->kernel * w->dilation > w->stride ? MOST_TALL : 1;
    while (tall > 1 && (threads / tall < ENOUGH || c->out->lens[2] < tall))
        tall /= 2;
    return tall;
}

static int64_t up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

// Bytes of channels that lie side by side, though pixels have no whole number of words.
static bool is_ragged(const struct mgx_plan_offer *c, const struct depthwise *d)
{
    const struct mgx_shape *x = &c->in[d->tail.operand[0]];
    return d->bytes && d->v < WORD && d->window[1].dilation == 1 && x->lens[1] >= WORD &&
           mgx_type_is_byte(c->in[d->tail.operand[1]].type) && x->strides[1] == 1 &&
           c->out->strides[1] == 1;
}

static const char *divide(const struct mgx_plan_offer *c, struct depthwise *d)
{
    const struct mgx_shape *x = &c->in[d->tail.operand[0]];
    if (x->strides[1] != 1 || c->out->strides[1] != 1)
        return "channels that do not lie side by side";
    d->v = gpu_move_vector(c->out, 1, x, 1, d->bytes ? WORD : 16 / (int64_t)mgx_type_size(x->type));
    if ((d->ragged = is_ragged(c, d)))
        d->v = WORD;
    if (d->v * (int)mgx_type_size(x->type) < 4)
        return "channels that do not lie side by side";
    d->words =
        d->bytes && d->window[1].dilation == 1 && mgx_type_is_byte(c->in[d->tail.operand[1]].type);
    if (d->tail.pad && !d->bytes)
        return "an image that is padded by itself";
    d->wide = wide_of(c, d);
    d->tall = tall_of(c, d);
    d->lanes = lanes_of(up(c->out->lens[1], d->v), d->words ? LANES_OF_WORDS : MOST_LANES);
    d->groups = GPU_THREADS / d->lanes;
    d->count = c->out->lens[0] * up(c->out->lens[2], d->tall) * up(c->out->lens[3], d->wide);
    return d->count >= INT32_MAX / 2 || up(c->out->lens[1], d->v) / d->lanes > 65000
               ? "larger than the grid"
               : NULL;
}

// Do both read the same image, with the same bytes around it?
static bool reads_alike(const struct mgx_plan_offer *c, const struct gpu_tail *t,
                        const struct mgx_ins *sums)
{
    const struct mgx_ins *image = sums->in[0], *own = c->ins->in[t->operand[0]];
    if (!t->pad)
        return image == own;
    return image->op == &mgx_op_pad && image->in_count == 1 && image->in[0] == own &&
           mgx_attr_equal(image->op, image->attr, t->pad->attr);
}

// Sums of the same windows times the weights' zero point, which the tail takes off: it goes off the weights
// instead, where those are words.
static void find_zero(const struct mgx_plan_offer *c, struct depthwise *d)
{
    struct gpu_tail *t = &d->tail;
    const enum mgx_type type = c->in[t->operand[1]].type;
    for (int e = 0; e < t->extra_count && d->words && t->last && !d->zero; e++) {
        const struct mgx_ins *sums = c->ins->in[t->extra[e]];
        double zero;
        if (sums->op != &mgx_op_quant_convolution || sums->in_count != 2 ||
            !reads_alike(c, t, sums) || sums->in[1]->shape.type != type ||
            !mgx_shape_same_lens(&sums->in[1]->shape, &c->in[t->operand[1]]) ||
            !mgx_attr_equal(sums->op, sums->attr, t->ins->attr) ||
            !mgx_splat_value(sums->in[1], &zero) || (type == MGX_INT8 && zero == -128) ||
            !gpu_takes_off(t->last, t->place, e < t->place ? e : e + 1))
            continue;
        d->zero = (int)zero;
        t->off = d->zero ? e + 1 : 0;
    }
}

static void emit_finish(struct mgx_str *out, const struct mgx_plan_offer *c,
                        const struct depthwise *d)
{
    const struct gpu_tail *t = &d->tail;
    struct mgx_str params = {0}, args = {0}, kernel = {0}, numbers = {0};
    for (int e = 0; e < t->extra_count; e++) {
        const enum mgx_type type = c->in[t->extra[e]].type;
        const bool number = gpu_tail_is_number(c, t, e);
        struct mgx_str place = {0};
        mgx_str_printf(&place, ", const GLOBAL %s *%s", gpu_type_memory(type),
                       c->constant[t->extra[e]] ? "RESTRICT " : "");
        mgx_str_printf(&kernel, "%s%s%d", mgx_str_text(&place), number ? "far" : "e", e);
        if (number) {
            char far[16];
            snprintf(far, sizeof far, "far%d", e);
            mgx_str_printf(&params, ", %s e%d", gpu_type_value(type), e);
            mgx_str_printf(&numbers, " const %s e%d = ", gpu_type_value(type), e);
            gpu_emit_load(&numbers, type, far, "0");
            mgx_str_put(&numbers, ";");
        } else {
            mgx_str_printf(&params, "%se%d", mgx_str_text(&place), e);
        }
        mgx_str_printf(&args, ", e%d", e);
        mgx_str_fini(&place);
    }
    if (t->ranged) {
        mgx_str_put(&params, GPU_RANGE_PARAMS);
        mgx_str_put(&args, ", low, high");
        mgx_str_put(&kernel, ", GLOBAL float *ranges");
    }
    gpu_emit_range_macros(out, t->ranged ? GPU_THREADS : 0);
    mgx_str_printf(out,
                   "#define PARAMS %s\n#define ARGS %s\n#define KERNEL_PARAMS %s\n"
                   "#define NUMBERS()%s\n",
                   mgx_str_text(&params), mgx_str_text(&args), mgx_str_text(&kernel),
                   mgx_str_text(&numbers));
    mgx_str_fini(&kernel);
    mgx_str_fini(&numbers);
    mgx_str_printf(out,
                   "FUNCTION void finish(GLOBAL %s *out%s, int o0, int o1, int o2, int o3, "
                   "const float *sum)\n{\n    const i64 at0 = ",
                   gpu_type_memory(c->out->type), mgx_str_text(&params));
    gpu_emit_sum(out, c->out, 0, 4, "o");
    mgx_str_put(out, ";\n");
    gpu_emit_tail(out, c, t, 1, d->v);
    mgx_str_printf(out,
                   "}\n#define FINISH(image, channel, row, column, sums) finish(out%s, image, "
                   "channel, row, column, sums)\n",
                   mgx_str_text(&args));
    mgx_str_fini(&params);
    mgx_str_fini(&args);
}

static void emit_windows(struct mgx_str *out, const struct mgx_plan_offer *c,
                         const struct depthwise *d)
{
    static const char *const names[] = {"H", "W"};
    for (int i = 0; i < 2; i++) {
        const struct mgx_window *w = &d->window[i];
        mgx_str_printf(out,
                       "#define TAPS_%s %" PRId64 "\n#define STEP_%s %" PRId64
                       "\n#define FAR_%s %" PRId64 "\n#define PAD_%s %" PRId64
                       "\n#define IN_%s %" PRId64 "\n#define OUT_%s %" PRId64 "\n",
                       names[i], w->kernel, names[i], w->stride, names[i], w->dilation, names[i],
                       w->begin, names[i], w->in, names[i], c->out->lens[i + 2]);
    }
}

static void emit_steps(struct mgx_str *out, const char *name, const struct mgx_shape *s)
{
    for (int i = 0; i < 4; i++)
        mgx_str_printf(out, "#define %s%d_STEP %" PRId64 "\n", name, i,
                       s->lens[i] > 1 ? s->strides[i] : 0);
}

// Do pixels begin at words?
static bool has_word_steps(const struct mgx_shape *x)
{
    bool words = true;
    for (int i = 0; i < x->rank; i++)
        words = words && (i == 1 || x->lens[i] == 1 || x->strides[i] % WORD == 0);
    return words;
}

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c, const struct depthwise *d)
{
    const struct mgx_shape *x = &c->in[d->tail.operand[0]];
    const struct gpu_chunk chunk = {"", gpu_type_memory(x->type), d->v,
                                    (int)mgx_type_size(x->type)};
    mgx_str_printf(out,
                   "#define V %d\n#define WIDE %d\n#define LANES %d\n#define GROUPS %d\n"
                   "#define CHANNELS %" PRId64 "\n#define TILES_W %" PRId64
                   "\n#define COUNT %" PRId64 "\n#define OUT_TYPE %s\n#define ELEMENT %s\n"
                   "#define TALL %d\n#define TILES_H %" PRId64 "\n#define WEIGHT %s\n",
                   d->v, d->wide, d->lanes, d->groups, c->out->lens[1],
                   up(c->out->lens[3], d->wide), d->count, gpu_type_memory(c->out->type),
                   chunk.element, d->tall, up(c->out->lens[2], d->tall),
                   gpu_type_memory(c->in[d->tail.operand[1]].type));
    emit_windows(out, c, d);
    emit_steps(out, "X", x);
    emit_steps(out, "W", &c->in[d->tail.operand[1]]);
    mgx_str_printf(out, "#define BESIDE %uu\n",
                   d->bytes ? (unsigned)(gpu_tail_beside(&d->tail) & 255) * 0x01010101u : 0);
    if (d->words) {
        mgx_str_printf(out, "#define A_SIGNED %d\n#define B_SIGNED %d\n", x->type == MGX_INT8,
                       d->zero || c->in[d->tail.operand[1]].type == MGX_INT8);
        mgx_str_printf(out, "#define ZERO %d\n#define IN_WORDS %d\n#define WORD_STEPS %d\n",
                       d->zero, !d->ragged, has_word_steps(x));
        emit_finish(out, c, d);
        GPU_PUT(out, dot4);
        GPU_PUT(out, depthwise_bytes);
        return;
    }
    mgx_str_printf(out, "union chunk {\n    wide%d w;\n    %s v[%d];\n%s};\n", d->v * chunk.bytes,
                   chunk.element, d->v, d->bytes ? "    u32 words[V / 4];\n" : "");
    mgx_str_printf(out, "#define WEIGHTS_WIDE %d\n#define WORDS %d\n", d->bytes, d->bytes);
    if (d->bytes)
        mgx_str_printf(out, "#define PIXEL(c, k) real_of_%s(c.words[k / 4], k %% 4)\n",
                       x->type == MGX_INT8 ? "i8" : "u8");
    else
        mgx_str_put(out, "#define PIXEL(c, k) WIDEN(c.v[k])\n");
    mgx_str_printf(out,
                   "#define LOAD(c, array, place) \\\n    if ((ADDRESS(array) & %d) == 0) \\\n"
                   "        c.w = *(const GLOBAL wide%d *)(array + (place)); \\\n    else \\\n"
                   "        for (int k = 0; k < V; k++) \\\n"
                   "            c.v[k] = array[(place) + k];\n#define WIDEN(x) ",
                   d->v * chunk.bytes - 1, d->v * chunk.bytes);
    gpu_emit_widened(out, x->type, "(x)");
    mgx_str_put(out, "\n");
    emit_finish(out, c, d);
    GPU_PUT(out, depthwise);
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct depthwise d = {.zero = 0};
    struct mgx_str text = {0};
    int in[GPU_CALL_INPUTS];
    const char *why = read(c, &d);
    if (!why)
        why = divide(c, &d);
    if (!why)
        why = gpu_emit_tail_body(&text, c, &d.tail);
    if (why) {
        mgx_str_fini(&text);
        return gpu_decline(c, why);
    }
    find_zero(c, &d);
    const int64_t lines = up(c->out->lens[1], d.v);
    const struct gpu_launch how = {.grid = {(unsigned)((d.count + d.groups - 1) / d.groups),
                                            (unsigned)((lines + d.lanes - 1) / d.lanes), 1},
                                   .block = {GPU_THREADS, 1, 1}};
    const int64_t blocks = (int64_t)how.grid[0] * how.grid[1];
    d.tail.near = true;
    d.tail.apart = d.ragged;
    d.tail.ranged = gpu_is_ranged(c) && blocks > 0 && blocks <= GPU_RANGES_MOST;
    d.tail.alone = d.tail.ranged && gpu_is_range_alone(c);
    emit(&text, c, &d);
    c->flops = 2.0 * (double)mgx_shape_elements(c->out) *
               (double)(d.window[0].kernel * d.window[1].kernel);
    c->detail = d.words      ? "four channels a word"
                : d.wide > 1 ? "several places a thread"
                             : "a place a thread";
    if (d.tail.off)
        c->skip_in[d.tail.extra[d.tail.off - 1]] = true;
    const enum mgx_plan_answer answer = gpu_take(c, &text, &how, in, gpu_tail_inputs(&d.tail, in));
    if (answer == MGX_PLAN_TAKEN && d.tail.ranged)
        gpu_leave_ranges(c, blocks);
    return answer;
}

const struct mgx_plan_kernel gpu_kernel_depthwise = {
    .name = "gpu::depthwise", .prepare = prepare, .run = gpu_run_call};
