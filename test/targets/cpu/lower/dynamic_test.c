// SPDX-License-Identifier: MIT
// Operators offered to the CPU target while a run evaluates them, against the reference: random
// sizes with 0 and 1 among them, strides with gaps, ties, NaN, negative axes and indices, every
// instruction set of this machine. Moves and selections must be equal to the bit, sums close.
#include "test_malloc.h"

#include "targets/cpu/kernel/harness.h"

#include "base/size.h"
#include "op/op.h"
#include "plan/blocks.h"
#include "plan/choice.h"
#include "targets/cpu/kernel/image/boxes.h"
#include "targets/cpu/kernel/image/taps.h"
#include "targets/cpu/lower/lower.h"

enum { ROUNDS = 60 };

// --- a plan without a program, and both ways to evaluate an operator ---

struct machine {
    struct cpu_machine cpu;
    struct mgx_plan_store store;
    struct mgx_plan_late late;
    struct mgx_plan_late_run run;
    struct mgx_arena strings;
    int taken;    // operators that a kernel computed
    long fault;   // the allocation that fails in the offered evaluation; -1: none
    bool faulted; // it was reached
};

static enum mgx_status count_offer(void *user, struct mgx_compute_call *c, bool *done)
{
    struct machine *m = user;
    const enum mgx_status status = mgx_plan_late_offer(&m->run, c, done);
    m->taken += *done;
    return status;
}

static bool knows(void *user, const struct mgx_tensor *t)
{
    struct machine *m = user;
    return mgx_plan_late_knows(&m->run, t);
}

static void machine_init(struct machine *m, mgx_isa isa)
{
    memset(m, 0, sizeof *m);
    m->cpu.isa = isa;
    m->cpu.base.target = &cpu_plan_target;
    m->cpu.base.threads = 3;
    m->fault = -1;
    mgx_plan_store_init(&m->store, &m->cpu.base, NULL);
    mgx_plan_late_init(&m->late, NULL, &m->store);
    m->late.blocks = mgx_plan_blocks_create();
    m->run.late = &m->late;
    mgx_arena_init(&m->strings);
}

static void machine_fini(struct machine *m)
{
    mgx_plan_late_fini(&m->late);
    mgx_plan_store_fini(&m->store);
    mgx_arena_fini(&m->strings);
}

static bool same(const struct mgx_tensor *a, const struct mgx_tensor *b, double tolerance)
{
    if (a->sub_count != b->sub_count)
        return false;
    for (int i = 0; i < a->sub_count; i++)
        if (!same(&a->sub[i], &b->sub[i], tolerance))
            return false;
    if (a->sub_count)
        return true;
    if (!mgx_shape_same_lens(&a->shape, &b->shape) || a->shape.type != b->shape.type)
        return false;
    for (int64_t i = 0; i < mgx_shape_elements(&a->shape); i++) {
        const double x = mgx_load_double(a->shape.type, a->data, mgx_shape_index(&a->shape, i));
        const double y = mgx_load_double(b->shape.type, b->data, mgx_shape_index(&b->shape, i));
        if (!(fabs(x - y) <= tolerance * (1 + fabs(y))) && x != y && !(isnan(x) && isnan(y)))
            return false;
    }
    return true;
}

// Evaluates both ways; failures must agree too. True if the results do.
static bool agrees(struct machine *m, const struct mgx_op *op, const struct mgx_attr *attrs,
                   const struct mgx_tensor *const *in, int count, double tolerance)
{
    struct mgx_eval plain = {.strings = &m->strings}, offered = {.strings = &m->strings,
                                                                 .offer = count_offer,
                                                                 .knows = knows,
                                                                 .offer_user = m};
    struct mgx_diag first = {0}, second = {0};
    struct mgx_tensor expected = {0}, actual = {0};
    void *attr = NULL;
    if (mgx_attr_make(op, attrs, &m->strings, &attr, &first) != MGX_OK)
        return false;
    const enum mgx_status a =
        mgx_eval_op(&plain, op, attr, in, count, NULL, 0, NULL, &expected, &first);
    test_malloc_fail_after(m->fault);
    const enum mgx_status b =
        mgx_eval_op(&offered, op, attr, in, count, NULL, 0, NULL, &actual, &second);
    m->faulted = test_malloc_failed();
    test_malloc_fail_after(-1);
    const bool good = (m->faulted && b == MGX_NO_MEMORY) ||
                      (a == b && (a != MGX_OK || same(&actual, &expected, tolerance)));
    if (!good)
        printf("%s: %s | %s\n", op->name, first.text, second.text);
    mgx_tensor_release(&expected);
    mgx_tensor_release(&actual);
    return good;
}

