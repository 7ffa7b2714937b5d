// SPDX-License-Identifier: MIT
// Products and convolutions with the element-wise instruction that follows them: kernel/gemm.gpu
// with its loads and its last line written for the instruction.
//
//     dot           rows x depth times depth x columns, for every batch entry
//     convolution   rows are the result's places in all images, depth is taps x channels of a
//                   group, columns are output channels of a group, batch entries are groups; matrix
//                   units take narrow groups together
//
// Any strides on any operand: a transposed operand or a channels-last image is but another load.
// Matrix units multiply where a card has them for the type (units.c) and there are enough rows and
// columns for them (gemm_units.gpu).
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "op/op.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/product.h"
#include "targets/gpu/lower/tail.h"
#include "targets/gpu/lower/units.h"

enum { TILE_DEPTH = 16, BYTES_DEPTH = 64 }; // of ordinary units

// --- the kernel ---

struct tile {
    int rows, columns;
    const struct gpu_units *units;    // NULL: ordinary ones
    int warps;                        // of matrix units
    int split;                        // gemm_units.gpu's SPLIT
    int warp_rows, warp_columns;      // of one of them
    bool a_rows_first, b_depth_first; // which index neighbouring threads load along
    int by[2], wide[2];               // gemm_operand.gpu's BY and WIDE
    bool words[2];                    // gemm_bytes.gpu's A_WORDS and B_WORDS
};

// fp8 is half to units that do not know it, exactly, value by value; so is what is made on the way.
static const struct gpu_units *find_units_of_fp8(const struct gpu_device *d,
                                                 const struct gpu_product *p)
{
    const struct gpu_units *u =
        p->make ? NULL
                : gpu_units_find_fp8(d, p->ins->in[0]->shape.type, p->ins->in[1]->shape.type);
    return u ? u : gpu_units_find(d, MGX_HALF);
}

enum { FEW = 16 }; // rows, columns or values of the depth, that are no work for matrix units

// Of bytes, that sum up their operands for zero points.
static const struct gpu_units *find_units_with_ones(const struct gpu_device *d)
{
    const struct gpu_units *u = gpu_units_find(d, MGX_INT8);
    return u && !u->instruction ? u : NULL;
}

static bool is_computed(const struct mgx_ins *ins)
{
    while ((ins->op->flags & MGX_OP_VIEW) && ins->in_count == 1)
        ins = ins->in[0];
    return !ins->literal;
}

bool gpu_product_takes_zeros(const struct gpu_device *d, const struct mgx_ins *dot)
{
    const struct mgx_shape *out = &dot->shape, *a = &dot->in[0]->shape;
    return d && mgx_shape_is_static(out) && mgx_shape_is_static(a) && find_units_with_ones(d) &&
           is_computed(dot->in[0]) && is_computed(dot->in[1]) && out->rank > 1 &&
           out->lens[out->rank - 2] > FEW && out->lens[out->rank - 1] > FEW &&
           a->lens[a->rank - 1] >= FEW;
}

// Where matrix units take both operands.
static const struct gpu_units *find_units(const struct mgx_plan_offer *c,
                                          const struct gpu_product *p)
{
    const struct gpu_device *d = gpu_machine(c->machine)->device;
    const enum mgx_type type = c->in[p->operand[0]].type;
    if (p->rows <= FEW || p->columns <= FEW || p->depth < FEW)
        return NULL;
    if (gpu_product_is_fp8(p))
        return find_units_of_fp8(d, p);
    if (gpu_product_is_bytes(p))
        return gpu_units_find(d, MGX_INT8);
    return type == c->in[p->operand[1]].type ? gpu_units_find(d, type) : NULL;
}

// Do the units take fp8 as it lies?
static bool takes_fp8(const struct tile *t)
{
    return mgx_type_is_fp8(t->units->type);
}

static int64_t blocks_of(const struct gpu_product *p, int rows, int columns)
{
    return p->batches * ((p->rows + rows - 1) / rows) * ((p->columns + columns - 1) / columns);
}

