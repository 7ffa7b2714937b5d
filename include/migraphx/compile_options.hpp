// SPDX-License-Identifier: MIT
// Options of compiling as MIGraphX's guides have them. Needs nothing else of the engine: usable
// beside migraphx.hpp, whose class of this name is a handle, and native.hpp alike. A handle
// (migraphx_compile_options_t) begins with the first three fields.
#ifndef MIGRAPHX_GUARD_COMPILE_OPTIONS_HPP
#define MIGRAPHX_GUARD_COMPILE_OPTIONS_HPP

#include <migraphx/config.hpp>

namespace migraphx
{
inline namespace version_1
{

struct compile_options {
    bool offload_copy = false;
    bool fast_math = true;
    bool exhaustive_tune_flag = false;
    int device_id = 0;
};

} // namespace version_1
} // namespace migraphx

#endif
