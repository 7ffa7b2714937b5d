// SPDX-License-Identifier: MIT
// Arbitrary bytes as a TensorFlow graph: the importer must refuse them with a text or give a program
// that verifies. Limits are tight, so that an input which asks for much fails fast.
#include "outcome.h"
#include "tf/tf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct mgx_tf_options options = {
        .nhwc = size & 1,
        .skip_unknown_operators = size & 2,
        .limit_bytes = 1 << 20,
        .limit_nodes = 5000,
        .limit_seconds = 5,
    };
    struct mgx_program *p = NULL;
    struct mgx_diag diag;
    mgx_diag_clear(&diag);
    const enum mgx_status status = mgx_tf_import_buffer(&p, data, size, false, &options, &diag);
    require_outcome(status, p, &diag);
    mgx_program_destroy(p);
    return 0;
}
