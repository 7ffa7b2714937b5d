// SPDX-License-Identifier: MIT
// Quantised products, convolutions, poolings and element-wise chains, written as exporters write
// them, against the reference: random sizes, types, zero points at both ends, clamps, residuals.
//
// Scales are powers of two, so that every step is exact in float and integers must be equal. No
// step may be left to the reference.
#include "targets/cpu/kernel/kernel.h"
#include "targets/cpu/program.h"

static uint64_t state;

static int below(int n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

static const char *type_name(bool is_signed)
{
    return is_signed ? "int8_type" : "uint8_type";
}

static int lowest(bool is_signed)
{
    return is_signed ? -128 : 0;
}

// Any byte; often one of the ends, or what stands in the middle.
static int any_zero(bool is_signed)
{
    const int kind = below(5);
    return lowest(is_signed) + (kind == 0   ? 0
                                : kind == 1 ? 255
                                : kind < 4  ? (is_signed ? 128 : 0)
                                            : below(256));
}

static void put_dims(struct mgx_str *s, const int *lens, int rank, bool strides)
{
    mgx_str_printf(s, "{");
    for (int i = 0; i < rank; i++) {
        int step = 1;
        for (int k = i + 1; k < rank; k++)
            step *= lens[k];
        mgx_str_printf(s, "%s%d", i ? ", " : "", strides ? step : lens[i]);
    }
    mgx_str_printf(s, "}");
}

static void put_type(struct mgx_str *s, const char *type, const int *lens, int rank)
{
    mgx_str_printf(s, " -> %s, ", type);
    put_dims(s, lens, rank, false);
    mgx_str_printf(s, ", ");
    put_dims(s, lens, rank, true);
    mgx_str_printf(s, "\n");
}

static void put_bytes(struct mgx_str *s, const char *name, bool is_signed, const int *lens,
                      int rank)
{
    int count = 1;
    for (int i = 0; i < rank; i++)
        count *= lens[i];
    mgx_str_printf(s, "%s = @literal{", name);
    for (int i = 0; i < count; i++)
        mgx_str_printf(s, "%s%d", i ? ", " : "", lowest(is_signed) + below(256));
    mgx_str_printf(s, "}");
    put_type(s, type_name(is_signed), lens, rank);
}

// Scale and zero point `name`s and `name`z in the shape `lens`: along `axis`, or (-1) one value.
static void put_step(struct mgx_str *s, const char *name, bool is_signed, const int *lens, int rank,
                     int axis)
{
    const int count = axis < 0 ? 1 : lens[axis];
    int core[4] = {1, 1, 1, 1};
    if (axis >= 0)
        core[axis] = count;
    mgx_str_printf(s, "%sc = @literal{", name);
    for (int i = 0; i < count; i++)
        mgx_str_printf(s, "%s%g", i ? ", " : "", ldexp(1, below(4) - 6));
    mgx_str_printf(s, "}");
    put_type(s, "float_type", core, rank);
    mgx_str_printf(s, "%sk = @literal{", name);
    for (int i = 0; i < count; i++)
        mgx_str_printf(s, "%s%d", i ? ", " : "", any_zero(is_signed));
    mgx_str_printf(s, "}");
    put_type(s, type_name(is_signed), core, rank);
    for (int i = 0; i < 2; i++) {
        mgx_str_printf(s, "%s%c = multibroadcast[out_lens=", name, i ? 'z' : 's');
        put_dims(s, lens, rank, false);
        mgx_str_printf(s, "](%s%c)\n", name, i ? 'k' : 'c');
    }
}

// y3 of y: as it is, or quantized and back (how > 0), the bytes through another function (how 3).
static void put_rounded(struct mgx_str *s, const char *y, const int *lens, int rank, bool is_signed,
                        int how)
{
    if (how == 0) {
        mgx_str_printf(s, "y3 = identity(%s)\n", y);
        return;
    }
    mgx_str_printf(s, "y2 = quantizelinear[out_type=%s](%s, us, uz)\n", type_name(is_signed), y);
    if (how < 3) {
        mgx_str_printf(s, "y3 = dequantizelinear(y2, us, uz)\n");
        return;
    }
    const bool other_signed = below(2);
    put_step(s, "g", other_signed, lens, rank, -1);
    mgx_str_printf(s,
                   "g1 = dequantizelinear(y2, us, uz)\ng2 = abs(g1)\n"
                   "g3 = quantizelinear[out_type=%s](g2, gs, gz)\n"
                   "y3 = dequantizelinear(g3, gs, gz)\n",
                   type_name(other_signed));
}

// `name` of these lengths: a constant for every column.
static void put_bias(struct mgx_str *s, const char *name, const int *lens, int rank, int column)
{
    int core[4] = {1, 1, 1, 1};
    core[column] = lens[column];
    mgx_str_printf(s, "%sc = @literal{", name);
    for (int i = 0; i < lens[column]; i++)
        mgx_str_printf(s, "%s%g", i ? ", " : "", below(41) - 20.25);
    mgx_str_printf(s, "}");
    put_type(s, "float_type", core, rank);
    mgx_str_printf(s, "%s = multibroadcast[out_lens=", name);
    put_dims(s, lens, rank, false);
    mgx_str_printf(s, "](%sc)\n", name);
}

// `y` of these lengths after the product `p`: bias, residual or another bias, activation, bytes.
static void put_epilogue(struct mgx_str *s, const int *lens, int rank, int column)
{
    const int added = below(4); // behind a first step to bytes: a residual, or one value per column
    const bool residual = added == 0, term = added == 1, is_signed = below(2),
               first_signed = below(2);
    const char *y = "p";
    if (below(2)) {
        put_bias(s, "b", lens, rank, column);
        mgx_str_printf(s, "y1 = add(p, b)\n");
        y = "y1";
    }
    if (residual) {
        mgx_str_printf(s, "r = @param:r");
        put_type(s, type_name(first_signed), lens, rank);
        put_step(s, "t", first_signed, lens, rank, -1);
        put_step(s, "u", is_signed, lens, rank, -1);
        put_rounded(s, y, lens, rank, is_signed, below(4));
        mgx_str_printf(s, "rf = dequantizelinear(r, ts, tz)\ny4 = add(y3, rf)\n");
        y = "y4";
    }
    if (term) {
        put_step(s, "u", is_signed, lens, rank, -1);
        put_rounded(s, y, lens, rank, is_signed, 1 + below(3));
        put_bias(s, "o", lens, rank, column);
        mgx_str_printf(s, "y4 = add(y3, o)\n");
        y = "y4";
    }
    const int act = below(4);
    if (act == 1)
        mgx_str_printf(s, "y5 = relu(%s)\n", y);
    if (act == 2) {
        mgx_str_printf(s, "lc = @literal{-1.5} -> float_type, {1}, {1}\n"
                          "hc = @literal{6} -> float_type, {1}, {1}\n"
                          "l = multibroadcast[out_lens=");
        put_dims(s, lens, rank, false);
        mgx_str_printf(s, "](lc)\nh = multibroadcast[out_lens=");
        put_dims(s, lens, rank, false);
        mgx_str_printf(s, "](hc)\ny5 = clip(%s, l, h)\n", y);
    }
    y = act == 1 || act == 2 ? "y5" : y;
    if (below(4) == 0) {
        if (added > 1 && below(2)) { // floats that were bytes
            put_step(s, "u", is_signed, lens, rank, -1);
            put_rounded(s, y, lens, rank, is_signed, 1 + below(3));
            y = "y3";
        }
        mgx_str_printf(s, "@9 = @return(%s)\n", y);
        return;
    }
    put_step(s, "q", is_signed, lens, rank, -1);
    mgx_str_printf(s, "y6 = quantizelinear[out_type=%s](%s, qs, qz)\n", type_name(is_signed), y);
    if (below(2)) {
        mgx_str_printf(s, "@9 = @return(y6)\n");
        return;
    }
    mgx_str_printf(s, "y7 = dequantizelinear(y6, qs, qz)\n");
    if (below(2)) {
        mgx_str_printf(s, "@9 = @return(y7)\n");
        return;
    }
    put_step(s, "e", is_signed, lens, rank, -1);
    mgx_str_printf(s, "y8 = quantizelinear[out_type=%s](y7, es, ez)\n@9 = @return(y8)\n",
                   type_name(is_signed));
}

static bool runs(const char *text, const char *target, const char *isa, struct mgx_tensor *out)
{
    struct mgx_diag diag = {0};
    struct mgx_program *p = NULL;
    const struct mgx_compile_options options = {
        .fast_math = true, .pass.fast_math = true, .threads = 2, .own = MGX_SETTINGS({"isa", isa})};
    bool good = mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag) == MGX_OK &&
                mgx_program_compile(p, mgx_target_find(target), &options, &diag) == MGX_OK;
    if (!good)
        printf("%s\n", diag.text);
    if (good && strcmp(target, "cpu") == 0) {
        struct mgx_str plan = {0};
        mgx_target_cpu.explain(p, &plan);
        good = !strstr(mgx_str_text(&plan), ": ref (");
        if (!good)
            printf("%s", mgx_str_text(&plan));
        mgx_str_fini(&plan);
    }
    good = good && program_run(p, out);
    mgx_program_destroy(p);
    return good;
}

