// SPDX-License-Identifier: MIT
// Calls of the model's functions, for the operators whose branches and bodies they are.
#pragma once

#include "tf/graph.h"

// Imports a function's body into a module; its results go to the import's arena.
enum mgx_status mgx_tf_call(struct mgx_node *n, struct mgx_tf_body *body, struct mgx_module *module,
                            struct mgx_ins *const *args, int arg_count, struct mgx_ins ***results,
                            int *result_count) MGX_NODISCARD;