// --- random tensors ---

static double value_of(struct rng *r, int kind) // 0: any, 1: few different, 2: some NaN
{
    if (kind == 2 && rng_below(r, 9) == 0)
        return (double)NAN;
    if (kind == 1)
        return rng_below(r, 5) - 2;
    return (double)(rng_float(r) * 8);
}

// In row-major order, or with axes reversed and gaps between elements.
static struct mgx_tensor make(struct rng *r, enum mgx_type type, int rank, const int64_t *lens,
                              int kind)
{
    struct mgx_shape shape = mgx_shape_make(type, rank, lens), room;
    struct mgx_tensor t;
    struct mgx_diag diag = {0};
    int64_t stride = 1;
    const int style = rng_below(r, 4);
    for (int i = 0; i < rank && style < 2; i++) {
        const int axis = style ? i : rank - 1 - i;
        shape.strides[axis] = stride;
        stride *= lens[axis] + rng_below(r, 2);
    }
    room = mgx_shape_vector(type, style < 2 ? stride + 1 : mgx_shape_elements(&shape));
    if (mgx_tensor_create(&t, &room, &diag) != MGX_OK)
        abort();
    for (int64_t i = 0; i < room.lens[0]; i++)
        mgx_store_double(type, t.data, i, value_of(r, kind));
    t.shape = shape;
    return t;
}

// Positions along axes of these lengths, one axis after the other; rarely one too far.
static void fill_index(struct rng *r, struct mgx_tensor *t, const int64_t *lens, int depth)
{
    for (int64_t i = 0; i < mgx_shape_elements(&t->shape); i++) {
        const int64_t n = lens[i % depth];
        int64_t at = n ? rng_below(r, (int)n) : 0;
        at -= rng_below(r, 3) == 0 ? n : 0;
        if (rng_below(r, 20000) == 0)
            at = n;
        mgx_store_int(t->shape.type, t->data, mgx_shape_index(&t->shape, i), at);
    }
}

static enum mgx_type index_type(struct rng *r)
{
    return rng_below(r, 2) ? MGX_INT64 : MGX_INT32;
}

// --- each operator ---

static bool try_topk(struct machine *m, struct rng *r)
{
    static const int sizes[] = {1, 2, 40, 2047, 5000};
    enum { RARE = 32, LONG = 70000 }; // where digits are larger
    const int64_t lens[] = {rng_below(r, 4), rng_below(r, RARE) ? rng_size(r, sizes, 5) : LONG,
                            1 + rng_below(r, 3)};
    const int axis = rng_below(r, 3);
    struct mgx_tensor x =
        make(r, rng_below(r, 3) ? MGX_FLOAT : MGX_INT32, 3, lens, rng_below(r, 3));
    const int64_t k = lens[axis] ? rng_below(r, (int)lens[axis] + 1) : 0;
    const struct mgx_tensor *in[] = {&x};
    const bool good =
        agrees(m, &mgx_op_topk,
               MGX_ATTRS(mgx_int("k", k), mgx_int("axis", rng_below(r, 2) ? axis : axis - 3),
                         mgx_int("largest", rng_below(r, 2))),
               in, 1, 0);
    mgx_tensor_release(&x);
    return good;
}

