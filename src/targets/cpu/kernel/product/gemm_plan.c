// SPDX-License-Identifier: MIT
// Planning a product and packing its right operand; see gemm.h. What the kernel is, which way it is
// run, how it is cut among threads, rows and depth, and how much room that takes.
#include <assert.h>
#include <string.h>

#include "targets/cpu/kernel/move/convert.h"
#include "targets/cpu/kernel/product/gemm_plan.h"
#include "targets/cpu/kernel/product/output.h"
#include "targets/cpu/kernel/split.h"

enum {
    L2_BYTES = 640 << 10,         // a block of A and two panels: the one in work and the next
    WIDE_L2_BYTES = 896 << 10,    // the same with wide panels
    WIDE_LEAST_L2 = 2 << 20,      // of a core that has these
    MAX_PANEL_BYTES = 384 << 10,  // beyond: depth is cut
    MIN_DEPTH = 256,              // a tile's start and end cost as much as some 20 k
    FEW_ROWS = MGX_TILE_RAW_ROWS, // up to these, B is not worth packing
    ALIAS_BYTES = 4096,           // addresses this far apart meet in a set of the L1 cache
    L1_WAYS = 8,                  // of which this many fit
    MAX_HELD_BYTES = 4 << 20,     // of a thread's copy of A
    MAX_WHOLE_BYTES = 1536 << 10, // of many rows of A as whole numbers
};

static bool counts_fit(const struct mgx_gemm_desc *d, int64_t *batches)
{
    *batches = 1;
    for (int i = 0; i < MGX_GEMM_BATCH; i++)
        if (d->batch[i] < 0 || !mgx_mul_i64(*batches, d->batch[i] ? d->batch[i] : 1, batches))
            return false;
    int64_t rows, values;
    return mgx_mul_i64(*batches, d->m, &rows) && mgx_mul_i64(rows, d->n, &values) &&
           mgx_mul_i64(d->m, d->k, &values) && *batches <= INT32_MAX;
}

static int64_t packed_count(const struct mgx_gemm_desc *d)
{
    assert(d->m >= 0 && d->n >= 0 && d->k >= 0);
    int64_t count = 1;
    for (int i = 0; i < MGX_GEMM_BATCH; i++)
        if (d->b_batch[i] && d->batch[i] > 1)
            count *= d->batch[i];
    return count;
}

static bool matrix_bytes(const struct mgx_gemm_plan *plan, size_t *bytes)
{
    const struct mgx_gemm_desc *d = &plan->desc;
    if (mgx_gemm_in_chunks(plan->kernel))
        return mgx_mul_size((size_t)mgx_ceil_div(d->n, plan->kernel->cols),
                            (size_t)mgx_gemm_panel_step(plan), bytes);
    return mgx_gemm_is_narrow(plan)
               ? mgx_narrow_bytes(&d->narrow, plan->kernel, d->n, bytes)
               : mgx_panels_bytes(plan->kernel, mgx_gemm_panel_rows(plan), d->n, bytes);
}

size_t mgx_gemm_packed_step(const struct mgx_gemm_plan *plan)
{
    size_t bytes = 0;
    matrix_bytes(plan, &bytes);
    return mgx_align64(bytes);
}

static bool all_floats(const struct mgx_gemm_desc *d)
{
    return mgx_kernel_is_plain(d->a_type) && mgx_kernel_is_plain(d->b_type);
}

static enum mgx_gemm_method choose_method(const struct mgx_gemm_plan *plan)
{
    const struct mgx_gemm_desc *d = &plan->desc;
    if (mgx_gemm_is_narrow(plan) && (d->m <= MGX_NARROW_ROWS || plan->many))
        return MGX_GEMM_NARROW;
    if (d->packed || d->m > FEW_ROWS || !all_floats(d) || !mgx_kernel_is_plain(plan->kernel->type))
        return MGX_GEMM_PANELS;
    const bool dots = d->b_row == 1 && d->a_col == 1;
    if (d->b_col == 1 && !(dots && d->n == 1)) // of one column both strides may be 1
        return MGX_GEMM_ROWS;
    return dots ? MGX_GEMM_DOT : MGX_GEMM_PANELS;
}

