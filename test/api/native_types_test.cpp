// SPDX-License-Identifier: MIT
// The value types of the guides' headers: narrow floats against the engine's own conversion, shapes
// against the C interface, visitors, values and JSON, operations with attributes.
#include <migraphx/bf16.hpp>
#include <migraphx/file_buffer.hpp>
#include <migraphx/float8.hpp>
#include <migraphx/generate.hpp>
#include <migraphx/half.hpp>
#include <migraphx/json.hpp>
#include <migraphx/literal.hpp>
#include <migraphx/make_op.hpp>
#include <migraphx/value.hpp>

#include "check.hpp"

#include <cmath>

using migraphx::argument;
using migraphx::literal;
using migraphx::make_op;
using migraphx::shape;
using migraphx::value;

template <class T> static std::string text(const T &x)
{
    std::ostringstream os;
    os << x;
    return os.str();
}

// --- narrow floats ---

// What the engine makes of a value when it becomes T.
template <class T> static typename T::bits_type engine_bits(double x)
{
    const literal converted(shape(shape::get_type<T>{}, {1}), {x});
    typename T::bits_type bits;
    std::memcpy(&bits, converted.data(), sizeof bits);
    return bits;
}

template <class T> static double engine_value(T x)
{
    double result = 0;
    const argument a(shape(shape::get_type<T>{}, {1}), &x);
    migraphx::detail::call(migraphx_argument_values(&result, 1, a.handle()));
    return result;
}

template <class T> static bool encodes(double x)
{
    const T mine(x);
    if (std::isnan(x))
        return std::isnan(static_cast<float>(mine));
    return mine.data == engine_bits<T>(x);
}

// Every value, the middle between it and the next, and what lies around that.
template <class T> static void narrow_float()
{
    int wrong = 0;
    const auto codes = static_cast<int>(1u << sizeof(T) * 8);
    for (int code = 0; code<codes; code += codes> 256 ? 3 : 1) {
        const T x = T::from_bits(static_cast<typename T::bits_type>(code));
        const double is = static_cast<float>(x), wanted = engine_value(x);
        wrong += std::isnan(wanted) ? !std::isnan(is) : is != wanted;
        wrong += !encodes<T>(is);
        if (code % 64 != 0 && codes > 256)
            continue;
        const double next =
            static_cast<float>(T::from_bits(static_cast<typename T::bits_type>(code + 1)));
        const double middle = is / 2 + next / 2;
        for (double near : {middle, std::nextafter(middle, 0.0), std::nextafter(middle, 1e9)})
            wrong += !encodes<T>(near);
    }
    for (double x : {0.0, -0.0, 1e-300, 1e300, -1e300, 70000.0, 1e39, 4.0e-8, 3e-41})
        wrong += !encodes<T>(x);
    CHECK(wrong == 0);
    CHECK(static_cast<float>(T(1.5)) == 1.5f && T(3) * T(2) == 6 && -T(2) < T(1));
    CHECK(static_cast<float>(std::numeric_limits<T>::lowest()) ==
          -static_cast<float>(std::numeric_limits<T>::max()));
    CHECK(std::isnan(static_cast<float>(std::numeric_limits<T>::quiet_NaN())));
}

// --- shapes ---

