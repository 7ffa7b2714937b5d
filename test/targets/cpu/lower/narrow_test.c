// SPDX-License-Identifier: MIT
// Programs of 16 bits and products with packed weights on cpu against the reference: every family of
// kernels takes them, nothing goes through the reference, and of what is exact in float every bit is
// right.
#include <math.h>

#include "base/size.h"
#include "targets/cpu/machine/cpuid.h"
#include "targets/cpu/machine/isa.h"
#include "targets/cpu/program.h"

// --- families ---

#define IMAGE "x = @param:x -> T, {1, 8, 12, 12}, {1152, 144, 12, 1}\n"
#define ROWS "x = @param:x -> T, {2, 6, 24}, {144, 24, 1}\n"
#define MATRIX "y = @param:y -> T, {2, 24, 6}, {144, 6, 1}\n"
#define TALL "x = @param:x -> T, {2, 19, 23}, {437, 23, 1}\n"
#define PICTURE "x = @param:x -> T, {1, 8, 24, 24}, {4608, 576, 24, 1}\n"
#define TOKENS "x = @param:x -> T, {1, 70, 24}, {1680, 24, 1}\n"
#define RETURN(of) "@r = @return(" of ")\n"

static const struct {
    const char *text;
    int weights; // parameters w0, w1 that become literals: their shapes follow in `shape`
    const char *shape[2];
} families[] = {
    {IMAGE "@c = convolution[padding={1, 1, 1, 1},stride={1, 1},dilation={1, 1}](x,w0)\n"
           "@d = relu(@c)\n" RETURN("@d"),
     1,
     {"{8, 8, 3, 3}, {72, 9, 3, 1}"}},
    {IMAGE
     "@c = convolution[padding={1, 1, 1, 1},stride={2, 2},dilation={1, 1},group=8](x,w0)\n"
     "@d = convolution[padding={0, 0, 0, 0},stride={1, 1},dilation={1, 1}](@c,w1)\n" RETURN("@d"),
     2,
     {"{8, 1, 3, 3}, {9, 9, 3, 1}", "{16, 8, 1, 1}, {8, 1, 1, 1}"}},
    {IMAGE
     "@c = convolution_backwards[padding={0, 0},stride={2, 2},dilation={1, 1}](x,w0)\n" RETURN(
         "@c"),
     1,
     {"{8, 4, 2, 2}, {16, 4, 2, 1}"}},
    {IMAGE "@c = pooling[mode=max,padding={0, 0},stride={2, 2},lengths={2, 2}](x)\n" RETURN("@c")},
    {IMAGE
     "@c = pooling[mode=average,padding={1, 1},stride={1, 1},lengths={3, 3}](x)\n" RETURN("@c")},
    {IMAGE "@c = transpose[permutation={0, 2, 3, 1}](x)\n@d = contiguous(@c)\n" RETURN("@d")},
    {IMAGE "@c = slice[axes={1},starts={2},ends={5}](x)\n@d = concat[axis=1](x,@c)\n@e = "
           "abs(@d)\n" RETURN("@e")},
    {IMAGE "@c = pad[pads={0, 0, 1, 1, 0, 0, 1, 1}](x)\n" RETURN("@c")},
    {ROWS MATRIX "@c = dot(x,y)\n@d = tanh(@c)\n" RETURN("@d")},
    {ROWS "@c = dot(x,w0)\n@d = sigmoid(@c)\n@e = mul(@c,@d)\n" RETURN("@e"),
     1,
     {"{2, 24, 40}, {960, 40, 1}"}},
    {ROWS MATRIX "@c = dot(x,y)\n@d = softmax[axis=2](@c)\n" RETURN("@d")},
    {ROWS MATRIX "@c = dot(x,y)\n@d = softmax[axis=2](@c)\n@e = dot(@d,x)\n" RETURN("@e")},
    {ROWS "@c = reduce_mean[axes={2}](x)\n@d = reduce_max[axes={1}](@c)\n" RETURN("@d")},
    {ROWS "@m = reduce_mean[axes={2}](x)\n@ms = multibroadcast[out_lens={2, 6, 24}](@m)\n"
          "@d = sub(x,@ms)\n@q = mul(@d,@d)\n@v = reduce_mean[axes={2}](@q)\n@k = sqrt(@v)\n"
          "@ks = multibroadcast[out_lens={2, 6, 24}](@k)\n@n = div(@d,@ks)\n" RETURN("@n")},
    // The rest: what products read is rounded where it is made.
    {ROWS "@m = reduce_mean[axes={2}](x)\n@ms = multibroadcast[out_lens={2, 6, 24}](@m)\n"
          "@d = sub(x,@ms)\n@q = mul(@d,@d)\n@v = reduce_mean[axes={2}](@q)\n@k = sqrt(@v)\n"
          "@ks = multibroadcast[out_lens={2, 6, 24}](@k)\n@n = div(@d,@ks)\n"
          "@c = dot(@n,w0)\n@e = add(@c,@n)\n" RETURN("@e"),
     1,
     {"{2, 24, 24}, {576, 24, 1}"}},
    {TALL "@t = transpose[permutation={0, 2, 1}](x)\n@c = dot(x,@t)\n@b = abs(@c)\n"
          "@d = softmax[axis=2](@b)\n@e = dot(@d,x)\n@f = dot(@e,w0)\n" RETURN("@f"),
     1,
     {"{2, 23, 40}, {920, 40, 1}"}},
    {TALL "@t = transpose[permutation={0, 2, 1}](x)\n@c = dot(x,@t)\n"
          "@d = softmax[axis=2](@c)\n@e = dot(@d,x)\n@f = tanh(@e)\n" RETURN("@f")},
    {IMAGE "@c = convolution[padding={1, 1, 1, 1},stride={1, 1},dilation={1, 1}](x,w0)\n"
           "@d = relu(@c)\n"
           "@e = convolution[padding={0, 0, 0, 0},stride={1, 1},dilation={1, 1}](@d,w1)\n"
           "@f = add(@e,@d)\n@g = relu(@f)\n"
           "@h = convolution[padding={1, 1, 1, 1},stride={1, 1},dilation={1, 1}](@g,w0)\n"
           "@s = sigmoid(@h)\n@j = mul(@h,@s)\n@k = add(@j,@g)\n" RETURN("@k"),
     2,
     {"{8, 8, 3, 3}, {72, 9, 3, 1}", "{8, 8, 1, 1}, {8, 1, 1, 1}"}},
    // Constants so large that they stay in 16 bits, added to products: positions of patches. (A
    // result in float stays with the product, one that is rounded does not.)
    {PICTURE "@c = convolution[padding={1, 1, 1, 1},stride={1, 1},dilation={1, 1}](x,w0)\n"
             "@d = add(@c,w1)\n@s = softmax[axis=3](@d)\n" RETURN("@s"),
     2,
     {"{64, 8, 3, 3}, {72, 9, 3, 1}", "{1, 64, 24, 24}, {36864, 576, 24, 1}"}},
    {PICTURE "@c = convolution[padding={0, 0, 0, 0},stride={2, 2},dilation={1, 1}](x,w0)\n"
             "@d = sigmoid(@c)\n@e = mul(@c,@d)\n@f = add(@e,w1)\n"
             "@s = softmax[axis=3](@f)\n" RETURN("@s"),
     2,
     {"{256, 8, 2, 2}, {32, 4, 2, 1}", "{1, 256, 12, 12}, {36864, 144, 12, 1}"}},
    {TOKENS
     "@c = dot(x,w0)\n@d = add(@c,w1)\n@e = tanh(@d)\n@s = softmax[axis=2](@e)\n" RETURN("@s"),
     2,
     {"{1, 24, 256}, {6144, 256, 1}", "{1, 70, 256}, {17920, 256, 1}"}},
    {TOKENS
     "@c = dot(x,w0)\n@d = tanh(@c)\n@e = mul(@d,w1)\n@s = softmax[axis=2](@e)\n" RETURN("@s"),
     2,
     {"{1, 24, 256}, {6144, 256, 1}", "{1, 70, 256}, {17920, 256, 1}"}},
    {TOKENS "@c = dot(x,w0)\n@d = mul(@c,w1)\n@e = sin(@d)\n@f = add(@e,@c)\n"
            "@s = softmax[axis=2](@f)\n" RETURN("@s"),
     2,
     {"{1, 24, 256}, {6144, 256, 1}", "{1, 70, 256}, {17920, 256, 1}"}},
    {IMAGE "@c = convolution[padding={0, 0, 0, 0},stride={1, 1},dilation={1, 1}](x,w0)\n"
           "@d = relu(@c)\n"
           "@e = convolution[padding={1, 1, 1, 1},stride={1, 1},dilation={1, 1},group=8](@d,w1)\n"
           "@f = relu(@e)\n"
           "@g = convolution[padding={0, 0, 0, 0},stride={1, 1},dilation={1, 1}](@f,w0)\n"
           "@h = add(@g,x)\n" RETURN("@h"),
     2,
     {"{8, 8, 1, 1}, {8, 1, 1, 1}", "{8, 1, 3, 3}, {9, 9, 3, 1}"}},
    {IMAGE
     "@c = convolution[padding={1, 1, 1, 1},stride={2, 2},dilation={1, 1}](x,w0)\n"
     "@d = relu(@c)\n"
     "@e = resize[sizes={1, 8, 12, 12},mode=\"nearest\"](@d)\n@f = concat[axis=1](@e,x)\n"
     "@g = convolution[padding={0, 0, 0, 0},stride={1, 1},dilation={1, 1}](@f,w1)\n" RETURN("@g"),
     2,
     {"{8, 8, 3, 3}, {72, 9, 3, 1}", "{4, 16, 1, 1}, {16, 1, 1, 1}"}},
    {ROWS "@c = gather[axis=1](x,@i)\n@d = erf(@c)\n" RETURN("@d")},
};

