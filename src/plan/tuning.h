// SPDX-License-Identifier: MIT
// The tuning cache: which candidate kernel was the fastest for a problem, measured once and kept in
// a text file that a person can read, edit and merge.
//
//     migraphx-tuning 1
//     cpu avx512 2 IntelXeon... 3f02a1c8b2 conv n1 c64>64 ...<TAB>winograd4<TAB>81.25
//
// The first line names the format. Every other line is a problem (target, instruction set, threads,
// processor, set of kernels, family of kernels, types, shapes, layout), the choice, and the
// microseconds it took, separated by tabs.
// Lines starting with # are comments. A cache of another version, or one that is damaged, counts as
// empty from the damage on; a choice that a kernel does not know is ignored by whoever asked. So
// nothing in a cache can do more than choose among kernels that were there anyway.
//
// Holds: at most MGX_TUNING_ENTRIES entries of bounded length, whatever the file says. Saving
// replaces the file in one step: a reader sees the old or the new one.
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"

enum { MGX_TUNING_ENTRIES = 1 << 16, MGX_TUNING_LINE = 1024 };

struct mgx_tuning {
    struct mgx_arena arena;
    struct mgx_map map; // problem -> struct entry
    bool changed;       // since it was loaded
};

void mgx_tuning_init(struct mgx_tuning *t);
void mgx_tuning_fini(struct mgx_tuning *t);

// Adds what the file holds; one that is not there, or is empty, holds nothing. What is something
// else (another kind of file, or what may not be read) is a mistake in the path: an error.
enum mgx_status mgx_tuning_load(struct mgx_tuning *t, const char *path,
                                struct mgx_diag *diag) MGX_NODISCARD;
// The same from bytes.
enum mgx_status mgx_tuning_read(struct mgx_tuning *t, const char *text, size_t size,
                                struct mgx_diag *diag) MGX_NODISCARD;
// Replaces the file if anything changed, and never one that could not be loaded. Entries that
// another process has added since stay; two that save at the same time do so one after the other.
enum mgx_status mgx_tuning_save(struct mgx_tuning *t, const char *path,
                                struct mgx_diag *diag) MGX_NODISCARD;

// As in the file.
void mgx_tuning_print(const struct mgx_tuning *t, struct mgx_str *out);
// The choice for a problem; NULL when there is none.
const char *mgx_tuning_find(const struct mgx_tuning *t, const char *problem);
// Texts with control characters or too long for a line are refused silently: they stay unknown.
enum mgx_status mgx_tuning_put(struct mgx_tuning *t, const char *problem, const char *choice,
                               double microseconds, struct mgx_diag *diag) MGX_NODISCARD;
