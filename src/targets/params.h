// SPDX-License-Identifier: MIT
// What a run is given, brought into the form that targets see: every parameter is there, has the
// right type and lengths (or lengths within its ranges, equal for axes of one name) and the strides
// the program was built for; other strides are packed into a copy.
//
// A compiled program knows its parameters by name, and keeps the rooms that runs put them in: a
// room belongs to one run at a time and comes back, so a steady run allocates nothing. Cost of a
// run: O(parameters).
#pragma once

#include "targets/target.h"

struct mgx_params;
struct mgx_params_room;

// NULL when out of memory.
struct mgx_params *mgx_params_create(const struct mgx_program *p);
void mgx_params_destroy(struct mgx_params *params); // NULL is allowed

// The run's parameters in order of creation, to be given back. Names that the program does not know
// are ignored; of two tensors of one name the first counts.
enum mgx_status mgx_params_take(struct mgx_params *params, const struct mgx_run *run,
                                struct mgx_params_room **out, struct mgx_diag *diag) MGX_NODISCARD;
const struct mgx_named_tensor *mgx_params_list(const struct mgx_params_room *room, int *count);
// One that came with room to grow becomes row-major, as who knows its size reads it.
enum mgx_status mgx_params_pack(struct mgx_params_room *room, int param,
                                struct mgx_diag *diag) MGX_NODISCARD;
void mgx_params_give(struct mgx_params *params, struct mgx_params_room *room);
