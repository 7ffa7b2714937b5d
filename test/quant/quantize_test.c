// SPDX-License-Identifier: MIT
// Quantized programs against the formulas, element by element; what must stay as it is; bodies,
// strange values, empty ones; recipes given again.
#include "world.h"

enum { ROWS = 4, INNER = 6, COLUMNS = 3 };

static float x[ROWS * INNER], w[INNER * COLUMNS];
static uint64_t state = 0x2545f4914f6cdd1d;

static const int64_t x_lens[2] = {ROWS, INNER};

// A dot of x with w as a literal.
static struct mgx_program *product(const char *tail)
{
    struct mgx_str text = {0};
    mgx_str_put(&text, "module: \"main\"\nx = @param:x -> float_type, {4, 6}, {6, 1}\n"
                       "w = @literal{");
    for (int i = 0; i < INNER * COLUMNS; i++)
        mgx_str_printf(&text, "%s%.9g", i ? ", " : "", (double)w[i]);
    mgx_str_printf(&text, "} -> float_type, {6, 3}, {3, 1}\n%s", tail);
    struct mgx_program *p = world_parse(text.text);
    mgx_str_fini(&text);
    return p;
}

static const char plain[] = "y = dot(x, w)\nz = @return(y)\n";

static void fill(struct world *world, const char *target)
{
    static struct mgx_shape shape;
    shape = mgx_shape_make(MGX_FLOAT, 2, x_lens);
    for (int i = 0; i < ROWS * INNER; i++)
        x[i] = (float)(3 * world_random(&state)) + 1;
    for (int i = 0; i < INNER * COLUMNS; i++)
        w[i] = (float)world_random(&state) * (float)(1 + i % COLUMNS);
    *world = (struct world){.target = mgx_target_find(target)};
    world_give(world, "x", &shape, x);
}

static double largest(const float *v, int count, int step)
{
    double most = 0;
    for (int i = 0; i < count; i++)
        most = fmax(most, fabs((double)v[i * step]));
    return most;
}

static double clamp(double v, double low, double high)
{
    return v < low ? low : v > high ? high : v;
}

// What ONNX says of QuantizeLinear and DequantizeLinear, in double but for the float scale.
static double rounded(double v, float scale, double zero, double low, double high)
{
    const double q = clamp(nearbyint((double)(float)(v / (double)scale)) + zero, low, high);
    return (q - zero) * (double)scale;
}

static void expect(const float *given, float scale, double zero, bool by_channel, double *out)
{
    const double low = zero ? 0 : -128, high = zero ? 255 : 127;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            const double most =
                by_channel ? largest(w + j, INNER, COLUMNS) : largest(w, INNER * COLUMNS, 1);
            double sum = 0;
            for (int k = 0; k < INNER; k++)
                sum += rounded(given[i * INNER + k], scale, zero, low, high) *
                       rounded(w[k * COLUMNS + j], (float)(most / 127), 0, -127, 127);
            out[i * COLUMNS + j] = sum;
        }
}

static void check_product(const char *target, bool per_tensor, bool asymmetric)
{
    struct world world;
    double want[ROWS * COLUMNS], got[ROWS * COLUMNS], low = 0, high = 0;
    fill(&world, target);
    struct mgx_program *p = product(plain);
    struct mgx_quant_options options = world_options();
    options.per_tensor = per_tensor;
    options.asymmetric = asymmetric;
    CHECK(world_quantize(&world, p, &options, NULL));
    CHECK_INT(world_count(p, "quantizelinear"), 1);
    CHECK_INT(world_count(p, "dequantizelinear"), 2);
    for (int i = 0; i < ROWS * INNER; i++) {
        low = fmin(low, (double)x[i]);
        high = fmax(high, (double)x[i]);
    }
    const float scale = asymmetric ? (float)((high - low) / 255) : (float)(fmax(-low, high) / 127);
    const double zero = asymmetric ? nearbyint(-low / ((high - low) / 255)) : 0;
    for (int stretch = 1; stretch <= 3; stretch += 2) { // beyond the range they saturate
        for (int i = 0; i < ROWS * INNER; i++)
            x[i] *= (float)stretch;
        expect(x, scale, zero, !per_tensor, want);
        CHECK(world_result(&world, p, 0, got));
        for (int i = 0; i < ROWS * COLUMNS; i++)
            CHECK_NEAR(got[i], want[i], 1e-4);
    }
    mgx_program_destroy(p);
}

