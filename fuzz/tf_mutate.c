// SPDX-License-Identifier: MIT
// Small valid TensorFlow graphs, mutated as messages. What imports also runs.
#include "mutate.h"
#include "run.h"
#include "tf/tf.h"

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
    };
    struct mgx_program *p = NULL;
    struct mgx_diag diag;
    mgx_diag_clear(&diag);
    const enum mgx_status status = mgx_tf_import_buffer(&p, data, size, false, &options, &diag);
    require((status == MGX_OK) == (p != NULL) && (p || diag.text[0]));
    if (p)
        exercise(p, (uint8_t)size);
    return 0;
}

// --- mutating ---

enum message {
    GRAPH = 1,
    LIBRARY,
    FUNCTION,
    SIGNATURE,
    ARGUMENT,
    NODE,
    ENTRY,
    VALUE,
    LIST,
    SHAPE,
    DIMENSION,
    TENSOR,
    NAMED
};

static const struct nesting rows[] = {
    {GRAPH, 1, NODE},    {GRAPH, 2, LIBRARY},  {LIBRARY, 1, FUNCTION},   {FUNCTION, 1, SIGNATURE},
    {FUNCTION, 3, NODE}, {FUNCTION, 4, ENTRY}, {SIGNATURE, 2, ARGUMENT}, {SIGNATURE, 3, ARGUMENT},
    {NODE, 5, ENTRY},    {ENTRY, 2, VALUE},    {VALUE, 1, LIST},         {VALUE, 7, SHAPE},
    {VALUE, 8, TENSOR},  {VALUE, 10, NAMED},   {TENSOR, 2, SHAPE},       {SHAPE, 2, DIMENSION}};
static const char *const words[] = {
    "AddV2", "Reshape", "StridedSlice", "GatherV2",  "Pad",   "ConcatV2", "Split", "While",
    "If",    "Cast",    "MatMul",       "Conv2D",    "Merge", "Switch",   "Tile",  "TopKV2",
    "Enter", "Exit",    "Squeeze",      "Pack",      "x0",    "x1",       "",      "SAME",
    "VALID", "NHWC",    "NCHW",         "ij,jk->ik", "^x0",   "x0:1",     "Const", "Mean"};
static const struct schema schema = {rows, sizeof rows / sizeof *rows, words,
                                     sizeof words / sizeof *words};

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate(data, size, max_size, seed);
}
