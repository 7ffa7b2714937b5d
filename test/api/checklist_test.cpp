// SPDX-License-Identifier: MIT
// Every class, member and function that MIGraphX 2.16's C++ header declares, written down apart
// from ours: what is missing here, or has another type, does not compile. Where ours can do more
// (a member that is const here and not there) the line says so.
#include <migraphx/migraphx.hpp>
#include <migraphx/version.h>

namespace
{

// The header includes what programs rely on: each name comes from another standard header.
void includes()
{
    std::array<int, 3> list{{3, 1, 2}};
    std::sort(list.begin(), list.end());
    std::vector<int> sums(3);
    std::partial_sum(list.begin(), list.end(), sums.begin());
    assert(sums[2] == 6);
    char text[4] = "abc";
    if (std::strlen(text) != 3 || std::move(sums).size() != 3)
        std::cerr << "unlikely\n";
    const std::shared_ptr<int> shared = std::make_shared<int>(1);
    std::cout << *shared << std::endl;
}

template <class Class, class Type> using member = Type Class::*;

#define FUNCTION(name, ...) (void)static_cast<std::add_pointer_t<__VA_ARGS__>>(&migraphx::name)
#define METHOD(c, name, ...) (void)static_cast<member<c, __VA_ARGS__>>(&c::name)
#define STATIC(c, name, ...) (void)static_cast<std::add_pointer_t<__VA_ARGS__>>(&c::name)
#define MADE_OF(...) static_assert(std::is_constructible<__VA_ARGS__>{}, #__VA_ARGS__)
#define TAKES(c, from) static_assert(std::is_convertible<from, c>{}, #c " of " #from)
#define GIVES(type, ...) static_assert(std::is_same<decltype(__VA_ARGS__), type>{}, #__VA_ARGS__)

using namespace migraphx;
using std::size_t;
using sizes = std::vector<size_t>;
using named_arguments = std::initializer_list<std::pair<std::string, argument>>;

// The C functions, with the types that functions.inc has for the test in C.
void functions()
{
#define ROW(name, types, zeros)                                                                    \
    migraphx_status(*const has_##name) types = migraphx_##name;                                    \
    (void)has_##name;
#include "functions.inc"
#undef ROW
}

// A handle's class is made of the handle and a word about its life, and gives it back.
template <class Class, class Handle> void handle_class()
{
    MADE_OF(Class, Handle *, borrow);
    MADE_OF(Class, Handle *, share<int>);
    static_assert(std::is_copy_constructible<Class>{} && std::is_copy_assignable<Class>{}, "copy");
    METHOD(Class, get_handle_ptr, Handle * () const);
    GIVES(std::shared_ptr<Handle>, std::shared_ptr<Handle>(std::declval<Class>().get_handle()));
    GIVES(share<Handle>, std::declval<const Class>().share_handle());
    static_assert(std::is_same<as_handle<Handle *>, Class>{}, "as_handle");
}

template <class Class, class Handle> void owned_class()
{
    handle_class<Class, Handle>();
    MADE_OF(Class, Handle *, own);
    static_assert(std::is_same<typename Class::handle_type, Handle>{}, "handle_type");
}

void handles()
{
    owned_class<optimals, migraphx_optimals>();
    owned_class<dynamic_dimension, const migraphx_dynamic_dimension>();
    owned_class<dynamic_dimensions, migraphx_dynamic_dimensions>();
    owned_class<shape, const migraphx_shape>();
    owned_class<argument, const migraphx_argument>();
    owned_class<target, migraphx_target>();
    owned_class<program_parameter_shapes, migraphx_program_parameter_shapes>();
    owned_class<program_parameters, migraphx_program_parameters>();
    owned_class<arguments, migraphx_arguments>();
    owned_class<shapes, migraphx_shapes>();
    owned_class<operation, migraphx_operation>();
    owned_class<instruction, const migraphx_instruction>();
    owned_class<instructions, migraphx_instructions>();
    owned_class<modules, migraphx_modules>();
    owned_class<trace_info, migraphx_trace_info>();
    owned_class<compile_options, migraphx_compile_options>();
    owned_class<program, migraphx_program>();
    owned_class<file_options, migraphx_file_options>();
    owned_class<onnx_options, migraphx_onnx_options>();
    owned_class<tf_options, migraphx_tf_options>();
    owned_class<quantize_op_names, migraphx_quantize_op_names>();
    owned_class<quantize_int8_options, migraphx_quantize_int8_options>();
    owned_class<quantize_fp8_options, migraphx_quantize_fp8_options>();
    handle_class<module, migraphx_module>();
    handle_class<context, migraphx_context>();
}

void dimensions()
{
    MADE_OF(optimals, std::initializer_list<size_t>);
    MADE_OF(dynamic_dimension, size_t, size_t);
    MADE_OF(dynamic_dimension, size_t, size_t, const optimals &);
    METHOD(dynamic_dimension, is_fixed, bool() const);
    GIVES(bool, std::declval<dynamic_dimension>() == std::declval<const dynamic_dimension>());
    GIVES(bool, std::declval<dynamic_dimension>() != std::declval<const dynamic_dimension>());
    MADE_OF(dynamic_dimensions, dynamic_dimension, dynamic_dimension, dynamic_dimension);
    const dynamic_dimensions list = {dynamic_dimension{1, 4, {2, 4}}, dynamic_dimension{3, 3}};
    METHOD(dynamic_dimensions, size, size_t() const);
    METHOD(dynamic_dimensions, operator[], dynamic_dimension(size_t) const);
}

void tensors()
{
    MADE_OF(shape);
    TAKES(shape, migraphx_shape_datatype_t);
    TAKES(shape, const migraphx_shape *);
    MADE_OF(shape, migraphx_shape_datatype_t, sizes);
    MADE_OF(shape, migraphx_shape_datatype_t, std::initializer_list<size_t>);
    MADE_OF(shape, migraphx_shape_datatype_t, sizes, sizes);
    MADE_OF(shape, migraphx_shape_datatype_t, const dynamic_dimensions &);
    METHOD(shape, lengths, sizes() const);
    METHOD(shape, strides, sizes() const);
    METHOD(shape, dyn_dims, dynamic_dimensions() const);
    METHOD(shape, type, migraphx_shape_datatype_t() const);
    METHOD(shape, elements, size_t() const);
    METHOD(shape, bytes, size_t() const);
    METHOD(shape, standard, bool() const);
    METHOD(shape, dynamic, bool() const);
    METHOD(shape, index, size_t(size_t) const);
    GIVES(bool, std::declval<shape>() == std::declval<const shape>());
    GIVES(bool, std::declval<shape>() != std::declval<const shape>());

    MADE_OF(argument);
    TAKES(argument, shape);
    TAKES(argument, const migraphx_argument *);
    MADE_OF(argument, shape, void *);
    METHOD(argument, get_shape, shape() const);
    METHOD(argument, data, char *() const);
    METHOD(argument, as_vector<float>, std::vector<float>() const);
    STATIC(argument, save_argument, void(const argument &, const std::string &));
    STATIC(argument, load_argument, argument(const std::string &));
    STATIC(argument, generate, argument(shape, size_t));
    GIVES(argument, argument::generate(std::declval<shape>()));
    GIVES(bool, std::declval<argument>() == std::declval<const argument>());
    GIVES(bool, std::declval<argument>() != std::declval<const argument>());
}

// Element access and iterators of the read-only lists.
template <class List, class Item> void list_class()
{
    METHOD(List, size, size_t() const);
    METHOD(List, operator[], Item(size_t) const);
    METHOD(List, empty, bool() const);
    GIVES(Item, std::declval<const List>().front());
    GIVES(Item, std::declval<const List>().back());
    GIVES(Item, *std::declval<const List>().begin());
    GIVES(bool, std::declval<const List>().begin() != std::declval<const List>().end());
    static_assert(std::is_base_of<array_base<List>, List>{}, "array_base");
}

void runs()
{
    MADE_OF(target);
    TAKES(target, const char *);
    MADE_OF(program_parameter_shapes);
    METHOD(program_parameter_shapes, size, size_t() const);
    METHOD(program_parameter_shapes, operator[], shape(const char *) const);
    METHOD(program_parameter_shapes, names, std::vector<const char *>() const);
    MADE_OF(program_parameters);
    TAKES(program_parameters, migraphx_program_parameters *);
    TAKES(program_parameters, named_arguments);
    METHOD(program_parameters, add, void(const char *, const argument &) const);
    list_class<arguments, argument>();
    list_class<shapes, shape>();
    METHOD(context, finish, void() const);
    GIVES(void *, std::declval<context>().get_queue<void *>());
    METHOD(trace_info, get_index, size_t() const);
    METHOD(trace_info, get_name, std::string() const);
    METHOD(trace_info, get_result, argument() const);
}

void graphs()
{
    MADE_OF(operation, const char *);
    MADE_OF(operation, const char *, const char *);
    MADE_OF(operation, const char *, const char *, int, double);
    METHOD(operation, name, std::string() const); // const here, so that const operations have it
    MADE_OF(instructions);
    MADE_OF(instructions, instruction, instruction);
    MADE_OF(modules);
    MADE_OF(modules, module, module);
    TAKES(module, migraphx_module *);
    METHOD(module, print, void() const);
    METHOD(module, add_instruction, instruction(const operation &, const instructions &));
    METHOD(module, add_instruction,
           instruction(const operation &, const instructions &, const modules &));
    METHOD(module, add_literal<float>, instruction(const shape &, float *));
    METHOD(module, add_literal<const int>, instruction(const shape &, const int *));
    METHOD(module, add_parameter, instruction(const std::string &, shape));
    METHOD(module, add_return, instruction(const instructions &));
    METHOD(module, add_allocation, instruction(const shape &));
}

void programs()
{
    MADE_OF(compile_options);
    METHOD(compile_options, set_offload_copy, void(bool));
    METHOD(compile_options, set_fast_math, void(bool));
    METHOD(compile_options, set_exhaustive_tune_flag, void(bool));
    GIVES(void, std::declval<compile_options>().set_offload_copy());
    GIVES(void, std::declval<compile_options>().set_fast_math());
    GIVES(void, std::declval<compile_options>().set_exhaustive_tune_flag());

    MADE_OF(program);
    METHOD(program, compile, void(const target &, const compile_options &) const);
    METHOD(program, compile, void(const target &) const);
    METHOD(program, get_parameter_shapes, program_parameter_shapes() const);
    METHOD(program, get_output_shapes, shapes() const);
    METHOD(program, eval, arguments(const program_parameters &) const);
    METHOD(program, run_async<int>, arguments(const program_parameters &, int *) const);
    METHOD(program, print, void() const);
    METHOD(program, sort, program());
    METHOD(program, get_main_module, module());
    METHOD(program, create_module, module(const std::string &));
    METHOD(program, experimental_get_context, context());
    const auto callback = [](const trace_info &) {};
    GIVES(arguments, std::declval<const program>().run_trace(program_parameters{}, callback));
    GIVES(bool, std::declval<program>() == std::declval<const program>());
    GIVES(bool, std::declval<program>() != std::declval<const program>());
}

void files()
{
    MADE_OF(file_options);
    METHOD(file_options, set_file_format, void(const char *));
    FUNCTION(load, program(const char *, const file_options &));
    FUNCTION(load, program(const char *));
    FUNCTION(save, void(const program &, const char *, const file_options &));
    FUNCTION(save, void(const program &, const char *));
}

void models()
{
    MADE_OF(onnx_options);
    METHOD(onnx_options, set_input_parameter_shape, void(const std::string &, sizes));
    METHOD(onnx_options, set_dyn_input_parameter_shape,
           void(const std::string &, const dynamic_dimensions &));
    METHOD(onnx_options, set_default_dim_value, void(unsigned int));
    METHOD(onnx_options, set_default_dyn_dim_value, void(const dynamic_dimension &));
    METHOD(onnx_options, set_default_loop_iterations, void(int64_t));
    METHOD(onnx_options, set_limit_loop_iterations, void(int64_t));
    METHOD(onnx_options, set_external_data_path, void(const std::string &));
    METHOD(onnx_options, set_use_debug_symbols, void(bool));
    GIVES(void, std::declval<onnx_options>().set_use_debug_symbols());
    FUNCTION(parse_onnx, program(const char *, const onnx_options &));
    FUNCTION(parse_onnx, program(const char *));
    FUNCTION(parse_onnx_buffer, program(const void *, size_t, const onnx_options &));
    FUNCTION(parse_onnx_buffer, program(const void *, size_t));
    FUNCTION(parse_onnx_buffer, program(const std::string &, const onnx_options &));
    FUNCTION(parse_onnx_buffer, program(const std::string &));
    FUNCTION(get_onnx_operators, std::vector<std::string>());

    MADE_OF(tf_options);
    METHOD(tf_options, set_input_parameter_shape, void(const std::string &, sizes));
    METHOD(tf_options, set_nhwc, void(bool));
    GIVES(void, std::declval<tf_options>().set_nhwc());
    METHOD(tf_options, set_default_dim_value, void(unsigned int));
    METHOD(tf_options, set_output_names, void(std::vector<const char *>));
    FUNCTION(parse_tf, program(const char *, const tf_options &));
    FUNCTION(parse_tf, program(const char *));
    FUNCTION(parse_tf_buffer, program(const void *, size_t, const tf_options &));
    FUNCTION(parse_tf_buffer, program(const void *, size_t));
    FUNCTION(parse_tf_buffer, program(const std::string &, const tf_options &));
    FUNCTION(parse_tf_buffer, program(const std::string &));
}

void quantizing()
{
    MADE_OF(quantize_op_names);
    METHOD(quantize_op_names, add, void(const std::string &));
    FUNCTION(quantize_fp16, void(const program &, const quantize_op_names &));
    FUNCTION(quantize_fp16, void(const program &));
    FUNCTION(quantize_bf16, void(const program &, const quantize_op_names &));
    FUNCTION(quantize_bf16, void(const program &));
    MADE_OF(quantize_int8_options);
    METHOD(quantize_int8_options, add_op_name, void(const std::string &));
    METHOD(quantize_int8_options, add_calibration_data, void(const program_parameters &));
    FUNCTION(quantize_int8, void(const program &, const target &, const quantize_int8_options &));
    MADE_OF(quantize_fp8_options);
    METHOD(quantize_fp8_options, add_calibration_data, void(const program_parameters &));
    FUNCTION(quantize_fp8, void(const program &, const target &, const quantize_fp8_options &));
}

struct twice final : experimental_custom_op_base {
    std::string name() const override
    {
        return "twice";
    }
    argument compute(context, shape, arguments inputs) const override
    {
        return inputs[0];
    }
    shape compute_shape(shapes inputs) const override
    {
        return inputs[0];
    }
    bool runs_on_offload_target() const override
    {
        return false;
    }
};

void custom_operators()
{
    using base = experimental_custom_op_base;
    METHOD(base, name, std::string() const);
    METHOD(base, compute, argument(context, shape, arguments) const);
    METHOD(base, compute_shape, shape(shapes) const);
    METHOD(base, output_alias, sizes(shapes) const);
    METHOD(base, runs_on_offload_target, bool() const);
    static_assert(std::is_abstract<base>{} && std::has_virtual_destructor<base>{}, "base");
    TAKES(experimental_custom_op, twice &);
    METHOD(experimental_custom_op, register_op, void());
    FUNCTION(register_experimental_custom_op<twice>, void(twice &));
    GIVES(void, std::declval<require_interface<base, twice> (*)()>()());
    GIVES(migraphx_experimental_custom_op *,
          std::declval<interface_base<MIGRAPHX_HANDLE_BASE(experimental_custom_op)>>()
              .get_handle_ptr());
}

// What MIGraphX's header keeps no secret of, and programs use.
template <class T> std::string more(rank<0>, T)
{
    return "any";
}
template <class T> decltype(T{} + 1, std::string()) more(rank<1>, T)
{
    return "number";
}

bool helpers()
{
    static_assert(std::is_base_of<rank<0>, rank<3>>{}, "rank");
    const auto square = [](size_t i) { return i * i; };
    iota_iterator<decltype(square)> from{1, square}, to{4, square};
    const bool squares = std::accumulate(from, to, size_t(0)) == 14 && *(from + 2) == 9 &&
                         *(to -= 1) == 9 && *--to == 4 && *(to - from) == 1 && *to-- == 4;
    migraphx_shape_t handle =
        make<migraphx_shape>(&migraphx_shape_create_scalar, migraphx_shape_float_type);
    call(&migraphx_shape_destroy, handle);
    return squares && get_type_name<int>() == "int" && get_type_name(1.5f) == "float" &&
           more(rank<1>{}, 1) == "number" && more(rank<1>{}, "text"[0]) == "number" &&
           more(rank<1>{}, twice{}) == "any" && MIGRAPHX_VERSION_MAJOR == 2;
}

} // namespace

int main()
{
    includes();
    functions();
    handles();
    dimensions();
    tensors();
    runs();
    graphs();
    programs();
    files();
    models();
    quantizing();
    custom_operators();
    if (helpers())
        return 0;
    std::cout << "a helper is wrong\n";
    return 1;
}
