// SPDX-License-Identifier: MIT
// Copies between any two layouts of one type: relayouts, pieces of a concat, contiguous, reshapes.
//
//     out[at0(i)] = in0[at1(i)]          i over the result in its order of memory
//
// Elements move as integers of their size, so types that kernels do not compute move as well. Four
// forms:
//
//     rows    where what lies together stays together (channels of a pixel, that are shuffled): rows go
//             through shared memory, 16 bytes a thread on both sides
//     runs    where both lie alike along the last axis, or the input is one element along it: 16 bytes a thread
//     tiles   where the input's last axis is another than the result's: 32 x 32 elements go through
//             shared memory, so that both are touched in their order
//     one     else: an element a thread
//
// A reshape is a copy between the two shapes over lengths that both are products of; where there
// are none, the element's number is taken apart twice.
#include <inttypes.h>
#include <string.h>

#include "op/op.h"
#include "targets/gpu/emit/loop.h"
#include "targets/gpu/emit/wide.h"
#include "targets/gpu/lower/lower.h"

enum { TILE = 32, TILE_THREADS = 256, TILE_FROM = 4096 };

// --- reshapes ---

// Splits both shapes, equal in number of elements, into axes of the same lengths. False where no
// lengths do.
static bool refine(const struct mgx_shape *a, const struct mgx_shape *b, struct mgx_shape *fine_a,
                   struct mgx_shape *fine_b)
{
    int64_t lens[MGX_MAX_RANK], to_a[MGX_MAX_RANK], to_b[MGX_MAX_RANK];
    int i = a->rank, j = b->rank, count = 0;
    int64_t la = 1, lb = 1, sa = 0, sb = 0;
    for (;;) {
        while (la == 1 && i > 0)
            la = a->lens[--i], sa = a->strides[i];
        while (lb == 1 && j > 0)
            lb = b->lens[--j], sb = b->strides[j];
        const int64_t n = la < lb ? la : lb;
        if (n == 1)
            break;
        if (la % n || lb % n || count == MGX_MAX_RANK)
            return false;
        lens[count] = n;
        to_a[count] = sa;
        to_b[count++] = sb;
        la /= n, sa *= n;
        lb /= n, sb *= n;
    }
    *fine_a = *fine_b = (struct mgx_shape){.type = a->type, .rank = count};
    for (int k = 0; k < count; k++) {
        fine_a->lens[k] = fine_b->lens[k] = lens[count - 1 - k];
        fine_a->strides[k] = to_a[count - 1 - k];
        fine_b->strides[k] = to_b[count - 1 - k];
    }
    fine_b->type = b->type;
    return true;
}

static void emit_renumbered(struct mgx_str *out, const struct mgx_shape *to,
                            const struct mgx_shape *from)
{
    mgx_str_put(out, "    i64 number = i, at0 = 0, at1 = 0;\n");
    for (int axis = to->rank - 1; axis >= 0; axis--)
        mgx_str_printf(
            out, "    at0 += number %% %" PRId64 " * %" PRId64 ";\n    number /= %" PRId64 ";\n",
            to->lens[axis], to->strides[axis], to->lens[axis]);
    mgx_str_put(out, "    number = i;\n");
    for (int axis = from->rank - 1; axis >= 0; axis--)
        mgx_str_printf(
            out, "    at1 += number %% %" PRId64 " * %" PRId64 ";\n    number /= %" PRId64 ";\n",
            from->lens[axis], from->strides[axis], from->lens[axis]);
}

// --- text ---

static const char *word_of(size_t size)
{
    return size == 1 ? "u8" : size == 2 ? "u16" : size == 4 ? "u32" : "u64";
}

static void emit_head(struct mgx_str *out, size_t size)
{
    const char *word = word_of(size);
    mgx_str_printf(out, "KERNEL void run(GLOBAL %s *out, const GLOBAL %s *in0)\n{\n", word, word);
}

static void emit_index(struct mgx_str *out, int64_t elements, int v)
{
    mgx_str_printf(out, "    const i64 i = ((i64)BLOCK * THREADS + THREAD) * %d;\n", v);
    mgx_str_printf(out, "    if (i >= %" PRId64 ")\n        return;\n", elements);
}

static void emit_move(struct mgx_str *out, size_t size)
{
    mgx_str_put(out, size == 16 ? "    out[2 * at0] = in0[2 * at1];\n" // two words
                                  "    out[2 * at0 + 1] = in0[2 * at1 + 1];\n}\n"
                                : "    out[at0] = in0[at1];\n}\n");
}

static void emit_runs(struct mgx_str *out, const struct gpu_loop *loop, size_t size, int v)
{
    emit_head(out, size);
    emit_index(out, loop->elements, v);
    gpu_emit_offsets(out, loop);
    if (v == 1) {
        emit_move(out, size);
        return;
    }
    const struct gpu_chunk chunk = {"c", word_of(size), v, (int)size};
    gpu_emit_chunk(out, &chunk);
    if (loop->strides[1][loop->rank - 1])
        gpu_emit_chunk_load(out, &chunk, "in0", "at1");
    else // one element, again and again
        mgx_str_printf(out, "    for (int k = 0; k < %d; k++)\n        c.v[k] = in0[at1];\n", v);
    gpu_emit_chunk_store(out, &chunk, "out", "at0");
    mgx_str_put(out, "}\n");
}

