// SPDX-License-Identifier: MIT
// Regions of interest on channels-last images are one step and the result's copy, with the
// reference's results: bins of more samples than are summed at once, one channel, a layout that is
// changed first, regions beyond the image and turned round.
#include <stdio.h>

#include "base/size.h"
#include "targets/cpu/program.h"

// Of {2, 5, 7, 9}: inside, beyond the edges, of no size, and turned round.
#define ROIS                                                                                       \
    "r = @literal{0.5, 1, 6.25, 5, -2, -3, 9.5, 8, 3, 3, 3, 3, 5, 4, 2, 1.5} -> float_type, "      \
    "{4, 4}, {4, 1}\n"

static const struct {
    const char *x, *index;
    int steps;
} forms[] = {
    {"{2, 5, 7, 9}, {315, 1, 45, 5}", "int64_type", 2},
    {"{2, 5, 7, 9}, {315, 1, 45, 5}", "int32_type", 2},
    {"{2, 5, 7, 9}, {315, 63, 9, 1}", "int64_type", 3},
    {"{2, 1, 7, 9}, {63, 63, 9, 1}", "int64_type", 2},
    {"{2, 37, 7, 9}, {2331, 1, 333, 37}", "int64_type", 2},
};
static const char *const ways[] = {
    "mode=average,sampling_ratio=2,spatial_scale=1",
    "mode=average,sampling_ratio=0,spatial_scale=0.75",
    "mode=average,sampling_ratio=9,spatial_scale=1", // 81 samples of four corners
    "mode=max,sampling_ratio=9,spatial_scale=1",
    "mode=max,sampling_ratio=3,spatial_scale=0.5",
    "mode=average,sampling_ratio=2,spatial_scale=1,"
    "coordinate_transformation_mode=output_half_pixel",
};

static void write_program(char *text, size_t size, int form, const char *way, const char *images)
{
    snprintf(text, size,
             "module: \"main\"\nx = @param:x -> float_type, %s\n" ROIS
             "i = @literal{%s} -> %s, {4}, {1}\n"
             "y = roialign[output_height=2,output_width=3,%s](x,r,i)\n@0 = @return(y)\n",
             forms[form].x, images, forms[form].index, way);
}

CASE(bins_are_those_of_the_reference)
{
    char text[1024];
    for (int f = 0; f < MGX_COUNT(forms); f++)
        for (int w = 0; w < MGX_COUNT(ways); w++) {
            write_program(text, sizeof text, f, ways[w], "1, 0, 1, 0");
            CHECK(program_agrees(text, forms[f].steps, 1e-5));
        }
}

TEST_MAIN(ROW(bins_are_those_of_the_reference))
