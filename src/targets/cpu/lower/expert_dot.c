// SPDX-License-Identifier: MIT
// expert_dot of constant matrices: a product for each of them that some row asks for.
//
//     rows in the order of their matrices:   e0 e0 e0 | e3 | e5 e5     gathered, multiplied, put back
//
// All matrices are packed alike, one behind the other, as gemm.h packs one: floats, or blocks that
// stay as few bits. How many rows each gets is known in the run, so its product is planned then;
// that allocates nothing. A single row is read and written where it lies.
#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "targets/cpu/kernel/product/gemm.h"
#include "targets/cpu/lower/body.h"
#include "targets/cpu/lower/lower.h"

enum { X, WHICH, W, SCALE, ZERO };

struct experts {
    struct mgx_gemm_plan all, one; // of all rows with one matrix; of one row
    struct mgx_narrow_source blocks;
    const void *source;           // of floats
    size_t source_matrix, matrix; // bytes of one, as it comes and packed
    const void *packed;
    int64_t count, rows, per;
    bool wide;                   // indices are int64
    size_t product, order, x, y; // parts of the workspace: bytes, and where the others begin
};

// --- planning ---

static bool suits(struct mgx_plan_offer *c)
{
    if (c->copy_only || c->dynamic || c->ins->op != &mgx_op_expert_dot)
        return mgx_plan_unfit(c, "no product by experts of known lengths");
    if (c->in[X].type != MGX_FLOAT || c->out->type != MGX_FLOAT || !mgx_shape_elements(c->out) ||
        (c->in[WHICH].type != MGX_INT64 && c->in[WHICH].type != MGX_INT32))
        return mgx_plan_unfit(c, "not float, or empty");
    if (!mgx_shape_is_standard(c->out))
        return mgx_plan_unfit(c, "the result does not lie in order");
    for (int i = X; i <= WHICH; i++)
        if (!mgx_shape_is_standard(&c->in[i]))
            return mgx_plan_wish(c, i, MGX_PLAN_ROW_MAJOR, "an operand does not lie in order");
    for (int i = W; i < c->in_count; i++)
        if (!c->constant[i] || !mgx_shape_is_standard(&c->constant[i]->shape))
            return mgx_plan_unfit(c, "weights are not constant");
    return true;
}

static bool describe(const struct mgx_plan_offer *c, struct experts *g, struct mgx_gemm_desc *d)
{
    const int bits = (int)mgx_ins_int(c->ins, "bits");
    const struct mgx_tensor *w = c->constant[W];
    *d = (struct mgx_gemm_desc){.type = MGX_KERNEL_F32,
                                .a_type = MGX_KERNEL_F32,
                                .b_type = MGX_KERNEL_F32,
                                .c_type = MGX_KERNEL_F32,
                                .isa = cpu_offered(c)->isa,
                                .threads = c->machine->threads,
                                .m = c->out->lens[0],
                                .n = c->out->lens[1],
                                .k = c->in[X].lens[1],
                                .a_row = c->in[X].lens[1],
                                .a_col = 1,
                                .b_row = 1,
                                .b_col = c->in[X].lens[1],
                                .c_row = c->out->lens[1],
                                .packed = true,
                                .any_rows = true};
    g->source = w->data;
    g->source_matrix = mgx_shape_bytes(&w->shape) / (size_t)w->shape.lens[0];
    if (!bits)
        return cpu_kernel_type(w->shape.type, &d->b_type);
    const struct mgx_tensor *scale = c->constant[SCALE], *zero = NULL;
    const int64_t bytes = w->shape.lens[3], block = bytes * 8 / bits;
    enum mgx_kernel_type type;
    if (c->in_count > ZERO)
        zero = c->constant[ZERO];
    if (bytes % 4 || !cpu_kernel_type(scale->shape.type, &type) || !mgx_kernel_is_float(type) ||
        (zero && zero->shape.type != MGX_UINT8))
        return false;
    g->blocks = (struct mgx_narrow_source){.values = w->data,
                                           .scale = scale->data,
                                           .scale_type = type,
                                           .zero = zero ? zero->data : NULL,
                                           .zero_bytes = zero != NULL};
    d->narrow = (struct mgx_narrow){.kind = MGX_NARROW_BLOCKS,
                                    .bits = bits,
                                    .block = block,
                                    .zeros = zero != NULL,
                                    .depth = d->k,
                                    .fast = cpu_offered(c)->fast_math &&
                                            ((1 << bits) - 1) * INT64_C(32767) * block < INT32_MAX};
    return true;
}

