// SPDX-License-Identifier: MIT
// A batch that changes from call to call, as MIGraphX's users set it: ranges for an input's lengths
// before the model is read. add.onnx adds a scalar "1" to a tensor "0" of bytes.
#include <migraphx/migraphx.hpp>

#include "../check.hpp"

static bool adds(const migraphx::program &p, std::size_t batch)
{
    const migraphx::shape s(migraphx_shape_uint8_type, {batch, 3, 4, 5});
    std::vector<uint8_t> a(s.elements()), b = {2}, wanted(s.elements());
    std::iota(a.begin(), a.end(), uint8_t(0));
    std::transform(a.begin(), a.end(), wanted.begin(),
                   [](uint8_t x) { return static_cast<uint8_t>(x + 2); });
    migraphx::program_parameters pp;
    pp.add("0", migraphx::argument(s, a.data()));
    pp.add("1", migraphx::argument(migraphx::shape(migraphx_shape_uint8_type, {1}, {0}), b.data()));
    auto outputs = p.eval(pp);
    auto result = outputs[0];
    return result.get_shape().lengths() == s.lengths() &&
           bool{result == migraphx::argument(s, wanted.data())};
}

int main()
{
    migraphx::onnx_options o_options;
    migraphx::dynamic_dimensions dyn_dims = {
        migraphx::dynamic_dimension{1, 4, {2, 4}}, migraphx::dynamic_dimension{3, 3},
        migraphx::dynamic_dimension{4, 4}, migraphx::dynamic_dimension{5, 5}};
    o_options.set_dyn_input_parameter_shape("0", dyn_dims);
    auto p = migraphx::parse_onnx("add.onnx", o_options);
    auto shape = p.get_parameter_shapes()["0"];
    CHECK(shape.dynamic() && shape.dyn_dims()[0] == dyn_dims[0]);
    CHECK(!shape.dyn_dims()[0].is_fixed() && shape.dyn_dims()[1].is_fixed());
    migraphx::compile_options c_options;
    c_options.set_offload_copy();
    p.compile(migraphx::target("cpu"), c_options);
    for (std::size_t batch : {2, 1, 4, 3, 2})
        CHECK(adds(p, batch));
    CHECK(contains(thrown([&] { adds(p, 5); }), "0"));
    return summary();
}
