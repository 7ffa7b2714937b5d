// SPDX-License-Identifier: MIT
// The next token of texts, and their scores: what of generator.h runs the model.
#pragma once

#include "generate/text.h"

// `texts` has room for as many.
enum mgx_status mgx_texts_next(struct mgx_texts *g, const size_t *numbers, size_t count,
                               struct mgx_text **texts, int64_t *tokens,
                               struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_texts_logits(struct mgx_texts *g, size_t number, float *out, size_t size,
                                 struct mgx_diag *diag) MGX_NODISCARD;
