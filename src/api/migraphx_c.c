// SPDX-License-Identifier: MIT
// The shared library libmigraphx_c.so.3 is the whole engine; this file only gives the link step a
// source. Symbols leave it through MIGRAPHX_C_EXPORT in src/api alone.
typedef int mgx_translation_unit_is_not_empty;
