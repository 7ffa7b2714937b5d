// SPDX-License-Identifier: MIT
// Looking at intermediate results: run_trace with a function, a lambda and a std::function, all
// instructions or those of one name or number. out = concat(relu(x + y), sigmoid(x * y)).
#include <migraphx/migraphx.hpp>

#include "../check.hpp"

#include <cmath>

static std::vector<std::string> lines;

static void note(const migraphx::trace_info &info)
{
    auto lengths = info.get_result().get_shape().lengths();
    auto count =
        std::accumulate(lengths.begin(), lengths.end(), std::size_t{1}, std::multiplies<>{});
    lines.push_back(std::to_string(info.get_index()) + " " + info.get_name() + " " +
                    std::to_string(count));
}

static migraphx::program make()
{
    migraphx::program p;
    auto mm = p.get_main_module();
    migraphx::shape s(migraphx_shape_float_type, {2, 3});
    auto x = mm.add_parameter("x", s);
    auto y = mm.add_parameter("y", s);
    auto sum = mm.add_instruction(migraphx::operation("add"), migraphx::instructions(x, y));
    auto a = mm.add_instruction(migraphx::operation("relu"), migraphx::instructions(sum));
    auto product = mm.add_instruction(migraphx::operation("mul"), {x, y});
    auto b = mm.add_instruction(migraphx::operation("sigmoid"), {product});
    mm.add_instruction(migraphx::operation("concat", "{axis: %d}", 1), {a, b});
    return p;
}

int main()
{
    auto p = make();
    p.compile(migraphx::target("ref"));
    std::vector<float> x_data = {-1, 2, -3, 4, 5, 6}, y_data = {0.5f, 1, 1, 0, 0.25f, 0};
    migraphx::shape s(migraphx_shape_float_type, {2, 3});
    migraphx::program_parameters params;
    params.add("x", migraphx::argument(s, x_data.data()));
    params.add("y", migraphx::argument(s, y_data.data()));

    const auto result = p.run_trace(params, note)[0].as_vector<float>();
    CHECK(lines.size() == 5 && contains(lines[0], " add") && contains(lines[4], " concat"));
    CHECK(contains(lines[4], " 12") && result.size() == 12);
    for (int i = 0; i < 6; i++) {
        const float sum = x_data[i] + y_data[i], product = x_data[i] * y_data[i];
        CHECK(result[i / 3 * 6 + i % 3] == std::max(sum, 0.0f));
        CHECK(std::fabs(result[i / 3 * 6 + 3 + i % 3] - 1 / (1 + std::exp(-product))) < 1e-6f);
    }

    migraphx::argument kept;
    std::size_t number = 0;
    p.run_trace(params, [&](const migraphx::trace_info &info) {
        if (info.get_name().find("relu") != std::string::npos) {
            kept = info.get_result();
            number = info.get_index();
        }
    });
    CHECK((kept.as_vector<float>() == std::vector<float>{0, 3, 0, 4, 5.25f, 6}));
    std::function<void(migraphx::trace_info)> by_number = [&](migraphx::trace_info info) {
        if (info.get_index() == number)
            throw std::runtime_error("at " + info.get_name());
    };
    CHECK(contains(thrown([&] { p.run_trace(params, by_number); }), "at relu"));
    CHECK(p.eval(params)[0].as_vector<float>() == result);
    return summary();
}
