// SPDX-License-Identifier: MIT
// Epilogues take operands where they lie, whatever their broadcast: one step for the convolution or
// product with all that follows it, no copy of the operand in front, and the reference's values.
#include "targets/cpu/program.h"

// Two steps: the convolution with its epilogue, and the result row-major for the caller.
#define CONV(lens, strides)                                                                        \
    program_agrees("module: \"main\"\n"                                                            \
                   "x = @param:x -> float_type, {2, 1, 6, 7}, {42, 42, 7, 1}\n"                    \
                   "w = @literal{1, -2, 0.5, 3, -1, 0.25, 2, -0.5} -> float_type, {8, 1, 1, 1}, "  \
                   "{1, 1, 1, 1}\n"                                                                \
                   "s = @param:s -> float_type, {" lens "}, {" strides "}\n"                       \
                   "@1 = convolution[padding={0, 0, 0, 0},stride={1, 1},dilation={1, 1},group=1]"  \
                   "(x, w)\n"                                                                      \
                   "@2 = tanh(@1)\n"                                                               \
                   "@3 = multibroadcast[out_lens={2, 8, 6, 7}](s)\n"                               \
                   "@4 = mul(@2, @3)\n"                                                            \
                   "@5 = exp(@4)\n"                                                                \
                   "@6 = @return(@5)\n",                                                           \
                   CONV_STEPS, 2e-5)
enum { CONV_STEPS = 2 };

CASE(a_convolution_takes_every_broadcast)
{
    CHECK(CONV("1", "1"));
    CHECK(CONV("1, 8, 1, 1", "8, 1, 1, 1"));
    CHECK(CONV("1, 1, 1, 7", "7, 7, 7, 1")); // a row of pixels
    CHECK(CONV("1, 1, 6, 1", "6, 6, 1, 1"));
    CHECK(CONV("2, 1, 1, 1", "1, 1, 1, 1"));
    CHECK(CONV("2, 1, 1, 7", "7, 7, 7, 1"));
    CHECK(CONV("1, 8, 1, 7", "56, 7, 7, 1")); // channels lie apart
    CHECK(CONV("2, 8, 6, 1", "48, 6, 1, 1"));
}

#define DOT(lens, strides)                                                                         \
    program_agrees("module: \"main\"\n"                                                            \
                   "x = @param:x -> float_type, {3, 4, 5, 6}, {120, 30, 6, 1}\n"                   \
                   "w = @param:w -> float_type, {3, 4, 6, 9}, {216, 54, 9, 1}\n"                   \
                   "s = @param:s -> float_type, {" lens "}, {" strides "}\n"                       \
                   "@1 = dot(x, w)\n"                                                              \
                   "@2 = tanh(@1)\n"                                                               \
                   "@3 = multibroadcast[out_lens={3, 4, 5, 9}](s)\n"                               \
                   "@4 = mul(@2, @3)\n"                                                            \
                   "@5 = exp(@4)\n"                                                                \
                   "@6 = @return(@5)\n",                                                           \
                   1, 2e-5)

CASE(a_product_takes_every_broadcast)
{
    CHECK(DOT("1", "1"));
    CHECK(DOT("9", "1"));
    CHECK(DOT("1, 4, 1, 9", "36, 9, 9, 1"));
    CHECK(DOT("3, 1, 5, 1", "5, 5, 1, 1"));
    CHECK(DOT("1, 1, 5, 9", "45, 45, 9, 1"));
    CHECK(DOT("3, 1, 1, 9", "9, 9, 9, 1"));
}

// Sixteen bits in the middle of a body: what reads them reads them rounded.
CASE(a_value_that_a_body_rounds_is_rounded_for_who_reads_it)
{
    CHECK(program_agrees("module: \"main\"\n"
                         "x = @param:x -> float_type, {4, 32}, {32, 1}\n"
                         "@1 = exp(x)\n"
                         "@2 = convert[target_type=1](@1)\n"
                         "@3 = convert[target_type=2](@2)\n"
                         "@4 = mul(@3, x)\n"
                         "@5 = @return(@4)\n",
                         1, 2e-5));
}

TEST_MAIN(ROW(a_convolution_takes_every_broadcast) ROW(a_product_takes_every_broadcast)
              ROW(a_value_that_a_body_rounds_is_rounded_for_who_reads_it))
