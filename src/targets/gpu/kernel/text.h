// SPDX-License-Identifier: MIT
// The kernels' source texts, which the build makes part of the library: kernel/<name>.gpu.
#pragma once

#include "base/str.h"

// With each the names that somebody has to define before it, a space around each: its lines
// "// Wants: ..." (tool/templates.py).
#define TEXT(name, wants, text) extern const char gpu_text_##name[], gpu_wants_##name[];
#include "gpu_text.inc"
#undef TEXT

// Writes a template behind the text that defines what it wants.
void gpu_put_text(struct mgx_str *out, const char *text, const char *wants);
#define GPU_PUT(out, name) gpu_put_text(out, gpu_text_##name, gpu_wants_##name)
