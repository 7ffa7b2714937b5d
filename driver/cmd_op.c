// SPDX-License-Identifier: MIT
// op: all operators of the engine, or the default attributes of one as JSON.
#include "verbs.h"

// Lines and indentation for JSON that has neither; strings stay as they are.
static void print_indented(const char *json)
{
    int depth = 0;
    bool quoted = false;
    for (const char *c = json; *c; c++) {
        const bool escaped = quoted && c > json && c[-1] == '\\';
        quoted ^= *c == '"' && !escaped;
        const bool opens = !quoted && (*c == '{' || *c == '[');
        const bool closes = !quoted && (*c == '}' || *c == ']');
        const bool empty = (opens && (c[1] == '}' || c[1] == ']')) ||
                           (closes && c > json && (c[-1] == '{' || c[-1] == '['));
        depth += opens - closes;
        if (closes && !empty)
            printf("\n%*s", 4 * depth, "");
        putchar(*c);
        if ((opens && !empty) || (!quoted && *c == ','))
            printf("\n%*s", 4 * depth, "");
        if (!quoted && *c == ':')
            putchar(' ');
    }
    putchar('\n');
}

static int list_all(const struct options *o)
{
    size_t count = 0;
    int found = 0;
    if (!OK(migraphx_get_operators_size(&count)))
        return EXIT_FAILURE;
    for (size_t i = 0; i < count; i++) {
        const char *name;
        if (!OK(migraphx_get_operator_name_at_index(&name, i)))
            return EXIT_FAILURE;
        if (!o->file || strstr(name, o->file))
            put_name(o, name, found++);
    }
    put_names_end(o, found);
    if (o->file && !found)
        log_error("no operator has '%s' in its name", o->file);
    return o->file && !found ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void hint(const char *word)
{
    enum { MOST = 512 };
    const char *names[MOST];
    size_t count = 0;
    migraphx_get_operators_size(&count);
    for (size_t i = 0; i < count && i < MOST; i++)
        migraphx_get_operator_name_at_index(&names[i], i);
    const char *near = suggest(word, names, count < MOST ? (int)count : MOST);
    if (near)
        log_error("did you mean '%s'?", near);
}

static int run(struct options *o)
{
    if (o->list || !o->file)
        return list_all(o);
    migraphx_operation_t op = NULL;
    char *json = NULL;
    const bool found = OK(migraphx_operation_create_json(&op, o->file, NULL));
    const bool good = found && OK(migraphx_operation_attributes(&json, op));
    if (!found)
        hint(o->file);
    if (good && o->format)
        printf("%s\n", json);
    else if (good) {
        printf("%s:\n", o->file);
        print_indented(json);
    }
    migraphx_string_destroy(json);
    migraphx_operation_destroy(op);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static const struct flag own[] = {{FLAG_HEADING, NULL, NULL, 0, NULL, "op", 0, NULL},
                                  {FLAG_SET, "--list", "-l", OFFSET(list), NULL,
                                   "all operators, or those with <name> in theirs", 0, NULL},
                                  {FLAG_END, NULL, NULL, 0, NULL, NULL, 0, NULL}};
static const struct flag *const flags[] = {own, json_flags, common_flags, NULL};
const struct verb verb_op = {
    "op", "Prints the operators, or the default attributes of one.", "[-l] [<name>]", flags, run,
    false};
