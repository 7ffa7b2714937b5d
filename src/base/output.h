// SPDX-License-Identifier: MIT
// Writing files: a reader sees the old one or the new one, whole, whatever happens in between.
//
// The bytes go to a file without a name in the same directory (or, where the file system has none
// of those, to "<path>.XXXXXX") and take the path's place at the end, when they are on the disk. A
// link is followed: what it names is replaced. Permissions are those of the file replaced, else
// what the process's mask leaves of 0666. Pipes and devices are written to directly.
//
// Holds: a process that is killed while it writes leaves nothing behind where nameless files exist.
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/status.h"

struct mgx_output {
    FILE *file;   // to write to
    char *path;   // what is replaced, links followed
    char *beside; // the new file's name; NULL: it has none, or the path is written to directly
    char *buffer; // of the stream, if it was enlarged
    bool direct;
};

enum mgx_status mgx_output_open(struct mgx_output *o, const char *path,
                                struct mgx_diag *diag) MGX_NODISCARD;
// For files that are going to be mapped, before anything is written: the bytes reach the system in
// pieces as large as huge pages, at multiples of their size. File systems that keep such pieces
// together map them with one fault for every 2 MiB instead of one for every 64 KiB. Without memory
// for it nothing changes.
void mgx_output_enlarge(struct mgx_output *o);
// Ends the writing. With `status` MGX_OK the file takes its place; else, and when that fails, what
// was written goes and the old file stays. Gives `status`, or the failure.
enum mgx_status mgx_output_close(struct mgx_output *o, enum mgx_status status,
                                 struct mgx_diag *diag) MGX_NODISCARD;
