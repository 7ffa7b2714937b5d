// SPDX-License-Identifier: MIT
// program of MIGraphX's guides; see native.hpp.
#ifndef MIGRAPHX_GUARD_NATIVE_PROGRAM_HPP
#define MIGRAPHX_GUARD_NATIVE_PROGRAM_HPP

#include <migraphx/compile_options.hpp>
#include <migraphx/native/module.hpp>

#include <functional>
#include <map>
#include <unordered_map>

namespace migraphx
{
inline namespace version_1
{

using parameter_map = std::unordered_map<std::string, argument>;

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
        m_changes = other.m_changes;
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
        std::swap(m_changes, other.m_changes);
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
    // All of them, the main one first.
    std::vector<module *> get_modules()
    {
        const detail::unique_handle<migraphx_modules, migraphx_modules_destroy> h{
            detail::make<migraphx_modules>(migraphx_program_modules, m_handle.get())};
        std::size_t size = 0;
        detail::call(migraphx_modules_size(&size, h.get()));
        std::vector<module *> list;
        for (std::size_t i = 0; i < size; i++) {
            migraphx_module_t m = nullptr;
            detail::call(migraphx_modules_get(&m, h.get(), i));
            list.push_back(find(m));
        }
        return list;
    }
    // nullptr if there is none.
    module *get_module(const std::string &name)
    {
        for (module *m : get_modules())
            if (m->name() == name)
                return m;
        return nullptr;
    }
    void compile(const target &t, compile_options options = compile_options{})
    {
        using handle =
            detail::unique_handle<migraphx_compile_options, migraphx_compile_options_destroy>;
        handle h{detail::make<migraphx_compile_options>(migraphx_compile_options_create)};
        detail::call(migraphx_compile_options_set_offload_copy(h.get(), options.offload_copy));
        detail::call(migraphx_compile_options_set_fast_math(h.get(), options.fast_math));
        detail::call(migraphx_compile_options_set_exhaustive_tune_flag(
            h.get(), options.exhaustive_tune_flag));
        if (options.device_id < 0)
            throw std::runtime_error("there is no device " + std::to_string(options.device_id));
        detail::call(migraphx_compile_options_set_device_id(
            h.get(), static_cast<std::size_t>(options.device_id)));
        detail::call(migraphx_program_compile(m_handle.get(), t.handle().get(), h.get()));
        m_target = t.name();
        m_options = options;
    }
    // The same model for other lengths of its inputs, compiled as this one was:
    // a plan of the model read with open axes, all of which share their weights,
    // or the model read again. What it was for a few other lengths is kept, so that
    // going back and forth costs nothing. Of programs that parse_onnx gave and
    // nothing but quantizing has changed since.
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
        const bool had_own_weights = !m_open;
        handle_type next;
        if (kept != m_others.end()) {
            next = std::move(kept->second);
            m_others.erase(kept);
        } else {
            next = plan_for(dims);
        }
        if (!m_modules.empty() || !m_open || !had_own_weights)
            m_others[m_dims] = std::move(m_handle);
        m_handle = std::move(next);
        m_dims = dims;
        if (m_modules.empty() && m_others.size() > most_others)
            m_others.erase(m_others.begin());
    }
    // How to read it for given lengths, and the lengths it has been read with.
    using input_lens = std::map<std::string, std::vector<std::size_t>>;
    // `open`: with all axes open that the model leaves open.
    void remember_source(std::function<program(const input_lens &, bool open)> read,
                         input_lens dims)
    {
        m_read = std::move(read);
        m_dims = std::move(dims);
    }
    void forget_source()
    {
        m_read = nullptr;
    }
    // Changes the program, and what reshape reads again later in the same way.
    void change(std::function<void(program &)> f)
    {
        f(*this);
        m_changes.push_back(std::move(f));
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
        each_parameter([&](const char *name, const_migraphx_shape_t s) {
            shapes.emplace(name, shape::copy_of(s));
        });
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
            list.push_back(shape::copy_of(s));
        }
        return list;
    }
    program &sort()
    {
        detail::call(migraphx_program_sort(m_handle.get()));
        return *this;
    }
    std::size_t size()
    {
        return get_main_module()->size();
    }
    void debug_print() const
    {
        std::cout << *this << std::endl;
    }
    // As a program in C++, and as a graph for the dot tool.
    void print_cpp(std::ostream &os) const
    {
        os << detail::text_of(migraphx_program_format, m_handle.get(), "cpp");
    }
    void print_graph(std::ostream &os, bool brief = false) const
    {
        os << detail::text_of(migraphx_program_format, m_handle.get(),
                              brief ? "graphviz-brief" : "graphviz");
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
        return os << detail::text_of(migraphx_program_to_string, p.handle());
    }

  private:
    using handle_type = detail::unique_handle<migraphx_program, migraphx_program_destroy>;
    handle_type m_handle;
    std::function<program(const input_lens &, bool)> m_read; // empty: reshape cannot
    input_lens m_dims;
    std::vector<std::function<void(program &)>> m_changes; // what was done to what was read
    std::map<input_lens, handle_type> m_others; // for other lengths; modules may point into them
    handle_type m_open;                         // compiled with open axes; null until it is needed
    static constexpr std::size_t most_others = 8;
    std::vector<std::unique_ptr<module>> m_modules; // pointers to them were handed out
    std::string m_target;                           // empty: not compiled here
    compile_options m_options;

    handle_type make(const input_lens &dims, bool open) const
    {
        program fresh = m_read(dims, open);
        for (const auto &change : m_changes)
            change(fresh);
        if (!m_target.empty())
            fresh.compile(target(m_target), m_options);
        return std::move(fresh.m_handle);
    }
    handle_type plan_for(const input_lens &dims)
    {
        if (m_target.empty())
            return make(dims, false);
        if (!m_open)
            m_open = make(dims, true);
        std::vector<const char *> names;
        std::vector<std::size_t> lens, ranks;
        for (const auto &item : dims) {
            names.push_back(item.first.c_str());
            ranks.push_back(item.second.size());
            lens.insert(lens.end(), item.second.begin(), item.second.end());
        }
        migraphx_program_t plan = nullptr;
        if (migraphx_program_specialise(&plan, m_open.get(), names.data(), lens.data(),
                                        ranks.data(), names.size()) == migraphx_status_success)
            return handle_type{plan};
        return make(dims, false); // axes that the model does not leave open
    }
    module *find(migraphx_module_t handle)
    {
        for (const auto &m : m_modules)
            if (m->handle() == handle)
                return m.get();
        m_modules.push_back(std::unique_ptr<module>(new module(handle)));
        return m_modules.back().get();
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
