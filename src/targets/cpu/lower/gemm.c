// SPDX-License-Identifier: MIT
// dot and quant_dot, alone or with their epilogue, as packed matrix multiplication.
//
//     group: y = body(dot(a, b), bias, residual, ...)        epilogue.h of this folder says what a
//                                                            body becomes
//
// A constant b is packed once. Rows of all batches of `a` that share one b merge into one product
// when they lie at one stride, so a batch of sentences is one tall matrix.
#include <assert.h>

#include "base/size.h"
#include "op/op.h"
#include "plan/join.h"
#include "targets/cpu/kernel/product/gemm.h"
#include "targets/cpu/kernel/split.h"
#include "targets/cpu/lower/integer.h"
#include "targets/cpu/lower/trial.h"

struct gemm {
    struct mgx_gemm_plan plan;
    const void *packed;
    struct cpu_epilogue epilogue;
    struct mgx_narrow_source blocks; // of weights by blocks
    int a, b;                        // inputs
    struct cpu_integer integer;      // of bytes
};

// Batch axes with their strides in up to three operands, merged where all allow. False when more
// than fit remain.
struct batches {
    int count;
    int64_t lens[MGX_MAX_RANK], a[MGX_MAX_RANK], b[MGX_MAX_RANK], c[MGX_MAX_RANK], r[MGX_MAX_RANK];
};

static void add_axis(struct batches *x, int64_t len, int64_t a, int64_t b, int64_t c, int64_t r)
{
    assert(len >= 0 && x->count >= 0 && x->count <= MGX_MAX_RANK);
    const int k = x->count - 1;
    if (len == 1)
        return;
    if (k >= 0 && x->a[k] == a * len && x->b[k] == b * len && x->c[k] == c * len &&
        x->r[k] == r * len) {
        x->lens[k] *= len;
        x->a[k] = a;
        x->b[k] = b;
        x->c[k] = c;
        x->r[k] = r;
        return;
    }
    const int to = x->count++;
    assert(to < MGX_MAX_RANK);
    x->lens[to] = len;
    x->a[to] = a;
    x->b[to] = b;
    x->c[to] = c;
    x->r[to] = r;
}

// The last batch axis becomes rows when b is the same for all of it and rows continue over it. A
// single row has no next one, so it continues anywhere.
static void merge_rows(struct mgx_gemm_desc *d, struct batches *x)
{
    assert(d->m >= 0 && x->count >= 0);
    while (x->count) {
        const int k = x->count - 1;
        if (d->m == 1) {
            d->a_row = x->a[k];
            d->c_row = x->c[k];
            d->residual_row = x->r[k];
        }
        if (x->b[k] != 0 || x->a[k] != d->a_row * d->m || x->c[k] != d->c_row * d->m ||
            (mgx_end_reader(&d->end) && x->r[k] != d->residual_row * d->m))
            return;
        d->m *= x->lens[k];
        x->count--;
    }
}

// Do the product's rows, columns, depth and batches go from end to end of all three matrices?
__attribute__((unused)) static bool covers(const struct mgx_plan_offer *c, const struct gemm *g,
                                           const struct mgx_gemm_desc *d)
{
    const int64_t m = d->m - 1, n = d->n - 1, k = d->k - 1;
    const int64_t *batch = d->batch;
    return cpu_reaches(&c->in[g->a], m * d->a_row + k * d->a_col +
                                         cpu_reach(batch, d->a_batch, MGX_GEMM_BATCH)) &&
           cpu_reaches(&c->in[g->b], k * d->b_row + n * d->b_col +
                                         cpu_reach(batch, d->b_batch, MGX_GEMM_BATCH)) &&
           cpu_reaches(c->out, m * d->c_row + n + cpu_reach(batch, d->c_batch, MGX_GEMM_BATCH));
}

static int64_t batch_step(const struct mgx_shape *s, int axis)
{
    return s->lens[axis] == 1 ? 0 : s->strides[axis];
}

