// SPDX-License-Identifier: MIT
// What is known of the numbers in a small vector before any run: lengths of axes that exporters
// gather from shapes, put together with fixed ones and reshape to.
//
//     concat(dimensions_of(x)[0:2], {12, 64})  holds  {b, t, 12, 64}
//
// Without it a result has a rank and nothing else, what splits or multiplies it must wait for the
// run, and so must everything behind that.
#pragma once

#include "import/node.h"

// A range for each number, at most MGX_MAX_RANK, of an integer scalar or vector, with the name of
// the axis that it is the length of; a number that is known is a range of one, and may be negative.
// False: nothing is known. Names are those of shapes in the program.
bool mgx_build_spans(const struct mgx_ins *vector, struct mgx_dim *spans, int *count);

// How many integers there are from `start` to before `limit`, where limit is written as start + n:
// n, as a vector of one. NULL: it is not.
struct mgx_ins *mgx_build_way(struct mgx_node *n, struct mgx_ins *start, struct mgx_ins *limit);

// x under the lengths in `vector`, as a reshape reads them (0 copies a length, -1 takes what is
// left over); declared is what the spans say of them.
struct mgx_ins *mgx_build_reshape_by(struct mgx_node *n, struct mgx_ins *x, struct mgx_ins *vector);