CASE(products_are_those_of_rounded_factors)
{
    static const char *const targets[] = {"ref", "cpu"};
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < 4; i++)
            check_product(targets[t], i & 1, i & 2);
}

// The error of results, of what the largest is, with one channel of x far larger than the others.
static double error_of(bool smooth, uint64_t seed)
{
    enum { SEEN = 64 };
    static const int64_t lens[2] = {SEEN, INNER};
    static float values[SEEN * INNER];
    const struct mgx_shape shape = mgx_shape_make(MGX_FLOAT, 2, lens);
    struct world world;
    double got[SEEN * COLUMNS], error = 0, most = 0;
    struct mgx_str text = {0};
    state = seed;
    fill(&world, "ref"); // w
    world.samples = 0;
    for (int i = 0; i < SEEN * INNER; i++)
        values[i] = (float)world_random(&state) * (float)(i % INNER ? 1 : 60);
    world_give(&world, "x", &shape, values);
    mgx_str_put(&text,
                "module: \"main\"\nx = @param:x -> float_type, {64, 6}, {6, 1}\nw = @literal{");
    for (int i = 0; i < INNER * COLUMNS; i++)
        mgx_str_printf(&text, "%s%.9g", i ? ", " : "", (double)w[i]);
    mgx_str_printf(&text, "} -> float_type, {6, 3}, {3, 1}\n%s", plain);
    struct mgx_program *p = world_parse(text.text);
    mgx_str_fini(&text);
    struct mgx_quant_options options = world_options();
    options.smooth = smooth;
    const bool good = world_quantize(&world, p, &options, NULL) && world_result(&world, p, 0, got);
    for (int i = 0; good && i < SEEN; i++)
        for (int j = 0; j < COLUMNS; j++) {
            double sum = 0;
            for (int k = 0; k < INNER; k++)
                sum += (double)values[i * INNER + k] * (double)w[k * COLUMNS + j];
            error += (sum - got[i * COLUMNS + j]) * (sum - got[i * COLUMNS + j]);
            most += sum * sum;
        }
    mgx_program_destroy(p);
    return good ? sqrt(error / most) : INFINITY;
}

// What is lost of the other channels is in the activations: weights take their share of the steps.
CASE(a_large_channel_is_smoothed_into_the_weights)
{
    double with = 0, without = 0;
    for (uint64_t seed = 1; seed <= 16; seed++) {
        with += error_of(true, seed * 77);
        without += error_of(false, seed * 77);
    }
    if (!(with < 0.5 * without))
        CHECK_FAIL("error %g with smoothing, %g without", with, without);
}

// Products of two values have no weights that could take a channel's share.
CASE(products_of_values_are_not_smoothed)
{
    enum { SEEN = 96 };
    static float values[SEEN * INNER];
    const struct mgx_shape shape = mgx_shape_make(MGX_FLOAT, 2, (int64_t[]){SEEN, INNER});
    struct world world = {.target = mgx_target_find("ref")};
    double got[SEEN], want[SEEN], apart = 0, most = 0;
    state = 5;
    for (int i = 0; i < SEEN * INNER; i++)
        values[i] = (float)world_random(&state) * (float)(i % INNER ? 1 : 60);
    values[0] = 60;
    world_give(&world, "x", &shape, values);
    struct mgx_program *p = world_parse(
        "module: \"main\"\nx = @param:x -> float_type, {96, 6}, {6, 1}\n"
        "s = slice[axes={0},starts={0},ends={1}](x)\nt = transpose[permutation={1, 0}](s)\n"
        "y = dot(x, t)\n@0 = @return(y)\n");
    struct mgx_quant_options options = world_options();
    options.smooth = true;
    CHECK(world_result(&world, p, 0, want) && world_quantize(&world, p, &options, NULL));
    CHECK_INT(world_count(p, "quantizelinear"), 2);
    CHECK_INT(world_count(p, "mul") + world_count(p, "div"), 0);
    CHECK(world_result(&world, p, 0, got));
    for (int i = 0; i < SEEN; i++) {
        apart = fmax(apart, fabs(got[i] - want[i]));
        most = fmax(most, fabs(want[i]));
    }
    CHECK(apart < 0.05 * most);
    mgx_program_destroy(p);
}

