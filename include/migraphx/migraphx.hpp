// SPDX-License-Identifier: MIT
// The C++ interface: header-only over migraphx.h, compatible in source with MIGraphX 2.16.
//
// Every class holds a shared pointer to a C handle, so copies share. What is part of something else
// (a result of a run, the shape of an argument, a module of a program) keeps that alive. A call
// that fails throws std::runtime_error with the engine's text. C++14.
#ifndef MIGRAPHX_GUARD_API_MIGRAPHX_HPP
#define MIGRAPHX_GUARD_API_MIGRAPHX_HPP

#ifdef MIGRAPHX_GUARD_NATIVE_HPP
#error "one source file includes migraphx.hpp or native.hpp (program.hpp, onnx.hpp, ...), not both"
#endif

#include <migraphx/api/tensor.hpp>

namespace migraphx
{
inline namespace api
{

// --- targets ---

struct target : MIGRAPHX_HANDLE_BASE(target) {
    MIGRAPHX_HANDLE_CONSTRUCTOR(target)

    target()
    {
    }
    target(const char *name)
    {
        make_handle(&migraphx_target_create, name);
    }
};

// --- what goes into and comes out of a program ---

struct program_parameter_shapes : MIGRAPHX_HANDLE_BASE(program_parameter_shapes) {
    MIGRAPHX_HANDLE_CONSTRUCTOR(program_parameter_shapes)

    program_parameter_shapes()
    {
    }

    std::size_t size() const
    {
        std::size_t result = 0;
        call(&migraphx_program_parameter_shapes_size, &result, get_handle_ptr());
        return result;
    }
    shape operator[](const char *name) const
    {
        const_migraphx_shape_t result = nullptr;
        call(&migraphx_program_parameter_shapes_get, &result, get_handle_ptr(), name);
        return {result, share_handle()};
    }
    std::vector<const char *> names() const
    {
        std::vector<const char *> result(size());
        if (!result.empty())
            call(&migraphx_program_parameter_shapes_names, result.data(), get_handle_ptr());
        return result;
    }
};

struct program_parameters : MIGRAPHX_HANDLE_BASE(program_parameters) {
    MIGRAPHX_HANDLE_CONSTRUCTOR(program_parameters)

    MIGRAPHX_DEPRECATED("say who owns the handle: program_parameters(p, borrow{})")
    program_parameters(migraphx_program_parameters *p)
    {
        set_handle(p, borrow{});
    }
    program_parameters()
    {
        make_handle(&migraphx_program_parameters_create);
    }
    program_parameters(std::initializer_list<std::pair<std::string, argument>> list)
        : program_parameters()
    {
        for (const auto &item : list)
            add(item.first.c_str(), item.second);
    }

    void add(const char *name, const argument &value) const
    {
        call(&migraphx_program_parameters_add, get_handle_ptr(), name, value.get_handle_ptr());
    }
};

struct arguments : MIGRAPHX_HANDLE_BASE(arguments), array_base<arguments> {
    MIGRAPHX_HANDLE_CONSTRUCTOR(arguments)

    std::size_t size() const
    {
        std::size_t result = 0;
        call(&migraphx_arguments_size, &result, get_handle_ptr());
        return result;
    }
    argument operator[](std::size_t index) const
    {
        const_migraphx_argument_t result = nullptr;
        call(&migraphx_arguments_get, &result, get_handle_ptr(), index);
        return {result, share_handle()};
    }
};

struct shapes : MIGRAPHX_HANDLE_BASE(shapes), array_base<shapes> {
    MIGRAPHX_HANDLE_CONSTRUCTOR(shapes)

    std::size_t size() const
    {
        std::size_t result = 0;
        call(&migraphx_shapes_size, &result, get_handle_ptr());
        return result;
    }
    shape operator[](std::size_t index) const
    {
        const_migraphx_shape_t result = nullptr;
        call(&migraphx_shapes_get, &result, get_handle_ptr(), index);
        return {result, share_handle()};
    }
};

// --- building graphs ---

struct operation : MIGRAPHX_HANDLE_BASE(operation) {
    MIGRAPHX_HANDLE_CONSTRUCTOR(operation)

    // `attributes` is a printf format of relaxed JSON; nullptr means the defaults.
    template <class... Ts> operation(const char *name, const char *attributes = nullptr, Ts... xs)
    {
        make_handle(&migraphx_operation_create, name, attributes, xs...);
    }

    std::string name() const
    {
        std::vector<char> text(1024);
        call(&migraphx_operation_name, text.data(), text.size(), get_handle_ptr());
        return text.data();
    }
};

struct instruction : MIGRAPHX_CONST_HANDLE_BASE(instruction) {
    MIGRAPHX_HANDLE_CONSTRUCTOR(instruction)
};

struct instructions : MIGRAPHX_HANDLE_BASE(instructions) {
    MIGRAPHX_HANDLE_CONSTRUCTOR(instructions)

    template <
        class... Ts,
        class = typename std::common_type<
            int, typename std::enable_if<std::is_same<Ts, instruction>{}, int>::type...>::type>
    instructions(const Ts &...xs)
    {
        std::vector<const_migraphx_instruction_t> list{xs.get_handle_ptr()...};
        make_handle(&migraphx_instructions_create, list.data(), list.size());
    }
};

struct modules : MIGRAPHX_HANDLE_BASE(modules) {
    MIGRAPHX_HANDLE_CONSTRUCTOR(modules)

    template <class... Ts,
              class = typename std::common_type<
                  int, typename std::enable_if<std::is_same<Ts, module>{}, int>::type...>::type>
    modules(const Ts &...xs);
};

struct module : MIGRAPHX_BORROWED_HANDLE_BASE(module) {
    MIGRAPHX_HANDLE_CONSTRUCTOR(module)

    MIGRAPHX_DEPRECATED("say who owns the handle: module(p, borrow{})")
    module(migraphx_module *p)
    {
        set_handle(p, borrow{});
    }
    void print() const
    {
        call(&migraphx_module_print, get_handle_ptr());
    }
    instruction add_instruction(const operation &op, const instructions &args)
    {
        return added(&migraphx_module_add_instruction, op.get_handle_ptr(), args.get_handle_ptr());
    }
    instruction add_instruction(const operation &op, const instructions &args,
                                const modules &bodies)
    {
        return added(&migraphx_module_add_instruction_with_mod_args, op.get_handle_ptr(),
                     args.get_handle_ptr(), bodies.get_handle_ptr());
    }
    template <class T> instruction add_literal(const shape &s, T *buffer)
    {
        return added(&migraphx_module_add_literal, s.get_handle_ptr(),
                     reinterpret_cast<const char *>(buffer));
    }
    instruction add_parameter(const std::string &name, shape s)
    {
        return added(&migraphx_module_add_parameter, name.c_str(), s.get_handle_ptr());
    }
    instruction add_return(const instructions &args)
    {
        return added(&migraphx_module_add_return, args.get_handle_ptr());
    }
    instruction add_allocation(const shape &s)
    {
        return added(&migraphx_module_add_allocation, s.get_handle_ptr());
    }

  private:
    template <class F, class... Ts> instruction added(F f, Ts... xs)
    {
        return {make<migraphx_instruction>(f, get_handle_ptr(), xs...), own{}};
    }
};

template <class... Ts, class Check> modules::modules(const Ts &...xs)
{
    std::vector<migraphx_module_t> list{xs.get_handle_ptr()...};
    make_handle(&migraphx_modules_create, list.data(), list.size());
}

struct context : MIGRAPHX_BORROWED_HANDLE_BASE(context) {
    MIGRAPHX_HANDLE_CONSTRUCTOR(context)

    void finish() const
    {
        call(&migraphx_context_finish, get_handle_ptr());
    }
    template <class T> T get_queue() const
    {
        void *result = nullptr;
        call(&migraphx_context_get_queue, &result, get_handle_ptr());
        return reinterpret_cast<T>(result);
    }
};

struct trace_info : MIGRAPHX_HANDLE_BASE(trace_info) {
    MIGRAPHX_HANDLE_CONSTRUCTOR(trace_info)

    std::size_t get_index() const
    {
        std::size_t result = 0;
        call(&migraphx_trace_info_get_index, &result, get_handle_ptr());
        return result;
    }
    std::string get_name() const
    {
        const char *result = "";
        call(&migraphx_trace_info_get_name, &result, get_handle_ptr());
        return result;
    }
    argument get_result() const
    {
        const_migraphx_argument_t result = nullptr;
        call(&migraphx_trace_info_get_result, &result, get_handle_ptr());
        return {result, share_handle()};
    }
};

struct compile_options : MIGRAPHX_HANDLE_BASE(compile_options) {
    MIGRAPHX_HANDLE_CONSTRUCTOR(compile_options)

    compile_options()
    {
        make_handle(&migraphx_compile_options_create);
    }
    void set_offload_copy(bool value = true)
    {
        call(&migraphx_compile_options_set_offload_copy, get_handle_ptr(), value);
    }
    void set_fast_math(bool value = true)
    {
        call(&migraphx_compile_options_set_fast_math, get_handle_ptr(), value);
    }
    void set_exhaustive_tune_flag(bool value = true)
    {
        call(&migraphx_compile_options_set_exhaustive_tune_flag, get_handle_ptr(), value);
    }
};

// What goes through C to a callback of program::run_trace; exceptions must not.
template <class Callback> struct trace_state {
    Callback *callback;
    std::exception_ptr thrown;

    static migraphx_status visit(migraphx_trace_info_t info, void *data)
    {
        auto *self = static_cast<trace_state *>(data);
        try {
            // Of its own, so that what a callback keeps of it lives on.
            trace_info kept{make<migraphx_trace_info>(&migraphx_trace_info_create), own{}};
            call(&migraphx_trace_info_assign_to, kept.get_handle_ptr(), info);
            (*self->callback)(kept);
            return migraphx_status_success;
        } catch (...) {
            self->thrown = std::current_exception();
            return migraphx_status_unknown_error;
        }
    }
};

struct program : MIGRAPHX_HANDLE_BASE(program) {
    MIGRAPHX_HANDLE_CONSTRUCTOR(program)

    program()
    {
        make_handle(&migraphx_program_create);
    }

    void compile(const target &t, const compile_options &options) const
    {
        call(&migraphx_program_compile, get_handle_ptr(), t.get_handle_ptr(),
             options.get_handle_ptr());
    }
    void compile(const target &t) const
    {
        compile(t, compile_options{});
    }
    program_parameter_shapes get_parameter_shapes() const
    {
        return {make<migraphx_program_parameter_shapes>(&migraphx_program_get_parameter_shapes,
                                                        get_handle_ptr()),
                own{}};
    }
    shapes get_output_shapes() const
    {
        return {make<migraphx_shapes>(&migraphx_program_get_output_shapes, get_handle_ptr()),
                own{}};
    }
    arguments eval(const program_parameters &params) const
    {
        return {make<migraphx_arguments>(&migraphx_program_run, get_handle_ptr(),
                                         params.get_handle_ptr()),
                own{}};
    }
    // callback(trace_info) after every instruction. A std::runtime_error that it throws comes out
    // of this call; anything else becomes one, with the text of a std::exception, and lies nested
    // in it (std::rethrow_if_nested).
    template <class Callback>
    arguments run_trace(const program_parameters &params, Callback callback) const
    {
        trace_state<Callback> s{&callback, nullptr};
        migraphx_arguments_t result = nullptr;
        const migraphx_status status = migraphx_program_run_trace(
            &result, get_handle_ptr(), params.get_handle_ptr(), &trace_state<Callback>::visit, &s);
        if (s.thrown)
            rethrow_as_runtime_error(s.thrown);
        check_status(status);
        return {result, own{}};
    }
    // The stream's type name travels with it: "ihipStream_t".
    template <class Stream>
    arguments run_async(const program_parameters &params, Stream *stream) const
    {
        return {make<migraphx_arguments>(&migraphx_program_run_async, get_handle_ptr(),
                                         params.get_handle_ptr(), stream,
                                         get_type_name<Stream>().c_str()),
                own{}};
    }
    void print() const
    {
        call(&migraphx_program_print, get_handle_ptr());
    }
    program sort()
    {
        call(&migraphx_program_sort, get_handle_ptr());
        return *this;
    }
    module get_main_module()
    {
        migraphx_module_t result = nullptr;
        call(&migraphx_program_get_main_module, &result, get_handle_ptr());
        return {result, share_handle()};
    }
    module create_module(const std::string &name)
    {
        migraphx_module_t result = nullptr;
        call(&migraphx_program_create_module, &result, get_handle_ptr(), name.c_str());
        return {result, share_handle()};
    }
    context experimental_get_context()
    {
        migraphx_context_t result = nullptr;
        call(&migraphx_program_experimental_get_context, &result, get_handle_ptr());
        return {result, share_handle()};
    }

    friend bool operator==(const program &x, const program &y)
    {
        bool result = false;
        call(&migraphx_program_equal, &result, x.get_handle_ptr(), y.get_handle_ptr());
        return result;
    }
    friend bool operator!=(const program &x, const program &y)
    {
        return !(x == y);
    }
};

// --- files ---

struct file_options : MIGRAPHX_HANDLE_BASE(file_options) {
    MIGRAPHX_HANDLE_CONSTRUCTOR(file_options)

    file_options()
    {
        make_handle(&migraphx_file_options_create);
    }
    void set_file_format(const char *format)
    {
        call(&migraphx_file_options_set_file_format, get_handle_ptr(), format);
    }
    // Beyond MIGraphX (extensions.h): one file for several machines. The form lives until it is saved.
    void add_form(const program &form)
    {
        call(&migraphx_file_options_add_form, get_handle_ptr(), form.get_handle_ptr());
    }
    void set_target(const char *name)
    {
        call(&migraphx_file_options_set_target, get_handle_ptr(), name);
    }
    void set_portable(bool value = true)
    {
        call(&migraphx_file_options_set_portable, get_handle_ptr(), value);
    }
    void set_trusted(bool value = true)
    {
        call(&migraphx_file_options_set_trusted, get_handle_ptr(), value);
    }
};

inline program load(const char *filename, const file_options &options)
{
    return {make<migraphx_program>(&migraphx_load, filename, options.get_handle_ptr()), own{}};
}

inline program load(const char *filename)
{
    return load(filename, file_options{});
}

inline void save(const program &p, const char *filename, const file_options &options)
{
    call(&migraphx_save, p.get_handle_ptr(), filename, options.get_handle_ptr());
}

inline void save(const program &p, const char *filename)
{
    save(p, filename, file_options{});
}

} // namespace api
} // namespace migraphx

#include <migraphx/api/custom_op.hpp>
#include <migraphx/api/generator.hpp>
#include <migraphx/api/models.hpp>

#endif
