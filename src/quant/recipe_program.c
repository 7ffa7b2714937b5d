// SPDX-License-Identifier: MIT
// How a program keeps its recipe; see recipe.h.
//
// A program keeps it as @comment instructions, one a line of the text, so that every form a program
// is saved in keeps it too. They stand at the end of main and say nothing to any pass.
#include <string.h>

#include "quant/recipe.h"

static const char mark[] = "quantization| ";
enum { MARK = sizeof mark - 1 };

// The line that a comment keeps, or NULL.
static const char *line_of(const struct mgx_ins *ins)
{
    if (ins->op != &mgx_op_comment)
        return NULL;
    const char *text = mgx_attr_text(ins->op, ins->attr, "text");
    return text && strncmp(text, mark, MARK) == 0 ? text + MARK : NULL;
}

static enum mgx_status add_line(struct mgx_module *m, const char *line, size_t size)
{
    struct mgx_str text = {0};
    mgx_str_put(&text, mark);
    mgx_str_putn(&text, line, size);
    const struct mgx_attr attrs[] = {mgx_text("text", mgx_str_text(&text)), {0}};
    const bool good =
        !text.failed && mgx_emit(m, &mgx_op_comment, attrs, (struct mgx_ins_list){NULL, 0}) != NULL;
    mgx_str_fini(&text);
    return good ? MGX_OK : MGX_NO_MEMORY;
}

enum mgx_status mgx_recipe_attach(const struct mgx_recipe *r, struct mgx_program *p,
                                  struct mgx_diag *diag)
{
    struct mgx_module *m = mgx_program_main(p);
    struct mgx_str text = {0};
    MGX_EACH (ins, m)
        if (line_of(ins))
            mgx_remove(ins);
    mgx_recipe_print(&text, r);
    enum mgx_status status = text.failed ? MGX_NO_MEMORY : MGX_OK;
    for (const char *at = mgx_str_text(&text); *at && status == MGX_OK;) {
        const size_t size = strcspn(at, "\n");
        status = add_line(m, at, size);
        at += size + (at[size] == '\n');
    }
    mgx_str_fini(&text);
    return status == MGX_OK ? mgx_program_status(p, diag) : mgx_fail_memory(diag);
}

enum mgx_status mgx_recipe_of(struct mgx_recipe *out, const struct mgx_program *p,
                              struct mgx_diag *diag)
{
    struct mgx_str text = {0};
    MGX_EACH (ins, mgx_program_main(p)) {
        const char *line = line_of(ins);
        if (line) {
            mgx_str_put(&text, line);
            mgx_str_putc(&text, '\n');
        }
    }
    enum mgx_status status =
        text.failed ? mgx_fail_memory(diag)
        : text.size == 0
            ? mgx_fail(diag, MGX_NOT_FOUND, "the program does not say how it was quantized")
            : mgx_recipe_parse(out, text.text, text.size, diag);
    mgx_str_fini(&text);
    return status;
}