// Weights that lie the other way in memory are the same weights.
CASE(weights_lie_as_they_like)
{
    struct world world;
    struct mgx_str text = {0};
    double got[2][ROWS * COLUMNS];
    fill(&world, "ref");
    mgx_str_put(&text,
                "module: \"main\"\nx = @param:x -> float_type, {4, 6}, {6, 1}\nw = @literal{");
    for (int i = 0; i < INNER * COLUMNS; i++)
        mgx_str_printf(&text, "%s%.9g", i ? ", " : "", (double)w[i]);
    mgx_str_printf(&text, "} -> float_type, {6, 3}, {1, 6}\n%s", plain);
    struct mgx_program *p[2] = {product(plain), world_parse(text.text)};
    const struct mgx_quant_options options = world_options();
    for (int i = 0; i < 2; i++) {
        CHECK(world_quantize(&world, p[i], &options, NULL));
        CHECK(world_result(&world, p[i], 0, got[i]));
        mgx_program_destroy(p[i]);
    }
    for (int i = 0; i < ROWS * COLUMNS; i++)
        CHECK_NEAR(got[1][i], got[0][i], 0);
    mgx_str_fini(&text);
}

// What boxes are made of stays in float; the product that they come from does not.
CASE(boxes_stay_in_float_and_products_before_them_do_not)
{
    struct mgx_diag diag = {0};
    struct mgx_program *p = world_parse(
        "module: \"main\"\nx = @param:x -> float_type, {1, 6, 4}, {24, 4, 1}\n"
        "w = @param:w -> float_type, {1, 4, 4}, {16, 4, 1}\n"
        "s = @param:s -> float_type, {1, 1, 6}, {6, 6, 1}\n"
        "d = dot(x, w)\nb = add(d, d)\n"
        "y = nonmaxsuppression[center_point_box=0,use_dyn_output=1](b, s)\n@0 = @return(y)\n");
    CHECK_OK(mgx_quantize_float(p, MGX_HALF, NULL, 0, &diag), diag);
    for (const struct mgx_ins *ins = mgx_program_main(p)->first; ins; ins = ins->next) {
        if (ins->op == &mgx_op_dot)
            CHECK_INT(ins->shape.type, MGX_HALF);
        if (ins->op == &mgx_op_add)
            CHECK_INT(ins->shape.type, MGX_FLOAT);
    }
    mgx_program_destroy(p);
}

CASE(without_samples_a_step_is_a_64th)
{
    struct world world;
    double want[ROWS * COLUMNS], got[ROWS * COLUMNS];
    fill(&world, "ref");
    struct mgx_program *p = product(plain);
    const struct mgx_quant_options options = world_options();
    world.samples = 0;
    CHECK(world_quantize(&world, p, &options, NULL));
    expect(x, 1.0f / 64, 0, true, want);
    CHECK(world_result(&world, p, 0, got));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        CHECK_NEAR(got[i], want[i], 1e-4);
    mgx_program_destroy(p);
}

