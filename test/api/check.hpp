// SPDX-License-Identifier: MIT
// What the tests of the C++ headers share: CHECK, and the text of what a call throws.
#pragma once

#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>

static int failures;

#define CHECK(...)                                                                                 \
    do {                                                                                           \
        if (!(__VA_ARGS__)) {                                                                      \
            std::printf("%s:%d: not true: %s\n", __FILE__, __LINE__, #__VA_ARGS__);                \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

// "" if it throws nothing.
static inline std::string thrown(const std::function<void()> &f)
{
    try {
        f();
    } catch (const std::runtime_error &e) {
        return e.what();
    }
    return "";
}

static inline bool contains(const std::string &text, const std::string &part)
{
    return text.find(part) != std::string::npos;
}

static inline int summary()
{
    std::printf("%d failed checks\n", failures);
    return failures != 0;
}
