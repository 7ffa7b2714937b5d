// SPDX-License-Identifier: MIT
// How far the functions of block programs are from the truth, in units of the last place: over
// every exponent and both signs, denormals, infinities, NaN and signed zeros, against libm in
// double.
//
//     vmath_test                        fails above 2 ulp
//     vmath_test --table                the table of docs/cpu.md
//     vmath_test --exhaustive [name]    all 2^32 floats (of pow: as many pairs); minutes each
//     vmath_test --bench                values per nanosecond and instruction set
#include "op/op.h"
#include "targets/cpu/kernel/harness.h"
#include "targets/cpu/kernel/rows/block.h"

static const double MOST_ULPS = 2;

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double rsqrt_of(double x)
{
    return 1 / sqrt(x);
}

static double recip_of(double x)
{
    return 1 / x;
}

static double elu_of(double x) // alpha 1
{
    return x > 0 ? x : expm1(x);
}

static const struct {
    const char *name;
    enum mgx_pw code;
    double (*meaning)(double x);
} functions[] = {
    {"exp", MGX_PW_exp, exp},
    {"log", MGX_PW_log, log},
    {"log2", MGX_PW_log2, log2},
    {"sqrt", MGX_PW_sqrt, sqrt},
    {"rsqrt", MGX_PW_rsqrt, rsqrt_of},
    {"recip", MGX_PW_recip, recip_of},
    {"sigmoid", MGX_PW_sigmoid, sigmoid},
    {"tanh", MGX_PW_tanh, tanh},
    {"erf", MGX_PW_erf, erf},
    {"elu", MGX_PW_elu, elu_of},
    {"sin", MGX_PW_sin, sin},
    {"cos", MGX_PW_cos, cos},
    {"tan", MGX_PW_tan, tan},
    {"asin", MGX_PW_asin, asin},
    {"acos", MGX_PW_acos, acos},
    {"atan", MGX_PW_atan, atan},
    {"sinh", MGX_PW_sinh, sinh},
    {"cosh", MGX_PW_cosh, cosh},
    {"asinh", MGX_PW_asinh, asinh},
    {"acosh", MGX_PW_acosh, acosh},
    {"atanh", MGX_PW_atanh, atanh},
};

enum { FUNCTIONS = sizeof functions / sizeof *functions };

