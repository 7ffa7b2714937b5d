// SPDX-License-Identifier: MIT
// A program that a test runs, it runs three times, with other bytes in freed and in fresh memory each
// time, and compares the results bit for bit: whoever reads what is gone, or what nobody wrote, gives
// another result or ends. For one file of a test program.
//
//     for (int round = 0; round < AGAIN_ROUNDS; round++) {
//         again_disturb(round);
//         run; round 0: compare with what is right, else again_same(first, now)
//     }
//
// Programs that are random by definition are excepted, by the names of their operators. Under a
// sanitizer memory is disturbed by the sanitizer's own means and by blocks that are written and freed.
#pragma once

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "ir/module.h"

enum { AGAIN_ROUNDS = 3 };

// Of every size that is at hand for the allocator some blocks, full of a byte, and freed.
static inline void again_scribble(int byte)
{
    enum { SIZES = 10, EACH = 3, LEAST = 32 }; // up to 16 KiB; larger ones go back to the system
    void *block[SIZES * EACH];
    for (int i = 0; i < SIZES * EACH; i++) {
        const size_t size = (size_t)LEAST << i % SIZES;
        block[i] = malloc(size);
        if (block[i])
            memset(block[i], byte, size);
        __asm__ volatile("" : : "r"(block[i]) : "memory"); // the bytes are for others to see
    }
    for (int i = 0; i < SIZES * EACH; i++)
        free(block[i]);
}

static inline void again_disturb(int round)
{
    static const int bytes[AGAIN_ROUNDS] = {0x5A, 0xA5, 0x7F}; // 0x7F7F7F7F is a large float
    const int byte = bytes[round % AGAIN_ROUNDS];
#ifdef M_PERTURB
    mallopt(M_PERTURB, byte);
#endif
    again_scribble(byte);
}

// --- results ---

static inline bool again_same_element(const struct mgx_tensor *a, int64_t i,
                                      const struct mgx_tensor *b, int64_t k)
{
    const size_t size = mgx_type_size(a->shape.type);
    if (a->shape.type != MGX_STRING)
        return memcmp((const char *)a->data + (size_t)i * size,
                      (const char *)b->data + (size_t)k * size, size) == 0;
    const struct mgx_string *x = (const struct mgx_string *)a->data + i,
                            *y = (const struct mgx_string *)b->data + k;
    return x->size == y->size && (!x->size || memcmp(x->text, y->text, x->size) == 0);
}

// Equal to the bit: lengths, members, and values whatever their strides.
static inline bool again_same(const struct mgx_tensor *a, const struct mgx_tensor *b)
{
    enum { MANY = 1 << 24 }; // a view of one number may have 2^60 elements
    bool same = a->sub_count == b->sub_count && a->shape.type == b->shape.type;
    for (int i = 0; same && i < a->sub_count; i++)
        same = again_same(&a->sub[i], &b->sub[i]);
    if (!same || a->shape.type == MGX_TUPLE || a->shape.type == MGX_SEQUENCE)
        return same;
    if (a->shape.rank != b->shape.rank || !mgx_shape_same_lens(&a->shape, &b->shape))
        return false;
    const int64_t count = mgx_shape_elements(&a->shape);
    for (int64_t i = 0; same && i < count && count <= MANY; i++)
        same =
            again_same_element(a, mgx_shape_index(&a->shape, i), b, mgx_shape_index(&b->shape, i));
    return same;
}

// --- exceptions ---

// Does an operator draw its values anew in every run, or leave memory as it is?
static inline bool again_is_random(const struct mgx_program *p)
{
    static const char *const names[] = {"random_seed", "allocate", "gpu::allocate",
                                        "hip::allocate"};
    for (int m = 0; m < p->module_count; m++)
        for (const struct mgx_ins *ins = p->modules[m]->first; ins; ins = ins->next)
            for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                if (strcmp(ins->op->name, names[i]) == 0)
                    return true;
    return false;
}
