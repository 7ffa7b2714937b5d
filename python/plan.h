// SPDX-License-Identifier: MIT
// What runs of a compiled program would look up again each time (run.c); pymgx.h says how others ask.
#pragma once

#include "pymgx.h"

struct py_slot {
    PyObject *name;              // str
    const char *text;            // the same, of `name`
    const_migraphx_shape_t want; // of the plan's shapes
    bool tensor;                 // of numbers: any buffer will do
    struct py_seen seen;
};

struct py_plan {
    int refs;
    migraphx_program_parameter_shapes_t shapes;
    struct py_slot *slots;
    size_t count;
    bool told;                               // of inputs that nothing takes
    PyObject *names;                         // tuple of the results' names
    migraphx_program_parameters_t spares[8]; // of runs that ended
    int spare_count;
};

// NULL with an exception where it cannot be made.
struct py_plan *py_plan_make(PyObject *program);
