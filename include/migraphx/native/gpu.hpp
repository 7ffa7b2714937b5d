// SPDX-License-Identifier: MIT
// Memory of a GPU in MIGraphX's guides: what programs compiled for gpu::target without offload_copy
// take and give. Where there is no card each of these throws std::runtime_error that says what
// every driver lacked. See native.hpp.
#ifndef MIGRAPHX_GUARD_NATIVE_GPU_HPP
#define MIGRAPHX_GUARD_NATIVE_GPU_HPP

#include <migraphx/native/argument.hpp>

namespace migraphx
{
inline namespace version_1
{
namespace gpu
{
namespace detail_gpu
{

// ":1": number 1 of the driver that target "gpu" finds; of this thread.
inline std::string &device()
{
    thread_local std::string name;
    return name;
}

inline argument copy(const argument &arg, const char *device)
{
    return argument(detail::make<migraphx_argument>(migraphx_device_copy, arg.handle(), device));
}

inline const char *here(bool host)
{
    return host ? "host" : device().empty() ? nullptr : device().c_str();
}

} // namespace detail_gpu

// The card of this thread's later calls of these functions; compile_options.device_id chooses that
// of a program.
inline void set_device(std::size_t id)
{
    detail_gpu::device() = id ? ":" + std::to_string(id) : std::string();
}

// A copy on the card; with `host` in host memory.
inline argument to_gpu(const argument &arg, bool host = false)
{
    return detail_gpu::copy(arg, detail_gpu::here(host));
}

// A copy in host memory, when the card is done with what it was given.
inline argument from_gpu(const argument &arg)
{
    return detail_gpu::copy(arg, "host");
}

// Room on the card, with whatever bytes are there.
inline argument allocate_gpu(const shape &s, bool host = false)
{
    return argument(detail::make<migraphx_argument>(migraphx_device_allocate, s.handle(),
                                                    detail_gpu::here(host)));
}

// What the card reads of host memory, here a copy.
inline argument register_on_gpu(const argument &arg)
{
    return to_gpu(arg);
}

inline void copy_to_gpu(const argument &from, const argument &to)
{
    detail::call(
        migraphx_device_copy_into(const_cast<migraphx_argument_t>(to.handle()), from.handle()));
}

inline void copy_from_gpu(const argument &from, const argument &to)
{
    copy_to_gpu(from, to);
}

inline void gpu_copy(const argument &from, const argument &to)
{
    copy_to_gpu(from, to);
}

// Waits until the card has done all that it was given.
inline void gpu_sync()
{
    detail::call(migraphx_device_wait(detail_gpu::here(false)));
}

} // namespace gpu
} // namespace version_1
} // namespace migraphx

#endif