CASE(a_convolution_has_a_scale_for_each_channel)
{
    static const char text[] =
        "module: \"main\"\n"
        "x = @param:x -> float_type, {1, 2, 3, 4}, {24, 12, 4, 1}\n"
        "w = @literal{100, -50, 1, 0.5, -0.01, 0.003} -> float_type, {3, 2, 1, 1}, {2, 1, 1, 1}\n"
        "y = convolution[padding={0, 0},stride={1, 1},dilation={1, 1},group=1,padding_mode=0](x, "
        "w)\n"
        "z = @return(y)\n";
    static const float weights[6] = {100, -50, 1, 0.5f, -0.01f, 0.003f};
    float data[24];
    double got[36], most = 0;
    for (int i = 0; i < 24; i++) {
        data[i] = (float)world_random(&state);
        most = fmax(most, fabs((double)data[i]));
    }
    const struct mgx_shape shape = mgx_shape_make(MGX_FLOAT, 4, (int64_t[]){1, 2, 3, 4});
    struct world world = {.target = mgx_target_find("cpu")};
    world_give(&world, "x", &shape, data);
    struct mgx_program *p = world_parse(text);
    const struct mgx_quant_options options = world_options();
    CHECK(world_quantize(&world, p, &options, NULL));
    CHECK(world_result(&world, p, 0, got));
    for (int o = 0; o < 3; o++)
        for (int i = 0; i < 12; i++) {
            const float scale = (float)(largest(weights + 2 * o, 2, 1) / 127);
            double sum = 0;
            for (int k = 0; k < 2; k++)
                sum += rounded(data[12 * k + i], (float)(most / 127), 0, -128, 127) *
                       rounded(weights[2 * o + k], scale, 0, -127, 127);
            CHECK_NEAR(got[12 * o + i], sum, 1e-5 * fabs(sum) + 1e-6);
        }
    mgx_program_destroy(p);
}

CASE(one_value_is_quantized_once)
{
    struct world world;
    fill(&world, "ref");
    struct mgx_program *p =
        product("a = dot(x, w)\nv = @literal{1,2,3,4,5,6} -> float_type, {6, 1}, {1, 1}\n"
                "b = dot(x, v)\nc = @return(a, b)\n");
    const struct mgx_quant_options options = world_options();
    CHECK(world_quantize(&world, p, &options, NULL));
    CHECK_INT(world_count(p, "quantizelinear"), 1);
    mgx_program_destroy(p);
}

CASE(what_is_quantized_is_left_alone)
{
    struct world world;
    double first[ROWS * COLUMNS], second[ROWS * COLUMNS];
    fill(&world, "ref");
    struct mgx_program *p = product(plain);
    const struct mgx_quant_options options = world_options();
    CHECK(world_quantize(&world, p, &options, NULL));
    CHECK(world_result(&world, p, 0, first));
    CHECK(world_quantize(&world, p, &options, NULL));
    CHECK(world_result(&world, p, 0, second));
    CHECK_INT(world_count(p, "quantizelinear"), 1);
    CHECK_INT(world_count(p, "dequantizelinear"), 2);
    CHECK(memcmp(first, second, sizeof first) == 0);
    mgx_program_destroy(p);
}

CASE(a_kept_recipe_stays_when_there_is_nothing_left)
{
    struct world world;
    struct mgx_recipe r;
    struct mgx_diag diag = {0};
    fill(&world, "ref");
    struct mgx_program *p = product(plain);
    struct mgx_quant_options options = world_options();
    options.keep = true;
    CHECK(world_quantize(&world, p, &options, NULL));
    CHECK(world_quantize(&world, p, &options, NULL));
    CHECK_OK(mgx_recipe_of(&r, p, &diag), diag);
    CHECK_INT(r.count, 1);
    mgx_recipe_fini(&r);
    mgx_program_destroy(p);
}

CASE(only_what_is_named)
{
    struct world world;
    static const char *const names[] = {"convolution", "dot"};
    for (int count = 1; count <= 2; count++) {
        fill(&world, "ref");
        struct mgx_program *p = product(plain);
        struct mgx_quant_options options = world_options();
        options.names = names;
        options.name_count = (size_t)count;
        CHECK(world_quantize(&world, p, &options, NULL));
        CHECK((world_count(p, "quantizelinear") > 0) == (count == 2));
        mgx_program_destroy(p);
    }
}

