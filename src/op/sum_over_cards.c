// SPDX-License-Identifier: MIT
// sum_over_cards: the sum of what this program and its like on other cards have at this place.
//
//     x[, before]  ->  like x        x(card 0) + x(card 1) + ... , in this order, on every card
//
// `before` is an earlier such sum, and not read: all cards come to their sums in the same order.
// A program for one card has nothing to add. One of several is computed by targets that exchange
// (plan/exchange.h); by itself it has no meaning.
#include <inttypes.h>

#include "op/rule/exchange.h"
#include "op/rule/rule.h"

static const struct mgx_field fields[] = {
    MGX_INT(struct mgx_sum_over_cards, cards), MGX_INT(struct mgx_sum_over_cards, card), {0}};
static const struct mgx_sum_over_cards defaults = {.cards = 1};

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_sum_over_cards *a = c->attr;
    TRY(mgx_require_float(c, 0));
    if (a->cards < 1 || a->card < 0 || a->card >= a->cards)
        return mgx_fail(c->diag, MGX_INVALID, "%s: card %" PRId64 " of %" PRId64, c->op->name,
                        a->card, a->cards);
    *out = mgx_shape_retype(c->in[0], c->in[0]->type);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct mgx_sum_over_cards *a = c->attr;
    if (a->cards != 1)
        return mgx_fail(c->diag, MGX_UNSUPPORTED,
                        "%s: card %" PRId64 " of %" PRId64 " is not beside the others", c->op->name,
                        a->card, a->cards);
    mgx_tensor_copy(c->in[0], c->out);
    return MGX_OK;
}

const struct mgx_op mgx_op_sum_over_cards = {
    .name = "sum_over_cards",
    .meaning = "the sum of what several cards have",
    .fields = fields,
    .attr_size = sizeof(struct mgx_sum_over_cards),
    .defaults = &defaults,
    .in_min = 1,
    .in_max = 2,
    .flags = MGX_OP_IMPURE | MGX_OP_EFFECT,
    .shape = shape,
    .compute = compute,
};
