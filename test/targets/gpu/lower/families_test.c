// SPDX-License-Identifier: MIT
// Which kernels of a card take what, on a stand-in for a Hopper card whose kernels write nothing:
// programs are planned and their texts made, which a build with assertions looks at.
//
// CMake puts the stand-in's folder into LD_LIBRARY_PATH; without it there is nothing to test here.
#include "base/size.h"
#include "targets/gpu/device/device.h"
#include "targets/target.h"

#include "check.h"
#include "op/op.h"

static bool has_card(void)
{
    struct mgx_diag diag = {.status = MGX_OK};
    struct gpu_device *d;
    const bool there = gpu_device_open("cuda", 0, &d, &diag) == MGX_OK;
    if (there)
        gpu_device_close(d);
    mgx_diag_clear(&diag);
    return there;
}

// "w = ...": constant weights of the lines' type, 128 rows of 192.
static void put_weights(struct mgx_str *out, const char *lines)
{
    mgx_str_put(out, "w = @literal{");
    for (int i = 0; i < 128 * 192; i++)
        mgx_str_printf(out, "%s%d", i ? ", " : "", i * 7 % 11 - 5);
    mgx_str_printf(out, "} -> %s, {128, 192}, {192, 1}\n",
                   strstr(lines, "float_type") ? "float_type"
                   : strstr(lines, "fp8")      ? "fp8e4m3fn_type"
                                               : "half_type");
}

// What the plan says of a program that is compiled with one setting more; false: it is not made.
static bool explain(const char *lines, const char *setting, struct mgx_str *said)
{
    struct mgx_str text = {0};
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {.status = MGX_OK};
    const struct mgx_compile_options options = {
        .fast_math = true,
        .pass.fast_math = true,
        .offload_copy = true,
        .own = MGX_SETTINGS({"device", "cuda"}, {setting, "1"})};
    mgx_str_put(&text, "module: \"main\"\n");
    if (strstr(lines, "w)") && !strstr(lines, "w = "))
        put_weights(&text, lines);
    mgx_str_put(&text, lines);
    const bool made =
        mgx_program_parse(&p, &mgx_ops, mgx_str_text(&text), text.size, &diag) == MGX_OK &&
        mgx_program_compile(p, mgx_target_find("gpu"), &options, &diag) == MGX_OK;
    if (made)
        p->executable->target->explain(p, said);
    else
        printf("%s\n", diag.text);
    mgx_str_fini(&text);
    mgx_diag_clear(&diag);
    mgx_program_destroy(p);
    return made;
}

// Is the program taken by this kernel, and nothing by the reference?
static bool is_taken(const char *lines, const char *kernel)
{
    struct mgx_str wanted = {0}, said = {0};
    mgx_str_printf(&wanted, ": %s (", kernel);
    const bool good = explain(lines, "none", &said) &&
                      strstr(mgx_str_text(&said), mgx_str_text(&wanted)) &&
                      !strstr(mgx_str_text(&said), ": ref (");
    if (!good)
        printf("%s\n%s\n", kernel, mgx_str_text(&said));
    mgx_str_fini(&wanted);
    mgx_str_fini(&said);
    return good;
}

#define X(type, lens, strides) "x = @param:x -> " type ", {" lens "}, {" strides "}\n"
#define Y "@9 = @return(y)\n"
#define IMAGE X("float_type", "1, 8, 12, 12", "1152, 144, 12, 1")
#define LINES X("float_type", "6, 40", "40, 1")
#define CONV "padding={1, 1},stride={1, 1},dilation={1, 1}"

static const struct {
    const char *kernel, *lines;
} families[] = {
    {"gpu::wgmma", X("half_type", "256, 128", "128, 1") "y = dot(x, w)\n" Y},
    {"gpu::wgmma", X("fp8e5m2_type", "256, 128", "128, 1") "y = quant_dot(x, w)\n" Y},
    {"gpu::few", X("half_type", "2, 128", "128, 1") "y = dot(x, w)\n" Y},
    {"gpu::product",
     X("int32_type", "20, 30", "30, 1") "w = @param:w -> int32_type, {30, 40}, {40, 1}\n"
                                        "y = dot(x, w)\n" Y},
    {"gpu::direct", IMAGE "w = @param:w -> float_type, {8, 1, 3, 3}, {9, 9, 3, 1}\n"
                          "y = convolution[" CONV ",group=8](x, w)\n" Y},
    {"gpu::direct", IMAGE "w = @param:w -> float_type, {8, 4, 3, 3}, {36, 9, 3, 1}\n"
                          "y = convolution_backwards[padding={1, 1},stride={2, 2},"
                          "dilation={1, 1},group=1](x, w)\n" Y},
    {"gpu::pointwise", LINES "z = exp(x)\ny = add(z, x)\n" Y},
    {"gpu::reduce", LINES "y = reduce_sum[axes={1}](x)\n" Y},
    {"gpu::softmax", LINES "y = softmax[axis=1](x)\n" Y},
    {"gpu::pooling",
     IMAGE "y = pooling[mode=1,padding={1, 1},stride={2, 2},lengths={3, 3}](x)\n" Y},
    {"gpu::pool_plane",
     IMAGE "y = pooling[mode=0,padding={0, 0},stride={1, 1},lengths={12, 12}](x)\n" Y},
    {"gpu::lrn", IMAGE "y = lrn[alpha=0.1,beta=0.75,bias=1,size=3](x)\n" Y},
    {"gpu::scan", LINES "y = prefix_scan_sum[axis=1,exclusive=1](x)\n" Y},
    {"gpu::topk", LINES "z = topk[k=3,axis=1,largest=1](x)\ny = get_tuple_elem[index=0](z)\n" Y},
    {"gpu::gather", LINES "i = @param:i -> int64_type, {3}, {1}\ny = gather[axis=1](x, i)\n" Y},
    {"gpu::pick", LINES "y = reverse[axes={1}](x)\n" Y},
    {"gpu::pick", LINES "y = pad[pads={0, 1, 2, 0},value=3](x)\n" Y},
    {"gpu::scatter",
     LINES "i = @param:i -> int64_type, {6, 4}, {4, 1}\n"
           "u = @param:u -> float_type, {6, 4}, {4, 1}\ny = scatter_add[axis=1](x, i, u)\n" Y},
    {"gpu::det", X("float_type", "3, 5, 5", "25, 5, 1") "y = det(x)\n" Y},
    {"gpu::inverse", X("float_type", "3, 5, 5", "25, 5, 1") "y = inverse(x)\n" Y},
    {"gpu::roialign", IMAGE "r = @param:r -> float_type, {2, 4}, {4, 1}\n"
                            "b = @param:b -> int64_type, {2}, {1}\n"
                            "y = roialign[output_height=2,output_width=3](x, r, b)\n" Y},
    {"gpu::attention",
     X("half_type", "1, 2, 64, 32",
       "4096, 2048, 32, 1") "k = @param:k -> half_type, {1, 2, 32, 64}, {4096, 2048, 64, 1}\n"
                            "v = @param:v -> half_type, {1, 2, 64, 32}, {4096, 2048, 32, 1}\n"
                            "a = dot(x, k)\nb = softmax[axis=3](a)\ny = dot(b, v)\n" Y},
};

