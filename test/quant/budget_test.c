// SPDX-License-Identifier: MIT
// Budgets: kept, as measured here once more; what they leave wide, and why. Smoothing and corrected
// biases: they lose less than doing without.
#include "world.h"

enum { ROWS = 64, WIDTH = 8, LAYERS = 3 };

static float x[2][ROWS * WIDTH];
static uint64_t state = 0x9e3779b97f4a7c15;

static struct mgx_program *network(double outlier)
{
    struct mgx_str text = {0};
    mgx_str_put(&text, "module: \"main\"\nx = @param:x -> float_type, {64, 8}, {8, 1}\n");
    for (int l = 0; l < LAYERS; l++) {
        mgx_str_printf(&text, "w%d = @literal{", l);
        for (int i = 0; i < WIDTH * WIDTH; i++)
            mgx_str_printf(&text, "%s%.9g", i ? ", " : "",
                           world_random(&state) * (l == 1 && i == 9 ? outlier : 1));
        mgx_str_put(&text, "} -> float_type, {8, 8}, {8, 1}\n");
    }
    mgx_str_put(&text, "a = dot(x, w0)\nb = relu(a)\nc = dot(b, w1)\nd = relu(c)\n"
                       "e = dot(d, w2)\nf = @return(e)\n");
    struct mgx_program *p = world_parse(text.text);
    mgx_str_fini(&text);
    return p;
}

static void fill(struct world *world, double outlier)
{
    static struct mgx_shape shape;
    shape = mgx_shape_make(MGX_FLOAT, 2, (int64_t[]){ROWS, WIDTH});
    *world = (struct world){.target = mgx_target_find("cpu")};
    for (int s = 0; s < 2; s++) {
        for (int i = 0; i < ROWS * WIDTH; i++)
            x[s][i] = (float)(world_random(&state) * (i % WIDTH == 3 ? outlier : 1));
        world_give(world, "x", &shape, x[s]);
    }
}

// Both errors of b's results against a's, over all samples.
static struct mgx_quant_distance distance(struct world *w, struct mgx_program *a,
                                          struct mgx_program *b)
{
    double want[ROWS * WIDTH], got[ROWS * WIDTH], difference = 0, size = 0;
    int elsewhere = 0;
    for (int s = 0; s < w->samples; s++) {
        if (!world_result(w, a, s, want) || !world_result(w, b, s, got))
            exit(2);
        for (int r = 0; r < ROWS; r++) {
            int tops[2] = {0, 0};
            for (int i = 0; i < WIDTH; i++) {
                const double u = want[r * WIDTH + i], v = got[r * WIDTH + i];
                difference += (u - v) * (u - v);
                size += u * u;
                tops[0] = u > want[r * WIDTH + tops[0]] ? i : tops[0];
                tops[1] = v > got[r * WIDTH + tops[1]] ? i : tops[1];
            }
            elsewhere += tops[0] != tops[1];
        }
    }
    return (struct mgx_quant_distance){sqrt(difference / size),
                                       (double)elsewhere / (ROWS * w->samples)};
}

static int narrow_count(const struct mgx_recipe *r)
{
    int count = 0;
    for (int64_t i = 0; i < r->count; i++)
        count += r->v[i].type != MGX_FLOAT;
    return count;
}

CASE(budgets_are_kept)
{
    static const double budgets[] = {0, 0.004, 0.007, 0.01, 0.02, 1};
    int before = -1;
    for (int i = 0; i < 6; i++) {
        struct world world;
        struct mgx_recipe r;
        state = 12345;
        fill(&world, 1);
        struct mgx_program *wide = network(1), *p = NULL;
        struct mgx_diag diag = {0};
        CHECK_OK(mgx_program_clone(&p, wide, &diag), diag);
        struct mgx_quant_options options = world_options();
        options.budget = budgets[i];
        CHECK(world_quantize(&world, p, &options, &r));
        const struct mgx_quant_distance d = distance(&world, wide, p);
        CHECK(d.relative <= budgets[i]);
        CHECK_NEAR(r.error, d.relative, 1e-6);
        const int narrow = narrow_count(&r);
        CHECK(narrow >= before);
        before = narrow;
        for (int64_t k = 0; k < r.count; k++) {
            CHECK(r.v[k].measured && r.v[k].error > 0 && r.v[k].gain > 0);
            CHECK((r.v[k].why != NULL) == (r.v[k].type == MGX_FLOAT));
        }
        CHECK(i != 0 || narrow == 0);
        CHECK(i != 5 || narrow == LAYERS);
        mgx_recipe_fini(&r);
        mgx_program_destroy(wide);
        mgx_program_destroy(p);
    }
}