CASE(values_that_are_not_finite_leave_a_product_wide)
{
    struct world world;
    struct mgx_recipe r;
    const struct mgx_quant_options options = world_options();
    fill(&world, "cpu");
    x[3] = NAN; // the others count
    struct mgx_program *p = product(plain);
    CHECK(world_quantize(&world, p, &options, &r));
    CHECK(r.v[0].in[0].known && isfinite(r.v[0].in[0].high));
    mgx_recipe_fini(&r);
    mgx_program_destroy(p);
    for (int i = 0; i < ROWS * INNER; i++)
        x[i] = i % 2 ? NAN : INFINITY;
    p = product(plain);
    CHECK(world_quantize(&world, p, &options, &r));
    CHECK_INT(r.v[0].type, MGX_FLOAT);
    CHECK_TEXT(r.v[0].why, "nothing finite was seen");
    CHECK_INT(world_count(p, "quantizelinear"), 0);
    mgx_recipe_fini(&r);
    mgx_program_destroy(p);
}

CASE(zeros_and_one_value)
{
    struct world world;
    double got[ROWS * COLUMNS], want;
    const struct mgx_quant_options options = world_options();
    static const float all[] = {0, 5, -3e-39f, 3e38f};
    for (int v = 0; v < 4; v++) {
        fill(&world, "cpu");
        for (int i = 0; i < ROWS * INNER; i++)
            x[i] = all[v];
        for (int i = 0; i < INNER * COLUMNS; i++)
            w[i] = i % COLUMNS == 0 ? 0 : 0.125f;
        struct mgx_program *p = product(plain);
        CHECK(world_quantize(&world, p, &options, NULL));
        CHECK(world_result(&world, p, 0, got));
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            want = i % COLUMNS == 0 ? 0 : (double)all[v] * INNER * 0.125;
            CHECK_NEAR(got[i], want, 1e-5 * fabs(want) + 1e-38);
        }
        mgx_program_destroy(p);
    }
}

CASE(empty_values)
{
    struct world world = {.target = mgx_target_find("cpu")};
    struct mgx_recipe r;
    const struct mgx_shape shape = mgx_shape_make(MGX_FLOAT, 2, (int64_t[]){0, 2});
    const struct mgx_quant_options options = world_options();
    struct mgx_program *p =
        world_parse("module: \"main\"\nx = @param:x -> float_type, {0, 2}, {2, 1}\n"
                    "w = @literal{1, 2} -> float_type, {2, 1}, {1, 1}\n"
                    "y = dot(x, w)\nz = @return(y)\n");
    world_give(&world, "x", &shape, NULL);
    CHECK(world_quantize(&world, p, &options, &r));
    CHECK(r.count == 0 || r.v[0].type == MGX_FLOAT); // what has no elements is known, or stays wide
    mgx_recipe_fini(&r);
    mgx_program_destroy(p);
}

CASE(bodies_are_quantized_where_samples_came)
{
    struct world world;
    struct mgx_recipe r;
    double wide[ROWS * COLUMNS], got[ROWS * COLUMNS];
    const struct mgx_quant_options options = world_options();
    for (int t = 0; t < 2; t++) {
        fill(&world, t ? "cpu" : "ref");
        for (int i = 0; i < ROWS * INNER; i++)
            x[i] = fabsf(x[i]);
        // The condition is not known before the run; it is true for these samples.
        struct mgx_program *p =
            product("zero = @literal{0} -> float_type, {1}, {1}\n"
                    "s = reduce_sum[axes={0, 1}](x)\nq = reshape[dims={1}](s)\n"
                    "g = greater(q, zero)\nc = convert[target_type=0](g)\n"
                    "i = if(c), [yes, no]\ny = get_tuple_elem[index=0](i)\nz = @return(y)\n\n"
                    "module: \"yes\"\nyes:a = dot(x, w)\nyes:b = @return(yes:a)\n\n"
                    "module: \"no\"\nno:n = neg(x)\nno:a = dot(no:n, w)\nno:b = @return(no:a)\n");
        CHECK(world_result(&world, p, 0, wide));
        CHECK(world_quantize(&world, p, &options, &r));
        CHECK_INT(r.count, 2);
        const struct mgx_recipe_entry *yes = mgx_recipe_find(&r, "yes:dot:0");
        const struct mgx_recipe_entry *no = mgx_recipe_find(&r, "no:dot:0");
        CHECK(yes && yes->type == MGX_INT8 && no && no->type == MGX_FLOAT);
        CHECK_TEXT(no->why, "no sample came here");
        CHECK(world_result(&world, p, 0, got));
        for (int i = 0; i < ROWS * COLUMNS; i++)
            CHECK(fabs(got[i] - wide[i]) < 0.5 && got[i] != wide[i]);
        mgx_recipe_fini(&r);
        mgx_program_destroy(p);
    }
}

