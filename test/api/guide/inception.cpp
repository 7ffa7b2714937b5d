// SPDX-License-Identifier: MIT
// The ROCm guide's program, with no other header of the engine's and the standard's than it has.
#include <algorithm>
#include <ctime>
#include <migraphx/migraphx.hpp>
#include <random>
#include <string>
#include <vector>

int main(int argc, char **argv)
{
    migraphx::program prog;
    migraphx::onnx_options onnx_opts;
    prog = parse_onnx("inceptioni1.onnx", onnx_opts);
    prog.print();
    migraphx::target targ = migraphx::target("cpu"); // no GPU here
    migraphx::compile_options comp_opts;
    comp_opts.set_offload_copy();
    prog.compile(targ, comp_opts);
    prog.print();
    std::srand(unsigned(std::time(nullptr)));
    std::vector<float> input_image(1 * 299 * 299 * 3);
    std::generate(input_image.begin(), input_image.end(), std::rand);
    migraphx::program_parameters prog_params;
    auto param_shapes = prog.get_parameter_shapes();
    auto input = param_shapes.names().front();
    prog_params.add(input, migraphx::argument(param_shapes[input], input_image.data()));
    auto outputs = prog.eval(prog_params);
    float *results = reinterpret_cast<float *>(outputs[0].data());
    float *max = std::max_element(results, results + 1000);
    int answer = max - results;
    std::cout << "answer: " << answer << std::endl;
}
