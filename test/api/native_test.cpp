// SPDX-License-Identifier: MIT
// The guide's own program, with the headers and names it uses; then what else
// those names promise.
#include <migraphx/generate.hpp>
#include <migraphx/gpu/target.hpp>
#include <migraphx/load_save.hpp>
#include <migraphx/onnx.hpp>
#include <migraphx/quantization.hpp>
#include <migraphx/ref/target.hpp>
#include <migraphx/tf.hpp>

#include <migraphx/gpu/hip.hpp>
#include <migraphx/make_op.hpp>
#include <migraphx/pass_manager.hpp>

#include "check.hpp"

#include <sstream>
#include <unordered_set>

static migraphx::program CreateNet()
{
    migraphx::program net;
    migraphx::module *mainModule = net.get_main_module();
    migraphx::instruction_ref input = mainModule->add_parameter(
        "input", migraphx::shape{migraphx::shape::float_type, {1, 1, 4, 6}});
    std::vector<float> weightData(1 * 1 * 1 * 1);
    for (std::size_t i = 0; i < weightData.size(); ++i)
        weightData[i] = 1.0;
    migraphx::shape weightShape{migraphx::shape::float_type, {1, 1, 1, 1}};
    migraphx::literal convWeight{weightShape, weightData};
    migraphx::instruction_ref convKernel = mainModule->add_literal(convWeight);
    migraphx::instruction_ref conv = mainModule->add_instruction(
        migraphx::make_json_op(
            "convolution", "{padding:[0,0],stride:[1,1],dilation:[1,1],group:1,padding_mode:0}"),
        input, convKernel);
    migraphx::instruction_ref slice = mainModule->add_instruction(
        migraphx::make_json_op("slice", "{axes:[2,3], starts:[0,2],ends:[4,5]}"), conv);
    migraphx::instruction_ref contiguous =
        mainModule->add_instruction(migraphx::make_op("contiguous"), slice);
    migraphx::instruction_ref flatten =
        mainModule->add_instruction(migraphx::make_op("flatten"), contiguous);
    mainModule->add_return({flatten});
    return net;
}

static void guide()
{
    migraphx::program net = CreateNet();
    migraphx::compile_options options;
    options.device_id = 0;
    options.offload_copy = true;
    CHECK(thrown([&] {
              CreateNet().compile(migraphx::gpu::target{}, options);
          }).find("Requested target 'gpu'") == 0);
    net.compile(migraphx::ref::target{}, options);
    std::vector<float> inputData(1 * 1 * 4 * 6);
    for (std::size_t i = 0; i < inputData.size(); ++i)
        inputData[i] = static_cast<float>(i);
    migraphx::shape inputShape(migraphx::shape::float_type, {1, 1, 4, 6});
    migraphx::argument data{inputShape, inputData.data()};
    migraphx::parameter_map inputDataMap;
    inputDataMap["input"] = data;
    std::vector<migraphx::argument> results = net.eval(inputDataMap);
    migraphx::argument result = results[0];
    migraphx::shape outputShape = result.get_shape();
    CHECK(outputShape.elements() == 12 && outputShape.lens()[1] == 12);
    const float expected[] = {2, 3, 4, 8, 9, 10, 14, 15, 16, 20, 21, 22};
    float *resultData = (float *)result.data();
    for (std::size_t i = 0; i < outputShape.elements(); ++i)
        CHECK(resultData[i] == expected[i]);
    migraphx::program copy = net; // compiled like the original
    CHECK(copy.is_compiled() && copy.eval(inputDataMap)[0] == result);
}

static void text()
{
    std::ostringstream out;
    out << CreateNet();
    CHECK(out.str().find("module: \"main\"\nmain:@0 = @literal{1} -> float_type, {1, 1, 1, "
                         "1}, {1, 1, 1, 1}\n"
                         "input = @param:input -> float_type, {1, 1, 4, 6}, {24, 24, 6, 1}\n"
                         "main:@2 = convolution[padding={0, 0}") == 0);
    std::ostringstream shape;
    shape << migraphx::shape{migraphx::shape::half_type, {2, 3}, {1, 2}};
    CHECK(shape.str() == "half_type, {2, 3}, {1, 2}");
}

