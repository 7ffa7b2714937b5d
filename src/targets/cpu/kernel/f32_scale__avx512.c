// SPDX-License-Identifier: MIT
// Scaling of rows for AVX-512; see scale.h.
#if defined(__x86_64__)
#include "targets/cpu/kernel/f32_scale.h"
#endif