static void choose_tasks(struct mgx_gemm_plan *plan)
{
    assert(plan->batches >= 1);
    const struct mgx_gemm_desc *d = &plan->desc;
    const double k = (double)plan->groups, a = (double)d->m * k, b = k * (double)d->n;
    const double c = (double)d->m * (double)d->n, bytes = sizeof(float) * (a + b + c);
    const double work = plan->batches * (2 * c * k + MGX_WORK_PER_BYTE * bytes);
    const int64_t tasks = mgx_split_tasks(work, d->threads);
    mgx_split_output(mgx_ceil_div(d->m, plan->kernel->rows), mgx_ceil_div(d->n, plan->kernel->cols),
                     (double)d->m, (double)d->n, mgx_ceil_div(tasks, plan->batches), &plan->m_parts,
                     &plan->n_parts);
    plan->units = (int64_t)plan->batches * plan->m_parts * plan->n_parts;
    plan->tasks =
        tasks == 1 ? 1 : (int)mgx_min_i64(plan->units, mgx_max_i64(tasks, 16 * d->threads));
}

// Whether C takes sums between two blocks of depth.
static bool can_cut_depth(const struct mgx_gemm_plan *plan)
{
    return !plan->converts_c && !plan->desc.hook_only && !plan->kernel->integer &&
           mgx_kernel_is_plain(plan->desc.c_type);
}

static int64_t l2_bytes(const struct mgx_gemm_plan *plan)
{
    assert(plan->kernel);
    return plan->kernel->cols == MGX_TILE_MAX_COLS ? WIDE_L2_BYTES : L2_BYTES;
}

// Rows of a block whose depth is cut into `blocks`, and that depth.
static void cut_depth(struct mgx_gemm_plan *plan, int64_t blocks)
{
    assert(blocks >= 1);
    const int64_t depth = (mgx_ceil_div(plan->groups, blocks) + 3) & ~(int64_t)3;
    plan->block_depth = blocks > 1 ? depth : plan->groups;
    const int64_t row = mgx_max_i64(plan->block_depth, 1) * GROUP_BYTES;
    assert(plan->block_depth * blocks >= plan->groups); // no depth is left out
    plan->block_rows =
        mgx_max_i64(l2_bytes(plan) / row - 2 * plan->kernel->cols, 2 * plan->kernel->rows);
}

// What a cut moves through L2: B once for every block of rows, C out and in for every block of
// depth but the last. B comes by prefetch; a tile waits for its C, which counts three times. A B
// that stays in L2 itself costs nothing.
static double moved_values(const struct mgx_gemm_plan *plan)
{
    const double m = (double)plan->desc.m, n = (double)plan->desc.n, k = (double)plan->groups;
    const double rows = (double)mgx_ceil_div(plan->desc.m, plan->block_rows);
    const double depths = (double)mgx_ceil_div(plan->groups, mgx_max_i64(plan->block_depth, 1));
    const double b = k * n * GROUP_BYTES > l2_bytes(plan) / 2 ? k * n : 0;
    return rows * b + 3 * 2 * (depths - 1) * m * n;
}

// Rows whose whole numbers are held while narrow panels pass; all of the depth.
static void block_narrow(struct mgx_gemm_plan *plan)
{
    const int64_t row =
        (int64_t)mgx_narrow_scratch(&plan->desc.narrow, 1, mgx_gemm_takes_bytes(plan));
    const int64_t most = MAX_WHOLE_BYTES / mgx_max_i64(row, 1), many = plan->many;
    plan->block_depth = plan->groups;
    plan->block_rows = many ? mgx_max_i64(most / many, 1) * many : MGX_NARROW_ROWS;
}