static void parts()
{
    migraphx::program net = CreateNet();
    auto names = net.get_parameter_names();
    CHECK(names == std::vector<std::string>{"input"} &&
          net.get_parameter_shape("input").bytes() == 96);
    CHECK(net.get_parameter_shapes().begin()->second.lens() ==
          (std::vector<std::size_t>{1, 1, 4, 6}));
    CHECK(net.get_output_shapes().at(0).type() == migraphx::shape::float_type);
    auto list = net.get_main_module()->get_instructions();
    CHECK(list.size() == 7 && list[2]->name() == "convolution" && list[2]->inputs()[0] == list[1]);
    CHECK(list[3]->outputs()[0]->name() == "contiguous" && list[0]->get_literal().at<float>() == 1);
    CHECK(net.get_main_module() == net.get_main_module());
    migraphx::shape s{migraphx::shape::float_type, {3, 4}};
    CHECK(migraphx::generate_argument(s, 1) == migraphx::generate_argument(s, 1));
    CHECK(migraphx::literal(s, std::vector<int>(12, 7)).get_argument().to_vector<float>()[11] == 7);
    const std::vector<int64_t> wide{(int64_t(1) << 62) + 1};
    CHECK(migraphx::literal(migraphx::shape(migraphx::shape::int64_type, {1}), wide)
              .get_argument()
              .at<int64_t>() == wide[0]);
    const auto moved = std::move(net);
    migraphx::save(moved, "native_test.mxr");
    CHECK(migraphx::load("native_test.mxr") == moved);
    std::remove("native_test.mxr");
    CHECK(migraphx::load_buffer(migraphx::save_buffer(moved)) == moved);
    auto form = migraphx::load_buffer(migraphx::save_buffer(moved));
    form.compile(migraphx::make_target("ref"));
    migraphx::file_options files;
    files.forms = {&form};
    const auto both = migraphx::save_buffer(moved, files);
    files = {};
    files.portable = true;
    CHECK(migraphx::load_buffer(both, files) == moved);
    files.portable = false;
    files.target = "ref";
    CHECK(migraphx::load_buffer(both, files) == form);
    migraphx::onnx_options options;
    options.map_input_dims["input"] = {32, 3, 224, 224};
    CHECK(thrown([&] { migraphx::parse_onnx("no_such.onnx", options); }).find("no_such.onnx") !=
          std::string::npos);
    CHECK(!migraphx::get_onnx_operators().empty());
    migraphx::tf_options tf;
    tf.output_node_names = {"logits"};
    CHECK(thrown([&] { migraphx::parse_tf("no_such.pb", tf); }) != "");
}

// y = -x of lengths n, 3, as ONNX.
static const char negation[] = "\010\010\072\061\012\013\012\001\170\022\001"
                               "\171\042\003\116\145\147\022\001\147"
                               "\132\024\012\001\170\022\017\012\015\010\001"
                               "\022\011\012\003\022\001\156\012\002"
                               "\010\003\142\011\012\001\171\022\004\012\002"
                               "\010\001\102\004\012\000\020\021";

// What was quantized is quantized again when its model is read for other
// lengths; what was edited cannot be.
static void quantized_and_reshaped(const migraphx::onnx_options &options)
{
    migraphx::program net = migraphx::parse_onnx("native_test.onnx", options);
    migraphx::quantize_fp16(net);
    net.reshape({{"x", {2, 3}}});
    std::ostringstream text;
    text << net;
    CHECK(contains(text.str(), "half_type, {2, 3}"));
    migraphx::program copy = net;
    copy.compile(migraphx::cpu::target{});
    copy.reshape({{"x", {1, 3}}});
    std::vector<float> x{1, -2, 3};
    migraphx::parameter_map data;
    data["x"] = migraphx::argument{migraphx::shape{migraphx::shape::float_type, {1, 3}}, x.data()};
    CHECK(copy.eval(data)[0].to_vector<float>() == std::vector<float>({-1, 2, -3}));
    CHECK(net.get_parameter_shape("x").lens()[0] == 2);
    net.get_main_module();
    CHECK(thrown([&] { net.reshape({{"x", {4, 3}}}); }).find("reshape: only") == 0);
}

// The guide's dynamic shapes: one program, reshaped to what comes.
static void reshaped()
{
    std::FILE *file = std::fopen("native_test.onnx", "wb");
    CHECK(file && std::fwrite(negation, 1, sizeof negation - 1, file) == sizeof negation - 1);
    std::fclose(file);
    migraphx::onnx_options options;
    options.map_input_dims["x"] = {4, 3};
    migraphx::program net = migraphx::parse_onnx("native_test.onnx", options);
    net.compile(migraphx::ref::target{}, migraphx::compile_options{});
    migraphx::module *before = net.get_main_module();
    for (std::size_t n : {2, 4, 1, 2}) {
        std::unordered_map<std::string, std::vector<std::size_t>> lens;
        lens["x"] = {n, 3};
        net.reshape(lens);
        std::vector<float> x(n * 3, 1.5f);
        migraphx::parameter_map data;
        data["x"] =
            migraphx::argument{migraphx::shape{migraphx::shape::float_type, {n, 3}}, x.data()};
        const auto results = net.eval(data);
        CHECK(results[0].get_shape().lens()[0] == n);
        CHECK(((float *)results[0].data())[n * 3 - 1] == -1.5f);
    }
    std::ostringstream text;
    text << *before;
    CHECK(!text.str().empty());
    quantized_and_reshaped(options);
    std::remove("native_test.onnx");
}