static bool try_nonzero(struct machine *m, struct rng *r)
{
    static const enum mgx_type types[] = {MGX_BOOL,  MGX_FLOAT, MGX_INT64,
                                          MGX_INT32, MGX_INT8,  MGX_DOUBLE};
    static const int sizes[] = {0, 1, 3, 511, 1200};
    const int64_t lens[] = {rng_below(r, 3), rng_size(r, sizes, 5), 1 + rng_below(r, 2)};
    struct mgx_tensor x = make(r, types[rng_below(r, 6)], rng_below(r, 4), lens, 1);
    const struct mgx_tensor *in[] = {&x};
    const bool good = agrees(m, &mgx_op_nonzero, NULL, in, 1, 0);
    mgx_tensor_release(&x);
    return good;
}

static bool try_nms(struct machine *m, struct rng *r)
{
    static const int sizes[] = {1, 17, 64, 300};
    const int64_t n = rng_below(r, 3), b = rng_size(r, sizes, 4), one[] = {1};
    struct mgx_tensor boxes = make(r, MGX_FLOAT, 3, (int64_t[]){n, b, 4}, rng_below(r, 3));
    struct mgx_tensor scores =
        make(r, MGX_FLOAT, 3, (int64_t[]){n, 1 + rng_below(r, 3), b}, rng_below(r, 3));
    struct mgx_tensor most = make(r, MGX_INT64, 1, one, 0), iou = make(r, MGX_FLOAT, 1, one, 0),
                      least = make(r, MGX_FLOAT, 1, one, 0);
    mgx_store_int(MGX_INT64, most.data, 0, rng_below(r, 50));
    mgx_store_double(MGX_FLOAT, iou.data, 0, rng_below(r, 5) / 4.0);
    const struct mgx_tensor *in[] = {&boxes, &scores, &most, &iou, &least};
    const bool good = agrees(
        m, &mgx_op_nonmaxsuppression,
        MGX_ATTRS(mgx_int("center_point_box", rng_below(r, 2)), mgx_int("use_dyn_output", 1)), in,
        3 + rng_below(r, 3), 0);
    for (int i = 0; i < 5; i++)
        mgx_tensor_release((struct mgx_tensor *)in[i]);
    return good;
}

static bool try_roialign(struct machine *m, struct rng *r)
{
    static const int channels[] = {1, 5, 16, 33, 70};
    static const char *const how[] = {"half_pixel", "output_half_pixel"};
    const int64_t n = 1 + rng_below(r, 2), c = rng_size(r, channels, 5), rois = rng_below(r, 9);
    const int64_t h = 1 + rng_below(r, 9);
    struct mgx_tensor x = make(r, MGX_FLOAT, 4, (int64_t[]){n, c, h, 8}, 0);
    struct mgx_tensor roi = make(r, MGX_FLOAT, 2, (int64_t[]){rois, 4}, 0);
    struct mgx_tensor at = make(r, index_type(r), 1, &rois, 0);
    for (int64_t i = 0; i < rois; i++)
        mgx_store_int(at.shape.type, at.data, mgx_shape_index(&at.shape, i), rng_below(r, (int)n));
    const struct mgx_tensor *in[] = {&x, &roi, &at};
    const bool good = agrees(
        m, &mgx_op_roialign,
        MGX_ATTRS(mgx_text("coordinate_transformation_mode", how[rng_below(r, 2)]),
                  mgx_int("mode", rng_below(r, 2)), mgx_int("output_height", 1 + rng_below(r, 7)),
                  mgx_int("output_width", 1 + rng_below(r, 7)),
                  mgx_int("sampling_ratio", rng_below(r, 12)),
                  mgx_real("spatial_scale", 1.0 / (1 + rng_below(r, 4)))),
        in, 3, 1e-5);
    for (int i = 0; i < 3; i++)
        mgx_tensor_release((struct mgx_tensor *)in[i]);
    return good;
}

static enum mgx_type moved_type(struct rng *r)
{
    static const enum mgx_type types[] = {MGX_FLOAT, MGX_INT64, MGX_HALF, MGX_BOOL};
    return types[rng_below(r, 4)];
}

