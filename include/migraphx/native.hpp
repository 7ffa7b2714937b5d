// SPDX-License-Identifier: MIT
// The classes of MIGraphX's guides (shape, literal, instruction_ref, module,
// program, parameter_map, ...) over the C interface, for programs written
// against MIGraphX's internal headers. The headers of those names (onnx.hpp,
// gpu/target.hpp, ...) include this one.
//
// Shapes are values; arguments share their bytes when copied; programs are
// copied deeply; modules live in their program and are handed out as pointers.
// Failures throw std::runtime_error with the engine's text. Not to be included
// together with migraphx.hpp: both define migraphx::program. C++14.
#ifndef MIGRAPHX_GUARD_NATIVE_HPP
#define MIGRAPHX_GUARD_NATIVE_HPP

#ifdef MIGRAPHX_GUARD_API_MIGRAPHX_HPP
#error "one source file includes migraphx.hpp or native.hpp (program.hpp, onnx.hpp, ...), not both"
#endif

#include <migraphx/native/gpu.hpp>
#include <migraphx/native/pass.hpp>
#include <migraphx/native/program.hpp>

#include <stdexcept>
#include <unordered_set>

namespace migraphx
{
inline namespace version_1
{

// --- models ---

struct onnx_options {
    std::size_t default_dim_value = 0;
    shape::dynamic_dimension default_dyn_dim_value = {1, 1, {}};
    std::unordered_map<std::string, std::vector<std::size_t>> map_input_dims;
    std::unordered_map<std::string, std::vector<shape::dynamic_dimension>> map_dyn_input_dims;
    std::unordered_map<std::string, shape::dynamic_dimension> dim_params;
    bool skip_unknown_operators = false;
    bool print_program_on_error = false;
    int64_t max_loop_iterations = 10;
    int64_t limit_max_iterations = 65535;
    bool use_debug_symbols = false;
    std::string external_data_path;
};

namespace detail
{

template <class F> program parse(const onnx_options &o, F import)
{
    using handle = unique_handle<migraphx_onnx_options, migraphx_onnx_options_destroy>;
    handle h{make<migraphx_onnx_options>(migraphx_onnx_options_create)};
    call(migraphx_onnx_options_set_default_dim_value(h.get(), o.default_dim_value));
    const auto range = make_dim(o.default_dyn_dim_value);
    call(migraphx_onnx_options_set_default_dyn_dim_value(h.get(), range.get()));
    for (auto item : o.map_input_dims)
        call(migraphx_onnx_options_set_input_parameter_shape(
            h.get(), item.first.c_str(), item.second.data(), item.second.size()));
    for (const auto &item : o.map_dyn_input_dims) {
        const auto dims = make_dims(item.second);
        call(migraphx_onnx_options_set_dyn_input_parameter_shape(h.get(), item.first.c_str(),
                                                                 dims.get()));
    }
    for (const auto &item : o.dim_params) {
        const auto dim = make_dim(item.second);
        call(migraphx_onnx_options_set_dim_param(h.get(), item.first.c_str(), dim.get()));
    }
    call(migraphx_onnx_options_set_skip_unknown_operators(h.get(), o.skip_unknown_operators));
    call(migraphx_onnx_options_set_default_loop_iterations(h.get(), o.max_loop_iterations));
    call(migraphx_onnx_options_set_limit_loop_iterations(h.get(), o.limit_max_iterations));
    call(migraphx_onnx_options_set_use_debug_symbols(h.get(), o.use_debug_symbols));
    if (!o.external_data_path.empty())
        call(migraphx_onnx_options_set_external_data_path(h.get(), o.external_data_path.c_str()));
    migraphx_program_t result = nullptr;
    call(import(&result, h.get()));
    return program(result);
}

} // namespace detail

inline program parse_onnx(const std::string &name, const onnx_options &options = onnx_options{})
{
    program p = detail::parse(options, [&](migraphx_program_t *out, migraphx_onnx_options_t o) {
        return migraphx_parse_onnx(out, name.c_str(), o);
    });
    const auto read = [name, options](const program::input_lens &dims, bool open) {
        onnx_options o = options;
        if (open) {
            o.default_dim_value = 0;
            o.map_input_dims.clear();
            o.dim_params.clear();
        }
        for (const auto &item : dims)
            if (!open)
                o.map_input_dims[item.first] = item.second;
        return detail::parse(o, [&](migraphx_program_t *out, migraphx_onnx_options_t h) {
            detail::call(migraphx_onnx_options_set_dynamic_dims(h, open));
            return migraphx_parse_onnx(out, name.c_str(), h);
        });
    };
    p.remember_source(read, {options.map_input_dims.begin(), options.map_input_dims.end()});
    return p;
}

inline program parse_onnx_buffer(const void *data, std::size_t size,
                                 const onnx_options &options = onnx_options{})
{
    return detail::parse(options, [&](migraphx_program_t *out, migraphx_onnx_options_t o) {
        return migraphx_parse_onnx_buffer(out, data, size, o);
    });
}

inline program parse_onnx_buffer(const std::string &buffer,
                                 const onnx_options &options = onnx_options{})
{
    return parse_onnx_buffer(buffer.data(), buffer.size(), options);
}

inline std::vector<std::string> get_onnx_operators()
{
    std::size_t size = 0;
    detail::call(migraphx_get_onnx_operators_size(&size));
    std::vector<std::string> result(size);
    for (std::size_t i = 0; i < size; i++) {
        char *name = nullptr;
        detail::call(migraphx_get_onnx_operator_name_at_index(&name, i));
        result[i] = name;
    }
    return result;
}

// --- TensorFlow ---

struct tf_options {
    bool is_nhwc = false;
    unsigned int batch_size = 1;
    std::unordered_map<std::string, std::vector<std::size_t>> map_input_dims;
    std::vector<std::string> output_node_names;
};

inline program parse_tf(const std::string &name, const tf_options &options = tf_options{})
{
    using handle = detail::unique_handle<migraphx_tf_options, migraphx_tf_options_destroy>;
    handle h{detail::make<migraphx_tf_options>(migraphx_tf_options_create)};
    detail::call(migraphx_tf_options_set_nhwc(h.get(), options.is_nhwc));
    detail::call(migraphx_tf_options_set_default_dim_value(h.get(), options.batch_size));
    for (auto item : options.map_input_dims)
        detail::call(migraphx_tf_options_set_input_parameter_shape(
            h.get(), item.first.c_str(), item.second.data(), item.second.size()));
    std::vector<const char *> names;
    for (const auto &node : options.output_node_names)
        names.push_back(node.c_str());
    if (!names.empty())
        detail::call(migraphx_tf_options_set_output_names(h.get(), names.data(), names.size()));
    return program(detail::make<migraphx_program>(migraphx_parse_tf, name.c_str(), h.get()));
}

// --- files ---

struct file_options {
    std::string format = "msgpack";
    int device_id = 0;
    // Saving: compiled from copies of the program that is saved; they go into the same file.
    std::vector<const program *> forms;
    // Loading: for this target; empty: the best form for this machine.
    std::string target;
    // Loading: the program that is not compiled, where the file has it.
    bool portable = false;
    // Loading: compiled kernels of the file may be run.
    bool trusted = false;
};

namespace detail
{

using file_handle = unique_handle<migraphx_file_options, migraphx_file_options_destroy>;

inline file_handle make_file_options(const file_options &o)
{
    file_handle h{make<migraphx_file_options>(migraphx_file_options_create)};
    call(migraphx_file_options_set_file_format(h.get(), o.format.c_str()));
    for (const program *form : o.forms)
        call(migraphx_file_options_add_form(h.get(), form->handle()));
    call(migraphx_file_options_set_target(h.get(), o.target.empty() ? nullptr : o.target.c_str()));
    call(migraphx_file_options_set_portable(h.get(), o.portable));
    call(migraphx_file_options_set_trusted(h.get(), o.trusted));
    require_device(o.device_id);
    return h;
}

} // namespace detail

inline program load(const std::string &filename, const file_options &options = file_options{})
{
    migraphx_program_t result = nullptr;
    detail::call(
        migraphx_load(&result, filename.c_str(), detail::make_file_options(options).get()));
    return program(result);
}

inline void save(const program &p, const std::string &filename,
                 const file_options &options = file_options{})
{
    detail::call(
        migraphx_save(p.handle(), filename.c_str(), detail::make_file_options(options).get()));
}

inline program load_buffer(const char *data, std::size_t size,
                           const file_options &options = file_options{})
{
    migraphx_program_t result = nullptr;
    detail::call(
        migraphx_load_buffer(&result, data, size, detail::make_file_options(options).get()));
    return program(result);
}

inline program load_buffer(const std::vector<char> &buffer,
                           const file_options &options = file_options{})
{
    return load_buffer(buffer.data(), buffer.size(), options);
}

inline std::vector<char> save_buffer(const program &p, const file_options &options = file_options{})
{
    char *bytes = nullptr;
    std::size_t size = 0;
    detail::call(
        migraphx_save_buffer(&bytes, &size, p.handle(), detail::make_file_options(options).get()));
    std::vector<char> result(bytes, bytes + size);
    migraphx_string_destroy(bytes);
    return result;
}

// --- quantization ---

namespace detail
{

template <class F> void quantize(program &p, const std::vector<std::string> &names, F f)
{
    using handle = unique_handle<migraphx_quantize_op_names, migraphx_quantize_op_names_destroy>;
    p.change([names, f](program &to) {
        handle h{make<migraphx_quantize_op_names>(migraphx_quantize_op_names_create)};
        for (const auto &name : names)
            call(migraphx_quantize_op_names_add(h.get(), name.c_str()));
        call(f(to.handle(), h.get()));
    });
}

} // namespace detail

inline void quantize_fp16(program &p, const std::vector<std::string> &names = {"all"})
{
    detail::quantize(p, names, migraphx_quantize_fp16_with_op_names);
}

inline void quantize_bf16(program &p, const std::vector<std::string> &names = {"all"})
{
    detail::quantize(p, names, migraphx_quantize_bf16_with_op_names);
}

inline void quantize_int8(program &p, const target &t,
                          const std::vector<parameter_map> &calibration,
                          const std::unordered_set<std::string> &names = {"dot", "convolution"})
{
    using handle = detail::unique_handle<migraphx_quantize_int8_options,
                                         migraphx_quantize_int8_options_destroy>;
    handle h{detail::make<migraphx_quantize_int8_options>(migraphx_quantize_int8_options_create)};
    for (const auto &name : names)
        detail::call(migraphx_quantize_int8_options_add_op_name(h.get(), name.c_str()));
    for (const auto &sample : calibration)
        detail::call(migraphx_quantize_int8_options_add_calibration_data(
            h.get(), detail::make_parameters(sample).get()));
    detail::call(migraphx_quantize_int8(p.handle(), t.handle().get(), h.get()));
    p.forget_source(); // the calibration is of these lengths
}

inline void quantize_fp8(program &p, const target &t, const std::vector<parameter_map> &calibration)
{
    using handle =
        detail::unique_handle<migraphx_quantize_fp8_options, migraphx_quantize_fp8_options_destroy>;
    handle h{detail::make<migraphx_quantize_fp8_options>(migraphx_quantize_fp8_options_create)};
    for (const auto &sample : calibration)
        detail::call(migraphx_quantize_fp8_options_add_calibration_data(
            h.get(), detail::make_parameters(sample).get()));
    detail::call(migraphx_quantize_fp8(p.handle(), t.handle().get(), h.get()));
    p.forget_source();
}

// quantize_int8 with everything that can be chosen; migraphx/extensions.h says what.
struct quantize_options {
    std::string type = "int8_type";
    std::string method = "max"; // percentile, entropy, error
    double percentile = 99.99;
    bool asymmetric = false, per_tensor = false, correct_bias = false, smooth = false;
    double budget = -1; // negative: none
    std::string metric = "relative";
    bool reckon_time = false;
    std::string ranges; // found before
    std::unordered_set<std::string> names{"dot", "convolution"};
};

namespace detail
{

using quantize_handle = unique_handle<migraphx_quantize_options, migraphx_quantize_options_destroy>;

inline void set(migraphx_quantize_options_t h, const quantize_options &o)
{
    migraphx_shape_datatype_t type;
    call(migraphx_type_find(&type, o.type.c_str()));
    call(migraphx_quantize_options_set_type(h, type));
    call(migraphx_quantize_options_set_method(h, o.method.c_str()));
    call(migraphx_quantize_options_set_percentile(h, o.percentile));
    call(migraphx_quantize_options_set_asymmetric(h, o.asymmetric));
    call(migraphx_quantize_options_set_per_tensor(h, o.per_tensor));
    call(migraphx_quantize_options_set_correct_bias(h, o.correct_bias));
    call(migraphx_quantize_options_set_smooth(h, o.smooth));
    call(migraphx_quantize_options_set_budget(h, o.metric.c_str(), o.budget));
    call(migraphx_quantize_options_set_reckon_time(h, o.reckon_time));
    call(migraphx_quantize_options_set_ranges(h, o.ranges.data(), o.ranges.size()));
    for (const auto &name : o.names)
        call(migraphx_quantize_options_add_op_name(h, name.c_str()));
}

} // namespace detail

// The ranges, as text that options.ranges takes.
inline std::string quantize(program &p, const target &t,
                            const std::vector<parameter_map> &calibration,
                            const quantize_options &options = quantize_options{})
{
    detail::quantize_handle h{
        detail::make<migraphx_quantize_options>(migraphx_quantize_options_create)};
    detail::set(h.get(), options);
    for (const auto &sample : calibration)
        detail::call(migraphx_quantize_options_add_calibration_data(
            h.get(), detail::make_parameters(sample).get()));
    char *text = nullptr;
    detail::call(migraphx_quantize(&text, p.handle(), t.handle().get(), h.get()));
    const std::string ranges(text);
    migraphx_string_destroy(text);
    p.forget_source();
    return ranges;
}

inline void quantize_int4_weights(program &p, std::size_t block = 32, bool symmetric = false)
{
    detail::call(migraphx_quantize_int4_weights(p.handle(), block, symmetric));
    p.forget_source();
}

inline void take_bytes(program &p, const std::string &name, const std::vector<double> &scale = {},
                       const std::vector<double> &offset = {}, bool channels_last = false)
{
    if (!scale.empty() && !offset.empty() && scale.size() != offset.size())
        throw std::invalid_argument("take_bytes: scale and offset are not as long");
    detail::call(migraphx_take_bytes(
        p.handle(), name.c_str(), scale.empty() ? nullptr : scale.data(),
        offset.empty() ? nullptr : offset.data(), scale.empty() ? offset.size() : scale.size(),
        channels_last));
    p.forget_source();
}

} // namespace version_1
} // namespace migraphx

#endif