// A warp for 32 rows by 32 columns; as large as leaves no unit of the card without work. On AMD's
// cards, whose shared memory feeds the units barely, larger ones where there are blocks enough.
static void choose_warps(const struct mgx_plan_offer *c, const struct gpu_product *p,
                         struct tile *t)
{
    const int units = gpu_machine(c->machine)->device->properties.units;
    t->columns = p->columns > 32 ? 64 : 32;
    t->rows = p->rows > 32 ? 64 : 32;
    t->warp_rows = t->warp_columns = 32;
    const bool high = p->rows > 64;
    if (t->units->instruction && high && p->columns > 64 && blocks_of(p, 128, 128) >= units) {
        t->rows = t->columns = 128;
        t->warp_rows = 64;
        t->warp_columns = t->units->wave; // 64 sums a thread
    } else if (high && p->columns > 32 && blocks_of(p, 128, 64) >= units) {
        t->rows = 128;
    } else if (t->rows == 32 && t->columns == 32 && blocks_of(p, 32, 32) < units) {
        t->warp_rows = t->warp_columns = 16; // or one warp would read all of both
    }
    t->warps = t->rows / t->warp_rows * (t->columns / t->warp_columns);
}

// Are values neighbours along `axis`, and every place along another one a multiple of `values`?
static bool in_runs(const struct mgx_shape *s, int axis, int64_t length, int values)
{
    bool runs = s->strides[axis] == 1 && length % values == 0;
    for (int i = 0; i < s->rank; i++)
        runs = runs && (i == axis || s->lens[i] == 1 || s->strides[i] % values == 0);
    return runs;
}

// How operand i is read, so many bytes at once; 0: it does not lie so. Floats that are taken apart are not
// read across the depth: that was slower than one by one.
static int reading_of(const struct mgx_plan_offer *c, const struct gpu_product *p, int i, int wide,
                      int pieces)
{
    const struct mgx_shape *s = &c->in[p->operand[i]];
    const int values = wide / (int)mgx_type_size(s->type), last = s->rank - 1;
    const int64_t own = c->in[p->operand[1]].lens[1];
    const int64_t channels = i ? own : gpu_product_channels(c, p);
    if (!gpu_product_is_dot(p))
        return (i || (!p->make && !p->pad)) && in_runs(s, 1, channels, values);
    if (in_runs(s, i ? last - 1 : last, p->depth, values))
        return 1;
    return pieces == 1 && in_runs(s, i ? last : last - 1, i ? p->columns : p->rows, values) ? 2 : 0;
}

// How much of each operand matrix units are brought at once: gemm_operand.gpu's BY and WIDE. Rows that begin
// at no multiple of 16 bytes (of 152, or heads of 40) are read by 8 or 4.
static void choose_reading(const struct mgx_plan_offer *c, const struct gpu_product *p,
                           struct tile *t)
{
    enum { LINE = 16, PAIR = 2 };
    const int pieces =
        gpu_units_pieces(t->units, gpu_machine_rounds(c->machine, gpu_product_is_dot(p)));
    for (int i = 0; i < 2; i++) {
        const int size = (int)mgx_type_size(c->in[p->operand[i]].type);
        const int least = pieces == 1 && size * PAIR <= 4 ? 4 : LINE;
        for (t->wide[i] = LINE; t->wide[i] >= least && !t->by[i]; t->wide[i] /= 2)
            if ((t->by[i] = reading_of(c, p, i, t->wide[i], pieces)))
                break;
        t->wide[i] = t->by[i] ? t->wide[i] : LINE;
    }
}

// Bytes on ordinary units: are four neighbours of the depth a word?
static void choose_words(const struct mgx_plan_offer *c, const struct gpu_product *p,
                         struct tile *t)
{
    for (int i = 0; i < 2; i++) {
        const struct mgx_shape *s = &c->in[p->operand[i]];
        const int64_t channels = c->in[p->operand[1]].lens[1];
        t->words[i] = gpu_product_is_dot(p)
                          ? in_runs(s, i ? s->rank - 2 : s->rank - 1, p->depth, 4)
                          : (i || (!p->make && !p->pad)) && in_runs(s, 1, channels, 4);
    }
}

// Of a block's shared memory: its tiles, whose lines are DEPTH values and what keeps them on different banks.
static int64_t room_of(const struct mgx_plan_offer *c, const struct gpu_product *p,
                       const struct tile *t)
{
    enum { PITCH = 80, PITCH_OF_FLOATS = 144 };
    const bool floats = t->units->type == MGX_FLOAT && t->units->instruction;
    const bool rounds = gpu_machine_rounds(c->machine, gpu_product_is_dot(p));
    return (int64_t)gpu_units_pieces(t->units, rounds) * (t->rows + t->columns) *
           (floats ? PITCH_OF_FLOATS : PITCH);
}

