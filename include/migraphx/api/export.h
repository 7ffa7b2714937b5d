// SPDX-License-Identifier: MIT
// Marks the functions that leave libmigraphx_c; everything else is hidden.
#ifndef MIGRAPHX_GUARD_API_EXPORT_H
#define MIGRAPHX_GUARD_API_EXPORT_H

#if defined(__GNUC__)
#define MIGRAPHX_C_EXPORT __attribute__((visibility("default")))
#define MIGRAPHX_C_NO_EXPORT __attribute__((visibility("hidden")))
#define MIGRAPHX_C_DEPRECATED __attribute__((deprecated))
#else
#define MIGRAPHX_C_EXPORT
#define MIGRAPHX_C_NO_EXPORT
#define MIGRAPHX_C_DEPRECATED
#endif

#endif
