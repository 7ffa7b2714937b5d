// SPDX-License-Identifier: MIT
// shape of MIGraphX's guides: a value of type, lengths and strides; see native.hpp.
#ifndef MIGRAPHX_GUARD_NATIVE_SHAPE_HPP
#define MIGRAPHX_GUARD_NATIVE_SHAPE_HPP

#include <migraphx/native/call.hpp>
#include <migraphx/native/narrow_float.hpp>

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <ostream>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

namespace migraphx
{
inline namespace version_1
{

struct shape {
    // In the order of MIGRAPHX_SHAPE_VISIT_TYPES; the numbers are those in attributes.
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

    // get_type<float>{} is float_type.
    template <class T, class = void> struct get_type;

    struct dynamic_dimension {
        std::size_t min = 0, max = 0;
        std::set<std::size_t> optimals{};

        bool is_fixed() const
        {
            return min == max;
        }
        bool has_optimal() const
        {
            return !optimals.empty();
        }
        friend bool operator==(const dynamic_dimension &x, const dynamic_dimension &y)
        {
            return x.min == y.min && x.max == y.max && (x.is_fixed() || x.optimals == y.optimals);
        }
        friend bool operator!=(const dynamic_dimension &x, const dynamic_dimension &y)
        {
            return !(x == y);
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
    // A tuple.
    explicit shape(const std::vector<shape> &members)
    {
        std::vector<const_migraphx_shape_t> handles;
        for (const auto &m : members)
            handles.push_back(m.handle());
        hold(detail::make<migraphx_shape>(migraphx_shape_create_tuple, handles.data(),
                                          handles.size()));
    }
    // Takes the handle over.
    explicit shape(migraphx_shape_t take)
    {
        hold(take);
    }
    // Packed, with memory in the order of the axes in `permutation`, outermost first.
    static shape from_permutation(type_t type, const std::vector<std::size_t> &lens,
                                  const std::vector<int64_t> &permutation)
    {
        std::vector<std::size_t> strides(lens.size());
        std::size_t step = 1;
        for (auto axis = permutation.rbegin(); axis != permutation.rend(); ++axis) {
            strides.at(static_cast<std::size_t>(*axis)) = step;
            step *= lens.at(static_cast<std::size_t>(*axis));
        }
        return {type, lens, strides};
    }
    // A copy of a borrowed handle.
    static shape copy_of(const_migraphx_shape_t s)
    {
        detail::unique_handle<migraphx_shape, migraphx_shape_destroy> copy{
            detail::make<migraphx_shape>(migraphx_shape_create_scalar, migraphx_shape_float_type)};
        detail::call(migraphx_shape_assign_to(copy.get(), s));
        return shape(copy.release());
    }

    type_t type() const
    {
        return m_state->type;
    }
    const std::vector<std::size_t> &lens() const
    {
        return m_state->lens;
    }
    const std::vector<std::size_t> &strides() const
    {
        return m_state->strides;
    }
    const std::vector<dynamic_dimension> &dyn_dims() const
    {
        return m_state->dims;
    }
    std::vector<std::size_t> min_lens() const
    {
        return each_dim([](const dynamic_dimension &d) { return d.min; });
    }
    std::vector<std::size_t> max_lens() const
    {
        return each_dim([](const dynamic_dimension &d) { return d.max; });
    }
    std::vector<shape> sub_shapes() const;
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
        std::size_t size = 0;
        detail::call(migraphx_type_size(&size, outside_type()));
        return size;
    }
    std::string type_string() const
    {
        const char *name = "";
        detail::call(migraphx_type_name(&name, outside_type()));
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
    bool any_of_dynamic() const
    {
        const auto members = sub_shapes();
        return dynamic() || std::any_of(members.begin(), members.end(),
                                        [](const shape &s) { return s.any_of_dynamic(); });
    }

    // Element number to offset in memory, in elements.
    std::size_t index(std::size_t i) const
    {
        std::size_t result = 0;
        for (std::size_t axis = lens().size(); axis-- > 0; i /= lens()[axis])
            result += i % lens()[axis] * strides()[axis];
        return result;
    }
    // One index an axis to offset in memory; missing ones are 0.
    template <class Iterator> std::size_t index(Iterator start, Iterator last) const
    {
        if (static_cast<std::size_t>(std::distance(start, last)) > strides().size())
            throw std::runtime_error("shape: more indices than axes");
        return std::inner_product(
            start, last, strides().begin(), std::size_t(0), std::plus<>{},
            [](auto i, std::size_t stride) { return static_cast<std::size_t>(i) * stride; });
    }
    std::size_t index(std::initializer_list<std::size_t> multi) const
    {
        return index(multi.begin(), multi.end());
    }
    std::size_t index(const std::vector<std::size_t> &multi) const
    {
        return index(multi.begin(), multi.end());
    }
    // Element number to one index an axis.
    std::vector<std::size_t> multi(std::size_t i) const
    {
        std::vector<std::size_t> result(lens().size());
        for (std::size_t axis = lens().size(); axis-- > 0; i /= lens()[axis])
            result[axis] = i % lens()[axis];
        return result;
    }
    // Elements that the memory of this shape has room for.
    std::size_t element_space() const
    {
        return dynamic() ? elements() : bytes() / std::max<std::size_t>(type_size(), 1);
    }
    shape with_lens(type_t type, const std::vector<std::size_t> &l) const
    {
        std::vector<int64_t> axes(l.size());
        std::iota(axes.begin(), axes.end(), 0);
        if (l.size() == strides().size())
            std::stable_sort(axes.begin(), axes.end(), [&](int64_t a, int64_t b) {
                return strides()[static_cast<std::size_t>(a)] >
                       strides()[static_cast<std::size_t>(b)];
            });
        return from_permutation(type, l, axes);
    }
    shape with_lens(const std::vector<std::size_t> &l) const
    {
        return with_lens(type(), l);
    }
    shape with_type(type_t type) const
    {
        return dynamic() ? shape(type, dyn_dims()) : shape(type, lens(), strides());
    }
    shape as_standard() const
    {
        return dynamic() ? *this : shape(type(), lens());
    }
    shape to_static(std::size_t length) const
    {
        return !dynamic() ? *this : shape(type(), each_dim([=](const dynamic_dimension &d) {
                                              return d.is_fixed() ? d.min : length;
                                          }));
    }

    // The C++ type behind a type_t, in generic code: a visitor is called with as<float>{} ...
    template <class T> struct as {
        using type = typename std::conditional<std::is_same<T, bool>{}, int8_t, T>::type;

        type max() const
        {
            return std::numeric_limits<type>::max();
        }
        type min() const
        {
            return std::numeric_limits<type>::lowest();
        }
        type nan() const
        {
            return std::numeric_limits<type>::quiet_NaN();
        }
        type operator()() const
        {
            return {};
        }
        template <class U, class = typename std::enable_if<!std::is_pointer<U>{}>::type>
        type operator()(U u) const
        {
            return static_cast<type>(u);
        }
        template <class U> type *from(U *buffer, std::size_t n = 0) const
        {
            return reinterpret_cast<type *>(buffer) + n;
        }
        template <class U> const type *from(const U *buffer, std::size_t n = 0) const
        {
            return reinterpret_cast<const type *>(buffer) + n;
        }
        std::size_t size(std::size_t n = 1) const
        {
            return sizeof(type) * n;
        }
        std::is_integral<type> is_integral() const
        {
            return {};
        }
        std::is_signed<type> is_signed() const
        {
            return {};
        }
        std::is_unsigned<type> is_unsigned() const
        {
            return {};
        }
        type_t type_enum() const
        {
            return get_type<T>{};
        }
    };

    // Calls v(as<T>{}) for the T of `type`, or tuples() for a tuple.
    template <class Visitor, class TupleVisitor>
    static void visit(type_t type, Visitor v, TupleVisitor tuples)
    {
#define MIGRAPHX_NATIVE_VISIT(x, t)                                                                \
    case x:                                                                                        \
        return v(as<t>());
        switch (type) {
            MIGRAPHX_SHAPE_VISIT_TYPES(MIGRAPHX_NATIVE_VISIT)
        case tuple_type:
            return tuples();
        default:
            throw std::runtime_error("shape: no C++ type for " + name(type));
        }
#undef MIGRAPHX_NATIVE_VISIT
    }
    template <class Visitor> static void visit(type_t type, Visitor v)
    {
        visit(type, v, [] { throw std::runtime_error("shape: a tuple has no type to visit"); });
    }
    template <class... Visitors> void visit_type(Visitors... vs) const
    {
        visit(type(), vs...);
    }
    // Every type in turn.
    template <class Visitor> static void visit_types(Visitor v)
    {
#define MIGRAPHX_NATIVE_VISIT(x, t) v(as<t>());
        MIGRAPHX_SHAPE_VISIT_TYPES(MIGRAPHX_NATIVE_VISIT)
#undef MIGRAPHX_NATIVE_VISIT
    }
    static const std::vector<type_t> &types()
    {
#define MIGRAPHX_NATIVE_NAME(x, t) x,
        static const std::vector<type_t> list{
            MIGRAPHX_SHAPE_VISIT_TYPES(MIGRAPHX_NATIVE_NAME) tuple_type, fp4x2_type};
#undef MIGRAPHX_NATIVE_NAME
        return list;
    }
    // "float_type"
    static std::string name(type_t type)
    {
        const char *text = "";
        detail::call(migraphx_type_name(&text, outside(type)));
        return text;
    }
    static type_t parse_type(const std::string &text)
    {
        migraphx_shape_datatype_t type;
        detail::call(migraphx_type_find(&type, text.c_str()));
        return inside(type);
    }
    static bool is_integral(type_t type)
    {
        bool result = false;
        visit(
            type, [&](auto as) { result = as.is_integral(); }, [] {});
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
        return os << detail::text_of(migraphx_shape_to_string, x.handle());
    }

  private:
    struct state {
        detail::unique_handle<migraphx_shape, migraphx_shape_destroy> handle;
        type_t type;
        std::vector<std::size_t> lens, strides;
        std::vector<dynamic_dimension> dims; // of dynamic shapes
    };
    std::shared_ptr<const state> m_state; // never changes

    static migraphx_shape_datatype_t outside(type_t type)
    {
        static const migraphx_shape_datatype_t types[] = {
            MIGRAPHX_SHAPE_VISIT_TYPES(MIGRAPHX_SHAPE_GENERATE_ENUM_TYPES)
                migraphx_shape_tuple_type,
            migraphx_shape_fp4x2_type};
        if (type < bool_type || type > fp4x2_type)
            throw std::runtime_error("shape: no type has the number " + std::to_string(type));
        return types[type];
    }
    static type_t inside(migraphx_shape_datatype_t type)
    {
        std::size_t number = 0;
        detail::call(migraphx_type_attribute_number(&number, type));
        return static_cast<type_t>(number);
    }
    migraphx_shape_datatype_t outside_type() const
    {
        return ask<migraphx_shape_datatype_t>(migraphx_shape_type);
    }
    template <class T, class F> T ask(F f) const
    {
        T result{};
        detail::call(f(&result, handle()));
        return result;
    }
    template <class F> std::vector<std::size_t> each_dim(F f) const
    {
        if (!dynamic())
            return lens();
        std::vector<std::size_t> result;
        for (const auto &d : dyn_dims())
            result.push_back(f(d));
        return result;
    }
    void hold(migraphx_shape_t take);
};

// The enumerators of `x` in MIGRAPHX_SHAPE_VISIT_TYPES have the C++ types `t`.
#define MIGRAPHX_NATIVE_GET_TYPE(x, t)                                                             \
    template <class T>                                                                             \
    struct shape::get_type<t, T> : std::integral_constant<shape::type_t, shape::x> {               \
    };
MIGRAPHX_SHAPE_VISIT_TYPES(MIGRAPHX_NATIVE_GET_TYPE)
#undef MIGRAPHX_NATIVE_GET_TYPE

template <class T> struct shape::get_type<const T, void> : shape::get_type<T> {
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

inline std::vector<shape::dynamic_dimension> dims_of(const_migraphx_shape_t s)
{
    const dims_handle h{make<migraphx_dynamic_dimensions>(migraphx_shape_dyn_dims, s)};
    std::size_t size = 0;
    call(migraphx_dynamic_dimensions_size(&size, h.get()));
    std::vector<shape::dynamic_dimension> result(size);
    for (std::size_t i = 0; i < size; i++) {
        const_migraphx_dynamic_dimension_t d = nullptr;
        const std::size_t *values = nullptr;
        std::size_t count = 0;
        call(migraphx_dynamic_dimensions_get(&d, h.get(), i));
        call(migraphx_dynamic_dimension_range(&result[i].min, &result[i].max, d));
        call(migraphx_dynamic_dimension_optimals(&values, &count, d));
        result[i].optimals.insert(values, values + count);
    }
    return result;
}

} // namespace detail

inline shape::shape(type_t type, const std::vector<dynamic_dimension> &dims)
{
    hold(detail::make<migraphx_shape>(migraphx_shape_create_dynamic, outside(type),
                                      detail::make_dims(dims).get()));
}

inline void shape::hold(migraphx_shape_t take)
{
    auto s = std::make_shared<state>();
    s->handle.reset(take);
    migraphx_shape_datatype_t type;
    detail::call(migraphx_shape_type(&type, take));
    s->type = inside(type);
    bool dynamic = false;
    detail::call(migraphx_shape_dynamic(&dynamic, take));
    if (dynamic) {
        s->dims = detail::dims_of(take);
    } else {
        const std::size_t *values = nullptr;
        std::size_t size = 0;
        detail::call(migraphx_shape_lengths(&values, &size, take));
        s->lens.assign(values, values + size);
        detail::call(migraphx_shape_strides(&values, &size, take));
        s->strides.assign(values, values + size);
    }
    m_state = s;
}

inline std::vector<shape> shape::sub_shapes() const
{
    const detail::unique_handle<migraphx_shapes, migraphx_shapes_destroy> list{
        detail::make<migraphx_shapes>(migraphx_shape_sub_shapes, handle())};
    std::size_t size = 0;
    detail::call(migraphx_shapes_size(&size, list.get()));
    std::vector<shape> result;
    for (std::size_t i = 0; i < size; i++) {
        const_migraphx_shape_t member = nullptr;
        detail::call(migraphx_shapes_get(&member, list.get(), i));
        result.push_back(copy_of(member));
    }
    return result;
}

} // namespace version_1
} // namespace migraphx

#endif
