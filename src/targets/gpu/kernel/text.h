// SPDX-License-Identifier: MIT
// The kernels' source texts, which the build makes part of the library: kernel/<name>.gpu.
#pragma once

#define TEXT(name, text) extern const char gpu_text_##name[];
#include "gpu_text.inc"
#undef TEXT
