// SPDX-License-Identifier: MIT
// What an encoder gave for a text, in a card's memory: brought there once, for all tokens.
//
// Plans have fixed sizes, and how long a source is differs from text to text. Where the decoder is
// told which of it counts (an encoder's mask is among what is given), sources are filled up to a
// few lengths, with zeros that the mask hides; else every length has plans of its own.
//
// Holds: a given input has one open axis at most, as long in all of them. Cost: a copy to the card.
#pragma once

#include "generate/roles.h"
#include "generate/source.h"

// Are the given inputs of this kind?
bool mgx_heard_fits(const struct mgx_roles *roles);
// Given input k in plans for sources of so many places.
struct mgx_shape mgx_heard_shape(const struct mgx_roles *roles, int k, int64_t heard);
// A length that plans for this model may have before there is a source: that of a made-up one.
int64_t mgx_heard_first(const struct mgx_roles *roles);
// Brings a source to a card, unless it lies there: source->held and source->heard.
enum mgx_status mgx_heard_bring(struct mgx_source *source, const struct mgx_roles *roles,
                                const struct mgx_memory *memory, struct mgx_queue *queue,
                                struct mgx_diag *diag) MGX_NODISCARD;
// A few numbers without a pattern, for asking a model what it looks at; `exact`: they are not
// filled up.
enum mgx_status mgx_heard_make_up(struct mgx_source **out, const struct mgx_roles *roles,
                                  bool exact, struct mgx_diag *diag) MGX_NODISCARD;
