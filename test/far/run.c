// SPDX-License-Identifier: MIT
// See run.h.
#include "far/run.h"

#include "op/op.h"

static enum mgx_status carry(const struct mgx_tensor *from, struct mgx_tensor *to, bool in,
                             struct mgx_diag *diag)
{
    struct mgx_queue *queue = far_memory.queue_create(&far_memory);
    const size_t bytes = mgx_shape_bytes(&from->shape);
    if (!queue)
        return mgx_fail_memory(diag);
    enum mgx_status status = MGX_OK;
    if (bytes)
        status = (in ? far_memory.copy_in : far_memory.copy_out)(queue, to->data, from->data, bytes,
                                                                 diag);
    if (status == MGX_OK)
        status = far_memory.wait(queue, diag);
    far_memory.queue_destroy(queue);
    if (status != MGX_OK)
        mgx_tensor_release(to);
    return status;
}

static bool is_plain(const struct mgx_tensor *t)
{
    return t->shape.type != MGX_STRING && t->shape.type != MGX_TUPLE &&
           t->shape.type != MGX_SEQUENCE;
}

enum mgx_status far_upload(const struct mgx_tensor *t, struct mgx_tensor *out,
                           struct mgx_diag *diag)
{
    if (!is_plain(t)) {
        *out = mgx_tensor_share(t);
        return MGX_OK;
    }
    TRY(mgx_tensor_create_on(out, &t->shape, &far_memory, diag));
    return carry(t, out, true, diag);
}

enum mgx_status far_fetch(const struct mgx_tensor *t, struct mgx_tensor *out, struct mgx_diag *diag)
{
    if (mgx_tensor_memory(t) != &far_memory) {
        *out = mgx_tensor_share(t);
        return MGX_OK;
    }
    TRY(mgx_tensor_create(out, &t->shape, diag));
    return carry(t, out, false, diag);
}

static enum mgx_status fetch_all(struct mgx_tensor *results, int count, struct mgx_diag *diag)
{
    for (int i = 0; i < count; i++) {
        struct mgx_tensor near;
        TRY(far_fetch(&results[i], &near, diag));
        mgx_tensor_release(&results[i]);
        results[i] = near;
    }
    return MGX_OK;
}

// A parameter whose sizes are not fixed stays on the host.
static bool goes_far(const struct mgx_ins *param, bool offload)
{
    return !offload && mgx_shape_is_static(&param->shape);
}

static enum mgx_status bring(struct mgx_ins *const *params, bool offload,
                             const struct mgx_tensor *args, int count,
                             struct mgx_named_tensor *named, struct mgx_diag *diag)
{
    for (int i = 0; i < count; i++) {
        named[i].name = mgx_parameter_name(params[i]);
        if (goes_far(params[i], offload) && mgx_shape_equal(&params[i]->shape, &args[i].shape))
            TRY(far_upload(&args[i], &named[i].tensor, diag));
        else
            named[i].tensor = mgx_tensor_share(&args[i]);
    }
    return MGX_OK;
}

enum mgx_status far_run(const struct mgx_program *p, bool offload, const struct mgx_tensor *args,
                        int count, struct mgx_tensor *results, struct mgx_diag *diag)
{
    struct mgx_ins *params[FAR_MAX_ENDS];
    struct mgx_named_tensor named[FAR_MAX_ENDS] = {{.name = NULL}};
    const struct mgx_module *m = mgx_program_main(p);
    if (mgx_module_parameters(m, params, FAR_MAX_ENDS) != count)
        return mgx_fail(diag, MGX_INVALID, "another number of parameters");
    struct mgx_run run = {.params = named,
                          .param_count = count,
                          .results = results,
                          .result_count = mgx_module_result_count(m)};
    enum mgx_status status = bring(params, offload, args, count, named, diag);
    if (status == MGX_OK)
        status = mgx_program_run(p, &run, diag);
    if (status == MGX_OK)
        status = fetch_all(results, run.result_count, diag);
    for (int i = 0; i < count; i++)
        mgx_tensor_release(&named[i].tensor);
    return status;
}

enum mgx_status far_try(const struct mgx_program *p, bool offload, const struct mgx_tensor *args,
                        int count, struct mgx_tensor *results, struct mgx_diag *diag)
{
    const struct mgx_compile_options options = {.offload_copy = offload};
    struct mgx_program *clone = NULL;
    TRY(mgx_program_clone(&clone, p, diag));
    enum mgx_status status = mgx_program_compile(clone, &far_target, &options, diag);
    if (status == MGX_OK)
        status = far_run(clone, offload, args, count, results, diag);
    mgx_program_destroy(clone); // results outlive it
    return status;
}
