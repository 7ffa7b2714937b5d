// SPDX-License-Identifier: MIT
// value of MIGraphX's guides: what an attribute of an operator may be. Nothing, an integer, a
// number, a truth value, a text, a list or a map, nested as deep as wanted; see native.hpp.
//
// In braces, {0, 1} is a list and {{"min", 1}, {"max", 4}} is a map: a list all of whose members
// are a text and a value is taken for the map they make. value(std::vector<...>) is a list whatever
// it holds. The members of a map know their keys and keep their order.
#ifndef MIGRAPHX_GUARD_NATIVE_VALUE_HPP
#define MIGRAPHX_GUARD_NATIVE_VALUE_HPP

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace migraphx
{
inline namespace version_1
{

struct value {
    enum type_t {
        int64_type,
        uint64_type,
        float_type,
        string_type,
        bool_type,
        object_type,
        array_type,
        null_type
    };
    using array = std::vector<value>;
    using object = std::unordered_map<std::string, value>;
    using iterator = array::iterator;
    using const_iterator = array::const_iterator;

    value() = default;
    value(const value &) = default;
    value(value &&) = default;
    // What is a member of a map stays one: map["key"] = 1.
    value &operator=(value x)
    {
        m_type = x.m_type;
        if (!x.m_key.empty())
            std::swap(m_key, x.m_key);
        m_integer = x.m_integer;
        m_unsigned = x.m_unsigned;
        m_number = x.m_number;
        std::swap(m_text, x.m_text);
        std::swap(m_members, x.m_members);
        m_braces = x.m_braces;
        return *this;
    }
    value(std::nullptr_t)
    {
    }
    value(bool x) : m_type(bool_type), m_unsigned(x)
    {
    }
    template <class T, class = std::enable_if_t<std::is_arithmetic<T>{} || std::is_enum<T>{}>>
    value(T x)
    {
        set(x, kind_of<T>());
    }
    value(const char *text) : m_type(string_type), m_text(text)
    {
    }
    value(std::string text) : m_type(string_type), m_text(std::move(text))
    {
    }
    value(array members) : m_type(array_type), m_members(std::move(members))
    {
    }
    value(const object &members) : m_type(object_type)
    {
        for (const auto &item : members)
            m_members.push_back(item.second.with_key(item.first));
    }
    value(std::initializer_list<value> members)
        : m_type(array_type), m_members(members), m_braces(true)
    {
        if (members.size() > 0 && std::all_of(members.begin(), members.end(), is_member))
            become_object();
    }
    // Any range of what a value can be made of: std::vector<int>, std::set<std::string>, ...
    template <class Range,
              class = std::enable_if_t<
                  !std::is_same<Range, value>{} && !std::is_convertible<Range, std::string>{} &&
                  !std::is_same<Range, object>{} &&
                  std::is_constructible<value, decltype(*std::declval<const Range &>().begin())>{}>,
              class = decltype(std::declval<const Range &>().end())>
    value(const Range &range) : m_type(array_type)
    {
        for (const auto &x : range)
            m_members.push_back(value(x));
    }
    // A member of a map.
    value(const std::string &key, value x) : value(std::move(x))
    {
        m_key = key;
    }
    template <class T> value(const std::pair<std::string, T> &item) : value(item.first, item.second)
    {
    }

    type_t get_type() const
    {
        return m_type;
    }
    bool is_null() const
    {
        return m_type == null_type;
    }
    bool is_int64() const
    {
        return m_type == int64_type;
    }
    bool is_uint64() const
    {
        return m_type == uint64_type;
    }
    bool is_float() const
    {
        return m_type == float_type;
    }
    bool is_bool() const
    {
        return m_type == bool_type;
    }
    bool is_string() const
    {
        return m_type == string_type;
    }
    bool is_array() const
    {
        return m_type == array_type;
    }
    bool is_object() const
    {
        return m_type == object_type;
    }
    int64_t get_int64() const
    {
        return require(int64_type, "an integer"), m_integer;
    }
    uint64_t get_uint64() const
    {
        return require(uint64_type, "an unsigned integer"), m_unsigned;
    }
    double get_float() const
    {
        return require(float_type, "a number"), m_number;
    }
    bool get_bool() const
    {
        return require(bool_type, "a truth value"), m_unsigned != 0;
    }
    const std::string &get_string() const
    {
        return require(string_type, "a text"), m_text;
    }
    const array &get_array() const
    {
        return require(array_type, "a list"), m_members;
    }
    const array &get_object() const
    {
        return require(object_type, "a map"), m_members;
    }

    const std::string &get_key() const
    {
        return m_key;
    }
    value with_key(const std::string &key) const
    {
        return value(key, *this);
    }
    value without_key() const
    {
        return value(std::string(), *this);
    }
    iterator find(const std::string &key)
    {
        return std::find_if(begin(), end(), [&](const value &x) { return x.m_key == key; });
    }
    const_iterator find(const std::string &key) const
    {
        return std::find_if(begin(), end(), [&](const value &x) { return x.m_key == key; });
    }
    bool contains(const std::string &key) const
    {
        return is_object() && find(key) != end();
    }
    value &at(const std::string &key)
    {
        return const_cast<value &>(static_cast<const value *>(this)->at(key));
    }
    const value &at(const std::string &key) const
    {
        const auto found = find(key);
        if (!is_object() || found == end())
            throw std::runtime_error("there is no key '" + key + "'");
        return *found;
    }
    value &at(std::size_t i)
    {
        return const_cast<value &>(static_cast<const value *>(this)->at(i));
    }
    const value &at(std::size_t i) const
    {
        if (i >= m_members.size())
            throw std::runtime_error("there is no member " + std::to_string(i) + " among " +
                                     std::to_string(m_members.size()));
        return m_members[i];
    }
    value &operator[](std::size_t i)
    {
        return at(i);
    }
    const value &operator[](std::size_t i) const
    {
        return at(i);
    }
    // Adds the key if it is not there.
    value &operator[](const std::string &key)
    {
        if (is_null())
            m_type = object_type;
        require(object_type, "a map");
        const auto found = find(key);
        if (found != end())
            return *found;
        m_members.push_back(value(key, value()));
        return m_members.back();
    }
    const value &operator[](const std::string &key) const
    {
        return at(key);
    }
    // A value with a key makes or changes a map, one without a list.
    void push_back(const value &x)
    {
        insert(x);
    }
    std::pair<iterator, bool> insert(const value &x)
    {
        if (is_null())
            m_type = x.m_key.empty() ? array_type : object_type;
        if (is_object() ? x.m_key.empty() : !is_array())
            throw std::runtime_error("value: not a list to add to");
        const auto found = is_object() ? find(x.m_key) : end();
        if (found != end())
            return {found, false};
        m_members.push_back(x);
        return {end() - 1, true};
    }
    template <class... Ts> std::pair<iterator, bool> emplace(Ts &&...xs)
    {
        return insert(value(std::forward<Ts>(xs)...));
    }

    std::size_t size() const
    {
        return m_members.size();
    }
    bool empty() const
    {
        return m_members.empty();
    }
    iterator begin()
    {
        return m_members.begin();
    }
    iterator end()
    {
        return m_members.end();
    }
    const_iterator begin() const
    {
        return m_members.begin();
    }
    const_iterator end() const
    {
        return m_members.end();
    }
    const value &front() const
    {
        return at(std::size_t(0));
    }
    const value &back() const
    {
        return at(m_members.size() - 1);
    }

    // Converted: any number to any other, anything simple to a text and back.
    template <class T> T to() const
    {
        return convert(static_cast<T *>(nullptr));
    }
    template <class T> std::vector<T> to_vector() const
    {
        if (!is_array() && !is_object())
            throw std::runtime_error("value: " + to_text() + " is not a list");
        std::vector<T> result;
        for (const auto &x : m_members)
            result.push_back(x.to<T>());
        return result;
    }
    template <class T> T value_or(const T &other) const
    {
        return is_null() ? other : to<T>();
    }
    template <class T> T get(const std::string &key, const T &other) const
    {
        return contains(key) ? at(key).to<T>() : other;
    }

    friend bool operator==(const value &x, const value &y)
    {
        return x.m_key == y.m_key && x.m_type == y.m_type && x.m_integer == y.m_integer &&
               x.m_unsigned == y.m_unsigned && x.m_number == y.m_number && x.m_text == y.m_text &&
               (x.is_object() ? std::is_permutation(x.begin(), x.end(), y.begin(), y.end())
                              : x.m_members == y.m_members);
    }
    friend bool operator!=(const value &x, const value &y)
    {
        return !(x == y);
    }
    // "{axes: {0, 1}, mode: average}"
    friend std::ostream &operator<<(std::ostream &os, const value &x)
    {
        if (!x.m_key.empty())
            os << x.m_key << ": ";
        return x.print(os);
    }

  private:
    struct is_real {
    };
    struct is_whole {
    };
    struct is_natural {
    };
    template <class T>
    using kind_of =
        std::conditional_t<std::is_floating_point<T>{}, is_real,
                           std::conditional_t<std::is_unsigned<T>{}, is_natural, is_whole>>;

    type_t m_type = null_type;
    std::string m_key; // of a member of a map
    int64_t m_integer = 0;
    uint64_t m_unsigned = 0; // truth too
    double m_number = 0;
    std::string m_text;
    array m_members;
    bool m_braces = false; // written {a, b}

    template <class T> void set(T x, is_whole)
    {
        m_type = int64_type;
        m_integer = static_cast<int64_t>(x);
    }
    template <class T> void set(T x, is_natural)
    {
        m_type = uint64_type;
        m_unsigned = x;
    }
    template <class T> void set(T x, is_real)
    {
        m_type = float_type;
        m_number = static_cast<double>(x);
    }
    static bool is_member(const value &x)
    {
        return !x.m_key.empty() || (x.m_braces && x.is_array() && x.m_members.size() == 2 &&
                                    x.m_members[0].is_string() && x.m_members[0].m_key.empty());
    }
    void become_object()
    {
        m_type = object_type;
        for (auto &x : m_members)
            if (x.m_key.empty())
                x = value(x.m_members[0].m_text, value(x.m_members[1]));
    }
    void require(type_t type, const char *what) const
    {
        if (m_type != type)
            throw std::runtime_error("value: " + to_text() + " is not " + what);
    }
    std::ostream &print(std::ostream &os) const
    {
        switch (m_type) {
        case int64_type:
            return os << m_integer;
        case uint64_type:
            return os << m_unsigned;
        case float_type:
            return os << m_number;
        case bool_type:
            return os << m_unsigned;
        case string_type:
            return os << m_text;
        case null_type:
            return os << "null";
        default:
            break;
        }
        const char *between = "{";
        for (const auto &x : m_members) {
            os << between << x;
            between = ", ";
        }
        return os << (m_members.empty() ? "{}" : "}");
    }
    std::string to_text() const
    {
        std::ostringstream os;
        print(os);
        return os.str();
    }
    std::string convert(std::string *) const
    {
        return to_text();
    }
    value convert(value *) const
    {
        return *this;
    }
    template <class T> std::vector<T> convert(std::vector<T> *) const
    {
        return to_vector<T>();
    }
    template <class T, class = std::enable_if_t<std::is_arithmetic<T>{} || std::is_enum<T>{}>>
    T convert(T *) const
    {
        switch (m_type) {
        case int64_type:
            return static_cast<T>(m_integer);
        case uint64_type:
        case bool_type:
            return static_cast<T>(m_unsigned);
        case float_type:
            return static_cast<T>(m_number);
        case string_type:
            return parsed<T>();
        default:
            throw std::runtime_error("value: " + to_text() + " is not a number");
        }
    }
    template <class T> T parsed() const
    {
        std::istringstream text(m_text);
        std::conditional_t<std::is_enum<T>{}, int64_t, T> result{};
        if (!(text >> result) || !text.eof())
            throw std::runtime_error("value: " + m_text + " is not a number");
        return static_cast<T>(result);
    }
};

} // namespace version_1
} // namespace migraphx

#endif
