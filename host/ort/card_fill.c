// SPDX-License-Identifier: MIT
// A mask that is filled up to the room of the caches (fill.c), within a card's memory.
#include <stdlib.h>

#include "card.h"
#include "fused.h"

OrtStatus *card_fill_run(struct card *c, const struct fused *f, migraphx_buffer *buffers,
                         struct filled *out)
{
    enum { ROOM = 2, ROWS = 64 };
    migraphx_buffer *mask = &buffers[f->fill.mask];
    const size_t size = mask->type == f->types[6] ? 4 : 8; // of INT32, INT64
    const size_t columns = mask->lens[1], rows = mask->lens[0],
                 room = buffers[f->fill.caches].lens[ROOM];
    *out = (struct filled){.lens = {rows, room}};
    if (!rows || rows >= ROWS || columns >= room)
        return NULL;
    struct copy copies[ROWS];
    void *zeros = calloc(rows * room, size);
    char *at = zeros ? c->allocator.Alloc(&c->allocator, rows * room * size) : NULL;
    if (!at) {
        free(zeros);
        return host_no_memory(c->host);
    }
    copies[0] = (struct copy){at, zeros, rows * room * size, migraphx_copy_in};
    for (size_t i = 0; i < rows; i++)
        copies[i + 1] =
            (struct copy){at + i * room * size, (const char *)mask->data + i * columns * size,
                          columns * size, migraphx_copy_within};
    OrtStatus *status = card_copy(c, copies, rows + 1);
    free(zeros);
    if (status) {
        c->allocator.Free(&c->allocator, at);
        return status;
    }
    mask->data = out->data = at;
    mask->lens = out->lens;
    return NULL;
}

void card_fill_end(struct card *c, struct filled *filled)
{
    c->allocator.Free(&c->allocator, filled->data); // NULL is nothing
}