// The same integers, and the same floats but for one rounding, on every instruction set.
static bool agrees(const char *text)
{
    struct mgx_tensor expected = {.data = NULL};
    bool good = runs(text, "ref", NULL, &expected);
    mgx_isa isa;
    for (int i = 0; good && mgx_kernel_isa(i, &isa); i++) {
        struct mgx_tensor actual = {.data = NULL};
        good = runs(text, "cpu", mgx_isa_name(isa), &actual);
        const double distance = good ? program_distance(&actual, &expected).largest : INFINITY;
        good = distance <= (expected.shape.type == MGX_FLOAT ? 1e-3 : 0);
        if (!good)
            printf("%s, %g:\n%s", mgx_isa_name(isa), distance, text);
        mgx_tensor_release(&actual);
    }
    mgx_tensor_release(&expected);
    return good;
}

static bool a_product(uint64_t seed)
{
    state = seed * 77;
    const bool a_signed = below(2), b_signed = below(4) > 0;
    const int batch = below(3) ? 1 : 1 + below(3);
    const int a[] = {batch, 1 + below(20), 1 + below(70)}, b[] = {batch, a[2], 1 + below(70)};
    const int y[] = {batch, a[1], b[2]};
    struct mgx_str s = {0};
    mgx_str_printf(&s, "module: \"main\"\na = @param:a");
    put_type(&s, type_name(a_signed), a, 3);
    if (below(4))
        put_bytes(&s, "w", b_signed, b, 3);
    else {
        mgx_str_printf(&s, "w = @param:w");
        put_type(&s, type_name(b_signed), b, 3);
    }
    put_step(&s, "x", a_signed, a, 3, -1);
    put_step(&s, "v", b_signed, b, 3, below(2) ? 2 : -1);
    mgx_str_printf(&s, "af = dequantizelinear(a, xs, xz)\nwf = dequantizelinear(w, vs, vz)\n"
                       "p = dot(af, wf)\n");
    put_epilogue(&s, y, 3, 2);
    const bool good = agrees(mgx_str_text(&s));
    mgx_str_fini(&s);
    return good;
}

