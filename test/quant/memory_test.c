// SPDX-License-Identifier: MIT
// Quantizing with every allocation failing in turn: a lack of memory is said, nothing is leaked, and
// the program is what it was.
#include "world.h"

#include "test_arena.h"
#include "test_malloc.h"

static const char text[] = "module: \"main\"\n"
                           "x = @param:x -> float_type, {2, 3}, {3, 1}\n"
                           "w = @literal{1, 2, 3, 4, 5, -6} -> float_type, {3, 2}, {2, 1}\n"
                           "v = @literal{1, 0.5, -2, 4} -> float_type, {2, 2}, {2, 1}\n"
                           "a = dot(x, w)\nb = relu(a)\nc = dot(b, v)\nd = @return(c)\n";

static const float x[6] = {1, -2, 3, 0.5f, 100, 0.25f};

// The second product stays.
static enum mgx_status weigh(void *user, struct mgx_program *p,
                             void (*tell)(void *to, const struct mgx_strings *origin, double narrow,
                                          double wide),
                             void *to, struct mgx_diag *diag)
{
    int number = 0;
    (void)user, (void)diag;
    MGX_EACH (ins, mgx_program_main(p))
        if (ins->op == &mgx_op_dot)
            tell(to, &ins->origin, number++ ? 2 : 1, 1);
    return MGX_OK;
}

static enum mgx_status quantize(struct world *w, struct mgx_program *p, int way,
                                struct mgx_diag *diag)
{
    struct mgx_quant_runner runner = world_runner(w);
    struct mgx_quant_options options = world_options();
    struct mgx_recipe recipe;
    if (way == 2)
        return mgx_quantize_weights4(p, 2, false, diag);
    options.correct_bias = options.smooth = options.keep = true;
    options.asymmetric = way;
    options.budget = way ? 1e-2 : -1; // some in bytes, others in half
    runner.halves = way;
    runner.weigh = weigh;
    const enum mgx_status status = mgx_quantize(p, &options, &runner, NULL, &recipe, diag);
    if (status == MGX_OK)
        mgx_recipe_fini(&recipe);
    return status;
}

static bool survives(int way, long step)
{
    const struct mgx_shape shape = mgx_shape_make(MGX_FLOAT, 2, (int64_t[]){2, 3});
    struct world w = {.target = mgx_target_find("ref")};
    struct mgx_program *original = world_parse(text);
    bool ok = true, again = true;
    world_give(&w, "x", &shape, x);
    for (long n = way; ok && again; n += step) {
        struct mgx_diag diag;
        struct mgx_program *p = NULL;
        mgx_diag_clear(&diag);
        const long live = test_malloc_live();
        if (mgx_program_clone(&p, original, &diag) != MGX_OK)
            return false;
        test_malloc_fail_after(n);
        const enum mgx_status status = quantize(&w, p, way, &diag);
        again = test_malloc_failed();
        test_malloc_fail_after(-1);
        ok = status == MGX_OK ||
             (status == MGX_NO_MEMORY && again && diag.text[0] && mgx_program_equal(p, original));
        mgx_diag_clear(&diag);
        ok = ok && mgx_program_verify(p, &diag) == MGX_OK;
        mgx_program_destroy(p);
        ok = ok && test_malloc_live() == live && (again || status == MGX_OK);
        if (!ok)
            printf("way %d, allocation %ld: status %s, %ld blocks left: %s\n", way, n,
                   mgx_status_text(status), test_malloc_live() - live, diag.text);
    }
    mgx_program_destroy(original);
    return ok;
}

CASE(calibration)
{
    CHECK(survives(0, 1));
}

CASE(a_budget)
{
    CHECK(survives(1, 7));
}

CASE(four_bits)
{
    CHECK(survives(2, 1));
}

TEST_MAIN(ROW(calibration) ROW(a_budget) ROW(four_bits))
