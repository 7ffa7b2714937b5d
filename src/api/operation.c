// SPDX-License-Identifier: MIT
// Operations: an operator and its attributes, before they become an instruction.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "op/op.h"

static void operation_fini(struct migraphx_operation *o)
{
    mgx_arena_fini(&o->arena);
}

static enum mgx_status operation_copy(struct migraphx_operation *out,
                                      const struct migraphx_operation *in, struct mgx_diag *diag)
{
    out->op = in->op;
    mgx_arena_init(&out->arena);
    const enum mgx_status status = mgx_attr_copy(in->op, in->attr, &out->arena, &out->attr, diag);
    if (status != MGX_OK)
        operation_fini(out);
    return status;
}

API_HANDLE(operation)

static enum mgx_status find_op(const char *name, const struct mgx_op **out, struct mgx_diag *diag)
{
    *out = mgx_api_ops.find(&mgx_api_ops, name, strlen(name));
    if (!*out || ((*out)->flags & MGX_OP_BUILTIN))
        return mgx_fail(diag, MGX_NOT_FOUND, "Operator not found: %s", name);
    return MGX_OK;
}

static enum mgx_status operation_init(struct migraphx_operation *out, const char *name,
                                      const char *text, struct mgx_diag *diag)
{
    TRY(find_op(name, &out->op, diag));
    mgx_arena_init(&out->arena);
    const enum mgx_status status =
        text ? mgx_attr_parse(out->op, text, strlen(text), &out->arena, &out->attr, diag)
             : mgx_attr_make(out->op, NULL, &out->arena, &out->attr, diag);
    if (status != MGX_OK)
        operation_fini(out);
    return status;
}

static migraphx_status create(migraphx_operation_t *out, const char *name, const char *text)
{
    API_DIAG(diag);
    struct migraphx_operation *o = API_NEW(struct migraphx_operation);
    const enum mgx_status status =
        o ? operation_init(o, name, text, &diag) : mgx_fail_memory(&diag);
    if (status == MGX_OK)
        *out = o;
    else
        free(o);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_operation_create(migraphx_operation_t *out, const char *name,
                                          const char *attributes, ...)
{
    API_NEED(out);
    API_NEED(name);
    if (!attributes)
        return create(out, name, NULL);
    struct mgx_str text = {0};
    va_list args;
    va_start(args, attributes);
    mgx_str_vprintf(&text, attributes, args);
    va_end(args);
    const migraphx_status status =
        text.failed ? mgx_api_bad("%s: cannot expand the attributes of \"%s\"", __func__, name)
                    : create(out, name, mgx_str_text(&text));
    mgx_str_fini(&text);
    return status;
}

migraphx_status migraphx_operation_create_json(migraphx_operation_t *out, const char *name,
                                               const char *attributes)
{
    API_NEED(out);
    API_NEED(name);
    return create(out, name, attributes);
}

migraphx_status migraphx_operation_name(char *out, size_t out_size, migraphx_operation_t operation)
{
    API_NEED(out);
    API_NEED(operation);
    if (out_size)
        snprintf(out, out_size, "%s", operation->op->name);
    return migraphx_status_success;
}

migraphx_status migraphx_operation_attributes(char **out, const_migraphx_operation_t operation)
{
    API_NEED(out);
    API_NEED(operation);
    API_DIAG(diag);
    struct mgx_str text = {0};
    mgx_attr_print_json(&text, operation->op, operation->attr);
    return mgx_api_leave(mgx_api_take_text(&text, out, &diag), &diag);
}

migraphx_status migraphx_operation_to_string(char **out, const_migraphx_operation_t operation)
{
    API_NEED(out);
    API_NEED(operation);
    API_DIAG(diag);
    struct mgx_str text = {0};
    mgx_op_print(&text, operation->op, operation->attr);
    return mgx_api_leave(mgx_api_take_text(&text, out, &diag), &diag);
}
