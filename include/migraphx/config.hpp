// SPDX-License-Identifier: MIT
// The name of the namespace that holds the classes of MIGraphX's guides (native.hpp). Needs nothing
// else of the engine.
#ifndef MIGRAPHX_GUARD_CONFIG_HPP
#define MIGRAPHX_GUARD_CONFIG_HPP

#define MIGRAPHX_INLINE_NS version_1

#endif