static void shapes()
{
    const shape s(shape::float_type, {2, 3, 4}, {12, 1, 3});
    for (std::size_t i = 0; i < s.elements(); i++) {
        std::size_t wanted = 0;
        migraphx::detail::call(migraphx_shape_index(&wanted, s.handle(), i));
        CHECK(s.index(i) == wanted && s.index(s.multi(i)) == wanted);
    }
    CHECK(s.index({1, 2, 3}) == 12 + 2 + 9);
    CHECK(shape::from_permutation(shape::float_type, {2, 3, 4}, {0, 2, 1}) == s);
    CHECK(s.with_lens({4, 5, 6}).strides() == std::vector<std::size_t>({30, 1, 5}));
    CHECK(s.with_type(shape::half_type).strides() == s.strides() && s.as_standard().standard());
    CHECK(shape(shape::float_type, {2, 3}, {8, 1}).element_space() == 11);
    const shape d(shape::int8_type, {{1, 4, {2, 4}}, {3, 3, {}}});
    CHECK(d.dynamic() && d.dyn_dims()[0].optimals.size() == 2 && d.max_lens()[0] == 4);
    CHECK(d.min_lens() == std::vector<std::size_t>({1, 3}) && d.to_static(2).lens()[0] == 2);
    const shape tuple(std::vector<shape>{s, d});
    CHECK(tuple.sub_shapes().size() == 2 && tuple.sub_shapes()[1] == d && tuple.any_of_dynamic());
    CHECK(shape::parse_type("half") == shape::half_type &&
          shape::name(shape::bf16_type) == "bf16_type");
    CHECK(shape::is_integral(shape::uint8_type) && !shape::is_integral(shape::half_type));
    int count = 0;
    for (auto type : shape::types()) {
        if (type == shape::tuple_type || type == shape::fp4x2_type)
            continue;
        shape(type, {5}).visit_type([&](auto as) {
            count += as.type_enum() == type && as.size(5) == shape(type, {5}).bytes();
        });
    }
    CHECK(count == 17);
}

// --- visitors ---

static void visitors()
{
    std::vector<int32_t> data{1, 2, 3, 4, 5, 6};
    const argument view(shape(shape::int32_type, {2, 3}, {1, 2}), data.data());
    std::vector<int> seen;
    view.visit([&](auto x) {
        seen.assign(x.begin(), x.end());
        CHECK(x(1, 2) == 6 && x[std::vector<int>{0, 1}] == 3 && x.front() == 1 && x.back() == 6);
        CHECK(x.end() - x.begin() == 6 && *(x.begin() + 1) == 3 && x.size() == 6);
    });
    CHECK(seen == std::vector<int>({1, 3, 5, 2, 4, 6}));
    CHECK(view.to_vector<float>()[3] == 2.0f && view.at<double>(1) == 3.0);
    CHECK(text(view) == "1, 3, 5, 2, 4, 6" && view.to_string() == text(view));
    CHECK(contains(thrown([&] { view.at<int>(6); }), "no element 6 among 6"));
    CHECK(contains(thrown([&] { view.get<float>(); }), "int32_type, not float_type"));
    CHECK(view.get<int32_t>()[1] == 3 && !view.single());
    view.get<int32_t>()(0, 0) = 9;
    CHECK(data[0] == 9 && view.copy() == view && view.copy().data() != view.data());

    const argument pair(std::vector<argument>{view, argument(shape(shape::bool_type, {1}))});
    CHECK(contains(thrown([&] { pair.visit([](auto) {}); }), "tuple"));
    std::size_t members = 0;
    pair.visit([](auto) {}, [&](const std::vector<argument> &list) { members = list.size(); });
    CHECK(members == 2 && pair.get_sub_objects()[0] == view);
    CHECK(contains(thrown([] { argument().visit([](auto) {}); }), "no data"));
    int sum = 0;
    migraphx::visit_all(view, view.copy())([&](auto x, auto y) {
        for (std::size_t i = 0; i < x.size(); i++)
            sum += static_cast<int>(x[i] * y[i]);
    });
    CHECK(sum == 81 + 4 + 9 + 16 + 25 + 36);
    CHECK(view.reshape(shape(shape::int32_type, {6})).to_vector<int>() ==
          std::vector<int>({9, 2, 3, 4, 5, 6}));
}

