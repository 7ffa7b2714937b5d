// SPDX-License-Identifier: MIT
// Directories that files named by a model must lie in.
//
// Package caches keep a model as links: snapshots/<rev>/model.onnx and model.onnx_data both lead to
// blobs/<hash>. So links are followed, and what counts is where they end: the real file must lie in
// one of the directories listed, or below one. The names themselves stay relative and without "..".
//
// Holds: no step is decided by a path's text. Every component is opened from the directory before
// it without following a link; a link's text is walked the same way; where the walk ends, the
// directories above are climbed by descriptor and compared by device and number. A link that is
// exchanged meanwhile gives another walk or an error, never a file elsewhere. Second hard links are
// not told from first ones: a store that links equal files is one of the places models lie in.
// Cost: some system calls for each component, once for each file.
#pragma once

#include "base/file.h"

struct mgx_dirs {
    int fd[3]; // the first `searched` are those in which names are looked up
    int count, searched;
};

// One directory more. Names are looked up in it when `search` is set; those come first.
enum mgx_status mgx_dirs_add(struct mgx_dirs *dirs, const char *path, bool search,
                             struct mgx_diag *diag) MGX_NODISCARD;
// The directory part of a file's path, and the directory in which the real file lies if the path is
// a link.
enum mgx_status mgx_dirs_add_file(struct mgx_dirs *dirs, const char *file_path, bool search,
                                  struct mgx_diag *diag) MGX_NODISCARD;
void mgx_dirs_close(struct mgx_dirs *dirs);

// The file `name` (a relative path, not NUL-terminated); MGX_NOT_FOUND if no directory has it.
enum mgx_status mgx_dirs_open(const struct mgx_dirs *dirs, const char *name, size_t name_size,
                              struct mgx_file **out, struct mgx_diag *diag) MGX_NODISCARD;
