// SPDX-License-Identifier: MIT
// A program as Python code that builds it.
//
//     p = migraphx.program()
//     m = p.get_main_module()
//     p_x = m.add_parameter("x", migraphx.shape(type="float_type", lens=[2, 3]))
//     x_1 = m.add_instruction(migraphx.op("relu"), [p_x]) # migraphx.shape(...)
//     m.add_return([x_1])
//
// A body is written just before the instruction that uses it, so that what it captures exists. Only
// attributes that differ from the defaults are written. Literals below 1024 elements keep their
// values.
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "format/format.h"

enum { VALUES_UP_TO = 1024 };

struct printer {
    struct mgx_str *out;
    struct mgx_map done; // modules that have been written
    struct mgx_format_names names;
    int generated; // literals replaced so far: their seed
    struct mgx_diag *diag;
};

static void put_module_name(struct printer *w, const struct mgx_module *m)
{
    mgx_format_put_module_name(w->out, &w->names, m, "");
}

// --- shapes ---

static void put_dims(struct mgx_str *out, const struct mgx_shape *s)
{
    mgx_str_put(out, ", dyn_dims=[");
    for (int i = 0; i < s->rank; i++) {
        const struct mgx_dim d = mgx_shape_dim(s, i);
        mgx_str_printf(out, "%smigraphx.shape.dynamic_dimension(%lld, %lld", i ? ", " : "",
                       (long long)d.min, (long long)d.max);
        for (int k = 0; k < d.optimal_count; k++)
            mgx_str_printf(out, "%s%lld", k ? ", " : ", {", (long long)d.optimals[k]);
        mgx_str_put(out, d.optimal_count ? "})" : ")");
    }
    mgx_str_putc(out, ']');
}

static void put_shape(struct mgx_str *out, const struct mgx_shape *s)
{
    mgx_str_printf(out, "migraphx.shape(type=\"%s\"", mgx_type_name(s->type));
    if (s->dims)
        put_dims(out, s);
    else {
        mgx_str_put(out, ", lens=");
        mgx_format_put_lens(out, s, false, "[", "]");
        if (!mgx_shape_is_standard(s) || s->rank == 0) {
            mgx_str_put(out, ", strides=");
            mgx_format_put_lens(out, s, true, "[", "]");
        }
    }
    mgx_str_putc(out, ')');
}

// --- attributes ---

// JSON and Python differ in these words alone; inside strings they stay.
static void put_json_as_py(struct mgx_str *out, const char *json)
{
    static const char *const words[][2] = {{"true", "True"},
                                           {"false", "False"},
                                           {"null", "None"},
                                           {"NaN", "float(\"nan\")"},
                                           {"Infinity", "float(\"inf\")"}};
    bool quoted = false;
    for (const char *c = json; *c;) {
        size_t skip = 0;
        for (int w = 0; !quoted && w < MGX_COUNT(words) && !skip; w++)
            if (strncmp(c, words[w][0], strlen(words[w][0])) == 0) {
                mgx_str_put(out, words[w][1]);
                skip = strlen(words[w][0]);
            }
        if (!skip) {
            if (quoted && *c == '\\')
                mgx_str_putc(out, *c++);
            else if (*c == '"')
                quoted = !quoted;
            mgx_str_putc(out, *c);
            skip = 1;
        }
        c += skip;
    }
}

static void put_op(struct mgx_str *out, const struct mgx_op *op, const void *attr,
                   const void *defaults)
{
    mgx_str_put(out, "migraphx.op(");
    mgx_format_put_quoted(out, op->name, true);
    for (const struct mgx_field *f = op->fields; attr && f && f->kind != MGX_FIELD_END; f++) {
        struct mgx_str value = {0}, plain = {0};
        mgx_field_print_json(&value, f, attr);
        mgx_field_print_json(&plain, f, defaults);
        if (strcmp(mgx_str_text(&value), mgx_str_text(&plain)) != 0) {
            mgx_str_printf(out, ", %s=", f->name);
            put_json_as_py(out, mgx_str_text(&value));
        }
        mgx_str_fini(&value);
        mgx_str_fini(&plain);
    }
    mgx_str_putc(out, ')');
}

static enum mgx_status put_operation(struct printer *w, const struct mgx_ins *ins)
{
    struct mgx_arena arena;
    void *defaults = NULL;
    mgx_arena_init(&arena);
    const enum mgx_status status = mgx_attr_make(ins->op, NULL, &arena, &defaults, w->diag);
    if (status == MGX_OK)
        put_op(w->out, ins->op, ins->attr, defaults);
    mgx_arena_fini(&arena);
    return status;
}

// --- instructions ---

static void put_list(struct printer *w, const struct mgx_ins *ins)
{
    mgx_str_putc(w->out, '[');
    for (int i = 0; i < ins->in_count; i++) {
        mgx_str_put(w->out, i ? ", " : "");
        mgx_format_put_name(w->out, &w->names, ins->in[i]);
    }
    mgx_str_putc(w->out, ']');
}

