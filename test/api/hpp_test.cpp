// SPDX-License-Identifier: MIT
// The C++ header: the guide's network, containers, lifetimes, traces, files, custom operators,
// exceptions.
#include <migraphx/migraphx.hpp>

#include "check.hpp"

#include <cmath>

static_assert(std::is_same<migraphx::as_handle<migraphx_shape_t>, migraphx::shape>{}, "shape");
static_assert(std::is_same<migraphx::as_handle<const_migraphx_argument_t>, migraphx::argument>{},
              "argument");
static_assert(std::is_same<migraphx::as_handle<migraphx_program>, migraphx::program>{}, "program");

static migraphx::program make_net()
{
    migraphx::program net;
    migraphx::module m = net.get_main_module();
    auto input = m.add_parameter("input", migraphx::shape{migraphx_shape_float_type, {1, 1, 4, 6}});
    std::vector<float> weights{1.0f};
    auto kernel =
        m.add_literal(migraphx::shape{migraphx_shape_float_type, {1, 1, 1, 1}}, weights.data());
    auto conv = m.add_instruction(
        migraphx::operation("convolution", "{padding:[%i,%i],stride:[1,1],dilation:[1,1],group:1}",
                            0, 0),
        {input, kernel});
    auto slice = m.add_instruction(
        migraphx::operation("slice", "{axes:[2,3],starts:[0,2],ends:[4,5]}"), {conv});
    auto contiguous = m.add_instruction(migraphx::operation("contiguous"), {slice});
    m.add_return({m.add_instruction(migraphx::operation("flatten"), {contiguous})});
    return net;
}

static const std::vector<float> expected{2, 3, 4, 8, 9, 10, 14, 15, 16, 20, 21, 22};

// Whatever a callback throws, run_trace throws a std::runtime_error; what was thrown is nested.
static void thrown_by_callbacks(const migraphx::program &net,
                                const migraphx::program_parameters &params)
{
    CHECK(thrown([&] { net.run_trace(params, [](const migraphx::trace_info &) { throw 7; }); }) ==
          "Failed to call function");
    try {
        net.run_trace(params, [](const migraphx::trace_info &) { throw std::logic_error("odd"); });
    } catch (const std::runtime_error &e) {
        CHECK(e.what() == std::string("odd"));
        bool nested = false;
        try {
            std::rethrow_if_nested(e);
        } catch (const std::logic_error &) {
            nested = true;
        }
        CHECK(nested);
    }
}

static void guide()
{
    migraphx::program net = make_net();
    migraphx::compile_options options;
    options.set_offload_copy();
    net.compile(migraphx::target("ref"), options);
    std::vector<float> data(24);
    for (int i = 0; i < 24; i++)
        data[i] = static_cast<float>(i);
    migraphx::program_parameters params;
    auto shapes = net.get_parameter_shapes();
    CHECK(shapes.size() == 1);
    for (auto *name : shapes.names())
        params.add(name, migraphx::argument(shapes[name], data.data()));
    migraphx::argument result;
    {
        auto results = net.eval(params);
        CHECK(results.size() == 1 && !results.empty());
        result = results[0]; // keeps the list alive
    }
    CHECK((result.get_shape().lengths() == std::vector<std::size_t>{1, 12}));
    CHECK(result.as_vector<float>() == expected);
    std::vector<std::size_t> indices;
    net.run_trace(params, [&](const migraphx::trace_info &info) {
        indices.push_back(info.get_index());
        CHECK(!info.get_name().empty() && info.get_result().data());
    });
    CHECK((indices == std::vector<std::size_t>{2, 3, 4, 5}));
    CHECK(thrown([&] {
              net.run_trace(
                  params, [](const migraphx::trace_info &) { throw std::runtime_error("enough"); });
          }) == "enough");
    thrown_by_callbacks(net, params);
    int stream = 0;
    CHECK(net.run_async(params, &stream).front().as_vector<float>() == expected);
    CHECK(migraphx::get_type_name<int>() == "int");
    net.experimental_get_context().finish();
    CHECK(net.experimental_get_context().get_queue<void *>() == nullptr);
}