// --- tiles ---

// The axis along which the input's elements lie side by side, when tiles pay; -1 when not.
static int tile_axis(const struct gpu_loop *loop, size_t size)
{
    const int last = loop->rank - 1;
    if (loop->rank < 2 || size > 8 || loop->elements < TILE_FROM || loop->strides[0][last] != 1 ||
        loop->strides[1][last] <= 1 || loop->lens[last] < TILE / 4)
        return -1;
    for (int axis = 0; axis < last; axis++)
        if (loop->strides[1][axis] == 1 && loop->lens[axis] >= TILE / 4)
            return axis;
    return -1;
}

static void emit_tiles(struct mgx_str *out, const struct gpu_loop *loop, int axis, size_t size,
                       struct gpu_launch *how)
{
    const int last = loop->rank - 1;
    const int64_t la = loop->lens[last], lb = loop->lens[axis];
    const int64_t ta = (la + TILE - 1) / TILE, tb = (lb + TILE - 1) / TILE;
    struct gpu_loop rest = *loop;
    rest.elements = loop->elements / la / lb;
    rest.rank = 0;
    for (int k = 0; k < last; k++) {
        if (k == axis)
            continue;
        rest.lens[rest.rank] = loop->lens[k];
        for (int array = 0; array < 2; array++)
            rest.strides[array][rest.rank] = loop->strides[array][k];
        rest.rank++;
    }
    emit_head(out, size);
    mgx_str_printf(out, "    SHARED %s tile[%d][%d];\n", word_of(size), TILE, TILE + 1);
    mgx_str_printf(out,
                   "    const int x = THREAD %% %d, y = THREAD / %d;\n"
                   "    const int a = BLOCK %% %" PRId64 " * %d, b = BLOCK / %" PRId64
                   " %% %" PRId64 " * %d;\n    const int i = BLOCK / %" PRId64 ";\n",
                   TILE, TILE, ta, TILE, ta, tb, TILE, ta * tb);
    gpu_emit_offsets(out, &rest);
    mgx_str_printf(out,
                   "    for (int r = y; r < %d; r += THREADS / %d)\n"
                   "        if (a + r < %" PRId64 " && b + x < %" PRId64 ")\n"
                   "            tile[r][x] = in0[at1 + (i64)(a + r) * %" PRId64 " + b + x];\n"
                   "    BARRIER();\n",
                   TILE, TILE, la, lb, loop->strides[1][last]);
    mgx_str_printf(out,
                   "    for (int r = y; r < %d; r += THREADS / %d)\n"
                   "        if (a + x < %" PRId64 " && b + r < %" PRId64 ")\n"
                   "            out[at0 + (i64)(b + r) * %" PRId64 " + a + x] = tile[x][r];\n}\n",
                   TILE, TILE, la, lb, loop->strides[0][axis]);
    *how = (struct gpu_launch){.grid = {(unsigned)(ta * tb * rest.elements), 1, 1},
                               .block = {TILE_THREADS, 1, 1}};
}

// --- rows ---

// Do both lie densely along the axes behind the first one, and do rows of them follow each other?
static bool keeps_rows(const struct gpu_loop *loop, size_t size)
{
    enum { ROW_BYTES = 2048, LEAST = 16 };
    const int64_t row = loop->rank > 2 ? loop->elements / loop->lens[0] : 0;
    const int last = loop->rank - 1;
    if (!row || size > 8 || loop->elements < TILE_FROM || row * (int64_t)size > ROW_BYTES ||
        row * (int64_t)size < LEAST || loop->strides[0][0] != row || loop->strides[1][0] != row ||
        loop->strides[1][last] == 1)
        return false;
    for (int array = 0; array < 2; array++) {
        int64_t dense = 1;
        for (int found = 1; found < loop->rank; found++) {
            int axis = 1;
            while (axis < loop->rank && loop->strides[array][axis] != dense)
                axis++;
            if (axis == loop->rank)
                return false;
            dense *= loop->lens[axis];
        }
        if (dense != row)
            return false;
    }
    return true;
}

// Rows of a block: whole lines of 16 bytes, about as many as it has threads.
static int64_t rows_of(int64_t bytes)
{
    enum { LINE = 16 };
    int64_t rows = 1;
    while (rows * bytes % LINE)
        rows *= 2;
    const int64_t more = (int64_t)TILE_THREADS * LINE / (rows * bytes);
    return more > 1 ? rows * more : rows;
}