static void put_value(struct mgx_str *out, enum mgx_type type, const void *data, int64_t at)
{
    if (!mgx_type_is_float(type)) {
        mgx_str_printf(out, "%lld", (long long)mgx_load_int(type, data, at));
        return;
    }
    const double v = mgx_load_double(type, data, at);
    if (isnan(v))
        mgx_str_put(out, "float(\"nan\")");
    else if (isinf(v))
        mgx_str_printf(out, "float(\"%sinf\")", v < 0 ? "-" : "");
    else
        mgx_str_printf(out, "%.*g", type == MGX_DOUBLE ? 17 : 9, v);
}

static void put_literal(struct printer *w, const struct mgx_ins *ins)
{
    const struct mgx_shape *s = &ins->shape;
    const int64_t count = mgx_shape_elements(s);
    if (count >= VALUES_UP_TO || !mgx_type_is_number(s->type)) {
        mgx_str_put(w->out, "migraphx.generate_argument(");
        put_shape(w->out, s);
        mgx_str_printf(w->out, ", %d)", w->generated++);
        return;
    }
    mgx_str_put(w->out, "migraphx.create_argument(");
    put_shape(w->out, s);
    mgx_str_put(w->out, ", [");
    for (int64_t i = 0; i < count; i++) {
        mgx_str_put(w->out, i ? ", " : "");
        put_value(w->out, s->type, ins->literal->data, mgx_shape_index(s, i));
    }
    mgx_str_put(w->out, "])");
}

static void put_modules(struct printer *w, const struct mgx_ins *ins)
{
    for (int i = 0; i < ins->mod_count; i++) {
        mgx_str_put(w->out, i ? ", " : ", [");
        put_module_name(w, ins->mod[i]);
    }
    if (ins->mod_count)
        mgx_str_putc(w->out, ']');
}

static enum mgx_status put_call(struct printer *w, const struct mgx_ins *ins)
{
    mgx_str_put(w->out, ".add_instruction(");
    TRY(put_operation(w, ins));
    mgx_str_put(w->out, ", ");
    put_list(w, ins);
    put_modules(w, ins);
    mgx_str_put(w->out, ") # ");
    put_shape(w->out, &ins->shape);
    mgx_str_putc(w->out, '\n');
    return MGX_OK;
}

static enum mgx_status put_ins(struct printer *w, const struct mgx_ins *ins)
{
    if (ins->op == &mgx_op_comment)
        return MGX_OK;
    if (ins->op != &mgx_op_return) {
        mgx_format_put_name(w->out, &w->names, ins);
        mgx_str_put(w->out, " = ");
    }
    put_module_name(w, ins->owner);
    if (ins->op == &mgx_op_return) {
        mgx_str_put(w->out, ".add_return(");
        put_list(w, ins);
        mgx_str_put(w->out, ")\n");
    } else if (ins->op == &mgx_op_param) {
        mgx_str_put(w->out, ".add_parameter(");
        mgx_format_put_quoted(w->out, mgx_parameter_name(ins), true);
        mgx_str_put(w->out, ", ");
        put_shape(w->out, &ins->shape);
        mgx_str_put(w->out, ")\n");
    } else if (ins->op == &mgx_op_literal) {
        mgx_str_put(w->out, ".add_literal(");
        put_literal(w, ins);
        mgx_str_put(w->out, ")\n");
    } else
        return put_call(w, ins);
    return MGX_OK;
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
    put_module_name(w, m);
    if (depth == 0)
        mgx_str_put(w->out, " = p.get_main_module()\n");
    else {
        mgx_str_put(w->out, " = p.create_module(");
        mgx_format_put_quoted(w->out, m->name, true);
        mgx_str_put(w->out, ")\n");
    }
    mgx_module_number(m);
    for (const struct mgx_ins *ins = m->last; ins; ins = ins->prev)
        if (mgx_format_goes_first(ins))
            TRY(put_ins(w, ins));
    for (const struct mgx_ins *ins = m->first; ins; ins = ins->next) {
        for (int i = 0; i < ins->mod_count; i++)
            TRY(put_module(w, ins->mod[i], depth + 1));
        if (!mgx_format_goes_first(ins))
            TRY(put_ins(w, ins));
    }
    return MGX_OK;
}

enum mgx_status mgx_format_py(struct mgx_str *out, const struct mgx_program *p,
                              struct mgx_diag *diag)
{
    struct printer w = {.out = out, .diag = diag};
    mgx_format_names_init(&w.names);
    mgx_str_put(out, "p = migraphx.program()\n");
    const enum mgx_status status = put_module(&w, mgx_program_main(p), 0);
    const bool failed = w.names.failed;
    mgx_format_names_fini(&w.names);
    mgx_map_fini(&w.done);
    return status == MGX_OK && failed ? mgx_fail_memory(diag) : status;
}
