// SPDX-License-Identifier: MIT
// cache_attention on the card (kernel/cache_attention.gpu): a few new tokens before a long cache.
//
// Keys are dealt out to as many blocks as the card has multiprocessors, whatever their number turns
// out to be; what a block finds lies in the workspace until a second kernel joins it. NVIDIA's cards from
// sm_80 on do so with values of 16 bits on their matrix units (kernel/cache_units.gpu), and prompts, whose
// rows are blocks enough. Elsewhere more tokens than fit in a block's shared memory are products and a
// softmax (pass/rewrite_cache.c).
//
// paged_attention has the same texts: an entry of the grid is then one token, or some of one text that
// share the keys they meet, and a table says where a row lies. How many entries a text takes is a value,
// so there are as many as any numbers of tokens could take.
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
enum { PAST = 4, TABLE, SINK }; // of paged_attention

// What is asked, by either operator.
struct ask {
    const struct mgx_shape *q, *k, *v, *out, *bias; // NULL: no bias
    struct mgx_cache_attention how;
    enum mgx_type ends;
    int64_t shared;      // heads of keys
    int64_t size, width; // of a head of queries, and of values
    int64_t kept;        // bits of what caches keep; 0: elements
    bool each;           // a scale for each place of a head
    int64_t texts, page; // of paged_attention, and rows of a block; else 0
};

struct division {
    int64_t entries, tokens; // of the grid, and of one of them
    int64_t group, rows; // heads that share one of keys, and the rows that they make of the tokens
    bool units;          // matrix units multiply
    int keys, stages, parts, threads;
    // With units: blocks of rows, and warps of a block that take other rows, or other keys.
    int64_t blocks;
    int w_rows, w_keys;
    size_t shared;
};

// --- what is taken ---

static struct ask ask_of(const struct mgx_ins *ins, const struct mgx_shape *in,
                         const struct mgx_shape *out)
{
    struct ask x = {.q = &in[Q], .k = &in[K], .v = &in[V], .out = out, .ends = in[ENDS].type};
    if (ins->op == &mgx_op_paged_attention) {
        const struct mgx_paged_attention *a = ins->attr;
        x.how = (struct mgx_cache_attention){.scale = a->scale,
                                             .cap = a->cap,
                                             .window = a->window,
                                             .kept = a->kept,
                                             .sink = a->sink,
                                             .whole = a->whole};
        x.shared = in[K].lens[2];
        x.texts = in[PAST].lens[0];
        x.page = in[K].lens[1];
    } else {
        x.how = *(const struct mgx_cache_attention *)ins->attr;
        x.shared = in[K].lens[1];
        x.bias = x.how.bias ? &in[MORE] : NULL;
    }
    x.kept = x.how.kept;
    x.size = in[Q].lens[3];
    x.width = x.kept ? x.size : in[V].lens[3];
    x.each = x.kept && mgx_shape_elements(&in[ins->in_count - 1]) > 1;
    return x;
}

static int64_t keys_of(const struct ask *x, const struct mgx_shape *in)
{
    return x->texts ? in[TABLE].lens[1] * x->page : x->k->lens[2];
}

static size_t shared_of(const struct ask *x, const struct division *d)
{
    const size_t bytes = mgx_type_size(x->q->type), pad = 16 / bytes;
    const size_t size = (size_t)x->size, width = (size_t)x->width;
    return (size_t)d->stages * (size_t)d->keys * (size + width + 2 * pad) * bytes +
           (size_t)d->rows * (size + (size_t)d->keys + 3) * sizeof(float);
}

enum { LEAST_PARTS = 4, MOST_PARTS = 32, MOST_BLOCKS = 65535 };

