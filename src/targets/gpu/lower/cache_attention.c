// SPDX-License-Identifier: MIT
// cache_attention on the card (kernel/cache_attention.gpu): a few new tokens before a long cache.
//
// Keys are dealt out to as many blocks as the card has multiprocessors, whatever their number turns
// out to be; what a block finds lies in the workspace until a second kernel joins it. NVIDIA's cards from
// sm_80 on do so with values of 16 bits on their matrix units (kernel/cache_units.gpu), and prompts, whose
// rows are blocks enough. Elsewhere more tokens than fit in a block's shared memory are products and a
// softmax (pass/rewrite_cache.c).
#include <assert.h>
#include <inttypes.h>

#include "base/size.h"
#include "op/op.h"
#include "op/rule/cache.h"
#include "targets/gpu/emit/move.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/cache.h"

enum { Q, K, V, ENDS, MORE };

struct division {
    int64_t group, rows; // heads that share one of keys, and the rows that they make of the tokens
    bool units;          // matrix units multiply
    int keys, stages, parts, threads;
    // With units: blocks of rows, and warps of a block that take other rows, or other keys.
    int64_t blocks;
    int w_rows, w_keys;
    size_t shared;
};

// --- what is taken ---

static size_t shared_of(const struct mgx_ins *ins, const struct division *d)
{
    const size_t bytes = mgx_type_size(ins->shape.type), pad = 16 / bytes;
    const size_t size = (size_t)ins->in[K]->shape.lens[3],
                 width = (size_t)ins->in[V]->shape.lens[3];
    return (size_t)d->stages * (size_t)d->keys * (size + width + 2 * pad) * bytes +
           (size_t)d->rows * (size + (size_t)d->keys + 3) * sizeof(float);
}

enum { LEAST_PARTS = 4, MOST_PARTS = 32, MOST_BLOCKS = 65535 };

// As many keys at a time as fit into what every kernel may declare; false: not even a few do.
static bool divide_plain(struct division *d, const struct gpu_device *device,
                         const struct mgx_ins *ins, int64_t heads)
{
    enum { SHARED = 46 << 10, MOST_ROWS = 64 };
    if (d->rows > MOST_ROWS)
        return false;
    d->stages = device->properties.version >= 80 ? 2 : 1;
    for (d->keys = 64; d->keys >= 8 && shared_of(ins, d) > SHARED; d->keys /= 2)
        ;
    const int64_t units = device->properties.units;
    d->parts = heads >= 4 * units
                   ? 1
                   : (int)mgx_min_i64(mgx_max_i64(units / heads, LEAST_PARTS), MOST_PARTS);
    d->threads = d->rows * d->keys <= 256 ? 128 : 256;
    d->blocks = 1;
    return d->keys >= 8;
}

// NVIDIA's units from sm_80 on: heads of whole steps that leave room for registers.
static bool has_units(const struct gpu_device *device, const struct mgx_ins *ins)
{
    enum { STEP = 16, MOST_HEAD = 128 };
    const int64_t size = ins->in[K]->shape.lens[3], width = ins->in[V]->shape.lens[3];
    return device->properties.version >= 80 && ins->shape.type != MGX_FLOAT && size % STEP == 0 &&
           width % STEP == 0 && size > 0 && width > 0 && size <= MOST_HEAD && width <= MOST_HEAD;
}

// 16 rows at most: warps deal out keys, else rows. Where there are few blocks keys are dealt out to
// several.
static bool divide_units(struct division *d, const struct gpu_device *device,
                         const struct mgx_ins *ins, int64_t heads)
{
    const int64_t size = ins->in[K]->shape.lens[3], width = ins->in[V]->shape.lens[3];
    const int64_t units = device->properties.units;
    d->units = true;
    d->keys = 64;
    d->stages = 2;
    d->threads = 128;
    d->w_rows = d->rows <= 16 ? 1 : 4;
    d->w_keys = 4 / d->w_rows;
    d->blocks = (d->rows + 16 * d->w_rows - 1) / (16 * d->w_rows);
    const int64_t all = heads * d->blocks;
    d->parts = 2 * all > units ? 1 : (int)mgx_min_i64(units / all, MOST_PARTS);
    if (d->blocks == 1 && d->parts < LEAST_PARTS && heads < 4 * units)
        d->parts = LEAST_PARTS;
    d->shared = 2 * (size_t)(16 * d->w_rows * (size + 8) + 2 * d->keys * (size + width + 16));
    return d->blocks * d->parts <= MOST_BLOCKS && d->shared <= device->properties.shared_bytes;
}

