// SPDX-License-Identifier: MIT
// What reads calibration samples: arrays in samples.c, images in images.c.
#pragma once

#include "driver.h"

struct reader {
    const struct options *o;
    migraphx_program_parameter_shapes_t shapes;
    const char **names;
    size_t count;
    bool (*add)(void *data, migraphx_program_parameters_t sample);
    void *data;
    migraphx_program_parameters_t sample; // the one that is being read
    const char *path;
    bool arrays;         // the folder that is looked at holds some
    struct words images; // that were found, each text to be freed
};

bool is_image(const char *path); // by its suffix
// Calls `add` with each of r->images.
bool add_images(struct reader *r);
