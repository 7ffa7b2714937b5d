// SPDX-License-Identifier: MIT
// cache_append on the card (kernel/cache_append.gpu).
//
//     past and result are one memory   the new rows are written, nothing else is touched
//     they are two                     past's rows are copied, the new ones and zeros behind them
//
// Which of both it is, the addresses of a run say, and the number of threads follows: the ends stay
// values that only the card reads. How much room a cache has is an argument of the kernel, so that a
// cache that grows takes the same one. `total` is not read: the result's length says what it asked for.
//
// paged_append has the same chunks: each token's row says where they go, and a past that is not the
// result's memory is copied whole before.
#include <inttypes.h>

#include "op/op.h"
#include "targets/gpu/emit/move.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/emit/wide.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/cache.h"

enum { NOW, ENDS, TOTAL, PAST };

struct append {
    struct gpu_call call;
    int64_t lines, chunks; // heads of all entries, chunks of a row
    int tokens, keys, room;
    bool alike;              // past lies as the result does
    int64_t out[3], past[3]; // from one entry, head and row to the next
};

static const char *refuses(const struct mgx_plan_offer *c)
{
    if (!mgx_shape_is_static(c->out) || !mgx_shape_elements(c->out))
        return "a cache whose length only the run says, or none";
    if (!gpu_word(mgx_type_size(c->out->type)))
        return "elements that are no machine word";
    return gpu_cache_reads_ends(&c->in[ENDS]) && mgx_shape_is_standard(&c->in[ENDS])
               ? NULL
               : "ends that are no integers in order";
}

static int chunk_of(const struct mgx_plan_offer *c)
{
    int v = gpu_move_vector(c->out, 3, &c->in[NOW], 3, 16);
    if (c->in_count > PAST) {
        const int of_past = gpu_move_vector(c->out, 3, &c->in[PAST], 3, 16);
        v = of_past < v ? of_past : v;
    }
    return v;
}

static void emit_chunks(struct mgx_str *out, const char *word, int bytes, int v)
{
    const struct gpu_chunk chunk = {"c", word, v, bytes};
    mgx_str_put(out, "typedef struct {\n");
    gpu_emit_chunk(out, &(struct gpu_chunk){"of", word, v, bytes});
    mgx_str_printf(out, "} CHUNK;\nFUNCTION CHUNK load_chunk(const GLOBAL %s *from, i64 at)\n{\n",
                   word);
    gpu_emit_chunk(out, &chunk);
    gpu_emit_chunk_load(out, &chunk, "from", "at");
    mgx_str_printf(out,
                   "    CHUNK y;\n    for (int k = 0; k < %d; k++)\n        y.of.v[k] = c.v[k];\n"
                   "    return y;\n}\n"
                   "FUNCTION void store_chunk(GLOBAL %s *to, i64 at, CHUNK x)\n{\n",
                   v, word);
    gpu_emit_chunk(out, &chunk);
    mgx_str_printf(out, "    for (int k = 0; k < %d; k++)\n        c.v[k] = x.of.v[k];\n", v);
    gpu_emit_chunk_store(out, &chunk, "to", "at");
    mgx_str_printf(out,
                   "}\nFUNCTION CHUNK no_chunk(void)\n{\n    CHUNK y;\n"
                   "    for (int k = 0; k < %d; k++)\n        y.of.v[k] = 0;\n    return y;\n}\n",
                   v);
}

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c, int v)
{
    const struct mgx_shape *now = &c->in[NOW];
    const size_t bytes = mgx_type_size(now->type);
    const bool paged = c->ins->op == &mgx_op_paged_append;
    emit_chunks(out, gpu_word(bytes), (int)bytes, v);
    mgx_str_printf(out,
                   "#define WORD %s\n#define V %d\n#define HEADS %" PRId64
                   "\n#define TOKENS %" PRId64 "\n#define CHUNKS %" PRId64
                   "\n#define E_TYPE %s\n#define PAGE %" PRId64 "\n",
                   gpu_word(bytes), v, now->lens[1], now->lens[2], now->lens[3] / v,
                   gpu_type_memory(c->in[ENDS].type), paged ? c->out->lens[1] : 0);
    gpu_emit_cache_row(out, "NOW", now);
    if (paged)
        GPU_PUT(out, paged_append);
    else
        GPU_PUT(out, cache_append);
}

