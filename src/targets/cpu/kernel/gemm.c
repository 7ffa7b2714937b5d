// SPDX-License-Identifier: MIT
// Matrix multiplication: planning and the loops around the micro-kernel; see gemm.h.
//
//     unit: one batch, a range of rows, a range of panels; a task is a run of units
//       block of rows: A (or its copy) stays in L2
//         block of depth: so that a panel fits L2 too
//           panel
//             tile
#include "targets/cpu/kernel/gemm.h"

#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "targets/cpu/kernel/convert.h"
#include "targets/cpu/kernel/copy_rows.h"
#include "targets/cpu/kernel/output.h"
#include "targets/cpu/kernel/split.h"

// --- the plan ---

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
};

static const int64_t GROUP_BYTES = 4;

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

// Packed batches: one matrix per combination of the batch dimensions B really has.
static int64_t packed_index(const struct mgx_gemm_desc *d, const int64_t at[MGX_GEMM_BATCH])
{
    int64_t index = 0;
    for (int i = 0; i < MGX_GEMM_BATCH; i++)
        if (d->b_batch[i] && d->batch[i] > 1)
            index = index * d->batch[i] + at[i];
    return index;
}

static int64_t packed_count(const struct mgx_gemm_desc *d)
{
    int64_t count = 1;
    for (int i = 0; i < MGX_GEMM_BATCH; i++)
        if (d->b_batch[i] && d->batch[i] > 1)
            count *= d->batch[i];
    return count;
}

// Rows of 32 bits of a whole panel: what sums start with, then the depth.
static int64_t panel_rows(const struct mgx_gemm_plan *plan)
{
    return plan->groups + plan->kernel->starts;
}

static bool is_narrow(const struct mgx_gemm_plan *plan)
{
    return plan->desc.narrow.kind != MGX_NARROW_NONE;
}

// Whether panels are made in scratch as they come.
static bool makes_panels(const struct mgx_gemm_plan *plan)
{
    return !plan->desc.packed || is_narrow(plan);
}

static bool matrix_bytes(const struct mgx_gemm_plan *plan, size_t *bytes)
{
    const struct mgx_gemm_desc *d = &plan->desc;
    return is_narrow(plan) ? mgx_narrow_bytes(&d->narrow, plan->kernel, d->n, bytes)
                           : mgx_panels_bytes(plan->kernel, panel_rows(plan), d->n, bytes);
}

// Matrices follow each other 64 bytes aligned.
static size_t packed_step(const struct mgx_gemm_plan *plan)
{
    size_t bytes = 0;
    matrix_bytes(plan, &bytes);
    return mgx_align64(bytes);
}

static bool all_floats(const struct mgx_gemm_desc *d)
{
    return d->a_type == MGX_KERNEL_F32 && d->b_type == MGX_KERNEL_F32;
}

static enum mgx_gemm_method choose_method(const struct mgx_gemm_plan *plan)
{
    const struct mgx_gemm_desc *d = &plan->desc;
    if (is_narrow(plan) && d->m <= MGX_NARROW_ROWS)
        return MGX_GEMM_NARROW;
    if (d->packed || d->m > FEW_ROWS || !all_floats(d) || plan->kernel->type != MGX_KERNEL_F32)
        return MGX_GEMM_PANELS;
    if (d->b_col == 1)
        return MGX_GEMM_ROWS;
    return d->b_row == 1 && d->a_col == 1 ? MGX_GEMM_DOT : MGX_GEMM_PANELS;
}

static void choose_tasks(struct mgx_gemm_plan *plan)
{
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
    return !plan->converts_c && !plan->desc.hook_only && !plan->kernel->integer;
}

static int64_t l2_bytes(const struct mgx_gemm_plan *plan)
{
    return plan->kernel->cols == MGX_TILE_MAX_COLS ? WIDE_L2_BYTES : L2_BYTES;
}

