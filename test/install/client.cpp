// SPDX-License-Identifier: MIT
// What a C++ program needs of an installation. Prints relu(-1 2) = 0 2.
#include <iostream>
#include <migraphx/migraphx.hpp>

int main()
{
    migraphx::program program;
    migraphx::module main_module = program.get_main_module();
    migraphx::shape shape(migraphx_shape_float_type, {2});
    auto x = main_module.add_parameter("x", shape);
    main_module.add_instruction(migraphx::operation("relu"), {x});
    program.compile(migraphx::target("cpu"));

    float values[] = {-1, 2};
    migraphx::program_parameters params;
    params.add("x", migraphx::argument(shape, values));
    auto results = program.eval(params);
    const float *y = reinterpret_cast<const float *>(results[0].data());
    std::cout << y[0] << ' ' << y[1] << '\n';
}
