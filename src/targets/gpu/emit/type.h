// SPDX-License-Identifier: MIT
// Element types in kernels: how a value lies in memory, and what it is while it is computed.
//
// Values are held as op/source.h says: floats of 16 and 32 bits as pw_real, which is float here, so
// that a fused body rounds once, when it stores; integers as 64 bits.
#pragma once

#include "base/str.h"
#include "ir/type.h"

enum gpu_class { GPU_NONE, GPU_REAL, GPU_SIGNED, GPU_UNSIGNED };

// GPU_NONE for a type that kernels do not know (strings, ...), or but element-wise ones (of 8 bits and
// less that are no ordinary integers).
enum gpu_class gpu_type_class(enum mgx_type type);
bool gpu_type_is_elementwise(enum mgx_type type);
const char *gpu_type_memory(enum mgx_type type); // "float", "u16", ...
const char *gpu_type_value(enum mgx_type type);  // "pw_real", "double", "i64", "u64"

// Appends an expression: an element as it lies in memory widened to a value, and a value narrowed.
void gpu_emit_widened(struct mgx_str *out, enum mgx_type type, const char *element);
void gpu_emit_narrowed(struct mgx_str *out, enum mgx_type type, const char *value);
// Appends an expression that reads element `at` (text) of `array` as a value,
void gpu_emit_load(struct mgx_str *out, enum mgx_type type, const char *array, const char *at);
// and a statement that writes one, narrowing it.
void gpu_emit_store(struct mgx_str *out, enum mgx_type type, const char *array, const char *at,
                    const char *value);
// A float constant that reads back as exactly this one, infinities and NaN too.
void gpu_emit_real(struct mgx_str *out, double x);

// Lines "#define NAME value" for templates (kernel/text.h).
void gpu_define(struct mgx_str *out, const char *name, int64_t value);
void gpu_define_real(struct mgx_str *out, const char *name, double value);
// `type_name`, the type in memory (NULL: not), and load(at), an element of the array as it is computed with.
void gpu_define_load(struct mgx_str *out, const char *type_name, const char *load,
                     enum mgx_type type, const char *array);