static void find_batches(const struct mgx_plan_offer *c, const struct gemm *g, struct batches *x)
{
    const int r = g->epilogue.residual;
    for (int i = 0; i < c->out->rank - 2; i++)
        add_axis(x, c->out->lens[i], batch_step(&c->in[g->a], i), batch_step(&c->in[g->b], i),
                 c->out->strides[i], r >= 0 ? c->in[r].strides[i] : 0);
}

// Unused batch axes come first.
static void describe_batches(struct mgx_gemm_desc *d, const struct batches *x)
{
    for (int i = 0; i < x->count; i++) {
        const int to = MGX_GEMM_BATCH - x->count + i;
        assert(to >= 0 && to < MGX_GEMM_BATCH && x->lens[i] > 1);
        d->batch[to] = x->lens[i];
        d->a_batch[to] = x->a[i];
        d->b_batch[to] = x->b[i];
        d->c_batch[to] = x->c[i];
        d->residual_batch[to] = x->r[i];
    }
}

static bool describe_types(const struct mgx_plan_offer *c, const struct gemm *g,
                           struct mgx_gemm_desc *d)
{
    d->type = g->epilogue.integer            ? MGX_KERNEL_S8
              : c->in[g->a].type == MGX_BF16 ? MGX_KERNEL_BF16
                                             : MGX_KERNEL_F32;
    return cpu_kernel_type(c->in[g->a].type, &d->a_type) &&
           cpu_kernel_type(c->in[g->b].type, &d->b_type) &&
           cpu_kernel_type(c->out->type, &d->c_type);
}

static void describe_matrices(struct mgx_plan_offer *c, const struct gemm *g,
                              struct mgx_gemm_desc *d)
{
    const struct mgx_shape *a = &c->in[g->a], *b = &c->in[g->b], *y = c->out;
    const struct mgx_shape *r = g->epilogue.residual >= 0 ? &c->in[g->epilogue.residual] : NULL;
    const int n = y->rank;
    *d =
        (struct mgx_gemm_desc){.isa = cpu_offered(c)->isa,
                               .threads = c->machine->threads,
                               .m = a->lens[n - 2],
                               .n = b->lens[n - 1],
                               .k = a->lens[n - 1],
                               .a_row = a->strides[n - 2],
                               .a_col = a->strides[n - 1],
                               .b_row = b->strides[n - 2],
                               .b_col = b->strides[n - 1],
                               .c_row = y->strides[n - 2],
                               .residual_row = r ? r->strides[n - 2] : 0,
                               .packed = c->constant[g->b] != NULL,
                               .weights = g->epilogue.integer ? cpu_integer_weights(c, g->b) : NULL,
                               .a_zero = g->integer.zero_in < 0 ? g->integer.zero : 0,
                               .b_zero = g->integer.b_zero,
                               .any_rows = c->late,
                               .end = cpu_epilogue_list(&g->epilogue)};
}

static bool describe(struct mgx_plan_offer *c, struct gemm *g, struct mgx_gemm_desc *d)
{
    const struct mgx_shape *y = c->out;
    const int columns = y->rank - 1;
    struct batches x = {0};
    describe_matrices(c, g, d);
    if (!describe_types(c, g, d))
        return mgx_plan_unfit(c, "neither floats nor bytes");
    if (y->strides[columns] != 1 && y->lens[columns] != 1)
        return mgx_plan_unfit(c, "columns of the result are not contiguous");
    find_batches(c, g, &x);
    merge_rows(d, &x);
    if (x.count > MGX_GEMM_BATCH)
        return mgx_plan_unfit(c, "too many batch axes");
    describe_batches(d, &x);
    assert(c->in[g->b].lens[columns - 1] == d->k && y->lens[columns] == d->n && covers(c, g, d));
    return true;
}

// --- choosing the division among threads, the instruction set and the panels by measuring ---

