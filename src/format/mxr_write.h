// SPDX-License-Identifier: MIT
// The parts of writing a program that both kinds of file share.
#pragma once

#include "base/map.h"
#include "format/mxr.h"
#include "format/tree.h"
#include "ir/module.h"

// Where literals lie in the data of a container: address of their bytes -> offset + 1. Those that
// are not among them are written with the program.
struct mgx_mxr_places {
    struct mgx_map at;
};

// A tensor as a tree, its bytes not copied.
struct mgx_value *mgx_mxr_tensor_value(struct mgx_arena *arena, const struct mgx_tensor *t);
// The program as a tree; its texts and bytes point into it. Without `places`, as MIGraphX has it.
enum mgx_status mgx_mxr_program_value(struct mgx_arena *arena, const struct mgx_program *p,
                                      const char *target, const struct mgx_mxr_places *places,
                                      struct mgx_value **out, struct mgx_diag *diag) MGX_NODISCARD;
// The whole container.
enum mgx_status mgx_mxr_write_container(struct mgx_sink *sink, const struct mgx_mxr_forms *what,
                                        struct mgx_diag *diag) MGX_NODISCARD;
