// SPDX-License-Identifier: MIT
// target, instruction_ref and module of MIGraphX's guides; see native.hpp.
#ifndef MIGRAPHX_GUARD_NATIVE_MODULE_HPP
#define MIGRAPHX_GUARD_NATIVE_MODULE_HPP

#include <migraphx/native/argument.hpp>
#include <migraphx/native/operation.hpp>

#include <iostream>

namespace migraphx
{
inline namespace version_1
{

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
    operation get_operator() const
    {
        return operation(
            detail::make<migraphx_operation>(migraphx_instruction_operation, handle()));
    }
    friend std::ostream &operator<<(std::ostream &os, const instruction &x)
    {
        return os << detail::text_of(migraphx_instruction_to_string, x.handle());
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
    instruction_ref add_instruction(const operation &op)
    {
        return add_instruction(op, std::vector<instruction_ref>{});
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
    instruction_ref replace_return(const std::vector<instruction_ref> &args)
    {
        return add_return(args);
    }
    std::vector<instruction_ref> get_instructions() const
    {
        return detail::list(
            detail::make<migraphx_instructions>(migraphx_module_instructions, m_handle));
    }
    std::size_t size() const
    {
        return get_instructions().size();
    }
    // By name; throws if there is none.
    instruction_ref get_parameter(const std::string &name) const
    {
        for (const auto &ins : get_instructions()) {
            const auto text = detail::text_of(migraphx_instruction_to_string, ins->handle());
            if (ins->name() == "@param" && text.find("@param:" + name + " -> ") != text.npos)
                return ins;
        }
        throw std::runtime_error("there is no parameter " + name);
    }
    void debug_print() const
    {
        std::cout << *this << std::endl;
    }
    migraphx_module_t handle() const
    {
        return m_handle;
    }
    friend bool operator==(const module &x, const module &y)
    {
        return detail::text_of(migraphx_module_to_string, x.m_handle) ==
               detail::text_of(migraphx_module_to_string, y.m_handle);
    }
    friend bool operator!=(const module &x, const module &y)
    {
        return !(x == y);
    }
    friend std::ostream &operator<<(std::ostream &os, const module &m)
    {
        return os << detail::text_of(migraphx_module_to_string, m.m_handle);
    }

  private:
    migraphx_module_t m_handle;

    template <class F, class... Ts> instruction_ref added(F f, Ts... xs)
    {
        return instruction_ref(detail::make<migraphx_instruction>(f, m_handle, xs...));
    }
};

} // namespace version_1
} // namespace migraphx

template <> struct std::hash<migraphx::instruction_ref> {
    std::size_t operator()(const migraphx::instruction_ref &ins) const
    {
        std::size_t result = 0;
        migraphx::detail::call(migraphx_instruction_hash(&result, ins->handle()));
        return result;
    }
};

#endif