// Where tiles are too few to fill the card and the depth is long, groups of warps share it.
static int split_of(const struct mgx_plan_offer *c, const struct gpu_product *p,
                    const struct tile *t)
{
    enum { MOST = 8, THREADS = 512, LONG = 96, ROOM = 48 << 10, FEW_ROWS = 64 };
    const struct gpu_properties *card = &gpu_machine(c->machine)->device->properties;
    const int threads = t->warps * t->units->wave;
    const int64_t blocks = blocks_of(p, t->rows, t->columns), room = room_of(c, p, t);
    int split = 1;
    while (t->rows <= FEW_ROWS && 2 * split <= MOST && 2 * split * threads <= THREADS &&
           2 * split * threads <= card->max_threads && 2 * split * room <= ROOM &&
           split * blocks < 2 * (int64_t)card->units && p->depth >= 2 * (int64_t)split * LONG)
        split *= 2;
    return split;
}

static int tile_for(int64_t count)
{
    return count > 32 ? 64 : count > 16 ? 32 : 16;
}

static struct tile choose_tile(const struct mgx_plan_offer *c, const struct gpu_product *p)
{
    const struct mgx_shape *a = &c->in[p->operand[0]], *b = &c->in[p->operand[1]];
    const bool dot = gpu_product_is_dot(p);
    const int ra = a->rank, rb = b->rank;
    struct tile t = {
        .rows = tile_for(p->rows),
        .columns = tile_for(p->columns),
        .a_rows_first = dot ? a->strides[ra - 2] < a->strides[ra - 1]
                            : ra > 2 && a->strides[ra - 1] < a->strides[1],
        .b_depth_first = dot ? b->strides[rb - 2] < b->strides[rb - 1] : true,
    };
    if ((t.units = find_units(c, p))) {
        choose_warps(c, p, &t);
        choose_reading(c, p, &t);
        t.split = split_of(c, p, &t);
    } else if (gpu_product_is_bytes(p)) {
        choose_words(c, p, &t);
    }
    return t;
}

// fp8 becomes what the units take on its way into shared memory.
static void emit_widen(struct mgx_str *out, const struct tile *t, enum mgx_type type)
{
    if (!mgx_type_is_fp8(type) || takes_fp8(t))
        return;
    mgx_str_put(out, "#define WIDEN(x) ");
    gpu_emit_widened(out, type, "x");
    mgx_str_put(out, "\n");
}

// "bits_a(p, batch, row, k)": fp8 value by value, as units take it that know it.
static void emit_bits(struct mgx_str *out, char letter)
{
    mgx_str_printf(
        out,
        "FUNCTION SUM bits_%c(const u8 *p, int batch, int i, int j)\n{\n"
        "    const i64 at = find_%c(batch, i, j);\n    const u8 v = p[at < 0 ? 0 : at];\n"
        "    return at < 0 ? (SUM)0 : (SUM)v;\n}\n\n",
        letter, letter);
}

