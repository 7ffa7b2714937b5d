// SPDX-License-Identifier: MIT
// The main module as a graph for dot(1): one node per instruction, one edge per use, labelled with
// the shape that flows along it. Nodes are coloured by what they do.
#include <string.h>

#include "base/size.h"
#include "format/format.h"

static void put_html(struct mgx_str *out, const char *text)
{
    for (; *text; text++)
        if (*text == '<')
            mgx_str_put(out, "&lt;");
        else if (*text == '>')
            mgx_str_put(out, "&gt;");
        else if (*text == '&')
            mgx_str_put(out, "&amp;");
        else if (*text == '"')
            mgx_str_put(out, "&quot;");
        else
            mgx_str_putc(out, *text);
}

static void put_id(struct mgx_str *out, const struct mgx_ins *ins)
{
    struct mgx_str name = {0};
    mgx_ins_print_name(&name, ins);
    mgx_str_putc(out, '"');
    for (const char *c = mgx_str_text(&name); *c; c++) {
        if (*c == '"' || *c == '\\')
            mgx_str_putc(out, '\\');
        mgx_str_putc(out, *c);
    }
    mgx_str_putc(out, '"');
    mgx_str_fini(&name);
}

static const char *colour(const struct mgx_op *op)
{
    static const struct {
        const char *name, *colour;
    } kinds[] = {{"@param", "#ADD8E6"},      {"@literal", "#D3D3D3"}, {"@return", "#90EE90"},
                 {"convolution", "#FFA07A"}, {"dot", "#FFA07A"},      {"quant_dot", "#FFA07A"},
                 {"pooling", "#F0E68C"}};
    for (int i = 0; i < MGX_COUNT(kinds); i++)
        if (strcmp(kinds[i].name, op->name) == 0)
            return kinds[i].colour;
    return op->flags & MGX_OP_POINTWISE ? "#DDA0DD"
           : op->flags & MGX_OP_VIEW    ? "#F5F5DC"
                                        : "#FFFFFF";
}

static const char *title(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_param ? mgx_parameter_name(ins) : ins->op->name;
}

static void put_attributes(struct mgx_str *out, const struct mgx_ins *ins)
{
    const struct mgx_field *f = ins->op->flags & MGX_OP_BUILTIN ? NULL : ins->op->fields;
    for (; ins->attr && f && f->kind != MGX_FIELD_END; f++) {
        struct mgx_str value = {0};
        mgx_field_print_json(&value, f, ins->attr);
        mgx_str_printf(out, "<TR><TD ALIGN=\"LEFT\">%s: ", f->name);
        put_html(out, mgx_str_text(&value));
        mgx_str_put(out, "</TD></TR>");
        mgx_str_fini(&value);
    }
}

static void put_node(struct mgx_str *out, const struct mgx_ins *ins, bool brief)
{
    mgx_str_putc(out, '\t');
    put_id(out, ins);
    if (brief) {
        mgx_str_put(out, "[label=<");
        put_html(out, title(ins));
        mgx_str_put(out, ">];\n");
        return;
    }
    mgx_str_printf(out,
                   "[label=<<TABLE BORDER=\"0\" CELLBORDER=\"0\" CELLSPACING=\"0\"><TR><TD><B>");
    put_html(out, title(ins));
    mgx_str_put(out, "</B></TD></TR>");
    put_attributes(out, ins);
    mgx_str_printf(out, "</TABLE>> style=\"filled,rounded\" shape=box fillcolor=\"%s\"];\n",
                   colour(ins->op));
}

static void put_edges(struct mgx_str *out, const struct mgx_ins *ins, bool brief)
{
    for (int i = 0; i < ins->in_count; i++) {
        mgx_str_putc(out, '\t');
        put_id(out, ins->in[i]);
        mgx_str_put(out, " -> ");
        put_id(out, ins);
        if (!brief) {
            mgx_str_put(out, "[label=\"");
            mgx_shape_print(out, &ins->in[i]->shape);
            mgx_str_put(out, "\"]");
        }
        mgx_str_put(out, ";\n");
    }
}

static enum mgx_status print(struct mgx_str *out, const struct mgx_program *p, bool brief)
{
    const struct mgx_module *m = mgx_program_main(p);
    mgx_str_put(out, "digraph {\n\tperipheries=0;\n");
    for (const struct mgx_ins *ins = m->first; ins; ins = ins->next) {
        put_node(out, ins, brief);
        put_edges(out, ins, brief);
    }
    mgx_str_put(out, "}\n");
    return MGX_OK;
}

enum mgx_status mgx_format_graphviz(struct mgx_str *out, const struct mgx_program *p,
                                    struct mgx_diag *diag)
{
    (void)diag;
    return print(out, p, false);
}

enum mgx_status mgx_format_graphviz_brief(struct mgx_str *out, const struct mgx_program *p,
                                          struct mgx_diag *diag)
{
    (void)diag;
    return print(out, p, true);
}
