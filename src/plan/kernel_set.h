// SPDX-License-Identifier: MIT
// Which kernels these are: a number over the engine's sources. Constants that other kernels packed,
// and times that were measured of them, are nothing to these.
#pragma once

const char *mgx_kernel_set(void);