static const char *const ways[] = {"model", "avx2", "vectors", "panels", "rows", "columns", "one"};

enum way { WAY_MODEL, WAY_AVX2, WAY_VECTORS, WAY_PANELS, WAY_ROWS, WAY_COLUMNS, WAY_ONE, WAYS };

// Columns of a panel other than the model's choice; 0: there are no others, or one width must do
// for all sizes.
static int other_panels(const struct mgx_gemm_desc *d)
{
    static const int widths[] = {32, 64};
    struct mgx_gemm_plan plan;
    if (d->any_rows || mgx_gemm_plan_init(&plan, d, NULL) != MGX_OK)
        return 0;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        const struct mgx_gemm_kernel *other =
            mgx_gemm_kernel_of(plan.kernel->type, d->isa, widths[i]);
        if (other && !other->integer && other->base.needs == plan.kernel->base.needs &&
            other->cols != plan.kernel->cols)
            return widths[i];
    }
    return 0;
}

// Whether the model's choice uses tile registers, which AVX-512 may beat.
static bool uses_tiles(const struct mgx_gemm_desc *d)
{
    struct mgx_gemm_plan plan;
    return mgx_gemm_plan_init(&plan, d, NULL) == MGX_OK && mgx_gemm_has_tiles(plan.kernel);
}

// Divides a planned product otherwise than its cost model did.
static void divide(struct mgx_gemm_plan *plan, enum way way)
{
    assert(plan->kernel && plan->kernel->rows > 0 && plan->kernel->cols > 0);
    const struct mgx_gemm_desc *d = &plan->desc;
    const int64_t most = 4 * (int64_t)d->threads;
    plan->m_parts =
        way == WAY_ROWS ? (int)mgx_min_i64(mgx_ceil_div(d->m, plan->kernel->rows), most) : 1;
    plan->n_parts =
        way == WAY_COLUMNS ? (int)mgx_min_i64(mgx_ceil_div(d->n, plan->kernel->cols), most) : 1;
    plan->units = (int64_t)plan->batches * plan->m_parts * plan->n_parts;
    plan->tasks = way == WAY_ONE ? 1 : (int)mgx_min_i64(plan->units, 16 * (int64_t)d->threads);
}

static enum mgx_status plan_way(struct mgx_gemm_plan *plan, const struct mgx_gemm_desc *desc,
                                enum way way, struct mgx_diag *diag)
{
    assert(way >= 0 && way < WAYS);
    struct mgx_gemm_desc d = *desc;
    d.isa = way == WAY_AVX2      ? MGX_ISA_AVX2
            : way == WAY_VECTORS ? d.isa & ~MGX_HAS(AMX_TILE)
                                 : d.isa;
    d.panel = way == WAY_PANELS ? other_panels(desc) : 0;
    TRY(mgx_gemm_plan_init(plan, &d, diag));
    if (way >= WAY_ROWS && d.m && d.n)
        divide(plan, way);
    return MGX_OK;
}

struct contest {
    struct mgx_plan_offer *c;
    const struct gemm *g;
    struct mgx_gemm_desc desc; // without a hook
    enum way way[WAYS];
    struct mgx_gemm_plan plan;
    struct cpu_trial trial;
};

static const char *contestant_name(void *user, int number)
{
    return ways[((const struct contest *)user)->way[number]];
}

static bool contestant_begin(void *user, int number, struct mgx_diag *diag)
{
    struct contest *t = user;
    if (plan_way(&t->plan, &t->desc, t->way[number], diag) != MGX_OK)
        return false;
    const size_t w_bytes =
        t->desc.packed ? t->plan.packed_bytes : mgx_shape_bytes(&t->c->in[t->g->b]);
    return cpu_trial_init(&t->trial, t->c, &t->g->epilogue, t->desc.n, w_bytes,
                          mgx_gemm_workspace(&t->plan), diag);
}

