// SPDX-License-Identifier: MIT
// Convolutions whose weights are no constants, on the CPU against the reference: of drawn groups,
// strides, pads, dilations and batches, with 1 to 3 axes, of float, 16 bits and bytes, transposed
// ones too, alone and with what follows, on every instruction set, by one thread and by three. None
// of them is left to the reference.
#include "base/size.h"
#include "targets/cpu/machine/isa.h"
#include "targets/cpu/program.h"

static uint64_t state;

static int below(int n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

static int one_of(const int *values, int count)
{
    return values[below(count)];
}

struct drawn {
    int axes, batch, groups, in, out; // channels of a group
    int size[3], kernel[3], stride[3], dilation[3], before[3], after[3];
    bool transposed;
    bool pooled; // first: channels are last in what the convolution reads, else they are not
    int follow;  // 0: nothing, 1: an activation, 2: a factor and a term a channel, silu, a residual
};

static struct drawn draw(void)
{
    static const int channels[] = {1, 2, 3, 8, 17, 32, 40}, taps[] = {1, 1, 2, 3, 3, 5};
    struct drawn d = {.axes = 1 + below(3), .batch = 1 + below(3), .follow = below(3)};
    d.transposed = below(6) == 0;
    d.pooled = below(3) > 0;
    d.groups = below(2) ? 1 : one_of((const int[]){2, 3, 16, 33}, 4);
    const bool depthwise = d.groups > 3 || below(4) == 0;
    if (depthwise && d.groups == 1)
        d.groups = 40;
    d.in = depthwise ? 1 : one_of(channels, MGX_COUNT(channels));
    d.out = depthwise ? 1 + (below(4) == 0) : one_of(channels, MGX_COUNT(channels));
    for (int i = 0; i < d.axes; i++) {
        d.kernel[i] = one_of(taps, MGX_COUNT(taps));
        d.stride[i] = 1 + below(2);
        d.dilation[i] = 1 + (below(4) == 0);
        const int reach = (d.kernel[i] - 1) * d.dilation[i] + 1;
        d.before[i] = d.transposed ? 0 : below(reach < 3 ? reach : 3);
        d.after[i] = d.transposed ? 0 : below(reach < 3 ? reach : 3);
        d.size[i] = reach + below(d.axes == 3 ? 5 : d.axes == 2 ? 18 : 40);
    }
    return d;
}

// --- as text ---

// A parameter of these lengths, row by row.
static void put_param(struct mgx_str *text, const char *name, const char *type, int rank,
                      const int64_t *lens)
{
    int64_t stride = 1;
    int64_t strides[8];
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= lens[i];
    }
    mgx_str_printf(text, "%s = @param:%s -> %s, {", name, name, type);
    for (int i = 0; i < rank; i++)
        mgx_str_printf(text, "%s%lld", i ? ", " : "", (long long)lens[i]);
    mgx_str_put(text, "}, {");
    for (int i = 0; i < rank; i++)
        mgx_str_printf(text, "%s%lld", i ? ", " : "", (long long)strides[i]);
    mgx_str_put(text, "}\n");
}

static void put_list(struct mgx_str *text, const char *name, const int *v, int count,
                     const int *more)
{
    mgx_str_printf(text, "%s={", name);
    for (int i = 0; i < count; i++)
        mgx_str_printf(text, "%s%d", i ? ", " : "", v[i]);
    for (int i = 0; more && i < count; i++)
        mgx_str_printf(text, ", %d", more[i]);
    mgx_str_put(text, "}");
}

static int64_t out_size(const struct drawn *d, int i)
{
    const int reach = (d->kernel[i] - 1) * d->dilation[i] + 1;
    return d->transposed ? (int64_t)(d->size[i] - 1) * d->stride[i] + reach
                         : (d->size[i] + d->before[i] + d->after[i] - reach) / d->stride[i] + 1;
}

static void put_conv(struct mgx_str *text, const struct drawn *d, const char *op)
{
    static const int one[3] = {1, 1, 1}, three[3] = {3, 3, 3};
    if (d->pooled) {
        mgx_str_put(text, "@p = pooling[mode=max");
        put_list(text, ",padding", one, d->axes, NULL);
        put_list(text, ",stride", one, d->axes, NULL);
        put_list(text, ",dilations", one, d->axes, NULL);
        put_list(text, ",lengths", three, d->axes, NULL);
        mgx_str_put(text, "](x)\n");
    }
    mgx_str_printf(text, "@c = %s[", op);
    put_list(text, "padding", d->before, d->axes, d->transposed ? NULL : d->after);
    put_list(text, ",stride", d->stride, d->axes, NULL);
    put_list(text, ",dilation", d->dilation, d->axes, NULL);
    mgx_str_printf(text, ",group=%d](%s,w)\n", d->groups, d->pooled ? "@p" : "x");
}

