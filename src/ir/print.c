// SPDX-License-Identifier: MIT
// The text form of instructions, modules and programs; docs/ir.md is the specification.
//
//     main:@2 = convolution[padding={0, 0},...](input,main:@0) -> float_type, {1, 4, 6}, {24, 6, 1}
//
// Every name carries its module; a parameter of main goes by its bare name. Numbers are positions,
// so printing numbers the modules first: one pass over the program, then O(1) per name.
#include <string.h>

#include "ir/module.h"
#include "ir/text.h"

enum { LITERAL_ELEMENTS = 10 }; // a longer literal prints as { ... }

// Positions without touching the program (printing takes it const): the caller's map, or a walk for
// single lines.
static int position(const struct mgx_ins *ins, const struct mgx_map *positions)
{
    if (positions) {
        const struct mgx_map_entry *entry =
            mgx_map_find_entry(positions, (const char *)ins, SIZE_MAX);
        return entry ? (int)(intptr_t)entry->value : -1;
    }
    int at = 0;
    for (const struct mgx_ins *i = ins->prev; i; i = i->prev)
        at++;
    return at;
}

static bool is_main(const struct mgx_module *m)
{
    return m->program->module_count && m->program->modules[0] == m;
}

// A name has to be seen, so an empty one is quoted too; so is one that would begin a comment.
static void print_word(struct mgx_str *out, const char *name)
{
    const bool comment = *name == '#' || strncmp(name, "//", 2) == 0;
    if (*name && *name != '@' && !comment && !strchr(name, '='))
        mgx_text_print(out, name);
    else
        mgx_text_quote(out, name, strlen(name));
}

// Stands bare, unless it reads like something of a module: "main:@3", or "body:x" where there is a
// module "body".
static void print_main_parameter(struct mgx_str *out, const struct mgx_program *p, const char *name)
{
    bool qualified = false;
    for (const char *c = strchr(name, ':'); c && !qualified; c = strchr(c + 1, ':')) {
        const struct mgx_module *m = mgx_map_findn(&p->module_names, name, (size_t)(c - name));
        qualified = c[1] == '@' || (m && m != p->modules[0]);
    }
    if (qualified)
        mgx_text_quote(out, name, strlen(name));
    else
        print_word(out, name);
}

static void print_name(struct mgx_str *out, const struct mgx_ins *ins,
                       const struct mgx_map *positions)
{
    const struct mgx_module *m = ins->owner;
    if (ins->op == &mgx_op_param && is_main(m)) {
        print_main_parameter(out, m->program, mgx_parameter_name(ins));
        return;
    }
    print_word(out, m->name);
    mgx_str_putc(out, ':');
    if (ins->op == &mgx_op_param)
        print_word(out, mgx_parameter_name(ins));
    else
        mgx_str_printf(out, "@%d", position(ins, positions));
}

// Free text to the end of the line; quoted where the line would not give it back.
static void print_remark(struct mgx_str *out, const char *text)
{
    const size_t size = strlen(text);
    bool bare = !size || (*text != '"' && *text != ' ' && text[size - 1] != ' ');
    for (size_t i = 0; i < size; i++)
        bare &= (unsigned char)text[i] >= 0x20;
    if (bare)
        mgx_str_put(out, text);
    else
        mgx_text_quote(out, text, size);
}

static void print_symbol(struct mgx_str *out, const char *text)
{
    if (!*text || strpbrk(text, ",'") || strstr(text, "  "))
        mgx_text_quote(out, text, strlen(text));
    else
        print_remark(out, text);
}

static void print_operator(struct mgx_str *out, const struct mgx_ins *ins)
{
    if (ins->op == &mgx_op_param) {
        mgx_str_put(out, "@param:");
        print_word(out, mgx_parameter_name(ins));
    } else if (ins->op == &mgx_op_literal) {
        mgx_str_put(out, "@literal{");
        if (ins->literal->sub_count || mgx_shape_elements(&ins->shape) > LITERAL_ELEMENTS)
            mgx_str_put(out, " ... ");
        else
            mgx_tensor_print(out, ins->literal);
        mgx_str_putc(out, '}');
    } else if (ins->op == &mgx_op_comment) {
        mgx_str_put(out, "@comment: ");
        print_remark(out, mgx_attr_text(ins->op, ins->attr, "text"));
    } else {
        mgx_op_print(out, ins->op, ins->attr);
    }
}

