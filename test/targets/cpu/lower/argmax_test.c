// SPDX-License-Identifier: MIT
// argmax and argmin: one step, and the reference's places, on lines side by side and lines that lie
// apart, longer than a block and shorter than a vector, with ties, zeros of both signs and no numbers.
#include <stdio.h>

#include "base/size.h"
#include "targets/cpu/program.h"

static const struct {
    const char *lens, *strides;
    int axis;
} shapes[] = {
    {"2, 5, 24", "120, 24, 1", 2},
    {"3, 2000", "2000, 1", 1},
    {"2, 1300", "1300, 1", -1},
    {"9, 200", "200, 1", 0},
    {"2, 700, 3", "2100, 3, 1", 1},
    {"2, 7, 5, 13", "455, 65, 13, 1", 1},
    {"2, 7, 5, 13", "455, 1, 91, 7", 1},
    {"2, 7, 5, 13", "455, 65, 13, 1", 2},
    {"4, 1", "1, 1", 1},
    {"1, 64", "64, 1", 1},
    {"65, 64", "64, 1", 0},
    {"40, 30", "1, 40", 1},
};
// Of numbers between -1 and 1.
static const char *const values[] = {
    "@v = identity(x)\n",
    "@m = mul(x,x)\n@c = add(@m,x)\n@v = ceil(@c)\n", // few values, -0 among them
    "@v = sqrt(x)\n",                                 // NaN in half of the places
};

static bool agrees(int shape, int value, const char *op, int last)
{
    char text[1024];
    snprintf(text, sizeof text,
             "module: \"main\"\nx = @param:x -> float_type, {%s}, {%s}\n%s"
             "@a = %s[axis=%d,select_last_index=%d](@v)\n@r = @return(@a)\n",
             shapes[shape].lens, shapes[shape].strides, values[value], op, shapes[shape].axis,
             last);
    return program_agrees(text, value ? 2 : 1, 0.5);
}

CASE(places_are_those_of_the_reference)
{
    for (int s = 0; s < MGX_COUNT(shapes); s++)
        for (int v = 0; v < MGX_COUNT(values); v++)
            for (int last = 0; last < 2; last++) {
                CHECK(agrees(s, v, "argmax", last));
                CHECK(agrees(s, v, "argmin", last));
            }
}

TEST_MAIN(ROW(places_are_those_of_the_reference))
