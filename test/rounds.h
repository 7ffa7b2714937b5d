// SPDX-License-Identifier: MIT
// How many random problems a test tries.
#pragma once

#include <stdlib.h>

// `rounds`, or a fifth of them where MGX_TEST_PART=5 says so, for machines that are emulated. Never
// none.
static inline int check_rounds(int rounds)
{
    const char *part = getenv("MGX_TEST_PART");
    const int divisor = part ? atoi(part) : 1;
    return divisor <= 1 ? rounds : rounds > divisor ? rounds / divisor : 1;
}
