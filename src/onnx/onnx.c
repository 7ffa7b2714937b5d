// SPDX-License-Identifier: MIT
// The ways in: a model from a file or from memory becomes a program; see onnx.h.
#include "onnx/onnx.h"

#include "onnx/deferred.h"
#include "onnx/graph.h"

// --- the set of operators ---

static const struct mgx_op *find_op(const struct mgx_op_set *set, const char *name, size_t size)
{
    (void)set;
    const struct mgx_slice text = {name, size};
    return mgx_slice_is(text, mgx_onnx_deferred.name) ? &mgx_onnx_deferred
                                                      : mgx_ops.find(&mgx_ops, name, size);
}

const struct mgx_op_set mgx_onnx_ops = {.find = find_op};

// --- models ---

enum mgx_status mgx_onnx_import_file(struct mgx_program **out, const char *path,
                                     const struct mgx_onnx_options *options, struct mgx_diag *diag)
{
    struct mgx_onnx_import import;
    *out = NULL;
    enum mgx_status status = mgx_onnx_begin(&import, options, diag);
    if (status == MGX_OK)
        status = mgx_source_open(&import.source, path, import.diag);
    return mgx_onnx_run(&import, status, &mgx_onnx_ops, out);
}

enum mgx_status mgx_onnx_import_buffer(struct mgx_program **out, const void *data, size_t size,
                                       bool copy, const struct mgx_onnx_options *options,
                                       struct mgx_diag *diag)
{
    struct mgx_onnx_import import;
    *out = NULL;
    enum mgx_status status = mgx_onnx_begin(&import, options, diag);
    if (status == MGX_OK)
        status = mgx_source_open_buffer(&import.source, data, size, copy, import.diag);
    return mgx_onnx_run(&import, status, &mgx_onnx_ops, out);
}
