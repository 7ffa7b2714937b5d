// SPDX-License-Identifier: MIT
// Elimination of types that a target does not compute in; eliminate_data_type.c.
#pragma once

#include "base/map.h"
#include "pass/pass.h"

struct mgx_data_types {
    uint64_t types;                   // bit t: instructions of type t are to go
    enum mgx_type target;             // they are computed in this type instead
    const struct mgx_op *const *keep; // operators that the target has for these types; ends with
                                      // NULL, NULL for none
    const struct mgx_map *spared;     // instructions that stay as they are, by address; NULL: none
    const struct mgx_map *only;       // no others change; NULL: all
    bool saturate; // finite values beyond the target become its largest, not infinite
};

#define MGX_TYPE_BIT(type) ((uint64_t)1 << (type))

enum mgx_status mgx_eliminate_data_type(struct mgx_pass_call *c, struct mgx_module *m,
                                        const struct mgx_data_types *d) MGX_NODISCARD;