// The cut that moves least. It depends on the sizes alone, never on the threads: sums are rounded
// once more for every block of depth.
static void choose_blocks(struct mgx_gemm_plan *plan)
{
    enum { MAX_CUTS = 16 };
    if (plan->method == MGX_GEMM_NARROW) {
        block_narrow(plan);
        return;
    }
    const int64_t longest = MAX_PANEL_BYTES / (plan->kernel->cols * GROUP_BYTES);
    const bool cuts = plan->desc.m > plan->kernel->rows && can_cut_depth(plan);
    const int64_t least = cuts ? mgx_max_i64(mgx_ceil_div(plan->groups, longest), 1) : 1;
    int64_t best = least;
    cut_depth(plan, least);
    double moved = moved_values(plan);
    for (int64_t blocks = least + 1; cuts && blocks <= least + MAX_CUTS; blocks++) {
        cut_depth(plan, blocks);
        if (plan->block_depth < MIN_DEPTH || moved_values(plan) >= moved)
            continue;
        moved = moved_values(plan);
        best = blocks;
    }
    cut_depth(plan, best);
}

// Whether all rows of a tile meet in one set of the L1 cache, where each would push the others out
// between one k and the next. A copy costs as much as some 20 columns do.
static bool rows_collide(const struct mgx_gemm_plan *plan)
{
    const struct mgx_gemm_desc *d = &plan->desc;
    return d->a_row && d->a_row * mgx_kernel_size(d->a_type) % ALIAS_BYTES == 0 && d->m > L1_WAYS &&
           d->n >= 4 * plan->kernel->cols;
}

bool mgx_gemm_copies_a(const struct mgx_gemm_plan *plan)
{
    const struct mgx_gemm_desc *d = &plan->desc;
    return (d->a_col != 1 && d->k > 1) || d->a_type != plan->kernel->a_type ||
           (d->k % plan->kernel->group && !mgx_gemm_in_chunks(plan->kernel)) || rows_collide(plan);
}

// The copy of a block of rows: one depth after the other, all of them if they are not too large.
static bool copy_fits(struct mgx_gemm_plan *plan, size_t *bytes)
{
    const int64_t row = plan->block_depth * GROUP_BYTES;
    const int64_t rows = mgx_min_i64(plan->block_rows, plan->desc.m);
    const int64_t depths = mgx_ceil_div(plan->groups, mgx_max_i64(plan->block_depth, 1));
    plan->copy_row = row % (ALIAS_BYTES / 2) ? row : row + 64;
    size_t all;
    if (!mgx_mul_size((size_t)rows, (size_t)plan->copy_row, bytes))
        return false;
    plan->holds_a =
        plan->n_parts > 1 && mgx_mul_size(*bytes, (size_t)depths, &all) && all <= MAX_HELD_BYTES;
    plan->copy_bytes = (int64_t)*bytes;
    *bytes = sizeof(struct held) + (plan->holds_a ? all : *bytes);
    return true;
}

// A copied block of A, and one panel of raw or narrow B; in the place of the panel, sums of A.
static bool workspace_fits(struct mgx_gemm_plan *plan)
{
    const size_t row = (size_t)plan->block_depth * (size_t)GROUP_BYTES;
    size_t a = 0, b = 0;
    if (mgx_gemm_copies_a(plan) && !copy_fits(plan, &a))
        return false;
    if (mgx_gemm_makes_panels(plan) &&
        !mgx_mul_size((size_t)plan->kernel->cols,
                      row + (size_t)(plan->kernel->starts * GROUP_BYTES), &b))
        return false;
    b = mgx_gemm_narrow_room(plan, b);
    plan->thread_workspace = mgx_align64(a) + mgx_align64(b);
    return true;
}

static int64_t padded(int64_t n, int cols)
{
    assert(n >= 0 && cols > 0);
    return mgx_ceil_div(n, cols) * cols;
}

// Whether wide panels pay: not for few rows, each of whose tiles waits for the panel, and not where
// they pad more columns than they gain.
static bool wants_wide(const struct mgx_gemm_desc *d, const struct mgx_gemm_kernel *usual,
                       const struct mgx_gemm_kernel *wide)
{
    enum { LEAST_ROWS = 96, GAIN = 64 }; // 1 in 64
    const int64_t more = padded(d->n, wide->cols) - padded(d->n, usual->cols / 2);
    return mgx_cpu_l2() >= WIDE_LEAST_L2 && d->m >= LEAST_ROWS && !d->any_rows && !d->narrow.kind &&
           more <= d->n / GAIN;
}