// A family in a type: T replaced, weights as literals of generated values.
static struct mgx_program *family(int f, const char *type, const char *target)
{
    struct mgx_str text = {0};
    mgx_str_put(&text, "module: \"main\"\n");
    for (int i = 0; i < families[f].weights; i++)
        mgx_str_printf(&text, "w%d = @param:w%d -> %s, %s\n", i, i, type, families[f].shape[i]);
    if (strstr(families[f].text, "@i)"))
        mgx_str_put(&text, "@i = @literal{3, 0, 5} -> int64_type, {3}, {1}\n");
    for (const char *at = families[f].text; *at; at++)
        if (at[0] == 'T' && at[1] == ',')
            mgx_str_put(&text, type);
        else
            mgx_str_putc(&text, *at);
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    const char *all = mgx_str_text(&text);
    bool good = mgx_program_parse(&p, &mgx_ops, all, strlen(all), &diag) == MGX_OK;
    for (int i = 0; good && i < families[f].weights; i++) {
        const char name[] = {'w', (char)('0' + i), 0};
        struct mgx_ins *w = mgx_find_parameter(mgx_program_main(p), name);
        mgx_replace_uses(w, program_literal(mgx_program_main(p), &w->shape, (uint64_t)i + 9));
        mgx_remove(w);
    }
    const struct mgx_compile_options options = {.fast_math = true, .pass.fast_math = true};
    good = good && mgx_program_compile(p, mgx_target_find(target), &options, &diag) == MGX_OK;
    if (!good)
        printf("%s%s\n", all, diag.text);
    mgx_str_fini(&text);
    return p;
}

