// SPDX-License-Identifier: MIT
// A model read, printed, saved in both formats and loaded again, with the options a command line
// would give: the loaded programs are the one that was saved, compiled or not.
#include <migraphx/migraphx.hpp>

#include "../check.hpp"

static std::vector<float> run(const migraphx::program &p)
{
    migraphx::program_parameters pp;
    auto shapes = p.get_parameter_shapes();
    for (auto &&name : shapes.names())
        pp.add(name, migraphx::argument::generate(shapes[name], 7));
    return p.eval(pp).front().as_vector<float>();
}

static void through(const std::string &format, const migraphx::program &p)
{
    const std::string file = "parse_load_save." + format;
    migraphx::file_options options;
    options.set_file_format(format.c_str());
    migraphx::save(p, file.c_str(), options);
    const migraphx::program again = migraphx::load(file.c_str(), options);
    CHECK(again == p && !(again != p));
    CHECK(run(again) == run(p));
    std::remove(file.c_str());
}

int main()
{
    migraphx::program p;
    migraphx::onnx_options options;
    p = parse_onnx("resnet50.onnx", options);
    p.print();
    const auto copy = migraphx::parse_onnx("resnet50.onnx");
    CHECK(p == copy);
    p.compile(migraphx::target("cpu"));
    through("msgpack", p);
    through("json", p);
    migraphx::save(copy, "parse_load_save.mxr");
    auto loaded = migraphx::load("parse_load_save.mxr");
    CHECK(loaded == copy);
    loaded.compile(migraphx::target("ref"));
    const auto a = run(p), b = run(loaded);
    for (std::size_t i = 0; i < a.size(); i++)
        CHECK(std::abs(a[i] - b[i]) < 1e-4f);
    std::remove("parse_load_save.mxr");
    migraphx::file_options wrong;
    CHECK(contains(thrown([&] {
                       wrong.set_file_format("yaml");
                       migraphx::save(p, "x", wrong);
                   }),
                   "yaml"));
    CHECK(contains(thrown([] { migraphx::load("no_such.mxr"); }), "no_such.mxr"));

    auto input = migraphx::argument::generate(migraphx::shape(migraphx_shape_half_type, {2, 3}));
    migraphx::argument::save_argument(input, "parse_load_save.arg");
    CHECK(migraphx::argument::load_argument("parse_load_save.arg") == input);
    std::remove("parse_load_save.arg");
    return summary();
}