static void emit_units(struct mgx_str *out, const struct gpu_product *p, const struct tile *t,
                       bool tf32)
{
    const bool bytes = gpu_product_is_bytes(p), fp8 = takes_fp8(t);
    if (bytes || fp8)
        gpu_emit_units_operands(out, t->units, p->ins->in[0]->shape.type,
                                p->ins->in[1]->shape.type);
    const int pieces = gpu_units_pieces(t->units, tf32);
    gpu_emit_units(out, t->units, pieces);
    mgx_str_printf(out,
                   "#define MENDS %d\n#define APART %d\n#define ZERO_A %d\n#define ZERO_B %d\n",
                   !bytes && (pieces > 1 || p->together),
                   pieces > 1 || (fp8 && !t->units->instruction), p->zero[0], p->zero[1]);
    mgx_str_printf(out, "#define IN_LINES(a, b) (((ADDRESS(a) & %d) | (ADDRESS(b) & %d)) == 0)\n",
                   t->wide[0] - 1, t->wide[1] - 1);
    mgx_str_printf(out,
                   "#define WARPS %d\n#define WARP_M %d\n#define WARP_N %d\n#define DEPTH %d\n"
                   "#define PITCH (DEPTH * ELEMENT_BYTES + 16)\n"
                   "#define THREADS_HERE (WARPS * WAVE)\n#define SPLIT %d\n#define HERE %s\n",
                   t->warps, t->warp_rows, t->warp_columns, bytes || fp8 ? 64 : 32, t->split,
                   t->split > 1 ? "(THREAD % THREADS_HERE)" : "THREAD");
    const char *load = fp8 ? "bits" : "load";
    for (int i = 0; i < 2; i++) {
        if (fp8)
            emit_bits(out, "ab"[i]);
        mgx_str_printf(out,
                       "#define OPERAND(x) %c_##x\n#define TYPE %c_TYPE\n#define LINES TILE_%c\n"
                       "#define ALL %c\n#define LINES_FIRST %s\n#define BY %d\n"
                       "#define WIDE %d\n#define WIDE_TYPE wide%d\n"
                       "#define LOAD(p, batch, line, k) %s_%s\n"
                       "#define PLACE(batch, line, k) find_%s\n",
                       "ab"[i], "AB"[i], "MN"[i], "MN"[i], i ? "!B_DEPTH_FIRST" : "A_ROWS_FIRST",
                       t->by[i], t->wide[i], t->wide[i], load,
                       i ? "b(p, batch, k, line)" : "a(p, batch, line, k)",
                       i ? "b(batch, k, line)" : "a(batch, line, k)");
        emit_widen(out, t, p->ins->in[i]->shape.type);
        GPU_PUT(out, gemm_operand);
        mgx_str_put(out, "#undef WIDEN\n#undef OPERAND\n#undef TYPE\n#undef LINES\n#undef ALL\n"
                         "#undef LINES_FIRST\n#undef BY\n#undef WIDE\n#undef WIDE_TYPE\n#undef "
                         "LOAD\n#undef PLACE\n");
    }
    GPU_PUT(out, gemm_units);
}

static void emit_bytes(struct mgx_str *out, const struct gpu_product *p, const struct tile *t)
{
    for (int i = 0; i < 2; i++)
        mgx_str_printf(out, "#define %c_SIGNED %d\n#define %c_WORDS %d\n", "AB"[i],
                       p -> ins -> in[i] -> shape.type == MGX_INT8, "AB"[i], t -> words[i]);
    mgx_str_put(out, "#define PLACE_A(batch, row, k) find_a(batch, row, k)\n"
                     "#define PLACE_B(batch, k, column) find_b(batch, k, column)\n");
    GPU_PUT(out, dot4);
    GPU_PUT(out, gemm_bytes);
}

static const char *emit(struct mgx_str *out, const struct mgx_plan_offer *c,
                        const struct gpu_product *p, const struct tile *t)
{
    mgx_str_printf(out, "#define SUM %s\n", gpu_type_memory(gpu_product_sum(p)));
    const char *why = gpu_emit_bodies(out, c, p->tail, p->make, p->real);
    if (why)
        return why;
    const struct mgx_shape *a = &c->in[p->operand[0]], *b = &c->in[p->operand[1]];
    gpu_product_emit_loads(out, c, p);
    gpu_product_emit_finish(out, c, p);
    mgx_str_printf(out,
                   "#define M %" PRId64 "\n#define N %" PRId64 "\n#define K %" PRId64
                   "\n#define TILE_M %d\n#define TILE_N %d\n#define TILE_K %d\n"
                   "#define A_TYPE %s\n#define B_TYPE %s\n#define C_TYPE %s\n"
                   "#define A_ROWS_FIRST %d\n#define B_DEPTH_FIRST %d\n"
                   "#define TOGETHER %d\n"
                   "#define LOAD_A(batch, row, k) load_a(a, batch, row, k)\n"
                   "#define LOAD_B(batch, k, column) load_b(b, batch, k, column)\n"
                   "#define gemm run\n",
                   p->rows, p->columns, p->depth, t->rows, t->columns,
                   gpu_product_is_bytes(p) ? BYTES_DEPTH : TILE_DEPTH, gpu_type_memory(a->type),
                   gpu_type_memory(b->type), gpu_type_memory(c->out->type), t->a_rows_first,
                   t->b_depth_first, p->together);
    if (t->units)
        emit_units(out, p, t, gpu_machine_rounds(c->machine, gpu_product_is_dot(p)));
    else if (gpu_product_is_bytes(p))
        emit_bytes(out, p, t);
    else
        GPU_PUT(out, gemm);
    return NULL;
}

