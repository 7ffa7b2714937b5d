// SPDX-License-Identifier: MIT
// Blocks of any type for avx512; see x_typed.h.
#include "targets/cpu/kernel/x_typed.h"
