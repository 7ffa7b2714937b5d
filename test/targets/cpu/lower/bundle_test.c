// SPDX-License-Identifier: MIT
// A dynamic quantization and factors of its scale are one call: what that leaves is what the single
// steps leave, to the bit, and the reference's scale, zero point, factors and bytes.
#include "targets/cpu/program.h"

// x of {2, n / 2}; @l is min(lowest, 0), @s the scale, @z the zero point, @y the bytes.
#define HEAD                                                                                       \
    "module: \"main\"\n"                                                                           \
    "x = @param:x -> float_type, {2, %d}, {%d, 1}\n"                                               \
    "@0 = @literal{0} -> float_type, {1}, {0}\n"                                                   \
    "@1 = @literal{1} -> float_type, {1}, {0}\n"                                                   \
    "@255 = @literal{255} -> float_type, {1}, {0}\n"                                               \
    "@a = reduce_min[axes={0, 1}](x)\n@b = squeeze[axes={0, 1}](@a)\n@l = min(@b, @0)\n"           \
    "@c = reduce_max[axes={0, 1}](x)\n@d = squeeze[axes={0, 1}](@c)\n@h = max(@d, @0)\n"           \
    "@w = sub(@h, @l)\n@q = div(@w, @255)\n@e = equal(@q, @0)\n@t = convert[target_type=0](@e)\n"  \
    "@s = where(@t, @1, @q)\n"                                                                     \
    "@n = neg(@l)\n@p = div(@n, @s)\n@r = nearbyint(@p)\n@v = clip(@r, @0, @255)\n"                \
    "@z = convert[target_type=4](@v)\n"                                                            \
    "@m = multibroadcast[out_lens={2, %d}](@s)\n@k = multibroadcast[out_lens={2, %d}](@z)\n"       \
    "@y = quantizelinear[out_type=4](x, @m, @k)\n"
#define FACTORS                                                                                    \
    "@f1 = @literal{0.0123} -> float_type, {1}, {0}\n"                                             \
    "g = @param:g -> float_type, {1}, {1}\n"                                                       \
    "@i = mul(@s, @f1)\n@j = mul(g, @s)\n"

enum { RESULTS = 5 };

struct bench {
    struct mgx_program *p;
    struct mgx_tensor x, g, results[RESULTS];
    int count;
};

static enum mgx_status ignore(void *user, const struct mgx_ins *ins, const struct mgx_tensor *value,
                              struct mgx_diag *diag)
{
    (void)user, (void)ins, (void)value, (void)diag;
    return MGX_OK;
}

// Again where there are results already: in a debug build the first run goes step by step.
static bool run(struct bench *b, bool traced)
{
    struct mgx_diag diag = {0};
    const struct mgx_named_tensor params[] = {{"x", b->x}, {"g", b->g}};
    struct mgx_run r = {.params = params,
                        .param_count = 2,
                        .results = b->results,
                        .result_count = b->count,
                        .trace = traced ? ignore : NULL};
    for (int i = 0; i < b->count; i++)
        mgx_tensor_release(&b->results[i]);
    const bool good = mgx_program_run(b->p, &r, &diag) == MGX_OK;
    if (!good)
        printf("%s\n", diag.text);
    return good;
}

// To the bit, but for the sign of what is no number.
static bool are_equal(const struct mgx_tensor *a, const struct mgx_tensor *b)
{
    const float *x = a->data, *y = b->data;
    const int64_t n = mgx_shape_elements(&a->shape);
    if (a->shape.type != b->shape.type || mgx_shape_elements(&b->shape) != n)
        return false;
    if (a->shape.type != MGX_FLOAT)
        return memcmp(x, y, mgx_shape_bytes(&a->shape)) == 0;
    for (int64_t i = 0; i < n; i++)
        if (memcmp(x + i, y + i, sizeof *x) != 0 && !(isnan(x[i]) && isnan(y[i])))
            return false;
    return true;
}

// The bytes may be one apart, as the reference divides in double; a product of them by some of that.
static bool near(const struct mgx_tensor *a, const struct mgx_tensor *b)
{
    const struct program_distance distance = program_distance(a, b);
    if (mgx_shape_elements(&a->shape) == 1)
        return are_equal(a, b);
    return a->shape.type == MGX_UINT8 ? distance.largest <= 1 : distance.relative < 1e-2;
}

static void fill(struct mgx_tensor *x, int kind)
{
    float *v = x->data;
    const int64_t n = mgx_shape_elements(&x->shape);
    mgx_tensor_generate(x, (uint64_t)kind + 3);
    for (int64_t i = 0; i < n; i++)
        v[i] = kind == 1   ? 0
               : kind == 2 ? fabsf(v[i])
               : kind == 3 ? -fabsf(v[i])
               : kind == 4 ? v[i] * 1e-42F
                           : v[i] * 1e3F;
    if (kind >= 5)
        v[n / 3] = kind == 5 ? NAN : kind == 6 ? INFINITY : -INFINITY;
}

enum { KINDS = 8 };