static const mgx_block_fn *table_of(mgx_isa isa)
{
    return mgx_block_kernel(isa)->table;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// What lies beyond the largest float counts as 2^128, so that rounding up to infinity is half a
// unit off, not infinitely many.
static double capped(double x)
{
    return fabs(x) > 0x1p128 ? copysign(0x1p128, x) : x;
}

// Distance from `expected` in units of the last place of a float of that size; infinite where the
// kind is wrong: NaN, or the sign of a zero.
static double ulps_off(float actual, double expected)
{
    if (isnan(expected) || isnan(actual))
        return isnan(expected) && isnan(actual) ? 0 : INFINITY;
    if (expected == 0)
        return actual == 0 && !signbit(actual) == !signbit(expected) ? 0 : INFINITY;
    const double want = capped(expected), have = capped(actual);
    const int exponent = ilogb(fabs(want) >= 0x1p128 ? 0x1p127 : want);
    return fabs(have - want) / ldexp(1, (exponent < -126 ? -126 : exponent) - 23);
}

struct error {
    double most, sum;
    int64_t count;
    float at, at2;
};

static void note(struct error *e, double off, float x, float y)
{
    e->sum += off;
    e->count++;
    if (!(off <= e->most)) {
        e->most = off;
        e->at = x;
        e->at2 = y;
    }
}

// --- one block of values on every instruction set ---

static void measure(int f, const float *x, int n, struct error *errors)
{
    double expected[MGX_BLOCK];
    float y[MGX_BLOCK];
    for (int i = 0; i < n; i++)
        expected[i] = functions[f].meaning(x[i]);
    EACH_ISA(isa)
    {
        const struct mgx_block_operand in[3] = {{(float *)x, false}};
        table_of(isa)[functions[f].code](y, in, 1, 0, n);
        for (int i = 0; i < n; i++)
            note(&errors[isa_at], ulps_off(y[i], expected[i]), x[i], 0);
    }
}

static void measure_pow(const float *x, const float *z, int n, struct error *errors)
{
    double expected[MGX_BLOCK];
    float y[MGX_BLOCK];
    for (int i = 0; i < n; i++)
        expected[i] = pow(x[i], z[i]);
    EACH_ISA(isa)
    {
        const struct mgx_block_operand in[3] = {{(float *)x, false}, {(float *)z, false}};
        table_of(isa)[MGX_PW_pow](y, in, 0, 0, n);
        for (int i = 0; i < n; i++)
            note(&errors[isa_at], ulps_off(y[i], expected[i]), x[i], z[i]);
    }
}

// --- which values ---

// Every exponent and sign: the ends of the mantissa and random ones between.
static void sample(int f, int per_exponent, struct error *errors)
{
    struct rng r = {77};
    float x[MGX_BLOCK];
    int n = 0;
    for (uint32_t top = 0; top < 512; top++)
        for (int i = 0; i < per_exponent; i++) {
            const uint32_t mantissa = i == 0   ? 0
                                      : i == 1 ? 1
                                      : i == 2 ? 0x7fffff
                                               : rng_next(&r) & 0x7fffff;
            x[n++] = float_of(top << 23 | mantissa);
            if (n == MGX_BLOCK) {
                measure(f, x, n, errors);
                n = 0;
            }
        }
    measure(f, x, n, errors);
    for (int round = 0; round < per_exponent; round++) { // where most values of networks are
        for (int i = 0; i < MGX_BLOCK; i++)
            x[i] = rng_float(&r) * (round % 2 ? 4 : 110);
        measure(f, x, MGX_BLOCK, errors);
    }
}

static void all_floats(int f, struct error *errors)
{
    float x[MGX_BLOCK];
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += MGX_BLOCK) {
        for (int i = 0; i < MGX_BLOCK; i++)
            x[i] = float_of((uint32_t)bits + (uint32_t)i);
        measure(f, x, MGX_BLOCK, errors);
    }
}

static const float special[] = {0,
                                -0.0f,
                                1,
                                -1,
                                0.5f,
                                -0.5f,
                                2,
                                -2,
                                3,
                                -3,
                                2.5f,
                                1e-40f,
                                -1e-40f,
                                1e38f,
                                -1e38f,
                                0x1p23f,
                                0x1p23f + 1,
                                0x1p24f,
                                -0x1p31f,
                                0x1p100f,
                                (float)INFINITY,
                                -(float)INFINITY,
                                (float)NAN,
                                0x1.fffffep-1f,
                                0x1.000002p0f};

enum { SPECIALS = sizeof special / sizeof *special };

// Bases of all sizes with exponents that keep the result a float, and any bits with any bits.
static void sample_pow(int64_t blocks, struct error *errors)
{
    struct rng r = {78};
    float x[MGX_BLOCK], y[MGX_BLOCK];
    for (int64_t b = 0; b < blocks; b++) {
        for (int i = 0; i < MGX_BLOCK; i++) {
            x[i] = float_of(rng_next(&r));
            y[i] = float_of(rng_next(&r));
            x[i] = isnan(x[i]) ? NAN : x[i]; // what a signalling one does differs among libraries
            y[i] = isnan(y[i]) ? NAN : y[i];
            if (b % 4 == 1)
                y[i] = (float)(rng_below(&r, 41) - 20);
            if (b % 4 >= 2) {
                x[i] = ldexpf(1 + rng_float(&r) / 2, b % 4 == 2 ? 0 : rng_below(&r, 40) - 20);
                y[i] = (float)(rng_float(&r) * 150 / fmax(fabs(log2(x[i])), 0.01));
            }
        }
        measure_pow(x, y, MGX_BLOCK, errors);
    }
    for (int i = 0; i < SPECIALS; i++) {
        for (int k = 0; k < SPECIALS; k++)
            x[k] = special[i];
        measure_pow(x, special, SPECIALS, errors);
    }
}

