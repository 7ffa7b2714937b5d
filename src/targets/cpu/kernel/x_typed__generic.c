// SPDX-License-Identifier: MIT
// Blocks of any type for generic; see x_typed.h.
#include "targets/cpu/kernel/x_typed.h"