static void emit_rows(struct mgx_str *out, const struct gpu_loop *loop, size_t size,
                      struct gpu_launch *how)
{
    enum { LINE = 16 };
    const int64_t row = loop->elements / loop->lens[0], rows = rows_of(row * (int64_t)size);
    const int64_t all = rows * row, lines = all * (int64_t)size / LINE;
    struct gpu_loop inner = {.rank = loop->rank - 1, .count = 2, .elements = row};
    memcpy(inner.lens, loop->lens + 1, (size_t)inner.rank * sizeof *inner.lens);
    for (int array = 0; array < 2; array++)
        memcpy(inner.strides[array], loop->strides[array] + 1,
               (size_t)inner.rank * sizeof *inner.lens);
    const int v = LINE / (int)size;
    mgx_str_printf(out, "union lines {\n    wide16 w[%d];\n    %s v[%d];\n};\n", (int)lines,
                   word_of(size), (int)all);
    mgx_str_put(out, "FUNCTION int from_of(int j)\n{\n");
    gpu_emit_offsets_of(out, &inner, "j", "to");
    mgx_str_put(out, "    (void)to0;\n    return (int)to1;\n}\n");
    emit_head(out, size);
    mgx_str_printf(
        out,
        "    SHARED union lines near;\n    const i64 first = (i64)BLOCK * %d;\n"
        "    const i64 left = %" PRId64 " - first;\n"
        "    const int count = left < %d ? (int)left : %d;\n"
        "    const bool whole = count == %d && ((ADDRESS(in0) | ADDRESS(out)) & 15) == 0;\n"
        "    if (whole)\n        for (int k = THREAD; k < %d; k += THREADS)\n"
        "            near.w[k] = ((const GLOBAL wide16 *)(in0 + first))[k];\n"
        "    else\n        for (int k = THREAD; k < count; k += THREADS)\n"
        "            near.v[k] = in0[first + k];\n    BARRIER();\n",
        (int)all, loop->elements, (int)all, (int)all, (int)all, (int)lines);
    mgx_str_printf(out,
                   "    if (!whole) {\n        for (int k = THREAD; k < count; k += THREADS)\n"
                   "            out[first + k] = near.v[k / %d * %d + from_of(k %% %d)];\n"
                   "        return;\n    }\n",
                   (int)row, (int)row, (int)row);
    mgx_str_printf(out,
                   "    for (int k = THREAD; k < %d; k += THREADS) {\n"
                   "        union {\n            wide16 w;\n            %s v[%d];\n        } c;\n"
                   "#pragma unroll\n        for (int e = 0; e < %d; e++) {\n"
                   "            const int at = k * %d + e;\n"
                   "            c.v[e] = near.v[at / %d * %d + from_of(at %% %d)];\n        }\n"
                   "        ((GLOBAL wide16 *)(out + first))[k] = c.w;\n    }\n}\n",
                   (int)lines, word_of(size), v, v, v, (int)row, (int)row, (int)row);
    *how = (struct gpu_launch){.grid = {(unsigned)((loop->elements + all - 1) / all), 1, 1},
                               .block = {TILE_THREADS, 1, 1}};
}

// --- the kernel ---

static bool is_copy(const struct mgx_plan_offer *c)
{
    const struct mgx_op *op = c->copy_only ? NULL : c->ins->op;
    return c->copy_only || op == &mgx_op_contiguous || op == &mgx_op_identity ||
           op == &mgx_op_layout || (op->flags & MGX_OP_REGROUP);
}

static enum mgx_plan_answer take_renumbered(struct mgx_plan_offer *c, size_t size)
{
    struct mgx_str text = {0};
    const int64_t elements = mgx_shape_elements(c->out);
    emit_head(&text, size);
    emit_index(&text, elements, 1);
    emit_renumbered(&text, c->out, &c->in[0]);
    emit_move(&text, size);
    const struct gpu_launch how = gpu_launch_for(elements);
    c->detail = "one element a thread, renumbered";
    return gpu_take(c, &text, &how, NULL, 1);
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct gpu_loop loop;
    struct mgx_shape to, from;
    struct mgx_str text = {0};
    const size_t size = mgx_type_size(c->out->type);
    if (!is_copy(c) || !size || c->dynamic)
        return gpu_decline(c, "not a copy");
    if (mgx_shape_elements(c->out) == 0)
        to = from = mgx_shape_vector(c->out->type, 0);
    else if (mgx_shape_same_lens(c->out, &c->in[0]))
        to = *c->out, from = c->in[0];
    else if (!refine(c->out, &c->in[0], &to, &from))
        return take_renumbered(c, size);
    const struct mgx_shape *shapes[] = {&to, &from};
    const size_t sizes[] = {size, size};
    gpu_loop_make(&loop, shapes, 2);
    const int axis = tile_axis(&loop, size);
    struct gpu_launch how;
    if (keeps_rows(&loop, size)) {
        emit_rows(&text, &loop, size, &how);
        c->detail = "rows through shared memory";
    } else if (axis >= 0) {
        emit_tiles(&text, &loop, axis, size, &how);
        c->detail = "tiles through shared memory";
    } else {
        const int v = gpu_loop_vector(&loop, sizes, gpu_vector_for(loop.elements));
        emit_runs(&text, &loop, size, v);
        how = gpu_launch_for(loop.elements / v);
        c->detail = v > 1 ? "runs" : "one element a thread";
    }
    return gpu_take(c, &text, &how, NULL, 1);
}

const struct mgx_plan_kernel gpu_kernel_copy = {
    .name = "gpu::copy", .prepare = prepare, .run = gpu_run_call};