// Plans of other numbers of rows read the same packed matrix.
static bool reads_alike(const struct mgx_gemm_plan *a, const struct mgx_gemm_plan *b)
{
    return a->kernel == b->kernel && a->packed_bytes == b->packed_bytes;
}

static enum mgx_status plan_rows(struct mgx_gemm_plan *plan, const struct experts *g, int64_t rows,
                                 struct mgx_diag *diag)
{
    struct mgx_gemm_desc d = g->all.desc;
    d.m = rows;
    d.panel = g->all.kernel->cols;
    return mgx_gemm_plan_init(plan, &d, diag);
}

// --- packing ---

static void fill(const struct mgx_plan_fill *f, int part, int parts)
{
    const struct experts *g = f->kernel;
    const struct mgx_gemm_desc *d = &g->all.desc;
    const int64_t panels = mgx_ceil_div(d->n, g->all.kernel->cols),
                  end = mgx_part_begin(g->count, part + 1, parts);
    const int64_t values = d->narrow.kind ? d->n * mgx_narrow_blocks(&d->narrow) : 0;
    for (int64_t e = mgx_part_begin(g->count, part, parts); e < end; e++) {
        char *to = (char *)f->packed + (size_t)e * g->matrix;
        if (!values) {
            mgx_gemm_pack(&g->all, (const char *)g->source + (size_t)e * g->source_matrix, to);
            continue;
        }
        struct mgx_narrow_source own = g->blocks;
        const size_t size = (size_t)mgx_kernel_size(own.scale_type);
        own.values += (size_t)e * g->source_matrix;
        own.scale = (const char *)own.scale + (size_t)(e * values) * size;
        own.zero = own.zero ? (const char *)own.zero + e * values : NULL;
        for (int64_t p = 0; p < panels; p++)
            mgx_narrow_pack_blocks(&d->narrow, g->all.kernel, &own, d->n, p, to);
    }
}

static bool pack(struct mgx_plan_offer *c, struct experts *g)
{
    const struct mgx_gemm_desc *d = &g->all.desc;
    const int64_t desc[] = {g->count, d->n, d->k, d->narrow.bits, d->narrow.block, d->b_type};
    const struct mgx_plan_key key = {.kernel = g->all.kernel->base.name,
                                     .source = {g->source, g->blocks.scale, g->blocks.zero},
                                     .desc = desc,
                                     .desc_bytes = sizeof desc};
    const struct mgx_plan_fill how = {.fill = fill,
                                      .kernel = g,
                                      .source = {g->source},
                                      .source_bytes = g->source_matrix * (size_t)g->count};
    size_t bytes;
    if (!mgx_mul_size(g->matrix, (size_t)g->count, &bytes))
        return mgx_plan_unfit(c, "weights do not fit");
    g->packed = mgx_plan_pack(c->store, &key, bytes, &how, c->diag);
    for (int i = W; i < c->in_count; i++)
        c->skip_in[i] = true;
    c->packed_bytes += bytes;
    return g->packed != NULL;
}

static bool lay_out(struct mgx_plan_offer *c, struct experts *g)
{
    const struct mgx_gemm_desc *d = &g->all.desc;
    const size_t all = mgx_gemm_workspace(&g->all), one = mgx_gemm_workspace(&g->one);
    g->product = mgx_align64(all > one ? all : one);
    g->order = g->product;
    g->x = g->order + mgx_align64((size_t)(g->rows + g->count + 1) * sizeof(int64_t));
    g->y = g->x + mgx_align64((size_t)(g->rows * d->k) * sizeof(float));
    c->workspace = g->y + mgx_align64((size_t)(g->rows * d->n) * sizeof(float));
    return true;
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct experts *g = MGX_NEW(c->arena, struct experts);
    struct mgx_gemm_desc d;
    if (!g)
        return mgx_plan_no_memory(c);
    if (!suits(c) || !describe(c, g, &d) || mgx_gemm_plan_init(&g->all, &d, c->diag) != MGX_OK)
        return mgx_plan_refuse(c);
    g->count = c->constant[W]->shape.lens[0];
    g->rows = d.m;
    g->per = mgx_ins_int(c->ins, "per");
    g->wide = c->in[WHICH].type == MGX_INT64;
    g->matrix = mgx_align64(g->all.packed_bytes);
    if (plan_rows(&g->one, g, 1, c->diag) != MGX_OK)
        return mgx_plan_refuse(c);
    if (!reads_alike(&g->all, &g->one))
        return mgx_plan_decline(c, "few rows want other panels than many");
    if (!lay_out(c, g) || !pack(c, g))
        return mgx_plan_refuse(c);
    c->flops = 2.0 * (double)mgx_shape_elements(c->out) * (double)d.k;
    c->detail = d.narrow.kind ? "packed weights" : "";
    c->state = g;
    return MGX_PLAN_TAKEN;
}