// The reference rounds after every instruction, three or four of them here, each of which the ones
// behind it may double: some ten roundings of 16 bits.
static bool family_agrees(int f, const char *type, double most)
{
    struct mgx_tensor expected = {.data = NULL}, actual = {.data = NULL};
    struct mgx_program *ref = family(f, type, "ref"), *cpu = family(f, type, "cpu");
    bool good = ref && cpu && program_run(ref, &expected) && program_run(cpu, &actual);
    const double distance = good ? program_distance(&actual, &expected).relative : INFINITY;
    struct mgx_str plan = {0};
    if (cpu && good)
        mgx_target_cpu.explain(cpu, &plan);
    good = good && distance <= most && !strstr(mgx_str_text(&plan), ": ref (");
    if (!good)
        printf("family %d, %s: relative distance %g\n%s", f, type, distance, mgx_str_text(&plan));
    mgx_str_fini(&plan);
    mgx_tensor_release(&expected);
    mgx_tensor_release(&actual);
    mgx_program_destroy(ref);
    mgx_program_destroy(cpu);
    return good;
}

CASE(every_family_takes_16_bits)
{
    for (int f = 0; f < MGX_COUNT(families); f++) {
        CHECK(family_agrees(f, "half_type", 10 * 0x1p-11));
        CHECK(family_agrees(f, "bf16_type", 10 * 0x1p-8));
    }
}

// --- products of bfloat16 ---