static void check_errors(const char *name, const struct error *errors)
{
    EACH_ISA(isa)
    {
        if (!(errors[isa_at].most <= MOST_ULPS))
            CHECK_FAIL("%s on %s is off by %.2f ulp at %a, %a", name, mgx_isa_name(isa),
                       errors[isa_at].most, (double)errors[isa_at].at, (double)errors[isa_at].at2);
    }
}

CASE(within_two_ulps)
{
    for (int f = 0; f < FUNCTIONS; f++) {
        struct error errors[MAX_SETS] = {{0}};
        sample(f, 200, errors);
        check_errors(functions[f].name, errors);
    }
}

CASE(pow_within_two_ulps)
{
    struct error errors[MAX_SETS] = {{0}};
    sample_pow(800, errors);
    check_errors("pow", errors);
}

// Every length writes itself and nothing behind; operands may be one value or the output itself.
CASE(lengths_and_operands)
{
    struct rng r = {79};
    EACH_ISA(isa)
    {
        for (int code = 0; code < MGX_BLOCK_CODES; code++)
            for (int n = 0; n <= 40 && table_of(isa)[code]; n++) {
                struct buffer a = buffer_random(n + 1, &r), b = buffer_random(n + 1, &r),
                              c = buffer_random(n + 1, &r), whole = buffer_new(n),
                              y = buffer_new(n);
                const int kinds = rng_below(&r, 8);
                struct mgx_block_operand in[3] = {
                    {a.data, kinds & 1}, {b.data, (kinds & 2) != 0}, {c.data, (kinds & 4) != 0}};
                table_of(isa)[code](y.data, in, 0.5f, 0.25f, n);
                for (int i = 0; i < n; i++) { // one by one, by single values
                    struct mgx_block_operand one[3];
                    for (int k = 0; k < 3; k++)
                        one[k] =
                            (struct mgx_block_operand){in[k].data + (in[k].scalar ? 0 : i), true};
                    table_of(isa)[code](whole.data + i, one, 0.5f, 0.25f, 1);
                }
                CHECK(buffer_intact(y) &&
                      memcmp(y.data, whole.data, sizeof(float) * (size_t)n) == 0);
                if (!in[0].scalar) {
                    table_of(isa)[code](a.data, in, 0.5f, 0.25f, n);
                    CHECK(memcmp(a.data, whole.data, sizeof(float) * (size_t)n) == 0);
                }
                buffer_free(a);
                buffer_free(b);
                buffer_free(c);
                buffer_free(y);
                buffer_free(whole);
            }
    }
}

// --- every row of the table of scalar operators ---

// Cancellation costs gelu and its kind digits near zero, so the measure is the operands' size.
static bool is_near(float actual, double expected, const float *x, int arity)
{
    double size = fmax(1, fabs(expected));
    for (int i = 0; i < arity; i++)
        size = fmax(size, fabs(x[i]));
    return isnan(expected) ? isnan(actual) : fabs(actual - expected) <= 1e-6 * size;
}

static void check_row(const struct mgx_op *op, const struct mgx_pointwise *row, struct rng *r)
{
    enum { N = 64 };
    float x[3][N], y[N];
    const struct mgx_block_operand in[3] = {{x[0], false}, {x[1], false}, {x[2], false}};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < N; i++)
            x[k][i] = i % 16 == 0 && row->arity > 1 ? (float)(i / 16 - 2) : rng_float(r) * 8;
    EACH_ISA(isa)
    {
        table_of(isa)[row->code](y, in, 0.3f, 0.4f, N);
        for (int i = 0; i < N; i++) {
            const float at[3] = {x[0][i], x[1][i], x[2][i]};
            const double expected = row->real_fn(at[0], at[1], at[2], 0.3f, 0.4f);
            if (!is_near(y[i], expected, at, row->arity))
                CHECK_FAIL("%s on %s: %a, %a, %a gives %a, not %a", op->name, mgx_isa_name(isa),
                           at[0], at[1], at[2], y[i], expected);
        }
    }
}