static bool try_gathernd(struct machine *m, struct rng *r)
{
    const int64_t lens[] = {1 + rng_below(r, 3), 1 + rng_below(r, 40), 1 + rng_below(r, 9),
                            1 + rng_below(r, 3)};
    const int batch = rng_below(r, 2), depth = 1 + rng_below(r, 3);
    const int64_t places[] = {lens[0], rng_below(r, 300), depth};
    struct mgx_tensor x = make(r, moved_type(r), 4, lens, 0);
    struct mgx_tensor at = make(r, index_type(r), batch ? 3 : 2, places + !batch, 0);
    fill_index(r, &at, lens + batch, depth);
    const struct mgx_tensor *in[] = {&x, &at};
    const bool good =
        agrees(m, &mgx_op_gathernd, MGX_ATTRS(mgx_int("batch_dims", batch)), in, 2, 0);
    mgx_tensor_release(&x);
    mgx_tensor_release(&at);
    return good;
}

static bool try_scatter(struct machine *m, struct rng *r)
{
    const int64_t lens[] = {1 + rng_below(r, 20), 1 + rng_below(r, 9), 1 + rng_below(r, 9)};
    const int axis = rng_below(r, 3);
    int64_t part[3];
    for (int i = 0; i < 3; i++)
        part[i] = i == axis ? rng_below(r, 2 * (int)lens[i]) : 1 + rng_below(r, (int)lens[i]);
    const enum mgx_type type = moved_type(r);
    struct mgx_tensor x = make(r, type, 3, lens, 0), u = make(r, type, 3, part, 0);
    struct mgx_tensor at = make(r, index_type(r), 3, part, 0);
    fill_index(r, &at, lens + axis, 1);
    for (int i = 0; i < 3 && rng_below(r, 2); i++) // an expanded index
        if (i != axis)
            at.shape.strides[i] = 0;
    const struct mgx_tensor *in[] = {&x, &at, &u};
    const bool good = agrees(m, &mgx_op_scatter_none,
                             MGX_ATTRS(mgx_int("axis", rng_below(r, 2) ? axis : axis - 3),
                                       mgx_int("skip_out_of_bounds", rng_below(r, 2))),
                             in, 3, 0);
    for (int i = 0; i < 3; i++)
        mgx_tensor_release((struct mgx_tensor *)in[i]);
    return good;
}

static bool try_scatternd(struct machine *m, struct rng *r)
{
    const int64_t lens[] = {1 + rng_below(r, 20), 1 + rng_below(r, 9), 1 + rng_below(r, 9)};
    const int depth = 1 + rng_below(r, 3);
    int64_t part[4] = {rng_below(r, 60)};
    for (int i = depth; i < 3; i++)
        part[i - depth + 1] = lens[i];
    const enum mgx_type type = moved_type(r);
    struct mgx_tensor x = make(r, type, 3, lens, 0), u = make(r, type, 4 - depth, part, 0);
    struct mgx_tensor at = make(r, index_type(r), 2, (int64_t[]){part[0], depth}, 0);
    fill_index(r, &at, lens, depth);
    const struct mgx_tensor *in[] = {&x, &at, &u};
    const bool good = agrees(m, &mgx_op_scatternd_none, NULL, in, 3, 0);
    for (int i = 0; i < 3; i++)
        mgx_tensor_release((struct mgx_tensor *)in[i]);
    return good;
}

