// SPDX-License-Identifier: MIT
// Small valid ONNX models, mutated as messages: a change keeps the nesting and all lengths right,
// so that it reaches the operators instead of the wire reader. What imports also runs, on zeros and
// small numbers, must verify and simplify, and runs compiled for the CPU.
#include "mutate.h"
#include "onnx/onnx.h"
#include "run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct mgx_onnx_options options = {
        .limit_bytes = BYTES,
        .limit_nodes = 500,
        .limit_seconds = 5,
        .limit_loop_iterations = 20,
        .external_data_path = "/nonexistent",
        .dynamic_dims = size & 1,
    };
    struct mgx_program *p = NULL;
    struct mgx_diag diag;
    mgx_diag_clear(&diag);
    const enum mgx_status status = mgx_onnx_import_buffer(&p, data, size, false, &options, &diag);
    require_outcome(status, p, &diag);
    if (p)
        exercise(p, (uint8_t)size);
    return 0;
}

// --- mutating ---

enum message {
    MODEL = 1,
    GRAPH,
    NODE,
    ATTRIBUTE,
    TENSOR,
    SPARSE,
    VALUE,
    TYPE,
    TENSOR_TYPE,
    SHAPE,
    DIMENSION,
    FUNCTION,
    OPSET
};

static const struct nesting rows[] = {
    {MODEL, 7, GRAPH},      {MODEL, 8, OPSET},       {MODEL, 25, FUNCTION},
    {GRAPH, 1, NODE},       {GRAPH, 5, TENSOR},      {GRAPH, 11, VALUE},
    {GRAPH, 12, VALUE},     {GRAPH, 15, SPARSE},     {NODE, 5, ATTRIBUTE},
    {ATTRIBUTE, 5, TENSOR}, {ATTRIBUTE, 6, GRAPH},   {ATTRIBUTE, 22, SPARSE},
    {SPARSE, 1, TENSOR},    {SPARSE, 2, TENSOR},     {VALUE, 2, TYPE},
    {TYPE, 1, TENSOR_TYPE}, {TENSOR_TYPE, 2, SHAPE}, {SHAPE, 1, DIMENSION},
    {FUNCTION, 7, NODE},    {FUNCTION, 9, OPSET},    {FUNCTION, 11, ATTRIBUTE}};
static const char *const words[] = {
    "Add",     "Reshape", "Slice",      "Gather",    "Pad",    "Concat", "Split", "Loop",
    "If",      "Cast",    "MatMul",     "Conv",      "Resize", "Expand", "Tile",  "TopK",
    "Softmax", "LSTM",    "Squeeze",    "Scan",      "x",      "y",      "",      "linear",
    "cubic",   "reflect", "SAME_UPPER", "ij,jk->ik", "...i->i"};
static const struct schema schema = {rows, sizeof rows / sizeof *rows, words,
                                     sizeof words / sizeof *words, MODEL};

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate(data, size, max_size, seed);
}
