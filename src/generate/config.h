// SPDX-License-Identifier: MIT
// What the folder of a generative model says: which file is the model, how its inputs are called,
// which tokens end an answer, and how its makers would sample.
//
//     genai_config.json                        ONNX Runtime GenAI's, and all it says counts first
//     config.json, generation_config.json      Transformers' (Optimum)
//     model.onnx, encoder_model.onnx, ...      where no file says which
//
// Holds: every file is hostile. It is opened by descriptor inside the folder (base/dirs.h), no
// larger than 16 MiB, its JSON bounded in depth and values; numbers are taken only within their
// ranges, and what is not understood is passed over, unless it decides what a text becomes.
// Cost: three small files are read; the model is not.
#pragma once

#include "generate/roles.h"
#include "op/reference/draw.h"

struct mgx_generate_config {
    const char *model;   // path of the model's file
    const char *encoder; // of its encoder's; NULL: it has none
    const char *first;   // of the decoder of first tokens, where `model` is that of later ones
    const struct mgx_state_names *crossed; // how the encoder's results are called in the decoder
    int crossed_count;
    int64_t start; // the token that a text begins with; -1: not said
    struct mgx_role_names names;
    int64_t context; // most tokens of a text; 0: not said
    int64_t words;   // tokens that there are; 0: not said
    const int64_t *ends;
    int end_count;
    struct mgx_sampling sampling;
};

// Texts and lists lie in the arena.
enum mgx_status mgx_generate_config_read(struct mgx_generate_config *out, const char *folder,
                                         struct mgx_arena *arena,
                                         struct mgx_diag *diag) MGX_NODISCARD;