static int out_length(int in, int kernel, int stride, int pad, int dilation)
{
    return (in + 2 * pad - ((kernel - 1) * dilation + 1)) / stride + 1;
}

static bool a_convolution(uint64_t seed)
{
    state = seed * 991;
    const bool a_signed = below(2), b_signed = below(4) > 0;
    const int kinds = below(4), group = kinds ? 1 : below(2) ? 1 + below(6) : 8 + below(40);
    const int each = kinds ? 1 + below(20) : 1 + below(2), stride = 1 + below(2), pad = below(2),
              dilation = 1 + (below(4) == 0);
    const int k[] = {1 + below(3), 1 + below(3)};
    const int x[] = {1 + below(2), group * each, 5 + below(12), 5 + below(14)};
    const int w[] = {group * (kinds ? 1 + below(40) : below(3) ? each : 2), each, k[0], k[1]};
    const int y[] = {x[0], w[0], out_length(x[2], k[0], stride, pad, dilation),
                     out_length(x[3], k[1], stride, pad, dilation)};
    struct mgx_str s = {0};
    mgx_str_printf(&s, "module: \"main\"\na = @param:a");
    put_type(&s, type_name(a_signed), x, 4);
    put_bytes(&s, "w", b_signed, w, 4);
    put_step(&s, "x", a_signed, x, 4, -1);
    put_step(&s, "v", b_signed, w, 4, below(2) ? 0 : -1);
    mgx_str_printf(&s,
                   "af = dequantizelinear(a, xs, xz)\nwf = dequantizelinear(w, vs, vz)\n"
                   "p = convolution[padding={%d, %d},stride={%d, %d},dilation={%d, %d},group=%d]"
                   "(af, wf)\n",
                   pad, pad, stride, stride, dilation, dilation, group);
    put_epilogue(&s, y, 4, 1);
    const bool good = agrees(mgx_str_text(&s));
    mgx_str_fini(&s);
    return good;
}

