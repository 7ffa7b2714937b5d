// SPDX-License-Identifier: MIT
// What a group of instructions is called, so that a person who reads a program or a profile sees
// what it computes: convolution_add_relu, dot_add_gelu, layer_norm.
#pragma once

#include "ir/module.h"

enum { MGX_GROUP_NAME = 96 };

// The name of `count` instructions in the module's order, fused under a tag: the tag where it says
// what they are, else their operators, those of bodies in place, views left out.
void mgx_name_group(struct mgx_ins *const *ins, int count, const char *tag,
                    char out[MGX_GROUP_NAME]);
