// SPDX-License-Identifier: MIT
// Custom operators: a caller's functions as an operator of the IR.
//
// Registering makes a struct mgx_op whose shape rule and compute call back. Registered operators
// live as long as the process, because programs refer to them; the table of them is the only thing
// besides per-thread error texts that the interface keeps. A later registration of a name hides the
// earlier one.
//
// compute receives, as `out`, an argument over the memory of the result. A callback may write
// there, or assign another argument to it (its last input, usually), whose elements are then
// copied.
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"

enum { MESSAGE_SIZE = 256, ALIAS_SIZE = 1024 };

struct migraphx_experimental_custom_op {
    char *name, *type_name;
    void *object;
    migraphx_experimental_custom_op_copy copy;
    migraphx_experimental_custom_op_delete delete;
    migraphx_experimental_custom_op_compute compute;
    migraphx_experimental_custom_op_compute_shape compute_shape;
    migraphx_experimental_custom_op_output_alias output_alias;
    migraphx_experimental_custom_op_runs_on_offload_target runs_on_offload_target;
};

struct registered {
    struct mgx_op op; // op.user is this
    struct migraphx_experimental_custom_op custom;
    struct registered *next;
};

static struct registered *newest;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// --- handles ---

static void experimental_custom_op_fini(struct migraphx_experimental_custom_op *c)
{
    if (c->object && c->delete)
        c->delete (c->object);
    free(c->name);
    free(c->type_name);
}

static enum mgx_status experimental_custom_op_copy(struct migraphx_experimental_custom_op *out,
                                                   const struct migraphx_experimental_custom_op *in,
                                                   struct mgx_diag *diag)
{
    *out = *in;
    out->object = NULL;
    out->name = strdup(in->name);
    out->type_name = strdup(in->type_name);
    enum mgx_status status = out->name && out->type_name ? MGX_OK : mgx_fail_memory(diag);
    if (status == MGX_OK && in->object &&
        in->copy(&out->object, in->object) != migraphx_status_success)
        status = mgx_fail(diag, MGX_INVALID, "Error in copy of: %s", in->type_name);
    if (status != MGX_OK)
        experimental_custom_op_fini(out);
    return status;
}

API_HANDLE(experimental_custom_op)

migraphx_status migraphx_experimental_custom_op_create(migraphx_experimental_custom_op_t *out,
                                                       void *obj,
                                                       migraphx_experimental_custom_op_copy c,
                                                       migraphx_experimental_custom_op_delete d,
                                                       const char *obj_typename, const char *name)
{
    API_NEED(out);
    API_NEED(name);
    API_NEED(obj_typename);
    if (obj) {
        API_NEED(c);
        API_NEED(d);
    }
    API_DIAG(diag);
    const struct migraphx_experimental_custom_op lent = {.name = (char *)name,
                                                         .type_name = (char *)obj_typename,
                                                         .object = obj,
                                                         .copy = c,
                                                         .delete = d};
    struct migraphx_experimental_custom_op *handle =
        API_NEW(struct migraphx_experimental_custom_op);
    const enum mgx_status status =
        handle ? experimental_custom_op_copy(handle, &lent, &diag) : mgx_fail_memory(&diag);
    if (status == MGX_OK)
        *out = handle;
    else
        free(handle);
    return mgx_api_leave(status, &diag);
}

#define SETTER(what)                                                                               \
    migraphx_status migraphx_experimental_custom_op_set_##what(                                    \
        migraphx_experimental_custom_op_t obj, migraphx_experimental_custom_op_##what input)       \
    {                                                                                              \
        API_NEED(obj);                                                                             \
        obj->what = input;                                                                         \
        return migraphx_status_success;                                                            \
    }
SETTER(compute)
SETTER(compute_shape)
SETTER(output_alias)
SETTER(runs_on_offload_target)

// --- calling back ---

static const struct migraphx_experimental_custom_op *custom_of(const struct mgx_op *op)
{
    return &((const struct registered *)op->user)->custom;
}

