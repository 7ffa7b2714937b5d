// SPDX-License-Identifier: MIT
// Several neighbours moved at once: the text of a chunk of v elements in registers, and of loading
// and storing it.
//
//     union { wide16 w; float v[4]; } c1;
//     if ((ADDRESS(in0) & 15) == 0) c1.w = *(const GLOBAL wide16 *)(in0 + at1); else ... c1.v[k]
//
// Where an array begins is known only at run time (a caller's pointer, a slice of something), so
// the text asks; all threads answer alike. The place in the array must be a multiple of v.
#pragma once

#include "base/str.h"

struct gpu_chunk {
    const char *name, *element; // of the union, and the type of an element in memory
    int v;
    int bytes; // of an element
};

void gpu_emit_chunk(struct mgx_str *out, const struct gpu_chunk *c);
void gpu_emit_chunk_load(struct mgx_str *out, const struct gpu_chunk *c, const char *array,
                         const char *at);
void gpu_emit_chunk_store(struct mgx_str *out, const struct gpu_chunk *c, const char *array,
                          const char *at);
