// SPDX-License-Identifier: MIT
// Blocks of any type for generic; see x_typed.h.
#include "target/cpu/kernel/x_typed.h"
