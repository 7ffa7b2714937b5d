// SPDX-License-Identifier: MIT
// The names of activations, for explanations and messages.
#include "targets/cpu/kernel/vector/act.h"

const char *mgx_act_name(enum mgx_act act)
{
    static const char *const names[] = {
#define X(name, text, meaning) text,
        MGX_ACT_LIST(X)
#undef X
    };
    return names[act];
}