// --- running ---

struct call {
    const struct experts *g;
    const struct mgx_plan_args *args;
    int64_t *order, *starts; // rows by matrix; where each matrix's begin
};

static void *part_of(const struct call *r, size_t at)
{
    return (char *)r->args->workspace + at;
}

static enum mgx_status sort_rows(const struct call *r, struct mgx_diag *diag)
{
    const struct experts *g = r->g;
    memset(r->starts, 0, (size_t)(g->count + 1) * sizeof *r->starts);
    for (int64_t i = 0; i < g->rows; i++) {
        const int64_t e = cpu_integer(r->args->in[WHICH], g->wide, i);
        if (e < 0 || e >= g->count)
            return mgx_fail(diag, MGX_INVALID,
                            "expert_dot: index %lld is out of range for %lld matrices",
                            (long long)e, (long long)g->count);
        r->starts[e]++;
    }
    int64_t at = 0;
    for (int64_t e = 0; e <= g->count; e++) {
        const int64_t own = r->starts[e];
        r->starts[e] = at;
        at += own;
    }
    for (int64_t i = 0; i < g->rows; i++)
        r->order[r->starts[cpu_integer(r->args->in[WHICH], g->wide, i)]++] = i;
    return MGX_OK; // starts[e] is where the next one's begin
}

static void multiply(const struct call *r, const struct mgx_gemm_plan *plan, int64_t e,
                     const float *x, float *y)
{
    const struct mgx_gemm_args a = {.a = x,
                                    .b = (const char *)r->g->packed + (size_t)e * r->g->matrix,
                                    .c = y,
                                    .workspace = r->args->workspace};
    mgx_gemm_run(plan, &a, cpu_pool(r->args));
}

// Rows order[from] .. order[to - 1] by matrix e.
static void run_matrix(const struct call *r, int64_t e, int64_t from, int64_t to)
{
    const struct experts *g = r->g;
    const int64_t k = g->all.desc.k, n = g->all.desc.n;
    const float *x = r->args->in[X];
    float *y = r->args->out, *rows = part_of(r, g->x), *sums = part_of(r, g->y);
    struct mgx_gemm_plan plan;
    const bool planned = to - from > 1 && plan_rows(&plan, g, to - from, NULL) == MGX_OK &&
                         reads_alike(&plan, &g->all) && mgx_gemm_workspace(&plan) <= g->product;
    for (int64_t i = from; i < to; i++)
        if (planned)
            memcpy(rows + (i - from) * k, x + r->order[i] / g->per * k, (size_t)k * sizeof *rows);
        else
            multiply(r, &g->one, e, x + r->order[i] / g->per * k, y + r->order[i] * n);
    if (!planned)
        return;
    multiply(r, &plan, e, rows, sums);
    for (int64_t i = from; i < to; i++)
        memcpy(y + r->order[i] * n, sums + (i - from) * n, (size_t)n * sizeof *y);
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    const struct experts *g = step->state;
    struct call r = {.g = g, .args = args};
    r.order = part_of(&r, g->order);
    r.starts = r.order + g->rows;
    TRY(sort_rows(&r, diag));
    for (int64_t e = 0, from = 0; e < g->count; from = r.starts[e++])
        if (r.starts[e] > from)
            run_matrix(&r, e, from, r.starts[e]);
    return MGX_OK;
}

CPU_KERNEL(expert_dot, 35)
const struct mgx_plan_kernel cpu_kernel_expert_dot = {
    .name = "expert_dot", .prepare = prepare, .run = run};
