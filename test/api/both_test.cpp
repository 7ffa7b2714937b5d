// SPDX-License-Identifier: MIT
// One program with a source file of each C++ interface: both define migraphx::program, and neither
// disturbs the other. What one writes the other reads. Headers that belong to neither go with both.
#include <migraphx/migraphx.hpp>

#include <migraphx/bf16.hpp>
#include <migraphx/compile_options.hpp>
#include <migraphx/file_buffer.hpp>
#include <migraphx/float8.hpp>
#include <migraphx/half.hpp>

#include "check.hpp"

// Of both_native.cpp: saves a program that adds `value` to its parameter x of two floats.
void save_adder(const char *path, float value);
std::string text_of(const char *path);

// What a handle of options begins with, by the struct of the guides.
static bool options_are_seen(bool offload_copy, bool fast_math)
{
    migraphx::api::compile_options options;
    options.set_offload_copy(offload_copy);
    options.set_fast_math(fast_math);
    const auto *seen = reinterpret_cast<const migraphx::MIGRAPHX_INLINE_NS::compile_options *>(
        options.get_handle_ptr());
    return seen->offload_copy == offload_copy && seen->fast_math == fast_math;
}

int main()
{
    CHECK(options_are_seen(true, false) && options_are_seen(false, true));
#if __cplusplus >= 201703L
    CHECK(migraphx::fs::path("folder/model.onnx").parent_path().string() == "folder");
#endif
    save_adder("both_test.mxr", 0.5f);
    const std::string bytes = migraphx::read_string("both_test.mxr");
    migraphx::program p = migraphx::load("both_test.mxr");
    p.compile(migraphx::target("cpu"));
    std::vector<float> x{1, 2};
    const migraphx::shape s(migraphx_shape_float_type, {2});
    const auto result = p.eval({{"x", migraphx::argument(s, x.data())}})[0].as_vector<float>();
    CHECK((result == std::vector<float>{1.5f, 2.5f}) && bytes.size() > 100);
    CHECK(contains(text_of("both_test.mxr"), "add"));
    CHECK(static_cast<float>(migraphx::half(0.1)) > 0.0999f && migraphx::bf16(2) == 2.0f);
    std::remove("both_test.mxr");
    return summary();
}