// A transposed convolution; some of its outputs have no tap.
static bool a_transpose(uint64_t seed)
{
    state = seed * 463;
    const bool a_signed = below(2), b_signed = below(4) > 0;
    const int group = below(4) ? 1 : 1 + below(4), out = 1 + below(40);
    const int x[] = {1 + below(2), group * (1 + below(20)), 1 + below(9), 1 + below(17)};
    const int w[] = {x[1], out, 1 + below(4), 1 + below(4)};
    int y[] = {x[0], group * out, 0, 0}, stride[2], dilation[2], pad[2];
    for (int i = 0; i < 2; i++) {
        stride[i] = 1 + below(4);
        dilation[i] = 1 + below(2);
        const int all = (x[i + 2] - 1) * stride[i] + (w[i + 2] - 1) * dilation[i] + 1;
        pad[i] = all > 2 ? below(2) : 0;
        y[i + 2] = all - 2 * pad[i];
    }
    struct mgx_str s = {0};
    mgx_str_printf(&s, "module: \"main\"\na = @param:a");
    put_type(&s, type_name(a_signed), x, 4);
    put_bytes(&s, "w", b_signed, w, 4);
    put_step(&s, "x", a_signed, x, 4, -1);
    put_step(&s, "v", b_signed, w, 4, group == 1 && below(2) ? 1 : -1);
    mgx_str_printf(&s,
                   "af = dequantizelinear(a, xs, xz)\nwf = dequantizelinear(w, vs, vz)\n"
                   "p = convolution_backwards[padding={%d, %d},stride={%d, %d},dilation={%d, %d},"
                   "group=%d](af, wf)\n",
                   pad[0], pad[1], stride[0], stride[1], dilation[0], dilation[1], group);
    put_epilogue(&s, y, 4, 1);
    const bool good = agrees(mgx_str_text(&s));
    mgx_str_fini(&s);
    return good;
}

CASE(transposed_convolutions_are_those_of_integers)
{
    for (uint64_t seed = 1; seed <= 150; seed++)
        CHECK(a_transpose(seed));
}

