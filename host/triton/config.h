// SPDX-License-Identifier: MIT
// What the files share that read and write configurations.
#pragma once

#include "backend.h"

// Whether an input comes from the server itself: sequences, what they keep, ragged batches.
bool config_gives_input(const struct json_list *, const char *name);
// Whether a result is kept for the next request of a sequence.
bool config_keeps_result(const struct json_list *, const char *name);

// What a configuration says of ragged batches.
TritonError *ragged_read(struct model *, const struct json_list *);
