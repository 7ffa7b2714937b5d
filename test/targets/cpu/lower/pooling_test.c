// SPDX-License-Identifier: MIT
// Pooling by its kernel, against the reference: one to three axes, every way to pad, images in
// another order of memory.
#include "targets/cpu/program.h"

#define POOL(mode, more) "@y = pooling[mode=" mode "," more "](x)\n@r = @return(@y)\n"
#define EACH(head, more, steps)                                                                    \
    CHECK(program_agrees("module: \"main\"\n" head POOL("max", more), steps, 1e-6));               \
    CHECK(program_agrees("module: \"main\"\n" head POOL("average", more), steps, 1e-6));           \
    CHECK(program_agrees("module: \"main\"\n" head POOL("average", "count_include_pad=1," more),   \
                         steps, 1e-6))

#define WINDOW "padding={1, 1},stride={2, 2},lengths={3, 3},dilations={1, 1}"
#define LINE "x = @param:x -> float_type, {2, 19, 23}, {437, 1, 19}\n"
#define IMAGE "x = @param:x -> float_type, {2, 19, 11, 9}, {1881, 1, 171, 19}\n"
#define VOLUME "x = @param:x -> float_type, {2, 19, 5, 7, 6}, {3990, 1, 798, 114, 19}\n"

CASE(one_axis)
{
    EACH(LINE, "padding={1},stride={2},lengths={3},dilations={1}", 2);
    EACH(LINE, "padding={2, 0},stride={1},lengths={3},dilations={2}", 2);
}

CASE(two_axes)
{
    EACH(IMAGE, WINDOW, 2);
    EACH(IMAGE, "padding={0, 1, 1, 0},stride={2, 1},lengths={2, 3},dilations={1, 2}", 2);
    EACH(IMAGE, "padding={1, 1},stride={2, 2},lengths={3, 3},dilations={1, 1},ceil_mode=1", 2);
}

CASE(three_axes)
{
    EACH(VOLUME, "padding={1, 1, 0},stride={2, 1, 2},lengths={3, 3, 2},dilations={1, 1, 1}", 2);
    EACH(VOLUME, "padding={0, 0, 0},stride={1, 1, 1},lengths={5, 7, 6},dilations={1, 1, 1}", 2);
    EACH(VOLUME,
         "padding={1, 0, 1, 0, 1, 1},stride={1, 2, 1},lengths={2, 3, 3},dilations={2, 1, 1}", 2);
}

CASE(padding_by_size)
{
    EACH(IMAGE, "padding={0, 0},padding_mode=1,stride={2, 2},lengths={3, 3},dilations={1, 1}", 2);
    EACH(IMAGE, "padding={0, 0},padding_mode=2,stride={2, 2},lengths={2, 4},dilations={1, 1}", 2);
}

// A reshape leaves its result row-major; the image is copied in front rather than left to the
// reference.
CASE(images_row_by_row)
{
    EACH("v = @param:v -> float_type, {2, 9, 209}, {1881, 1, 9}\n"
         "x = reshape[dims={2, 19, 11, 9}](v)\n",
         WINDOW, 4);
}

// What the kernel refuses for its mode or type, another order of memory would not make it take: the
// step itself and at most the one that brings the result in order.
CASE(refused_without_a_copy)
{
#define ROWS(type) "x = @param:x -> " type ", {2, 19, 11, 9}, {1881, 99, 9, 1}\n"
    CHECK_INT(program_steps("module: \"main\"\n" ROWS("float_type") POOL("lpnorm", WINDOW)), 2);
    CHECK_INT(program_steps("module: \"main\"\n" ROWS("double_type") POOL("max", WINDOW)), 2);
#undef ROWS
}

TEST_MAIN(ROW(one_axis) ROW(two_axes) ROW(three_axes) ROW(padding_by_size) ROW(images_row_by_row)
              ROW(refused_without_a_copy))
