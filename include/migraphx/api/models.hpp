// SPDX-License-Identifier: MIT
// Reading models and quantizing them, in C++. Included by migraphx.hpp.
#ifndef MIGRAPHX_GUARD_API_MODELS_HPP
#define MIGRAPHX_GUARD_API_MODELS_HPP

#include <migraphx/migraphx.hpp>

namespace migraphx
{
inline namespace api
{

// --- models ---

struct onnx_options : MIGRAPHX_HANDLE_BASE(onnx_options) {
    MIGRAPHX_HANDLE_CONSTRUCTOR(onnx_options)

    onnx_options()
    {
        make_handle(&migraphx_onnx_options_create);
    }
    void set_input_parameter_shape(const std::string &name, std::vector<std::size_t> dims)
    {
        call(&migraphx_onnx_options_set_input_parameter_shape, get_handle_ptr(), name.c_str(),
             dims.data(), dims.size());
    }
    void set_dyn_input_parameter_shape(const std::string &name, const dynamic_dimensions &dims)
    {
        call(&migraphx_onnx_options_set_dyn_input_parameter_shape, get_handle_ptr(), name.c_str(),
             dims.get_handle_ptr());
    }
    void set_default_dim_value(unsigned int value)
    {
        call(&migraphx_onnx_options_set_default_dim_value, get_handle_ptr(), value);
    }
    void set_default_dyn_dim_value(const dynamic_dimension &dim)
    {
        call(&migraphx_onnx_options_set_default_dyn_dim_value, get_handle_ptr(),
             dim.get_handle_ptr());
    }
    void set_default_loop_iterations(int64_t value)
    {
        call(&migraphx_onnx_options_set_default_loop_iterations, get_handle_ptr(), value);
    }
    void set_limit_loop_iterations(int64_t value)
    {
        call(&migraphx_onnx_options_set_limit_loop_iterations, get_handle_ptr(), value);
    }
    void set_external_data_path(const std::string &path)
    {
        call(&migraphx_onnx_options_set_external_data_path, get_handle_ptr(), path.c_str());
    }
    void set_use_debug_symbols(bool value = true)
    {
        call(&migraphx_onnx_options_set_use_debug_symbols, get_handle_ptr(), value);
    }
};

inline program parse_onnx(const char *filename, const onnx_options &options)
{
    return {make<migraphx_program>(&migraphx_parse_onnx, filename, options.get_handle_ptr()),
            own{}};
}

inline program parse_onnx(const char *filename)
{
    return parse_onnx(filename, onnx_options{});
}

inline program parse_onnx_buffer(const void *data, std::size_t size, const onnx_options &options)
{
    return {
        make<migraphx_program>(&migraphx_parse_onnx_buffer, data, size, options.get_handle_ptr()),
        own{}};
}

inline program parse_onnx_buffer(const void *data, std::size_t size)
{
    return parse_onnx_buffer(data, size, onnx_options{});
}

inline program parse_onnx_buffer(const std::string &buffer, const onnx_options &options)
{
    return parse_onnx_buffer(buffer.data(), buffer.size(), options);
}

inline program parse_onnx_buffer(const std::string &buffer)
{
    return parse_onnx_buffer(buffer, onnx_options{});
}

inline std::vector<std::string> get_onnx_operators()
{
    std::size_t size = 0;
    call(&migraphx_get_onnx_operators_size, &size);
    std::vector<std::string> result(size);
    for (std::size_t i = 0; i < size; i++) {
        char *name = nullptr;
        call(&migraphx_get_onnx_operator_name_at_index, &name, i);
        result[i] = name;
    }
    return result;
}

struct tf_options : MIGRAPHX_HANDLE_BASE(tf_options) {
    MIGRAPHX_HANDLE_CONSTRUCTOR(tf_options)

    tf_options()
    {
        make_handle(&migraphx_tf_options_create);
    }
    void set_input_parameter_shape(const std::string &name, std::vector<std::size_t> dims)
    {
        call(&migraphx_tf_options_set_input_parameter_shape, get_handle_ptr(), name.c_str(),
             dims.data(), dims.size());
    }
    void set_nhwc(bool is_nhwc = true)
    {
        call(&migraphx_tf_options_set_nhwc, get_handle_ptr(), is_nhwc);
    }
    void set_default_dim_value(unsigned int value)
    {
        call(&migraphx_tf_options_set_default_dim_value, get_handle_ptr(), value);
    }
    void set_output_names(std::vector<const char *> names)
    {
        call(&migraphx_tf_options_set_output_names, get_handle_ptr(), names.data(), names.size());
    }
};

inline program parse_tf(const char *filename, const tf_options &options)
{
    return {make<migraphx_program>(&migraphx_parse_tf, filename, options.get_handle_ptr()), own{}};
}

inline program parse_tf(const char *filename)
{
    return parse_tf(filename, tf_options{});
}

inline program parse_tf_buffer(const void *data, std::size_t size, const tf_options &options)
{
    return {make<migraphx_program>(&migraphx_parse_tf_buffer, data, size, options.get_handle_ptr()),
            own{}};
}

inline program parse_tf_buffer(const void *data, std::size_t size)
{
    return parse_tf_buffer(data, size, tf_options{});
}

inline program parse_tf_buffer(const std::string &buffer, const tf_options &options)
{
    return parse_tf_buffer(buffer.data(), buffer.size(), options);
}

inline program parse_tf_buffer(const std::string &buffer)
{
    return parse_tf_buffer(buffer, tf_options{});
}

// --- quantization ---

struct quantize_op_names : MIGRAPHX_HANDLE_BASE(quantize_op_names) {
    MIGRAPHX_HANDLE_CONSTRUCTOR(quantize_op_names)

    quantize_op_names()
    {
        make_handle(&migraphx_quantize_op_names_create);
    }
    void add(const std::string &name)
    {
        call(&migraphx_quantize_op_names_add, get_handle_ptr(), name.c_str());
    }
};

inline void quantize_fp16(const program &prog, const quantize_op_names &names)
{
    call(&migraphx_quantize_fp16_with_op_names, prog.get_handle_ptr(), names.get_handle_ptr());
}

inline void quantize_fp16(const program &prog)
{
    call(&migraphx_quantize_fp16, prog.get_handle_ptr());
}

inline void quantize_bf16(const program &prog, const quantize_op_names &names)
{
    call(&migraphx_quantize_bf16_with_op_names, prog.get_handle_ptr(), names.get_handle_ptr());
}

inline void quantize_bf16(const program &prog)
{
    call(&migraphx_quantize_bf16, prog.get_handle_ptr());
}

struct quantize_int8_options : MIGRAPHX_HANDLE_BASE(quantize_int8_options) {
    MIGRAPHX_HANDLE_CONSTRUCTOR(quantize_int8_options)

    quantize_int8_options()
    {
        make_handle(&migraphx_quantize_int8_options_create);
    }
    void add_op_name(const std::string &name)
    {
        call(&migraphx_quantize_int8_options_add_op_name, get_handle_ptr(), name.c_str());
    }
    void add_calibration_data(const program_parameters &data)
    {
        call(&migraphx_quantize_int8_options_add_calibration_data, get_handle_ptr(),
             data.get_handle_ptr());
    }
};

inline void quantize_int8(const program &prog, const target &t,
                          const quantize_int8_options &options)
{
    call(&migraphx_quantize_int8, prog.get_handle_ptr(), t.get_handle_ptr(),
         options.get_handle_ptr());
}

struct quantize_fp8_options : MIGRAPHX_HANDLE_BASE(quantize_fp8_options) {
    MIGRAPHX_HANDLE_CONSTRUCTOR(quantize_fp8_options)

    quantize_fp8_options()
    {
        make_handle(&migraphx_quantize_fp8_options_create);
    }
    void add_calibration_data(const program_parameters &data)
    {
        call(&migraphx_quantize_fp8_options_add_calibration_data, get_handle_ptr(),
             data.get_handle_ptr());
    }
};

inline void quantize_fp8(const program &prog, const target &t, const quantize_fp8_options &options)
{
    call(&migraphx_quantize_fp8, prog.get_handle_ptr(), t.get_handle_ptr(),
         options.get_handle_ptr());
}

// quantize_int8 with everything that can be chosen; migraphx/extensions.h says what.
struct quantize_options : MIGRAPHX_HANDLE_BASE(quantize_options) {
    MIGRAPHX_HANDLE_CONSTRUCTOR(quantize_options)

    quantize_options()
    {
        make_handle(&migraphx_quantize_options_create);
    }
    void set_type(migraphx_shape_datatype_t type)
    {
        call(&migraphx_quantize_options_set_type, get_handle_ptr(), type);
    }
    void set_method(const std::string &name)
    {
        call(&migraphx_quantize_options_set_method, get_handle_ptr(), name.c_str());
    }
    void set_percentile(double value)
    {
        call(&migraphx_quantize_options_set_percentile, get_handle_ptr(), value);
    }
    void set_asymmetric(bool value = true)
    {
        call(&migraphx_quantize_options_set_asymmetric, get_handle_ptr(), value);
    }
    void set_per_tensor(bool value = true)
    {
        call(&migraphx_quantize_options_set_per_tensor, get_handle_ptr(), value);
    }
    void set_correct_bias(bool value = true)
    {
        call(&migraphx_quantize_options_set_correct_bias, get_handle_ptr(), value);
    }
    void set_smooth(bool value = true)
    {
        call(&migraphx_quantize_options_set_smooth, get_handle_ptr(), value);
    }
    void set_budget(const std::string &metric, double value)
    {
        call(&migraphx_quantize_options_set_budget, get_handle_ptr(), metric.c_str(), value);
    }
    void set_reckon_time(bool value = true)
    {
        call(&migraphx_quantize_options_set_reckon_time, get_handle_ptr(), value);
    }
    void set_ranges(const std::string &text)
    {
        call(&migraphx_quantize_options_set_ranges, get_handle_ptr(), text.data(), text.size());
    }
    void add_op_name(const std::string &name)
    {
        call(&migraphx_quantize_options_add_op_name, get_handle_ptr(), name.c_str());
    }
    void add_calibration_data(const program_parameters &data)
    {
        call(&migraphx_quantize_options_add_calibration_data, get_handle_ptr(),
             data.get_handle_ptr());
    }
};

// The ranges, as text that set_ranges takes.
inline std::string quantize(const program &prog, const target &t, const quantize_options &options)
{
    char *text = nullptr;
    call(&migraphx_quantize, &text, prog.get_handle_ptr(), t.get_handle_ptr(),
         options.get_handle_ptr());
    const std::string ranges(text);
    migraphx_string_destroy(text);
    return ranges;
}

inline void quantize_int4_weights(const program &prog, std::size_t block = 32,
                                  bool symmetric = false)
{
    call(&migraphx_quantize_int4_weights, prog.get_handle_ptr(), block, symmetric);
}

inline void take_bytes(const program &prog, const std::string &name,
                       const std::vector<double> &scale = {}, const std::vector<double> &offset = {},
                       bool channels_last = false)
{
    if (!scale.empty() && !offset.empty() && scale.size() != offset.size())
        throw std::invalid_argument("take_bytes: scale and offset are not as long");
    const std::size_t size = scale.empty() ? offset.size() : scale.size();
    call(&migraphx_take_bytes, prog.get_handle_ptr(), name.c_str(),
         scale.empty() ? nullptr : scale.data(), offset.empty() ? nullptr : offset.data(), size,
         channels_last);
}

} // namespace api
} // namespace migraphx

#endif