static const struct mgx_gemm_kernel *find_kernel(const struct mgx_gemm_desc *d,
                                                 enum mgx_kernel_type type)
{
    const struct mgx_gemm_kernel *usual =
        mgx_integer_kernel(type, d->isa, d->a_type, d->b_type, d->b_zero);
    const int cols = d->panel ? d->panel : MGX_TILE_MAX_COLS;
    const struct mgx_gemm_kernel *other = mgx_gemm_kernel_of(type, d->isa, cols);
    if (mgx_gemm_kernel_of_rows(usual, d->m) != usual)
        return usual->few_rows;
    if (!usual || usual->integer || !other || other->base.needs != usual->base.needs)
        return usual;
    return d->panel || wants_wide(d, usual, other) ? other : usual;
}

// B as chunks see it.
static struct mgx_chunk_matrix matrix_of(const struct mgx_gemm_plan *plan, const void *b)
{
    const struct mgx_gemm_desc *d = &plan->desc;
    return (struct mgx_chunk_matrix){
        .b = b,
        .type = d->b_type,
        .zero = d->b_zero,
        .columns = d->n,
        .taps = 1,
        .run = d->k,
        .inner = d->k,
        .valid = d->k,
        .row = d->b_row,
        .col = d->b_col,
        .kernel = {1, 1, 1},
        .shift = d->a_zero + mgx_kernel_shift(plan->kernel, d->a_type),
    };
}

// Bytes that would be widened to 16 bits are multiplied in chunks where those fit and pay.
static void choose_chunks(struct mgx_gemm_plan *plan)
{
    const struct mgx_gemm_kernel *usual = plan->kernel,
                                 *other = mgx_gemm_kernel(MGX_KERNEL_U8, plan->desc.isa);
    if (!plan->desc.packed || !plan->desc.weights || !usual || !usual->integer ||
        !mgx_chunks_compete(other, usual) || packed_count(&plan->desc) != 1)
        return;
    plan->kernel = other;
    const struct mgx_chunk_matrix m = matrix_of(plan, plan->desc.weights);
    plan->panel_chunks = mgx_chunk_fits(&m) ? mgx_chunk_count(&m) : 0;
    if (!plan->panel_chunks ||
        !mgx_chunk_pays(&m, plan->panel_chunks, plan->desc.a_col == 1 && usual->strip))
        plan->kernel = usual;
}

static enum mgx_status choose_kernel(struct mgx_gemm_plan *plan, struct mgx_diag *diag)
{
    const struct mgx_gemm_desc *d = &plan->desc;
    plan->kernel = find_kernel(d, d->type);
    if (!plan->kernel && mgx_kernel_is_float(d->type))
        plan->kernel = find_kernel(d, MGX_KERNEL_F32);
    choose_chunks(plan);
    const struct mgx_gemm_kernel *k = plan->kernel;
    const bool integers = mgx_kernel_is_sums(d->c_type);
    const bool mixed = k && (mgx_kernel_is_float(d->a_type) == k->integer ||
                             mgx_kernel_is_float(d->b_type) == k->integer);
    if (!k || mixed || !mgx_convert(d->isa, d->a_type, k->a_type) ||
        (!mgx_gemm_in_chunks(k) && !mgx_convert(d->isa, d->b_type, k->b_type)) ||
        (integers && !k->integer) ||
        (!integers && !mgx_convert(d->isa, MGX_KERNEL_F32, d->c_type)) ||
        (integers && (d->end.count || d->hook_only)) || !mgx_output_fits(&d->end, d->c_type))
        return mgx_fail(diag, MGX_UNSUPPORTED, "no kernel multiplies types %d and %d to %d",
                        d->a_type, d->b_type, d->c_type);
    plan->ends = mgx_end_kernel(k->base.needs);
    plan->converts_c = mgx_output_converts(k, &d->end, d->c_type) && !d->hook_only;
    plan->groups = mgx_panel_rows(k, d->k);
    return MGX_OK;
}

