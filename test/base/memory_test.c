// SPDX-License-Identifier: MIT
// Small pages become huge ones in place: what lies in them stays, and there is an end to it.
#include "base/memory.h"

#include <stdlib.h>

#include "check.h"

enum { MIB = 1 << 20, BYTES = 9 * MIB };

// Not zero where a page begins: a zero written there must show.
static unsigned char value(size_t i)
{
    return (unsigned char)((i + 1) * 2654435761u >> 13);
}

CASE(what_lies_in_pages_that_grow_stays)
{
    mgx_memory_grows_from_now();
    unsigned char *block = mgx_memory_aligned(64, BYTES);
    CHECK(block);
    mgx_memory_begin(block, BYTES);
    for (size_t i = 0; i < BYTES; i++)
        block[i] = value(i);
    size_t done = 0;
    int steps = 0;
    while (steps < 100 && mgx_memory_grow(block + 64, BYTES - 64, &done))
        steps++;
    // Whole pages of 2 MiB between the first and the last byte given.
    CHECK(steps == 0 || steps == 3);
    CHECK(!mgx_memory_grow(block + 64, BYTES - 64, &done));
    size_t wrong = 0;
    for (size_t i = 0; i < BYTES; i++)
        wrong += block[i] != value(i);
    CHECK_INT(wrong, 0);
    free(block);
}

CASE(what_is_there_stays_when_a_part_begins)
{
    unsigned char *block = mgx_memory_aligned(64, BYTES);
    CHECK(block);
    for (size_t i = 0; i < BYTES; i++)
        block[i] = value(i);
    mgx_memory_begin(block + 100, BYTES - 200);
    mgx_memory_begin(block + 100, 1);
    size_t wrong = 0;
    for (size_t i = 0; i < BYTES; i++)
        wrong += block[i] != value(i);
    CHECK_INT(wrong, 0);
    free(block);
}

CASE(less_than_a_page_does_not_grow)
{
    size_t done = 0;
    char small[64];
    CHECK(!mgx_memory_grow(small, sizeof small, &done));
}

TEST_MAIN(ROW(what_is_there_stays_when_a_part_begins) ROW(what_lies_in_pages_that_grow_stays)
              ROW(less_than_a_page_does_not_grow))