static enum mgx_status missing(const char *function, struct mgx_diag *diag)
{
    return mgx_fail(diag, MGX_INVALID, "%s function is missing.", function);
}

static enum mgx_status answer(const struct migraphx_experimental_custom_op *c, const char *function,
                              migraphx_status status, const char *message, struct mgx_diag *diag)
{
    if (status == migraphx_status_success)
        return MGX_OK;
    return mgx_fail(diag, MGX_INVALID, "Error in %s of: %s: %.*s", function, c->type_name,
                    MESSAGE_SIZE - 1, message);
}

// A host has no use for either answer, but a failing callback must not go unseen.
static enum mgx_status ask(const struct migraphx_experimental_custom_op *c,
                           migraphx_shapes_t inputs, struct mgx_diag *diag)
{
    char message[MESSAGE_SIZE] = "";
    if (c->output_alias) {
        size_t aliases[ALIAS_SIZE], count = ALIAS_SIZE;
        const migraphx_status status =
            c->output_alias(aliases, &count, c->object, message, sizeof message, inputs);
        TRY(answer(c, "output_alias", status, message, diag));
        for (size_t i = 0; i < count && count <= ALIAS_SIZE; i++)
            if (aliases[i] >= inputs->count)
                return mgx_fail(diag, MGX_INVALID, "%s: output alias %zu, but there are %zu inputs",
                                c->name, aliases[i], inputs->count);
    }
    if (c->runs_on_offload_target) {
        bool yes = false;
        const migraphx_status status =
            c->runs_on_offload_target(&yes, c->object, message, sizeof message);
        TRY(answer(c, "runs_on_offload_target", status, message, diag));
    }
    return MGX_OK;
}

static enum mgx_status ask_shape(const struct migraphx_experimental_custom_op *c,
                                 migraphx_shapes_t inputs, struct mgx_arena *arena,
                                 struct mgx_shape *out, struct mgx_diag *diag)
{
    char message[MESSAGE_SIZE] = "";
    const struct mgx_shape plain = mgx_shape_scalar(MGX_FLOAT);
    struct migraphx_shape result;
    TRY(ask(c, inputs, diag));
    TRY(mgx_api_shape_init(&result, &plain, diag));
    const migraphx_status called =
        c->compute_shape(&result, c->object, message, sizeof message, inputs);
    enum mgx_status status = answer(c, "compute_shape", called, message, diag);
    if (status == MGX_OK && !mgx_shape_copy(arena, &result.value, out))
        status = mgx_fail_memory(diag);
    mgx_api_shape_fini(&result);
    return status;
}

static enum mgx_status shape(struct mgx_shape_call *call, struct mgx_shape *out)
{
    const struct migraphx_experimental_custom_op *c = custom_of(call->op);
    if (!c->compute_shape)
        return missing("compute_shape", call->diag);
    struct mgx_shape *shapes = calloc((size_t)call->in_count + 1, sizeof *shapes);
    if (!shapes)
        return mgx_fail_memory(call->diag);
    for (int i = 0; i < call->in_count; i++)
        shapes[i] = *call->in[i];
    migraphx_shapes_t inputs = NULL;
    enum mgx_status status =
        mgx_api_shapes_new(&inputs, shapes, (size_t)call->in_count, call->diag);
    free(shapes);
    if (status == MGX_OK)
        status = ask_shape(c, inputs, call->arena, out, call->diag);
    migraphx_shapes_destroy(inputs);
    return status;
}

