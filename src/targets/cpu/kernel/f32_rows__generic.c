// SPDX-License-Identifier: MIT
// Row kernels for generic; see f32_rows.h.
#include "targets/cpu/kernel/f32_rows.h"