CASE(lengths_may_vary)
{
    struct world world;
    struct mgx_recipe r;
    static const char text[] =
        "module: \"main\"\nx = @param:x -> dynamic, float_type, {[1..1000000000], 8}\n"
        "w = @literal{1, 2, 3, 4, 5, 6, 7, 8} -> float_type, {8, 1}, {1, 1}\n"
        "y = dot(x, w)\nz = @return(y)\n";
    fill(&world, 1);
    struct mgx_program *p = world_parse(text);
    struct mgx_quant_options options = world_options();
    options.budget = 1;
    options.smooth = options.correct_bias = options.asymmetric = true;
    CHECK(world_quantize(&world, p, &options, &r));
    CHECK_INT(narrow_count(&r), 1);
    CHECK(r.v[0].gain > 0 && r.v[0].gain < 1);
    mgx_recipe_fini(&r);
    mgx_program_destroy(p);
}

CASE(answers_may_be_what_counts)
{
    struct world world;
    struct mgx_recipe r;
    struct mgx_diag diag = {0};
    fill(&world, 1);
    struct mgx_program *wide = network(40), *p = NULL;
    CHECK_OK(mgx_program_clone(&p, wide, &diag), diag);
    struct mgx_quant_options options = world_options();
    options.metric = MGX_QUANT_TOP;
    options.budget = 0.04;
    CHECK(world_quantize(&world, p, &options, &r));
    const struct mgx_quant_distance d = distance(&world, wide, p);
    CHECK(d.top <= 0.04);
    CHECK_NEAR(r.error, d.top, 1e-9);
    mgx_recipe_fini(&r);
    mgx_program_destroy(wide);
    mgx_program_destroy(p);
}

static enum mgx_status slow_when_narrow(void *user, struct mgx_program *p, double *seconds,
                                        struct mgx_diag *diag)
{
    (void)user, (void)diag;
    *seconds = world_count(p, "dequantizelinear") || world_count(p, "quant_dot") ? 2 : 1;
    return MGX_OK;
}

CASE(what_is_not_faster_stays_wide)
{
    struct world world;
    struct mgx_recipe r;
    struct mgx_diag diag = {0};
    fill(&world, 1);
    world.target = mgx_target_find("ref"); // which keeps the pairs to be counted
    struct mgx_program *p = network(1);
    struct mgx_quant_options options = world_options();
    struct mgx_quant_runner runner = world_runner(&world);
    options.budget = 1;
    runner.time = slow_when_narrow;
    CHECK_OK(mgx_quantize(p, &options, &runner, NULL, &r, &diag), diag);
    CHECK_INT(narrow_count(&r), 0);
    CHECK_TEXT(r.v[0].why, "it would not be faster");
    CHECK_NEAR(r.v[0].gain, -1e6, 1e-3);
    mgx_recipe_fini(&r);
    mgx_program_destroy(p);
}

// --- on a card ---

static int timed;   // programs
static bool is_odd; // was there one of another kind?

// On a card wide products come in half, and narrow ones as bytes that leave half.
static enum mgx_status slow_in_half(void *user, struct mgx_program *p, double *seconds,
                                    struct mgx_diag *diag)
{
    struct mgx_ins *in[2] = {NULL, NULL};
    const struct mgx_module *m = mgx_program_main(p);
    const int count = mgx_module_parameters(m, in, 2);
    const bool narrow = world_count(p, "dequantizelinear");
    (void)user, (void)diag;
    const enum mgx_type type = in[count > 0 ? count - 1 : 0]->shape.type;
    timed++;
    is_odd |= mgx_module_result(m, 0)->shape.type != MGX_HALF ||
              world_count(p, "quantizelinear") != 0 ||
              !(narrow ? type == MGX_INT8 || type == MGX_UINT8 : type == MGX_HALF);
    *seconds = narrow ? 1 : 3;
    return MGX_OK;
}

static int count_of_type(const struct mgx_recipe *r, enum mgx_type type)
{
    int count = 0;
    for (int64_t i = 0; i < r->count; i++)
        count += r->v[i].type == type;
    return count;
}

