// SPDX-License-Identifier: MIT
// mgx-tables: the engine's own tables as text, for tool/tables.py.
//
//     mgx-tables ops       name, meaning, inputs, attributes, flags
//     mgx-tables passes    name, meaning
//     mgx-tables stages    target, stage, when it runs, its passes
//     mgx-tables onnx      name, domain, first and last opset, kinds taken, types of the results and
//                          the attribute they are read from, as onnx/node.h says them
//
// A line an entry, fields separated by tabs.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "onnx/node.h"
#include "op/pointwise.h"
#include "pass/pass.h"
#include "targets/stages.h"

static const char *const kinds[] = {
    [MGX_FIELD_INT] = "integer",   [MGX_FIELD_BOOL] = "flag",     [MGX_FIELD_FLOAT] = "number",
    [MGX_FIELD_STRING] = "text",   [MGX_FIELD_INTS] = "integers", [MGX_FIELD_FLOATS] = "numbers",
    [MGX_FIELD_STRINGS] = "texts", [MGX_FIELD_ENUM] = "one of",   [MGX_FIELD_TYPE] = "type",
    [MGX_FIELD_SHAPE] = "shape",   [MGX_FIELD_SHAPES] = "shapes", [MGX_FIELD_DIMS] = "dimensions"};

static void print_names(const char *const *names)
{
    const char *between = " ";
    for (; *names; names++, between = ", ")
        if (**names)
            printf("%s%s", between, *names);
}

// "key=value" of field `f` in the operator's own text with its defaults.
static void print_default(const struct mgx_field *f, const char *text)
{
    char key[64], end[64];
    snprintf(key, sizeof key, "%s=", f->name);
    snprintf(end, sizeof end, ",%s=", f[1].name ? f[1].name : "");
    const char *at = strchr(text, '[');
    while (at && !((at[0] == '[' || at[0] == ',') && strncmp(at + 1, key, strlen(key)) == 0))
        at = *at ? at + 1 : NULL;
    if (!at)
        return;
    const char *stop = f[1].name ? strstr(at + 1, end) : strrchr(at, ']');
    at += 1 + strlen(key);
    if (stop > at)
        printf(" = %.*s", (int)(stop - at), at);
}

static void print_attributes(const struct mgx_op *op)
{
    void *zeros = calloc(1, op->attr_size + 1);
    struct mgx_str text = {0};
    if (zeros)
        mgx_op_print(&text, op, op->defaults ? op->defaults : zeros);
    for (const struct mgx_field *f = op->fields; f && f->name; f++) {
        printf("%s%s (%s", f == op->fields ? "" : "; ", f->name, kinds[f->kind]);
        if (f->kind == MGX_FIELD_ENUM)
            print_names(f->names);
        putchar(')');
        print_default(f, mgx_str_text(&text));
    }
    mgx_str_fini(&text);
    free(zeros);
}

static void print_types(const struct mgx_op *op)
{
    const struct mgx_pointwise *row = mgx_pointwise_find(op);
    if (row)
        printf("%s%s", row->real ? "any number" : "integers",
               row->result == MGX_PW_BOOL ? ", to bool" : "");
}

static void print_flags(const struct mgx_op *op)
{
    static const struct {
        unsigned flag;
        const char *word;
    } words[] = {{MGX_OP_POINTWISE, "pointwise"}, {MGX_OP_VIEW, "view"},
                 {MGX_OP_RESHAPE, "reshape"},     {MGX_OP_REDUCE, "reduces"},
                 {MGX_OP_IMPURE, "impure"},       {MGX_OP_EFFECT, "effect"}};
    const char *between = "";
    for (int i = 0; i < MGX_COUNT(words); i++)
        if (op->flags & words[i].flag) {
            printf("%s%s", between, words[i].word);
            between = ", ";
        }
}

static void print_op(const struct mgx_op *op)
{
    printf("%s\t%s\t", op->name, op->meaning);
    if (op->in_max < 0)
        printf("%d or more\t", op->in_min);
    else if (op->in_max > op->in_min)
        printf("%d to %d\t", op->in_min, op->in_max);
    else
        printf("%d\t", op->in_min);
    print_attributes(op);
    putchar('\t');
    print_types(op);
    putchar('\t');
    print_flags(op);
    putchar('\n');
}

static void print_rule(const struct mgx_onnx_op *rule)
{
    static const struct {
        unsigned kind;
        const char *word;
    } words[] = {{MGX_ONNX_TEXT, "text"},
                 {MGX_ONNX_COMPLEX, "complex"},
                 {MGX_ONNX_SEQUENCE, "sequence"},
                 {MGX_ONNX_OPTIONAL, "optional"}};
    const char *between = "";
    printf("%s\t%s\t%lld\t%lld\t", rule->name, rule->domain ? rule->domain : "",
           (long long)rule->since, (long long)rule->until);
    for (int i = 0; i < MGX_COUNT(words); i++)
        if (rule->takes & words[i].kind) {
            printf("%s%s", between, words[i].word);
            between = " ";
        }
    printf("\t%s\t%s\n", rule->result ? rule->result : "0",
           rule->result_attribute ? rule->result_attribute : "");
}

static void print_stages(const struct mgx_target *target)
{
    struct mgx_str text = {0};
    mgx_stages_print(&text, target->stages);
    for (const char *line = mgx_str_text(&text), *end; (end = strchr(line, '\n')); line = end + 1)
        printf("%s\t%.*s\n", target->name, (int)(end - line), line);
    mgx_str_fini(&text);
}

int main(int argc, char **argv)
{
    int count;
    if (argc == 2 && strcmp(argv[1], "ops") == 0) {
        const struct mgx_op *const *ops = mgx_op_all(&count);
        for (int i = 0; i < count; i++)
            print_op(ops[i]);
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "passes") == 0) {
        const struct mgx_pass *const *passes = mgx_pass_all(&count);
        for (int i = 0; i < count; i++)
            printf("%s\t%s\n", passes[i]->name, passes[i]->meaning);
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "stages") == 0) {
        const struct mgx_target *const *targets = mgx_target_all(&count);
        for (int i = 0; i < count; i++)
            print_stages(targets[i]);
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "onnx") == 0) {
        const struct mgx_onnx_op *const *rules = mgx_onnx_rules(&count);
        for (int i = 0; i < count; i++)
            print_rule(rules[i]);
        return 0;
    }
    fprintf(stderr, "usage: mgx-tables ops|passes|stages|onnx\n");
    return 2;
}
