// SPDX-License-Identifier: MIT
// argument and literal of MIGraphX's guides, and making them up; see native.hpp.
#ifndef MIGRAPHX_GUARD_NATIVE_ARGUMENT_HPP
#define MIGRAPHX_GUARD_NATIVE_ARGUMENT_HPP

#include <migraphx/native/tensor_view.hpp>

#include <cstring>

namespace migraphx
{
inline namespace version_1
{

// Copies share their bytes.
struct argument : raw_data<argument> {
    argument() = default;
    // Memory of its own.
    argument(const shape &s)
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
    // A tuple that shares its members.
    explicit argument(const std::vector<argument> &members)
    {
        std::vector<const_migraphx_argument_t> handles;
        for (const auto &m : members)
            handles.push_back(m.handle());
        *this = argument(detail::make<migraphx_argument>(migraphx_argument_create_group,
                                                         handles.data(), handles.size(), false));
    }
    // Takes the handle over.
    explicit argument(migraphx_argument_t take) : m_handle(take, migraphx_argument_destroy)
    {
        m_shape = shape::copy_of(shape_of(take));
    }
    // Shares a borrowed handle's bytes.
    static argument share(const_migraphx_argument_t other)
    {
        argument result{shape{}};
        detail::call(migraphx_argument_assign_to(result.m_handle.get(), other));
        result.m_shape = shape::copy_of(shape_of(other));
        return result;
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
    bool empty() const
    {
        return !m_handle;
    }
    // Bytes of its own.
    argument copy() const
    {
        argument result(m_shape);
        std::memcpy(result.data(), data(), m_shape.bytes());
        return result;
    }
    argument share() const
    {
        return *this;
    }
    // The same bytes as another shape, which they must have room for.
    argument reshape(const shape &s) const
    {
        if (s.bytes() > m_shape.bytes())
            throw std::runtime_error("reshape: " + std::to_string(s.bytes()) +
                                     " bytes are needed where there are " +
                                     std::to_string(m_shape.bytes()));
        auto *keep = new std::shared_ptr<migraphx_argument>(m_handle);
        migraphx_argument_t result = nullptr;
        const migraphx_status status = migraphx_argument_create_owned(
            &result, s.handle(), data(),
            [](void *p) { delete static_cast<std::shared_ptr<migraphx_argument> *>(p); }, keep);
        if (status != migraphx_status_success)
            delete keep;
        detail::call(status);
        return argument(result);
    }
    // The members of a tuple.
    std::vector<argument> get_sub_objects() const
    {
        std::size_t size = 0;
        detail::call(migraphx_argument_members_size(&size, handle()));
        std::vector<argument> result;
        for (std::size_t i = 0; i < size; i++) {
            const_migraphx_argument_t member = nullptr;
            detail::call(migraphx_argument_member(&member, handle(), i));
            result.push_back(share(member));
        }
        return result;
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
        return x.empty() ? os : os << detail::text_of(migraphx_argument_to_string, x.handle());
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
};

// A constant: its bytes are copied and not written to again.
struct literal : raw_data<literal> {
    literal() = default;
    // A scalar of the value's type.
    template <class T, shape::type_t Type = shape::get_type<T>{}>
    literal(T value) : m_value(shape(Type))
    {
        std::memcpy(m_value.data(), &value, sizeof value);
    }
    template <class T> literal(const shape &s, const std::vector<T> &values)
    {
        fill(s, values.begin(), values.end());
    }
    template <class T> literal(const shape &s, const std::initializer_list<T> &values)
    {
        fill(s, values.begin(), values.end());
    }
    template <class Iterator, class = typename std::iterator_traits<Iterator>::iterator_category>
    literal(const shape &s, Iterator begin, Iterator end)
    {
        fill(s, begin, end);
    }
    // As many bytes as the shape has, as they are.
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
    bool empty() const
    {
        return m_value.empty();
    }
    argument get_argument() const
    {
        return m_value;
    }
    std::vector<literal> get_sub_objects() const
    {
        return {};
    }

    friend bool operator==(const literal &x, const literal &y)
    {
        return x.m_value == y.m_value;
    }
    friend bool operator!=(const literal &x, const literal &y)
    {
        return !(x == y);
    }
    friend bool operator==(const literal &x, const argument &y)
    {
        return x.m_value == y;
    }
    friend bool operator==(const argument &x, const literal &y)
    {
        return x == y.m_value;
    }
    friend std::ostream &operator<<(std::ostream &os, const literal &x)
    {
        return os << x.m_value;
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

// A literal of the same shape with f of every element.
template <class F> literal transform(const literal &l, F f)
{
    literal result;
    l.visit([&](auto view) {
        using type = typename std::remove_cv<typename decltype(view)::value_type>::type;
        std::vector<type> values(view.size());
        std::transform(view.begin(), view.end(), values.begin(), f);
        result = literal(l.get_shape(), values);
    });
    return result;
}

template <class F> literal transform(const literal &x, const literal &y, F f)
{
    literal result;
    visit_all(x, y)([&](auto x_view, auto y_view) {
        using type = typename std::remove_cv<typename decltype(x_view)::value_type>::type;
        std::vector<type> values(x_view.size());
        std::transform(x_view.begin(), x_view.end(), y_view.begin(), values.begin(), f);
        result = literal(x.get_shape(), values);
    });
    return result;
}

inline literal abs(const literal &l)
{
    return transform(l, [](auto x) { return x < 0 ? static_cast<decltype(x)>(-x) : x; });
}

} // namespace version_1
} // namespace migraphx

#endif