static void contestant_run(void *user)
{
    const struct contest *t = user;
    const struct cpu_trial *room = &t->trial;
    const struct mgx_gemm_args args = {.a = room->x,
                                       .b = room->w,
                                       .bias = t->g->epilogue.bias >= 0 ? room->bias : NULL,
                                       .scale =
                                           mgx_kernel_is_sums(t->desc.c_type) ? NULL : room->scale,
                                       .residual = room->residual,
                                       .c = room->y,
                                       .workspace = room->workspace};
    mgx_gemm_run(&t->plan, &args, cpu_offered(t->c)->pool);
}

static void contestant_end(void *user)
{
    cpu_trial_fini(&((struct contest *)user)->trial);
}

static const char *packed_name(const struct mgx_gemm_desc *d)
{
    static const char *const names[] = {" packed", " packed half", " packed bf16",
                                        " packed blocks"};
    return d->packed ? names[d->narrow.kind] : "";
}

static void describe_problem(void *user, struct mgx_str *out)
{
    const struct mgx_gemm_desc *d = &((const struct contest *)user)->desc;
    mgx_str_printf(out, "gemm %s m%lld n%lld k%lld", mgx_kernel_type_name(d->type), (long long)d->m,
                   (long long)d->n, (long long)d->k);
    for (int i = 0; i < MGX_GEMM_BATCH; i++)
        if (d->batch[i] > 1)
            mgx_str_printf(out, " b%lld%s", (long long)d->batch[i], d->b_batch[i] ? "" : "=");
    mgx_str_printf(out, "%s%s%s %s%s", packed_name(d), d->a_col == 1 ? "" : " a^T",
                   d->b_col == 1 ? "" : " b^T", mgx_act_name(mgx_end_act(&d->end)),
                   mgx_end_reader(&d->end) ? " residual" : "");
}

static bool applies(enum way way, const struct mgx_gemm_desc *d)
{
    if (way == WAY_AVX2)
        return mgx_isa_holds(d->isa, MGX_ISA_AVX512);
    if (way == WAY_VECTORS)
        return uses_tiles(d);
    if (way == WAY_PANELS)
        return other_panels(d) > 0;
    return way == WAY_MODEL || d->threads > 1;
}

// Plans g: by measurement if there is one, else by the cost model.
static bool choose_plan(struct mgx_plan_offer *c, struct gemm *g, const struct mgx_gemm_desc *desc,
                        bool *tuned)
{
    struct contest t = {.c = c, .g = g, .desc = *desc};
    int count = 0, choice;
    for (int way = 0; way < WAYS; way++)
        if (applies((enum way)way, desc))
            t.way[count++] = (enum way)way;
    mgx_end_drop_block(&t.desc.end);
    const struct mgx_plan_contest contest = {
        .describe = describe_problem,
        .name = contestant_name,
        .count = count,
        .begin = contestant_begin,
        .run = contestant_run,
        .end = contestant_end,
        .user = &t,
    };
    const enum mgx_status status = mgx_plan_tune(c->tuner, &contest, &choice, c->diag);
    *tuned = choice >= 0;
    return status == MGX_OK &&
           plan_way(&g->plan, desc, choice >= 0 ? t.way[choice] : WAY_MODEL, c->diag) == MGX_OK;
}

static void fill(const struct mgx_plan_fill *f, int part, int parts)
{
    mgx_gemm_pack_part(f->kernel, f->source[0], f->packed, part, parts);
}

// Weights that were 16 bits wide before they were converted, all of one type.
static enum mgx_narrow_kind narrow_kind(const struct mgx_ins *weights)
{
    if (weights->op == &mgx_op_convert)
        return weights->in[0]->shape.type == MGX_HALF ? MGX_NARROW_F16 : MGX_NARROW_BF16;
    if (weights->op != &mgx_op_concat)
        return MGX_NARROW_NONE;
    enum mgx_narrow_kind kind = MGX_NARROW_NONE;
    for (int i = 0; i < weights->in_count; i++) {
        const enum mgx_narrow_kind piece =
            weights->in[i]->literal ? MGX_NARROW_NONE : narrow_kind(weights->in[i]);
        if (!piece || (i && piece != kind))
            return MGX_NARROW_NONE;
        kind = piece;
    }
    return kind;
}

