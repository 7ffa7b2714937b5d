// SPDX-License-Identifier: MIT
// Opening files: the only place that does, so that its checks cannot be missing on a second path.
//
// A file is mapped read-only and shared by reference count. Directories, pipes and devices are
// refused by looking at the descriptor after opening, never at the name before. Names that come out
// of a model are opened by dirs.h, which keeps them inside directories.
//
// Holds: a mapped file that somebody truncates does not kill the process. A SIGBUS inside one of
// our mappings puts zero pages where the bytes were and marks the file as lost; whoever reads asks
// mgx_file_check when done and fails. Other bus errors go to the handler that was there before (the
// handler is installed with the first mapping; an application that replaces it later loses this
// protection, no more). Cost: opening is a few system calls; an intact file is never touched.
#pragma once

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/status.h"

struct mgx_file {
    atomic_int refs;
    const uint8_t *data; // NULL when empty
    size_t size;
    int slot;   // in the table of mappings; -1: the bytes are a private copy
    char *path; // as given, for messages
};

// The file of that name, wherever it is.
enum mgx_status mgx_file_open(struct mgx_file **out, const char *path,
                              struct mgx_diag *diag) MGX_NODISCARD;

// Takes over an open descriptor, closing it also on failure: what it is decides, not how it was
// found. `path` is for messages.
enum mgx_status mgx_file_adopt(struct mgx_file **out, int fd, const char *path,
                               struct mgx_diag *diag) MGX_NODISCARD;
// How a descriptor for it is opened: a pipe must not block, a terminal must not become ours.
enum { MGX_FILE_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

struct mgx_file *mgx_file_retain(struct mgx_file *file);
void mgx_file_release(struct mgx_file *file); // NULL is allowed

// MGX_IO if the file was found shorter than it was when opened.
enum mgx_status mgx_file_check(const struct mgx_file *file, struct mgx_diag *diag) MGX_NODISCARD;
// The pages inside these bytes will not be read again soon: they may leave memory.
void mgx_file_forget(const struct mgx_file *file, const void *data, size_t size);

// The same for bytes of which it is not known whether they lie in a mapped file.
void mgx_file_forget_at(const void *data, size_t size);

// Has any mapping of this process ever been lost? One load; then ask about single addresses.
bool mgx_file_any_lost(void);
bool mgx_file_lost_at(const void *data);