// Whether the plan of a text for a set of instructions has a kernel of this name.
static bool plan_has(const char *text, const char *isa, const char *kernel)
{
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    struct mgx_str plan = {0};
    const struct mgx_compile_options options = {.own = MGX_SETTINGS({"isa", isa})};
    bool good = mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag) == MGX_OK &&
                mgx_program_compile(p, mgx_target_find("cpu"), &options, &diag) == MGX_OK;
    if (good)
        mgx_target_cpu.explain(p, &plan);
    else
        printf("%s%s\n", text, diag.text);
    good = good && strstr(mgx_str_text(&plan), kernel);
    mgx_str_fini(&plan);
    mgx_program_destroy(p);
    return good;
}

#define TWO(type)                                                                                  \
    "module: \"main\"\nx = @param:x -> " type ", {6, 24}, {24, 1}\n"                               \
    "y = @param:y -> " type ", {24, 40}, {40, 1}\n@c = dot(x,y)\n@r = @return(@c)\n"
#define WEIGHTS_ALONE                                                                              \
    "module: \"main\"\nx = @param:x -> float_type, {6, 24}, {24, 1}\n"                             \
    "y = @param:y -> bf16_type, {24, 40}, {40, 1}\n@f = convert[target_type=2](y)\n"               \
    "@c = dot(x,@f)\n@r = @return(@c)\n"

// Where the processor has it; halves and floats are multiplied as floats everywhere.
CASE(products_of_bfloat16_take_the_instruction)
{
    if (!mgx_isa_holds(mgx_cpu()->isa, MGX_ISA_AVX512_BF16))
        return;
    CHECK(plan_has(TWO("bf16_type"), "native", "bf16_gemm"));
    CHECK(plan_has(TWO("bf16_type"), "native-avx512_bf16", "f32_gemm"));
    CHECK(plan_has(TWO("half_type"), "native", "f32_gemm"));
    CHECK(plan_has(TWO("float_type"), "native", "f32_gemm"));
    CHECK(plan_has(WEIGHTS_ALONE, "native", "f32_gemm"));
}

// --- every bit ---

// All 65,536 values of a type through an operator, and its result's bits.
static bool all_bits(const char *op, const char *type, const char *target, struct mgx_tensor *out)
{
    struct mgx_str text = {0};
    mgx_str_printf(&text,
                   "module: \"main\"\nx = @param:x -> %s, {65536}, {1}\n"
                   "y = %s\n@r = @return(y)\n",
                   type, op);
    struct mgx_program *p = program_compile(mgx_str_text(&text), target, 0);
    struct mgx_named_tensor x = {.name = "x"};
    struct mgx_diag diag = {0};
    struct mgx_ins *param;
    bool good = p != NULL;
    if (good) {
        mgx_module_parameters(mgx_program_main(p), &param, 1);
        good = mgx_tensor_create(&x.tensor, &param->shape, &diag) == MGX_OK;
    }
    for (int i = 0; good && i < 65536; i++)
        ((uint16_t *)x.tensor.data)[i] = (uint16_t)i;
    struct mgx_run run = {.params = &x, .param_count = 1, .results = out, .result_count = 1};
    good = good && mgx_program_run(p, &run, &diag) == MGX_OK;
    mgx_tensor_release(&x.tensor);
    mgx_program_destroy(p);
    mgx_str_fini(&text);
    return good;
}

// Equal bits; one NaN is as good as another.
static bool same_bits(const char *op, const char *type)
{
    struct mgx_tensor a = {.data = NULL}, b = {.data = NULL};
    bool good = all_bits(op, type, "ref", &a) && all_bits(op, type, "cpu", &b);
    for (int i = 0; good && i < 65536; i++) {
        const double x = mgx_load_double(a.shape.type, a.data, i),
                     y = mgx_load_double(b.shape.type, b.data, i);
        good = (isnan(x) && isnan(y)) || (x == y && signbit(x) == signbit(y));
        if (!good)
            printf("%s of %s: bits %04x give %g, not %g\n", op, type, (unsigned)i, y, x);
    }
    mgx_tensor_release(&a);
    mgx_tensor_release(&b);
    return good;
}