// Scalar operators on every type that has lanes, conversions between all of them.
static bool try_typed(struct machine *m, struct rng *r)
{
    static const enum mgx_type types[] = {MGX_BOOL,  MGX_UINT8,  MGX_INT8,   MGX_UINT16,
                                          MGX_INT16, MGX_UINT32, MGX_INT32,  MGX_INT64,
                                          MGX_HALF,  MGX_BF16,   MGX_DOUBLE, MGX_FLOAT};
    static const struct mgx_op *const ops[] = {
        &mgx_op_add,   &mgx_op_sub,    &mgx_op_mul,     &mgx_op_div,  &mgx_op_min,
        &mgx_op_max,   &mgx_op_equal,  &mgx_op_greater, &mgx_op_less, &mgx_op_logical_and,
        &mgx_op_fmod,  &mgx_op_mod,    &mgx_op_sqdiff,  &mgx_op_abs,  &mgx_op_neg,
        &mgx_op_sign,  &mgx_op_relu,   &mgx_op_not,     &mgx_op_clip, &mgx_op_where,
        &mgx_op_isnan, &mgx_op_convert};
    const struct mgx_op *op = ops[rng_below(r, MGX_COUNT(ops))];
    const enum mgx_type type = types[rng_below(r, MGX_COUNT(types))];
    const int64_t lens[] = {1 + rng_below(r, 3), 250 + rng_below(r, 300), 1 + rng_below(r, 3)};
    struct mgx_tensor x[3];
    const struct mgx_tensor *in[3];
    for (int i = 0; i < 3; i++) {
        x[i] = make(r, i == 0 && op == &mgx_op_where ? MGX_BOOL : type, 3, lens, rng_below(r, 3));
        if (rng_below(r, 4) == 0) // one value for all of an axis
            x[i].shape.strides[rng_below(r, 3)] = 0;
        in[i] = &x[i];
    }
    const enum mgx_type target = types[rng_below(r, MGX_COUNT(types))];
    const bool good =
        agrees(m, op, op == &mgx_op_convert ? MGX_ATTRS(mgx_int("target_type", target)) : NULL, in,
               op->in_min, type == MGX_FLOAT ? 1e-6 : 0); // the float program rounds every step
    if (!good)
        printf("%s to %s\n", mgx_type_name(type), mgx_type_name(target));
    for (int i = 0; i < 3; i++)
        mgx_tensor_release(&x[i]);
    return good;
}

static void try_often(bool (*attempt)(struct machine *m, struct rng *r), int most)
{
    const int rounds = check_rounds(most);
    EACH_ISA(isa)
    {
        struct machine m;
        struct rng r = {.state = 77 + isa_at};
        machine_init(&m, isa);
        bool good = true;
        for (int i = 0; i < rounds && good; i++)
            if (!(good = attempt(&m, &r)))
                printf("round %d of %s\n", i, mgx_isa_name(isa));
        const int taken = m.taken;
        machine_fini(&m);
        CHECK(good);
        CHECK(taken > rounds / 8); // it was the kernels that were tested
    }
}

// Every allocation of an offered operator fails once: no memory, nothing left behind, no crash.
static bool survives(bool (*attempt)(struct machine *m, struct rng *r), uint64_t seed)
{
    const long before = test_malloc_live();
    bool good = true, faulted = true;
    for (long n = 0; n < 400 && good && faulted; n++) {
        struct machine m;
        struct rng r = {.state = seed};
        machine_init(&m, mgx_cpu()->isa);
        m.fault = n;
        good = attempt(&m, &r);
        faulted = m.faulted;
        machine_fini(&m);
    }
    return good && !faulted && test_malloc_live() == before;
}

CASE(memory_that_runs_out)
{
    for (uint64_t seed = 1; seed < 8; seed++) {
        CHECK(survives(try_topk, seed));
        CHECK(survives(try_nonzero, seed));
        CHECK(survives(try_nms, seed));
        CHECK(survives(try_roialign, seed));
        CHECK(survives(try_gathernd, seed));
        CHECK(survives(try_scatter, seed));
        CHECK(survives(try_scatternd, seed));
        CHECK(survives(try_typed, seed));
    }
}

CASE(topk_orders_ties_and_nans)
{
    try_often(try_topk, 4 * ROUNDS);
}
CASE(nonzero_of_every_type)
{
    try_often(try_nonzero, 4 * ROUNDS);
}
CASE(nonmaxsuppression_selects_the_same_boxes)
{
    try_often(try_nms, 4 * ROUNDS);
}
CASE(roialign_averages_and_maxima)
{
    try_often(try_roialign, 2 * ROUNDS);
}
CASE(gathernd_with_batches)
{
    try_often(try_gathernd, 4 * ROUNDS);
}
CASE(scatter_last_update_counts)
{
    try_often(try_scatter, 4 * ROUNDS);
}
CASE(scalar_operators_of_every_type)
{
    try_often(try_typed, 10 * ROUNDS);
}
CASE(scatternd_slabs)
{
    try_often(try_scatternd, 4 * ROUNDS);
}

