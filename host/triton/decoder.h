// SPDX-License-Identifier: MIT
// Models that continue a text: tokens come in with a request and go out one by one.
//
// Each instance has a thread of its own that runs all its texts together, a token of each at a
// time, and takes new ones in between two tokens. A request stays here until its text is complete, so that
// the server knows how long that took and unloads no model that is at work.
#pragma once

#include "backend.h"

TritonError *decoder_create(struct instance *, const char *target, int device,
                            struct decoder **out);
// Texts that are not done end with an error.
void decoder_destroy(struct decoder *);
TritonError *decoder_execute(struct instance *, TritonRequest **, uint32_t count);

// --- a request of such a model ---

struct stream {
    TritonRequest *request;
    uint64_t start, first; // when it came, and when its first token went out
    bool failed;
    TritonFactory *factory;
    int64_t *prompt; // NULL as soon as the generator has it
    size_t prompt_size;
    int64_t *answer; // of a model that answers once
    size_t answer_size;
    size_t left; // tokens to come
    migraphx_sampling_t sampling;
    size_t text; // the generator's number
    bool started;
    bool over;
    struct stream *next; // that waits
};

// Reads a request; `sampling` is what the folder says.
TritonError *stream_read(TritonRequest *, const_migraphx_sampling_t sampling, struct stream **out);
void stream_destroy(struct stream *);
// One response of these tokens, the last one if `final`; or what went wrong, which ends it.
TritonError *stream_send(struct stream *, const int64_t *tokens, size_t count, bool final);
void stream_fail(struct stream *, TritonError *);