static void describe(struct append *a, const struct mgx_plan_offer *c, int v)
{
    const struct mgx_shape *past = c->in_count > PAST ? &c->in[PAST] : NULL;
    a->lines = c->out->lens[0] * c->out->lens[1];
    a->chunks = c->out->lens[3] / v;
    a->tokens = (int)c->in[NOW].lens[2];
    a->keys = (int)c->out->lens[2];
    a->room = past ? (int)past->lens[2] : 0;
    a->alike = past && mgx_shape_equal(past, c->out);
    gpu_cache_strides(c->out, a->out);
    if (past)
        gpu_cache_strides(past, a->past);
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    if (c->copy_only || c->dynamic || c->ins->op != &mgx_op_cache_append)
        return gpu_decline(c, "not a cache with new rows");
    const char *why = refuses(c);
    if (why)
        return gpu_decline(c, why);
    if (gpu_cache_wishes(c, 1u << NOW | 1u << PAST))
        return mgx_plan_refuse(c);
    if (c->out->lens[2] > INT32_MAX || (c->out->strides[3] != 1 && c->out->lens[3] > 1))
        return gpu_decline(c, "rows of the result in pieces, or too many");
    struct append *a = MGX_NEW(c->arena, struct append);
    struct mgx_str text = {0};
    if (!a)
        return mgx_plan_no_memory(c);
    const int v = chunk_of(c);
    describe(a, c, v);
    emit(&text, c, v);
    c->skip_in[TOTAL] = true;
    c->detail = "new rows alone where past is its memory";
    const struct gpu_launch how = {.grid = {1, 1, 1}, .block = {GPU_THREADS, 1, 1}};
    return gpu_take_call(c, &a->call, &text, &how, (const int[]){NOW, ENDS, PAST},
                         c->in_count > PAST ? 3 : 2);
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    const struct append *a = step->state;
    struct gpu_device *d = gpu_machine(args->machine)->device;
    void *past = step->in_count > PAST ? args->in[PAST] : args->out;
    const bool in_place = a->alike && past == args->out;
    const int rows = in_place ? (a->tokens < a->keys ? a->tokens : a->keys) : a->keys;
    const int64_t count = a->lines * rows * a->chunks;
    struct gpu_launch how = a->call.how;
    how.grid[0] = gpu_launch_for(count).grid[0];
    const struct gpu_arg list[] = {{&args->out, sizeof(void *), true},
                                   {&args->in[NOW], sizeof(void *), true},
                                   {&args->in[ENDS], sizeof(void *), true},
                                   {&past, sizeof(void *), true},
                                   {&count, sizeof count, false},
                                   {&rows, sizeof rows, false},
                                   {&a->keys, sizeof a->keys, false},
                                   {&a->room, sizeof a->room, false},
                                   {&a->out[0], 8, false},
                                   {&a->out[1], 8, false},
                                   {&a->out[2], 8, false},
                                   {&a->past[0], 8, false},
                                   {&a->past[1], 8, false},
                                   {&a->past[2], 8, false}};
    return d->api->launch(d, gpu_queue_stream(args->queue), a->call.kernel, &how, list,
                          (int)(sizeof list / sizeof *list), diag);
}

static enum mgx_status finish(struct mgx_plan *plan, const struct mgx_plan_step *step,
                              struct mgx_diag *diag)
{
    (void)plan;
    struct append *a = step->state;
    return gpu_unit_kernel(a->call.unit, "run", 0, &a->call.kernel, diag);
}

static const struct gpu_family family = {finish};
const struct mgx_plan_kernel gpu_kernel_cache_append = {
    .name = "gpu::cache_append", .prepare = prepare, .run = run, .more = &family};

// --- pages ---

enum { OLD = 2 }; // input of paged_append: the cache before

struct pages {
    struct gpu_call call;
    int64_t count, rows; // chunks of the new rows, and rows of the cache
    int64_t out[3];      // from one block, head and row to the next
    size_t bytes;
};

static const char *refuses_pages(const struct mgx_plan_offer *c)
{
    if (c->copy_only || c->dynamic || c->ins->op != &mgx_op_paged_append)
        return "no new rows of pages";
    const char *why = refuses(c);
    return why                                              ? why
           : !mgx_shape_elements(&c->in[NOW])               ? "no new rows"
           : c->out->strides[3] != 1 && c->out->lens[3] > 1 ? "rows of the result in pieces"
                                                            : NULL;
}

static enum mgx_plan_answer prepare_pages(struct mgx_plan_offer *c)
{
    const char *why = refuses_pages(c);
    if (why)
        return gpu_decline(c, why);
    if (gpu_cache_wishes(c, 1u << NOW))
        return mgx_plan_refuse(c);
    if (!mgx_shape_equal(&c->in[OLD], c->out)) {
        (void)mgx_plan_wish(c, OLD, MGX_PLAN_ROW_MAJOR, "the cache lies otherwise than the result");
        return mgx_plan_refuse(c);
    }
    struct pages *a = MGX_NEW(c->arena, struct pages);
    struct mgx_str text = {0};
    if (!a)
        return mgx_plan_no_memory(c);
    const int v = gpu_move_vector(c->out, 3, &c->in[NOW], 3, 16);
    emit(&text, c, v);
    a->count = mgx_shape_elements(&c->in[NOW]) / v;
    a->rows = c->out->lens[0] * c->out->lens[1];
    a->out[0] = c->out->strides[0];
    a->out[1] = c->out->strides[2];
    a->out[2] = c->out->strides[1];
    a->bytes = mgx_shape_bytes(c->out);
    c->detail = "new rows alone where past is its memory";
    const struct gpu_launch how = gpu_launch_for(a->count);
    return gpu_take_call(c, &a->call, &text, &how, (const int[]){NOW, ENDS, OLD}, 3);
}

static enum mgx_status run_pages(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                                 struct mgx_diag *diag)
{
    const struct pages *a = step->state;
    struct gpu_device *d = gpu_machine(args->machine)->device;
    void *stream = gpu_queue_stream(args->queue);
    if (args->in[OLD] != args->out)
        TRY(d->api->copy(d, stream, args->out, args->in[OLD], a->bytes, diag));
    const struct gpu_arg list[] = {{&args->out, sizeof(void *), true},
                                   {&args->in[NOW], sizeof(void *), true},
                                   {&args->in[ENDS], sizeof(void *), true},
                                   {&a->count, sizeof a->count, false},
                                   {&a->rows, sizeof a->rows, false},
                                   {&a->out[0], 8, false},
                                   {&a->out[1], 8, false},
                                   {&a->out[2], 8, false}};
    return d->api->launch(d, stream, a->call.kernel, &a->call.how, list,
                          (int)(sizeof list / sizeof *list), diag);
}

const struct mgx_plan_kernel gpu_kernel_paged_append = {
    .name = "gpu::paged_append", .prepare = prepare_pages, .run = run_pages, .more = &family};
