// SPDX-License-Identifier: MIT
// Blocks of any type for avx2; see x_typed.h.
#include "targets/cpu/kernel/x_typed.h"
