// SPDX-License-Identifier: MIT
// Attributes of any operator: "name[text", the text in printed form or relaxed JSON. What is read
// prints as a text that reads back as the same, and as JSON that reads back as an equal struct.
#include <stdlib.h>
#include <string.h>

#include "op/op.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void printed_form(const struct mgx_op *op, const void *attr, struct mgx_arena *arena)
{
    struct mgx_str text = {0}, again = {0};
    void *back = NULL;
    mgx_op_print(&text, op, attr);
    const size_t head = strlen(op->name) + 1;
    require(text.size > head && text.text[text.size - 1] == ']');
    require(mgx_attr_parse(op, text.text + head, text.size - head - 1, arena, &back, NULL) == 0);
    mgx_op_print(&again, op, back);
    require(strcmp(text.text, again.text) == 0);
    mgx_str_fini(&text);
    mgx_str_fini(&again);
}

static void json_form(const struct mgx_op *op, const void *attr, struct mgx_arena *arena)
{
    struct mgx_str text = {0};
    void *back = NULL, *copy = NULL;
    mgx_attr_print_json(&text, op, attr);
    require(mgx_attr_parse(op, text.text, text.size, arena, &back, NULL) == MGX_OK);
    require(mgx_attr_equal(op, attr, back));
    require(mgx_attr_hash(op, attr, 7) == mgx_attr_hash(op, back, 7));
    require(mgx_attr_copy(op, back, arena, &copy, NULL) == MGX_OK);
    require(mgx_attr_equal(op, attr, copy));
    mgx_str_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *open = size ? memchr(data, '[', size) : NULL;
    if (!open)
        return 0;
    const struct mgx_op *op = mgx_ops.find(&mgx_ops, (const char *)data, (size_t)(open - data));
    if (!op || !op->fields || op->fields->kind == MGX_FIELD_END)
        return 0;
    struct mgx_arena arena;
    mgx_arena_init(&arena);
    const char *text = (const char *)open + 1;
    void *attr = NULL;
    if (mgx_attr_parse(op, text, size - (size_t)(open + 1 - data), &arena, &attr, NULL) == MGX_OK) {
        printed_form(op, attr, &arena);
        json_form(op, attr, &arena);
    }
    mgx_arena_fini(&arena);
    return 0;
}
