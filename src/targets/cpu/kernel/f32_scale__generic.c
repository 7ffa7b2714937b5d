// SPDX-License-Identifier: MIT
// Scaling of rows for any machine; see scale.h.
#include "targets/cpu/kernel/f32_scale.h"
