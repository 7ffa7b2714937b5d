// SPDX-License-Identifier: MIT
// Scaling of rows for any machine; see scale.h.
#include "target/cpu/kernel/f32_scale.h"
