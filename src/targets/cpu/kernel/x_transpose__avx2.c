// SPDX-License-Identifier: MIT
// Transposition for AVX2; see x_transpose.h.
#if defined(__x86_64__)
#include "targets/cpu/kernel/x_transpose.h"
#endif
