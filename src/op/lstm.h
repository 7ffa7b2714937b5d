// SPDX-License-Identifier: MIT
// What a recurrent operator gives, and which of them multiply bytes: asked by whoever lowers or
// rewrites them.
#pragma once

#include "op/reference/rnn.h"

enum mgx_rnn_gives mgx_rnn_gives(const struct mgx_op *op);
bool mgx_rnn_is_of_bytes(const struct mgx_op *op);
