// SPDX-License-Identifier: MIT
// Small valid TensorFlow graphs, mutated as messages. What imports also runs.
#include "mutate.h"
#include "run.h"
#include "tf/tf.h"
#include "tf_schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct mgx_tf_options options = {
        .nhwc = size & 1,
        .batch = size & 2 ? 3 : 1,
        .skip_unknown_operators = size & 4,
        .limit_bytes = BYTES,
        .limit_nodes = 5000,
        .limit_depth = 16,
        .limit_seconds = 5,
        .limit_loop_iterations = 20,
    };
    struct mgx_program *p = NULL;
    struct mgx_diag diag;
    mgx_diag_clear(&diag);
    const enum mgx_status status = mgx_tf_import_buffer(&p, data, size, false, &options, &diag);
    require_outcome(status, p, &diag);
    if (p)
        exercise(p, (uint8_t)size);
    return 0;
}

// --- mutating ---

static const struct schema schema = {tf_rows, sizeof tf_rows / sizeof *tf_rows, tf_words,
                                     sizeof tf_words / sizeof *tf_words, GRAPH};

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate(data, size, max_size, seed);
}