static bool divide(struct division *d, const struct gpu_device *device, const struct mgx_ins *ins)
{
    const struct mgx_shape *q = &ins->in[Q]->shape, *k = &ins->in[K]->shape;
    const int64_t heads = k->lens[1] * q->lens[0];
    *d = (struct division){.group = k->lens[1] ? q->lens[1] / k->lens[1] : 0};
    d->rows = d->group * q->lens[2];
    if (d->rows < 1 || d->rows > INT32_MAX || heads < 1 || k->lens[1] > 65535 || q->lens[0] > 65535)
        return false;
    return (has_units(device, ins) && divide_units(d, device, ins, heads)) ||
           divide_plain(d, device, ins, heads);
}

static bool takes(const struct gpu_device *d, const struct mgx_ins *ins)
{
    const struct mgx_cache_attention *a = ins->attr;
    struct division division;
    return !a->whole && gpu_cache_computes(ins->shape.type) &&
           gpu_cache_reads_ends(&ins->in[ENDS]->shape) && mgx_shape_elements(&ins->shape) &&
           ins->in[K]->shape.lens[2] <= INT32_MAX && divide(&division, d, ins);
}

bool gpu_cache_supports(const struct gpu_device *d, const struct mgx_ins *ins)
{
    const struct mgx_shape *s = &ins->shape;
    if (ins->op == &mgx_op_cache_append)
        return gpu_word(mgx_type_size(s->type)) && gpu_cache_reads_ends(&ins->in[1]->shape);
    if (ins->op == &mgx_op_rotary_embedding)
        return gpu_cache_computes(s->type) && gpu_cache_reads_ends(&ins->in[3]->shape);
    return takes(d, ins);
}

static const char *refuses(const struct mgx_plan_offer *c)
{
    if (c->copy_only || c->dynamic || c->ins->op != &mgx_op_cache_attention)
        return "not attention to a cache";
    if (!mgx_shape_is_static(c->out) || !takes(gpu_machine(c->machine)->device, c->ins))
        return "tokens or heads too many for a block, or of another type";
    return mgx_shape_is_standard(&c->in[ENDS]) ? NULL : "ends that do not lie in order";
}

// --- text ---

// Elements that a load may bring: both caches' rows and heads begin at multiples of them.
static int wide_of(const struct mgx_plan_offer *c)
{
    int v = 16 / (int)mgx_type_size(c->out->type);
    for (int i = K; i <= V; i++) {
        const struct mgx_shape *s = &c->in[i];
        while (v > 1 &&
               (s->lens[3] % v || s->strides[0] % v || s->strides[1] % v || s->strides[2] % v))
            v /= 2;
    }
    return v;
}

// The type that moves so many bytes at once; of two or one an element's own.
static void emit_width(struct mgx_str *out, const char *name, int bytes)
{
    if (bytes >= 4)
        mgx_str_printf(out, "#define %s wide%d\n", name, bytes);
    else
        mgx_str_printf(out, "#define %s A_TYPE\n", name);
}

static void emit_sizes(struct mgx_str *out, const struct mgx_plan_offer *c,
                       const struct division *d)
{
    const struct mgx_shape *q = &c->in[Q];
    const int bytes = (int)mgx_type_size(q->type), wide = wide_of(c);
    mgx_str_printf(out,
                   "#define BATCH %" PRId64 "\n#define HEADS %" PRId64 "\n#define GROUP %" PRId64
                   "\n#define TOKENS %" PRId64 "\n#define C_ROWS %" PRId64 "\n#define SIZE %" PRId64
                   "\n#define WIDTH %" PRId64 "\n#define KEYS %d\n#define PARTS %d\n"
                   "#define BLOCK_THREADS %d\n#define STAGES %d\n#define WIDE %d\n#define PAD %d\n"
                   "#define COPIED %d\n#define PAIR %d\n",
                   q->lens[0], q->lens[1], d->group, q->lens[2], d->rows, q->lens[3],
                   c->in[V].lens[3], d->keys, d->parts, d->threads, d->stages, wide, wide,
                   wide * bytes >= 4, wide > 1 ? 2 : 1);
    emit_width(out, "WIDE_TYPE", wide * bytes);
    emit_width(out, "PAIR_TYPE", wide > 1 ? 2 * bytes : bytes);
    if (d->units)
        mgx_str_printf(out,
                       "#define W_ROWS %d\n#define W_KEYS %d\n#define DIRECT %d\n"
                       "#define BLOCKS_OF_ROWS %" PRId64
                       "\n#define MULTIPROCESSORS %d\n#define MMA_TYPE \"%s\"\n",
                       d->w_rows, d->w_keys, d->parts == 1, d->blocks,
                       gpu_machine(c->machine)->device->properties.units,
                       q->type == MGX_HALF ? "f16" : "bf16");
    mgx_str_printf(out, "#define E_TYPE %s\n", gpu_type_memory(c->in[ENDS].type));
}

