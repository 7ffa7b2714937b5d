// SPDX-License-Identifier: MIT
// The DCU guide's saving of a compiled program.
#include <migraphx/cpu/target.hpp>
#include <migraphx/gpu/target.hpp>
#include <migraphx/load_save.hpp>
#include <migraphx/onnx.hpp>
#include <migraphx/quantization.hpp>
#include <string>
#include <vector>

#define gpu cpu // no GPU here

using namespace std;
using namespace migraphx;

int main(int argc, char *argv[])
{
    migraphx::program net = migraphx::parse_onnx("ResNet50.onnx");
    migraphx::compile_options options;
    options.device_id = 0;
    options.offload_copy = true;
    net.compile(migraphx::gpu::target{}, options);
    migraphx::save(net, "ResNet50.mxr");
    return 0;
}
