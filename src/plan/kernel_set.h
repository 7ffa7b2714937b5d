// SPDX-License-Identifier: MIT
// Which kernels these are: a number over the engine's sources. Constants that a library with
// another number packed, and times that it measured, are not used.
#pragma once

const char *mgx_kernel_set(void);
