// SPDX-License-Identifier: MIT
// Custom operators in C++: a class with virtual members becomes C callbacks. Included by
// migraphx.hpp.
#ifndef MIGRAPHX_GUARD_API_CUSTOM_OP_HPP
#define MIGRAPHX_GUARD_API_CUSTOM_OP_HPP

#include <migraphx/migraphx.hpp>

#include <algorithm>
#include <cstring>

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

// Hands a C++ object's members to C as callbacks; what they throw becomes the message.
template <class T> struct interface_base {
    static migraphx_status copy(void **out, void *input)
    {
        try {
            *out = new T(*static_cast<T *>(input));
            return migraphx_status_success;
        } catch (...) {
            return migraphx_status_unknown_error;
        }
    }
    static migraphx_status destroy(void *input)
    {
        delete static_cast<T *>(input);
        return migraphx_status_success;
    }

  protected:
    template <class F> static migraphx_status guarded(char *message, std::size_t size, F f)
    {
        try {
            f();
            return migraphx_status_success;
        } catch (const std::exception &e) {
            if (message && size) {
                std::strncpy(message, e.what(), size - 1);
                message[size - 1] = '\0';
            }
        } catch (...) {
        }
        return migraphx_status_unknown_error;
    }
};

template <class T> struct custom_op_interface : interface_base<T> {
    static migraphx_status compute(migraphx_argument_t out, void *obj, char *message,
                                   std::size_t size, migraphx_context_t ctx,
                                   migraphx_shape_t output, migraphx_arguments_t inputs)
    {
        return interface_base<T>::guarded(message, size, [&] {
            argument result = static_cast<T *>(obj)->compute(
                context{ctx, borrow{}}, shape{output, borrow{}}, arguments{inputs, borrow{}});
            result.assign_to_handle(out);
        });
    }
    static migraphx_status compute_shape(migraphx_shape_t out, void *obj, char *message,
                                         std::size_t size, migraphx_shapes_t inputs)
    {
        return interface_base<T>::guarded(message, size, [&] {
            static_cast<T *>(obj)->compute_shape(shapes{inputs, borrow{}}).assign_to_handle(out);
        });
    }
    static migraphx_status output_alias(std::size_t *out, std::size_t *out_size, void *obj,
                                        char *message, std::size_t size, migraphx_shapes_t inputs)
    {
        return interface_base<T>::guarded(message, size, [&] {
            const auto list = static_cast<T *>(obj)->output_alias(shapes{inputs, borrow{}});
            if (list.size() > *out_size)
                throw std::runtime_error("too many output aliases");
            std::copy(list.begin(), list.end(), out);
            *out_size = list.size();
        });
    }
    static migraphx_status runs_on_offload_target(bool *out, void *obj, char *message,
                                                  std::size_t size)
    {
        return interface_base<T>::guarded(
            message, size, [&] { *out = static_cast<T *>(obj)->runs_on_offload_target(); });
    }
};

struct experimental_custom_op : MIGRAPHX_HANDLE_BASE(experimental_custom_op) {
    template <class T> explicit experimental_custom_op(T &obj)
    {
        using interface = custom_op_interface<T>;
        make_handle(&migraphx_experimental_custom_op_create, static_cast<void *>(&obj),
                    &interface::copy, &interface::destroy, get_type_name<T>().c_str(),
                    obj.name().c_str());
        call(&migraphx_experimental_custom_op_set_compute, get_handle_ptr(), &interface::compute);
        call(&migraphx_experimental_custom_op_set_compute_shape, get_handle_ptr(),
             &interface::compute_shape);
        call(&migraphx_experimental_custom_op_set_output_alias, get_handle_ptr(),
             &interface::output_alias);
        call(&migraphx_experimental_custom_op_set_runs_on_offload_target, get_handle_ptr(),
             &interface::runs_on_offload_target);
    }

    void register_op()
    {
        call(&migraphx_experimental_custom_op_register, get_handle_ptr());
    }
};

// From now on operation(obj.name().c_str()) is this operator.
template <class T, class = typename std::enable_if<
                       std::is_base_of<experimental_custom_op_base, T>{} &&
                       std::is_copy_constructible<T>{} && std::is_final<T>{}>::type>
void register_experimental_custom_op(T &obj)
{
    experimental_custom_op{obj}.register_op();
}

} // namespace api
} // namespace migraphx

#endif
