// SPDX-License-Identifier: MIT
// Operators of the user's own, in the middle of a compiled program on the cpu target: one with a
// setting that its copies keep, one that gives its input back, one that fails, one over two inputs.
#include <migraphx/migraphx.hpp>

#include "../check.hpp"

struct scale_op final : migraphx::experimental_custom_op_base {
    float factor;

    explicit scale_op(float f) : factor(f)
    {
    }
    virtual std::string name() const override
    {
        return "scale_op";
    }
    virtual migraphx::argument compute(migraphx::context, migraphx::shape output_shape,
                                       migraphx::arguments inputs) const override
    {
        auto values = inputs[0].as_vector<float>();
        float *to = reinterpret_cast<float *>(inputs.back().data());
        std::transform(values.begin(), values.end(), to, [&](float x) { return factor * x; });
        CHECK(inputs.back().get_shape() == output_shape);
        return inputs.back();
    }
    virtual migraphx::shape compute_shape(migraphx::shapes inputs) const override
    {
        if (inputs[0].type() != migraphx_shape_float_type)
            throw std::runtime_error("only floats can be scaled");
        return inputs.back();
    }
    virtual bool runs_on_offload_target() const override
    {
        return false;
    }
};

// Gives its first input back, whose memory the result shares.
struct same_op final : migraphx::experimental_custom_op_base {
    virtual std::string name() const override
    {
        return "same_op";
    }
    virtual migraphx::argument compute(migraphx::context, migraphx::shape,
                                       migraphx::arguments inputs) const override
    {
        return inputs.front();
    }
    virtual migraphx::shape compute_shape(migraphx::shapes inputs) const override
    {
        return inputs.front();
    }
    virtual std::vector<size_t> output_alias(migraphx::shapes) const override
    {
        return {0};
    }
    virtual bool runs_on_offload_target() const override
    {
        return true;
    }
};

struct failing_op final : migraphx::experimental_custom_op_base {
    virtual std::string name() const override
    {
        return "failing_op";
    }
    virtual migraphx::argument compute(migraphx::context, migraphx::shape,
                                       migraphx::arguments) const override
    {
        throw std::runtime_error("out of luck");
    }
    virtual migraphx::shape compute_shape(migraphx::shapes inputs) const override
    {
        return inputs.front();
    }
    virtual bool runs_on_offload_target() const override
    {
        return false;
    }
};

// A temporary of the caller's as the result: its elements are copied before it goes.
struct sum_op final : migraphx::experimental_custom_op_base {
    virtual std::string name() const override
    {
        return "sum_op";
    }
    virtual migraphx::argument compute(migraphx::context, migraphx::shape output,
                                       migraphx::arguments inputs) const override
    {
        migraphx::argument result(output);
        float *to = reinterpret_cast<float *>(result.data());
        const auto a = inputs[0].as_vector<float>(), b = inputs[1].as_vector<float>();
        std::transform(a.begin(), a.end(), b.begin(), to, std::plus<float>());
        return result;
    }
    virtual migraphx::shape compute_shape(migraphx::shapes inputs) const override
    {
        return inputs.front();
    }
    virtual bool runs_on_offload_target() const override
    {
        return false;
    }
};

static void register_all()
{
    scale_op scale(3);
    migraphx::register_experimental_custom_op(scale);
    scale.factor = 100; // the registered copy stays as it was
    same_op same;
    migraphx::register_experimental_custom_op(same);
    failing_op failing;
    migraphx::register_experimental_custom_op(failing);
    sum_op sum;
    migraphx::experimental_custom_op(sum).register_op();
}

// neg(sum(scale(relu(x)), same(x)))
static void in_the_middle(const char *target)
{
    migraphx::program p;
    migraphx::shape s{migraphx_shape_float_type, {2, 2}};
    migraphx::module m = p.get_main_module();
    auto x = m.add_parameter("x", s);
    auto relu = m.add_instruction(migraphx::operation("relu"), {x});
    auto scaled = m.add_instruction(migraphx::operation("scale_op"), {relu, m.add_allocation(s)});
    auto same = m.add_instruction(migraphx::operation("same_op"), {x});
    auto sum = m.add_instruction(migraphx::operation("sum_op"), {scaled, same});
    m.add_return({m.add_instruction(migraphx::operation("neg"), {sum})});
    migraphx::compile_options options;
    options.set_offload_copy();
    p.compile(migraphx::target(target), options);
    std::vector<float> data{-1, 2, -3, 4};
    migraphx::program_parameters pp;
    pp.add("x", migraphx::argument(s, data.data()));
    for (int run = 0; run < 3; run++)
        CHECK((p.eval(pp)[0].as_vector<float>() == std::vector<float>{1, -8, 3, -16}));
}

static void failing()
{
    migraphx::program p;
    migraphx::shape s{migraphx_shape_float_type, {2}}, ints{migraphx_shape_int32_type, {2}};
    migraphx::module m = p.get_main_module();
    auto x = m.add_parameter("x", s), i = m.add_parameter("i", ints);
    CHECK(contains(
        thrown([&] {
            m.add_instruction(migraphx::operation("scale_op"), {i, m.add_allocation(ints)});
        }),
        "Error in compute_shape of: scale_op: only floats can be scaled"));
    m.add_return({m.add_instruction(migraphx::operation("failing_op"), {x})});
    p.compile(migraphx::target("cpu"));
    migraphx::program_parameters pp;
    pp.add("x", migraphx::argument::generate(s));
    pp.add("i", migraphx::argument::generate(ints));
    CHECK(contains(thrown([&] { p.eval(pp); }), "Error in compute of: failing_op: out of luck"));
}

int main()
{
    register_all();
    CHECK(migraphx::operation("scale_op").name() == "scale_op");
    in_the_middle("ref");
    in_the_middle("cpu");
    failing();
    return summary();
}
