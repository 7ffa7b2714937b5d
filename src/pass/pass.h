// SPDX-License-Identifier: MIT
// The passes: each is a const object mgx_pass_<name> in src/pass/<name>.c; the folder is the list.
//
//     engine/   runs passes (manager), applies equations (match, rewrite), and what rewrites share
//     rules/    tables of equations, one kind of rewrite each; passes here apply them
//     *.c       one pass each; a pass that no pipeline runs says in its head who asks for it
//
// An include points from passes to rules to the engine.
#pragma once

#include "pass/engine/pass.h"

#define PASS(name) extern const struct mgx_pass mgx_pass_##name;
#include "pass_list.inc"
#undef PASS

const struct mgx_pass *mgx_pass_find(const char *name);
const struct mgx_pass *const *mgx_pass_all(int *count);

// What every target runs first, in order (driver: read -O). Ends with NULL.
extern const struct mgx_pass *const mgx_pipeline_simplify[];
