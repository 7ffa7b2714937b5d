// SPDX-License-Identifier: MIT
// The version of MIGraphX whose interface this engine serves.
#ifndef MIGRAPHX_GUARD_VERSION_H
#define MIGRAPHX_GUARD_VERSION_H

#define MIGRAPHX_VERSION_MAJOR 2
#define MIGRAPHX_VERSION_MINOR 16
#define MIGRAPHX_VERSION_PATCH 0
#define MIGRAPHX_VERSION_TWEAK "dev"
#define MIGRAPHX_SO_MAJOR_VERSION 3

#endif