static void put_follow(struct mgx_str *text, const struct drawn *d, const char *type)
{
    int64_t y[5] = {d->batch, (int64_t)d->groups * d->out}, column[5] = {1, y[1], 1, 1, 1};
    for (int i = 0; i < d->axes; i++)
        y[2 + i] = out_size(d, i);
    if (d->follow == 1)
        mgx_str_put(text, "@y = tanh(@c)\n@r = @return(@y)\n");
    if (d->follow == 0)
        mgx_str_put(text, "@r = @return(@c)\n");
    if (d->follow != 2)
        return;
    put_param(text, "a", type, 2 + d->axes, column);
    put_param(text, "r", type, 2 + d->axes, y);
    mgx_str_put(text, "@a = multibroadcast[out_lens={");
    for (int i = 0; i < 2 + d->axes; i++)
        mgx_str_printf(text, "%s%lld", i ? ", " : "", (long long)y[i]);
    mgx_str_put(text, "}](a)\n@m = mul(@c,@a)\n@s = sigmoid(@m)\n@l = mul(@m,@s)\n"
                      "@y = add(@l,r)\n@r = @return(@y)\n");
}

static void put_program(struct mgx_str *text, const struct drawn *d, const char *type,
                        const char *op)
{
    const int64_t in = (int64_t)d->groups * d->in, out = (int64_t)d->groups * d->out;
    int64_t x[5] = {d->batch, in},
            w[5] = {d->transposed ? in : out, d->transposed ? d->out : d->in};
    for (int i = 0; i < d->axes; i++) {
        x[2 + i] = d->size[i];
        w[2 + i] = d->kernel[i];
    }
    mgx_str_put(text, "module: \"main\"\n");
    put_param(text, "x", type, 2 + d->axes, x);
    put_param(text, "w", type, 2 + d->axes, w);
    put_conv(text, d, op);
}

// --- running ---

static struct mgx_program *compile(const char *text, const char *target, const char *isa,
                                   int threads, bool tune)
{
    struct mgx_diag diag = {0};
    struct mgx_program *p = NULL;
    const struct mgx_compile_options options = {.fast_math = true,
                                                .pass.fast_math = true,
                                                .threads = threads,
                                                .exhaustive_tune = tune,
                                                .own = isa ? MGX_SETTINGS({"isa", isa})
                                                           : (struct mgx_settings){0}};
    if (mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag) == MGX_OK &&
        mgx_program_compile(p, mgx_target_find(target), &options, &diag) == MGX_OK)
        return p;
    printf("%s\n", diag.text);
    mgx_program_destroy(p);
    return NULL;
}

static bool packs(const struct mgx_program *p, const char *method)
{
    struct mgx_str plan = {0};
    mgx_target_cpu.explain(p, &plan);
    const char *all = mgx_str_text(&plan);
    const bool good = strstr(all, "weights packed in the run") && !strstr(all, ": ref (") &&
                      (!method || strstr(all, method));
    if (!good)
        printf("%s", all);
    mgx_str_fini(&plan);
    return good;
}

// On one instruction set (NULL: the machine's best), twice: the second run finds what the first one
// left in the workspace.
static bool agrees_on(const char *text, const struct mgx_tensor *expected, const char *isa,
                      int threads, double most)
{
    struct mgx_program *p = compile(text, "cpu", isa, threads, false);
    bool good = p && packs(p, NULL);
    for (int round = 0; good && round < 2; round++) {
        struct mgx_tensor actual = {.data = NULL};
        good = program_run(p, &actual);
        const double distance = good ? program_distance(&actual, expected).relative : INFINITY;
        good = distance <= most;
        if (!good)
            printf("%s: %g\n", isa ? isa : "best", distance);
        mgx_tensor_release(&actual);
    }
    mgx_program_destroy(p);
    return good;
}

static bool agrees(const char *text, double most)
{
    static const char *const sets[] = {"generic", "avx2", "avx512"};
    struct mgx_tensor expected = {.data = NULL};
    struct mgx_program *ref = compile(text, "ref", NULL, 1, false);
    bool good = ref && program_run(ref, &expected);
    good = good && agrees_on(text, &expected, NULL, 1, most) &&
           agrees_on(text, &expected, NULL, 3, most);
    for (int i = 0; good && i < MGX_COUNT(sets); i++)
        good = agrees_on(text, &expected, sets[i], 1, most);
    if (!good)
        printf("%s", text);
    mgx_tensor_release(&expected);
    mgx_program_destroy(ref);
    return good;
}

