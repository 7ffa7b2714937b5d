// SPDX-License-Identifier: MIT
// Dynamic dimensions, shapes and arguments in C++. Included by migraphx.hpp.
#ifndef MIGRAPHX_GUARD_API_TENSOR_HPP
#define MIGRAPHX_GUARD_API_TENSOR_HPP

#include <migraphx/api/handle.hpp>

namespace migraphx
{
inline namespace api
{

// --- dynamic dimensions ---

struct optimals : MIGRAPHX_HANDLE_BASE(optimals) {
    MIGRAPHX_HANDLE_CONSTRUCTOR(optimals)

    optimals(std::initializer_list<std::size_t> values)
    {
        make_handle(&migraphx_optimals_create, values.begin(), values.size());
    }
};

struct dynamic_dimension : MIGRAPHX_CONST_HANDLE_BASE(dynamic_dimension) {
    MIGRAPHX_HANDLE_CONSTRUCTOR(dynamic_dimension)

    dynamic_dimension()
    {
    }
    dynamic_dimension(std::size_t min, std::size_t max)
    {
        make_handle(&migraphx_dynamic_dimension_create_min_max, min, max);
    }
    dynamic_dimension(std::size_t min, std::size_t max, const optimals &values)
    {
        make_handle(&migraphx_dynamic_dimension_create_min_max_optimals, min, max,
                    values.get_handle_ptr());
    }

    bool is_fixed() const
    {
        bool result = false;
        call(&migraphx_dynamic_dimension_is_fixed, &result, get_handle_ptr());
        return result;
    }
    friend bool operator==(const dynamic_dimension &x, const dynamic_dimension &y)
    {
        bool result = false;
        call(&migraphx_dynamic_dimension_equal, &result, x.get_handle_ptr(), y.get_handle_ptr());
        return result;
    }
    friend bool operator!=(const dynamic_dimension &x, const dynamic_dimension &y)
    {
        return !(x == y);
    }
};

struct dynamic_dimensions : MIGRAPHX_HANDLE_BASE(dynamic_dimensions),
                            array_base<dynamic_dimensions> {
    MIGRAPHX_HANDLE_CONSTRUCTOR(dynamic_dimensions)

    template <
        class... Ts,
        class = typename std::enable_if<std::is_same<
            std::integer_sequence<bool, true, std::is_same<Ts, dynamic_dimension>{}...>,
            std::integer_sequence<bool, std::is_same<Ts, dynamic_dimension>{}..., true>>{}>::type>
    dynamic_dimensions(const Ts &...dims)
    {
        std::vector<const_migraphx_dynamic_dimension_t> list{dims.get_handle_ptr()...};
        make_handle(&migraphx_dynamic_dimensions_create, list.data(), list.size());
    }

    std::size_t size() const
    {
        std::size_t result = 0;
        call(&migraphx_dynamic_dimensions_size, &result, get_handle_ptr());
        return result;
    }
    dynamic_dimension operator[](std::size_t index) const
    {
        const_migraphx_dynamic_dimension_t result = nullptr;
        call(&migraphx_dynamic_dimensions_get, &result, get_handle_ptr(), index);
        return {result, share_handle()};
    }
};

// --- shapes and arguments ---

struct shape : MIGRAPHX_CONST_HANDLE_BASE(shape) {
    MIGRAPHX_HANDLE_CONSTRUCTOR(shape)

    shape()
    {
    }
    MIGRAPHX_DEPRECATED("say who owns the handle: shape(p, borrow{})")
    shape(const migraphx_shape *p)
    {
        set_handle(p, borrow{});
    }
    // A scalar.
    shape(migraphx_shape_datatype_t type)
    {
        make_handle(&migraphx_shape_create_scalar, type);
    }
    shape(migraphx_shape_datatype_t type, std::vector<std::size_t> lengths)
    {
        make_handle(&migraphx_shape_create, type, lengths.data(), lengths.size());
    }
    shape(migraphx_shape_datatype_t type, std::initializer_list<std::size_t> lengths)
        : shape(type, std::vector<std::size_t>(lengths))
    {
    }
    shape(migraphx_shape_datatype_t type, std::vector<std::size_t> lengths,
          std::vector<std::size_t> strides)
    {
        make_handle(&migraphx_shape_create_with_strides, type, lengths.data(), lengths.size(),
                    strides.data(), strides.size());
    }
    shape(migraphx_shape_datatype_t type, const dynamic_dimensions &dims)
    {
        make_handle(&migraphx_shape_create_dynamic, type, dims.get_handle_ptr());
    }

    std::vector<std::size_t> lengths() const
    {
        return list(&migraphx_shape_lengths);
    }
    std::vector<std::size_t> strides() const
    {
        return list(&migraphx_shape_strides);
    }
    dynamic_dimensions dyn_dims() const
    {
        return {make<migraphx_dynamic_dimensions>(&migraphx_shape_dyn_dims, get_handle_ptr()),
                own{}};
    }
    migraphx_shape_datatype_t type() const
    {
        return ask<migraphx_shape_datatype_t>(&migraphx_shape_type);
    }
    std::size_t elements() const
    {
        return ask<std::size_t>(&migraphx_shape_elements);
    }
    std::size_t bytes() const
    {
        return ask<std::size_t>(&migraphx_shape_bytes);
    }
    std::size_t ndim() const
    {
        return ask<std::size_t>(&migraphx_shape_ndim);
    }
    bool standard() const
    {
        return ask<bool>(&migraphx_shape_standard);
    }
    bool dynamic() const
    {
        return ask<bool>(&migraphx_shape_dynamic);
    }
    // Element number to offset in memory, in elements.
    std::size_t index(std::size_t i) const
    {
        std::size_t result = 0;
        call(&migraphx_shape_index, &result, get_handle_ptr(), i);
        return result;
    }

    friend bool operator==(const shape &x, const shape &y)
    {
        bool result = false;
        call(&migraphx_shape_equal, &result, x.get_handle_ptr(), y.get_handle_ptr());
        return result;
    }
    friend bool operator!=(const shape &x, const shape &y)
    {
        return !(x == y);
    }

  private:
    template <class T, class F> T ask(F f) const
    {
        T result{};
        call(f, &result, get_handle_ptr());
        return result;
    }
    template <class F> std::vector<std::size_t> list(F f) const
    {
        const std::size_t *data = nullptr;
        std::size_t size = 0;
        call(f, &data, &size, get_handle_ptr());
        return std::vector<std::size_t>(data, data + size);
    }
};

struct argument : MIGRAPHX_CONST_HANDLE_BASE(argument) {
    MIGRAPHX_HANDLE_CONSTRUCTOR(argument)

    argument()
    {
    }
    MIGRAPHX_DEPRECATED("say who owns the handle: argument(p, borrow{})")
    argument(const migraphx_argument *p)
    {
        set_handle(p, borrow{});
    }
    // Memory of its own.
    argument(shape s)
    {
        make_handle(&migraphx_argument_create_empty, s.get_handle_ptr());
    }
    // Borrows the buffer.
    argument(shape s, void *buffer)
    {
        make_handle(&migraphx_argument_create, s.get_handle_ptr(), buffer);
    }

    shape get_shape() const
    {
        const_migraphx_shape_t result = nullptr;
        call(&migraphx_argument_shape, &result, get_handle_ptr());
        return {result, share_handle()};
    }
    char *data() const
    {
        char *result = nullptr;
        call(&migraphx_argument_buffer, &result, get_handle_ptr());
        return result;
    }
    // All elements in row-major order, whatever the strides.
    template <class T> std::vector<T> as_vector() const
    {
        const shape s = get_shape();
        std::vector<T> result(s.elements());
        const T *from = reinterpret_cast<const T *>(data());
        for (std::size_t i = 0; i < result.size(); i++)
            result[i] = from[s.standard() ? i : s.index(i)];
        return result;
    }

    static void save_argument(const argument &a, const std::string &filename)
    {
        call(&migraphx_argument_save, a.get_handle_ptr(), filename.c_str());
    }
    static argument load_argument(const std::string &filename)
    {
        return {make<migraphx_argument>(&migraphx_argument_load, filename.c_str()), own{}};
    }
    static argument generate(shape s, std::size_t seed = 0)
    {
        return {make<migraphx_argument>(&migraphx_argument_generate, s.get_handle_ptr(), seed),
                own{}};
    }

    friend bool operator==(const argument &x, const argument &y)
    {
        bool result = false;
        call(&migraphx_argument_equal, &result, x.get_handle_ptr(), y.get_handle_ptr());
        return result;
    }
    friend bool operator!=(const argument &x, const argument &y)
    {
        return !(x == y);
    }
};

} // namespace api
} // namespace migraphx

#endif
