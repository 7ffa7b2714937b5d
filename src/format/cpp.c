// SPDX-License-Identifier: MIT
// A program as C++ code that builds it with MIGraphX's internal interface, as its users paste it
// into tests. All literals become generated ones: the code shows structure, not weights.
#include "base/size.h"
#include "format/format.h"

struct printer {
    struct mgx_str *out;
    struct mgx_map done; // modules that have been written
    struct mgx_format_names names;
    int generated; // literals so far: their seed
    struct mgx_diag *diag;
};

static void put_module_name(struct printer *w, const struct mgx_module *m)
{
    mgx_format_put_module_name(w->out, &w->names, m, "main");
}

static void put_dims(struct mgx_str *out, const struct mgx_shape *s)
{
    mgx_str_put(out, ", std::vector<migraphx::shape::dynamic_dimension>{");
    for (int i = 0; i < s->rank; i++) {
        const struct mgx_dim d = mgx_shape_dim(s, i);
        mgx_str_printf(out, "%s{%lld, %lld}", i ? ", " : "", (long long)d.min, (long long)d.max);
    }
    mgx_str_putc(out, '}');
}

static void put_shape(struct mgx_str *out, const struct mgx_shape *s)
{
    mgx_str_printf(out, "migraphx::shape{migraphx::shape::%s", mgx_type_name(s->type));
    if (s->dims)
        put_dims(out, s);
    else if (s->rank) {
        mgx_format_put_lens(out, s, false, ", {", "}");
        if (!mgx_shape_is_standard(s))
            mgx_format_put_lens(out, s, true, ", {", "}");
    }
    mgx_str_putc(out, '}');
}

static bool has_negative(const struct mgx_tensor *t)
{
    if (!mgx_type_is_number(t->shape.type))
        return false;
    const int64_t count = mgx_shape_space(&t->shape);
    for (int64_t i = 0; i < count; i++)
        if (mgx_load_double(t->shape.type, t->data, i) < 0)
            return true;
    return false;
}

static void put_literal(struct printer *w, const struct mgx_ins *ins)
{
    const bool negative = has_negative(ins->literal);
    mgx_str_put(w->out, negative ? "migraphx::generate_literal("
                                 : "migraphx::abs(migraphx::generate_literal(");
    put_shape(w->out, &ins->shape);
    mgx_str_printf(w->out, ", %d)%s", w->generated++, negative ? "" : ")");
}

static void put_operation(struct mgx_str *out, const struct mgx_ins *ins)
{
    if (!ins->attr || !ins->op->fields || ins->op->fields->kind == MGX_FIELD_END) {
        mgx_str_put(out, "migraphx::make_op(");
        mgx_format_put_quoted(out, ins->op->name, false);
        mgx_str_putc(out, ')');
        return;
    }
    struct mgx_str json = {0};
    mgx_attr_print_json(&json, ins->op, ins->attr);
    mgx_str_put(out, "migraphx::make_json_op(");
    mgx_format_put_quoted(out, ins->op->name, false);
    mgx_str_put(out, ", ");
    mgx_format_put_quoted(out, mgx_str_text(&json), false);
    mgx_str_putc(out, ')');
    mgx_str_fini(&json);
}

static void put_call(struct printer *w, const struct mgx_ins *ins)
{
    mgx_str_put(w->out, "add_instruction(");
    put_operation(w->out, ins);
    const bool list = ins->in_count > 1 || ins->mod_count;
    mgx_str_put(w->out, list || ins->in_count ? ", " : "");
    mgx_str_put(w->out, list ? "{" : "");
    for (int i = 0; i < ins->in_count; i++) {
        mgx_str_put(w->out, i ? ", " : "");
        mgx_format_put_name(w->out, &w->names, ins->in[i]);
    }
    mgx_str_put(w->out, list ? "}" : "");
    for (int i = 0; i < ins->mod_count; i++) {
        mgx_str_put(w->out, i ? ", " : ", {");
        put_module_name(w, ins->mod[i]);
    }
    mgx_str_put(w->out, ins->mod_count ? "});\n" : ");\n");
}

static void put_ins(struct printer *w, const struct mgx_ins *ins)
{
    if (ins->op == &mgx_op_comment)
        return;
    if (ins->next) {
        mgx_str_put(w->out, "auto ");
        mgx_format_put_name(w->out, &w->names, ins);
        mgx_str_put(w->out, " = ");
    }
    put_module_name(w, ins->owner);
    mgx_str_put(w->out, "->");
    if (ins->op == &mgx_op_param) {
        mgx_str_put(w->out, "add_parameter(");
        mgx_format_put_quoted(w->out, mgx_parameter_name(ins), false);
        mgx_str_put(w->out, ", ");
        put_shape(w->out, &ins->shape);
        mgx_str_put(w->out, ");\n");
    } else if (ins->op == &mgx_op_literal) {
        mgx_str_put(w->out, "add_literal(");
        put_literal(w, ins);
        mgx_str_put(w->out, ");\n");
    } else if (ins->op == &mgx_op_return) {
        mgx_str_put(w->out, "add_return({");
        for (int i = 0; i < ins->in_count; i++) {
            mgx_str_put(w->out, i ? ", " : "");
            mgx_format_put_name(w->out, &w->names, ins->in[i]);
        }
        mgx_str_put(w->out, "});\n");
    } else
        put_call(w, ins);
}

// Bodies of bodies first; modules cannot contain themselves, and nesting is bounded.
static enum mgx_status put_module(struct printer *w, struct mgx_module *m, int depth)
{
    if (mgx_map_find_pointer(&w->done, m))
        return MGX_OK;
    if (depth > MGX_FORMAT_MAX_DEPTH)
        return mgx_fail(w->diag, MGX_LIMIT, "modules are nested deeper than %d",
                        MGX_FORMAT_MAX_DEPTH);
    if (!mgx_map_put_pointer(&w->done, m, m))
        return mgx_fail_memory(w->diag);
    mgx_str_put(w->out, "migraphx::module_ref ");
    put_module_name(w, m);
    if (depth == 0)
        mgx_str_put(w->out, " = p.get_main_module();\n");
    else {
        mgx_str_put(w->out, " = p.create_module(");
        mgx_format_put_quoted(w->out, m->name, false);
        mgx_str_put(w->out, ");\n");
    }
    mgx_module_number(m);
    for (const struct mgx_ins *ins = m->last; ins; ins = ins->prev)
        if (mgx_format_goes_first(ins))
            put_ins(w, ins);
    for (const struct mgx_ins *ins = m->first; ins; ins = ins->next) {
        for (int i = 0; i < ins->mod_count; i++)
            TRY(put_module(w, ins->mod[i], depth + 1));
        if (!mgx_format_goes_first(ins))
            put_ins(w, ins);
    }
    return MGX_OK;
}

enum mgx_status mgx_format_cpp(struct mgx_str *out, const struct mgx_program *p,
                               struct mgx_diag *diag)
{
    struct printer w = {.out = out, .diag = diag};
    mgx_format_names_init(&w.names);
    mgx_str_put(out, "migraphx::program p;\n");
    const enum mgx_status status = put_module(&w, mgx_program_main(p), 0);
    const bool failed = w.names.failed;
    mgx_format_names_fini(&w.names);
    mgx_map_fini(&w.done);
    return status == MGX_OK && failed ? mgx_fail_memory(diag) : status;
}
