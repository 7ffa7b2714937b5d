// SPDX-License-Identifier: MIT
// Reading the parts of a saved program: what is missing or does not fit is said, nothing is
// believed.
#pragma once

#include "format/mxr.h"
#include "format/tree.h"
#include "ir/carry.h"
#include "ir/module.h"

enum { MGX_MXR_MAX_LIST = 1 << 20 }; // members of a tuple, inputs of an instruction

// "<of> without a proper <what>"
enum mgx_status mgx_mxr_missing(const char *what, const char *of, struct mgx_diag *diag);
// The entry `key` of a map, of this kind.
enum mgx_status mgx_mxr_need(const struct mgx_value *map, const char *key, enum mgx_value_kind kind,
                             const char *of, const struct mgx_value **out,
                             struct mgx_diag *diag) MGX_NODISCARD;
// A checked shape whose ranges and members lie in the arena. `depth` starts at 0.
enum mgx_status mgx_mxr_read_shape(struct mgx_arena *arena, const struct mgx_value *v, int depth,
                                   struct mgx_shape *out, struct mgx_diag *diag) MGX_NODISCARD;
// A program from its tree. Literals are views of `file` (may be NULL) where they lie well; those
// with a place are in the carry's data. *out has a carry, made here without one, if it was
// compiled.
enum mgx_status mgx_mxr_build(struct mgx_program **out, const struct mgx_op_set *ops,
                              struct mgx_arena *arena, struct mgx_storage *file,
                              struct mgx_carry *carry, const struct mgx_value *root,
                              struct mgx_diag *diag) MGX_NODISCARD;
// A program from a container, whose storage it shares.
enum mgx_status mgx_mxr_read_container(struct mgx_program **out, const struct mgx_op_set *ops,
                                       struct mgx_storage *file,
                                       const struct mgx_carry_chooser *chooser,
                                       struct mgx_diag *diag) MGX_NODISCARD;
// A tensor: a view of `file` (may be NULL) where its bytes lie well, else a copy. Its shape's
// members lie in the arena.
enum mgx_status mgx_mxr_read_tensor(struct mgx_arena *arena, struct mgx_storage *file,
                                    const struct mgx_value *v, int depth, struct mgx_tensor *out,
                                    struct mgx_diag *diag) MGX_NODISCARD;
