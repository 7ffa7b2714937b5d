// SPDX-License-Identifier: MIT
// Whole files in and out of memory. Needs nothing else of the engine: usable beside migraphx.hpp
// and the headers of the guides alike.
#ifndef MIGRAPHX_GUARD_FILE_BUFFER_HPP
#define MIGRAPHX_GUARD_FILE_BUFFER_HPP

#include <migraphx/filesystem.hpp>

#include <cstddef>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace migraphx
{
inline namespace version_1
{

namespace detail
{

// `size` 0: all that follows `offset`.
template <class Bytes>
Bytes read_file(const std::string &filename, std::size_t offset, std::size_t size)
{
    std::ifstream file(filename, std::ios::binary | std::ios::ate);
    if (!file)
        throw std::runtime_error(filename + ": cannot be opened");
    const auto end = static_cast<std::size_t>(file.tellg());
    if (offset > end || size > end - offset)
        throw std::runtime_error(filename + ": has " + std::to_string(end) + " bytes where " +
                                 std::to_string(offset + size) + " are needed");
    Bytes result(size ? size : end - offset, '\0');
    file.seekg(static_cast<std::streamoff>(offset));
    if (!result.empty() && !file.read(&result[0], static_cast<std::streamsize>(result.size())))
        throw std::runtime_error(filename + ": cannot be read");
    return result;
}

} // namespace detail

inline std::vector<char> read_buffer(const std::string &filename, std::size_t offset = 0,
                                     std::size_t size = 0)
{
    return detail::read_file<std::vector<char>>(filename, offset, size);
}

inline std::string read_string(const std::string &filename)
{
    return detail::read_file<std::string>(filename, 0, 0);
}

inline void write_buffer(const std::string &filename, const char *buffer, std::size_t size)
{
    std::ofstream file(filename, std::ios::binary);
    if (!file.write(buffer, static_cast<std::streamsize>(size)) || !file.flush())
        throw std::runtime_error(filename + ": cannot be written");
}

inline void write_buffer(const std::string &filename, const std::vector<char> &buffer)
{
    write_buffer(filename, buffer.data(), buffer.size());
}

inline void write_string(const std::string &filename, const std::string &buffer)
{
    write_buffer(filename, buffer.data(), buffer.size());
}

} // namespace version_1
} // namespace migraphx

#endif
