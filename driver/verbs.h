// SPDX-License-Identifier: MIT
// The verbs, each defined in cmd_<name>.c and listed in main.c.
#pragma once

#include "driver.h"

extern const struct verb verb_read, verb_compile, verb_run, verb_time, verb_perf, verb_verify,
    verb_params, verb_op, verb_onnx;
