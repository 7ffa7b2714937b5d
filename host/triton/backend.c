// SPDX-License-Identifier: MIT
// What the server calls.
#include <string.h>

#include "decoder.h"
#include "run.h"

TritonError *TRITONBACKEND_Initialize(TritonBackend *backend)
{
    uint32_t major = 0, minor = 0;
    (void)backend;
    TRY(TRITONBACKEND_ApiVersion(&major, &minor));
    if (major != TRITON_API_MAJOR || minor < TRITON_API_MINOR)
        return fail(TRITON_UNSUPPORTED,
                    "migraphx: the server's interface for backends is %u.%u, and this one needs "
                    "%d.%d or a later one of %d",
                    major, minor, TRITON_API_MAJOR, TRITON_API_MINOR, TRITON_API_MAJOR);
    return NULL;
}

// One instance has all processors; the server would make two of a backend called onnxruntime.
TritonError *TRITONBACKEND_GetBackendAttribute(TritonBackend *backend, TritonBackendAttribute *out)
{
    (void)backend;
    TRY(TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(out, TRITON_KIND_AUTO, 1, NULL, 0));
    return TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(out, TRITON_KIND_CPU, 1, NULL,
                                                                   0);
}

// --- models ---

TritonError *TRITONBACKEND_ModelInitialize(TritonModel *handle)
{
    struct model *m = NULL;
    TRY(model_create(handle, &m));
    TritonError *error = TRITONBACKEND_ModelSetState(handle, m);
    if (error)
        model_destroy(m);
    return error;
}

TritonError *TRITONBACKEND_ModelFinalize(TritonModel *handle)
{
    void *state = NULL;
    TRY(TRITONBACKEND_ModelState(handle, &state));
    model_destroy(state);
    return NULL;
}

// --- instances ---

// Asked every two milliseconds of a run: it ends when nobody waits for it any more.
static bool nobody_waits(void *data)
{
    const struct instance *n = data;
    for (size_t i = 0; n->group && i < n->group->count; i++)
        if (!item_is_cancelled(n->group->items[i]))
            return false;
    return n->group;
}

static void instance_destroy(struct instance *n)
{
    if (!n)
        return;
    decoder_destroy(n->decoder);
    for (size_t i = 0; n->inputs && i < n->model->input_count; i++)
        free(n->inputs[i].data);
    for (size_t i = 0; n->results && i < n->model->result_count; i++)
        free(n->results[i].data);
    free(n->inputs);
    free(n->results);
    migraphx_cancellation_destroy(n->cancellation);
    free(n);
}

static TritonError *instance_fill(struct instance *n)
{
    struct model *m = n->model;
    int kind = TRITON_KIND_AUTO;
    int32_t device = 0;
    TRY(TRITONBACKEND_ModelInstanceKind(n->handle, &kind));
    TRY(TRITONBACKEND_ModelInstanceDeviceId(n->handle, &device));
    const bool card = kind == TRITON_KIND_GPU;
    const char *target = *m->options.target ? m->options.target : card ? "gpu" : "cpu";
    if (m->form == FORM_DECODER)
        return decoder_create(n, target, card ? device : -1, &n->decoder);
    n->inputs = calloc(m->input_count + 1, sizeof *n->inputs);
    n->results = calloc(m->result_count + 1, sizeof *n->results);
    if (!n->inputs || !n->results)
        return no_memory();
    ENGINE_TRY(m->name, migraphx_cancellation_create(&n->cancellation));
    ENGINE_TRY(m->name, migraphx_cancellation_set_callback(n->cancellation, nobody_waits, n));
    return engine_require(m, target, card ? device : -1, &n->engine);
}

TritonError *TRITONBACKEND_ModelInstanceInitialize(TritonInstance *handle)
{
    TritonModel *model = NULL;
    void *state = NULL;
    TRY(TRITONBACKEND_ModelInstanceModel(handle, &model));
    TRY(TRITONBACKEND_ModelState(model, &state));
    struct instance *n = calloc(1, sizeof *n);
    if (!n)
        return no_memory();
    n->handle = handle;
    n->model = state;
    TritonError *error = instance_fill(n);
    if (!error)
        error = TRITONBACKEND_ModelInstanceSetState(handle, n);
    if (error)
        instance_destroy(n);
    return error;
}

TritonError *TRITONBACKEND_ModelInstanceFinalize(TritonInstance *handle)
{
    void *state = NULL;
    TRY(TRITONBACKEND_ModelInstanceState(handle, &state));
    instance_destroy(state);
    return NULL;
}

TritonError *TRITONBACKEND_ModelInstanceExecute(TritonInstance *handle, TritonRequest **requests,
                                                uint32_t count)
{
    void *state = NULL;
    TRY(TRITONBACKEND_ModelInstanceState(handle, &state));
    struct instance *n = state;
    return n->decoder ? decoder_execute(n, requests, count) : instance_execute(n, requests, count);
}
