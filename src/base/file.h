// SPDX-License-Identifier: MIT
// Opening files: the only place that does, so that its checks cannot be missing on a second path.
//
// A file is mapped read-only and shared by reference count. Directories, pipes and devices are
// refused by looking at the descriptor after opening, never at the name before. `beneath` names are
// for paths that come out of a model: they stay inside a directory (no "..", no absolute path, no
// link in any component, no second hard link).
//
// Holds: a mapped file that somebody truncates does not kill the process. A SIGBUS inside one of
// our mappings puts zero pages where the bytes were and marks the file as lost; whoever reads asks
// mgx_file_check when done and fails. Other bus errors go to the handler that was there before (the
// handler is installed with the first mapping; an application that replaces it later loses this
// protection, no more). Cost: opening is a few system calls; an intact file is never touched.
#pragma once

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

// A directory to look beneath. `mgx_dir_of` takes the directory part of a file's path.
struct mgx_dir {
    int fd; // -1: none
};
enum mgx_status mgx_dir_open(struct mgx_dir *out, const char *path,
                             struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_dir_of(struct mgx_dir *out, const char *file_path,
                           struct mgx_diag *diag) MGX_NODISCARD;
void mgx_dir_close(struct mgx_dir *dir);
// The file `name` (a relative path, not NUL-terminated) inside the directory or below it.
enum mgx_status mgx_file_open_beneath(struct mgx_file **out, const struct mgx_dir *dir,
                                      const char *name, size_t name_size,
                                      struct mgx_diag *diag) MGX_NODISCARD;

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
