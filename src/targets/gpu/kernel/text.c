// SPDX-License-Identifier: MIT
// The texts themselves; tool/embed.sh writes the list.
#include "targets/gpu/kernel/text.h"

// C promises 4,095 characters in a string, gcc and clang take any number.
#pragma GCC diagnostic ignored "-Woverlength-strings"

#define TEXT(name, text) const char gpu_text_##name[] = text;
#include "gpu_text.inc"
#undef TEXT
