// SPDX-License-Identifier: MIT
// What the examples share: one way to handle a failing call.
#pragma once

#include <migraphx/extensions.h>
#include <stdio.h>
#include <stdlib.h>

// Every call of the C API returns a status; an example has nothing better to do than to say why and
// stop.
#define DO(call)                                                                                   \
    do {                                                                                           \
        if ((call) != migraphx_status_success) {                                                   \
            const char *why_ = "";                                                                 \
            migraphx_get_last_error(&why_);                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, why_);                              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
