// SPDX-License-Identifier: MIT
// What an encoder made of a caller's inputs, for the texts that are about it.
//
// Holds: a source does not change; it is shared by all who hold it and ends with the last, one
// thread at a time. Cost: a run of the encoder's stages.
#pragma once

#include "generate/encoder.h"
#include "plan/executable.h"

struct mgx_source {
    int holders, count;
    // In a card's memory (heard.h): as many places as plans have for it, `exact` or some more;
    // NULL: it is not there.
    bool exact;
    int64_t heard;
    struct mgx_tensor *held;
    struct mgx_tensor values[]; // in the order of `given`
};
// `inputs` are lent. An input "attention_mask" that is not among them is all ones.
enum mgx_status mgx_encoder_run(struct mgx_source **out, const struct mgx_encoder *encoder,
                                const struct mgx_named_tensor *inputs, int count,
                                struct mgx_diag *diag) MGX_NODISCARD;
struct mgx_source *mgx_source_hold(struct mgx_source *source); // NULL is allowed in both
void mgx_source_release(struct mgx_source *source);
void mgx_source_leave(struct mgx_source *source); // a card's memory