// Zero points that fit bytes; of another type they must be whole.
static bool zeros_fit(const struct mgx_tensor *zero, int bits)
{
    for (int64_t i = 0; zero->shape.type != MGX_UINT8 && i < mgx_shape_elements(&zero->shape);
         i++) {
        const double v = mgx_load_double(zero->shape.type, zero->data, i);
        if (!(v >= 0 && v < 1 << bits) || v != (double)(int)v)
            return false;
    }
    return true;
}

static enum mgx_kernel_type scale_type(enum mgx_type type)
{
    return type == MGX_FLOAT  ? MGX_KERNEL_F32
           : type == MGX_HALF ? MGX_KERNEL_F16
           : type == MGX_BF16 ? MGX_KERNEL_BF16
                              : MGX_KERNEL_S32;
}

// Weights of blocks, all of them, whose rows are B's columns: values, scale, and zero points or
// NULL.
static bool read_blocks(const struct mgx_ins *weights, const struct mgx_tensor **in)
{
    for (int i = 0; i < weights->in_count; i++) {
        in[i] = weights->in[i]->literal;
        if (!in[i] || !mgx_shape_is_standard(&in[i]->shape))
            return false;
    }
    return true;
}

static void note_blocks(struct gemm *g, const struct mgx_tensor *const *in,
                        enum mgx_kernel_type scale)
{
    g->blocks = (struct mgx_narrow_source){.values = in[0]->data,
                                           .scale = in[1]->data,
                                           .scale_type = scale,
                                           .zero = in[2] ? in[2]->data : NULL,
                                           .zero_bytes = in[2] && in[2]->shape.type == MGX_UINT8};
}

static bool find_blocks(const struct mgx_plan_offer *c, struct gemm *g,
                        const struct mgx_ins *weights, struct mgx_gemm_desc *d)
{
    const struct mgx_tensor *in[3] = {NULL};
    if (!read_blocks(weights, in))
        return false;
    const int bits = (int)mgx_ins_int(weights, "bits");
    const int64_t block = in[0]->shape.lens[2] * 8 / bits;
    const enum mgx_kernel_type scale = scale_type(in[1]->shape.type);
    if (weights->shape.lens[0] != d->n || weights->shape.lens[1] != d->k || d->b_row != 1 ||
        d->b_col != d->k || !mgx_kernel_is_float(scale) || in[0]->shape.lens[2] % 4 ||
        (in[2] && !zeros_fit(in[2], bits)))
        return false;
    note_blocks(g, in, scale);
    d->narrow = (struct mgx_narrow){.kind = MGX_NARROW_BLOCKS,
                                    .bits = bits,
                                    .block = block,
                                    .zeros = in[2] != NULL,
                                    .depth = d->k,
                                    .fast = cpu_offered(c)->fast_math &&
                                            ((1 << bits) - 1) * INT64_C(32767) * block < INT32_MAX};
    d->narrow.bytes =
        d->narrow.fast && block <= MGX_NARROW_BYTES && mgx_ins_int(weights, "accuracy_level") == 4;
    return true;
}

// Weights that are known to be narrower than floats are packed so.
static void find_narrow(const struct mgx_plan_offer *c, struct gemm *g, struct mgx_gemm_desc *d)
{
    const struct mgx_tensor *b = c->constant[g->b];
    const struct mgx_ins *weights = b ? mgx_plan_join_of(c->store, b->data) : NULL;
    for (int i = 0; i < MGX_GEMM_BATCH; i++)
        if (d->b_batch[i] && d->batch[i] > 1)
            return;
    if (weights && weights->op == &mgx_op_dequantize_blocks)
        find_blocks(c, g, weights, d);
    else if (weights && mgx_kernel_is_plain(d->type))
        d->narrow = (struct mgx_narrow){.kind = narrow_kind(weights), .depth = d->k};
}