// --- kernels by themselves ---

static bool plain_overlaps(float *const *side, int64_t count, const float *b, float iou)
{
    for (int64_t i = 0; i < count; i++) {
        const float w = fminf(side[2][i], b[2]) - fmaxf(side[0][i], b[0]);
        const float h = fminf(side[3][i], b[3]) - fmaxf(side[1][i], b[1]), both = w * h;
        const float all = side[4][i] + b[4] - both;
        if (w > 0 && h > 0 && both / all > iou)
            return true;
    }
    return false;
}

// Lists of every length around the vectors', guarded; nothing behind the end is looked at.
// --- constants at odd addresses, as they lie in a model's file ---

enum { TABLE_ROWS = 300, TABLE_ROW = 40 };

struct odd_table {
    char bytes[TABLE_ROWS * TABLE_ROW * sizeof(float) + 1];
    struct mgx_tensor tensor;
};

static void odd_table_init(struct odd_table *t, struct machine *m)
{
    const struct mgx_shape shape =
        mgx_shape_make(MGX_FLOAT, 2, (const int64_t[]){TABLE_ROWS, TABLE_ROW});
    for (int i = 0; i < TABLE_ROWS * TABLE_ROW; i++)
        memcpy(t->bytes + 1 + (size_t)i * sizeof(float), &(float){(float)i}, sizeof(float));
    t->tensor = mgx_tensor_borrow(&shape, t->bytes + 1);
    mgx_map_put_pointer(&m->late.literals, t->tensor.data, t->tensor.data);
    mgx_plan_note_source(&m->store, t->tensor.data, sizeof t->bytes - 1,
                         (struct mgx_carry_source){1, 0});
}

// Bytes that the plan keeps of its own after op(table, other) for another tensor of `count` rows.
static size_t kept_after(struct machine *m, const struct odd_table *t, const struct mgx_op *op,
                         const struct mgx_tensor *other)
{
    const struct mgx_tensor *in[] = {&t->tensor, other};
    const struct mgx_attr none[] = {{0}};
    return agrees(m, op, none, in, 2, 1e-6) ? m->store.packed_bytes : SIZE_MAX;
}

CASE(a_gathered_table_is_read_where_it_lies)
{
    static struct odd_table t;
    struct machine m;
    int64_t rows[64];
    machine_init(&m, mgx_cpu()->isa);
    odd_table_init(&t, &m);
    for (int i = 0; i < 64; i++)
        rows[i] = i * 7 % TABLE_ROWS;
    for (int count = 32; count <= 64; count += 16) {
        const struct mgx_shape shape = mgx_shape_vector(MGX_INT64, count);
        const struct mgx_tensor indices = mgx_tensor_borrow(&shape, rows);
        CHECK_INT(kept_after(&m, &t, &mgx_op_gather, &indices), 0);
    }
    CHECK_INT(m.taken, 3);
    machine_fini(&m);
}

CASE(a_constant_is_aligned_once_for_all_sizes)
{
    static struct odd_table t;
    static float ones[TABLE_ROWS * TABLE_ROW];
    struct machine m;
    machine_init(&m, mgx_cpu()->isa);
    odd_table_init(&t, &m);
    for (int gap = 0; gap < 3; gap++) { // the same lengths, other strides: another choice
        struct mgx_shape shape = t.tensor.shape;
        shape.strides[0] = gap ? 0 : shape.strides[0];
        shape.strides[1] = gap == 1;
        const struct mgx_tensor other = mgx_tensor_borrow(&shape, ones);
        CHECK_INT(kept_after(&m, &t, &mgx_op_add, &other), mgx_shape_bytes(&t.tensor.shape));
    }
    CHECK_INT(m.taken, 3);
    machine_fini(&m);
}