CASE(every_row_computes_what_it_says)
{
    struct rng r = {80};
    int count, rows = 0;
    const struct mgx_op *const *ops = mgx_op_all(&count);
    for (int i = 0; i < count; i++) {
        const struct mgx_pointwise *row = mgx_pointwise_find(ops[i]);
        if (row && row->real_fn) {
            check_row(ops[i], row, &r);
            rows++;
        }
    }
    CHECK(rows > 50);
}

// --- for people ---

static void print_row(const char *name, const struct error *errors)
{
    printf("| %-8s", name);
    EACH_ISA(isa)
    printf(" | %5.3f %6.4f", errors[isa_at].most,
           errors[isa_at].sum / (double)errors[isa_at].count);
    printf(" |\n");
    fflush(stdout);
}

static int print_table(bool exhaustive, const char *only)
{
    printf("| function");
    EACH_ISA(isa) printf(" | %s max, mean", mgx_isa_name(isa));
    printf(" |\n|---");
    EACH_ISA(isa) printf("|---");
    printf("|\n");
    for (int f = 0; f <= FUNCTIONS; f++) {
        struct error errors[MAX_SETS] = {{0}};
        const char *name = f == FUNCTIONS ? "pow" : functions[f].name;
        if (only && strcmp(only, name) != 0)
            continue;
        if (f == FUNCTIONS)
            sample_pow(exhaustive ? (int64_t)1 << 24 : 20000, errors);
        else if (exhaustive)
            all_floats(f, errors);
        else
            sample(f, 4000, errors);
        print_row(name, errors);
    }
    return 0;
}

struct timed {
    mgx_block_fn fn;
    struct mgx_block_operand in[3];
    float *out;
};

static void run_timed(void *user)
{
    const struct timed *t = user;
    t->fn(t->out, t->in, 1, 0, MGX_BLOCK);
}

static int bench(void)
{
    struct rng r = {5};
    struct buffer x = buffer_random(MGX_BLOCK, &r), y = buffer_random(MGX_BLOCK, &r),
                  out = buffer_new(MGX_BLOCK);
    for (int i = 0; i < MGX_BLOCK; i++)
        x.data[i] = fabsf(x.data[i]) * 3; // in or near every function's domain
    printf("values per nanosecond, one thread\n");
    for (int f = 0; f <= FUNCTIONS; f++) {
        printf("%-8s", f == FUNCTIONS ? "pow" : functions[f].name);
        EACH_ISA(isa)
        {
            const enum mgx_pw code = f == FUNCTIONS ? MGX_PW_pow : functions[f].code;
            struct timed t = {table_of(isa)[code], {{x.data, false}, {y.data, false}}, out.data};
            printf("  %s %6.3f", mgx_isa_name(isa),
                   MGX_BLOCK * 1e-9 / bench_time(run_timed, &t, 7));
        }
        printf("\n");
    }
    buffer_free(x);
    buffer_free(y);
    buffer_free(out);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {ROW(within_two_ulps) ROW(pow_within_two_ulps) ROW(
        lengths_and_operands) ROW(every_row_computes_what_it_says){NULL, NULL}};
    if (bench_asked(argc, argv))
        return bench();
    if (argc > 1 && strcmp(argv[1], "--table") == 0)
        return print_table(false, NULL);
    if (argc > 1 && strcmp(argv[1], "--exhaustive") == 0)
        return print_table(true, argc > 2 ? argv[2] : NULL);
    return check_run(cases, argc, argv);
}