enum mgx_status mgx_gemm_plan_init(struct mgx_gemm_plan *plan, const struct mgx_gemm_desc *desc,
                                   struct mgx_diag *diag)
{
    *plan = (struct mgx_gemm_plan){.desc = *desc, .m_parts = 1, .n_parts = 1};
    struct mgx_gemm_desc *d = &plan->desc;
    int64_t batches;
    if (d->m < 0 || d->n < 0 || d->k < 0)
        return mgx_fail(diag, MGX_INVALID, "matrix sizes %lld x %lld x %lld", (long long)d->m,
                        (long long)d->n, (long long)d->k);
    TRY(choose_kernel(plan, diag));
    assert(!mgx_gemm_is_narrow(plan) || (d->packed && mgx_kernel_is_plain(plan->kernel->type) &&
                                         packed_count(d) == 1 && d->narrow.depth == d->k));
    size_t bytes;
    if (!counts_fit(d, &batches) || !matrix_bytes(plan, &bytes) ||
        !mgx_mul_size(mgx_gemm_packed_step(plan), (size_t)packed_count(d), &bytes))
        return mgx_fail(diag, MGX_LIMIT, "matrix sizes %lld x %lld x %lld do not fit",
                        (long long)d->m, (long long)d->n, (long long)d->k);
    if (mgx_gemm_is_narrow(plan) && d->m > MGX_NARROW_ROWS)
        plan->many = mgx_narrow_of(plan->kernel, d->isa)->many(&d->narrow);
    plan->batches = (int)batches;
    plan->packed_bytes = d->packed ? bytes : 0;
    if (!d->m || !d->n)
        return MGX_OK;
    plan->method = choose_method(plan);
    choose_tasks(plan);
    choose_blocks(plan);
    if (!workspace_fits(plan))
        return mgx_fail(diag, MGX_LIMIT, "workspace for a depth of %lld does not fit",
                        (long long)d->k);
    return MGX_OK;
}

size_t mgx_gemm_workspace(const struct mgx_gemm_plan *plan)
{
    return plan->thread_workspace * (size_t)mgx_max_i64(plan->desc.threads, 1);
}

// `depth` rows of B from `b` on.
static struct mgx_panel_source rows_of(const struct mgx_gemm_desc *d, const void *b, int64_t depth)
{
    return (struct mgx_panel_source){b, d->b_type, d->b_row, d->b_col, depth, d->n};
}

void mgx_gemm_pack_panel(const struct mgx_gemm_plan *plan, const char *b, int64_t depth, int64_t p,
                         char *panel)
{
    assert(b && p >= 0 && depth >= 0);
    const struct mgx_gemm_desc *d = &plan->desc;
    assert(!mgx_gemm_in_chunks(plan->kernel));
    const int width = mgx_panel_width(plan->kernel, d->n, p);
    char *data = panel + (plan->kernel->starts ? width * GROUP_BYTES : 0);
    const struct mgx_panel_source rows = rows_of(d, b, depth);
    mgx_panel_pack(plan->kernel, &rows, p, data);
    const int64_t left = d->n - p * plan->kernel->cols;
    if (d->b_zero)
        mgx_panel_shift(data, depth, width, left < width ? (int)left : width,
                        d->b_zero + p * plan->kernel->cols);
    if (plan->kernel->starts)
        mgx_panel_starts(plan->kernel, data, plan->groups, width,
                         d->a_zero + mgx_kernel_shift(plan->kernel, d->a_type),
                         (int32_t *)(void *)panel);
}

// Where packed matrix `i` begins in B, in elements; the inverse of packed_index.
static int64_t matrix_start(const struct mgx_gemm_desc *d, int64_t i)
{
    int64_t from = 0;
    for (int k = MGX_GEMM_BATCH - 1; k >= 0; k--)
        if (d->b_batch[k] && d->batch[k] > 1) {
            from += i % d->batch[k] * d->b_batch[k];
            i /= d->batch[k];
        }
    return from;
}

