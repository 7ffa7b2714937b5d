// SPDX-License-Identifier: MIT
// Tuning through compile: what was measured is kept and used, results stay, and a cache that lies
// or is damaged does no harm.
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "op/op.h"
#include "plan/tuning.h"
#include "targets/target.h"

// A convolution of a planar image, two equal ones behind it, one more, and a product: five steps
// that pose four problems.
static const char MODEL[] =
    "module: \"main\"\n"
    "x = @param:x -> float_type, {1, 8, 12, 12}, {1152, 144, 12, 1}\n"
    "@0 = @literal{W} -> float_type, {8, 8, 3, 3}, {72, 9, 3, 1}\n"
    "@1 = convolution[padding={1, 1},stride={1, 1},dilation={1, 1},group=1,padding_mode=0](x,@0)\n"
    "@2 = relu(@1)\n"
    "@3 = convolution[padding={1, 1},stride={1, 1},dilation={1, 1},group=1,padding_mode=0](@2,@0)\n"
    "@4 = relu(@3)\n"
    "@5 = convolution[padding={1, 1},stride={1, 1},dilation={1, 1},group=1,padding_mode=0](@4,@0)\n"
    "@6 = relu(@5)\n"
    "@7 = convolution[padding={1, 1},stride={2, 2},dilation={1, 1},group=1,padding_mode=0](@6,@0)\n"
    "@8 = reshape[dims={12, 24}](@7)\n"
    "@9 = @literal{V} -> float_type, {24, 40}, {40, 1}\n"
    "@10 = dot(@8,@9)\n"
    "@11 = @return(@10)\n";

static void put_numbers(struct mgx_str *out, int count)
{
    for (int i = 0; i < count; i++)
        mgx_str_printf(out, "%s%.4f", i ? ", " : "", (i * 37 % 101 - 50) / 400.0);
}

static struct mgx_program *build(void)
{
    struct mgx_str text = {0};
    for (const char *c = MODEL; *c; c++)
        if (c[0] == '{' && (c[1] == 'W' || c[1] == 'V') && c[2] == '}') {
            mgx_str_putc(&text, '{');
            put_numbers(&text, c[1] == 'W' ? 576 : 960);
            c++;
        } else
            mgx_str_putc(&text, *c);
    struct mgx_diag diag = {0};
    struct mgx_program *p = NULL;
    if (mgx_program_parse(&p, &mgx_ops, text.text, text.size, &diag) != MGX_OK)
        printf("%s\n", diag.text);
    mgx_str_fini(&text);
    return p;
}

static struct mgx_program *compile(bool exhaustive, const char *cache)
{
    struct mgx_diag diag = {0};
    struct mgx_program *p = build();
    const struct mgx_compile_options options = {
        .fast_math = true, .threads = 2, .exhaustive_tune = exhaustive, .tune.cache = cache};
    if (p && mgx_program_compile(p, &mgx_target_cpu, &options, &diag) != MGX_OK) {
        printf("%s\n", diag.text);
        mgx_program_destroy(p);
        return NULL;
    }
    return p;
}

// "tuned: 5 steps, 4 problems measured"
static bool counts(const struct mgx_program *p, int *steps, int *measured)
{
    struct mgx_str text = {0};
    mgx_target_cpu.explain(p, &text);
    const char *at = strstr(mgx_str_text(&text), "\ntuned: ");
    const bool good = at && sscanf(at, "\ntuned: %d steps, %d problems", steps, measured) == 2 &&
                      (*steps == 0) == !strstr(mgx_str_text(&text), ", tuned)");
    mgx_str_fini(&text);
    return good;
}

static bool run(const struct mgx_program *p, double *sum, double *squares)
{
    struct mgx_diag diag = {0};
    struct mgx_ins *x;
    struct mgx_tensor in, out = {.data = NULL};
    mgx_module_parameters(mgx_program_main(p), &x, 1);
    if (mgx_tensor_create(&in, &x->shape, &diag) != MGX_OK)
        return false;
    mgx_tensor_generate(&in, 3);
    const struct mgx_named_tensor named = {"x", in};
    struct mgx_run r = {.params = &named, .param_count = 1, .results = &out, .result_count = 1};
    const bool good = mgx_program_run(p, &r, &diag) == MGX_OK;
    *sum = *squares = 0;
    for (int64_t i = 0; good && i < mgx_shape_elements(&out.shape); i++) {
        const double v = ((const float *)out.data)[i];
        *sum += v;
        *squares += v * v;
    }
    mgx_tensor_release(&in);
    mgx_tensor_release(&out);
    return good;
}

static bool same_results(const struct mgx_program *a, const struct mgx_program *b)
{
    double sum[2], squares[2];
    return run(a, &sum[0], &squares[0]) && run(b, &sum[1], &squares[1]) && squares[0] > 0 &&
           fabs(sum[0] - sum[1]) < 1e-4 * sqrt(squares[0]) &&
           fabs(squares[0] - squares[1]) < 1e-4 * squares[0];
}

static void temporary(char path[64])
{
    strcpy(path, "/tmp/mgx_tune_XXXXXX");
    const int fd = mkstemp(path);
    if (fd >= 0)
        close(fd);
    unlink(path);
}

