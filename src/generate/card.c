// SPDX-License-Identifier: MIT
// Blocks on the card and beside it, and the parameters of a step.
#include "generate/card.h"

#include <stdlib.h>

#include "generate/slab.h"

enum mgx_status mgx_card_reserve(struct mgx_card *card, struct mgx_tensor *block, size_t bytes,
                                 struct mgx_diag *diag)
{
    if (block->data && mgx_shape_bytes(&block->shape) >= bytes)
        return MGX_OK;
    mgx_tensor_release(block);
    return mgx_slab_bytes(block, card->memory, bytes, diag);
}

enum mgx_status mgx_card_reserve_host(struct mgx_card *card, size_t bytes, struct mgx_diag *diag)
{
    if (card->host_bytes >= bytes)
        return MGX_OK;
    free(card->host);
    card->host = malloc(bytes);
    card->host_bytes = card->host ? bytes : 0;
    return card->host ? MGX_OK : mgx_fail_memory(diag);
}

enum mgx_status mgx_card_settle(struct mgx_card *card, enum mgx_status status,
                                struct mgx_diag *diag)
{
    struct mgx_diag own = {.status = MGX_OK};
    const enum mgx_status done = card->memory->wait(card->queue, status == MGX_OK ? diag : &own);
    return status == MGX_OK ? done : status;
}

void mgx_card_put(struct mgx_card_call *c, const char *name, struct mgx_tensor tensor)
{
    c->s->params[c->count++] = (struct mgx_named_tensor){.name = name, .tensor = tensor};
}

// A block as a tensor of this shape.
enum mgx_status mgx_card_view(const struct mgx_card_call *c, struct mgx_tensor *block,
                              enum mgx_type type, int rank, const int64_t *lens,
                              struct mgx_tensor *out)
{
    const struct mgx_shape shape = mgx_shape_make(type, rank, lens);
    TRY(mgx_card_reserve(c->s->card, block, mgx_shape_bytes(&shape), c->diag));
    *out = mgx_tensor_view(block, &shape, 0);
    return MGX_OK;
}