// The rival is half, and what does not fit the budget in bytes may in half.
CASE(cards_weigh_bytes_against_half)
{
    static const double budgets[] = {0, 0.004, 0.01, 1};
    static const int halves[] = {0, LAYERS, -1, 0};
    for (int i = 0; i < 4; i++) {
        struct world world;
        struct mgx_recipe r;
        struct mgx_diag diag = {0};
        struct mgx_program *p = NULL;
        state = 12345;
        fill(&world, 1);
        struct mgx_program *wide = network(1);
        struct mgx_quant_options options = world_options();
        struct mgx_quant_runner runner = world_runner(&world);
        CHECK_OK(mgx_program_clone(&p, wide, &diag), diag);
        options.budget = budgets[i];
        runner.time = slow_in_half;
        runner.halves = true;
        timed = 0;
        CHECK_OK(mgx_quantize(p, &options, &runner, NULL, &r, &diag), diag);
        CHECK(!is_odd);
        CHECK_INT(timed, 4); // the second and the third layer are one problem
        const struct mgx_quant_distance d = distance(&world, wide, p);
        CHECK(d.relative <= budgets[i]);
        CHECK_NEAR(r.error, d.relative, 1e-6);
        CHECK_NEAR(r.v[2].gain, 2e6, 1);
        CHECK(halves[i] < 0 || count_of_type(&r, MGX_HALF) == halves[i]);
        CHECK_INT(count_of_type(&r, MGX_HALF) > 0, world_count(p, "convert") > 0);
        CHECK_INT(count_of_type(&r, MGX_FLOAT), i == 0 ? LAYERS : 0);
        mgx_recipe_fini(&r);
        mgx_program_destroy(wide);
        mgx_program_destroy(p);
    }
}

static double error_with(double outlier, bool smooth, bool correct)
{
    struct world world;
    struct mgx_diag diag = {0};
    state = 777;
    fill(&world, outlier);
    struct mgx_program *wide = network(1), *p = NULL;
    struct mgx_quant_options options = world_options();
    options.smooth = smooth;
    options.correct_bias = correct;
    if (mgx_program_clone(&p, wide, &diag) != MGX_OK || !world_quantize(&world, p, &options, NULL))
        exit(2);
    const double error = distance(&world, wide, p).relative;
    mgx_program_destroy(wide);
    mgx_program_destroy(p);
    return error;
}

CASE(outliers_move_into_the_weights)
{
    const double plain = error_with(60, false, false), smoothed = error_with(60, true, false);
    CHECK(smoothed < 0.8 * plain);
    // Where there are none, nothing is lost.
    CHECK(error_with(1, true, false) <= 1.05 * error_with(1, false, false));
}

// Of inputs far from zero the mean error of the weights shows in the mean of the results.
CASE(biases_are_corrected)
{
    struct world world;
    double wide[ROWS * WIDTH], got[ROWS * WIDTH], off[2] = {0, 0};
    struct mgx_diag diag = {0};
    fill(&world, 1);
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < ROWS * WIDTH; i++)
            x[s][i] = x[s][i] / 100 + (float)(i % WIDTH) - 2;
    struct mgx_program *original = network(1);
    for (int correct = 0; correct < 2; correct++) {
        struct mgx_program *p = NULL;
        struct mgx_quant_options options = world_options();
        options.correct_bias = correct;
        options.method = MGX_QUANT_MAX;
        CHECK_OK(mgx_program_clone(&p, original, &diag), diag);
        CHECK_OK(mgx_program_trim(p, 4, 0, &diag), diag); // the first product alone
        struct mgx_program *first = NULL;
        CHECK_OK(mgx_program_clone(&first, p, &diag), diag);
        CHECK(world_quantize(&world, p, &options, NULL));
        CHECK(world_result(&world, first, 0, wide));
        CHECK(world_result(&world, p, 0, got));
        for (int j = 0; j < WIDTH; j++) {
            double mean = 0;
            for (int r = 0; r < ROWS; r++)
                mean += (got[r * WIDTH + j] - wide[r * WIDTH + j]) / ROWS;
            off[correct] += fabs(mean);
        }
        mgx_program_destroy(first);
        mgx_program_destroy(p);
    }
    CHECK(off[0] > 0 && off[1] < off[0]);
    mgx_program_destroy(original);
}

TEST_MAIN(ROW(budgets_are_kept) ROW(lengths_may_vary) ROW(answers_may_be_what_counts)
              ROW(what_is_not_faster_stays_wide) ROW(cards_weigh_bytes_against_half)
                  ROW(outliers_move_into_the_weights) ROW(biases_are_corrected))
