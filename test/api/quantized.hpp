// SPDX-License-Identifier: MIT
// What the tests of quantizing share, in whichever C++: made-up layers of two products and what comes of them.
#pragma once

#include "check.hpp"

#include <cmath>
#include <cstddef>
#include <vector>

static const std::size_t rows = 12, width = 32;

static std::vector<float> numbers(std::size_t count, unsigned seed, float scale)
{
    std::vector<float> v(count);
    for (auto &x : v) {
        seed = seed * 1664525u + 1013904223u;
        x = (static_cast<float>(seed >> 8) / (1 << 23) - 1) * scale;
    }
    return v;
}

static std::vector<float> weights = numbers(width * width, 7, 0.3f);
static std::vector<float> sample = numbers(rows * width, 9, 2);

// The norm of the difference by that of b.
static double apart(const std::vector<float> &a, const std::vector<float> &b)
{
    double off = 0, size = 0;
    for (std::size_t i = 0; i < b.size() && i < a.size(); i++) {
        off += std::pow(a[i] - b[i], 2);
        size += std::pow(b[i], 2);
    }
    return a.size() == b.size() ? std::sqrt(off / size) : 1e9;
}

// What a run gives, three times the same.
template <class Run>
static std::vector<float> thrice(const Run &run)
{
    const std::vector<float> first = run();
    CHECK(run() == first && run() == first);
    return first;
}