// As many keys at a time as fit into what every kernel may declare; false: not even a few do.
static bool divide_plain(struct division *d, const struct gpu_device *device, const struct ask *x,
                         int64_t heads)
{
    enum { SHARED = 46 << 10, MOST_ROWS = 64 };
    if (d->rows > MOST_ROWS)
        return false;
    d->stages = device->properties.version >= 80 ? 2 : 1;
    for (d->keys = 64; d->keys >= 8 && shared_of(x, d) > SHARED; d->keys /= 2)
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
static bool has_units(const struct gpu_device *device, const struct ask *x)
{
    enum { STEP = 16, MOST_HEAD = 128 };
    const int64_t size = x->size, width = x->width;
    return device->properties.version >= 80 && x->out->type != MGX_FLOAT && size % STEP == 0 &&
           width % STEP == 0 && size > 0 && width > 0 && size <= MOST_HEAD && width <= MOST_HEAD;
}

// 16 rows at most: warps deal out keys, else rows. Where there are few blocks keys are dealt out to
// several.
static bool divide_units(struct division *d, const struct gpu_device *device, const struct ask *x,
                         int64_t heads)
{
    const int64_t size = x->size, width = x->width;
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

// How many tokens an entry of the grid has: of pages one where texts have few, else as many as make
// `rows` rows of them.
static bool deal(struct division *d, const struct ask *x, int64_t rows)
{
    const int64_t all = x->q->lens[2];
    d->tokens = x->texts == 0 ? all : all <= 2 * x->texts ? 1 : mgx_max_i64(rows / d->group, 1);
    d->entries = x->texts ? (all + x->texts * (d->tokens - 1)) / d->tokens : x->q->lens[0];
    d->rows = d->group * d->tokens;
    return d->rows >= 1 && d->rows <= INT32_MAX && d->entries >= 1 && d->entries <= MOST_BLOCKS;
}

static bool divide(struct division *d, const struct gpu_device *device, const struct ask *x)
{
    enum { UNIT_ROWS = 64, PLAIN_ROWS = 16 };
    const int64_t group = x->shared ? x->q->lens[1] / x->shared : 0;
    *d = (struct division){.group = group};
    if (group < 1 || x->shared > MOST_BLOCKS)
        return false;
    if (has_units(device, x) && deal(d, x, UNIT_ROWS) &&
        divide_units(d, device, x, x->shared * d->entries))
        return true;
    *d = (struct division){.group = group};
    return deal(d, x, PLAIN_ROWS) && divide_plain(d, device, x, x->shared * d->entries);
}

static bool reads_pages(const struct mgx_shape *in)
{
    return gpu_cache_reads_ends(&in[ENDS]) && in[PAST].type == in[ENDS].type &&
           in[TABLE].type == in[ENDS].type && in[PAST].lens[0] > 0 && in[K].lens[0] <= INT32_MAX &&
           in[K].lens[1] <= INT32_MAX && in[TABLE].lens[1] <= INT32_MAX;
}

static bool takes_shapes(const struct gpu_device *d, const struct mgx_ins *ins,
                         const struct mgx_shape *in)
{
    const bool paged = ins->op == &mgx_op_paged_attention;
    if (!(paged ? reads_pages(in) : gpu_cache_reads_ends(&in[ENDS])))
        return false;
    const struct ask x = ask_of(ins, in, &ins->shape);
    struct division division;
    const int64_t keys = keys_of(&x, in);
    if (x.kept && !(x.k->type == MGX_INT8 || (x.k->type == MGX_UINT8 && x.kept == 4)))
        return false;
    return (paged || !x.how.whole || x.how.window <= 0) && gpu_cache_computes(ins->shape.type) &&
           mgx_shape_elements(&ins->shape) && keys >= paged && keys <= INT32_MAX &&
           x.q->lens[2] <= INT32_MAX && divide(&division, d, &x);
}

static bool takes(const struct gpu_device *d, const struct mgx_ins *ins)
{
    struct mgx_shape in[SINK + 3];
    for (int i = 0; i < ins->in_count; i++)
        in[i] = ins->in[i]->shape;
    return takes_shapes(d, ins, in);
}

bool gpu_cache_supports(const struct gpu_device *d, const struct mgx_ins *ins)
{
    const struct mgx_shape *s = &ins->shape;
    if (ins->op == &mgx_op_cache_append || ins->op == &mgx_op_paged_append)
        return gpu_word(mgx_type_size(s->type)) && gpu_cache_reads_ends(&ins->in[1]->shape);
    if (ins->op == &mgx_op_rotary_embedding)
        return gpu_cache_computes(s->type) && gpu_cache_reads_ends(&ins->in[3]->shape);
    return takes(d, ins);
}

static const char *refuses(const struct mgx_plan_offer *c)
{
    const bool paged = c->ins->op == &mgx_op_paged_attention;
    if (c->copy_only || c->dynamic || (c->ins->op != &mgx_op_cache_attention && !paged))
        return "not attention to a cache";
    if (!mgx_shape_is_static(c->out) || !takes(gpu_machine(c->machine)->device, c->ins))
        return "tokens or heads too many for a block, or of another type";
    return NULL;
}

// Lists of numbers are read in order: of those that are repeated, say, a copy is asked for.
static bool wishes_lists(struct mgx_plan_offer *c, bool paged)
{
    for (int i = ENDS; i <= (paged ? TABLE : ENDS); i++)
        if (!mgx_shape_is_standard(&c->in[i])) {
            (void)mgx_plan_wish(c, i, MGX_PLAN_ROW_MAJOR, "ends that do not lie in order");
            return true;
        }
    return false;
}

// --- text ---

// Elements that a load may bring: both caches' rows and heads begin at multiples of them.
static int wide_of(const struct mgx_plan_offer *c, const struct ask *x)
{
    int v = 16 / (int)mgx_type_size(c->out->type);
    while (x->kept && v > 1 && x->size % v)
        v /= 2;
    if (x->kept)
        return v;
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

static void emit_sizes(struct mgx_str *out, const struct mgx_plan_offer *c, const struct ask *x,
                       const struct division *d)
{
    const struct mgx_shape *q = x->q;
    const int bytes = (int)mgx_type_size(q->type), wide = wide_of(c, x);
    mgx_str_printf(out,
                   "#define BATCH %" PRId64 "\n#define HEADS %" PRId64 "\n#define GROUP %" PRId64
                   "\n#define TOKENS %" PRId64 "\n#define C_ROWS %" PRId64 "\n#define SIZE %" PRId64
                   "\n#define WIDTH %" PRId64 "\n#define KEYS %d\n#define PARTS %d\n"
                   "#define BLOCK_THREADS %d\n#define STAGES %d\n#define WIDE %d\n#define PAD %d\n"
                   "#define COPIED %d\n#define PAIR %d\n",
                   d->entries, q->lens[1], d->group, d->tokens, d->rows, x->size, x->width, d->keys,
                   d->parts, d->threads, d->stages, wide, d->units ? 8 : wide, wide * bytes >= 4,
                   wide > 1 ? 2 : 1);
    mgx_str_printf(out, "#define KEPT %" PRId64 "\n#define SCALED_EACH %d\n#define KEPT_WORDS %d\n",
                   x->kept, x->each, x->size % 8 == 0);
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
    mgx_str_printf(out, "#define E_TYPE %s\n#define PAGED %d\n", gpu_type_memory(x->ends),
                   x->texts > 0);
    if (x->texts)
        mgx_str_printf(out,
                       "#define TEXTS %" PRId64 "\n#define ALL_TOKENS %" PRId64
                       "\n#define PAGE %" PRId64 "\n",
                       x->texts, q->lens[2], x->page);
}

static void emit_function(struct mgx_str *out, const struct mgx_plan_offer *c,
                          const struct mgx_cache_attention *a)
{
    mgx_str_put(out, "#define SCALE ");
    gpu_emit_real(out, a->scale);
    mgx_str_printf(out, "\n#define CAPPED %d\n#define CAP ", a->cap > 0);
    gpu_emit_real(out, a->cap);
    mgx_str_printf(
        out, "\n#define WINDOW %" PRId64 "\n#define BIASED %d\n#define SUNK %d\n#define WHOLE %d\n",
        a->window, a->bias, a->sink, a->whole);
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

// Of pages an entry is where its first token is.
static void emit_row(struct mgx_str *out, const char *name, const struct mgx_shape *given,
                     const struct ask *x)
{
    struct mgx_shape s = *given;
    s.strides[0] = x->texts ? s.strides[2] : s.strides[0];
    gpu_emit_cache_row(out, name, &s);
}

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c, const struct ask *x,
                 const struct division *d, const struct gpu_cache_before *f)
{
    gpu_emit_cache_type(out, c->out->type);
    emit_sizes(out, c, x, d);
    emit_function(out, c, &x->how);
    emit_row(out, "Q", f ? &f->q : x->q, x);
    emit_row(out, "Y", x->out, x);
    if (x->bias)
        emit_bias(out, x->bias);
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
    const struct ask x = ask_of(c->ins, c->in, c->out);
    if (!divide(&d, gpu_machine(c->machine)->device, &x) || d.blocks > 1)
        return false;
    emit(out, c, &x, &d, before);
    return true;
}

// --- the offer ---

static void describe(struct gpu_cached *g, const struct mgx_plan_offer *c, const struct ask *x)
{
    g->keys = (int)keys_of(x, c->in);
    g->bias = x->bias ? MORE : -1;
    g->sink = !x->how.sink ? -1 : x->texts ? SINK : MORE + x->how.bias;
    g->kept = x->kept != 0;
    gpu_cache_strides(x->k, g->k);
    gpu_cache_strides(x->v, g->v);
    if (!x->texts)
        return;
    g->blocks = (int)x->k->lens[0];
    g->pages = (int)c->in[TABLE].lens[1];
    for (int i = 0; i < 2; i++) { // of a block, a head and a row
        int64_t *stride = i ? g->v : g->k, row = stride[1];
        stride[1] = stride[2];
        stride[2] = row;
    }
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    const char *why = refuses(c);
    struct division d;
    struct mgx_str text = {0};
    if (why)
        return gpu_decline(c, why);
    const struct ask x = ask_of(c->ins, c->in, c->out);
    const unsigned lists = x.texts ? 1u << ENDS | 1u << PAST | 1u << TABLE : 1u << ENDS;
    if (!divide(&d, gpu_machine(c->machine)->device, &x))
        return gpu_decline(c, NULL);
    if (wishes_lists(c, x.texts > 0) || gpu_cache_wishes(c, ~lists))
        return mgx_plan_refuse(c);
    if (c->out->strides[3] != 1 && c->out->lens[3] > 1)
        return gpu_decline(c, "heads of the result are not contiguous");
    struct gpu_cached *g = MGX_NEW(c->arena, struct gpu_cached);
    if (!g)
        return mgx_plan_no_memory(c);
    describe(g, c, &x);
    emit(&text, c, &x, &d, NULL);
    const int64_t rows = d.entries * d.tokens * x.q->lens[1];
    if (!(d.units && d.parts == 1))
        c->workspace =
            mgx_align64((size_t)(rows * d.parts * (c->out->lens[3] + 2)) * sizeof(float));
    g->direct = d.units && d.parts == 1;
    c->detail = x.texts        ? d.units ? "matrix units, keys in blocks" : "keys in blocks"
                : !d.units     ? "keys in parts"
                : d.parts == 1 ? "matrix units, rows in blocks"
                               : "matrix units, keys in parts";
    c->flops = 2.0 * (double)rows * (double)g->keys * (double)(c->in[Q].lens[3] + c->out->lens[3]);
    g->last = gpu_launch_for(rows * c->out->lens[3]);
    g->last.dependent = gpu_machine(c->machine)->device->properties.features & GPU_DEPENDENT;
    const unsigned heads = (unsigned)x.shared, blocks = (unsigned)(d.parts * d.blocks);
    const struct gpu_launch how = {
        .grid = {g->direct ? heads : blocks, g->direct ? blocks : heads, (unsigned)d.entries},
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
    enum { MOST_ARGS = 26 };
    struct gpu_device *d = gpu_machine(machine)->device;
    void *const *first[] =
        {g->direct ? &a->out : &a->work, &a->q, &a->k, &a->v, &a->ends, &a->bias, &a->sink},
                *const * more[] = {&a->new_k, &a->new_v, &a->cosines, &a->sines, &a->at},
                *const * pages[] = {&a->past, &a->table},
                *const * scales[] = {&a->k_scale, &a->v_scale};
    struct gpu_arg list[MOST_ARGS];
    int count = 0;
    for (int i = 0; i < 7; i++)
        count = put_address(list, count, first[i]);
    list[count++] = (struct gpu_arg){&g->keys, sizeof g->keys, false};
    for (int i = 0; i < 6; i++)
        list[count++] = (struct gpu_arg){i < 3 ? &g->k[i] : &g->v[i - 3], sizeof(int64_t), false};
    for (int i = 0; i < 5 && *more[i]; i++)
        count = put_address(list, count, more[i]);
    for (int i = 0; i < 2 && g->pages; i++)
        count = put_address(list, count, pages[i]);
    if (g->pages) {
        list[count++] = (struct gpu_arg){&g->blocks, sizeof g->blocks, false};
        list[count++] = (struct gpu_arg){&g->pages, sizeof g->pages, false};
    }
    for (int i = 0; i < 2 && g->kept; i++)
        count = put_address(list, count, scales[i]);
    assert(count <= MOST_ARGS);
    const struct gpu_arg join[] = {{&a->out, sizeof(void *), true},
                                   {&a->work, sizeof(void *), true},
                                   {&a->sink, sizeof(void *), true},
                                   {&a->ends, sizeof(void *), true},
                                   {&a->past, sizeof(void *), true}};
    void *stream = gpu_queue_stream(queue);
    TRY(d->api->launch(d, stream, g->call.kernel, &g->call.how, list, count, diag));
    if (g->direct)
        return MGX_OK;
    return d->api->launch(d, stream, g->join, &g->last, join, g->pages ? 5 : 3, diag);
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
                                      .out = args->out,
                                      .past = g->pages ? args->in[PAST] : NULL,
                                      .table = g->pages ? args->in[TABLE] : NULL,
                                      .k_scale = args->in[step->in_count - 2],
                                      .v_scale = args->in[step->in_count - 1]};
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
