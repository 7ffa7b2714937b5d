// SPDX-License-Identifier: MIT
// What the stand-ins for HIP's runtime differ in: the card they say they are, and what becomes of
// text. standin_hip.c has the rest; standin_cuda.c is the same under CUDA's names.
//
//     standin_axpy.c        text is its own binary, and axpy the one kernel
//     standin_idle.c        so it is, and all kernels take their time and write nothing
//     emulated/emulated.c   text is compiled for the processor, and blocks run thread by thread
#pragma once

#include <stddef.h>

struct standin_card {
    const char *arch; // "gfx90a:sramecc+:xnack-"
    int warp, units;
    size_t memory;
};

struct standin_dims {
    unsigned grid[3], block[3], shared;
};

// All return 0 or a status of HIP's.
const struct standin_card *standin_card(void);
// *code is the binary, *log what there is to say; both on the heap, NULL where there is none.
int standin_compile(const char *text, const char *arch, char **code, size_t *size, char **log);
int standin_load(const void *code, void **module);
void standin_unload(void *module);
int standin_find(void *module, const char *name, void **kernel);
int standin_launch(void *kernel, const struct standin_dims *dims, void **params);
// Of a launch that waits for another card's: that one may go on meanwhile.
void standin_pause(void);
// A copy of a launch's parameters, on the heap in one piece; NULL when there is no memory.
void **standin_keep(void *kernel, void **params);
