// SPDX-License-Identifier: MIT
// Large blocks of memory, refused instead of promised.
//
// A kernel that overcommits hands out more than there is and ends the process when it is touched.
// A model from outside can ask for any size; so a block of some hundred megabytes is given only if
// the machine, and the control group the process is in, have it to spare at this moment.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Blocks of some megabytes lie on huge pages where the system has them: these are there in a
// quarter of the time that small ones take, and cost a hundredth of their address translations (1
// to 4 % of a large matrix multiplication, more of a walk over a large program). Mapped
// files ask for them too (file.c), nothing else in the library does.
//
// Aligned to `align` (a power of two, at least that of a pointer), for free(); NULL when there is
// no room. Small blocks cost nothing extra, large ones (256 MiB on) the reading of a few files.
void *mgx_memory_aligned(size_t align, size_t bytes);
// The size to ask for where more room does no harm: what fills more than half of one huge page
// takes it, which is there ten times as fast as its small ones (0.03 and 0.3 ms for a MiB).
size_t mgx_memory_rounded(size_t bytes);

// A host that lends a virtual machine its memory as it is touched takes milliseconds for a huge
// page that nobody had before. Where two took that long, later pages of the process begin small,
// if the system can make them huge later (Linux 6.1 on), and this says so.
bool mgx_memory_grows(void);
// Before a part of such a block is written for the first time, by any thread: the huge pages that
// begin in it come now, one by one, and from the process's second that takes long on they are
// small. What is there already stays. Where pages are quick this costs a call to the system for
// each of 2 MiB.
void mgx_memory_begin(void *part, size_t bytes);
// As if one had taken long. For tests.
void mgx_memory_grows_from_now(void);
// Makes one more huge page of a block's small ones, in place, whoever reads or writes it meanwhile.
// `done` is 0 at first. False when all are done.
bool mgx_memory_grow(void *block, size_t bytes, size_t *done);

// Addresses behind which memory appears when they are written, and from which it can be taken away
// again: what was there reads as zeros. NULL when there is no room.
void *mgx_memory_reserve(size_t bytes);
void mgx_memory_forget(void *data, size_t bytes);
void mgx_memory_unreserve(void *data, size_t bytes);

// Small blocks that were freed go back to the system, which the allocator alone does only where
// they lie at its end. For the ends of long works, such as an import; some ten microseconds.
void mgx_memory_trim(void);

// What the process may still take, in bytes; UINT64_MAX when the system does not tell.
uint64_t mgx_memory_available(void);

// So little that the next touched page may end the process. For callers that take many small
// blocks, which one by one look harmless: ask once per some hundred megabytes.
bool mgx_memory_is_short(void);
