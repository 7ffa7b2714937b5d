// SPDX-License-Identifier: MIT
// Memory of a GPU in MIGraphX's guides. This build drives no such device, so each of these throws
// std::runtime_error that says so, as compiling for gpu::target does; programs that ask for a
// device only when there is one build and run. See native.hpp.
#ifndef MIGRAPHX_GUARD_NATIVE_GPU_HPP
#define MIGRAPHX_GUARD_NATIVE_GPU_HPP

#include <migraphx/native/argument.hpp>

namespace migraphx
{
inline namespace version_1
{
namespace gpu
{

[[noreturn]] inline void no_device(const char *function)
{
    throw std::runtime_error(std::string(function) + ": GPU devices are not part of this build");
}

[[noreturn]] inline argument to_gpu(const argument &, bool = false)
{
    no_device("to_gpu");
}

[[noreturn]] inline argument from_gpu(const argument &)
{
    no_device("from_gpu");
}

[[noreturn]] inline argument allocate_gpu(const shape &, bool = false)
{
    no_device("allocate_gpu");
}

[[noreturn]] inline argument register_on_gpu(const argument &)
{
    no_device("register_on_gpu");
}

[[noreturn]] inline void copy_to_gpu(const argument &, const argument &)
{
    no_device("copy_to_gpu");
}

[[noreturn]] inline void copy_from_gpu(const argument &, const argument &)
{
    no_device("copy_from_gpu");
}

[[noreturn]] inline void set_device(std::size_t)
{
    no_device("set_device");
}

[[noreturn]] inline void gpu_sync()
{
    no_device("gpu_sync");
}

} // namespace gpu
} // namespace version_1
} // namespace migraphx

#endif
