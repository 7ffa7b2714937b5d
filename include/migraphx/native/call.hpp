// SPDX-License-Identifier: MIT
// Calling C from the classes of MIGraphX's guides: errors, handles, texts. See native.hpp.
#ifndef MIGRAPHX_GUARD_NATIVE_CALL_HPP
#define MIGRAPHX_GUARD_NATIVE_CALL_HPP

#include <migraphx/extensions.h>

#include <memory>
#include <stdexcept>
#include <string>

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
    const unique_handle<char, migraphx_string_destroy> owned{text};
    return text;
}

// The text that a *_to_string function gives.
template <class F, class... Ts> std::string text_of(F f, Ts... xs)
{
    char *text = nullptr;
    call(f(&text, xs...));
    return take(text);
}

} // namespace detail
} // namespace version_1
} // namespace migraphx

#endif