// A sum, product, quotient or root of two 16-bit numbers in float, rounded to 16 bits, is that of
// real numbers rounded once: float has more than twice their digits.
CASE(exact_operators_give_every_bit)
{
    static const char *const ops[] = {"neg(x)",
                                      "abs(x)",
                                      "add(x,x)",
                                      "mul(x,x)",
                                      "sqrt(x)",
                                      "recip(x)",
                                      "floor(x)",
                                      "relu(x)",
                                      "isinf(x)",
                                      "sub(x,x)",
                                      "div(x,x)",
                                      "identity(x)",
                                      "sign(x)",
                                      "max(x,x)",
                                      "greater(x,x)",
                                      "isnan(x)",
                                      "convert[target_type=2](x)"};
    for (int i = 0; i < MGX_COUNT(ops); i++) {
        CHECK(same_bits(ops[i], "half_type"));
        CHECK(same_bits(ops[i], "bf16_type"));
    }
}

// --- packed weights ---

enum { K = 608, N = 300 };

static struct mgx_program *packed(int rows, int bits, int block, enum mgx_type scale, bool zeros)
{
    const int64_t blocks = mgx_ceil_div(K, block);
    struct mgx_diag diag = {0};
    struct mgx_program *p;
    if (mgx_program_create(&p, &mgx_ops, &diag) != MGX_OK)
        return NULL;
    struct mgx_module *m = mgx_program_main(p);
    const struct mgx_shape in = mgx_shape_make(scale, 2, (const int64_t[]){rows, K}),
                           q = mgx_shape_make(MGX_UINT8, 3,
                                              (const int64_t[]){N, blocks, block * bits / 8}),
                           s = mgx_shape_make(scale, 2, (const int64_t[]){N, blocks}),
                           z = mgx_shape_make(MGX_UINT8, 2, (const int64_t[]){N, blocks});
    struct mgx_ins *x = mgx_add_parameter(m, "x", &in);
    struct mgx_ins *weights[] = {program_literal(m, &q, 1), program_literal(m, &s, 2),
                                 zeros ? program_literal(m, &z, 3) : NULL};
    const struct mgx_attr *attrs = MGX_ATTRS(mgx_int("bits", bits), mgx_int("columns", K));
    const int64_t swap[] = {1, 0};
    struct mgx_ins *w =
        zeros ? mgx_emit(m, &mgx_op_dequantize_blocks, attrs,
                         MGX_IN(weights[0], weights[1], weights[2]))
              : mgx_emit(m, &mgx_op_dequantize_blocks, attrs, MGX_IN(weights[0], weights[1]));
    w = mgx_emit(m, &mgx_op_transpose, MGX_ATTRS(mgx_ints("permutation", swap, 2)), MGX_IN(w));
    struct mgx_ins *y = mgx_emit(m, &mgx_op_dot, NULL, MGX_IN(x, w));
    mgx_add_return(m, &y, 1);
    return p;
}

// The same numbers as models with DequantizeLinear have them: {K, N} or {N, K}, scales broadcast.
static struct mgx_program *dequantized(enum mgx_type type, int block, bool zeros, bool transposed)
{
    const int64_t blocks = block ? K / block : 1, length = block ? block : K;
    const int64_t lens[] = {transposed ? N : K, transposed ? K : N};
    // Before and after they are repeated: {N, blocks, length}, or {blocks, length, N}.
    const int64_t few[] = {transposed ? N : blocks, transposed ? blocks : 1, transposed ? 1 : N};
    const int64_t all[] = {transposed ? N : blocks, transposed ? blocks : length,
                           transposed ? length : N};
    struct mgx_diag diag = {0};
    struct mgx_program *p;
    if (mgx_program_create(&p, &mgx_ops, &diag) != MGX_OK)
        return NULL;
    struct mgx_module *m = mgx_program_main(p);
    const struct mgx_shape in = mgx_shape_make(MGX_FLOAT, 2, (const int64_t[]){3, K}),
                           q = mgx_shape_make(type, 2, lens), s = mgx_shape_make(MGX_FLOAT, 3, few),
                           z = mgx_shape_make(type, 3, few);
    struct mgx_ins *x = mgx_add_parameter(m, "x", &in), *w = program_literal(m, &q, 1);
    struct mgx_ins *part[] = {program_literal(m, &s, 2), zeros ? program_literal(m, &z, 3) : NULL};
    const int64_t swap[] = {1, 0};
    for (int i = 0; i < 1 + zeros; i++) {
        part[i] = mgx_emit(m, &mgx_op_multibroadcast, MGX_ATTRS(mgx_ints("out_lens", all, 3)),
                           MGX_IN(part[i]));
        part[i] =
            mgx_emit(m, &mgx_op_reshape, MGX_ATTRS(mgx_ints("dims", lens, 2)), MGX_IN(part[i]));
    }
    w = zeros ? mgx_emit(m, &mgx_op_dequantizelinear, NULL, MGX_IN(w, part[0], part[1]))
              : mgx_emit(m, &mgx_op_dequantizelinear, NULL, MGX_IN(w, part[0]));
    if (transposed)
        w = mgx_emit(m, &mgx_op_transpose, MGX_ATTRS(mgx_ints("permutation", swap, 2)), MGX_IN(w));
    struct mgx_ins *y = mgx_emit(m, &mgx_op_dot, NULL, MGX_IN(x, w));
    mgx_add_return(m, &y, 1);
    return p;
}

