// SPDX-License-Identifier: MIT
// The ground of the C++ interface: calling C, who owns a handle, containers. See migraphx.hpp.
#ifndef MIGRAPHX_GUARD_API_HANDLE_HPP
#define MIGRAPHX_GUARD_API_HANDLE_HPP

#include <migraphx/extensions.h>
#include <migraphx/migraphx.h>

// Programs written for MIGraphX rely on what its header includes, std::cout above all.
#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <iostream>
#include <iterator>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#define MIGRAPHX_DEPRECATED(...) [[deprecated(__VA_ARGS__)]]

namespace migraphx
{
inline namespace api
{

// --- calling C ---

template <int N> struct rank : rank<N - 1> {
};

template <> struct rank<0> {
};

inline void check_status(migraphx_status status)
{
    if (status == migraphx_status_success)
        return;
    const char *text = "";
    migraphx_get_last_error(&text);
    throw std::runtime_error(*text ? text : "Failed to call function");
}

// Throws what was thrown, or where that is no std::runtime_error, one around it.
[[noreturn]] inline void rethrow_as_runtime_error(const std::exception_ptr &thrown)
{
    try {
        std::rethrow_exception(thrown);
    } catch (const std::runtime_error &) {
        throw;
    } catch (const std::exception &e) {
        std::throw_with_nested(std::runtime_error(e.what()));
    } catch (...) {
        std::throw_with_nested(std::runtime_error("Failed to call function"));
    }
}

template <class F, class... Ts> void call(F f, Ts &&...xs)
{
    check_status(f(std::forward<Ts>(xs)...));
}

// The handle that a create function gives through its first parameter.
template <class T, class F, class... Ts> T *make(F f, Ts &&...xs)
{
    T *result = nullptr;
    check_status(f(&result, std::forward<Ts>(xs)...));
    return result;
}

// What stands between "T = " and the next ';' or ']' (GCC, Clang), or in get_type_name<...> (MSVC).
inline std::string extract_type_name(const std::string &function)
{
    const auto gnu = function.find("T = ");
    if (gnu != std::string::npos)
        return function.substr(gnu + 4, function.find_first_of(";]", gnu) - gnu - 4);
    const auto begin = function.find("get_type_name<") + 14;
    const std::string name = function.substr(begin, function.rfind(">(void)") - begin);
    return name.compare(0, 7, "struct ") == 0 ? name.substr(7) : name;
}

// "ihipStream_t": a type's name as the compiler writes it.
template <class T> const std::string &get_type_name()
{
#if defined(_MSC_VER)
    static const std::string name = extract_type_name(__FUNCSIG__);
#else
    static const std::string name = extract_type_name(__PRETTY_FUNCTION__);
#endif
    return name;
}

template <class T> const std::string &get_type_name(const T &)
{
    return get_type_name<T>();
}

// --- containers of the interface as C++ containers ---

template <class F, class Iterator = std::size_t> struct iota_iterator {
    Iterator index;
    F f;

    using difference_type = std::ptrdiff_t;
    using reference = decltype(f(std::declval<Iterator>()));
    using value_type = typename std::remove_reference<reference>::type;
    using pointer = typename std::add_pointer<value_type>::type;
    using iterator_category = std::input_iterator_tag;

    reference operator*() const
    {
        return f(index);
    }
    iota_iterator &operator++()
    {
        index++;
        return *this;
    }
    iota_iterator operator++(int)
    {
        iota_iterator before = *this;
        index++;
        return before;
    }
    iota_iterator &operator--()
    {
        index--;
        return *this;
    }
    iota_iterator operator--(int)
    {
        iota_iterator before = *this;
        index--;
        return before;
    }
    iota_iterator &operator+=(difference_type n)
    {
        index = static_cast<Iterator>(index + static_cast<Iterator>(n));
        return *this;
    }
    iota_iterator &operator-=(difference_type n)
    {
        return *this += -n;
    }
    friend iota_iterator operator+(iota_iterator x, difference_type n)
    {
        return x += n;
    }
    friend iota_iterator operator-(iota_iterator x, difference_type n)
    {
        return x -= n;
    }
    friend iota_iterator operator+(iota_iterator x, iota_iterator y)
    {
        return {x.index + y.index, x.f};
    }
    friend iota_iterator operator-(iota_iterator x, iota_iterator y)
    {
        return {x.index - y.index, x.f};
    }
    friend bool operator==(const iota_iterator &x, const iota_iterator &y)
    {
        return x.index == y.index;
    }
    friend bool operator!=(const iota_iterator &x, const iota_iterator &y)
    {
        return x.index != y.index;
    }
};

// Adds the usual members to a class with size() and operator[].
template <class Derived> struct array_base {
    const Derived &derived() const
    {
        return static_cast<const Derived &>(*this);
    }

    template <class T> using value_type_t = decltype(std::declval<T>()[0]);

    struct iterator_read {
        const Derived *self;
        auto operator()(std::size_t index) const -> value_type_t<Derived>
        {
            return (*self)[index];
        }
    };

    template <class T = Derived> using iterator_t = iota_iterator<typename T::iterator_read>;

    template <class T = Derived> value_type_t<T> front() const
    {
        return derived()[0];
    }
    template <class T = Derived> value_type_t<T> back() const
    {
        return derived()[derived().size() - 1];
    }
    bool empty() const
    {
        return derived().size() == 0;
    }
    template <class T = Derived> iterator_t<T> begin() const
    {
        return {0, {&derived()}};
    }
    template <class T = Derived> iterator_t<T> end() const
    {
        return {derived().size(), {&derived()}};
    }
};

// --- who owns a handle ---

struct own {
};

struct borrow {
};

// Part of something that has to live as long.
template <class T> struct share {
    share(std::shared_ptr<T> p) : ptr(std::move(p))
    {
    }
    template <class U> std::shared_ptr<U> alias(U *p) const
    {
        return std::shared_ptr<U>{ptr, p};
    }

  private:
    std::shared_ptr<T> ptr;
};

// The class over a C type: as_handle<migraphx_shape_t> is shape.
template <class T> struct handle_class;

template <class T>
using as_handle = typename handle_class<
    typename std::remove_cv<typename std::remove_pointer<T>::type>::type>::type;

template <class Derived, class T, class D, D Destroy, class A, A Assign> struct handle_base {
    using handle_type = T;

    handle_base() : m_handle(nullptr)
    {
    }

    template <class F, class... Ts> void make_handle(F f, Ts &&...xs)
    {
        using bare = typename std::remove_cv<T>::type;
        set_handle(make<bare>(f, std::forward<Ts>(xs)...), own{});
    }

    const std::shared_ptr<T> &get_handle() const
    {
        return m_handle;
    }
    // Const classes hand out const pointers; the C functions take what they need.
    T *get_handle_ptr() const
    {
        return m_handle.get();
    }

    void set_handle(T *ptr, own)
    {
        using bare = typename std::remove_cv<T>::type;
        m_handle = std::shared_ptr<T>{ptr, [](T *p) { Destroy(const_cast<bare *>(p)); }};
    }
    void set_handle(T *ptr, borrow)
    {
        m_handle = std::shared_ptr<T>{ptr, [](T *) {}};
    }
    template <class U> void set_handle(T *ptr, const share<U> &whole)
    {
        m_handle = whole.alias(ptr);
    }

    share<T> share_handle() const
    {
        return share<T>{m_handle};
    }

    template <class U> void assign_to_handle(U *x)
    {
        call(Assign, x, get_handle_ptr());
    }

  protected:
    std::shared_ptr<T> m_handle;
};

// Of borrowed things that nobody destroys.
inline migraphx_status no_destroy(void *)
{
    return migraphx_status_success;
}

inline migraphx_status no_assign(void *, const void *)
{
    return migraphx_status_bad_param;
}

#define MIGRAPHX_DETAIL_HANDLE_BASE(name, const_)                                                  \
    handle_base<name, const_ migraphx_##name, decltype(&migraphx_##name##_destroy),                \
                migraphx_##name##_destroy, decltype(&migraphx_##name##_assign_to),                 \
                migraphx_##name##_assign_to>
#define MIGRAPHX_HANDLE_BASE(name) MIGRAPHX_DETAIL_HANDLE_BASE(name, )
#define MIGRAPHX_CONST_HANDLE_BASE(name) MIGRAPHX_DETAIL_HANDLE_BASE(name, const)
#define MIGRAPHX_BORROWED_HANDLE_BASE(name)                                                        \
    handle_base<name, migraphx_##name, decltype(&no_destroy), no_destroy, decltype(&no_assign),    \
                no_assign>

// Every class can be made of a C handle and a word about its life.
#define MIGRAPHX_HANDLE_CONSTRUCTOR(name)                                                          \
    template <                                                                                     \
        class HandleType, class Lifetime,                                                          \
        class = typename std::enable_if<std::is_convertible<HandleType *, handle_type *>{}>::type> \
    name(HandleType *p, Lifetime lifetime)                                                         \
    {                                                                                              \
        this->set_handle(p, std::move(lifetime));                                                  \
    }

#define MIGRAPHX_DETAIL_CLASS_OF(name)                                                             \
    struct name;                                                                                   \
    template <> struct handle_class<::migraphx_##name> {                                           \
        using type = name;                                                                         \
    };

MIGRAPHX_DETAIL_CLASS_OF(optimals)
MIGRAPHX_DETAIL_CLASS_OF(dynamic_dimension)
MIGRAPHX_DETAIL_CLASS_OF(dynamic_dimensions)
MIGRAPHX_DETAIL_CLASS_OF(shape)
MIGRAPHX_DETAIL_CLASS_OF(argument)
MIGRAPHX_DETAIL_CLASS_OF(target)
MIGRAPHX_DETAIL_CLASS_OF(program_parameter_shapes)
MIGRAPHX_DETAIL_CLASS_OF(program_parameters)
MIGRAPHX_DETAIL_CLASS_OF(arguments)
MIGRAPHX_DETAIL_CLASS_OF(shapes)
MIGRAPHX_DETAIL_CLASS_OF(instruction)
MIGRAPHX_DETAIL_CLASS_OF(instructions)
MIGRAPHX_DETAIL_CLASS_OF(modules)
MIGRAPHX_DETAIL_CLASS_OF(module)
MIGRAPHX_DETAIL_CLASS_OF(trace_info)
MIGRAPHX_DETAIL_CLASS_OF(program)
MIGRAPHX_DETAIL_CLASS_OF(operation)
MIGRAPHX_DETAIL_CLASS_OF(onnx_options)
MIGRAPHX_DETAIL_CLASS_OF(file_options)
MIGRAPHX_DETAIL_CLASS_OF(compile_options)
MIGRAPHX_DETAIL_CLASS_OF(tf_options)
MIGRAPHX_DETAIL_CLASS_OF(quantize_op_names)
MIGRAPHX_DETAIL_CLASS_OF(quantize_int8_options)
MIGRAPHX_DETAIL_CLASS_OF(quantize_fp8_options)
MIGRAPHX_DETAIL_CLASS_OF(quantize_options)
MIGRAPHX_DETAIL_CLASS_OF(context)
MIGRAPHX_DETAIL_CLASS_OF(experimental_custom_op)

} // namespace api
} // namespace migraphx

#endif