static void literals()
{
    CHECK(text(literal(shape(shape::float_type, {3}), {1.5, 2.0, -3.0})) == "1.5, 2, -3");
    CHECK(text(literal(shape(shape::int8_type, {2}), {65, 66})) == "65, 66");
    CHECK(text(literal(migraphx::half(0.5))) == "0.5" && literal(3).get_shape().scalar());
    CHECK(literal(2.5f).at<double>() == 2.5 &&
          literal(true).get_shape().type() == shape::bool_type);
    const std::vector<migraphx::bf16> values{1.0f, 2.0f};
    const literal narrow(shape(shape::bf16_type, {2}), values);
    narrow.visit([](auto x) { CHECK(float(x[1]) == 2.0f); });
    CHECK(narrow == literal(shape(shape::bf16_type, {2}), values.begin(), values.end()));
    CHECK(literal().empty() && narrow.get_argument() == narrow);
    const literal l(shape(shape::int64_type, {2}), {-7, 5});
    CHECK(text(migraphx::abs(l)) == "7, 5");
    CHECK(text(migraphx::transform(l, l, [](auto x, auto y) { return x + y; })) == "-14, 10");
    CHECK(text(migraphx::generate_literal(shape(shape::bool_type, {1}))).size() == 1);
}

// --- values ---

static void values()
{
    const value list{0, 1}, map{{"min", 1}, {"max", 4.5}}, words{"tanh", "relu"};
    CHECK(list.is_array() && list.size() == 2 && map.is_object() && words.is_array());
    CHECK(map.at("max").to<int>() == 4 && map.contains("min") && !map.contains("mid"));
    CHECK(contains(thrown([&] { map.at("mid"); }), "no key 'mid'"));
    CHECK(words.to_vector<std::string>()[1] == "relu" && text(list) == "{0, 1}");
    CHECK(text(map) == "{min: 1, max: 4.5}");
    const value deep{{"a", {{"b", {1, {2, 3}, nullptr}}, {"c", true}}}, {"d", "x\"y\n"}};
    const std::string json = migraphx::to_json_string(deep);
    CHECK(json == "{\"a\":{\"b\":[1,[2,3],null],\"c\":true},\"d\":\"x\\\"y\\u000a\"}");
    CHECK(migraphx::to_json_string(migraphx::from_json_string(json)) == json);
    const value read =
        migraphx::from_json_string(" {\"x\": [-1, 2.5e1, \"\\u00e9\\t\"], \"y\": {}} ");
    CHECK(read.at("x")[0].get_int64() == -1 && read.at("x")[1].get_float() == 25);
    CHECK(read.at("x")[2].get_string() == "\xc3\xa9\t" && read.at("y").is_object());
    for (const char *bad : {"", "{", "[1,", "{\"a\" 1}", "[1] 2", "nul", "1.5.2", "\"a", "\"\\q\"",
                            "99999999999999999999", "-", "{\"a\":1,}"})
        CHECK(contains(thrown([&] { migraphx::from_json_string(bad); }), "JSON: expected"));
    CHECK(contains(thrown([] { migraphx::from_json_string(std::string(1000, '[')); }), "depth"));
    value built;
    built["first"] = 1;
    built["list"].push_back(7);
    CHECK(text(built) == "{first: 1, list: {7}}" && built.get("none", 3) == 3);
    CHECK(value("12").to<int>() == 12 && contains(thrown([] { value("x").to<int>(); }), "x"));
    CHECK(contains(thrown([] { value(1.5).get_string(); }), "1.5 is not a text"));
}

// --- operations ---

