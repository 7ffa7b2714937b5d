// SPDX-License-Identifier: MIT
// The guide's way to 8 bits in ROCm's C++, with a card as target (MGX_TEST_DEVICE, or PoCL): calibrated there, compiled for
// it, and compared with the same on the CPU and with float. Without a card nothing is tested.
#include <migraphx/host.h>
#include <migraphx/migraphx.hpp>

#include "quantized.hpp"

#include <cstdlib>
#include <string>
#include <vector>

static const migraphx::shape xs{migraphx_shape_float_type, {rows, width}};

static migraphx::program layers()
{
    migraphx::program p;
    auto m = p.get_main_module();
    const migraphx::shape ws{migraphx_shape_float_type, {width, width}};
    auto x = m.add_parameter("x", xs);
    auto w = m.add_literal(ws, reinterpret_cast<const char *>(weights.data()));
    auto y = m.add_instruction(migraphx::operation("relu"),
                               {m.add_instruction(migraphx::operation("dot"), {x, w})});
    m.add_return({m.add_instruction(migraphx::operation("dot"), {y, w})});
    return p;
}

static migraphx::program_parameters data()
{
    migraphx::program_parameters params;
    params.add("x", migraphx::argument(xs, sample.data()));
    return params;
}

static std::vector<float> result(const migraphx::program &p, const char *target)
{
    migraphx::compile_options options;
    options.set_offload_copy();
    p.compile(migraphx::target(target), options);
    return thrice([&] { return p.eval(data())[0].as_vector<float>(); });
}

static std::vector<float> in_int8(const char *target)
{
    auto p = layers();
    migraphx::quantize_int8_options options;
    options.add_calibration_data(data());
    options.add_op_name("dot");
    migraphx::quantize_int8(p, migraphx::target(target), options);
    return result(p, target);
}

static std::vector<float> in_fp8(const char *target)
{
    auto p = layers();
    migraphx::quantize_fp8_options options;
    options.add_calibration_data(data());
    migraphx::quantize_fp8(p, migraphx::target(target), options);
    return result(p, target);
}

static void within_a_budget(const std::vector<float> &exact)
{
    auto p = layers();
    migraphx::quantize_options options;
    options.add_calibration_data(data());
    options.set_budget("relative", 0.02);
    const std::string ranges = migraphx::quantize(p, migraphx::target("gpu"), options);
    CHECK(ranges.find("budget relative 0.02 ") != std::string::npos);
    CHECK(ranges.find("float_type") == std::string::npos); // bytes, or half
    CHECK(apart(result(p, "gpu"), exact) <= 0.02);
}

int main()
{
    const char *device = std::getenv("MGX_TEST_DEVICE");
    char name[24];
    setenv("MIGRAPHX_GPU_DEVICE", device ? device : "opencl", 1);
    if (migraphx_device_card(name, sizeof name, device ? device : "opencl", 0) != migraphx_status_success)
        return summary();
    const auto exact = result(layers(), "ref");
    CHECK(apart(in_int8("gpu"), in_int8("cpu")) < 1e-3);
    CHECK(apart(in_int8("gpu"), exact) > 1e-3 && apart(in_int8("gpu"), exact) < 0.03);
    CHECK(apart(in_fp8("gpu"), exact) > 1e-3 && apart(in_fp8("gpu"), exact) < 0.1);
    within_a_budget(exact);
    return summary();
}