CASE(a_recipe_given_again_does_the_same)
{
    struct world world;
    struct mgx_recipe r;
    struct mgx_str first = {0}, second = {0};
    struct mgx_diag diag = {0};
    struct mgx_quant_options options = world_options();
    fill(&world, "ref");
    options.correct_bias = options.smooth = true;
    struct mgx_program *p = product(plain), *q = product(plain),
                       *other = product("z = @return(x)\n");
    CHECK(world_quantize(&world, p, &options, &r));
    CHECK_INT(r.v[0].means.count, INNER);
    const struct mgx_quant_runner runner = world_runner(&world);
    CHECK_OK(mgx_quantize(q, &options, &runner, &r, NULL, &diag), diag);
    mgx_program_print(&first, p);
    mgx_program_print(&second, q);
    CHECK_TEXT(second.text, first.text);
    CHECK_INT(mgx_quantize(other, &options, &runner, &r, NULL, &diag), MGX_NOT_FOUND);
    CHECK_TEXT(diag.text,
               "the ranges name main:dot:0, which the program does not have to quantize");
    mgx_recipe_fini(&r);
    mgx_str_fini(&first);
    mgx_str_fini(&second);
    mgx_program_destroy(p);
    mgx_program_destroy(q);
    mgx_program_destroy(other);
}

CASE(eight_bit_floats)
{
    static const enum mgx_type types[] = {MGX_FP8E4M3FN, MGX_FP8E4M3FNUZ, MGX_FP8E5M2,
                                          MGX_FP8E5M2FNUZ};
    for (int t = 0; t < 4; t++) {
        struct world world;
        double wide[ROWS * COLUMNS], got[ROWS * COLUMNS], error = 0, size = 0;
        fill(&world, "cpu");
        struct mgx_program *p = product(plain);
        struct mgx_quant_options options = world_options();
        options.type = types[t];
        CHECK(world_result(&world, p, 0, wide));
        CHECK(world_quantize(&world, p, &options, NULL));
        CHECK(world_result(&world, p, 0, got));
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            error += (got[i] - wide[i]) * (got[i] - wide[i]);
            size += wide[i] * wide[i];
        }
        // Half a step of 3 or 2 digits of each factor.
        const double step = t < 2 ? 0x1p-4 : 0x1p-3;
        CHECK(error > 0 && sqrt(error / size) < 2 * step);
        mgx_program_destroy(p);
    }
}

