// SPDX-License-Identifier: MIT
// The interface as ONNX Runtime's execution provider uses it: a subgraph arrives as bytes, is
// compiled for the lengths of the first call and again when they change, kept in files under names
// made of version, graph and lengths, and run on a stream under a lock. Results go where the caller
// wants them, through "#output_" parameters where the target has such, else by a copy.
#include <migraphx/migraphx.hpp>
#include <migraphx/version.h>

#include "../check.hpp"

#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

struct ihipStream_t;
typedef ihipStream_t *hipStream_t;

struct tensor {
    std::vector<std::size_t> dims;
    std::vector<float> values;
};

class provider
{
  public:
    explicit provider(std::string bytes, bool fp16 = false)
        : m_bytes(std::move(bytes)), m_fp16(fp16)
    {
    }
    static bool supports(const std::string &op)
    {
        const auto list = migraphx::get_onnx_operators();
        return std::find(list.begin(), list.end(), op) != list.end();
    }
    std::vector<tensor> run(std::map<std::string, tensor> inputs)
    {
        std::vector<std::size_t> dims;
        for (const auto &input : inputs)
            dims.insert(dims.end(), input.second.dims.begin(), input.second.dims.end());
        if (dims != m_dims)
            build(inputs, file_name(dims));
        m_dims = dims;
        return call(inputs);
    }
    // The files that all of them have made.
    static std::vector<std::string> &saved()
    {
        static std::vector<std::string> list;
        return list;
    }
    int compiled = 0, loaded = 0;

  private:
    std::string m_bytes;
    bool m_fp16;
    std::vector<std::size_t> m_dims;
    migraphx::program m_program;
    migraphx::target m_target = migraphx::target("cpu");
    std::mutex m_lock;

    std::string file_name(const std::vector<std::size_t> &dims) const
    {
        std::ostringstream name;
        name << "ep_" << MIGRAPHX_VERSION_MAJOR << "_" << MIGRAPHX_VERSION_MINOR << "_"
             << MIGRAPHX_VERSION_PATCH << "_" << MIGRAPHX_VERSION_TWEAK << "_"
             << std::hash<std::string>()(m_bytes) << (m_fp16 ? "_fp16" : "");
        for (auto d : dims)
            name << "_" << d;
        return name.str() + ".mxr";
    }
    void build(const std::map<std::string, tensor> &inputs, const std::string &file)
    {
        migraphx::file_options files;
        files.set_file_format("msgpack");
        if (std::ifstream(file).good()) {
            m_program = migraphx::load(file.c_str(), files);
            loaded++;
            return;
        }
        migraphx::onnx_options options;
        for (const auto &input : inputs)
            options.set_input_parameter_shape(input.first, input.second.dims);
        options.set_external_data_path(".");
        m_program = migraphx::parse_onnx_buffer(m_bytes, options);
        if (m_fp16)
            migraphx::quantize_fp16(m_program);
        migraphx::compile_options compiling;
        compiling.set_fast_math(false);
        compiling.set_exhaustive_tune_flag(false);
        m_program.compile(m_target, compiling);
        migraphx::save(m_program, file.c_str(), files);
        saved().push_back(file);
        compiled++;
    }
    std::vector<tensor> call(std::map<std::string, tensor> &inputs)
    {
        std::vector<tensor> results;
        for (const auto &s : m_program.get_output_shapes())
            results.push_back({s.lengths(), std::vector<float>(s.elements())});
        std::vector<bool> in_place(results.size());
        migraphx::program_parameters m;
        auto param_shapes = m_program.get_parameter_shapes();
        for (auto &&name : param_shapes.names()) {
            const std::string text(name);
            const auto found = inputs.find(text);
            const auto output = text.find("#output_");
            if (found != inputs.end()) {
                CHECK(param_shapes[name].lengths() == found->second.dims);
                CHECK(param_shapes[name].type() == migraphx_shape_float_type);
                m.add(name, migraphx::argument(param_shapes[name], found->second.values.data()));
            } else if (output != std::string::npos) {
                const auto i = static_cast<std::size_t>(std::stoi(text.substr(output + 8)));
                m.add(name, migraphx::argument(param_shapes[name], results[i].values.data()));
                in_place[i] = true;
            }
        }
        hipStream_t stream = nullptr;
        std::lock_guard<std::mutex> lock(m_lock);
        auto outputs = m_program.run_async(m, stream);
        for (std::size_t i = 0; i < outputs.size(); i++)
            if (!in_place[i]) {
                const auto s = outputs[i].get_shape();
                CHECK(s.bytes() == results[i].values.size() * sizeof(float) && s.standard());
                std::memcpy(results[i].values.data(), outputs[i].data(), s.bytes());
            }
        m_program.experimental_get_context().finish();
        return results;
    }
};

static tensor image(std::size_t batch, std::size_t side)
{
    tensor t{{batch, 3, side, side}, std::vector<float>(batch * 3 * side * side)};
    for (std::size_t i = 0; i < t.values.size(); i++)
        t.values[i] = static_cast<float>(i * 7 % 251) / 128 - 1;
    return t;
}

// What the reference target makes of it, read from the file.
static std::vector<float> wanted(const tensor &input)
{
    migraphx::onnx_options options;
    options.set_input_parameter_shape("input", input.dims);
    auto p = migraphx::parse_onnx("Test.onnx", options);
    p.compile(migraphx::target("ref"));
    auto values = input.values;
    migraphx::shape s(migraphx_shape_float_type, input.dims);
    return p.eval({{"input", migraphx::argument(s, values.data())}})[0].as_vector<float>();
}

static void check(provider &ep, const tensor &input, float tolerance)
{
    const auto results = ep.run({{"input", input}});
    const auto reference = wanted(input);
    CHECK(results.size() == 1 && results[0].dims[0] == input.dims[0]);
    CHECK(results[0].values.size() == reference.size());
    for (std::size_t i = 0; i < reference.size(); i++)
        CHECK(std::abs(results[0].values[i] - reference[i]) < tolerance);
}

int main()
{
    std::ifstream file("Test.onnx", std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    CHECK(provider::supports("Conv") && provider::supports("Gemm") && !provider::supports("Nope"));
    CHECK(migraphx::get_type_name<ihipStream_t>() == "ihipStream_t");
    provider ep(bytes), again(bytes), half(bytes, true);
    for (int i = 0; i < 2; i++) {
        check(ep, image(2, 8), 1e-4f);
        check(ep, image(1, 12), 1e-4f);
        check(again, image(1, 12), 1e-4f);
        check(half, image(2, 8), 2e-2f);
    }
    CHECK(ep.compiled == 2 && ep.loaded == 2 && half.compiled == 1 && half.loaded == 0);
    CHECK(again.compiled == 0 && again.loaded == 1);
    for (const auto &name : provider::saved())
        std::remove(name.c_str());
    return summary();
}
