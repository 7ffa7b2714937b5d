// SPDX-License-Identifier: MIT
// Reads one handwritten digit: load a model, compile it, run it, print the answer. From the root of
// the sources, after make:
//
//   c++ examples/hello.cpp -Iinclude -Lbuild/lib -Wl,-rpath,$PWD/build/lib -lmigraphx_c -o hello
//   ./hello examples/digits/digits.onnx
#include <migraphx/migraphx.hpp>

// A four; draw another one. The darker a character, the nearer its pixel is to 1.
static const std::string picture = "   .#   "
                                   "   =+   "
                                   "   %-:. "
                                   "  =% ++ "
                                   " -@* @- "
                                   " :%@#@. "
                                   "   :%*  "
                                   "   .@:  ";
static const std::string ink = " .:-=+*#%@";

static void read_digit(const char *path)
{
    migraphx::program program = migraphx::parse_onnx(path);
    program.compile(migraphx::target("cpu"));

    std::vector<float> pixels;
    for (char c : picture)
        pixels.push_back(static_cast<float>(ink.find(c)) / 9);
    migraphx::program_parameters parameters;
    migraphx::shape shape(migraphx_shape_float_type, {1, 1, 8, 8});
    parameters.add("image", migraphx::argument(shape, pixels.data())); // borrows the pixels

    migraphx::arguments results = program.eval(parameters);
    const auto scores = results[0].as_vector<float>();
    const auto best = std::max_element(scores.begin(), scores.end());
    std::cout << "this is a " << best - scores.begin() << "\n";
}

// A call that fails throws; the text says what, where and why.
int main(int argc, char **argv)
{
    try {
        read_digit(argc > 1 ? argv[1] : "examples/digits/digits.onnx");
    } catch (const std::exception &e) {
        std::cerr << "error: " << e.what() << "\n";
        return 1;
    }
    return 0;
}