static void fill_blocks(const struct mgx_plan_fill *f, int part, int parts)
{
    const struct gemm *g = f->kernel;
    const struct mgx_gemm_desc *d = &g->plan.desc;
    const int64_t panels = mgx_ceil_div(d->n, g->plan.kernel->cols);
    const int64_t end = mgx_part_begin(panels, part + 1, parts);
    for (int64_t p = mgx_part_begin(panels, part, parts); p < end; p++)
        mgx_narrow_pack_blocks(&d->narrow, g->plan.kernel, &g->blocks, d->n, p, f->packed);
}

// The packed form of blocks depends on what the model brings alone.
static bool pack_blocks(struct mgx_plan_offer *c, struct gemm *g)
{
    const struct mgx_gemm_desc *d = &g->plan.desc;
    const int64_t desc[] = {d->n, d->k, d->narrow.bits, d->narrow.block};
    const struct mgx_plan_key key = {.kernel = g->plan.kernel->base.name,
                                     .source = {g->blocks.values, g->blocks.scale, g->blocks.zero},
                                     .desc = desc,
                                     .desc_bytes = sizeof desc};
    const struct mgx_plan_fill how = {
        .fill = fill_blocks,
        .kernel = g,
        .source = {g->blocks.values},
        .source_bytes =
            (size_t)(d->n * mgx_narrow_blocks(&d->narrow) * d->narrow.block * d->narrow.bits / 8)};
    g->packed = mgx_plan_pack(c->store, &key, g->plan.packed_bytes, &how, c->diag);
    c->skip_in[g->b] = true;
    c->packed_bytes += g->plan.packed_bytes;
    return g->packed != NULL;
}

static bool pack(struct mgx_plan_offer *c, struct gemm *g)
{
    const struct mgx_tensor *b = c->constant[g->b];
    const struct mgx_gemm_desc *d = &g->plan.desc;
    if (d->narrow.kind == MGX_NARROW_BLOCKS)
        return pack_blocks(c, g);
    const int64_t desc[] = {d->n,          d->k,          d->b_row,       d->b_col,
                            d->batch[0],   d->batch[1],   d->batch[2],    d->b_batch[0],
                            d->b_batch[1], d->b_batch[2], d->narrow.kind, d->a_zero,
                            d->a_type,     d->b_type};
    static_assert(MGX_GEMM_BATCH == 3, "all of them");
    const struct mgx_plan_key key = {.kernel = mgx_panels_name(g->plan.kernel),
                                     .source = {b->data, g->integer.b_zero_source},
                                     .desc = desc,
                                     .desc_bytes = sizeof desc};
    const struct mgx_plan_fill how = {.fill = fill,
                                      .kernel = &g->plan,
                                      .source = {b->data},
                                      .source_bytes = mgx_shape_bytes(&b->shape)};
    g->packed = mgx_plan_pack(c->store, &key, g->plan.packed_bytes, &how, c->diag);
    c->skip_in[g->b] = true;
    c->packed_bytes += g->plan.packed_bytes;
    return g->packed != NULL;
}

static const char *detail_of(const struct mgx_plan_offer *c, const struct gemm *g, bool tuned)
{
    static const char *const kinds[] = {"", ", half weights", ", bf16 weights", ", packed weights"};
    const enum mgx_narrow_kind kind = g->plan.desc.narrow.kind;
    const bool bytes = g->plan.many && g->plan.desc.narrow.bytes;
    const char *detail = g->plan.kernel->base.name;
    if (kind)
        detail =
            mgx_arena_printf(c->arena, "%s%s%s", detail, kinds[kind], bytes ? " times bytes" : "");
    detail = cpu_epilogue_detail(c, &g->plan.desc.end, detail);
    return tuned ? mgx_arena_printf(c->arena, "%s, tuned", detail) : detail;
}

