// SPDX-License-Identifier: MIT
// Custom operators in C++: a class with virtual members becomes C callbacks. Included by
// migraphx.hpp.
#ifndef MIGRAPHX_GUARD_API_CUSTOM_OP_HPP
#define MIGRAPHX_GUARD_API_CUSTOM_OP_HPP

#include <migraphx/migraphx.hpp>

namespace migraphx
{
inline namespace api
{

struct experimental_custom_op_base {
    experimental_custom_op_base() = default;
    experimental_custom_op_base(const experimental_custom_op_base &) = default;
    experimental_custom_op_base &operator=(const experimental_custom_op_base &) = default;
    virtual ~experimental_custom_op_base() = default;

    virtual std::string name() const = 0;
    // The last input is the memory for the result.
    virtual argument compute(context ctx, shape output, arguments inputs) const = 0;
    virtual shape compute_shape(shapes inputs) const = 0;
    virtual std::vector<std::size_t> output_alias(shapes) const
    {
        return {};
    }
    virtual bool runs_on_offload_target() const = 0;
};

// A handle over a C++ object of the caller's whose members C calls back.
template <class Base> struct interface_base : Base {
    interface_base() : Base()
    {
    }

  protected:
    // Nothing may be thrown through C: a status, and the text where there is room for it.
    template <class F>
    static migraphx_status try_(F f, char *ex_msg = nullptr, std::size_t ex_msg_size = 0)
    {
        try {
            f();
            return migraphx_status_success;
        } catch (const std::exception &e) {
            if (ex_msg && ex_msg_size > 0) {
                std::strncpy(ex_msg, e.what(), ex_msg_size - 1);
                ex_msg[ex_msg_size - 1] = '\0';
            }
        } catch (...) {
        }
        return migraphx_status_unknown_error;
    }
    // `f` creates the handle over a copy of `obj`.
    template <class F, class T, class... Ts> void make_interface(F f, T &obj, Ts &&...xs)
    {
        this->make_handle(f, static_cast<void *>(&obj), &copy<T>, &destroy<T>,
                          std::forward<Ts>(xs)...);
    }

  private:
    template <class T> static migraphx_status copy(void **out, void *input)
    {
        return try_([&] { *out = new T(*static_cast<T *>(input)); });
    }
    template <class T> static migraphx_status destroy(void *input)
    {
        delete static_cast<T *>(input);
        return migraphx_status_success;
    }
};

// A class that an interface can be made of.
template <class Base, class T>
using require_interface = std::enable_if_t<std::is_base_of<Base, T>{} && !std::is_same<T, Base>{} &&
                                           std::is_copy_constructible<T>{} && std::is_final<T>{}>;

struct experimental_custom_op : interface_base<MIGRAPHX_HANDLE_BASE(experimental_custom_op)> {
    template <class T> experimental_custom_op(T &obj)
    {
        make_interface(&migraphx_experimental_custom_op_create, obj, get_type_name<T>().c_str(),
                       obj.name().c_str());
        call(&migraphx_experimental_custom_op_set_compute, get_handle_ptr(), &compute<T>);
        call(&migraphx_experimental_custom_op_set_compute_shape, get_handle_ptr(),
             &compute_shape<T>);
        call(&migraphx_experimental_custom_op_set_output_alias, get_handle_ptr(), &output_alias<T>);
        call(&migraphx_experimental_custom_op_set_runs_on_offload_target, get_handle_ptr(),
             &runs_on_offload_target<T>);
    }

    void register_op()
    {
        call(&migraphx_experimental_custom_op_register, get_handle_ptr());
    }

  private:
    template <class T>
    static migraphx_status compute(migraphx_argument_t out, void *obj, char *message,
                                   std::size_t size, migraphx_context_t ctx,
                                   migraphx_shape_t output, migraphx_arguments_t inputs)
    {
        return try_(
            [&] {
                argument result = static_cast<T *>(obj)->compute(
                    context{ctx, borrow{}}, shape{output, borrow{}}, arguments{inputs, borrow{}});
                result.assign_to_handle(out);
            },
            message, size);
    }
    template <class T>
    static migraphx_status compute_shape(migraphx_shape_t out, void *obj, char *message,
                                         std::size_t size, migraphx_shapes_t inputs)
    {
        return try_(
            [&] {
                shape result = static_cast<T *>(obj)->compute_shape(shapes{inputs, borrow{}});
                result.assign_to_handle(out);
            },
            message, size);
    }
    template <class T>
    static migraphx_status output_alias(std::size_t *out, std::size_t *out_size, void *obj,
                                        char *message, std::size_t size, migraphx_shapes_t inputs)
    {
        return try_(
            [&] {
                const auto list = static_cast<T *>(obj)->output_alias(shapes{inputs, borrow{}});
                if (list.size() > *out_size)
                    throw std::runtime_error("too many output aliases");
                std::copy(list.begin(), list.end(), out);
                *out_size = list.size();
            },
            message, size);
    }
    template <class T>
    static migraphx_status runs_on_offload_target(bool *out, void *obj, char *message,
                                                  std::size_t size)
    {
        return try_([&] { *out = static_cast<T *>(obj)->runs_on_offload_target(); }, message, size);
    }
};

// From now on operation(obj.name().c_str()) is this operator.
template <class T, class = require_interface<experimental_custom_op_base, T>>
void register_experimental_custom_op(T &obj)
{
    experimental_custom_op{obj}.register_op();
}

} // namespace api
} // namespace migraphx

#endif