// Bytes behind bytes, more steps than a body has room for, some with one value per column: no table.
static bool a_chain(uint64_t seed, bool columns)
{
    enum { STEPS = 30 };
    const int x[] = {1, 9, 20}, w[] = {1, 20, 24}, lens[] = {1, 9, 24};
    struct mgx_str s = {0};
    state = seed * 313;
    mgx_str_printf(&s, "module: \"main\"\na = @param:a");
    put_type(&s, type_name(false), x, 3);
    put_bytes(&s, "w", true, w, 3);
    put_step(&s, "x", false, x, 3, -1);
    put_step(&s, "v", true, w, 3, -1);
    mgx_str_printf(&s, "af = dequantizelinear(a, xs, xz)\nwf = dequantizelinear(w, vs, vz)\n"
                       "y0 = dot(af, wf)\n");
    for (int i = 0; i < STEPS; i++) {
        mgx_str_printf(&s,
                       "s%dc = @literal{%g} -> float_type, {1}, {1}\n"
                       "z%dc = @literal{%d} -> uint8_type, {1}, {1}\n"
                       "k%dc = @literal{%g} -> float_type, {1}, {1}\n",
                       i, ldexp(1, -(i % 12)), i, 60 + i, i, 0.25 * i - 3);
        for (const char *name = "szk"; *name; name++) {
            mgx_str_printf(&s, "%c%d = multibroadcast[out_lens=", *name, i);
            put_dims(&s, lens, 3, false);
            mgx_str_printf(&s, "](%c%dc)\n", *name, i);
        }
        if (columns && i % 4 == 2) {
            const char name[] = {'b', (char)('a' + i), 0};
            put_bias(&s, name, lens, 3, 2);
            mgx_str_printf(&s, "m%d = add(y%d, %s)\n", i, i, name);
        } else {
            mgx_str_printf(&s, "m%d = add(y%d, k%d)\n", i, i, i);
        }
        mgx_str_printf(&s,
                       "q%d = quantizelinear[out_type=uint8_type](m%d, s%d, z%d)\n"
                       "y%d = dequantizelinear(q%d, s%d, z%d)\n",
                       i, i, i, i, i + 1, i, i, i);
    }
    mgx_str_printf(&s, "@9 = @return(y%d)\n", STEPS);
    const bool good = agrees(mgx_str_text(&s));
    mgx_str_fini(&s);
    return good;
}

CASE(long_chains_of_bytes_have_kernels)
{
    for (uint64_t seed = 1; seed <= 4; seed++)
        CHECK(a_chain(seed, seed % 2));
}

CASE(products_are_those_of_integers)
{
    for (uint64_t seed = 1; seed <= 200; seed++)
        CHECK(a_product(seed));
}

CASE(convolutions_are_those_of_integers)
{
    for (uint64_t seed = 1; seed <= 200; seed++)
        CHECK(a_convolution(seed));
}

// A function of one byte behind a product, and alone.
CASE(functions_of_a_byte_are_tables)
{
    CHECK(agrees("module: \"main\"\n"
                 "a = @param:a -> uint8_type, {5, 9}, {9, 1}\n"
                 "@1 = @literal{0.5} -> float_type, {1}, {1}\n"
                 "@2 = @literal{77} -> uint8_type, {1}, {1}\n"
                 "s = multibroadcast[out_lens={5, 9}](@1)\n"
                 "z = multibroadcast[out_lens={5, 9}](@2)\n"
                 "f = dequantizelinear(a, s, z)\n"
                 "g = sigmoid(f)\n"
                 "h = mul(f, g)\n"
                 "y = quantizelinear(h, s, z)\n"
                 "@9 = @return(y)\n"));
}