static void values()
{
    migraphx::shape s(migraphx_shape_half_type, {2, 3}, {1, 2});
    CHECK(!s.standard() && !s.dynamic() && s.elements() == 6 && s.bytes() == 12 && s.index(1) == 2);
    CHECK(s == migraphx::shape(s) && s != migraphx::shape(migraphx_shape_half_type, {2, 3}));
    CHECK((migraphx::shape(migraphx_shape_float_type).strides() == std::vector<std::size_t>{0}));
    migraphx::dynamic_dimensions dims(migraphx::dynamic_dimension(1, 4, {2, 4}),
                                      migraphx::dynamic_dimension(3, 3));
    migraphx::shape d(migraphx_shape_float_type, dims);
    CHECK(d.dynamic() && d.dyn_dims().size() == 2 && d.dyn_dims()[1].is_fixed());
    CHECK(d.dyn_dims()[0] == dims[0] && dims[0] != dims[1]);
    auto a = migraphx::argument::generate(s, 3);
    CHECK(a == migraphx::argument::generate(s, 3) && a != migraphx::argument::generate(s, 4));
    std::vector<float> data{1, 2, 3, 4, 5, 6};
    migraphx::argument view(migraphx::shape(migraphx_shape_float_type, {2, 3}, {1, 2}),
                            data.data());
    CHECK((view.as_vector<float>() == std::vector<float>{1, 3, 5, 2, 4, 6}));
    CHECK(!migraphx::get_onnx_operators().empty());
}

static void programs()
{
    migraphx::program a = make_net(), b = make_net();
    CHECK(a == b);
    auto more = b.create_module("more");
    auto x = more.add_parameter("x", migraphx::shape(migraphx_shape_float_type, {2}));
    more.add_return({x});
    CHECK(a != b && a.sort() == make_net().sort());
    const std::string path = "hpp_test.mxr";
    migraphx::save(a, path.c_str());
    CHECK(migraphx::load(path.c_str()) == a);
    migraphx::file_options json;
    json.set_file_format("json");
    migraphx::save(a, path.c_str(), json);
    CHECK(migraphx::load(path.c_str(), json) == a);
    auto form = make_net();
    form.compile(migraphx::target("ref"));
    migraphx::file_options with_form, portable;
    with_form.add_form(form);
    migraphx::save(a, path.c_str(), with_form);
    with_form.set_target("ref");
    with_form.set_trusted();
    CHECK(migraphx::load(path.c_str(), with_form) == form);
    portable.set_portable();
    CHECK(migraphx::load(path.c_str(), portable) == a);
    std::remove(path.c_str());
    CHECK(thrown([] { migraphx::target("tpu"); }).find("Requested target 'tpu'") == 0);
    CHECK(thrown([] { migraphx::operation("nonsense"); }) == "Operator not found: nonsense");
    CHECK(thrown([] { migraphx::parse_onnx("no_such.onnx"); }).find("no_such.onnx") !=
          std::string::npos);
    CHECK(migraphx::operation("relu").name() == "relu");
    CHECK(migraphx::shape(migraphx_shape_float_type, {1}) !=
          migraphx::shape(migraphx_shape_float_type, {2}));
}