// Puts what the callback gave into the call's result.
static enum mgx_status store(struct mgx_compute_call *call, const struct mgx_tensor *given)
{
    struct mgx_tensor *out = call->out;
    if (!out->data && !out->storage && !out->sub) // its size was not known before
        return mgx_tensor_clone(out, given, call->diag);
    if (given->data == out->data)
        return MGX_OK;
    if (given->shape.type != out->shape.type || !mgx_shape_same_lens(&given->shape, &out->shape)) {
        struct mgx_str text = {0};
        mgx_shape_print(&text, &given->shape);
        mgx_str_put(&text, "} instead of {");
        mgx_shape_print(&text, &out->shape);
        mgx_fail(call->diag, MGX_INVALID, "%s: compute gave {%s}", call->op->name,
                 mgx_str_text(&text));
        mgx_str_fini(&text);
        return MGX_INVALID;
    }
    struct mgx_tensor from = *given; // rank 0 and {1} copy as one another
    if (from.shape.rank != out->shape.rank)
        from.shape = out->shape;
    mgx_tensor_copy(&from, out);
    return MGX_OK;
}

static enum mgx_status call_compute(struct mgx_compute_call *call, migraphx_arguments_t inputs)
{
    const struct migraphx_experimental_custom_op *c = custom_of(call->op);
    char message[MESSAGE_SIZE] = "";
    struct migraphx_shape output;
    struct migraphx_argument result;
    struct mgx_tensor share = mgx_tensor_share(call->out);
    TRY(mgx_api_argument_init(&result, &share, call->diag));
    enum mgx_status status = mgx_api_shape_init(&output, call->out_shape, call->diag);
    if (status == MGX_OK) {
        const migraphx_status called = c->compute(&result, c->object, message, sizeof message,
                                                  mgx_api_host_context(), &output, inputs);
        status = answer(c, "compute", called, message, call->diag);
        if (status == MGX_OK)
            status = store(call, mgx_api_argument_value(&result));
        mgx_api_shape_fini(&output);
    }
    mgx_api_argument_fini(&result);
    return status;
}

static enum mgx_status compute(struct mgx_compute_call *call)
{
    if (!custom_of(call->op)->compute)
        return missing("compute", call->diag);
    struct mgx_tensor *shares = calloc((size_t)call->in_count + 1, sizeof *shares);
    if (!shares)
        return mgx_fail_memory(call->diag);
    for (int i = 0; i < call->in_count; i++)
        shares[i] = mgx_tensor_share(call->in[i]);
    migraphx_arguments_t inputs = NULL;
    enum mgx_status status =
        mgx_api_arguments_new(&inputs, shares, (size_t)call->in_count, call->diag);
    free(shares);
    if (status == MGX_OK)
        status = call_compute(call, inputs);
    migraphx_arguments_destroy(inputs);
    return status;
}

// --- the table ---

const struct mgx_op *mgx_api_custom_find(const char *name, size_t size)
{
    assert(name);
    const struct mgx_op *found = NULL;
    pthread_mutex_lock(&lock);
    for (const struct registered *r = newest; r && !found; r = r->next)
        if (strlen(r->op.name) == size && memcmp(r->op.name, name, size) == 0)
            found = &r->op;
    pthread_mutex_unlock(&lock);
    return found;
}

migraphx_status
migraphx_experimental_custom_op_register(migraphx_experimental_custom_op_t experimental_custom_op)
{
    API_NEED(experimental_custom_op);
    API_DIAG(diag);
    struct registered *r = API_NEW(struct registered);
    const enum mgx_status status =
        r ? experimental_custom_op_copy(&r->custom, experimental_custom_op, &diag)
          : mgx_fail_memory(&diag);
    if (status != MGX_OK) {
        free(r);
        return mgx_api_leave(status, &diag);
    }
    r->op = (struct mgx_op){.name = r->custom.name,
                            .meaning = "an operator of the caller",
                            .in_max = -1,
                            .flags = MGX_OP_IMPURE | MGX_OP_AGGREGATE,
                            .shape = shape,
                            .compute = compute,
                            .user = r};
    pthread_mutex_lock(&lock);
    r->next = newest;
    newest = r;
    pthread_mutex_unlock(&lock);
    return migraphx_status_success;
}

void migraphx_test_private_disable_exception_catch(bool value)
{
    (void)value;
}
