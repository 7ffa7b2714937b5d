// SPDX-License-Identifier: MIT
// A product with what is done before and behind it, by roles:
//
//     end(product(pad(make(x)), w, ...), ...)      end(product(x * factor, w, ...), ...)
//
// of which all but the product may be missing. Passes find them in programs and ask the target
// whether its product takes them (mgx_pass_target.takes); targets read the bodies of groups so.
#pragma once

#include "pass/engine/pass.h"

struct mgx_product_roles {
    // The group's body that it was read from; NULL: instructions of a program.
    const struct mgx_module *body;
    struct mgx_ins *product; // or bytes that all steps are a function of
    // Before it: a product with one factor for every channel; or what makes its image of one
    // array, and what puts values around that.
    struct mgx_ins *factor, *make, *pad;
    struct mgx_ins *end; // one element-wise instruction that reads it
    // Element-wise instructions behind it that may become one, the last of them first; a step to
    // bytes that would come to them; and the first of them that reads another product's results.
    struct mgx_ins *const *steps;
    int step_count;
    const struct mgx_ins *bytes, *meet;
    bool zeros; // the zero points of its bytes, which it takes off by itself
};

// Reads a product that stands alone, or a group tagged "epilogue"; false for all else. O(body).
bool mgx_read_product(const struct mgx_ins *ins, struct mgx_product_roles *out);
// Which input of the group, or of the product alone, its operand i is before anything is done to it
// (of `factor` its first one); -1: none.
int mgx_product_operand(const struct mgx_product_roles *roles, int i);
// Is `from` read, by the steps alone, on the way to `to`?
bool mgx_step_leads(const struct mgx_product_roles *roles, const struct mgx_ins *from,
                    const struct mgx_ins *to);
// Does the target's product of bytes take off zero points that are known by itself?
bool mgx_keeps_zeros(const struct mgx_pass_options *options, struct mgx_ins *ins);
// Does a product of the target take all of that? One that does not say takes no work before its
// products but factors, and leaves no floats of 16 bits.
bool mgx_target_takes(const struct mgx_pass_options *options,
                      const struct mgx_product_roles *roles);
