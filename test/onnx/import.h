// SPDX-License-Identifier: MIT
// Importing a written model in a test: with an expected failure, or to run it on the reference.
#pragma once

#include "check.h"
#include "onnx/onnx.h"
#include "op/eval/eval.h"
#include "test_import.h"
#include "writer.h"

// Imports and consumes the model; NULL with the reason in *diag.
static inline struct mgx_program *
import_model(struct pb *take_model, const struct mgx_onnx_options *options, struct mgx_diag *diag)
{
    struct mgx_program *p = NULL;
    mgx_diag_clear(diag);
    const enum mgx_status status =
        mgx_onnx_import_buffer(&p, take_model->data, take_model->size, true, options, diag);
    pb_free(take_model);
    import_agrees(status, p, diag);
    return p;
}

// The model must be refused with this status and a message that contains this text.
static inline bool refused_with(struct pb *take_model, const struct mgx_onnx_options *options,
                                enum mgx_status status, const char *text)
{
    struct mgx_diag diag;
    struct mgx_program *p = import_model(take_model, options, &diag);
    return import_refused(p, &diag, status, text);
}

static inline bool refused(struct pb *take_model, enum mgx_status status, const char *text)
{
    return refused_with(take_model, NULL, status, text);
}

// Runs a program on float inputs given in order; the first result's values as doubles into `out`.
// Returns the number of elements, -1 on failure (printed).
static inline int64_t run_model(struct mgx_program *p, const struct mgx_tensor *args, int arg_count,
                                struct mgx_shape *shape, double *out, int64_t room)
{
    struct mgx_diag diag;
    struct mgx_arena strings;
    struct mgx_tensor results[8] = {0};
    int64_t count = -1;
    mgx_diag_clear(&diag);
    mgx_arena_init(&strings);
    for (int i = 0; i < p->module_count; i++)
        mgx_module_number(p->modules[i]);
    struct mgx_eval e = {.strings = &strings};
    if (mgx_module_result_count(mgx_program_main(p)) <= 8 &&
        mgx_eval_module(&e, mgx_program_main(p), args, arg_count, results, &diag) == MGX_OK) {
        count = mgx_shape_elements(&results[0].shape);
        if (shape)
            *shape = results[0].shape;
        if (count <= room)
            mgx_tensor_to_doubles(&results[0], out);
        for (int i = 0; i < 8; i++)
            mgx_tensor_release(&results[i]);
    } else {
        printf("run: %s\n", diag.text);
    }
    mgx_arena_fini(&strings);
    return count;
}

// A float tensor over the caller's values.
static inline struct mgx_tensor floats(const float *values, int rank, const int64_t *lens)
{
    const struct mgx_shape shape = mgx_shape_make(MGX_FLOAT, rank, lens);
    return mgx_tensor_borrow(&shape, values);
}