static void branches()
{
    migraphx::program p;
    auto m = p.get_main_module(), yes = p.create_module("yes"), no = p.create_module("no");
    migraphx::shape s(migraphx_shape_float_type, {2});
    auto c = m.add_parameter("c", migraphx::shape(migraphx_shape_bool_type, {1}));
    auto x = m.add_parameter("x", s);
    yes.add_return({yes.add_instruction(migraphx::operation("neg"), {x})});
    no.add_return({no.add_instruction(migraphx::operation("abs"), {x})});
    auto both = m.add_instruction(migraphx::operation("if"), {c}, {yes, no});
    m.add_return(
        {m.add_instruction(migraphx::operation("get_tuple_elem", "{index:%d}", 0), {both})});
    p.compile(migraphx::target("ref"));
    std::vector<float> data{-1, 2};
    bool condition[1] = {true};
    migraphx::program_parameters params{
        {"c", migraphx::argument(migraphx::shape(migraphx_shape_bool_type, {1}), condition)},
        {"x", migraphx::argument(s, data.data())}};
    CHECK((p.eval(params)[0].as_vector<float>() == std::vector<float>{1, -2}));
    condition[0] = false;
    CHECK((p.eval(params)[0].as_vector<float>() == std::vector<float>{1, 2}));
}

struct sigmoid_custom_op final : migraphx::experimental_custom_op_base {
    std::string name() const override
    {
        return "sigmoid_custom_op";
    }
    bool runs_on_offload_target() const override
    {
        return false;
    }
    migraphx::argument compute(migraphx::context, migraphx::shape,
                               migraphx::arguments inputs) const override
    {
        const float *from = reinterpret_cast<const float *>(inputs[0].data());
        float *to = reinterpret_cast<float *>(inputs[1].data());
        for (std::size_t i = 0; i < inputs[0].get_shape().elements(); i++)
            to[i] = 1 / (1 + std::exp(-from[i]));
        return inputs[1];
    }
    migraphx::shape compute_shape(migraphx::shapes inputs) const override
    {
        if (inputs.size() != 2)
            throw std::runtime_error("op must have two inputs");
        return inputs.back();
    }
};

static void custom_operators()
{
    sigmoid_custom_op op;
    migraphx::register_experimental_custom_op(op);
    migraphx::program p;
    auto m = p.get_main_module();
    migraphx::shape s(migraphx_shape_float_type, {3});
    auto x = m.add_parameter("x", s);
    auto room = m.add_allocation(s);
    CHECK(thrown([&] { m.add_instruction(migraphx::operation("sigmoid_custom_op"), {x}); }) ==
          "Error in compute_shape of: sigmoid_custom_op: op must have two inputs");
    m.add_return({m.add_instruction(migraphx::operation("sigmoid_custom_op"), {x, room})});
    p.compile(migraphx::target("ref"));
    std::vector<float> data{-1, 0, 2};
    auto result = p.eval({{"x", migraphx::argument(s, data.data())}})[0].as_vector<float>();
    for (int i = 0; i < 3; i++)
        CHECK(std::fabs(result[i] - 1 / (1 + std::exp(-data[i]))) < 1e-6f);
}

static void quantized()
{
    migraphx::program p;
    auto m = p.get_main_module();
    std::vector<float> w{1, -2, 3, 0.5f, 4, 1}, x{1, 2, -3, 0.25f, -1, 2};
    const migraphx::shape xs{migraphx_shape_float_type, {2, 3}};
    const migraphx::shape ws{migraphx_shape_float_type, {3, 2}};
    auto in = m.add_parameter("x", xs);
    auto c = m.add_literal(ws, reinterpret_cast<const char *>(w.data()));
    m.add_return({m.add_instruction(migraphx::operation("dot"), {in, c})});
    migraphx::program_parameters data;
    data.add("x", migraphx::argument(xs, x.data()));
    migraphx::quantize_options options;
    options.add_calibration_data(data);
    options.add_op_name("dot");
    options.set_method("error");
    options.set_smooth();
    options.set_budget("top", 1);
    options.set_reckon_time();
    const std::string ranges = migraphx::quantize(p, migraphx::target("cpu"), options);
    CHECK(ranges.find("main:dot:0\" int8_type") != std::string::npos);
    CHECK(ranges.find("method error") != std::string::npos);
    CHECK(thrown([&] { options.set_ranges("nonsense"); }).find("does not start") !=
          std::string::npos);
    p.compile(migraphx::target("cpu"));
    const auto y = p.eval({{"x", migraphx::argument(xs, x.data())}})[0].as_vector<float>();
    CHECK(y.size() == 4 && y[0] > -6 && y[0] < -4); // 1 + 6 - 12
}