static bool draw_agrees(const char *type, const char *op, double most)
{
    struct mgx_str text = {0};
    struct drawn d = draw();
    const bool bytes = !strcmp(op, "quant_convolution");
    d.transposed &= !bytes;
    d.follow = bytes ? 0 : d.follow;
    put_program(&text, &d, type, d.transposed ? "convolution_backwards" : op);
    put_follow(&text, &d, type);
    const bool good = agrees(mgx_str_text(&text), most);
    mgx_str_fini(&text);
    return good;
}

CASE(floats)
{
    state = 1;
    for (int i = 0; i < 120; i++)
        CHECK(draw_agrees("float_type", "convolution", 1e-5));
}

// The reference rounds after every instruction.
CASE(sixteen_bits)
{
    state = 2;
    for (int i = 0; i < 20; i++) {
        CHECK(draw_agrees("half_type", "convolution", 10 * 0x1p-11));
        CHECK(draw_agrees("bf16_type", "convolution", 10 * 0x1p-8));
    }
}

CASE(bytes)
{
    state = 3;
    for (int i = 0; i < 20; i++)
        CHECK(draw_agrees("int8_type", "quant_convolution", 0));
}

// --- single ones ---

#define IMAGE "x = @param:x -> float_type, {1, 32, 20, 20}, {12800, 400, 20, 1}\n"
#define PADDED "padding={1, 1, 1, 1},stride={1, 1},dilation={1, 1}"

// As conditional convolutions mix experts for every sample: a product makes the weights, and what
// reads them sees another shape of it.
CASE(a_product_makes_weights)
{
    CHECK(agrees("module: \"main\"\n" IMAGE "r = @param:r -> float_type, {1, 4}, {4, 1}\n"
                 "e = @param:e -> float_type, {4, 9216}, {9216, 1}\n"
                 "@m = dot(r,e)\n@w = reshape[dims={32, 32, 3, 3}](@m)\n"
                 "@c = convolution[" PADDED "](x,@w)\n@y = relu(@c)\n@r = @return(@y)\n",
                 1e-5));
}

// Two convolutions read the same weights, one of them in another order of axes.
CASE(weights_lie_as_they_lie)
{
    CHECK(agrees("module: \"main\"\n" IMAGE
                 "w = @param:w -> float_type, {32, 32, 3, 3}, {288, 9, 3, 1}\n"
                 "@t = transpose[permutation={1, 0, 3, 2}](w)\n"
                 "@c = convolution[" PADDED "](x,@t)\n@d = relu(@c)\n"
                 "@e = convolution[" PADDED "](@d,w)\n@r = @return(@e)\n",
                 1e-5));
}

// The contest packs in every round, as a run does.
CASE(methods_are_measured_with_packing)
{
    struct mgx_program *p = compile("module: \"main\"\n" IMAGE
                                    "w = @param:w -> float_type, {32, 32, 3, 3}, {288, 9, 3, 1}\n"
                                    "@c = convolution[" PADDED "](x,w)\n@r = @return(@c)\n",
                                    "cpu", NULL, 1, true);
    CHECK(p && packs(p, "tuned"));
    mgx_program_destroy(p);
}

// A transform of Winograd's is for many pixels: of few, packing it would cost more than it saves,
// though with constant weights it is the best.
CASE(few_pixels_are_worth_no_transform)
{
    static const char text[] = "module: \"main\"\n"
                               "x = @param:x -> float_type, {1, 128, 10, 10}, {12800, 100, 10, 1}\n"
                               "w = @param:w -> float_type, {128, 128, 3, 3}, {1152, 9, 3, 1}\n"
                               "@p = pooling[mode=max,padding={1, 1},stride={1, 1},lengths={3, "
                               "3}](x)\n@c = convolution[" PADDED "](@p,w)\n@r = @return(@c)\n";
    struct mgx_program *p = compile(text, "cpu", NULL, 1, false);
    struct mgx_str plan = {0};
    CHECK(p);
    if (p)
        mgx_target_cpu.explain(p, &plan);
    CHECK(p && !strstr(mgx_str_text(&plan), "winograd"));
    mgx_str_fini(&plan);
    mgx_program_destroy(p);
}

TEST_MAIN(ROW(floats) ROW(sixteen_bits) ROW(bytes) ROW(a_product_makes_weights)
              ROW(weights_lie_as_they_lie) ROW(methods_are_measured_with_packing)
                  ROW(few_pixels_are_worth_no_transform))