// Both programs, which are taken; `how` is in the plan.
static bool agrees(struct mgx_program *ref, struct mgx_program *cpu, double most, const char *how)
{
    struct mgx_tensor expected = {.data = NULL}, actual = {.data = NULL};
    bool good = ref && cpu && program_run_on(ref, "ref", 0, &expected) &&
                program_run_on(cpu, "cpu", 0, &actual);
    const double distance = good ? program_distance(&actual, &expected).relative : INFINITY;
    struct mgx_str plan = {0};
    if (good)
        mgx_target_cpu.explain(cpu, &plan);
    good = good && distance <= most && strstr(mgx_str_text(&plan), how);
    if (!good)
        printf("relative distance %g\n%s", distance, mgx_str_text(&plan));
    mgx_str_fini(&plan);
    mgx_tensor_release(&expected);
    mgx_tensor_release(&actual);
    mgx_program_destroy(ref);
    mgx_program_destroy(cpu);
    return good;
}

static bool stays_packed(struct mgx_program *ref, struct mgx_program *cpu, double most)
{
    return agrees(ref, cpu, most, "packed weights");
}

// With fast_math up to four rows become whole numbers: within 2^-16 of the largest value of their
// block, which is less than twice the root of the mean square of these values.
#define WHOLE (2 * 0x1p-16)

// Zero points at random are some multiples of what is multiplied away from the numbers.
static bool packed_agrees(int rows, int bits, int block, enum mgx_type scale, bool zeros)
{
    return stays_packed(packed(rows, bits, block, scale, zeros),
                        packed(rows, bits, block, scale, zeros),
                        scale == MGX_HALF ? 4 * 0x1p-11 : 1e-5 + WHOLE);
}

CASE(dequantized_weights_become_packed_ones)
{
    static const enum mgx_type types[] = {MGX_INT8, MGX_UINT8, MGX_INT4, MGX_UINT4};
    for (int i = 0; i < MGX_COUNT(types); i++)
        for (int kind = 0; kind < 4; kind++) {
            const bool zeros = kind & 1, transposed = kind & 2;
            CHECK(stays_packed(dequantized(types[i], 0, zeros, transposed),
                               dequantized(types[i], 0, zeros, transposed), 1e-5 + WHOLE));
            CHECK(stays_packed(dequantized(types[i], 32, zeros, transposed),
                               dequantized(types[i], 32, zeros, transposed), 1e-5 + WHOLE));
        }
}

CASE(weights_stay_packed)
{
    for (int bits = 2; bits <= 8; bits *= 2)
        for (int zeros = 0; zeros < 2; zeros++) {
            CHECK(packed_agrees(1, bits, 32, MGX_FLOAT, zeros));
            CHECK(packed_agrees(3, bits, 128, MGX_FLOAT, zeros));
            CHECK(packed_agrees(17, bits, 16, MGX_FLOAT, zeros));
            CHECK(packed_agrees(1, bits, 256, MGX_HALF, zeros));
        }
}

// Kernels read words of 32 bits; a file may say otherwise.
CASE(blocks_that_end_within_a_word)
{
    CHECK(agrees(packed(1, 4, 20, MGX_FLOAT, true), packed(1, 4, 20, MGX_FLOAT, true), 1e-5, ""));
    CHECK(agrees(packed(2, 2, 8, MGX_FLOAT, false), packed(2, 2, 8, MGX_FLOAT, false), 1e-5, ""));
}

TEST_MAIN(ROW(every_family_takes_16_bits) ROW(products_of_bfloat16_take_the_instruction)
              ROW(exact_operators_give_every_bit) ROW(weights_stay_packed)
                  ROW(blocks_that_end_within_a_word) ROW(dequantized_weights_become_packed_ones))
