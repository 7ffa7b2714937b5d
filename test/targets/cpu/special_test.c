// SPDX-License-Identifier: MIT
// What is no number, infinite, the largest or the least of its type, of 32, 16 and 8 bits, through
// random operators of every kind on the CPU against the reference, on every instruction set.
//
// Where the reference has NaN the CPU has NaN, where it has an infinity the same infinity. Values
// agree to the rounding of the type; chains of operators are in float, since those of 16 bits keep
// the range of float in between (docs/precision.md). Sizes are one, odd, more than a vector, none.
#include "base/size.h"
#include "check.h"
#include "op/op.h"
#include "targets/cpu/kernel/kernel.h"
#include "targets/target.h"

enum { PROGRAMS = 900 };

static uint64_t state;

static int below(int n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

struct kind {
    enum mgx_type type;
    double most, least; // finite; of bfloat16 such that products have room in float
    double step;        // of rounding, relative
    int chain;          // operators
};

static const struct kind kinds[] = {
    {MGX_FLOAT, 0x1.fffffep127, 0x1p-149, 2e-5, 4}, {MGX_HALF, 65504, 0x1p-24, 2e-3, 1},
    {MGX_BF16, 0x1p50, 0x1p-133, 2e-2, 1},          {MGX_FP8E4M3FN, 448, 0x1p-9, 0.13, 0},
    {MGX_FP8E5M2, 57344, 0x1p-16, 0.26, 0},         {MGX_FP8E4M3FNUZ, 240, 0x1p-10, 0.13, 0},
    {MGX_FP8E5M2FNUZ, 57344, 0x1p-17, 0.26, 0},
};

// Specials are a third of all; `extremes` are among them for single operators alone, whose results
// do not depend on where they round.
static double draw(const struct kind *k, bool extremes)
{
    const double sign = below(2) ? -1 : 1, small = (below(4001) - 2000) / 500.0;
    switch (below(extremes ? 15 : 12)) {
    case 0:
        return NAN;
    case 1:
        return sign * INFINITY;
    case 2:
        return sign * 0.0;
    case 12:
        return sign * k->most;
    case 13:
        return sign * k->least;
    default:
        return small;
    }
}

static const int64_t sizes[][2] = {{1, 1}, {3, 37}, {2, 300}, {5, 16}, {0, 5}, {4, 0}};

static struct mgx_ins *parameter(struct mgx_module *m, const char *name, enum mgx_type type,
                                 const int64_t *lens)
{
    const struct mgx_shape shape = mgx_shape_make(type, 2, lens);
    return mgx_add_parameter(m, name, &shape);
}

static struct mgx_ins *one(struct mgx_module *m, const struct mgx_op *op, struct mgx_ins *x)
{
    return mgx_emit(m, op, NULL, MGX_IN(x));
}

static struct mgx_ins *convert(struct mgx_module *m, struct mgx_ins *x, enum mgx_type type)
{
    return mgx_emit(m, &mgx_op_convert, MGX_ATTRS(mgx_int("target_type", type)), MGX_IN(x));
}

static struct mgx_ins *along(struct mgx_module *m, const struct mgx_op *op, struct mgx_ins *x)
{
    const int64_t axis = 1;
    if (op == &mgx_op_softmax || op == &mgx_op_logsoftmax)
        return mgx_emit(m, op, MGX_ATTRS(mgx_int("axis", 1)), MGX_IN(x));
    return mgx_emit(m, op, MGX_ATTRS(mgx_ints("axes", &axis, 1)), MGX_IN(x));
}

// x times y turned.
static struct mgx_ins *product(struct mgx_module *m, struct mgx_ins *x, struct mgx_ins *y)
{
    const int64_t turned[] = {1, 0};
    struct mgx_ins *t =
        mgx_emit(m, &mgx_op_transpose, MGX_ATTRS(mgx_ints("permutation", turned, 2)), MGX_IN(y));
    return mgx_emit(m, &mgx_op_dot, NULL, MGX_IN(x, t));
}

static struct mgx_ins *step(struct mgx_module *m, struct mgx_ins *x, struct mgx_ins *y)
{
    static const struct mgx_op *const unary[] = {
        &mgx_op_abs,   &mgx_op_neg,  &mgx_op_relu,  &mgx_op_sigmoid, &mgx_op_tanh,
        &mgx_op_exp,   &mgx_op_sqrt, &mgx_op_floor, &mgx_op_ceil,    &mgx_op_identity,
        &mgx_op_recip, &mgx_op_erf,  &mgx_op_log,   &mgx_op_sign};
    static const struct mgx_op *const binary[] = {&mgx_op_add, &mgx_op_sub, &mgx_op_mul,
                                                  &mgx_op_div, &mgx_op_max, &mgx_op_min};
    static const struct mgx_op *const rows[] = {&mgx_op_softmax, &mgx_op_reduce_max,
                                                &mgx_op_reduce_min, &mgx_op_reduce_sum,
                                                &mgx_op_logsoftmax};
    const int kind = below(10);
    if (kind < 4)
        return one(m, unary[below(MGX_COUNT(unary))], x);
    if (kind < 7)
        return mgx_emit(m, binary[below(MGX_COUNT(binary))], NULL, MGX_IN(x, y));
    if (kind == 7)
        return product(m, x, y);
    return along(m, rows[below(MGX_COUNT(rows))], x);
}

// One value, spread over x.
static struct mgx_ins *spread(struct mgx_module *m, struct mgx_ins *x, enum mgx_type type, double v)
{
    const struct mgx_shape shape = mgx_shape_make(type, 1, (int64_t[]){1});
    struct mgx_tensor t;
    if (mgx_tensor_create(&t, &shape, NULL) != MGX_OK)
        return NULL;
    mgx_store_double(type, t.data, 0, v);
    struct mgx_ins *ins = mgx_add_literal(m, &t);
    mgx_tensor_release(&t);
    return mgx_emit(m, &mgx_op_multibroadcast, MGX_ATTRS(mgx_ints("out_lens", x->shape.lens, 2)),
                    MGX_IN(ins));
}

// Bytes of floats with a scale and a zero point at any place, and back.
static struct mgx_ins *through_bytes(struct mgx_module *m, struct mgx_ins *x)
{
    static const double scales[] = {0.25, 3e-5, 1e30};
    const enum mgx_type type = below(2) ? MGX_UINT8 : MGX_INT8;
    const int low = type == MGX_UINT8 ? 0 : -128;
    struct mgx_ins *scale = spread(m, x, MGX_FLOAT, scales[below(3)]),
                   *zero = spread(m, x, type, low + (below(2) ? 255 * below(2) : below(256)));
    struct mgx_ins *q = mgx_emit(m, &mgx_op_quantizelinear, MGX_ATTRS(mgx_int("out_type", type)),
                                 MGX_IN(x, scale, zero));
    return below(2) ? q : mgx_emit(m, &mgx_op_dequantizelinear, NULL, MGX_IN(q, scale, zero));
}

// The program of a seed.
static struct mgx_program *build(uint64_t seed, const struct kind *k, const int64_t *lens)
{
    struct mgx_diag diag = {0};
    struct mgx_program *p = NULL;
    if (mgx_program_create(&p, &mgx_ops, &diag) != MGX_OK)
        return NULL;
    state = seed * 31 + 7;
    struct mgx_module *m = mgx_program_main(p);
    struct mgx_ins *x = parameter(m, "x", k->type, lens), *y = parameter(m, "y", k->type, lens),
                   *v = x;
    if (!k->chain) { // bytes: to other types, and from them
        const enum mgx_type other = kinds[below(MGX_COUNT(kinds))].type;
        v = below(3) ? convert(m, v, MGX_FLOAT) : convert(m, convert(m, v, MGX_FLOAT), other);
        v = v->shape.type == MGX_FLOAT && below(2) ? step(m, v, convert(m, y, MGX_FLOAT)) : v;
    }
    for (int i = k->chain ? 1 + below(k->chain) : 0; i > 0; i--)
        v = step(m, v, mgx_shape_same_lens(&v->shape, &y->shape) ? y : v);
    if (k->chain > 1 && below(3) == 0)
        v = through_bytes(m, v);
    mgx_add_return(m, &v, 1);
    return p;
}

static bool run(struct mgx_program *p, const char *target, const char *isa,
                const struct mgx_tensor in[2], struct mgx_tensor *out)
{
    struct mgx_diag diag = {0};
    struct mgx_ins *params[2];
    struct mgx_named_tensor named[2];
    const struct mgx_compile_options options = {
        .offload_copy = true, .threads = 2, .own = MGX_SETTINGS({"isa", isa})};
    bool good = p && mgx_program_compile(p, mgx_target_find(target), &options, &diag) == MGX_OK;
    const int count = good ? mgx_module_parameters(mgx_program_main(p), params, 2) : 0;
    for (int i = 0; i < count; i++)
        named[i] = (struct mgx_named_tensor){mgx_parameter_name(params[i]),
                                             in[mgx_parameter_name(params[i])[0] - 'x']};
    struct mgx_run call = {
        .params = named, .param_count = count, .results = out, .result_count = 1};
    good = good && mgx_program_run(p, &call, &diag) == MGX_OK;
    if (!good)
        printf("%s: %s\n", target, diag.text);
    mgx_program_destroy(p);
    return good;
}

// -1: all agree; else the first that does not.
static int64_t first_apart(const struct mgx_tensor *a, const struct mgx_tensor *b, double step)
{
    if (a->shape.type != b->shape.type || !mgx_shape_same_lens(&a->shape, &b->shape))
        return 0;
    if (a->shape.type == MGX_UINT8 || a->shape.type == MGX_INT8)
        step = 0;
    for (int64_t i = 0; i < mgx_shape_elements(&a->shape); i++) {
        const double x = mgx_load_double(a->shape.type, a->data, mgx_shape_index(&a->shape, i)),
                     y = mgx_load_double(b->shape.type, b->data, mgx_shape_index(&b->shape, i));
        const bool same = x == y || (isnan(x) && isnan(y));
        if (!same && !(fabs(x - y) <= step * (1 + fabs(y))))
            return i;
    }
    return -1;
}

static void report(uint64_t seed, const struct kind *k, const int64_t *lens, const char *isa,
                   const struct mgx_tensor *got, const struct mgx_tensor *want, int64_t at)
{
    struct mgx_str text = {0};
    struct mgx_program *p = build(seed, k, lens);
    mgx_program_print(&text, p);
    printf("seed %d on %s, value %d: %g, the reference has %g\n%s", (int)seed, isa, (int)at,
           mgx_load_double(got->shape.type, got->data, mgx_shape_index(&got->shape, at)),
           mgx_load_double(want->shape.type, want->data, mgx_shape_index(&want->shape, at)),
           mgx_str_text(&text));
    mgx_str_fini(&text);
    mgx_program_destroy(p);
}

static bool agrees(uint64_t seed)
{
    const struct kind *k = &kinds[seed % MGX_COUNT(kinds)];
    const int64_t *lens = sizes[seed / 7 % MGX_COUNT(sizes)];
    const struct mgx_shape shape = mgx_shape_make(k->type, 2, lens);
    struct mgx_tensor in[2] = {{.data = NULL}, {.data = NULL}}, want = {.data = NULL};
    bool good = true;
    state = seed;
    for (int i = 0; i < 2 && good; i++) {
        good = mgx_tensor_create(&in[i], &shape, NULL) == MGX_OK;
        for (int64_t j = 0; good && j < mgx_shape_elements(&shape); j++)
            mgx_store_double(k->type, in[i].data, j, draw(k, k->chain < 2));
    }
    good = good && run(build(seed, k, lens), "ref", NULL, in, &want);
    mgx_isa isa;
    for (int i = 0; good && mgx_kernel_isa(i, &isa); i++) {
        struct mgx_tensor got = {.data = NULL};
        good = run(build(seed, k, lens), "cpu", mgx_isa_name(isa), in, &got);
        const int64_t at = good ? first_apart(&got, &want, k->step) : -1;
        if (at >= 0)
            report(seed, k, lens, mgx_isa_name(isa), &got, &want, at);
        good = good && at < 0;
        mgx_tensor_release(&got);
    }
    mgx_tensor_release(&want);
    mgx_tensor_release(&in[0]);
    mgx_tensor_release(&in[1]);
    return good;
}

CASE(no_numbers_and_infinities)
{
    int bad = 0;
    for (uint64_t seed = 0; seed < (uint64_t)check_rounds(PROGRAMS); seed++)
        bad += !agrees(seed);
    CHECK_INT(bad, 0);
}

TEST_MAIN(ROW(no_numbers_and_infinities))