static bool suits(struct mgx_plan_offer *c, const struct gemm *g)
{
    const struct mgx_shape *a = &c->in[g->a], *b = &c->in[g->b], *y = c->out;
    const bool floats = (a->type == MGX_FLOAT || a->type == MGX_BF16) && b->type == a->type &&
                        (y->type == MGX_FLOAT || y->type == MGX_BF16);
    if (!g->epilogue.integer && !floats)
        return mgx_plan_unfit(c, "neither float nor bfloat16");
    if (!mgx_shape_elements(y) || !mgx_shape_elements(a))
        return mgx_plan_unfit(c, "empty");
    return true;
}

static bool plan_product(struct mgx_plan_offer *c, struct gemm *g, const struct mgx_ins *main,
                         struct mgx_gemm_desc *desc, bool *tuned)
{
    const int64_t columns = c->out->lens[c->out->rank - 1];
    if (!suits(c, g) || !cpu_integer_prepare(c, &g->epilogue, main, columns, &g->integer) ||
        !describe(c, g, desc))
        return false;
    find_narrow(c, g, desc);
    return choose_plan(c, g, desc, tuned) && (!desc->packed || pack(c, g));
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct gemm *g = MGX_NEW(c->arena, struct gemm);
    struct mgx_gemm_desc desc;
    const struct mgx_ins *main = NULL;
    bool tuned;
    if (!g)
        return mgx_plan_no_memory(c);
    if (!cpu_epilogue_match(c, &mgx_op_dot, &g->epilogue, &main))
        return mgx_plan_refuse(c);
    g->a = g->epilogue.main_in[0];
    g->b = g->epilogue.main_in[1];
    if (!plan_product(c, g, main, &desc, &tuned))
        return mgx_plan_refuse(c);
    c->workspace = mgx_gemm_workspace(&g->plan);
    if (!cpu_integer_finish(c, &g->epilogue, g->plan.kernel, desc.k, desc.b_row, desc.b_col,
                            &g->integer))
        return mgx_plan_refuse(c);
    c->flops = 2.0 * (double)mgx_shape_elements(c->out) * (double)desc.k;
    c->detail = detail_of(c, g, tuned);
    c->state = g;
    cpu_epilogue_finish(c, &g->epilogue);
    return MGX_PLAN_TAKEN;
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    (void)diag;
    const struct gemm *g = step->state;
    assert(step->workspace >= mgx_gemm_workspace(&g->plan) && (g->packed || args->in[g->b]));
    struct cpu_epilogue_run epilogue;
    cpu_epilogue_start(&g->epilogue, args, &epilogue);
    struct cpu_integer_run integer = {.bias = epilogue.bias};
    if (g->epilogue.integer)
        cpu_integer_start(&g->integer, &epilogue, mgx_kernel_is_sums(g->plan.desc.c_type),
                          &integer);
    const struct mgx_gemm_args a = {.a = args->in[g->a],
                                    .b = g->packed ? g->packed : args->in[g->b],
                                    .bias = integer.bias,
                                    .scale = integer.scale,
                                    .start = integer.start,
                                    .residual = epilogue.residual,
                                    .c = args->out,
                                    .workspace = args->workspace,
                                    .hook_user = &epilogue,
                                    .next = step->next};
    mgx_gemm_run(&g->plan, &a, cpu_pool(args));
    return MGX_OK;
}

static struct mgx_ahead first_read(const void *state, int thread)
{
    const struct gemm *g = state;
    return mgx_gemm_first_read(&g->plan, g->packed, thread);
}

static const struct cpu_reader reader = {first_read};

CPU_KERNEL(gemm, 30)
const struct mgx_plan_kernel cpu_kernel_gemm = {
    .name = "gemm", .prepare = prepare, .run = run, .more = &reader};
