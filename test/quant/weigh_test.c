// SPDX-License-Identifier: MIT
// Products stay in 16 bits by what a model of time says: alone, with those that share what makes
// their bytes, and only where half holds what they sum up.
#include "world.h"

enum { ROWS = 4, WIDTH = 4 };

static const char text[] =
    "module: \"main\"\n"
    "x = @param:x -> float_type, {4, 4}, {4, 1}\n"
    "v = @literal{1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2} -> float_type, {4, 4}, {4, 1}\n"
    "w = @literal{2, 1, 0, 1, -1, 2, 1, 0, 3, 1, 1, 2, 0, 1, 2, 1} -> float_type, {4, 4}, {4, 1}\n"
    "a = dot(v, x)\nb = dot(x, w)\nc = add(a, b)\nd = relu(c)\ne = dot(d, w)\nf = @return(e)\n";

static float x[ROWS * WIDTH];

// What the model says of each product, and of what makes the bytes of x and of d.
struct model {
    struct world world;
    double narrow[3], wide[3], maker[2];
    bool unknown[3];
    int products, makers; // told
    bool odd;
};

// Which of the two marks of weigh.c an origin is; the site's number.
static int number_of(const struct mgx_strings *origin, const char *mark)
{
    for (int i = 0; i < origin->count; i++)
        if (strncmp(origin->v[i], mark, strlen(mark)) == 0)
            return atoi(origin->v[i] + strlen(mark));
    return -1;
}

static enum mgx_status weigh(void *user, struct mgx_program *p,
                             void (*tell)(void *to, const struct mgx_strings *origin, double narrow,
                                          double wide),
                             void *to, struct mgx_diag *diag)
{
    struct model *m = user;
    (void)diag;
    m->odd |= world_count(p, "quantizelinear") != 2 || world_count(p, "dot") != 3;
    MGX_EACH (ins, mgx_program_main(p)) {
        const int product = number_of(&ins->origin, "quantized product ");
        const int maker = number_of(&ins->origin, "quantized for ");
        if (ins->op == &mgx_op_dot) {
            m->odd |= product < 0;
            m->products++;
            if (product >= 0 && !m->unknown[product])
                tell(to, &ins->origin, m->narrow[product], m->wide[product]);
        } else if (ins->op == &mgx_op_quantizelinear) {
            m->odd |= maker < 0;
            m->makers++;
            if (m->maker[maker == 2] > 0)
                tell(to, &ins->origin, m->maker[maker == 2], 0);
        } else if (ins->op == &mgx_op_relu)
            tell(to, &ins->origin, 100, 0); // of nobody's
    }
    return MGX_OK;
}

static struct model model(void)
{
    static struct mgx_shape shape;
    struct model m = {.narrow = {5, 5, 5}, .wide = {6, 6, 6}};
    shape = mgx_shape_make(MGX_FLOAT, 2, (int64_t[]){ROWS, WIDTH});
    m.world.target = mgx_target_find("ref");
    for (int i = 0; i < ROWS * WIDTH; i++)
        x[i] = (float)(i * 7 % 11 - 5);
    world_give(&m.world, "x", &shape, x);
    return m;
}

// The types of the three products, "nnh", and what the last of them in half is said to cost.
static bool says(struct model *m, float scale, const char *types, double gain)
{
    struct mgx_program *p = world_parse(text);
    struct mgx_quant_options options = world_options();
    struct mgx_quant_runner runner = world_runner(&m->world);
    struct mgx_recipe r;
    struct mgx_diag diag = {0};
    char found[4] = "";
    bool good = true;
    for (int i = 0; i < ROWS * WIDTH; i++)
        x[i] *= scale;
    runner.weigh = weigh;
    if (mgx_quantize(p, &options, &runner, NULL, &r, &diag) != MGX_OK) {
        printf("%s\n", diag.text);
        exit(2);
    }
    for (int i = 0; i < 3; i++) {
        const struct mgx_recipe_entry *e = &r.v[i];
        found[i] = e->type == MGX_HALF ? 'h' : e->type == MGX_INT8 ? 'n' : '?';
        good &= e->type != MGX_HALF || (e->weighed && !e->measured && fabs(e->gain - gain) < 1e-9 &&
                                        strcmp(e->why, "it would not be faster") == 0);
    }
    struct mgx_recipe kept;
    const bool has = mgx_recipe_of(&kept, p, &diag) == MGX_OK;
    good &= has == (strchr(types, 'h') != NULL) && !m->odd && strcmp(found, types) == 0;
    good &= world_count(p, "quantizelinear") ==
            (types[0] == 'n' || types[1] == 'n') + (types[2] == 'n');
    if (!good)
        printf("%s instead of %s, %g us\n", found, types, r.v[2].gain);
    if (has)
        mgx_recipe_fini(&kept);
    mgx_recipe_fini(&r);
    mgx_program_destroy(p);
    return good;
}

CASE(what_is_faster_becomes_bytes)
{
    struct model m = model();
    CHECK(says(&m, 1, "nnn", 0));
    CHECK_INT(m.products, 3);
    CHECK_INT(m.makers, 2);
    m.narrow[2] = 6.1; // a few per cent are no news
    CHECK(says(&m, 1, "nnn", 0));
}

CASE(what_is_slower_stays)
{
    struct model m = model();
    m.narrow[2] = 7;
    CHECK(says(&m, 1, "nnh", -1));
}

// The launch that makes bytes is there for both, or for nobody.
CASE(what_shares_its_bytes_stays_together)
{
    struct model m = model();
    m.narrow[0] = 6.5;
    m.maker[0] = 0.4;
    CHECK(says(&m, 1, "nnn", 0)); // 11.9 and 12
    m.maker[0] = 3;
    CHECK(says(&m, 1, "hhn", -1.25)); // 14.5 and 12
    m.maker[1] = 0.9;
    CHECK(says(&m, 1, "hhn", -1.25));
    m.maker[1] = 1.3;
    m.maker[0] = 0;
    m.narrow[0] = 5;
    CHECK(says(&m, 1, "nnh", -0.3));
}

CASE(what_nobody_knows_becomes_bytes)
{
    struct model m = model();
    m.narrow[0] = 20;
    m.unknown[1] = true;
    CHECK(says(&m, 1, "hnn", -14));
    m.maker[0] = 1; // now they are one group, of which one is not known
    CHECK(says(&m, 1, "nnn", 0));
}

// The third product sums up some 1,000 times what is largest in x.
CASE(what_half_does_not_hold_becomes_bytes)
{
    struct model m = model();
    m.narrow[2] = 7;
    CHECK(says(&m, 40, "nnh", -1));
    CHECK(says(&m, 10, "nnn", 0)); // 400 times as much
}

TEST_MAIN(ROW(what_is_faster_becomes_bytes) ROW(what_is_slower_stays)
              ROW(what_shares_its_bytes_stays_together) ROW(what_nobody_knows_becomes_bytes)
                  ROW(what_half_does_not_hold_becomes_bytes))