static bool start(struct bench *b, const char *text, const char *target, int n)
{
    struct mgx_diag diag = {0};
    const struct mgx_shape x = mgx_shape_make(MGX_FLOAT, 2, (const int64_t[]){2, n}),
                           g = mgx_shape_vector(MGX_FLOAT, 1);
    *b = (struct bench){.p = program_compile(text, target, 1)};
    return b->p && (b->count = mgx_module_result_count(mgx_program_main(b->p))) <= RESULTS &&
           mgx_tensor_create(&b->x, &x, &diag) == MGX_OK &&
           mgx_tensor_create(&b->g, &g, &diag) == MGX_OK;
}

static void end(struct bench *b)
{
    for (int i = 0; i < b->count; i++)
        mgx_tensor_release(&b->results[i]);
    mgx_tensor_release(&b->x);
    mgx_tensor_release(&b->g);
    mgx_program_destroy(b->p);
}

static bool explains(const struct bench *b, const char *what)
{
    struct mgx_str plan = {0};
    mgx_target_cpu.explain(b->p, &plan);
    const bool found = strstr(mgx_str_text(&plan), what) != NULL;
    if (!found)
        printf("%s\n", mgx_str_text(&plan));
    mgx_str_fini(&plan);
    return found;
}

// Every kind of values through all three: together, step by step, and the reference.
static bool agrees(const char *tail, int n, const char *plan)
{
    char text[8192];
    struct bench cpu = {.p = NULL}, single = cpu, ref = cpu;
    const int row = n;
    const int length = snprintf(text, sizeof text, HEAD, row, row, row, row);
    snprintf(text + length, sizeof text - (size_t)length, "%s", tail);
    bool good = start(&cpu, text, "cpu", n) && start(&single, text, "cpu", n) &&
                start(&ref, text, "ref", n) && explains(&cpu, plan);
    for (int kind = 0; kind < KINDS && good; kind++) {
        struct bench *const all[] = {&cpu, &single, &ref};
        for (int i = 0; i < 3; i++) {
            fill(&all[i]->x, kind);
            *(float *)all[i]->g.data = 1.75F;
        }
        good = run(&cpu, false) && run(&cpu, false) && run(&single, true) && run(&ref, false);
        for (int k = 0; k < cpu.count && good; k++)
            good = are_equal(&cpu.results[k], &single.results[k]) &&
                   (kind >= 5 || near(&cpu.results[k], &ref.results[k]));
        if (!good)
            printf("%d values, kind %d\n", 2 * n, kind);
    }
    end(&cpu);
    end(&single);
    end(&ref);
    return good;
}

CASE(bytes_scale_zero_and_factors)
{
    static const int lengths[] = {1, 2, 7, 8, 16, 17, 33, 384, 1000, 8192};
    for (int i = 0; i < (int)(sizeof lengths / sizeof *lengths); i++) {
        CHECK(
            agrees(FACTORS "@out = @return(@y, @s, @z, @i, @j)\n", lengths[i], "with the next 4"));
        CHECK(agrees("g = @param:g -> float_type, {1}, {1}\n@out = @return(@y, @s, @z)\n",
                     lengths[i], "with the next 2"));
    }
}

// The factor takes the scale's place, and the product that reads it is the next step.
CASE(a_factor_in_place)
{
    char text[4096] = "g = @param:g -> float_type, {1}, {1}\n@i = mul(@s, g)\n@weights = @literal{";
    for (int i = 0; i < 96 * 4; i++)
        sprintf(text + strlen(text), "%s%d", i ? ", " : "", i * 37 % 255 - 127);
    strcat(text, "} -> int8_type, {96, 4}, {4, 1}\n"
                 "@j = quant_dot(@y, @weights, @z)\n@o = convert[target_type=2](@j)\n"
                 "@u = multibroadcast[out_lens={2, 4}](@i)\n@f = mul(@o, @u)\n"
                 "@out = @return(@y, @f, @z)\n");
    CHECK(agrees(text, 96, "with the next 3"));
}

// A sum is no product of the scale: it stays a step of its own.
CASE(other_readers_of_the_scale)
{
    CHECK(agrees("g = @param:g -> float_type, {1}, {1}\n@i = add(@s, g)\n"
                 "@out = @return(@y, @i, @z)\n",
                 40, "with the next 2"));
}

// Another tensor than the one whose range it is.
CASE(bytes_of_other_floats)
{
    char text[4096];
    int length = snprintf(text, sizeof text, HEAD, 24, 24, 24, 24);
    length += sprintf(text + length, "g = @param:g -> float_type, {1}, {1}\n@o = @literal{");
    for (int i = 0; i < 48; i++)
        length += sprintf(text + length, "%s%d", i ? ", " : "", i);
    sprintf(text + length, "} -> float_type, {2, 24}, {24, 1}\n"
                           "@y2 = quantizelinear[out_type=4](@o, @m, @k)\n"
                           "@out = @return(@y2, @s, @z)\n");
    struct bench cpu;
    CHECK(start(&cpu, text, "cpu", 24));
    struct mgx_str plan = {0};
    mgx_target_cpu.explain(cpu.p, &plan);
    CHECK(!strstr(mgx_str_text(&plan), "with the next"));
    mgx_str_fini(&plan);
    end(&cpu);
}

TEST_MAIN(ROW(bytes_scale_zero_and_factors) ROW(a_factor_in_place) ROW(other_readers_of_the_scale)
              ROW(bytes_of_other_floats))
