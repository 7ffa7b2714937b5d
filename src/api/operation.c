// SPDX-License-Identifier: MIT
// Operations: an operator and its attributes, before they become an instruction.
#include <assert.h>
#include <ctype.h>
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

// --- names that are nearly right ---

enum { NAME = 40 };

// Letters to insert, drop or exchange to make b of a; capitals are small ones.
static size_t edits(const char *a, const char *b)
{
    size_t row[NAME + 1];
    const size_t width = strlen(b);
    for (size_t k = 0; k <= width; k++)
        row[k] = k;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t k = 1; k <= width; k++) {
            const size_t exchanged = corner + (tolower((unsigned char)a[i - 1]) != b[k - 1]);
            const size_t shorter = row[k] < row[k - 1] ? row[k] : row[k - 1];
            corner = row[k];
            row[k] = exchanged < shorter + 1 ? exchanged : shorter + 1;
        }
    }
    return row[width];
}

// The operators whose names begin so, a few of them.
static int put_alike(struct mgx_str *out, const char *name)
{
    enum { MANY = 3 };
    int count, found = 0;
    const struct mgx_op *const *all = mgx_op_all(&count);
    for (int i = 0; i < count && found < MANY && strlen(name) >= 3; i++)
        if (strncmp(all[i]->name, name, strlen(name)) == 0)
            mgx_str_printf(out, "%s%s", found++ ? " or " : "; is it ", all[i]->name);
    return found;
}

// The operator whose name is spelt nearly so.
static void put_nearest(struct mgx_str *out, const char *name)
{
    size_t least = 1 + strlen(name) / 4;
    const char *best = NULL;
    int count;
    const struct mgx_op *const *all = mgx_op_all(&count);
    for (int i = 0; i < count && strlen(name) >= 3 && strlen(name) <= NAME; i++) {
        const size_t distance = strlen(all[i]->name) <= NAME ? edits(name, all[i]->name) : SIZE_MAX;
        if (distance < least) {
            least = distance;
            best = all[i]->name;
        }
    }
    if (best)
        mgx_str_printf(out, "; is it %s", best);
}

static enum mgx_status find_op(const char *name, const struct mgx_op **out, struct mgx_diag *diag)
{
    struct mgx_str near = {0};
    *out = mgx_api_ops.find(&mgx_api_ops, name, strlen(name));
    if (*out && !((*out)->flags & MGX_OP_BUILTIN))
        return MGX_OK;
    if (!*out && !put_alike(&near, name))
        put_nearest(&near, name);
    mgx_fail(diag, MGX_NOT_FOUND, "Operator not found: %s%s%s", name, mgx_str_text(&near),
             near.size ? "?" : "");
    mgx_str_fini(&near);
    return MGX_NOT_FOUND;
}

// A key that the operator has not is answered with those it has.
static void name_keys(const struct mgx_op *op, struct mgx_diag *diag)
{
    struct mgx_str text = {0};
    mgx_str_printf(&text, "%.*s", (int)strcspn(diag->text, "\n"), diag->text);
    for (const struct mgx_field *f = op->fields; f && f->name; f++)
        mgx_str_printf(&text, "%s%s", f == op->fields ? "; it has " : ", ", f->name);
    if (!text.failed) {
        mgx_diag_clear(diag);
        mgx_fail(diag, MGX_INVALID, "%s", mgx_str_text(&text));
    }
    mgx_str_fini(&text);
}

enum mgx_status mgx_api_attributes(const struct mgx_op *op, const char *text,
                                   struct mgx_arena *arena, void **out, struct mgx_diag *diag)
{
    assert(op && arena && out);
    if (!text)
        return mgx_attr_make(op, NULL, arena, out, diag);
    const enum mgx_status status = mgx_attr_parse(op, text, strlen(text), arena, out, diag);
    if (status != MGX_OK && strncmp(diag->text, "No key", 6) == 0)
        name_keys(op, diag);
    return status;
}

static enum mgx_status operation_init(struct migraphx_operation *out, const char *name,
                                      const char *text, struct mgx_diag *diag)
{
    TRY(find_op(name, &out->op, diag));
    mgx_arena_init(&out->arena);
    const enum mgx_status status = mgx_api_attributes(out->op, text, &out->arena, &out->attr, diag);
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