// A decoder of four tokens whose state halves with every run.
static migraphx::program make_decoder()
{
    const std::string text =
        "module: \"main\"\n"
        "ids = @param:input_ids -> dynamic, int64_type, {b[0..], t[0..]}\n"
        "table = @literal{1, 0, 2, -1, 0.5, 1, -2, 1, -1, 2, 1, 0, 0.25, -1, 0.75, 2} -> "
        "float_type, {4, 4}, {4, 1}\n"
        "half = @literal{0.5} -> float_type, {1}, {0}\n"
        "x = gather[axis=0](table,ids)\n"
        "past = @param:state -> dynamic, float_type, {b[0..], 1, 4}\n"
        "halves = multibroadcast[out_lens={},out_dyn_dims={}](half,past)\n"
        "old = mul(past,halves)\n"
        "sum = reduce_sum[axes={1}](x)\n"
        "now = add(old,sum)\n"
        "w = multibroadcast[out_lens={},out_dyn_dims={}](now,x)\n"
        "logits = add(x,w)\n"
        "r = @return(logits,now)\n";
    return {migraphx::make<migraphx_program>(&migraphx_program_parse, text.c_str(), text.size()),
            migraphx::own{}};
}

static void generators()
{
    const migraphx::program decoder = make_decoder();
    CHECK(thrown([&] { migraphx::generator g(decoder); }).find("\"state\" is none that") !=
          std::string::npos);
    migraphx::generator_options options;
    options.set_name("tokens", "input_ids");
    options.add_state("state", "main:#output_1");
    options.add_end(3);
    options.set_context(9);
    options.set_piece(2);
    options.set_target("cpu");
    options.set_compile_options(migraphx::compile_options{});
    migraphx::generator g(decoder, options);
    CHECK(g.vocabulary() == 4 && g.context() == 9 && g.is_end(3) && !g.is_end(2));
    auto text = g.add({0, 1, 2});
    // state: (0.5 * (row 0 + row 1)) + row 2, and row 2 once more
    const std::vector<float> logits{-1.25f, 4.5f, 2, 0};
    CHECK(text.logits() == logits);
    CHECK(text.next() == 1 && text.size() == 4);
    auto other = text.fork(3);
    migraphx::sampling settings = g.default_sampling();
    settings.set_temperature(1);
    settings.set_top_k(1);
    settings.set_top_p(0.9);
    settings.set_min_p(0.1);
    settings.set_repetition_penalty(1.1);
    settings.set_seed(3);
    other.set_sampling(settings);
    other.set_bias({100, 0, 0, 0});
    CHECK((g.next({text, other}) == std::vector<std::int64_t>{text.tokens().back(), 0}));
    other.set_bias({});
    text.rewind(1);
    CHECK((text.tokens() == std::vector<std::int64_t>{0}));
    CHECK(g.start() == -1 && g.source_shapes().size() == 0);
    CHECK(thrown([&] { g.add({1}).set_source(migraphx::program_parameters{}); }).find("no encoder") !=
          std::string::npos);
    migraphx::generator shared = g.share();
    auto third = shared.add({0, 1, 2});
    CHECK(third.logits() == logits);
    CHECK(g.statistic("runs") > 0);
    third.set_guesses(3);
    shared.set_draft(g);
    CHECK(third.next() == 1);
    CHECK(thrown([&] { text.append({7}); }).find("token 7") != std::string::npos);
}

int main()
{
    generators();
    guide();
    values();
    programs();
    branches();
    custom_operators();
    quantized();
    return summary();
}