CASE(maxima_of_bytes)
{
    static const int channels[] = {70, 64, 63, 32, 20, 1};
    for (int i = 0; i < 12; i++) {
        char text[1024];
        const char *type = type_name(i % 2);
        const int n = channels[i / 2];
        snprintf(text, sizeof text,
                 "module: \"main\"\n"
                 "a = @param:a -> %s, {2, %d, 9, 8}, {%d, 72, 8, 1}\n"
                 "@1 = @literal{0.5} -> float_type, {1}, {1}\n"
                 "@2 = @literal{5} -> %s, {1}, {1}\n"
                 "s = multibroadcast[out_lens={2, %d, 9, 8}](@1)\n"
                 "z = multibroadcast[out_lens={2, %d, 9, 8}](@2)\n"
                 "t = multibroadcast[out_lens={2, %d, 5, 4}](@1)\n"
                 "u = multibroadcast[out_lens={2, %d, 5, 4}](@2)\n"
                 "f = dequantizelinear(a, s, z)\n"
                 "g = pooling[mode=1,padding={1, 1},stride={2, 2},lengths={3, 3}](f)\n"
                 "y = quantizelinear[out_type=%s](g, t, u)\n"
                 "@9 = @return(y)\n",
                 type, n, 72 * n, type, n, n, n, n, type);
        CHECK(agrees(text));
    }
}

CASE(bytes_are_resized)
{
    for (int i = 0; i < 2; i++) {
        char text[1024];
        const char *type = type_name(i);
        snprintf(text, sizeof text,
                 "module: \"main\"\n"
                 "a = @param:a -> %s, {2, 70, 9, 8}, {5040, 72, 8, 1}\n"
                 "@1 = @literal{0.5} -> float_type, {1}, {1}\n"
                 "@2 = @literal{5} -> %s, {1}, {1}\n"
                 "s = multibroadcast[out_lens={2, 70, 9, 8}](@1)\n"
                 "z = multibroadcast[out_lens={2, 70, 9, 8}](@2)\n"
                 "t = multibroadcast[out_lens={2, 70, 18, 12}](@1)\n"
                 "u = multibroadcast[out_lens={2, 70, 18, 12}](@2)\n"
                 "f = dequantizelinear(a, s, z)\n"
                 "g = resize[scales={1, 1, 2, 1.5},mode=nearest,nearest_mode=%s](f)\n"
                 "y = quantizelinear[out_type=%s](g, t, u)\n"
                 "@9 = @return(y)\n",
                 type, type, i ? "floor" : "ceil", type);
        CHECK(agrees(text));
    }
}

// The text's first lines, a parameter a of bytes, and its lengths as an attribute.
static void begin(struct mgx_str *s, struct mgx_str *dims, bool is_signed, const int *lens,
                  int rank)
{
    put_dims(dims, lens, rank, false);
    mgx_str_printf(s, "module: \"main\"\na = @param:a");
    put_type(s, type_name(is_signed), lens, rank);
}

// Bytes times a factor, for every channel or every value of an image, perhaps less a shift: to the
// bit, with any scales.
static bool a_factor(uint64_t seed)
{
    state = seed * 91;
    const bool from_signed = below(2), to_signed = below(2), by_channel = below(3) > 0,
               shifts = below(2);
    const int lens[] = {1 + below(3), 1 + below(90), 1 + below(5), 1 + below(9)};
    const int of[] = {below(2) ? lens[0] : 1, lens[1], by_channel ? 1 : lens[2],
                      by_channel ? 1 : lens[3]};
    const int all[] = {1, below(4) ? lens[1] : 1, 1, 1}, *less = below(3) ? of : all;
    struct mgx_str s = {0}, dims = {0};
    begin(&s, &dims, from_signed, lens, 4);
    mgx_str_printf(&s, "g = @param:g");
    put_type(&s, "float_type", of, 4);
    if (shifts) {
        mgx_str_printf(&s, "m = @param:m");
        put_type(&s, "float_type", less, 4);
    }
    mgx_str_printf(&s,
                   "@1 = @literal{%g} -> float_type, {1}, {1}\n"
                   "@2 = @literal{%d} -> %s, {1}, {1}\n"
                   "@3 = @literal{%g} -> float_type, {1}, {1}\n"
                   "@4 = @literal{%d} -> %s, {1}, {1}\n",
                   0.01 + below(50) * 0.0037, any_zero(from_signed), type_name(from_signed),
                   below(6) ? 0.003 + below(50) * 0.0041 : 1e-38, any_zero(to_signed),
                   type_name(to_signed));
    for (int i = 1; i <= 4; i++)
        mgx_str_printf(&s, "b%d = multibroadcast[out_lens=%s](@%d)\n", i, mgx_str_text(&dims), i);
    mgx_str_printf(&s, "%s = dequantizelinear(a, b1, b2)\n", shifts ? "e" : "f");
    if (shifts)
        mgx_str_printf(&s, "l = multibroadcast[out_lens=%s](m)\nf = sub(e, l)\n",
                       mgx_str_text(&dims));
    mgx_str_printf(&s,
                   "h = multibroadcast[out_lens=%s](g)\n"
                   "k = mul(%s)\n"
                   "y = quantizelinear[out_type=%s](k, b3, b4)\n"
                   "@9 = @return(y)\n",
                   mgx_str_text(&dims), below(2) ? "f, h" : "h, f", type_name(to_signed));
    const bool good = agrees(mgx_str_text(&s));
    mgx_str_fini(&s);
    mgx_str_fini(&dims);
    return good;
}

