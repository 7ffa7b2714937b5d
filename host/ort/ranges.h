// SPDX-License-Identifier: MIT
// Calibration tables, and graphs of which products are handed over in bytes by one.
#pragma once

#include "plugin.h"

struct ranges; // of values, by their names; low <= 0 <= high

OrtStatus *ranges_read(const struct host *, const char *path, struct ranges **out);
void ranges_destroy(struct ranges *); // NULL is allowed
bool ranges_find(const struct ranges *, const char *name, double *low, double *high);

// What a graph has been given for it so far.
struct bytes_of_graph {
    const struct host *host;
    migraphx_onnx_graph_t graph;
    const struct ranges *ranges; // NULL: nothing is done
    struct names made;           // names of values that were rounded, each for one axis
    char **texts;                // all names of its own
    size_t count, room;
};

void bytes_fini(struct bytes_of_graph *);
// Where a node is a product whose factors are known, each a weight or in the table: the graph gets
// nodes that round them to bytes, and `names`, those of what it reads, say these.
OrtStatus *bytes_of_product(struct bytes_of_graph *, const OrtNode *, const OrtValueInfo **in,
                            size_t count, const char **names);
