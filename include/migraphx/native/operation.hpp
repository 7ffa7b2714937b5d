// SPDX-License-Identifier: MIT
// operation and make_op of MIGraphX's guides; see native.hpp.
#ifndef MIGRAPHX_GUARD_NATIVE_OPERATION_HPP
#define MIGRAPHX_GUARD_NATIVE_OPERATION_HPP

#include <migraphx/native/json.hpp>
#include <migraphx/native/shape.hpp>

namespace migraphx
{
inline namespace version_1
{

// Names of the values that attributes of these kinds have.
namespace op
{
enum class pooling_mode { average, max, lpnorm };
enum class rnn_direction { forward, reverse, bidirectional };
enum padding_mode_t { default_, same_lower, same_upper };
} // namespace op

struct operation {
    operation(const std::string &name, const char *attributes = nullptr)
        : m_handle(detail::make<migraphx_operation>(migraphx_operation_create_json, name.c_str(),
                                                    attributes),
                   migraphx_operation_destroy)
    {
    }
    // Takes the handle over.
    explicit operation(migraphx_operation_t take) : m_handle(take, migraphx_operation_destroy)
    {
    }
    std::string name() const
    {
        char text[1024];
        detail::call(migraphx_operation_name(text, sizeof text, m_handle.get()));
        return text;
    }
    // All attributes.
    value to_value() const
    {
        return from_json_string(detail::text_of(migraphx_operation_attributes, handle()));
    }
    migraphx_operation_t handle() const
    {
        return m_handle.get();
    }
    friend bool operator==(const operation &x, const operation &y)
    {
        return detail::text_of(migraphx_operation_to_string, x.handle()) ==
               detail::text_of(migraphx_operation_to_string, y.handle());
    }
    friend bool operator!=(const operation &x, const operation &y)
    {
        return !(x == y);
    }
    friend std::ostream &operator<<(std::ostream &os, const operation &x)
    {
        return os << detail::text_of(migraphx_operation_to_string, x.handle());
    }

  private:
    std::shared_ptr<migraphx_operation> m_handle;
};

inline operation make_op(const std::string &name)
{
    return operation(name);
}

inline operation make_op_from_value(const std::string &name, const value &attributes)
{
    return operation(name, to_json_string(attributes.is_null() ? value(value::object{})
                                                               : attributes.without_key())
                               .c_str());
}

// make_op("slice", {{"axes", {0, 1}}, {"starts", {0, 2}}, {"ends", {4, 5}}})
inline operation make_op(const std::string &name,
                         const std::initializer_list<std::pair<std::string, value>> &attributes)
{
    value map(value::object{});
    for (const auto &item : attributes)
        map[item.first] = item.second;
    return make_op_from_value(name, map);
}

template <class Value, class = std::enable_if_t<std::is_convertible<Value, value>{}>>
operation make_op(const std::string &name, const Value &attributes)
{
    return make_op_from_value(name, attributes);
}

// Attributes as relaxed JSON: "{axes: [2, 3], starts: [0, 2]}".
inline operation make_json_op(const std::string &name, const std::string &attributes)
{
    return operation(name, attributes.c_str());
}

// --- what attributes hold besides values ---

inline value to_value(const value &x)
{
    return x;
}

template <class T, class = std::enable_if_t<std::is_constructible<value, T>{}>>
value to_value(const T &x)
{
    return value(x);
}

inline value to_value(const shape::dynamic_dimension &d)
{
    return value{value("min", d.min), value("max", d.max), value("optimals", d.optimals)};
}

inline value to_value(const shape &s)
{
    value result{{"type", s.type_string()}};
    if (!s.dynamic()) {
        result["lens"] = s.lens();
        result["strides"] = s.strides();
    }
    value::array dims, members;
    for (const auto &d : s.dyn_dims())
        dims.push_back(to_value(d));
    for (const auto &member : s.sub_shapes())
        members.push_back(to_value(member));
    result["dynamic_dimensions"] = dims;
    result["sub_shapes"] = members;
    return result;
}

} // namespace version_1
} // namespace migraphx

#endif
