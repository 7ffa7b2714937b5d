// SPDX-License-Identifier: MIT
// The operators: every one is a const object mgx_op_<name>, declared here by a list that the build
// makes from the definitions it finds in this folder. Adding an operator is adding its file (or its
// row in pointwise_rows.h).
#pragma once

#include "ir/module.h"

#define OP(name) extern const struct mgx_op mgx_op_##name;
#include "op_list.inc"
#undef OP

// By name; NULL if unknown.
const struct mgx_op *mgx_op_find(const char *name);
// All operators sorted by name.
const struct mgx_op *const *mgx_op_all(int *count);
// Is this a group of that tag? (group.c)
bool mgx_is_group(const struct mgx_ins *ins, const char *tag);
// The set to create programs with.
extern const struct mgx_op_set mgx_ops;
