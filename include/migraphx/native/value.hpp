// SPDX-License-Identifier: MIT
// shape, argument, literal and operation of MIGraphX's guides; see native.hpp.
#ifndef MIGRAPHX_GUARD_NATIVE_VALUE_HPP
#define MIGRAPHX_GUARD_NATIVE_VALUE_HPP

#include <migraphx/extensions.h>
#include <migraphx/migraphx.h>

#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <ostream>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace migraphx
{
inline namespace version_1
{

namespace detail
{

inline void call(migraphx_status status)
{
    if (status == migraphx_status_success)
        return;
    const char *text = "";
    migraphx_get_last_error(&text);
    throw std::runtime_error(text);
}

// A handle that ends with its scope.
template <class T, migraphx_status (*Destroy)(T *)> struct destroyer {
    void operator()(T *p) const
    {
        Destroy(p);
    }
};

template <class T, migraphx_status (*Destroy)(T *)>
using unique_handle = std::unique_ptr<T, destroyer<T, Destroy>>;

template <class T, class F, class... Ts> T *make(F f, Ts... xs)
{
    T *result = nullptr;
    call(f(&result, xs...));
    return result;
}

inline std::string take(char *text)
{
    const std::string result = text;
    migraphx_string_destroy(text);
    return result;
}

} // namespace detail

struct shape {
    enum type_t {
        bool_type,
        half_type,
        float_type,
        double_type,
        uint8_type,
        int8_type,
        uint16_type,
        int16_type,
        int32_type,
        int64_type,
        uint32_type,
        uint64_type,
        fp8e4m3fnuz_type,
        fp8e4m3fn_type,
        fp8e5m2_type,
        bf16_type,
        fp8e5m2fnuz_type,
        tuple_type,
        fp4x2_type
    };

    struct dynamic_dimension {
        std::size_t min = 0, max = 0;
        std::set<std::size_t> optimals{};

        bool is_fixed() const
        {
            return min == max;
        }
    };

    shape() : shape(float_type)
    {
    }
    shape(type_t type)
    {
        hold(detail::make<migraphx_shape>(migraphx_shape_create_scalar, outside(type)));
    }
    shape(type_t type, std::vector<std::size_t> lens)
    {
        hold(detail::make<migraphx_shape>(migraphx_shape_create, outside(type), lens.data(),
                                          lens.size()));
    }
    shape(type_t type, std::initializer_list<std::size_t> lens)
        : shape(type, std::vector<std::size_t>(lens))
    {
    }
    shape(type_t type, std::vector<std::size_t> lens, std::vector<std::size_t> strides)
    {
        hold(detail::make<migraphx_shape>(migraphx_shape_create_with_strides, outside(type),
                                          lens.data(), lens.size(), strides.data(),
                                          strides.size()));
    }
    shape(type_t type, const std::vector<dynamic_dimension> &dims);
    // Takes the handle over.
    explicit shape(migraphx_shape_t take)
    {
        hold(take);
    }

    type_t type() const
    {
        migraphx_shape_datatype_t type;
        std::size_t number = 0;
        detail::call(migraphx_shape_type(&type, handle()));
        detail::call(migraphx_type_attribute_number(&number, type));
        return static_cast<type_t>(number);
    }
    const std::vector<std::size_t> &lens() const
    {
        return m_state->lens;
    }
    const std::vector<std::size_t> &strides() const
    {
        return m_state->strides;
    }
    std::size_t ndim() const
    {
        return ask<std::size_t>(migraphx_shape_ndim);
    }
    std::size_t elements() const
    {
        return ask<std::size_t>(migraphx_shape_elements);
    }
    std::size_t bytes() const
    {
        return ask<std::size_t>(migraphx_shape_bytes);
    }
    std::size_t type_size() const
    {
        migraphx_shape_datatype_t type;
        std::size_t size = 0;
        detail::call(migraphx_shape_type(&type, handle()));
        detail::call(migraphx_type_size(&size, type));
        return size;
    }
    std::string type_string() const
    {
        migraphx_shape_datatype_t type;
        const char *name = "";
        detail::call(migraphx_shape_type(&type, handle()));
        detail::call(migraphx_type_name(&name, type));
        return name;
    }
    bool packed() const
    {
        return ask<bool>(migraphx_shape_packed);
    }
    bool transposed() const
    {
        return ask<bool>(migraphx_shape_transposed);
    }
    bool broadcasted() const
    {
        return ask<bool>(migraphx_shape_broadcasted);
    }
    bool standard() const
    {
        return ask<bool>(migraphx_shape_standard);
    }
    bool scalar() const
    {
        return ask<bool>(migraphx_shape_scalar);
    }
    bool dynamic() const
    {
        return ask<bool>(migraphx_shape_dynamic);
    }
    // Element number to offset in memory, in elements.
    std::size_t index(std::size_t i) const
    {
        std::size_t result = 0;
        detail::call(migraphx_shape_index(&result, handle(), i));
        return result;
    }
    const_migraphx_shape_t handle() const
    {
        return m_state->handle.get();
    }

    friend bool operator==(const shape &x, const shape &y)
    {
        bool same = false;
        detail::call(migraphx_shape_equal(&same, x.handle(), y.handle()));
        return same;
    }
    friend bool operator!=(const shape &x, const shape &y)
    {
        return !(x == y);
    }
    friend std::ostream &operator<<(std::ostream &os, const shape &x)
    {
        char *text = nullptr;
        detail::call(migraphx_shape_to_string(&text, x.handle()));
        return os << detail::take(text);
    }

  private:
    struct state {
        detail::unique_handle<migraphx_shape, migraphx_shape_destroy> handle;
        std::vector<std::size_t> lens, strides;
    };
    std::shared_ptr<const state> m_state; // never changes

    static migraphx_shape_datatype_t outside(type_t type)
    {
        static const migraphx_shape_datatype_t types[] = {
            MIGRAPHX_SHAPE_VISIT_TYPES(MIGRAPHX_SHAPE_GENERATE_ENUM_TYPES)
                migraphx_shape_tuple_type,
            migraphx_shape_fp4x2_type};
        return types[type];
    }
    template <class T, class F> T ask(F f) const
    {
        T result{};
        detail::call(f(&result, handle()));
        return result;
    }
    void hold(migraphx_shape_t take)
    {
        auto s = std::make_shared<state>();
        s->handle.reset(take);
        bool dynamic = false;
        detail::call(migraphx_shape_dynamic(&dynamic, take));
        if (!dynamic) {
            const std::size_t *values = nullptr;
            std::size_t size = 0;
            detail::call(migraphx_shape_lengths(&values, &size, take));
            s->lens.assign(values, values + size);
            detail::call(migraphx_shape_strides(&values, &size, take));
            s->strides.assign(values, values + size);
        }
        m_state = s;
    }
};

namespace detail
{

using dim_handle = unique_handle<migraphx_dynamic_dimension, migraphx_dynamic_dimension_destroy>;
using dims_handle = unique_handle<migraphx_dynamic_dimensions, migraphx_dynamic_dimensions_destroy>;

inline dim_handle make_dim(const shape::dynamic_dimension &d)
{
    const std::vector<std::size_t> values(d.optimals.begin(), d.optimals.end());
    unique_handle<migraphx_optimals, migraphx_optimals_destroy> optimals{
        make<migraphx_optimals>(migraphx_optimals_create, values.data(), values.size())};
    return dim_handle{make<migraphx_dynamic_dimension>(
        migraphx_dynamic_dimension_create_min_max_optimals, d.min, d.max, optimals.get())};
}

inline dims_handle make_dims(const std::vector<shape::dynamic_dimension> &dims)
{
    std::vector<dim_handle> owned;
    std::vector<const_migraphx_dynamic_dimension_t> list;
    for (const auto &d : dims) {
        owned.push_back(make_dim(d));
        list.push_back(owned.back().get());
    }
    return dims_handle{make<migraphx_dynamic_dimensions>(migraphx_dynamic_dimensions_create,
                                                         list.data(), list.size())};
}

} // namespace detail

inline shape::shape(type_t type, const std::vector<dynamic_dimension> &dims)
{
    hold(detail::make<migraphx_shape>(migraphx_shape_create_dynamic, outside(type),
                                      detail::make_dims(dims).get()));
}

// Copies share their bytes.
struct argument {
    argument() = default;
    // Memory of its own.
    explicit argument(const shape &s)
        : argument(detail::make<migraphx_argument>(migraphx_argument_create_empty, s.handle()))
    {
    }
    // Borrows the data.
    template <class T>
    argument(const shape &s, T *data)
        : argument(
              detail::make<migraphx_argument>(migraphx_argument_create, s.handle(),
                                              const_cast<void *>(static_cast<const void *>(data))))
    {
    }
    // Takes the handle over.
    explicit argument(migraphx_argument_t take) : m_handle(take, migraphx_argument_destroy)
    {
        m_shape = copy_of(shape_of(take));
    }

    const shape &get_shape() const
    {
        return m_shape;
    }
    char *data() const
    {
        char *result = nullptr;
        if (m_handle)
            detail::call(migraphx_argument_buffer(&result, m_handle.get()));
        return result;
    }
    template <class T> T *cast() const
    {
        return reinterpret_cast<T *>(data());
    }
    template <class T> T at(std::size_t i = 0) const
    {
        return cast<T>()[m_shape.index(i)];
    }
    // All elements in row-major order, whatever the strides.
    template <class T> std::vector<T> to_vector() const
    {
        std::vector<T> result(m_shape.elements());
        for (std::size_t i = 0; i < result.size(); i++)
            result[i] = at<T>(i);
        return result;
    }
    bool empty() const
    {
        return !m_handle;
    }
    const_migraphx_argument_t handle() const
    {
        return m_handle.get();
    }

    friend bool operator==(const argument &x, const argument &y)
    {
        bool same = x.empty() && y.empty();
        if (!x.empty() && !y.empty())
            detail::call(migraphx_argument_equal(&same, x.handle(), y.handle()));
        return same;
    }
    friend bool operator!=(const argument &x, const argument &y)
    {
        return !(x == y);
    }
    friend std::ostream &operator<<(std::ostream &os, const argument &x)
    {
        char *text = nullptr;
        detail::call(migraphx_argument_to_string(&text, x.handle()));
        return os << detail::take(text);
    }

    // Of a borrowed handle.
    static argument share(const_migraphx_argument_t other)
    {
        argument result{shape{}};
        detail::call(migraphx_argument_assign_to(result.m_handle.get(), other));
        result.m_shape = copy_of(shape_of(other));
        return result;
    }

  private:
    std::shared_ptr<migraphx_argument> m_handle;
    shape m_shape;

    static const_migraphx_shape_t shape_of(const_migraphx_argument_t a)
    {
        const_migraphx_shape_t s = nullptr;
        detail::call(migraphx_argument_shape(&s, a));
        return s;
    }
    static shape copy_of(const_migraphx_shape_t s)
    {
        detail::unique_handle<migraphx_shape, migraphx_shape_destroy> copy{
            detail::make<migraphx_shape>(migraphx_shape_create_scalar, migraphx_shape_float_type)};
        detail::call(migraphx_shape_assign_to(copy.get(), s));
        return shape(copy.release());
    }
};

// A constant: its bytes are copied and not written to again.
struct literal {
    template <class T> literal(const shape &s, const std::vector<T> &values) : m_value(s)
    {
        fill(s, values.begin(), values.end());
    }
    template <class T> literal(const shape &s, const std::initializer_list<T> &values) : m_value(s)
    {
        fill(s, values.begin(), values.end());
    }
    template <class T> literal(const shape &s, T *data) : m_value(s)
    {
        std::memcpy(m_value.data(), data, s.bytes());
    }

    const shape &get_shape() const
    {
        return m_value.get_shape();
    }
    const char *data() const
    {
        return m_value.data();
    }
    argument get_argument() const
    {
        return m_value;
    }

  private:
    argument m_value;

    // Values of another type than the shape's are converted; integers keep all their bits.
    template <class Iterator> void fill(const shape &s, Iterator begin, Iterator end)
    {
        using value = typename std::iterator_traits<Iterator>::value_type;
        using wide = typename std::conditional<std::is_integral<value>{}, int64_t, double>::type;
        const std::vector<wide> values(begin, end);
        m_value = argument(create(s, values));
    }
    static migraphx_argument_t create(const shape &s, const std::vector<double> &values)
    {
        return detail::make<migraphx_argument>(migraphx_argument_create_values, s.handle(),
                                               values.data(), values.size());
    }
    static migraphx_argument_t create(const shape &s, const std::vector<int64_t> &values)
    {
        return detail::make<migraphx_argument>(migraphx_argument_create_integers, s.handle(),
                                               values.data(), values.size());
    }
};

inline argument generate_argument(const shape &s, unsigned long seed = 0)
{
    return argument(detail::make<migraphx_argument>(migraphx_argument_generate, s.handle(),
                                                    static_cast<std::size_t>(seed)));
}

inline argument fill_argument(const shape &s, double value = 0)
{
    return argument(detail::make<migraphx_argument>(migraphx_argument_fill, s.handle(), value));
}

inline literal generate_literal(const shape &s, unsigned long seed = 0)
{
    return literal(s, generate_argument(s, seed).data());
}

// --- operations ---

struct operation {
    operation(const std::string &name, const char *attributes = nullptr)
        : m_handle(detail::make<migraphx_operation>(migraphx_operation_create_json, name.c_str(),
                                                    attributes),
                   migraphx_operation_destroy)
    {
    }
    std::string name() const
    {
        char text[1024];
        detail::call(migraphx_operation_name(text, sizeof text, m_handle.get()));
        return text;
    }
    migraphx_operation_t handle() const
    {
        return m_handle.get();
    }
    friend std::ostream &operator<<(std::ostream &os, const operation &x)
    {
        char *text = nullptr;
        detail::call(migraphx_operation_to_string(&text, x.handle()));
        return os << detail::take(text);
    }

  private:
    std::shared_ptr<migraphx_operation> m_handle;
};

inline operation make_op(const std::string &name)
{
    return operation(name);
}

// Attributes as relaxed JSON: "{axes: [2, 3], starts: [0, 2]}".
inline operation make_json_op(const std::string &name, const std::string &attributes)
{
    return operation(name, attributes.c_str());
}

} // namespace version_1
} // namespace migraphx

#endif
