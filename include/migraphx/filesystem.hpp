// SPDX-License-Identifier: MIT
// migraphx::fs: the standard's filesystem, where the standard is C++17 or later. Needs nothing else
// of the engine.
#ifndef MIGRAPHX_GUARD_FILESYSTEM_HPP
#define MIGRAPHX_GUARD_FILESYSTEM_HPP

#if __cplusplus >= 201703L
#include <filesystem>

namespace migraphx
{
inline namespace version_1
{

namespace fs = ::std::filesystem;

} // namespace version_1
} // namespace migraphx
#endif

#endif
