// SPDX-License-Identifier: MIT
// Recognising digits, as MIGraphX's users first do: mnist DIGITS.onnx TEST.csv. On the reference
// and the fast target, quantized or not, timed with the standard's clock, the answer found with the
// standard's algorithms. At least 98 % must be right.
#include <migraphx/migraphx.hpp>

#include "../check.hpp"

#include <chrono>
#include <fstream>
#include <sstream>

struct digit {
    int label;
    std::vector<float> pixels;
};

static std::vector<digit> read_digits(const char *path)
{
    std::ifstream file(path);
    std::vector<digit> digits;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line[0] == '#')
            continue;
        std::istringstream cells(line);
        std::string cell;
        std::getline(cells, cell, ',');
        digit d{std::stoi(cell), {}};
        while (std::getline(cells, cell, ','))
            d.pixels.push_back(std::stof(cell) / 16);
        digits.push_back(d);
    }
    return digits;
}

static int answer(const migraphx::program &prog, const digit &d)
{
    migraphx::program_parameters prog_params;
    auto param_shapes = prog.get_parameter_shapes();
    auto input = param_shapes.names().front();
    auto pixels = d.pixels;
    prog_params.add(input, migraphx::argument(param_shapes[input], pixels.data()));
    auto outputs = prog.eval(prog_params);
    auto lengths = outputs[0].get_shape().lengths();
    auto num_results =
        std::accumulate(lengths.begin(), lengths.end(), std::size_t(1), std::multiplies<size_t>());
    float *results = reinterpret_cast<float *>(outputs[0].data());
    float *max = std::max_element(results, results + num_results);
    return static_cast<int>(max - results);
}

static void recognise(const char *model, const std::vector<digit> &digits, const char *target,
                      bool fp16)
{
    migraphx::program prog = migraphx::parse_onnx(model, migraphx::onnx_options{});
    if (fp16)
        migraphx::quantize_fp16(prog);
    migraphx::target targ = migraphx::target(target);
    prog.compile(targ);
    auto start = std::chrono::high_resolution_clock::now();
    const auto right = std::count_if(digits.begin(), digits.end(),
                                     [&](const digit &d) { return answer(prog, d) == d.label; });
    auto stop = std::chrono::high_resolution_clock::now();
    auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(stop - start);
    std::cout << target << (fp16 ? " fp16: " : ": ") << right << " of " << digits.size() << " in "
              << elapsed.count() << "ms" << std::endl;
    CHECK(!digits.empty() && 100 * right >= 98 * static_cast<long>(digits.size()));
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    const auto digits = read_digits(argv[2]);
    const std::vector<digit> some(digits.begin(), digits.begin() + 60);
    recognise(argv[1], digits, "cpu", false);
    recognise(argv[1], some, "cpu", true);
    recognise(argv[1], some, "ref", false);
    CHECK(contains(thrown([] { migraphx::target("gpu"); }), "gpu"));
    return summary();
}