CASE(every_family_takes_what_is_its_own)
{
    int missing = 0;
    for (int i = 0; i < MGX_COUNT(families) && has_card(); i++)
        missing += !is_taken(families[i].lines, families[i].kernel);
    CHECK_INT(missing, 0);
}

// Are its multiplications rounded to TF32 under this setting? -1: no kernel of Hopper's takes it.
static int rounds(const char *lines, const char *setting)
{
    struct mgx_str said = {0};
    const bool taken =
        explain(lines, setting, &said) && strstr(mgx_str_text(&said), ": gpu::wgmma (") != NULL;
    const int rounded = taken ? strstr(mgx_str_text(&said), ", TF32") != NULL : -1;
    mgx_str_fini(&said);
    return rounded;
}

CASE(floats_are_rounded_where_the_setting_says)
{
    static const char dot[] = X("float_type", "256, 128", "128, 1") "y = dot(x, w)\n" Y;
    static const char image[] = X("float_type", "1, 128, 12, 12",
                                  "18432, 144, 12, 1") "v = transpose[permutation={1, 0}](w)\n"
                                                       "k = reshape[dims={192, 128, 1, 1}](v)\n"
                                                       "y = convolution[padding={0, 0},stride={1, "
                                                       "1},dilation={1, 1},group=1](x, k)\n" Y;
    if (!has_card())
        return;
    CHECK(rounds(dot, "none") == 0 && rounds(image, "none") == 0);
    CHECK(rounds(dot, "tf32") == 1 && rounds(image, "tf32") == 1);
    CHECK(rounds(dot, "tf32_convolutions") == 0 && rounds(image, "tf32_convolutions") == 1);
}

// Rows that are quantized by the range of all of them, and multiplied by constants: what the plan says.
static bool is_quantized(int depth, const char *who, const char *range)
{
    struct mgx_str lines = {0};
    mgx_str_printf(&lines, "x = @param:x -> float_type, {256, %d}, {%d, 1}\nw = @literal{", depth,
                   depth);
    for (int i = 0; i < depth * 64; i++)
        mgx_str_printf(&lines, "%s%d", i ? ", " : "", i * 7 % 11 - 5);
    mgx_str_printf(&lines,
                   "} -> int8_type, {%d, 64}, {64, 1}\n"
                   "y = softmax[axis=1](x)\nr = byte_range(y)\n"
                   "s = slice[axes={0},starts={0},ends={1}](r)\n"
                   "z = slice[axes={0},starts={1},ends={2}](r)\n"
                   "zb = convert[target_type=4](z)\n"
                   "ss = multibroadcast[out_lens={256, %d}](s)\n"
                   "zs = multibroadcast[out_lens={256, %d}](zb)\n"
                   "q = quantizelinear[out_type=4](y, ss, zs)\n"
                   "p = quant_dot(q, w, zb)\nf = convert[target_type=2](p)\n"
                   "@9 = @return(f)\n",
                   depth, depth, depth);
    struct mgx_str said = {0};
    const bool good = explain(mgx_str_text(&lines), "none", &said) &&
                      strstr(mgx_str_text(&said), who) && strstr(mgx_str_text(&said), range) &&
                      !strstr(mgx_str_text(&said), ": ref (");
    if (!good)
        printf("%s\n%s\n", who, mgx_str_text(&said));
    mgx_str_fini(&said);
    mgx_str_fini(&lines);
    return good;
}

// Shallow products make their bytes themselves; of deeper ones a kernel does, which joins the range too.
CASE(what_is_quantized_while_it_runs_takes_few_launches)
{
    if (!has_card())
        return;
    CHECK(is_quantized(128, "makes its bytes of floats", "gpu::byte_range (done by who reads it)"));
    CHECK(is_quantized(512, "makes its bytes of floats", "gpu::byte_range (done by who reads it)"));
    CHECK(is_quantized(1024, "joins the range first", "gpu::byte_range (done by who reads it)"));
}

TEST_MAIN(ROW(every_family_takes_what_is_its_own) ROW(floats_are_rounded_where_the_setting_says)
              ROW(what_is_quantized_while_it_runs_takes_few_launches))
