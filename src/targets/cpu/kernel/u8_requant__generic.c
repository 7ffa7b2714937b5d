// SPDX-License-Identifier: MIT
// Tiles to bytes for any machine; see requant.h.
#include "targets/cpu/kernel/u8_requant.h"