static void emit_function(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    const struct mgx_cache_attention *a = c->ins->attr;
    mgx_str_put(out, "#define SCALE ");
    gpu_emit_real(out, a->scale);
    mgx_str_printf(out, "\n#define CAPPED %d\n#define CAP ", a->cap > 0);
    gpu_emit_real(out, a->cap);
    mgx_str_printf(out, "\n#define WINDOW %" PRId64 "\n#define BIASED %d\n#define SUNK %d\n",
                   a->window, a->bias, a->sink);
    if (c->out->type != MGX_FLOAT && gpu_machine(c->machine)->device->properties.version)
        mgx_str_put(out, GPU_NARROW_RESULTS "#define exp(x) narrow_exp(x)\n");
}

// One entry, head or token may serve all.
static void emit_bias(struct mgx_str *out, const struct mgx_shape *given)
{
    struct mgx_shape s = *given;
    for (int i = 0; i < 3; i++)
        s.strides[i] = s.lens[i] == 1 ? 0 : s.strides[i];
    gpu_emit_cache_row(out, "BIAS", &s);
}

// What comes before is read instead: queries, keys and values as they were before they were turned.
static void emit_fused(struct mgx_str *out, const struct gpu_cache_before *f)
{
    mgx_str_printf(out, "#define FUSED %d\n#define TURNED %d\n", f != NULL, f && f->cosines);
    if (!f)
        return;
    gpu_emit_cache_row(out, "NEW_K", &f->k);
    gpu_emit_cache_row(out, "NEW_V", &f->v);
    if (f->cosines)
        gpu_emit_cache_turn(out, f->cosines, f->sines, f->at, f->tokens, f->interleaved);
}

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c, const struct division *d,
                 const struct gpu_cache_before *f)
{
    const struct mgx_cache_attention *a = c->ins->attr;
    gpu_emit_cache_type(out, c->out->type);
    emit_sizes(out, c, d);
    emit_function(out, c);
    gpu_emit_cache_row(out, "Q", f ? &f->q : &c->in[Q]);
    gpu_emit_cache_row(out, "Y", c->out);
    if (a->bias)
        emit_bias(out, &c->in[MORE]);
    emit_fused(out, f);
    GPU_PUT(out, cache_common);
    if (d->units)
        GPU_PUT(out, cache_units);
    else
        GPU_PUT(out, cache_attention);
}

bool gpu_cache_attention_emit(struct mgx_str *out, const struct mgx_plan_offer *c,
                              const struct gpu_cache_before *before)
{
    struct division d;
    if (!divide(&d, gpu_machine(c->machine)->device, c->ins) || d.blocks > 1)
        return false;
    emit(out, c, &d, before);
    return true;
}

// --- the offer ---