CASE(bytes_times_a_factor)
{
    for (uint64_t seed = 1; seed <= 300; seed++)
        CHECK(a_factor(seed));
}

// Floats that are infinite (`made` is "add" or "mul") or no number ("sub") on their way to bytes, as
// values and as factors.
static bool a_special(const char *made, bool is_signed, const int lens[2], const char *body)
{
    struct mgx_str s = {0}, dims = {0};
    begin(&s, &dims, is_signed, lens, 2);
    mgx_str_printf(&s, "f = @param:f");
    put_type(&s, "float_type", lens, 2);
    mgx_str_printf(&s,
                   "@1 = @literal{0.25} -> float_type, {1}, {1}\n"
                   "@2 = @literal{%d} -> %s, {1}, {1}\n"
                   "@3 = @literal{1e38} -> float_type, {1}, {1}\n",
                   any_zero(is_signed), type_name(is_signed));
    for (int i = 1; i <= 3; i++)
        mgx_str_printf(&s, "b%d = multibroadcast[out_lens=%s](@%d)\n", i, mgx_str_text(&dims), i);
    mgx_str_printf(&s,
                   "g1 = mul(f, b3)\ng2 = mul(g1, b3)\ng3 = add(g2, f)\ng = %s(g3, g2)\n"
                   "d = dequantizelinear(a, b1, b2)\n"
                   "v = %s\n"
                   "y = quantizelinear[out_type=%s](v, b1, b2)\n"
                   "@9 = @return(y)\n",
                   made, body, type_name(is_signed));
    const bool good = agrees(mgx_str_text(&s));
    mgx_str_fini(&s);
    mgx_str_fini(&dims);
    return good;
}

CASE(infinities_and_no_numbers_become_bytes)
{
    static const char *const made[] = {"add", "sub", "mul"}, *const bodies[] = {
                                                                 "identity(g)", "mul(d, g)",
                                                                 "add(d, g)", "relu(g)",
                                                                 "max(g, d)"};
    static const int sizes[][2] = {{1, 1}, {3, 37}, {2, 300}, {0, 5}};
    state = 12;
    for (int i = 0; i < 3 * 5 * 4 * 2; i++)
        CHECK(a_special(made[i % 3], i / 60, sizes[i / 15 % 4], bodies[i / 3 % 5]));
}

TEST_MAIN(ROW(long_chains_of_bytes_have_kernels) ROW(products_are_those_of_integers)
              ROW(transposed_convolutions_are_those_of_integers)
                  ROW(convolutions_are_those_of_integers) ROW(functions_of_a_byte_are_tables)
                      ROW(maxima_of_bytes) ROW(bytes_are_resized) ROW(bytes_times_a_factor)
                          ROW(infinities_and_no_numbers_become_bytes))
