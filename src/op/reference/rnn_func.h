// SPDX-License-Identifier: MIT
// Activations of recurrent cells, by name.
#pragma once

#include "base/size.h"
#include "op/reference/rnn.h"

// Takes alpha and beta off the front of the lists where the activation has such a parameter and a
// value is left. False if the name is unknown.
bool mgx_rnn_func_find(const char *name, struct mgx_doubles *alphas, struct mgx_doubles *betas,
                       struct mgx_rnn_func *out);
