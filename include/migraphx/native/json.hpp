// SPDX-License-Identifier: MIT
// value to JSON and back; see native/value.hpp.
#ifndef MIGRAPHX_GUARD_NATIVE_JSON_HPP
#define MIGRAPHX_GUARD_NATIVE_JSON_HPP

#include <migraphx/native/value.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace migraphx
{
inline namespace version_1
{
namespace detail
{

inline void write_json(std::string &out, const std::string &text)
{
    out += '"';
    for (char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        char code[8];
        if (c == '"' || c == '\\')
            (out += '\\') += c;
        else if (byte < 0x20) {
            std::snprintf(code, sizeof code, "\\u%04x", byte);
            out += code;
        } else
            out += c;
    }
    out += '"';
}

// JSON has no infinity and no NaN; the engine reads the words.
inline void write_json(std::string &out, double x)
{
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", x);
    out += text;
    if (std::isfinite(x) && out.find_first_of(".e", out.size() - std::char_traits<char>::length(
                                                                     text)) == std::string::npos)
        out += ".0";
}

inline void write_json(std::string &out, const value &x)
{
    switch (x.get_type()) {
    case value::float_type:
        return write_json(out, x.get_float());
    case value::string_type:
        return write_json(out, x.get_string());
    case value::bool_type:
        out += x.get_bool() ? "true" : "false";
        return;
    case value::object_type:
    case value::array_type:
        break;
    default:
        out += x.without_key().to<std::string>();
        return;
    }
    const char *between = x.is_object() ? "{" : "[";
    for (const value &member : x) {
        out += between;
        between = ",";
        if (x.is_object()) {
            write_json(out, member.get_key());
            out += ':';
        }
        write_json(out, member);
    }
    if (x.empty())
        out += between;
    out += x.is_object() ? '}' : ']';
}

// Reads one value; what is not JSON throws with the place.
class json_reader
{
  public:
    explicit json_reader(const std::string &text) : m_text(text)
    {
    }
    value read()
    {
        value result = any(0);
        if (peek() != '\0' || m_at != m_text.size())
            fail("the end");
        return result;
    }

  private:
    static constexpr int max_depth = 100;
    const std::string &m_text;
    std::size_t m_at = 0;

    [[noreturn]] void fail(const char *what) const
    {
        throw std::runtime_error("JSON: expected " + std::string(what) + " at byte " +
                                 std::to_string(m_at));
    }
    char peek()
    {
        while (m_at < m_text.size() &&
               std::string(" \t\r\n").find(m_text[m_at]) != std::string::npos)
            m_at++;
        return m_at < m_text.size() ? m_text[m_at] : '\0';
    }
    bool accept(char c)
    {
        if (peek() != c)
            return false;
        m_at++;
        return true;
    }
    void expect(char c)
    {
        const char what[] = {'\'', c, '\'', '\0'};
        if (!accept(c))
            fail(what);
    }
    bool accept_word(const std::string &word)
    {
        if (m_text.compare(m_at, word.size(), word) != 0)
            return false;
        m_at += word.size();
        return true;
    }
    value any(int depth)
    {
        const char next = peek();
        if (depth > max_depth)
            fail("less depth");
        if (next == '{')
            return object(depth);
        if (next == '[')
            return array(depth);
        if (next == '"')
            return text();
        if (accept_word("true"))
            return true;
        if (accept_word("false"))
            return false;
        if (accept_word("null"))
            return nullptr;
        return number();
    }
    value array(int depth)
    {
        value::array members;
        expect('[');
        while (!accept(']')) {
            if (!members.empty())
                expect(',');
            members.push_back(any(depth + 1));
        }
        return members;
    }
    value object(int depth)
    {
        value result(value::object{});
        expect('{');
        while (!accept('}')) {
            if (!result.empty())
                expect(',');
            if (peek() != '"')
                fail("a key");
            const std::string key = text();
            expect(':');
            result[key] = any(depth + 1);
        }
        return result;
    }
    std::string text()
    {
        std::string result;
        for (expect('"'); m_at < m_text.size() && m_text[m_at] != '"'; m_at++) {
            if (m_text[m_at] == '\\')
                escape(result);
            else
                result += m_text[m_at];
        }
        expect('"');
        return result;
    }
    // At a backslash; stays on the last character of the sequence.
    void escape(std::string &out)
    {
        static const std::string codes = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
        const char code = ++m_at < m_text.size() ? m_text[m_at] : '\0';
        const auto known = codes.find(code);
        if (code != '\0' && known != std::string::npos) {
            out += meanings[known];
            return;
        }
        if (code != 'u' || m_text.size() - m_at < 5)
            fail("an escape");
        const std::string digits = m_text.substr(m_at + 1, 4);
        char *end = nullptr;
        append_utf8(out, static_cast<unsigned>(std::strtoul(digits.c_str(), &end, 16)));
        if (*end)
            fail("four digits");
        m_at += 4;
    }
    static void append_utf8(std::string &out, unsigned code)
    {
        if (code < 0x80) {
            out += static_cast<char>(code);
        } else if (code < 0x800) {
            out += static_cast<char>(0xc0 | code >> 6);
            out += static_cast<char>(0x80 | (code & 0x3f));
        } else {
            out += static_cast<char>(0xe0 | code >> 12);
            out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
            out += static_cast<char>(0x80 | (code & 0x3f));
        }
    }
    // Whole numbers stay whole.
    value number()
    {
        const auto size = std::min(m_text.find_first_of(",]} \t\r\n", m_at), m_text.size()) - m_at;
        const std::string token = m_text.substr(m_at, size);
        const bool whole = token.find_first_not_of("-0123456789") == std::string::npos;
        value result;
        try {
            std::size_t used = 0;
            if (!whole)
                result = std::stod(token, &used);
            else if (token[0] == '-')
                result = static_cast<int64_t>(std::stoll(token, &used));
            else
                result = static_cast<uint64_t>(std::stoull(token, &used));
            if (used != token.size())
                fail("a number");
        } catch (const std::logic_error &) {
            fail("a number");
        }
        m_at += size;
        return result;
    }
};

} // namespace detail

inline std::string to_json_string(const value &x)
{
    std::string result;
    detail::write_json(result, x);
    return result;
}

inline value from_json_string(const std::string &text)
{
    return detail::json_reader(text).read();
}

} // namespace version_1
} // namespace migraphx

#endif
