// SPDX-License-Identifier: MIT
// Looking at the elements of a tensor in C++: tensor_view<T>, and raw_data, which gives argument
// and literal their visitors; see native.hpp.
#ifndef MIGRAPHX_GUARD_NATIVE_TENSOR_VIEW_HPP
#define MIGRAPHX_GUARD_NATIVE_TENSOR_VIEW_HPP

#include <migraphx/native/shape.hpp>

#include <cassert>
#include <iterator>
#include <sstream>

namespace migraphx
{
inline namespace version_1
{

// The elements of a view in row-major order, whatever its strides.
template <class T> class tensor_view_iterator
{
  public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = typename std::remove_cv<T>::type;
    using difference_type = std::ptrdiff_t;
    using pointer = T *;
    using reference = T &;

    tensor_view_iterator() = default;
    tensor_view_iterator(T *data, const shape *s, bool plain, difference_type index)
        : m_data(data), m_shape(s), m_plain(plain), m_index(index)
    {
    }
    reference operator*() const
    {
        return (*this)[0];
    }
    pointer operator->() const
    {
        return &**this;
    }
    reference operator[](difference_type n) const
    {
        const auto i = static_cast<std::size_t>(m_index + n);
        return m_data[m_plain ? i : m_shape->index(i)];
    }
    tensor_view_iterator &operator+=(difference_type n)
    {
        m_index += n;
        return *this;
    }
    tensor_view_iterator &operator-=(difference_type n)
    {
        return *this += -n;
    }
    tensor_view_iterator &operator++()
    {
        return *this += 1;
    }
    tensor_view_iterator &operator--()
    {
        return *this += -1;
    }
    tensor_view_iterator operator++(int)
    {
        const auto before = *this;
        ++*this;
        return before;
    }
    tensor_view_iterator operator--(int)
    {
        const auto before = *this;
        --*this;
        return before;
    }
    friend tensor_view_iterator operator+(tensor_view_iterator x, difference_type n)
    {
        return x += n;
    }
    friend tensor_view_iterator operator+(difference_type n, tensor_view_iterator x)
    {
        return x += n;
    }
    friend tensor_view_iterator operator-(tensor_view_iterator x, difference_type n)
    {
        return x -= n;
    }
    friend difference_type operator-(const tensor_view_iterator &x, const tensor_view_iterator &y)
    {
        return x.m_index - y.m_index;
    }
    friend bool operator==(const tensor_view_iterator &x, const tensor_view_iterator &y)
    {
        return x.m_index == y.m_index;
    }
    friend bool operator!=(const tensor_view_iterator &x, const tensor_view_iterator &y)
    {
        return x.m_index != y.m_index;
    }
    friend bool operator<(const tensor_view_iterator &x, const tensor_view_iterator &y)
    {
        return x.m_index < y.m_index;
    }
    friend bool operator>(const tensor_view_iterator &x, const tensor_view_iterator &y)
    {
        return y < x;
    }
    friend bool operator<=(const tensor_view_iterator &x, const tensor_view_iterator &y)
    {
        return !(y < x);
    }
    friend bool operator>=(const tensor_view_iterator &x, const tensor_view_iterator &y)
    {
        return !(x < y);
    }

  private:
    T *m_data = nullptr;
    const shape *m_shape = nullptr;
    bool m_plain = true; // the element's number is its offset
    difference_type m_index = 0;
};

// Borrows the elements.
template <class T> struct tensor_view {
    using value_type = T;
    using iterator = tensor_view_iterator<T>;
    using const_iterator = tensor_view_iterator<const T>;

    tensor_view() = default;
    tensor_view(shape s, T *data) : m_data(data), m_shape(std::move(s)), m_plain(m_shape.standard())
    {
    }
    const shape &get_shape() const
    {
        return m_shape;
    }
    bool empty() const
    {
        return !m_data || size() == 0;
    }
    std::size_t size() const
    {
        return m_shape.elements();
    }
    T *data()
    {
        return m_data;
    }
    const T *data() const
    {
        return m_data;
    }
    T &operator[](std::size_t i)
    {
        return m_data[m_plain ? i : m_shape.index(i)];
    }
    const T &operator[](std::size_t i) const
    {
        return m_data[m_plain ? i : m_shape.index(i)];
    }
    // One index an axis: view(n, c, h, w), or a range of them.
    template <class... Ts, class = typename std::enable_if<
                               std::is_integral<typename std::common_type<Ts...>::type>{}>::type>
    T &operator()(Ts... indices)
    {
        return m_data[m_shape.index({static_cast<std::size_t>(indices)...})];
    }
    template <class... Ts, class = typename std::enable_if<
                               std::is_integral<typename std::common_type<Ts...>::type>{}>::type>
    const T &operator()(Ts... indices) const
    {
        return m_data[m_shape.index({static_cast<std::size_t>(indices)...})];
    }
    template <class Range>
    auto operator[](const Range &indices)
        -> decltype(*indices.begin(), *indices.end(), std::declval<T &>())
    {
        return m_data[m_shape.index(indices.begin(), indices.end())];
    }
    template <class Range>
    auto operator[](const Range &indices) const
        -> decltype(*indices.begin(), *indices.end(), std::declval<const T &>())
    {
        return m_data[m_shape.index(indices.begin(), indices.end())];
    }
    T &front()
    {
        return (*this)[0];
    }
    const T &front() const
    {
        return (*this)[0];
    }
    T &back()
    {
        return (*this)[size() - 1];
    }
    const T &back() const
    {
        return (*this)[size() - 1];
    }
    iterator begin()
    {
        return {m_data, &m_shape, m_plain, 0};
    }
    iterator end()
    {
        return begin() + static_cast<std::ptrdiff_t>(size());
    }
    const_iterator begin() const
    {
        return {m_data, &m_shape, m_plain, 0};
    }
    const_iterator end() const
    {
        return begin() + static_cast<std::ptrdiff_t>(size());
    }
    template <class U = typename std::remove_cv<T>::type> std::vector<U> to_vector() const
    {
        return std::vector<U>(begin(), end());
    }
    // "1, 2, 3"; bytes as numbers.
    friend std::ostream &operator<<(std::ostream &os, const tensor_view &x)
    {
        const char *between = "";
        for (const auto &value : x) {
            os << between << as_number(value);
            between = ", ";
        }
        return os;
    }

  private:
    T *m_data = nullptr;
    shape m_shape;
    bool m_plain = true;

    static int as_number(int8_t x)
    {
        return x;
    }
    static unsigned as_number(uint8_t x)
    {
        return x;
    }
    template <class U> static const U &as_number(const U &x)
    {
        return x;
    }
};

template <class T> tensor_view<T> make_view(const shape &s, T *data)
{
    return {s, data};
}

template <class T, class U> bool operator==(const tensor_view<T> &x, const tensor_view<U> &y)
{
    return x.get_shape() == y.get_shape() && std::equal(x.begin(), x.end(), y.begin());
}

template <class T, class U> bool operator!=(const tensor_view<T> &x, const tensor_view<U> &y)
{
    return !(x == y);
}

// What has get_shape() and data(), looked at as a tensor of its type.
template <class Derived> struct raw_data {
    // Calls v(tensor_view<T>) for the type T of the elements, or tuples(members) for a tuple.
    template <class Visitor, class TupleVisitor> void visit(Visitor v, TupleVisitor tuples) const
    {
        const Derived &self = derived();
        if (self.empty())
            throw std::runtime_error("there are no data to visit");
        self.get_shape().visit_type(
            [&](auto as) { v(make_view(self.get_shape(), as.from(self.data()))); },
            [&] { tuples(self.get_sub_objects()); });
    }
    template <class Visitor> void visit(Visitor v) const
    {
        visit(v, [](const auto &) {
            throw std::runtime_error("a tuple has no elements of one type to visit");
        });
    }
    // Calls v(x) with element number `n`.
    template <class Visitor> void visit_at(Visitor v, std::size_t n = 0) const
    {
        visit([&](auto view) {
            if (n >= view.size())
                throw std::runtime_error("there is no element " + std::to_string(n) + " among " +
                                         std::to_string(view.size()));
            v(view[n]);
        });
    }
    // Element number `n`, converted.
    template <class T> T at(std::size_t n = 0) const
    {
        T result{};
        visit_at([&](auto x) { result = static_cast<T>(x); }, n);
        return result;
    }
    bool single() const
    {
        return derived().get_shape().elements() == 1;
    }
    // The elements as what they are: T must be their type.
    template <class T> tensor_view<T> get() const
    {
        const shape &s = derived().get_shape();
        if (s.type() != shape::get_type<T>{})
            throw std::runtime_error("the elements are " + s.type_string() + ", not " +
                                     shape::name(shape::get_type<T>{}));
        return make_view(s, reinterpret_cast<T *>(derived().data()));
    }
    // The address of the elements; nothing is checked.
    template <class T> T *cast() const
    {
        return reinterpret_cast<T *>(derived().data());
    }
    // All elements in row-major order, converted.
    template <class T> std::vector<T> to_vector() const
    {
        std::vector<T> result;
        visit([&](auto view) {
            for (const auto &x : view)
                result.push_back(static_cast<T>(x));
        });
        return result;
    }
    std::string to_string() const
    {
        std::ostringstream os;
        os << derived();
        return os.str();
    }

  private:
    const Derived &derived() const
    {
        return static_cast<const Derived &>(*this);
    }
};

// visit_all(x, y)([](auto x_view, auto y_view) { ... }): several of one type together. What is
// visited must live until the visitor has returned.
template <class... Ts> auto visit_all(const Ts &...xs)
{
    const shape::type_t types[] = {xs.get_shape().type()...};
    if (std::any_of(std::begin(types), std::end(types),
                    [&](shape::type_t t) { return t != types[0]; }))
        throw std::runtime_error("visit_all: the types must be the same");
    return [&xs..., type = types[0]](auto v) {
        shape::visit(type, [&](auto as) { v(make_view(xs.get_shape(), as.from(xs.data()))...); });
    };
}

} // namespace version_1
} // namespace migraphx

#endif