CASE(measures_once_and_keeps_the_answer)
{
    char path[64];
    int steps, measured;
    temporary(path);
    struct mgx_program *plain = compile(false, path), *first = compile(true, path),
                       *second = compile(true, path), *third = compile(false, path);
    CHECK(plain && first && second && third);
    CHECK(counts(plain, &steps, &measured) && steps == 0 && measured == 0);
    CHECK(counts(first, &steps, &measured));
    CHECK_INT(steps, 5);
    CHECK_INT(measured, 4); // equal problems share
    CHECK(counts(second, &steps, &measured) && steps == 5 && measured == 0);
    CHECK(counts(third, &steps, &measured) && steps == 5 && measured == 0);
    CHECK(same_results(plain, first) && same_results(plain, second) && same_results(plain, third));
    mgx_program_destroy(plain);
    mgx_program_destroy(first);
    mgx_program_destroy(second);
    mgx_program_destroy(third);
    unlink(path);
}

// Every choice replaced by one that no kernel knows, and by one that does not fit.
CASE(a_cache_that_lies_is_measured_anew)
{
    static const char *const lies[] = {"nonsense", "depthwise", "winograd4"};
    char path[64];
    temporary(path);
    struct mgx_program *plain = compile(false, NULL), *first = compile(true, path);
    CHECK(plain && first);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct mgx_diag diag = {0};
        struct mgx_tuning t;
        mgx_tuning_init(&t);
        CHECK_OK(mgx_tuning_load(&t, path, &diag), diag);
        CHECK_INT(t.map.count, 4);
        for (uint32_t k = 0; k < t.map.count; k++)
            CHECK_OK(mgx_tuning_put(&t, t.map.entries[k].key, lies[i], 1, &diag), diag);
        CHECK_OK(mgx_tuning_save(&t, path, &diag), diag);
        mgx_tuning_fini(&t);
        int steps, measured;
        struct mgx_program *p = compile(true, path);
        CHECK(p && counts(p, &steps, &measured) && steps == 5 && measured > 0);
        CHECK(same_results(plain, p));
        mgx_program_destroy(p);
    }
    mgx_program_destroy(plain);
    mgx_program_destroy(first);
    unlink(path);
}

static enum mgx_status try_compile(const struct mgx_compile_options *options, char *why,
                                   size_t room, int *steps, int *measured)
{
    struct mgx_diag diag = {0};
    struct mgx_program *p = build();
    const enum mgx_status status = mgx_program_compile(p, &mgx_target_cpu, options, &diag);
    snprintf(why, room, "%s", diag.text);
    if (status == MGX_OK && !counts(p, steps, measured))
        *steps = *measured = -1;
    mgx_program_destroy(p);
    return status;
}

CASE(strict_fails_where_nobody_measured)
{
    char path[] = "/tmp/mgx_tune_XXXXXX", why[2048];
    const int fd = mkstemp(path);
    CHECK(fd >= 0);
    close(fd);
    int steps, measured;
    struct mgx_compile_options options = {
        .fast_math = true, .threads = 2, .tune.strict = true, .tune.cache = path};
    CHECK_INT(try_compile(&options, why, sizeof why, &steps, &measured), MGX_NOT_FOUND);
    CHECK(strstr(why, "no answer for: cpu "));
    mgx_program_destroy(compile(true, path));
    CHECK_INT(try_compile(&options, why, sizeof why, &steps, &measured), MGX_OK);
    CHECK_INT(steps, 5);
    CHECK_INT(measured, 0);
    unlink(path);
}

CASE(measuring_ends_with_its_time)
{
    char why[2048];
    int steps, measured;
    const struct mgx_compile_options options = {
        .fast_math = true, .threads = 2, .exhaustive_tune = true, .tune.seconds = 1e-9};
    CHECK_INT(try_compile(&options, why, sizeof why, &steps, &measured), MGX_OK);
    CHECK_INT(measured, 1); // the first one, which spent it; its step, and an equal one
    CHECK(steps >= 1 && steps < 5);
}

struct told {
    size_t count;
    double seconds, share;
};

static void note(void *user, const char *problem, size_t measured, double seconds, double share)
{
    struct told *t = user;
    CHECK(problem[0] && measured == t->count + 1 && seconds > t->seconds);
    CHECK(share >= t->share && share < 1);
    *t = (struct told){measured, seconds, share};
}

CASE(whoever_waits_is_told)
{
    char why[2048];
    int steps, measured;
    struct told told = {0};
    const struct mgx_compile_options options = {
        .fast_math = true, .threads = 2, .exhaustive_tune = true, .tune.progress = {note, &told}};
    CHECK_INT(try_compile(&options, why, sizeof why, &steps, &measured), MGX_OK);
    CHECK_INT(measured, 4);
    CHECK_INT(told.count, 4);
    CHECK(told.share > 0);
}

CASE(a_cache_that_cannot_be_written_is_no_failure)
{
    int steps, measured;
    struct mgx_program *p = compile(true, "/nowhere/at/all");
    CHECK(p && counts(p, &steps, &measured) && measured == 4);
    mgx_program_destroy(p);
}

TEST_MAIN(ROW(measures_once_and_keeps_the_answer) ROW(a_cache_that_lies_is_measured_anew)
              ROW(a_cache_that_cannot_be_written_is_no_failure)
                  ROW(strict_fails_where_nobody_measured) ROW(measuring_ends_with_its_time)
                      ROW(whoever_waits_is_told))