static void print_line(struct mgx_str *out, const struct mgx_ins *ins,
                       const struct mgx_map *positions)
{
    print_name(out, ins, positions);
    mgx_str_put(out, " = ");
    print_operator(out, ins);
    for (int i = 0; i < ins->in_count; i++) {
        mgx_str_putc(out, i ? ',' : '(');
        print_name(out, ins->in[i], positions);
    }
    if (ins->in_count)
        mgx_str_putc(out, ')');
    for (int i = 0; i < ins->mod_count; i++) {
        mgx_str_put(out, i ? ", " : ", [");
        print_word(out, ins->mod[i]->name);
    }
    if (ins->mod_count)
        mgx_str_putc(out, ']');
    if (ins->op != &mgx_op_return && ins->op != &mgx_op_comment) {
        mgx_str_put(out, " -> ");
        mgx_shape_print(out, &ins->shape);
    }
    if (ins->owner->program->print_origins && ins->op != &mgx_op_comment)
        for (int i = 0; i < ins->origin.count; i++) {
            mgx_str_put(out, i ? ", " : " # ");
            print_symbol(out, ins->origin.v[i]);
        }
}

void mgx_ins_print_name(struct mgx_str *out, const struct mgx_ins *ins)
{
    print_name(out, ins, NULL);
}

void mgx_ins_print(struct mgx_str *out, const struct mgx_ins *ins)
{
    print_line(out, ins, NULL);
}

static bool number(const struct mgx_module *m, struct mgx_map *positions)
{
    int at = 0;
    for (const struct mgx_ins *ins = m->first; ins; ins = ins->next)
        if (!mgx_map_put_pointer(positions, ins, (void *)(intptr_t)at++))
            return false;
    return true;
}

static bool number_all(const struct mgx_program *p, struct mgx_map *positions)
{
    for (int i = 0; i < p->module_count; i++)
        if (!number(p->modules[i], positions))
            return false;
    return true;
}

static void print_lines(struct mgx_str *out, const struct mgx_module *m,
                        const struct mgx_map *positions)
{
    for (const struct mgx_ins *ins = m->first; ins; ins = ins->next) {
        print_line(out, ins, positions);
        mgx_str_putc(out, '\n');
    }
}

void mgx_module_print(struct mgx_str *out, const struct mgx_module *m)
{
    struct mgx_map positions = {0};
    if (number_all(m->program, &positions)) // a body may name instructions of outer modules
        print_lines(out, m, &positions);
    else
        out->failed = true;
    mgx_map_fini(&positions);
}

// Appends what has not been seen yet; false when out of memory.
static bool add_once(struct mgx_map *seen, struct mgx_module *m, struct mgx_module **order,
                     int *count)
{
    if (mgx_map_find_pointer(seen, m))
        return true;
    order[(*count)++] = m;
    return mgx_map_put_pointer(seen, m, m);
}

// Main first, then bodies in the order of their first use, then unused modules: found by a walk
// over an explicit queue, so depth of nesting costs no stack. Returns -1 when out of memory.
static int print_order(const struct mgx_program *p, struct mgx_module **order)
{
    struct mgx_map seen = {0};
    int count = 0;
    bool good = !p->module_count || add_once(&seen, p->modules[0], order, &count);
    for (int i = 0; i < count; i++)
        for (const struct mgx_ins *ins = order[i]->first; ins; ins = ins->next)
            for (int j = 0; j < ins->mod_count; j++)
                good = good && add_once(&seen, ins->mod[j], order, &count);
    for (int i = 0; i < p->module_count; i++)
        good = good && add_once(&seen, p->modules[i], order, &count);
    mgx_map_fini(&seen);
    return good ? count : -1;
}

void mgx_program_print(struct mgx_str *out, const struct mgx_program *p)
{
    struct mgx_map positions = {0};
    struct mgx_arena arena;
    mgx_arena_init(&arena);
    struct mgx_module **order = MGX_NEW_ARRAY(&arena, struct mgx_module *, p->module_count + 1);
    if (!order || !number_all(p, &positions)) {
        out->failed = true;
    } else {
        const int count = print_order(p, order);
        out->failed |= count < 0;
        for (int i = 0; i < count; i++) {
            mgx_str_put(out, "module: ");
            mgx_text_quote(out, order[i]->name, strlen(order[i]->name));
            mgx_str_putc(out, '\n');
            print_lines(out, order[i], &positions);
            mgx_str_putc(out, '\n');
        }
    }
    mgx_arena_fini(&arena);
    mgx_map_fini(&positions);
}

bool mgx_program_equal(const struct mgx_program *a, const struct mgx_program *b)
{
    struct mgx_str x = {0}, y = {0};
    mgx_program_print(&x, a);
    mgx_program_print(&y, b);
    const bool equal = !x.failed && !y.failed && strcmp(mgx_str_text(&x), mgx_str_text(&y)) == 0;
    mgx_str_fini(&x);
    mgx_str_fini(&y);
    return equal;
}

void mgx_ins_blame(const struct mgx_ins *ins, struct mgx_diag *diag)
{
    mgx_where(diag, "%s:@%d = %s%s%s", ins->owner->name, ins->index, ins->op->name,
              ins->origin.count ? ", from node " : "", ins->origin.count ? ins->origin.v[0] : "");
}
