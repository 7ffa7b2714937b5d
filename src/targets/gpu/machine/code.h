// SPDX-License-Identifier: MIT
// Compiled kernels: from this process, from a folder on disk, or from the device's compiler.
//
// A unit is one source text for one card. Asking twice for the same text gives the same unit, in
// whatever program. What was compiled is kept in a folder, so that the next process starts warm:
//
//     <folder>/<hash of text, card and compiler>.kernel
//
// A saved program brings them too (docs/mxr.md), and they are taken only if its reader trusts it.
//
// Holds: a file is taken only if its text is, byte for byte, the one asked for, and its checksum
// fits; anything else counts as absent and is written anew. Files are written beside and renamed,
// so processes may share a folder. It is kept below a bound: the least recently used go first.
// Nothing in it is trusted more than its owner: the folder is made for the user alone, and one that
// is another user's, or that others may write to, is neither read nor written.
// Cost: a unit found on disk takes a fraction of a millisecond, one compiled 50 to 700 ms.
#pragma once

#include "targets/gpu/device/device.h"

// A text with this line leaves nothing but values of 16 bits: CUDA's compiler may divide and take roots
// with errors in the last bits of a float.
#define GPU_NARROW_RESULTS "#define NARROW_RESULTS\n"

struct gpu_unit;

enum { GPU_CODE_FOLDER_BYTES = 256 << 20 };

// How units are made; shared by the units of one compilation.
struct gpu_code {
    struct gpu_device *device;
    const char *folder;  // NULL: nothing is kept on disk
    const void *carried; // of a saved program that is trusted; NULL: none
    size_t carried_size;
    int threads;                                 // that compile side by side
    void (*trace)(void *user, const char *text); // MIGRAPHX_TRACE_COMPILE; NULL: nobody
    void *trace_user;
};

// A share in the unit of `text` (copied); made by gpu_units_make. NULL when out of memory.
struct gpu_unit *gpu_unit_share(struct gpu_device *device, const char *name, const char *text);
void gpu_unit_drop(struct gpu_unit *unit); // NULL is allowed

// Makes every unit that is not made yet, several at a time. The first failure is reported with the
// name of its unit.
enum mgx_status gpu_units_make(const struct gpu_code *code, struct gpu_unit *const *units,
                               int count, struct mgx_diag *diag) MGX_NODISCARD;

// Appends {hash of card and text, 16 bytes, size, binary, zeros up to 8} of units that are made: what
// a saved program carries.
void gpu_units_carry(struct gpu_unit *const *units, int count, struct mgx_str *out);
// The binary of a key among such bytes, which may be anything; NULL if it is not there.
const void *gpu_carried_find(const void *carried, size_t carried_size, const uint64_t hash[2],
                             size_t *size);

// A kernel of a unit that is made.
enum mgx_status gpu_unit_kernel(struct gpu_unit *unit, const char *name, size_t shared, void **out,
                                struct mgx_diag *diag) MGX_NODISCARD;

// The same of a kernel that streams what it reads (device.h, kernel_streams).
enum mgx_status gpu_unit_stream_kernel(struct gpu_unit *unit, const char *name, size_t shared,
                                       void **out, struct mgx_diag *diag) MGX_NODISCARD;

size_t gpu_unit_bytes(const struct gpu_unit *unit); // of its binary; 0 before it is made

// What is read and written in a folder, for tests and for the explanation.
struct gpu_code_counts {
    int compiled, loaded, shared;
    int carried; // from saved programs
};
struct gpu_code_counts gpu_code_counts(void); // of this process