static void describe(struct gpu_cached *g, const struct mgx_plan_offer *c)
{
    const struct mgx_cache_attention *a = c->ins->attr;
    g->keys = (int)c->in[K].lens[2];
    g->bias = a->bias ? MORE : -1;
    g->sink = a->sink ? MORE + a->bias : -1;
    gpu_cache_strides(&c->in[K], g->k);
    gpu_cache_strides(&c->in[V], g->v);
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    const char *why = refuses(c);
    struct division d;
    struct mgx_str text = {0};
    if (why || !divide(&d, gpu_machine(c->machine)->device, c->ins))
        return gpu_decline(c, why);
    if (gpu_cache_wishes(c, ~(1u << ENDS)))
        return mgx_plan_refuse(c);
    if (c->out->strides[3] != 1 && c->out->lens[3] > 1)
        return gpu_decline(c, "heads of the result are not contiguous");
    struct gpu_cached *g = MGX_NEW(c->arena, struct gpu_cached);
    if (!g)
        return mgx_plan_no_memory(c);
    describe(g, c);
    emit(&text, c, &d, NULL);
    const int64_t rows = mgx_shape_elements(c->out) / c->out->lens[3];
    if (!(d.units && d.parts == 1))
        c->workspace =
            mgx_align64((size_t)(rows * d.parts * (c->out->lens[3] + 2)) * sizeof(float));
    g->direct = d.units && d.parts == 1;
    c->detail = !d.units       ? "keys in parts"
                : d.parts == 1 ? "matrix units, rows in blocks"
                               : "matrix units, keys in parts";
    c->flops = 2.0 * (double)rows * (double)g->keys * (double)(c->in[Q].lens[3] + c->out->lens[3]);
    g->last = gpu_launch_for(mgx_shape_elements(c->out));
    g->last.dependent = gpu_machine(c->machine)->device->properties.features & GPU_DEPENDENT;
    const unsigned heads = (unsigned)c->in[K].lens[1], blocks = (unsigned)(d.parts * d.blocks);
    const struct gpu_launch how = {.grid = {g->direct ? heads : blocks, g->direct ? blocks : heads,
                                            (unsigned)c->in[Q].lens[0]},
                                   .block = {(unsigned)d.threads, 1, 1},
                                   .shared = d.shared};
    return gpu_take_call(c, &g->call, &text, &how, NULL, c->in_count);
}

// --- running ---

static int put_address(struct gpu_arg *list, int count, void *const *address)
{
    list[count] = (struct gpu_arg){address, sizeof(void *), true};
    return count + 1;
}

enum mgx_status gpu_cached_launch(const struct gpu_cached *g, const struct gpu_cached_args *a,
                                  const struct mgx_plan_machine *machine, struct mgx_queue *queue,
                                  struct mgx_diag *diag)
{
    assert(g->call.kernel && a->q && a->k && a->v);
    enum { MOST_ARGS = 24 };
    struct gpu_device *d = gpu_machine(machine)->device;
    void *const *first[] =
        {g->direct ? &a->out : &a->work, &a->q, &a->k, &a->v, &a->ends, &a->bias, &a->sink},
                *const * more[] = {&a->new_k, &a->new_v, &a->cosines, &a->sines, &a->at};
    struct gpu_arg list[MOST_ARGS];
    int count = 0;
    for (int i = 0; i < 7; i++)
        count = put_address(list, count, first[i]);
    list[count++] = (struct gpu_arg){&g->keys, sizeof g->keys, false};
    for (int i = 0; i < 6; i++)
        list[count++] = (struct gpu_arg){i < 3 ? &g->k[i] : &g->v[i - 3], sizeof(int64_t), false};
    for (int i = 0; i < 5 && *more[i]; i++)
        count = put_address(list, count, more[i]);
    assert(count <= MOST_ARGS);
    const struct gpu_arg join[] = {{&a->out, sizeof(void *), true},
                                   {&a->work, sizeof(void *), true},
                                   {&a->sink, sizeof(void *), true}};
    void *stream = gpu_queue_stream(queue);
    TRY(d->api->launch(d, stream, g->call.kernel, &g->call.how, list, count, diag));
    if (g->direct)
        return MGX_OK;
    return d->api->launch(d, stream, g->join, &g->last, join, (int)(sizeof join / sizeof *join),
                          diag);
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    const struct gpu_cached *g = step->state;
    const struct gpu_cached_args a = {.work = args->workspace,
                                      .q = args->in[Q],
                                      .k = args->in[K],
                                      .v = args->in[V],
                                      .ends = args->in[ENDS],
                                      .bias = args->in[g->bias >= 0 ? g->bias : Q],
                                      .sink = args->in[g->sink >= 0 ? g->sink : Q],
                                      .out = args->out};
    return gpu_cached_launch(g, &a, args->machine, args->queue, diag);
}

enum mgx_status gpu_cached_find(struct gpu_cached *g, struct mgx_diag *diag)
{
    TRY(gpu_unit_kernel(g->call.unit, "part", g->call.how.shared, &g->call.kernel, diag));
    return gpu_unit_kernel(g->call.unit, "join", 0, &g->join, diag);
}

static enum mgx_status finish(struct mgx_plan *plan, const struct mgx_plan_step *step,
                              struct mgx_diag *diag)
{
    (void)plan;
    return gpu_cached_find(step->state, diag);
}

static const struct gpu_family family = {finish};
const struct mgx_plan_kernel gpu_kernel_cache_attention = {
    .name = "gpu::cache_attention", .prepare = prepare, .run = run, .more = &family};