// What programs against the internal classes do besides.
static void walking()
{
    migraphx::program net = CreateNet();
    migraphx::module *m = net.get_main_module();
    CHECK(net.get_modules() == std::vector<migraphx::module *>{m} &&
          net.get_module("x") == nullptr);
    CHECK(net.get_module("main") == m && m->size() == 7 && net.size() == 7);
    const migraphx::instruction_ref input = m->get_parameter("input");
    CHECK(input->get_shape().elements() == 24 && input->outputs()[0]->name() == "convolution");
    CHECK(contains(thrown([&] { m->get_parameter("inp"); }), "no parameter inp"));
    CHECK(input->outputs()[0]->get_operator().to_value().at("group").to<int>() == 1);
    std::unordered_set<migraphx::instruction_ref> seen;
    for (const auto &ins : m->get_instructions())
        seen.insert(ins);
    CHECK(seen.size() == 7 && seen.count(input) == 1);
    std::ostringstream line, cpp, graph;
    line << *input;
    CHECK(line.str() == "input = @param:input -> float_type, {1, 1, 4, 6}, {24, 24, 6, 1}");
    net.print_cpp(cpp);
    net.print_graph(graph);
    CHECK(contains(cpp.str(), "convolution") && contains(graph.str(), "digraph"));
    CHECK(*CreateNet().get_main_module() == *m && net.sort() == CreateNet().sort());
}

static void passes()
{
    migraphx::program p;
    migraphx::module *m = p.get_main_module();
    const migraphx::shape s{migraphx::shape::float_type, {2}};
    const auto x = m->add_parameter("x", s);
    const auto two = m->add_literal(migraphx::literal{s, {1.0f, 2.0f}});
    const auto sum = m->add_instruction(migraphx::make_op("add"), two, two);
    m->add_instruction(migraphx::make_op("mul"), x, x); // nobody reads it
    const auto same = m->add_instruction(migraphx::make_op("identity"), x);
    m->add_return({m->add_instruction(migraphx::make_op("add"), same, sum)});
    migraphx::run_passes(p, {migraphx::eliminate_identity{}, migraphx::propagate_constant{},
                             migraphx::dead_code_elimination{}});
    std::ostringstream text;
    text << p;
    CHECK(!contains(text.str(), "identity") && !contains(text.str(), "mul"));
    CHECK(contains(text.str(), "@literal{2, 4}"));
    migraphx::run_passes(p, {migraphx::split_single_dyn_dim{}, migraphx::fp8_ocp_to_fnuz{},
                             migraphx::simplify_dyn_ops{}});
    std::ostringstream same_text; // what has nothing to do here has a name all the same
    same_text << p;
    CHECK(same_text.str() == text.str());
    CHECK(contains(thrown([&] { migraphx::run_passes(p, {migraphx::pass("nonsense")}); }),
                   "nonsense"));
}

static void quantized()
{
    migraphx::program p;
    migraphx::module *m = p.get_main_module();
    std::vector<float> w{1, -2, 3, 0.5f, 4, 1}, x{1, 2, -3, 0.25f, -1, 2};
    const migraphx::shape xs{migraphx::shape::float_type, {2, 3}};
    const auto in = m->add_parameter("x", xs);
    const auto c =
        m->add_literal(migraphx::literal{migraphx::shape{migraphx::shape::float_type, {3, 2}}, w});
    m->add_return({m->add_instruction(migraphx::make_op("dot"), in, c)});
    migraphx::program q = p, r = p;
    const migraphx::parameter_map data{{"x", migraphx::argument{xs, x.data()}}};
    migraphx::quantize_options options;
    options.smooth = options.asymmetric = true;
    options.budget = 1;
    options.reckon_time = true;
    const std::string ranges = migraphx::quantize(p, migraphx::cpu::target{}, {data}, options);
    CHECK(contains(ranges, "main:dot:0\" int8_type") && contains(ranges, "budget relative 1 "));
    migraphx::quantize_options again;
    again.ranges = ranges;
    CHECK(migraphx::quantize(q, migraphx::cpu::target{}, {}, again) == ranges);
    migraphx::quantize_int4_weights(r, 2);
    std::ostringstream text;
    text << r;
    CHECK(contains(text.str(), "uint4_type"));
    p.compile(migraphx::cpu::target{});
    const auto y = p.eval(data)[0].to_vector<float>();
    CHECK(y.size() == 4 && y[0] > -6 && y[0] < -4); // 1 + 6 - 12
}

static void devices()
{
    const migraphx::shape s{migraphx::shape::float_type, {2}};
    const auto a = migraphx::generate_argument(s);
    migraphx::gpu::set_device(77);
    for (const auto &f : std::vector<std::function<void()>>{
             [&] { migraphx::gpu::to_gpu(a); }, [&] { migraphx::gpu::allocate_gpu(s); },
             [] { migraphx::gpu::gpu_sync(); }, [&] { migraphx::gpu::register_on_gpu(a); }})
        CHECK(contains(thrown(f), "GPU"));
    migraphx::gpu::set_device(0);
    CHECK(migraphx::gpu::from_gpu(a) == a); // from where it is already
}

int main()
{
    guide();
    text();
    parts();
    reshaped();
    walking();
    passes();
    quantized();
    devices();
    return summary();
}