static void operations()
{
    CHECK(text(make_op("slice", {{"axes", {0, 1}}, {"starts", {0, 2}}, {"ends", {4, 5}}})) ==
          text(migraphx::make_json_op("slice", "{axes:[0,1],starts:[0,2],ends:[4,5]}")));
    CHECK(text(make_op("convert", {{"target_type", shape::half_type}})) ==
          "convert[target_type=1]");
    CHECK(make_op("convert", {{"target_type", migraphx::to_value(shape::half_type)}}) ==
          make_op("convert", {{"target_type", 1}}));
    CHECK(contains(text(make_op("pooling", {{"mode", migraphx::op::pooling_mode::max},
                                            {"lengths", std::vector<int>{2, 2}}})),
                   "mode=max"));
    CHECK(make_op("pooling", {{"mode", "max"}}) ==
          make_op("pooling", {{"mode", migraphx::op::pooling_mode::max}}));
    const value gru = make_op("gru", {{"hidden_size", 3},
                                      {"actv_func", {"sigmoid", "tanh"}},
                                      {"direction", migraphx::op::rnn_direction::reverse},
                                      {"clip", 1.5f}})
                          .to_value();
    CHECK(gru.at("actv_func").to_vector<std::string>()[1] == "tanh");
    CHECK(gru.at("clip").to<double>() == 1.5 && gru.at("direction").to<std::string>() == "reverse");
    const shape s(shape::int8_type, {2, 3}, {1, 2});
    CHECK(contains(text(make_op("allocate", {{"shape", migraphx::to_value(s)}})), text(s)));
    const shape d(shape::int8_type, {{1, 4, {2}}, {3, 3, {}}});
    CHECK(contains(text(make_op("allocate", {{"shape", migraphx::to_value(d)}})), "{[1..4], 3}"));
    const value attributes{{"axis", 1}};
    CHECK(text(make_op("concat", attributes)) == "concat[axis=1]");
    CHECK(make_op("concat", make_op("concat", attributes).to_value()) ==
          make_op("concat", attributes));
    CHECK(contains(thrown([] { make_op("concat", {{"axes", 1}}); }), "No key 'axes' in concat"));
    CHECK(contains(thrown([] { make_op("concat", {{"axis", {{"a", 1}}}}); }), "axis"));
}

static void files()
{
    const std::vector<char> bytes{'a', '\0', 'c', 'd'};
    migraphx::write_buffer("native_types_test.bin", bytes);
    CHECK(migraphx::read_buffer("native_types_test.bin") == bytes);
    CHECK(migraphx::read_buffer("native_types_test.bin", 1, 2) == std::vector<char>({'\0', 'c'}));
    CHECK(migraphx::read_string("native_types_test.bin").size() == 4);
    CHECK(
        contains(thrown([] { migraphx::read_buffer("native_types_test.bin", 2, 3); }), "4 bytes"));
    std::remove("native_types_test.bin");
    CHECK(contains(thrown([] { migraphx::read_buffer("no_such.bin"); }), "no_such.bin"));
    CHECK(contains(thrown([] { migraphx::write_string("no_such/x.bin", ""); }), "no_such/x.bin"));
}

// Values of one kind fill a vector of another, as a visitor of any type does it.
static void narrow_floats_convert()
{
    const std::vector<migraphx::half> halves{migraphx::half(0.5), migraphx::half(3)};
    std::vector<migraphx::bf16> wide(1);
    wide.assign(halves.begin(), halves.end());
    CHECK(wide.size() == 2 && wide[0] == 0.5f && wide[1] == 3.0f);
    const std::vector<migraphx::fp8::fp8e4m3fn> bytes(wide.begin(), wide.end());
    CHECK(bytes[1] == 3.0f);
}

static void operators_without_operands()
{
    migraphx::program p;
    auto *m = p.get_main_module();
    m->add_return({m->add_instruction(make_op("undefined"))});
    CHECK(p.get_output_shapes().front().elements() == 0);
}

int main()
{
    narrow_floats_convert();
    operators_without_operands();
    narrow_float<migraphx::half>();
    narrow_float<migraphx::bf16>();
    narrow_float<migraphx::fp8::fp8e4m3fn>();
    narrow_float<migraphx::fp8::fp8e4m3fnuz>();
    narrow_float<migraphx::fp8::fp8e5m2>();
    narrow_float<migraphx::fp8::fp8e5m2fnuz>();
    shapes();
    visitors();
    literals();
    values();
    operations();
    files();
    return summary();
}
