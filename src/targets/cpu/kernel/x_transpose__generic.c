// SPDX-License-Identifier: MIT
// Transposition for any machine; see x_transpose.h.
#include "targets/cpu/kernel/x_transpose.h"