// Rows of a block whose depth is cut into `blocks`, and that depth.
static void cut_depth(struct mgx_gemm_plan *plan, int64_t blocks)
{
    const int64_t depth = (mgx_ceil_div(plan->groups, blocks) + 3) & ~(int64_t)3;
    plan->block_depth = blocks > 1 ? depth : plan->groups;
    const int64_t row = mgx_max_i64(plan->block_depth, 1) * GROUP_BYTES;
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

// The cut that moves least. It depends on the sizes alone, never on the threads: sums are rounded
// once more for every block of depth.
static void choose_blocks(struct mgx_gemm_plan *plan)
{
    enum { MAX_CUTS = 16 };
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

static bool copies_a(const struct mgx_gemm_plan *plan)
{
    const struct mgx_gemm_desc *d = &plan->desc;
    return (d->a_col != 1 && d->k > 1) || d->a_type != plan->kernel->a_type ||
           d->k % plan->kernel->group || rows_collide(plan);
}

// What a thread's copy of A holds: several parts in a row read the same rows of A, and the second
// finds them copied.
struct held {
    _Alignas(64) const char *a;
    int64_t row, rows, depth; // `depth` groups of these rows, from the first
};

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
    if (copies_a(plan) && !copy_fits(plan, &a))
        return false;
    if (makes_panels(plan) && !mgx_mul_size((size_t)plan->kernel->cols,
                                            row + (size_t)(plan->kernel->starts * GROUP_BYTES), &b))
        return false;
    if (is_narrow(plan) && b < mgx_narrow_scratch(&plan->desc.narrow))
        b = mgx_narrow_scratch(&plan->desc.narrow);
    plan->thread_workspace = mgx_align64(a) + mgx_align64(b);
    return true;
}

static bool is_trivial(const struct mgx_epilogue *e)
{
    return e->act == MGX_ACT_NONE && !e->residual && !e->hook;
}

static int64_t padded(int64_t n, int cols)
{
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
    const struct mgx_gemm_kernel *usual = mgx_integer_kernel(type, d->isa, d->b_type, d->b_zero);
    const int cols = d->panel ? d->panel : MGX_TILE_MAX_COLS;
    const struct mgx_gemm_kernel *other = mgx_gemm_kernel_of(type, d->isa, cols);
    if (!usual || !other || other->isa != usual->isa)
        return usual;
    return d->panel || wants_wide(d, usual, other) ? other : usual;
}

static enum mgx_status choose_kernel(struct mgx_gemm_plan *plan, struct mgx_diag *diag)
{
    const struct mgx_gemm_desc *d = &plan->desc;
    plan->kernel = find_kernel(d, d->type);
    if (!plan->kernel && d->type == MGX_KERNEL_BF16)
        plan->kernel = find_kernel(d, MGX_KERNEL_F32);
    const struct mgx_gemm_kernel *k = plan->kernel;
    const bool integers = d->c_type == MGX_KERNEL_S32, bytes = mgx_kernel_size(d->c_type) == 1;
    const bool mixed = k && (mgx_kernel_is_float(d->a_type) == k->integer ||
                             mgx_kernel_is_float(d->b_type) == k->integer);
    if (!k || mixed || !mgx_convert(d->isa, d->a_type, k->a_type) ||
        !mgx_convert(d->isa, d->b_type, k->b_type) || (integers && !k->integer) ||
        (!integers && !mgx_convert(d->isa, MGX_KERNEL_F32, d->c_type)) ||
        (integers && (!is_trivial(&d->epilogue) || d->hook_only)) ||
        bytes != (d->epilogue.requant != NULL))
        return mgx_fail(diag, MGX_UNSUPPORTED, "no kernel multiplies types %d and %d to %d",
                        d->a_type, d->b_type, d->c_type);
    plan->converts_c = !integers && d->c_type != MGX_KERNEL_F32 && !d->hook_only;
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
    assert(!is_narrow(plan) || (d->packed && plan->kernel->type == MGX_KERNEL_F32 &&
                                packed_count(d) == 1 && d->narrow.depth == d->k));
    size_t bytes;
    if (!counts_fit(d, &batches) || !matrix_bytes(plan, &bytes) ||
        !mgx_mul_size(packed_step(plan), (size_t)packed_count(d), &bytes))
        return mgx_fail(diag, MGX_LIMIT, "matrix sizes %lld x %lld x %lld do not fit",
                        (long long)d->m, (long long)d->n, (long long)d->k);
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

// Packs `depth` of one panel from `b`, its starts first when it has such.
static void pack_panel(const struct mgx_gemm_plan *plan, const char *b, int64_t depth, int64_t p,
                       char *panel)
{
    const struct mgx_gemm_desc *d = &plan->desc;
    const int width = mgx_panel_width(plan->kernel, d->n, p);
    char *data = panel + (plan->kernel->starts ? width * GROUP_BYTES : 0);
    mgx_panel_pack(plan->kernel, b, d->b_type, d->b_row, d->b_col, depth, d->n, p, data);
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
    assert(d->narrow.kind != MGX_NARROW_BLOCKS && d->b_type == MGX_KERNEL_F32);
    for (int64_t i = mgx_part_begin(units, part, parts); i < end; i++)
        mgx_narrow_pack(&d->narrow, plan->kernel, b, d->b_row, d->b_col, i * ROWS,
                        mgx_min_i64(ROWS, d->k - i * ROWS), d->n, packed);
}

// B is read from front to back: by panels where its columns are contiguous, else by blocks of rows.
enum { PACK_ROWS = 16 };

static void pack_rows(const struct mgx_gemm_plan *plan, const char *b, int64_t block, char *to)
{
    const struct mgx_gemm_desc *d = &plan->desc;
    const struct mgx_gemm_kernel *kernel = plan->kernel;
    const int64_t panels = mgx_ceil_div(d->n, kernel->cols), first = block * PACK_ROWS;
    const int64_t depth = mgx_min_i64(PACK_ROWS, d->k - first);
    b += first * d->b_row * mgx_kernel_size(d->b_type);
    for (int64_t p = 0; p < panels; p++) {
        const int64_t panel = p * kernel->cols * panel_rows(plan);
        const int64_t row = first / kernel->group * mgx_panel_width(kernel, d->n, p);
        mgx_panel_pack(kernel, b, d->b_type, d->b_row, d->b_col, depth, d->n, p,
                       to + (panel + row) * GROUP_BYTES);
    }
}

void mgx_gemm_pack_part(const struct mgx_gemm_plan *plan, const void *b, void *packed, int part,
                        int parts)
{
    const struct mgx_gemm_desc *d = &plan->desc;
    if (is_narrow(plan)) {
        pack_narrow(plan, b, packed, part, parts);
        return;
    }
    const int64_t panels = mgx_ceil_div(d->n, plan->kernel->cols);
    const int64_t panel_bytes = plan->kernel->cols * panel_rows(plan) * GROUP_BYTES;
    const bool by_rows = d->b_col == 1 && !plan->kernel->starts;
    const int64_t units = by_rows ? mgx_ceil_div(d->k, PACK_ROWS) : panels;
    const int64_t all = units * packed_count(d), end = mgx_part_begin(all, part + 1, parts);
    for (int64_t i = mgx_part_begin(all, part, parts); i < end; i++) {
        const char *first =
            (const char *)b + matrix_start(d, i / units) * mgx_kernel_size(d->b_type);
        char *to = (char *)packed + packed_step(plan) * (size_t)(i / units);
        if (by_rows)
            pack_rows(plan, first, i % units, to);
        else
            pack_panel(plan, first, d->k, i % units, to + i % units * panel_bytes);
    }
}

void mgx_gemm_pack(const struct mgx_gemm_plan *plan, const void *b, void *packed)
{
    mgx_gemm_pack_part(plan, b, packed, 0, 1);
}

// --- running ---

struct job {
    const struct mgx_gemm_plan *plan;
    const struct mgx_gemm_args *args;
};

// One unit: its batch's operands and its rectangle.
struct part {
    const struct mgx_gemm_plan *plan;
    const struct mgx_gemm_args *args;
    const char *a, *b, *residual;
    char *c;
    int64_t a_size, b_size, c_size; // bytes of an element
    int64_t first_row;              // of the batch, in the output seen as one matrix
    int64_t m_begin, m_end, p_begin, p_end, panels;
    struct mgx_ahead next; // after the part
    char *a_copy, *b_copy;
    struct held *held; // NULL: nothing is
    int thread;
    // of the current block
    int64_t row, rows; // in this batch
    int64_t k, depth;  // in groups
    const char *a_block;
    int64_t a_row; // bytes
};

static void copy_block(const struct part *part, char *to_block)
{
    const struct mgx_gemm_plan *plan = part->plan;
    const struct mgx_gemm_desc *d = &plan->desc;
    const int64_t first = part->k * plan->kernel->group;
    const struct mgx_copy_rows copy = {
        .isa = d->isa,
        .from = d->a_type,
        .to = plan->kernel->a_type,
        .row = d->a_row,
        .col = d->a_col,
        .rows = part->rows,
        .elements = mgx_min_i64(part->depth * plan->kernel->group, d->k - first),
        .to_row = plan->copy_row,
        .to_bytes = part->depth * GROUP_BYTES,
    };
    mgx_copy_rows(&copy, part->a_block, to_block);
}

// Whether this thread copied the current block for an earlier part; if not, it is going to.
static bool is_held(const struct part *part)
{
    struct held *held = part->held;
    if (!held)
        return false;
    const bool same = held->a == part->a && held->row == part->row && held->rows == part->rows;
    if (same && held->depth > part->k)
        return true;
    *held = (struct held){part->a, part->row, part->rows, part->k + part->depth};
    return false;
}

static void set_a(struct part *part)
{
    const struct mgx_gemm_plan *plan = part->plan;
    const struct mgx_gemm_desc *d = &plan->desc;
    const int64_t first = part->k * plan->kernel->group;
    part->a_block = part->a + (part->row * d->a_row + first * d->a_col) * part->a_size;
    part->a_row = d->a_row * part->a_size;
    if (!part->a_copy || !part->depth)
        return;
    char *to = part->a_copy;
    if (plan->holds_a)
        to += part->k / plan->block_depth * plan->copy_bytes;
    if (!is_held(part))
        copy_block(part, to);
    part->a_block = to;
    part->a_row = plan->copy_row;
}

// Where panel p has its depth from k on.
static const char *panel_at(const struct part *part, int64_t p, int64_t k)
{
    const struct mgx_gemm_plan *plan = part->plan;
    const struct mgx_gemm_kernel *kernel = plan->kernel;
    const int64_t row = mgx_panel_width(kernel, plan->desc.n, p) * GROUP_BYTES;
    return part->b + p * kernel->cols * panel_rows(plan) * GROUP_BYTES + (kernel->starts + k) * row;
}

// Panel p from k on, as much of it as is read at once.
static struct mgx_ahead read_at(const struct part *part, int64_t p, int64_t k)
{
    const struct mgx_gemm_plan *plan = part->plan;
    const int64_t depth = mgx_min_i64(plan->block_depth, plan->groups - k);
    if (is_narrow(plan)) {
        const struct mgx_narrow *form = &plan->desc.narrow;
        const int width = mgx_panel_width(plan->kernel, plan->desc.n, p);
        const int64_t whole = mgx_narrow_panel(form, width), all = mgx_max_i64(plan->groups, 1);
        return (struct mgx_ahead){part->b + p * mgx_narrow_panel(form, plan->kernel->cols) +
                                      whole * k / all,
                                  whole * depth / all};
    }
    return (struct mgx_ahead){panel_at(part, p, k),
                              depth * mgx_panel_width(plan->kernel, plan->desc.n, p) * GROUP_BYTES};
}

// What is read after panel p of this block: the next panel, the first one again for the next depth
// or the next rows, or what follows the part.
static struct mgx_ahead read_after(const struct part *part, int64_t p)
{
    if (!part->plan->desc.packed)
        return (struct mgx_ahead){NULL, 0};
    if (p + 1 < part->p_end)
        return read_at(part, p + 1, part->k);
    if (part->k + part->depth < part->plan->groups)
        return read_at(part, part->p_begin, part->k + part->depth);
    if (part->row + part->rows < part->m_end)
        return read_at(part, part->p_begin, 0);
    return part->next;
}

// The panel's part of the current depth.
static void set_panel(const struct part *part, int64_t p, struct mgx_tile_args *args)
{
    const struct mgx_gemm_plan *plan = part->plan;
    const struct mgx_gemm_desc *d = &plan->desc;
    const struct mgx_gemm_kernel *kernel = plan->kernel;
    const int64_t col = p * kernel->cols, left = d->n - col;
    const int width = mgx_panel_width(kernel, d->n, p);
    args->cols = left < kernel->cols ? (int)left : kernel->cols;
    args->b_row = width * GROUP_BYTES;
    args->b_panel = kernel->cols * panel_rows(plan) * GROUP_BYTES;
    args->start_panel = part->args->start ? kernel->cols * GROUP_BYTES : args->b_panel;
    args->bias = part->args->bias && part->k == 0 ? part->args->bias + col : NULL;
    args->scale = kernel->integer && part->args->scale ? part->args->scale + col : NULL;
    if (is_narrow(plan)) {
        const struct mgx_narrow *form = &d->narrow;
        mgx_narrow_of(kernel)->unpack(form, part->b + p * mgx_narrow_panel(form, kernel->cols),
                                      width, part->k, part->depth, (float *)(void *)part->b_copy);
        args->b = part->b_copy;
        args->start = NULL;
        return;
    }
    const char *panel = part->b + p * args->b_panel;
    const int64_t starts = kernel->starts * args->b_row;
    args->b = panel + starts + part->k * args->b_row;
    if (!d->packed) {
        const char *raw = part->b + part->k * kernel->group * d->b_row * part->b_size;
        if (plan->method == MGX_GEMM_ROWS && left >= kernel->cols) {
            args->b = raw + col * part->b_size;
            args->b_row = d->b_row * part->b_size;
            args->b_panel = kernel->cols * GROUP_BYTES;
            return;
        }
        const int64_t rest = d->k - part->k * kernel->group;
        pack_panel(plan, raw, mgx_min_i64(part->depth * kernel->group, rest), p, part->b_copy);
        panel = part->b_copy;
        args->b = panel + starts;
    }
    args->start = starts ? (const int32_t *)(const void *)panel : NULL;
    if (part->args->start)
        args->start = part->args->start + col;
}

// Tiles that do not end in C as they are, and their residuals.
struct scratch_tile {
    _Alignas(64) float values[MGX_TILE_MAX_ROWS * MGX_TILE_MAX_COLS];
    _Alignas(64) float residual[MGX_TILE_MAX_ROWS * MGX_TILE_MAX_COLS];
};

// The rectangle of C being made.
struct place {
    int64_t row, col;
    int rows, cols;
};

static const char *residual_at(const struct part *part, int64_t row, int64_t col)
{
    const struct mgx_gemm_desc *d = &part->plan->desc;
    return part->residual ? part->residual + (row * d->residual_row + col) * part->c_size : NULL;
}

// The residual as floats: args->residual[0], whether the registers are to add it or not.
static void set_residual(const struct part *part, const struct place *at,
                         struct mgx_tile_args *args, struct scratch_tile *scratch)
{
    const struct mgx_gemm_desc *d = &part->plan->desc;
    args->residual[0] = residual_at(part, at->row, at->col);
    if (d->epilogue.residual == MGX_RESIDUAL_BYTES)
        args->residual[0] = NULL;
    args->residual_row = d->residual_row * part->c_size;
    if (!args->residual[0] || d->c_type == MGX_KERNEL_F32)
        return;
    const mgx_convert_fn convert = mgx_convert(d->isa, d->c_type, MGX_KERNEL_F32);
    for (int i = 0; i < at->rows; i++)
        convert(args->residual[0] + i * args->residual_row, scratch->residual + i * at->cols,
                at->cols);
    args->residual[0] = (const char *)scratch->residual;
    args->residual_row = at->cols * GROUP_BYTES;
}

// Sets the operands of a rectangle; returns its residual as floats, for what follows the registers.
static const char *set_rows(const struct part *part, const struct place *at,
                            struct mgx_tile_args *args, struct scratch_tile *scratch)
{
    const struct mgx_gemm_desc *d = &part->plan->desc;
    const int half = part->plan->kernel->half;
    args->a_row = part->a_row;
    args->a[0] = part->a_block + (at->row - part->row) * part->a_row;
    args->a[1] = args->a[0] + half * args->a_row;
    if (d->hook_only || part->plan->converts_c) {
        args->c[0] = (char *)scratch->values;
        args->c_row = at->cols * GROUP_BYTES;
    } else {
        args->c[0] = part->c + (at->row * d->c_row + at->col) * part->c_size;
        args->c_row = d->c_row * part->c_size;
    }
    args->c[1] = args->c[0] + half * args->c_row;
    set_residual(part, at, args, scratch);
    const char *residual = args->residual[0];
    if (part->k > 0) { // what earlier blocks of depth have summed
        args->residual[0] = args->c[0];
        args->residual_row = args->c_row;
    } else if (d->epilogue.residual != MGX_RESIDUAL_BEFORE)
        args->residual[0] = NULL;
    args->residual[1] = args->residual[0] ? args->residual[0] + half * args->residual_row : NULL;
    return residual;
}

static void store_converted(const struct part *part, const struct place *at, const float *values)
{
    const struct mgx_gemm_desc *d = &part->plan->desc;
    const mgx_convert_fn convert = mgx_convert(d->isa, MGX_KERNEL_F32, d->c_type);
    char *c = part->c + (at->row * d->c_row + at->col) * part->c_size;
    if (d->epilogue.requant) {
        mgx_requant_of(d->isa)(d->epilogue.requant, values, at->cols, at->rows, at->cols,
                               residual_at(part, at->row, at->col), d->residual_row, c, d->c_row);
        return;
    }
    for (int i = 0; i < at->rows; i++)
        convert(values + i * at->cols, c + i * d->c_row * part->c_size, at->cols);
}

static void finish_tile(const struct part *part, const struct mgx_tile_args *args,
                        const struct place *at, const char *residual)
{
    const struct mgx_gemm_plan *plan = part->plan;
    const struct mgx_epilogue *e = &plan->desc.epilogue;
    if (part->k + part->depth < plan->groups)
        return;
    if (!mgx_output_simple(e)) {
        const bool scratch = plan->desc.c_type != MGX_KERNEL_F32;
        const struct mgx_tile tile = {
            .data = (float *)(void *)args->c[0],
            .stride = args->c_row / GROUP_BYTES,
            .row = part->first_row + at->row,
            .row_step = 1,
            .col = at->col,
            .rows = at->rows,
            .cols = at->cols,
            .thread = part->thread,
        };
        mgx_output_finish(plan->kernel, e, &tile, (const float *)(const void *)residual,
                          scratch ? at->cols : plan->desc.residual_row, part->args->hook_user);
    }
    if (plan->converts_c)
        store_converted(part, at, (const float *)(const void *)args->c[0]);
}

static void run_panel(const struct part *part, int64_t p, struct mgx_tile_args *args)
{
    const struct mgx_gemm_kernel *kernel = part->plan->kernel;
    const mgx_tile_fn *tiles = args->cols > kernel->cols / 2 ? kernel->wide : kernel->narrow;
    const int64_t count = mgx_ceil_div(part->rows, kernel->rows);
    const struct mgx_ahead ahead = read_after(part, p);
    const struct mgx_ahead_step step = mgx_ahead_share(ahead, part->depth, count);
    int64_t left = ahead.bytes;
    args->ahead = ahead.bytes ? ahead.at : args->b;
    struct scratch_tile scratch;
    struct place at = {.col = p * kernel->cols, .cols = args->cols};
    for (int64_t t = 0; t < count; t++) {
        at.row = part->row + part->rows * t / count;
        at.rows = (int)(part->row + part->rows * (t + 1) / count - at.row);
        const char *residual = set_rows(part, &at, args, &scratch);
        args->ahead_step = left > 0 ? step.bytes : 0;
        tiles[at.rows](args);
        finish_tile(part, args, &at, residual);
        args->ahead += left > 0 ? step.tile_bytes : 0;
        left -= step.tile_bytes;
    }
}

// Panels from `p` for one or two rows at a time, as many as are whole; returns the first one left.
static int64_t run_few(const struct part *part, int64_t p, struct mgx_tile_args *args)
{
    const struct mgx_gemm_kernel *kernel = part->plan->kernel;
    const int panels = kernel->few_panels[part->rows];
    struct scratch_tile scratch;
    struct place at = {.row = part->row, .rows = (int)part->rows, .cols = panels * kernel->cols};
    for (; p + panels <= part->p_end && (p + panels) * kernel->cols <= part->plan->desc.n;
         p += panels) {
        at.col = p * kernel->cols;
        set_panel(part, p, args);
        const char *residual = set_rows(part, &at, args, &scratch);
        kernel->few[part->rows](args);
        finish_tile(part, args, &at, residual);
    }
    return p;
}

// What a product with blocks wants to know of its rows, in the place of a panel.
static void set_narrow_rows(const struct part *part, struct mgx_narrow_args *args)
{
    const struct mgx_narrow *form = args->form;
    const int64_t blocks = mgx_narrow_blocks(form), pairs_row = mgx_narrow_pairs(form);
    float *sums = (float *)(void *)part->b_copy;
    int32_t *pairs = (int32_t *)(void *)(sums + MGX_NARROW_ROWS * 2 * blocks);
    bool whole = form->fast;
    args->sums = sums;
    args->sums_row = 2 * blocks;
    for (int r = 0; whole && r < part->rows; r++)
        whole = mgx_narrow_whole(form, args->a + r * args->a_row, pairs + r * pairs_row,
                                 sums + r * args->sums_row);
    args->pairs = whole ? pairs : NULL;
    args->pairs_row = pairs_row;
    for (int r = 0; !whole && r < part->rows; r++)
        mgx_narrow_of(part->plan->kernel)
            ->sums(args->a + r * args->a_row, form->depth, form->block, sums + r * args->sums_row);
}

// Few rows times narrow panels, two at a time where there is one row.
static void run_narrow(struct part *part)
{
    const struct mgx_gemm_plan *plan = part->plan;
    const struct mgx_gemm_desc *d = &plan->desc;
    const struct mgx_narrow *form = &d->narrow;
    const struct mgx_narrow_kernel *narrow = mgx_narrow_of(plan->kernel);
    const int cols = plan->kernel->cols, rows = (int)part->rows;
    struct mgx_tile_args tile = {.taps = NULL};
    struct scratch_tile scratch;
    struct mgx_narrow_args args = {.form = form,
                                   .panel_bytes = mgx_narrow_panel(form, cols),
                                   .a = (const float *)(const void *)part->a_block,
                                   .a_row = part->a_row / GROUP_BYTES};
    mgx_output_clamp(&d->epilogue, &tile);
    args.clamp = tile.clamp;
    args.low = tile.low;
    args.high = tile.high;
    if (form->kind == MGX_NARROW_BLOCKS)
        set_narrow_rows(part, &args);
    for (int64_t p = part->p_begin; p < part->p_end;) {
        args.width = mgx_panel_width(plan->kernel, d->n, p);
        const int panels =
            rows == 1 && p + 1 < part->p_end && mgx_panel_width(plan->kernel, d->n, p + 1) == cols
                ? 2
                : 1;
        struct place at = {.row = part->row, .col = p * cols, .rows = rows};
        at.cols = (int)mgx_min_i64(d->n - at.col, panels * cols);
        const char *residual = set_rows(part, &at, &tile, &scratch);
        args.panel = part->b + p * args.panel_bytes;
        args.bias = part->args->bias ? part->args->bias + at.col : NULL;
        args.residual = (const float *)(const void *)tile.residual[0];
        args.residual_row = tile.residual_row / GROUP_BYTES;
        args.c = (float *)(void *)tile.c[0];
        args.c_row = tile.c_row / GROUP_BYTES;
        args.cols = at.cols;
        narrow->product(&args, rows, panels);
        finish_tile(part, &tile, &at, residual);
        p += panels;
    }
}

static void run_block(struct part *part)
{
    const struct mgx_gemm_plan *plan = part->plan;
    const int64_t tap = 0;
    struct mgx_tile_args args = {.taps = &tap, .tap_count = 1, .depth = part->depth};
    set_a(part);
    if (part->k + part->depth == plan->groups)
        mgx_output_clamp(&plan->desc.epilogue, &args);
    int64_t p = part->p_begin;
    if (plan->method == MGX_GEMM_NARROW) {
        run_narrow(part);
        return;
    }
    if (part->rows <= 2 && !is_narrow(plan) && (plan->desc.packed || plan->method == MGX_GEMM_ROWS))
        p = run_few(part, p, &args);
    for (; p < part->p_end; p++) {
        set_panel(part, p, &args);
        run_panel(part, p, &args);
    }
}

static void run_blocks(struct part *part)
{
    const struct mgx_gemm_plan *plan = part->plan;
    const int64_t m = part->m_end - part->m_begin;
    const int64_t row_blocks = mgx_ceil_div(m, plan->block_rows);
    for (int64_t r = 0; r < row_blocks; r++) {
        part->row = part->m_begin + m * r / row_blocks;
        part->rows = part->m_begin + m * (r + 1) / row_blocks - part->row;
        part->k = 0;
        do { // once when there is no depth at all: the sums are bias alone
            part->depth = mgx_min_i64(plan->block_depth, plan->groups - part->k);
            run_block(part);
            part->k += part->depth;
        } while (part->k < plan->groups);
    }
}

// Dot products, four columns at a time; all rows (FEW_ROWS at most) at once.
static void run_dots(struct part *part)
{
    const struct mgx_gemm_plan *plan = part->plan;
    const struct mgx_gemm_desc *d = &plan->desc;
    const int64_t tap = 0, end = mgx_min_i64(part->p_end * plan->kernel->cols, d->n);
    struct mgx_tile_args args = {.taps = &tap, .tap_count = 1, .depth = d->k};
    struct scratch_tile scratch;
    struct place at = {.row = part->m_begin, .rows = (int)(part->m_end - part->m_begin)};
    mgx_output_clamp(&d->epilogue, &args);
    part->a_block = part->a;
    part->a_row = d->a_row * part->a_size;
    part->depth = plan->groups;
    part->row = 0;
    for (at.col = part->p_begin * plan->kernel->cols; at.col < end; at.col += 4) {
        args.cols = at.cols = end - at.col < 4 ? (int)(end - at.col) : 4;
        args.b = part->b + at.col * d->b_col * part->b_size;
        args.b_row = d->b_col * part->b_size;
        args.bias = part->args->bias ? part->args->bias + at.col : NULL;
        const char *residual = set_rows(part, &at, &args, &scratch);
        plan->kernel->dot(&args, at.rows);
        finish_tile(part, &args, &at, residual);
    }
}

// The place of batch number `batch` along each dimension.
static void batch_at(const struct mgx_gemm_desc *d, int64_t batch, int64_t at[MGX_GEMM_BATCH])
{
    for (int i = MGX_GEMM_BATCH - 1; i >= 0; i--) {
        const int64_t size = d->batch[i] ? d->batch[i] : 1;
        at[i] = batch % size;
        batch /= size;
    }
}

// Moves the operands to batch number `batch`.
static void set_batch(struct part *part, int64_t batch)
{
    const struct mgx_gemm_desc *d = &part->plan->desc;
    int64_t at[MGX_GEMM_BATCH];
    batch_at(d, batch, at);
    for (int i = 0; i < MGX_GEMM_BATCH; i++) {
        part->a += at[i] * d->a_batch[i] * part->a_size;
        if (!d->hook_only)
            part->c += at[i] * d->c_batch[i] * part->c_size;
        if (part->residual)
            part->residual += at[i] * d->residual_batch[i] * part->c_size;
        part->b += d->packed ? 0 : at[i] * d->b_batch[i] * part->b_size;
    }
    if (d->packed)
        part->b += (size_t)packed_index(d, at) * packed_step(part->plan);
    part->first_row = batch * d->m;
}

static void set_scratch(struct part *part)
{
    const struct mgx_gemm_plan *plan = part->plan;
    if (!plan->thread_workspace)
        return;
    char *own = (char *)part->args->workspace + plan->thread_workspace * (size_t)part->thread;
    const int64_t rows = plan->block_depth + plan->kernel->starts;
    size_t b = makes_panels(plan) ? (size_t)(plan->kernel->cols * rows * GROUP_BYTES) : 0;
    if (is_narrow(plan) && b < mgx_narrow_scratch(&plan->desc.narrow))
        b = mgx_narrow_scratch(&plan->desc.narrow);
    part->b_copy = own;
    if (!copies_a(plan))
        return;
    own += mgx_align64(b);
    part->held = plan->holds_a ? (struct held *)(void *)own : NULL;
    part->a_copy = own + sizeof(struct held);
}

// What lies in the workspace is of another run.
static void hold_nothing(const struct mgx_gemm_plan *plan, const struct mgx_gemm_args *args,
                         int threads)
{
    struct part part = {.plan = plan, .args = args};
    for (; plan->holds_a && part.thread < threads; part.thread++) {
        set_scratch(&part);
        *part.held = (struct held){NULL, 0, 0, 0};
    }
}

static void run_unit(const struct job *job, int64_t unit, struct mgx_ahead next, int thread)
{
    const struct mgx_gemm_plan *plan = job->plan;
    const struct mgx_gemm_args *args = job->args;
    const int64_t parts = (int64_t)plan->m_parts * plan->n_parts, in_batch = unit % parts;
    const int64_t i = in_batch / plan->n_parts, j = in_batch % plan->n_parts;
    struct part part = {
        .plan = plan,
        .args = args,
        .a = args->a,
        .b = args->b,
        .residual = plan->desc.epilogue.residual ? args->residual : NULL,
        .c = args->c,
        .a_size = mgx_kernel_size(plan->desc.a_type),
        .b_size = mgx_kernel_size(plan->desc.b_type),
        .c_size = mgx_kernel_size(plan->desc.c_type),
        .panels = mgx_ceil_div(plan->desc.n, plan->kernel->cols),
        .next = next,
        .thread = thread,
    };
    part.m_begin = plan->desc.m * i / plan->m_parts;
    part.m_end = plan->desc.m * (i + 1) / plan->m_parts;
    part.p_begin = part.panels * j / plan->n_parts;
    part.p_end = part.panels * (j + 1) / plan->n_parts;
    set_scratch(&part);
    set_batch(&part, unit / parts);
    if (plan->method == MGX_GEMM_DOT)
        run_dots(&part);
    else
        run_blocks(&part);
}

// The first panel of a unit; it follows the unit before.
static struct mgx_ahead first_read(const struct mgx_gemm_plan *plan, const void *packed,
                                   int64_t unit)
{
    const int64_t parts = (int64_t)plan->m_parts * plan->n_parts, batch = unit / parts;
    const int64_t panels = mgx_ceil_div(plan->desc.n, plan->kernel->cols);
    int64_t at[MGX_GEMM_BATCH];
    if (!plan->desc.packed || unit >= plan->units)
        return (struct mgx_ahead){NULL, 0};
    batch_at(&plan->desc, batch, at);
    const struct part part = {.plan = plan,
                              .b = (const char *)packed +
                                   (size_t)packed_index(&plan->desc, at) * packed_step(plan)};
    return read_at(&part, panels * (unit % plan->n_parts) / plan->n_parts, 0);
}

struct mgx_ahead mgx_gemm_first_read(const struct mgx_gemm_plan *plan, const void *packed,
                                     int thread)
{
    const int64_t task = mgx_pool_first(plan->tasks, plan->desc.threads, thread);
    const struct mgx_ahead first =
        first_read(plan, packed, plan->tasks ? plan->units * task / plan->tasks : plan->units);
    return mgx_ahead_of(first.at, first.bytes);
}

static void run_task(void *user, int task, int thread)
{
    const struct job *job = user;
    const struct mgx_gemm_plan *plan = job->plan;
    const int64_t units = plan->units, tasks = plan->tasks;
    const int64_t end = units * (task + 1) / tasks;
    const int64_t last =
        units * mgx_pool_first(plan->tasks, plan->desc.threads, thread + 1) / tasks;
    for (int64_t unit = units * task / tasks; unit < end; unit++) {
        const bool leaves = unit + 1 == last && job->args->next;
        run_unit(job, unit,
                 leaves ? job->args->next[thread] : first_read(plan, job->args->b, unit + 1),
                 thread);
    }
}

void mgx_gemm_run(const struct mgx_gemm_plan *plan, const struct mgx_gemm_args *args,
                  struct mgx_pool *pool)
{
    assert(mgx_pool_threads(pool) <= mgx_max_i64(plan->desc.threads, 1));
    assert(!plan->kernel->integer || plan->desc.c_type == MGX_KERNEL_S32 || args->scale);
    if (!plan->desc.m || !plan->desc.n)
        return;
    struct job job = {plan, args};
    hold_nothing(plan, args, mgx_pool_threads(pool));
    mgx_pool_run(pool, plan->tasks, run_task, &job);
}