// Two products of 16 bits read one value: they are those of 8 bits with scales in float, whichever comes first.
CASE(halves_before_8_bits_are_halves_behind_them)
{
    static const enum mgx_type types[] = {MGX_INT8, MGX_FP8E4M3FN};
    static const char two[] =
        "a = dot(x, w)\nv = @literal{1,2,3,4,5,6} -> float_type, {6, 1}, {1, 1}\n"
        "b = dot(x, v)\ns = multibroadcast[out_lens={4,3}](b)\n"
        "c = mul(a, s)\nz = @return(c)\n";
    for (int t = 0; t < 2; t++) {
        double got[2][ROWS * COLUMNS];
        for (int before = 0; before < 2; before++) {
            struct world world;
            struct mgx_diag diag = {0};
            state = 77;
            fill(&world, "cpu");
            struct mgx_program *p = product(two);
            struct mgx_quant_options options = world_options();
            options.type = types[t];
            if (before)
                CHECK_OK(mgx_quantize_float(p, MGX_HALF, NULL, 0, &diag), diag);
            CHECK(world_quantize(&world, p, &options, NULL));
            if (!before)
                CHECK_OK(mgx_quantize_float(p, MGX_HALF, NULL, 0, &diag), diag);
            CHECK_INT(world_count(p, "quantizelinear"), 1);
            MGX_EACH (ins, p->modules[0])
                CHECK(ins->op != &mgx_op_dot || ins->shape.type == MGX_FLOAT);
            CHECK(world_result(&world, p, 0, got[before]));
            mgx_program_destroy(p);
        }
        double most = 0;
        for (int i = 0; i < ROWS * COLUMNS; i++)
            most = fmax(most, fabs(got[0][i]));
        // What 16 bits of the factors move over the edge of a step, of six each.
        for (int i = 0; i < ROWS * COLUMNS; i++)
            CHECK_NEAR(got[0][i], got[1][i], most * (t ? 0x1p-4 : 0x1p-6));
    }
}

CASE(what_cannot_be_is_refused_and_nothing_changes)
{
    struct world world;
    struct mgx_diag diag = {0};
    struct mgx_str before = {0}, after = {0};
    fill(&world, "ref");
    struct mgx_program *p = product(plain);
    struct mgx_quant_options options = world_options();
    struct mgx_quant_runner runner = world_runner(&world);
    options.type = MGX_INT32;
    CHECK_INT(mgx_quantize(p, &options, &runner, NULL, NULL, &diag), MGX_UNSUPPORTED);
    mgx_diag_clear(&diag);
    options = world_options();
    options.budget = 0.1;
    runner.samples = 0;
    CHECK_INT(mgx_quantize(p, &options, &runner, NULL, NULL, &diag), MGX_INVALID);
    mgx_diag_clear(&diag);
    options = world_options();
    runner.samples = 1;
    world.params[0][0].name = "other"; // a sample without the parameter
    mgx_program_print(&before, p);
    CHECK(mgx_quantize(p, &options, &runner, NULL, NULL, &diag) != MGX_OK);
    mgx_program_print(&after, p);
    CHECK_TEXT(after.text, before.text);
    CHECK(strstr(diag.text, "calibration sample 0") != NULL);
    mgx_str_fini(&before);
    mgx_str_fini(&after);
    mgx_program_destroy(p);
}

static int count_of(const struct mgx_program *p, const char *word)
{
    struct mgx_str text = {0};
    int count = 0;
    mgx_program_print(&text, p);
    for (const char *at = text.text; (at = strstr(at, word)) != NULL; at++)
        count++;
    mgx_str_fini(&text);
    return count;
}

CASE(bodies_of_choices_are_of_16_bits_too)
{
    struct mgx_diag diag = {0};
    struct mgx_program *p =
        world_parse("module: \"main\"\nx = @param:x -> float_type, {4, 4}, {4, 1}\n"
                    "c = @param:c -> bool_type, {1}, {1}\n"
                    "i = if(c), [yes, no]\ny = get_tuple_elem[index=0](i)\n"
                    "z = @return(y)\n\n"
                    "module: \"yes\"\nyes:a = dot(x, x)\nyes:b = @return(yes:a)\n\n"
                    "module: \"no\"\nno:a = tanh(x)\nno:b = @return(no:a)\n");
    CHECK_OK(mgx_quantize_float(p, MGX_HALF, NULL, 0, &diag), diag);
    const struct mgx_op *const wanted[] = {&mgx_op_dot, &mgx_op_tanh};
    for (int k = 0; k < 2; k++) {
        const struct mgx_ins *found = NULL;
        for (int m = 0; m < p->module_count; m++)
            MGX_EACH (ins, p->modules[m])
                found = ins->op == wanted[k] ? ins : found;
        CHECK(found && found->shape.type == MGX_HALF);
    }
    mgx_program_destroy(p);
}

