// SPDX-License-Identifier: MIT
// Transposition for AVX-512; see x_transpose.h.
#if defined(__x86_64__)
#include "targets/cpu/kernel/x_transpose.h"
#endif