static const char *describe(const struct mgx_plan_offer *c, const struct gpu_product *p,
                            const struct tile *t)
{
    if (!t->units)
        return p->tail ? "tiles in shared memory, element-wise tail" : "tiles in shared memory";
    struct mgx_str text = {0};
    mgx_str_printf(&text, "matrix units (%s), tiles of %d x %d%s",
                   t->units->instruction ? t->units->instruction : t->units->name, t->rows,
                   t->columns, p->tail ? ", element-wise tail" : "");
    if (p->together)
        mgx_str_printf(&text, ", %d groups together", p->together);
    if (t->split > 1)
        mgx_str_printf(&text, ", the depth in %d", t->split);
    const char *detail = mgx_arena_strdup(c->arena, mgx_str_text(&text));
    mgx_str_fini(&text);
    return detail;
}

const char *gpu_product_emit(struct mgx_str *text, const struct mgx_plan_offer *c,
                             const struct gpu_product *p, struct gpu_launch *how,
                             const char **detail)
{
    const struct tile t = choose_tile(c, p);
    const bool empty = mgx_shape_elements(c->out) == 0;
    *how = (struct gpu_launch){
        .grid = {empty ? 0 : (unsigned)((p->columns + t.columns - 1) / t.columns),
                 (unsigned)((p->rows + t.rows - 1) / t.rows), (unsigned)p->batches},
        .block = {t.units ? (unsigned)(t.split * t.warps * t.units->wave) : GPU_THREADS, 1, 1}};
    *detail = describe(c, p, &t);
    return emit(text, c, p, &t);
}

// Constant weights whose channels are no neighbours, where the image's and the result's are: matrix
// units would rather have theirs so too.
static bool wants_turned(const struct mgx_plan_offer *c, const struct gpu_product *p)
{
    const struct mgx_shape *w = &c->in[p->operand[1]];
    const struct tile t = choose_tile(c, p);
    return t.units && !gpu_product_is_dot(p) && t.by[0] == 1 && t.by[1] == 0 &&
           c->constant[p->operand[1]] && c->out->strides[1] == 1 && w->strides[1] != 1;
}

// Groups that are narrow go to the matrix units together.
static void gather_groups(const struct mgx_plan_offer *c, struct gpu_product *p)
{
    enum { BLOCK = 32 }; // values of the depth that a tile holds
    if (gpu_product_is_dot(p) || p->batches == 1)
        return;
    struct gpu_product all = *p;
    const int64_t channels = c->in[p->operand[1]].lens[1];
    all.together = gpu_product_gather(p, channels, BLOCK, 1);
    all.columns *= all.together;
    all.depth *= all.together;
    all.batches /= all.together;
    if (all.together > 1 && find_units(c, &all))
        *p = all;
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct gpu_product p;
    struct gpu_launch how;
    struct mgx_str text = {0};
    const char *why = gpu_product_read_zeros(c, &p);
    if (!why && p.has_zeros &&
        find_units(c, &p) != find_units_with_ones(gpu_machine(c->machine)->device))
        why = "zero points that the units do not take off";
    if (!why)
        gather_groups(c, &p);
    if (!why && wants_turned(c, &p)) {
        c->want_in[p.operand[1]] = MGX_PLAN_LIKE_RESULT;
        why = "weights whose channels are not neighbours";
    }
    if (!why)
        why = gpu_product_emit(&text, c, &p, &how, &c->detail);
    if (why) {
        mgx_str_fini(&text);
        return gpu_decline(c, why);
    }
    int in[GPU_CALL_INPUTS] = {p.operand[0], p.operand[1]};
    memcpy(in + 2, p.extra, (size_t)p.extra_count * sizeof *in);
    c->flops = 2.0 * (double)p.rows * (double)p.columns * (double)p.depth * (double)p.batches;
    c->flops /= p.together ? p.together : 1;
    return gpu_take(c, &text, &how, in, 2 + p.extra_count);
}

const struct mgx_plan_kernel gpu_kernel_product = {
    .name = "gpu::product", .prepare = prepare, .run = gpu_run_call};