// Rows of 16 bits, all panels of some depth at a time. Blocks are packed elsewhere.
static void pack_narrow(const struct mgx_gemm_plan *plan, const void *b, void *packed, int part,
                        int parts)
{
    enum { ROWS = 64 };
    const struct mgx_gemm_desc *d = &plan->desc;
    const int64_t units = mgx_ceil_div(d->k, ROWS), end = mgx_part_begin(units, part + 1, parts);
    assert(d->narrow.kind != MGX_NARROW_BLOCKS && mgx_kernel_is_plain(d->b_type));
    const struct mgx_panel_source all = rows_of(d, b, d->k);
    for (int64_t i = mgx_part_begin(units, part, parts); i < end; i++)
        mgx_narrow_pack(&d->narrow, plan->kernel, &all, i * ROWS,
                        mgx_min_i64(ROWS, d->k - i * ROWS), packed);
}

// B is read from front to back: by panels where its columns are contiguous, else by blocks of rows.
enum { PACK_ROWS = 16 };

static void pack_rows(const struct mgx_gemm_plan *plan, const char *b, int64_t block, char *to)
{
    assert(block >= 0 && to);
    const struct mgx_gemm_desc *d = &plan->desc;
    const struct mgx_gemm_kernel *kernel = plan->kernel;
    const int64_t panels = mgx_ceil_div(d->n, kernel->cols), first = block * PACK_ROWS;
    const struct mgx_panel_source rows = rows_of(
        d, b + first * d->b_row * mgx_kernel_size(d->b_type), mgx_min_i64(PACK_ROWS, d->k - first));
    for (int64_t p = 0; p < panels; p++) {
        const int64_t panel = p * kernel->cols * mgx_gemm_panel_rows(plan);
        const int64_t row = first / kernel->group * mgx_panel_width(kernel, d->n, p);
        mgx_panel_pack(kernel, &rows, p, to + (panel + row) * GROUP_BYTES);
    }
}

// One matrix, as plans with chunks have.
static void pack_chunks(const struct mgx_gemm_plan *plan, const void *b, char *packed, int part,
                        int parts)
{
    const struct mgx_chunk_matrix m = matrix_of(plan, b);
    const int64_t panels = mgx_ceil_div(plan->desc.n, plan->kernel->cols);
    struct mgx_chunk_stripe stripe = {.of = NULL};
    for (int64_t p = mgx_part_begin(panels, part, parts);
         p < mgx_part_begin(panels, part + 1, parts); p++)
        mgx_chunk_pack(&m, p, plan->panel_chunks, &stripe, packed + p * mgx_gemm_panel_step(plan));
    mgx_chunk_stripe_free(&stripe);
}

void mgx_gemm_pack_part(const struct mgx_gemm_plan *plan, const void *b, void *packed, int part,
                        int parts)
{
    assert(part >= 0 && part < parts && packed);
    const struct mgx_gemm_desc *d = &plan->desc;
    if (mgx_gemm_is_narrow(plan)) {
        pack_narrow(plan, b, packed, part, parts);
        return;
    }
    if (mgx_gemm_in_chunks(plan->kernel)) {
        pack_chunks(plan, b, packed, part, parts);
        return;
    }
    const int64_t panels = mgx_ceil_div(d->n, plan->kernel->cols);
    const int64_t panel_bytes = mgx_gemm_panel_step(plan);
    const bool by_rows = d->b_col == 1 && !plan->kernel->starts;
    const int64_t units = by_rows ? mgx_ceil_div(d->k, PACK_ROWS) : panels;
    const int64_t all = units * packed_count(d), end = mgx_part_begin(all, part + 1, parts);
    for (int64_t i = mgx_part_begin(all, part, parts); i < end; i++) {
        const char *first =
            (const char *)b + matrix_start(d, i / units) * mgx_kernel_size(d->b_type);
        char *to = (char *)packed + mgx_gemm_packed_step(plan) * (size_t)(i / units);
        if (by_rows)
            pack_rows(plan, first, i % units, to);
        else
            mgx_gemm_pack_panel(plan, first, d->k, i % units, to + i % units * panel_bytes);
    }
}

void mgx_gemm_pack(const struct mgx_gemm_plan *plan, const void *b, void *packed)
{
    mgx_gemm_pack_part(plan, b, packed, 0, 1);
}