CASE(boxes_overlap_in_vectors)
{
    struct rng r = {.state = 5};
    for (int round = 0; round < 3000; round++) {
        const int64_t count = rng_below(&r, 150);
        struct buffer fields[MGX_BOX_FIELDS];
        float *side[MGX_BOX_FIELDS], box[MGX_BOX_FIELDS];
        for (int k = 0; k < MGX_BOX_FIELDS; k++) {
            fields[k] = buffer_new(count);
            side[k] = fields[k].data;
        }
        for (int64_t i = 0; i <= count; i++) {
            float b[4] = {rng_float(&r), rng_float(&r), rng_float(&r), rng_float(&r)};
            b[2] = b[0] + fabsf(b[2]) * 0.1f + 0.001f, b[3] = b[1] + fabsf(b[3]) * 0.1f + 0.001f;
            for (int k = 0; k < 4; k++)
                *(i < count ? &side[k][i] : &box[k]) = b[k];
            *(i < count ? &side[4][i] : &box[4]) = (b[2] - b[0]) * (b[3] - b[1]);
        }
        const float iou = (float)rng_below(&r, 3) * 0.2f;
        const bool expected = plain_overlaps(side, count, box, iou);
        bool good = true;
        EACH_ISA(isa)
        good &= mgx_box_kernel(isa)->run(side, count, box, iou) == expected;
        for (int k = 0; k < MGX_BOX_FIELDS; k++)
            buffer_free(fields[k]);
        CHECK(good);
    }
}

static bool try_taps(struct rng *r, mgx_isa isa)
{
    static const int channels[] = {1, 4, 8, 16, 64, 100};
    const int64_t n = rng_size(r, channels, 6) + 1, pixels = 1 + rng_below(r, 5);
    const int count = rng_below(r, 20);
    struct buffer x = buffer_new(n * pixels), y = buffer_new(n);
    int64_t offset[20];
    float weight[20];
    bool good = true;
    for (int64_t i = 0; i < x.count; i++)
        x.data[i] = rng_float(r);
    for (int64_t i = 0; i < n; i++)
        y.data[i] = rng_float(r);
    for (int i = 0; i < count; i++) {
        offset[i] = rng_below(r, (int)pixels) * n;
        weight[i] = rng_float(r);
    }
    struct mgx_tap_args a = {x.data,          offset, weight, count, rng_below(r, 2),
                             rng_below(r, 2), 3,      y.data, n};
    float *before = malloc((size_t)n * sizeof *before);
    memcpy(before, y.data, (size_t)n * sizeof *before);
    mgx_tap_kernel(isa)->run(&a);
    for (int64_t c = 0; c < n; c++) {
        double s = !a.first ? (double)before[c] : a.max ? -(double)INFINITY : 0;
        for (int i = 0; i < count; i++) {
            const double term = (double)weight[i] * (double)x.data[offset[i] + c];
            s = a.max ? fmax(s, term) : s + term;
        }
        good &= fabs((double)y.data[c] - s / 3) <= 1e-5 || (double)y.data[c] == s / 3;
    }
    for (int i = 1; i <= GUARD; i++)
        good &= is_guard(y.data - i) && is_guard(y.data + n - 1 + i);
    free(before);
    buffer_free(x);
    buffer_free(y);
    return good;
}

CASE(taps_keep_inside_their_pixel)
{
    struct rng r = {.state = 11};
    for (int round = 0; round < 600; round++)
        EACH_ISA(isa)
    CHECK(try_taps(&r, isa));
}

TEST_MAIN(ROW(topk_orders_ties_and_nans) ROW(nonzero_of_every_type)
              ROW(nonmaxsuppression_selects_the_same_boxes) ROW(roialign_averages_and_maxima)
                  ROW(gathernd_with_batches) ROW(scatter_last_update_counts) ROW(scatternd_slabs)
                      ROW(scalar_operators_of_every_type) ROW(memory_that_runs_out)
                          ROW(a_gathered_table_is_read_where_it_lies)
                              ROW(a_constant_is_aligned_once_for_all_sizes)
                                  ROW(boxes_overlap_in_vectors) ROW(taps_keep_inside_their_pixel))
