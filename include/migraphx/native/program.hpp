// SPDX-License-Identifier: MIT
// target, instruction_ref, module and program of MIGraphX's guides; see native.hpp.
#ifndef MIGRAPHX_GUARD_NATIVE_PROGRAM_HPP
#define MIGRAPHX_GUARD_NATIVE_PROGRAM_HPP

#include <migraphx/native/value.hpp>

#include <functional>
#include <map>
#include <unordered_map>

namespace migraphx
{
inline namespace version_1
{

using parameter_map = std::unordered_map<std::string, argument>;

struct compile_options {
    bool offload_copy = false;
    bool fast_math = true;
    bool exhaustive_tune_flag = false;
    int device_id = 0;
};

namespace detail
{

// Devices are chosen by number; a host has one.
inline void require_device(int device_id)
{
    if (device_id != 0)
        throw std::runtime_error("there is no device " + std::to_string(device_id));
}

using parameters_handle =
    unique_handle<migraphx_program_parameters, migraphx_program_parameters_destroy>;

inline parameters_handle make_parameters(const parameter_map &params)
{
    parameters_handle h{make<migraphx_program_parameters>(migraphx_program_parameters_create)};
    for (const auto &item : params)
        call(migraphx_program_parameters_add(h.get(), item.first.c_str(), item.second.handle()));
    return h;
}

} // namespace detail

// A target by name; whether it is built in turns out when it is used.
struct target {
    explicit target(std::string name) : m_name(std::move(name))
    {
    }
    const std::string &name() const
    {
        return m_name;
    }
    detail::unique_handle<migraphx_target, migraphx_target_destroy> handle() const
    {
        return detail::unique_handle<migraphx_target, migraphx_target_destroy>{
            detail::make<migraphx_target>(migraphx_target_create, m_name.c_str())};
    }

  private:
    std::string m_name;
};

inline target make_target(const std::string &name)
{
    return target(name);
}

namespace gpu
{
struct target : version_1::target {
    target() : version_1::target("gpu")
    {
    }
};
} // namespace gpu

namespace cpu
{
struct target : version_1::target {
    target() : version_1::target("cpu")
    {
    }
};
} // namespace cpu

namespace ref
{
struct target : version_1::target {
    target() : version_1::target("ref")
    {
    }
};
} // namespace ref

// --- instructions ---

struct instruction {
    std::string name() const
    {
        const char *name = "";
        detail::call(migraphx_instruction_name(&name, m_handle.get()));
        return name;
    }
    shape get_shape() const
    {
        return shape(detail::make<migraphx_shape>(migraphx_instruction_shape, handle()));
    }
    std::vector<class instruction_ref> inputs() const;
    std::vector<class instruction_ref> outputs() const;
    argument get_literal() const
    {
        return argument(detail::make<migraphx_argument>(migraphx_instruction_literal, handle()));
    }
    const_migraphx_instruction_t handle() const
    {
        return m_handle.get();
    }

  private:
    friend class instruction_ref;
    std::shared_ptr<migraphx_instruction> m_handle;
};

// Refers to an instruction of a module, as a pointer does; lives no longer than the program.
class instruction_ref
{
  public:
    instruction_ref() = default;
    explicit instruction_ref(migraphx_instruction_t take)
    {
        m_ins.m_handle = std::shared_ptr<migraphx_instruction>(take, migraphx_instruction_destroy);
    }
    const instruction *operator->() const
    {
        return &m_ins;
    }
    const instruction &operator*() const
    {
        return m_ins;
    }
    friend bool operator==(const instruction_ref &x, const instruction_ref &y)
    {
        bool same = false;
        detail::call(migraphx_instruction_equal(&same, x->handle(), y->handle()));
        return same;
    }
    friend bool operator!=(const instruction_ref &x, const instruction_ref &y)
    {
        return !(x == y);
    }

  private:
    instruction m_ins;
};

namespace detail
{

using instructions_handle = unique_handle<migraphx_instructions, migraphx_instructions_destroy>;

inline instructions_handle make_instructions(const std::vector<instruction_ref> &list)
{
    std::vector<const_migraphx_instruction_t> handles;
    for (const auto &ins : list)
        handles.push_back(ins->handle());
    return instructions_handle{
        make<migraphx_instructions>(migraphx_instructions_create, handles.data(), handles.size())};
}

inline std::vector<instruction_ref> list(migraphx_instructions_t take)
{
    const instructions_handle h{take};
    std::size_t size = 0;
    call(migraphx_instructions_size(&size, take));
    std::vector<instruction_ref> result;
    for (std::size_t i = 0; i < size; i++)
        result.emplace_back(make<migraphx_instruction>(migraphx_instructions_get, take, i));
    return result;
}

} // namespace detail

inline std::vector<instruction_ref> instruction::inputs() const
{
    return detail::list(detail::make<migraphx_instructions>(migraphx_instruction_inputs, handle()));
}

inline std::vector<instruction_ref> instruction::outputs() const
{
    return detail::list(
        detail::make<migraphx_instructions>(migraphx_instruction_outputs, handle()));
}

// --- modules: they belong to a program, which hands out pointers to them ---

struct module {
    explicit module(migraphx_module_t handle) : m_handle(handle)
    {
    }
    module(const module &) = delete;
    module &operator=(const module &) = delete;

    std::string name() const
    {
        const char *name = "";
        detail::call(migraphx_module_name(&name, m_handle));
        return name;
    }
    instruction_ref add_parameter(const std::string &name, const shape &s)
    {
        return added(migraphx_module_add_parameter, name.c_str(), s.handle());
    }
    instruction_ref add_literal(const literal &l)
    {
        return added(migraphx_module_add_literal, l.get_shape().handle(), l.data());
    }
    template <class... Ts> instruction_ref add_literal(const shape &s, const Ts &...values)
    {
        return add_literal(literal(s, values...));
    }
    instruction_ref add_instruction(const operation &op, const std::vector<instruction_ref> &args)
    {
        return added(migraphx_module_add_instruction, op.handle(),
                     detail::make_instructions(args).get());
    }
    instruction_ref add_instruction(const operation &op, const std::vector<instruction_ref> &args,
                                    const std::vector<module *> &bodies)
    {
        std::vector<migraphx_module_t> handles;
        for (auto *body : bodies)
            handles.push_back(body->m_handle);
        detail::unique_handle<migraphx_modules, migraphx_modules_destroy> list{
            detail::make<migraphx_modules>(migraphx_modules_create, handles.data(),
                                           handles.size())};
        return added(migraphx_module_add_instruction_with_mod_args, op.handle(),
                     detail::make_instructions(args).get(), list.get());
    }
    template <class... Ts>
    instruction_ref add_instruction(const operation &op, const instruction_ref &first,
                                    const Ts &...more)
    {
        return add_instruction(op, std::vector<instruction_ref>{first, more...});
    }
    instruction_ref add_return(const std::vector<instruction_ref> &args)
    {
        return added(migraphx_module_add_return, detail::make_instructions(args).get());
    }
    std::vector<instruction_ref> get_instructions() const
    {
        return detail::list(
            detail::make<migraphx_instructions>(migraphx_module_instructions, m_handle));
    }
    migraphx_module_t handle() const
    {
        return m_handle;
    }
    friend std::ostream &operator<<(std::ostream &os, const module &m)
    {
        char *text = nullptr;
        detail::call(migraphx_module_to_string(&text, m.m_handle));
        return os << detail::take(text);
    }

  private:
    migraphx_module_t m_handle;

    template <class F, class... Ts> instruction_ref added(F f, Ts... xs)
    {
        return instruction_ref(detail::make<migraphx_instruction>(f, m_handle, xs...));
    }
};

// --- programs ---

struct program {
    program() : program(detail::make<migraphx_program>(migraphx_program_create))
    {
    }
    // Takes the handle over.
    explicit program(migraphx_program_t take) : m_handle(take)
    {
    }
    // A deep copy; of a compiled program a compiled one.
    program(const program &other) : program()
    {
        detail::call(migraphx_program_assign_to(m_handle.get(), other.handle()));
        if (!other.m_target.empty())
            compile(target(other.m_target), other.m_options);
        m_read = other.m_read;
        m_dims = other.m_dims;
    }
    program(program &&) = default;
    program &operator=(program other)
    {
        std::swap(m_handle, other.m_handle);
        std::swap(m_modules, other.m_modules);
        std::swap(m_target, other.m_target);
        std::swap(m_options, other.m_options);
        std::swap(m_read, other.m_read);
        std::swap(m_dims, other.m_dims);
        std::swap(m_others, other.m_others);
        return *this;
    }

    // Who holds a module of a program that is not compiled may change it.
    module *get_main_module()
    {
        if (!is_compiled())
            forget_source();
        migraphx_module_t m = nullptr;
        detail::call(migraphx_program_get_main_module(&m, m_handle.get()));
        return find(m);
    }
    module *create_module(const std::string &name)
    {
        migraphx_module_t m = nullptr;
        detail::call(migraphx_program_create_module(&m, m_handle.get(), name.c_str()));
        return find(m);
    }
    void compile(const target &t, compile_options options = compile_options{})
    {
        using handle =
            detail::unique_handle<migraphx_compile_options, migraphx_compile_options_destroy>;
        detail::require_device(options.device_id);
        handle h{detail::make<migraphx_compile_options>(migraphx_compile_options_create)};
        detail::call(migraphx_compile_options_set_offload_copy(h.get(), options.offload_copy));
        detail::call(migraphx_compile_options_set_fast_math(h.get(), options.fast_math));
        detail::call(migraphx_compile_options_set_exhaustive_tune_flag(
            h.get(), options.exhaustive_tune_flag));
        detail::call(migraphx_program_compile(m_handle.get(), t.handle().get(), h.get()));
        m_target = t.name();
        m_options = options;
    }
    // The same model for other lengths of its inputs: read again, and compiled as this one was.
    // What it was for earlier lengths is kept, so that going back and forth costs nothing. Of
    // programs that parse_onnx gave and nothing has changed since.
    void reshape(const std::unordered_map<std::string, std::vector<std::size_t>> &inputs)
    {
        if (!m_read)
            throw std::runtime_error("reshape: only what parse_onnx gave, and nothing has changed "
                                     "since, can be read again");
        auto dims = m_dims;
        for (const auto &item : inputs)
            dims[item.first] = item.second;
        if (dims == m_dims)
            return;
        const auto kept = m_others.find(dims);
        handle_type next;
        if (kept != m_others.end()) {
            next = std::move(kept->second);
            m_others.erase(kept);
        } else {
            program fresh = m_read(dims);
            if (!m_target.empty())
                fresh.compile(target(m_target), m_options);
            next = std::move(fresh.m_handle);
        }
        m_others[m_dims] = std::move(m_handle);
        m_handle = std::move(next);
        m_dims = dims;
    }
    // How to read it for given lengths, and the lengths it has been read with.
    using input_lens = std::map<std::string, std::vector<std::size_t>>;
    void remember_source(std::function<program(const input_lens &)> read, input_lens dims)
    {
        m_read = std::move(read);
        m_dims = std::move(dims);
    }
    void forget_source()
    {
        m_read = nullptr;
    }
    bool is_compiled() const
    {
        bool compiled = false;
        detail::call(migraphx_program_is_compiled(&compiled, m_handle.get()));
        return compiled;
    }
    std::vector<argument> eval(const parameter_map &params) const
    {
        detail::unique_handle<migraphx_arguments, migraphx_arguments_destroy> results{
            detail::make<migraphx_arguments>(migraphx_program_run, m_handle.get(),
                                             detail::make_parameters(params).get())};
        std::size_t size = 0;
        detail::call(migraphx_arguments_size(&size, results.get()));
        std::vector<argument> list;
        for (std::size_t i = 0; i < size; i++) {
            const_migraphx_argument_t result = nullptr;
            detail::call(migraphx_arguments_get(&result, results.get(), i));
            list.push_back(argument::share(result));
        }
        return list;
    }

    // In the model's order.
    std::vector<std::string> get_parameter_names() const
    {
        std::vector<std::string> names;
        each_parameter([&](const char *name, const_migraphx_shape_t) { names.push_back(name); });
        return names;
    }
    std::unordered_map<std::string, shape> get_parameter_shapes() const
    {
        std::unordered_map<std::string, shape> shapes;
        each_parameter(
            [&](const char *name, const_migraphx_shape_t s) { shapes.emplace(name, copy_of(s)); });
        return shapes;
    }
    shape get_parameter_shape(const std::string &name) const
    {
        const auto shapes = get_parameter_shapes();
        const auto found = shapes.find(name);
        if (found == shapes.end())
            throw std::runtime_error("there is no parameter " + name);
        return found->second;
    }
    std::vector<shape> get_output_shapes() const
    {
        detail::unique_handle<migraphx_shapes, migraphx_shapes_destroy> h{
            detail::make<migraphx_shapes>(migraphx_program_get_output_shapes, m_handle.get())};
        std::size_t size = 0;
        detail::call(migraphx_shapes_size(&size, h.get()));
        std::vector<shape> list;
        for (std::size_t i = 0; i < size; i++) {
            const_migraphx_shape_t s = nullptr;
            detail::call(migraphx_shapes_get(&s, h.get(), i));
            list.push_back(copy_of(s));
        }
        return list;
    }
    void sort()
    {
        detail::call(migraphx_program_sort(m_handle.get()));
    }
    migraphx_program_t handle() const
    {
        return m_handle.get();
    }

    friend bool operator==(const program &x, const program &y)
    {
        bool same = false;
        detail::call(migraphx_program_equal(&same, x.handle(), y.handle()));
        return same;
    }
    friend bool operator!=(const program &x, const program &y)
    {
        return !(x == y);
    }
    friend std::ostream &operator<<(std::ostream &os, const program &p)
    {
        char *text = nullptr;
        detail::call(migraphx_program_to_string(&text, p.handle()));
        return os << detail::take(text);
    }

  private:
    using handle_type = detail::unique_handle<migraphx_program, migraphx_program_destroy>;
    handle_type m_handle;
    std::function<program(const input_lens &)> m_read; // empty: reshape cannot
    input_lens m_dims;
    std::map<input_lens, handle_type> m_others; // for other lengths; modules may point into them
    std::vector<std::unique_ptr<module>> m_modules; // pointers to them were handed out
    std::string m_target;                           // empty: not compiled here
    compile_options m_options;

    module *find(migraphx_module_t handle)
    {
        for (const auto &m : m_modules)
            if (m->handle() == handle)
                return m.get();
        m_modules.push_back(std::unique_ptr<module>(new module(handle)));
        return m_modules.back().get();
    }
    static shape copy_of(const_migraphx_shape_t s)
    {
        detail::unique_handle<migraphx_shape, migraphx_shape_destroy> copy{
            detail::make<migraphx_shape>(migraphx_shape_create_scalar, migraphx_shape_float_type)};
        detail::call(migraphx_shape_assign_to(copy.get(), s));
        return shape(copy.release());
    }
    template <class F> void each_parameter(F f) const
    {
        detail::unique_handle<migraphx_program_parameter_shapes,
                              migraphx_program_parameter_shapes_destroy>
            h{detail::make<migraphx_program_parameter_shapes>(migraphx_program_get_parameter_shapes,
                                                              m_handle.get())};
        std::size_t size = 0;
        detail::call(migraphx_program_parameter_shapes_size(&size, h.get()));
        std::vector<const char *> names(size + 1);
        detail::call(migraphx_program_parameter_shapes_names(names.data(), h.get()));
        for (std::size_t i = 0; i < size; i++) {
            const_migraphx_shape_t s = nullptr;
            detail::call(migraphx_program_parameter_shapes_get(&s, h.get(), names[i]));
            f(names[i], s);
        }
    }
};

} // namespace version_1
} // namespace migraphx

#endif
