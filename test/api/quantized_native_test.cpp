// SPDX-License-Identifier: MIT
// The same as quantized_hpp_test.cpp in the DCU guide's C++.
#include <migraphx/cpu/target.hpp>
#include <migraphx/gpu/target.hpp>
#include <migraphx/host.h>
#include <migraphx/make_op.hpp>
#include <migraphx/program.hpp>
#include <migraphx/quantization.hpp>
#include <migraphx/ref/target.hpp>

#include "quantized.hpp"

#include <cstdlib>
#include <string>
#include <vector>

static const migraphx::shape xs{migraphx::shape::float_type, {rows, width}};

static migraphx::program layers()
{
    migraphx::program p;
    migraphx::module *m = p.get_main_module();
    const migraphx::shape ws{migraphx::shape::float_type, {width, width}};
    const auto x = m->add_parameter("x", xs);
    const auto w = m->add_literal(migraphx::literal{ws, weights});
    const auto y = m->add_instruction(migraphx::make_op("relu"),
                                      m->add_instruction(migraphx::make_op("dot"), x, w));
    m->add_return({m->add_instruction(migraphx::make_op("dot"), y, w)});
    return p;
}

static migraphx::parameter_map data()
{
    return {{"x", migraphx::argument{xs, sample.data()}}};
}

static std::vector<float> result(migraphx::program p, const migraphx::target &target)
{
    migraphx::compile_options options;
    options.offload_copy = true;
    p.compile(target, options);
    return thrice([&] { return p.eval(data())[0].to_vector<float>(); });
}

static std::vector<float> in_int8(const migraphx::target &target)
{
    auto p = layers();
    migraphx::quantize_int8(p, target, {data()});
    return result(p, target);
}

static std::vector<float> in_fp8(const migraphx::target &target)
{
    auto p = layers();
    migraphx::quantize_fp8(p, target, {data()});
    return result(p, target);
}

static void within_a_budget(const std::vector<float> &exact)
{
    auto p = layers();
    migraphx::quantize_options options;
    options.budget = 0.02;
    const std::string ranges = migraphx::quantize(p, migraphx::gpu::target{}, {data()}, options);
    CHECK(ranges.find("budget relative 0.02 ") != std::string::npos);
    CHECK(ranges.find("float_type") == std::string::npos); // bytes, or half
    CHECK(apart(result(p, migraphx::gpu::target{}), exact) <= 0.02);
}

int main()
{
    const char *device = std::getenv("MGX_TEST_DEVICE");
    char name[24];
    setenv("MIGRAPHX_GPU_DEVICE", device ? device : "opencl", 1);
    if (migraphx_device_card(name, sizeof name, device ? device : "opencl", 0) != migraphx_status_success)
        return summary();
    const auto exact = result(layers(), migraphx::ref::target{});
    CHECK(apart(in_int8(migraphx::gpu::target{}), in_int8(migraphx::cpu::target{})) < 1e-3);
    CHECK(apart(in_int8(migraphx::gpu::target{}), exact) > 1e-3 && apart(in_int8(migraphx::gpu::target{}), exact) < 0.03);
    CHECK(apart(in_fp8(migraphx::gpu::target{}), exact) > 1e-3 && apart(in_fp8(migraphx::gpu::target{}), exact) < 0.1);
    within_a_budget(exact);
    return summary();
}