// As windows shift: twelve slices and concats, far beyond what is looked through step by step.
CASE(what_was_clamped_is_not_clamped_again_however_far_it_moves)
{
    enum { MOVES = 12 };
    struct mgx_str text = {0};
    struct mgx_diag diag = {0};
    mgx_str_put(&text, "module: \"main\"\nx = @param:x -> float_type, {4, 6}, {6, 1}\n"
                       "m0 = exp(x)\n");
    for (int i = 0; i < MOVES; i++)
        mgx_str_printf(&text,
                       "a%d = slice[axes={1},starts={2},ends={6}](m%d)\n"
                       "b%d = slice[axes={1},starts={0},ends={2}](m%d)\n"
                       "m%d = concat[axis=1](a%d,b%d)\n",
                       i, i, i, i, i + 1, i, i);
    mgx_str_printf(&text, "y = tanh(m%d)\nz = @return(y)\n", MOVES);
    struct mgx_program *p = world_parse(text.text);
    CHECK_OK(mgx_quantize_float(p, MGX_HALF, NULL, 0, &diag), diag);
    CHECK_INT(count_of(p, "= clip("), 1); // x
    mgx_str_fini(&text);
    mgx_program_destroy(p);
}

CASE(scores_with_a_mask_of_16_bits_are_attention)
{
    static const char *const types[] = {"float_type", "half_type", "bf16_type"};
    for (int t = 0; t < 3; t++) {
        struct mgx_str text = {0};
        struct mgx_diag diag = {0};
        const struct mgx_compile_options options = {.threads = 1};
        mgx_str_printf(&text,
                       "module: \"main\"\nq = @param:q -> %s, {2, 16, 8}, {128, 8, 1}\n"
                       "k = @param:k -> %s, {2, 8, 16}, {128, 16, 1}\n"
                       "v = @param:v -> %s, {2, 16, 8}, {128, 8, 1}\n"
                       "m = @param:m -> %s, {2, 16, 16}, {256, 16, 1}\n"
                       "s = dot(q,k)\nt = add(s,m)\nu = softmax[axis=2](t)\n"
                       "y = dot(u,v)\nz = @return(y)\n",
                       types[t], types[t], types[t], types[t]);
        struct mgx_program *p = world_parse(text.text);
        CHECK_OK(mgx_program_compile(p, mgx_target_find("cpu"), &options, &diag), diag);
        CHECK_INT(count_of(p, "tag=attention"), 1);
        mgx_str_fini(&text);
        mgx_program_destroy(p);
    }
}

TEST_MAIN(ROW(bodies_of_choices_are_of_16_bits_too) ROW(products_are_those_of_rounded_factors) ROW(
    without_samples_a_step_is_a_64th) ROW(a_convolution_has_a_scale_for_each_channel)
              ROW(one_value_is_quantized_once) ROW(what_is_quantized_is_left_alone)
                  ROW(a_kept_recipe_stays_when_there_is_nothing_left) ROW(only_what_is_named) ROW(
                      values_that_are_not_finite_leave_a_product_wide) ROW(zeros_and_one_value)
                      ROW(empty_values) ROW(bodies_are_quantized_where_samples_came)
                          ROW(a_recipe_given_again_does_the_same) ROW(eight_bit_floats) ROW(
                              halves_before_8_bits_are_halves_behind_them)
                              ROW(what_cannot_be_is_refused_and_nothing_changes) ROW(
                                  what_was_clamped_is_not_clamped_again_however_far_it_moves)
                                  ROW(scores_with_a_mask_of_16_bits_are_attention)
                                      ROW(weights_lie_as_they_like) ROW(
                                          a_large_channel_is_smoothed_into_the_weights)
                                          ROW(products_of_values_are_not_smoothed) ROW(
                                              boxes_stay_in_float_and_products_before_them_do_not))
