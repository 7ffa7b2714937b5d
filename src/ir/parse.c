// SPDX-License-Identifier: MIT
// The text form back into a program; docs/ir.md is the grammar.
//
// First the text is cut at its lines "module: ...". A module is read when the first instruction
// that uses it is reached, because the shape rule of that instruction looks into its bodies; so the
// order of modules in the text does not matter, and what a body may capture is exactly what the
// modules being read have defined so far. Names are compared as they are written: "main:@2", "@2"
// and "input" are all just names. Shapes come from the rules; the shapes of the text must agree.
//
// Holds: what is returned passes mgx_program_verify. Nesting is bounded by MAX_DEPTH. Cost: linear
// in the text, plus what the shape rules cost.
#include <assert.h>
#include <string.h>

#include "ir/link.h"
#include "ir/scan.h"

enum { MAX_DEPTH = 64, MAX_SYMBOLS = 256 };

// The text of one module.
struct section {
    const char *name, *at, *end;
    struct mgx_module *module;
    struct mgx_map names; // as written on the left -> instruction
    bool active, done;
};

struct parser {
    struct mgx_scan s;
    struct mgx_program *p;
    const char *begin, *end; // of the whole text
    struct mgx_scan_array sections;
    struct mgx_map by_name;           // module name -> index + 1 of its section
    struct section *chain[MAX_DEPTH]; // modules being read, outermost first
    int depth;
};

struct span {
    const char *text;
    size_t size;
};

// One instruction as it stands in the text.
struct statement {
    const char *start;
    struct span name;
    const struct mgx_op *op;
    void *attr;
    struct mgx_scan_array in;  // struct mgx_ins *
    struct mgx_scan_array mod; // struct mgx_module *
    struct mgx_shape shape;
    bool has_shape;
    const char *values; // of a literal
};

static struct section *section_at(const struct parser *ps, int i)
{
    return &((struct section *)ps->sections.v)[i];
}

// --- names ---

// Bytes up to one of `stops`, quoted parts taken whole, blanks at the end left out.
static enum mgx_status scan_name(struct mgx_scan *s, const char *stops, struct span *out)
{
    mgx_scan_space(s);
    const char *c = s->at;
    bool quoted = false;
    for (; c < s->end && *c && (quoted || !strchr(stops, *c)); c++) {
        if (*c == '"')
            quoted = !quoted;
        else if (quoted && *c == '\\' && c + 1 < s->end)
            c++;
    }
    size_t size = (size_t)(c - s->at);
    while (size && strchr(" \t\r\n", s->at[size - 1]))
        size--;
    if (!size)
        return mgx_scan_expected(s, "a name");
    if (memchr(s->at, '\n', size)) {
        s->at = memchr(s->at, '\n', size);
        return mgx_scan_expected(s, stops[0] == '=' ? "'='" : "',' or ')'");
    }
    *out = (struct span){s->at, size};
    s->at = c;
    return MGX_OK;
}

static enum mgx_status define(struct parser *ps, struct span name, struct mgx_ins *ins)
{
    struct section *now = ps->chain[ps->depth - 1];
    if (mgx_map_find_entry(&now->names, name.text, name.size))
        return mgx_scan_fail(&ps->s, name.text, MGX_INVALID, "'%.*s' is defined twice",
                             (int)(name.size < 200 ? name.size : 200), name.text);
    if (!mgx_map_putn(&now->names, name.text, name.size, ins))
        return mgx_fail_memory(ps->s.diag);
    return MGX_OK;
}

static enum mgx_status resolve(struct parser *ps, struct mgx_ins **out)
{
    struct span name;
    TRY(scan_name(&ps->s, ",)", &name));
    for (int i = ps->depth - 1; i >= 0; i--) {
        *out = mgx_map_findn(&ps->chain[i]->names, name.text, name.size);
        if (*out)
            return MGX_OK;
    }
    return mgx_scan_fail(&ps->s, name.text, MGX_INVALID, "'%.*s' is not defined before it is used",
                         (int)(name.size < 200 ? name.size : 200), name.text);
}

// --- parts of an instruction ---

// "->"; a wrapped line may have parted the two.
static bool at_arrow(const struct mgx_scan *s, const char *c, const char **after)
{
    if (c == s->end || *c != '-')
        return false;
    for (c++; c < s->end && strchr(" \t\r\n", *c) && *c;)
        c++;
    *after = c + 1;
    return c < s->end && *c == '>';
}

static bool accept_text(struct mgx_scan *s, const char *text)
{
    mgx_scan_space(s);
    const size_t size = strlen(text);
    if ((size_t)(s->end - s->at) < size || memcmp(s->at, text, size) != 0)
        return false;
    s->at += size;
    return true;
}

static bool accept_arrow(struct mgx_scan *s)
{
    const char *after;
    mgx_scan_space(s);
    if (!at_arrow(s, s->at, &after))
        return false;
    s->at = after;
    return true;
}

static enum mgx_status scan_result(struct mgx_scan *s, struct statement *st)
{
    if (!accept_arrow(s))
        return mgx_scan_expected(s, "'->'");
    TRY(mgx_scan_shape(s, &st->shape));
    st->has_shape = true;
    return MGX_OK;
}

// "@param:" has been read; the bare name ends before the arrow.
static enum mgx_status scan_parameter(struct mgx_scan *s, const char **name)
{
    if (mgx_scan_peek(s) == '"')
        return mgx_scan_string(s, "", name);
    struct mgx_scan part = *s;
    const char *after;
    for (part.end = s->at; part.end < s->end && !at_arrow(s, part.end, &after);)
        part.end++;
    TRY(mgx_scan_string(&part, "", name));
    s->at = part.at;
    return **name ? MGX_OK : mgx_scan_expected(s, "the name of the parameter");
}

// Values are read once the shape that follows them is known.
static enum mgx_status skip_values(struct mgx_scan *s, struct statement *st)
{
    TRY(mgx_scan_expect(s, '{'));
    st->values = s->at;
    bool quoted = false;
    for (; s->at < s->end && (quoted || *s->at != '}'); s->at++) {
        if (*s->at == '"')
            quoted = !quoted;
        else if (quoted && *s->at == '\\' && s->at + 1 < s->end)
            s->at++;
    }
    return mgx_scan_expect(s, '}');
}

// The rest of the line.
static struct span take_line(struct mgx_scan *s)
{
    while (s->at < s->end && *s->at == ' ')
        s->at++;
    const char *start = s->at;
    while (s->at < s->end && *s->at != '\n')
        s->at++;
    size_t size = (size_t)(s->at - start);
    while (size && strchr(" \t\r", start[size - 1]))
        size--;
    return (struct span){start, size};
}

static enum mgx_status scan_operator(struct parser *ps, struct statement *st)
{
    struct mgx_scan *s = &ps->s;
    mgx_scan_space(s);
    const char *start = s->at;
    while (s->at < s->end && *s->at && !strchr(" \t\r\n[](){},=-", *s->at))
        s->at++;
    const size_t size = (size_t)(s->at - start);
    if (!size)
        return mgx_scan_expected(s, "an operator");
    st->op = ps->p->ops->find(ps->p->ops, start, size);
    if (!st->op || (st->op->flags & MGX_OP_BUILTIN && st->op != &mgx_op_return))
        return mgx_scan_fail(s, start, MGX_NOT_FOUND, "Operator not found: %.*s",
                             (int)(size < 200 ? size : 200), start);
    if (!mgx_scan_accept(s, '['))
        return mgx_attr_make(st->op, NULL, s->arena, &st->attr, s->diag);
    return mgx_scan_attr(s, st->op, ']', &st->attr);
}

static enum mgx_status scan_inputs(struct parser *ps, struct statement *st)
{
    struct mgx_scan *s = &ps->s;
    if (!mgx_scan_accept(s, '('))
        return MGX_OK;
    while (!mgx_scan_accept(s, ')')) {
        struct mgx_ins *input;
        TRY(resolve(ps, &input));
        struct mgx_ins **entry = mgx_scan_entry(s, &st->in);
        if (!entry)
            return MGX_NO_MEMORY;
        *entry = input;
        if (!mgx_scan_accept(s, ',') && mgx_scan_peek(s) != ')')
            return mgx_scan_expected(s, "',' or ')'");
    }
    return MGX_OK;
}

static enum mgx_status read_section(struct parser *ps, struct section *section);

static enum mgx_status scan_bodies(struct parser *ps, struct statement *st)
{
    struct mgx_scan *s = &ps->s;
    TRY(mgx_scan_expect(s, '['));
    while (!mgx_scan_accept(s, ']')) {
        const char *name;
        mgx_scan_space(s);
        const char *start = s->at;
        TRY(mgx_scan_string(s, ",]", &name));
        const size_t index = (size_t)(uintptr_t)mgx_map_find(&ps->by_name, name);
        if (!index)
            return mgx_scan_fail(s, start, MGX_INVALID, "there is no module \"%.200s\"", name);
        struct section *body = section_at(ps, (int)index - 1);
        TRY(read_section(ps, body));
        struct mgx_module **entry = mgx_scan_entry(s, &st->mod);
        if (!entry)
            return MGX_NO_MEMORY;
        *entry = body->module;
        if (!mgx_scan_accept(s, ',') && mgx_scan_peek(s) != ']')
            return mgx_scan_expected(s, "',' or ']'");
    }
    return MGX_OK;
}

static enum mgx_status scan_target(struct mgx_scan *s)
{
    int64_t target;
    if (!mgx_scan_accept_word(s, "target_id"))
        return mgx_scan_expected(s, "'target_id'");
    TRY(mgx_scan_expect(s, '='));
    return mgx_scan_int(s, &target);
}

// ", [body, body]", " -> shape", ", target_id=0": all optional here.
static enum mgx_status scan_tail(struct parser *ps, struct statement *st)
{
    struct mgx_scan *s = &ps->s;
    while (mgx_scan_accept(s, ',')) {
        if (mgx_scan_peek(s) == '[')
            TRY(scan_bodies(ps, st));
        else
            TRY(scan_target(s));
    }
    if (mgx_scan_peek(s) == '-')
        TRY(scan_result(s, st));
    return mgx_scan_accept(s, ',') ? scan_target(s) : MGX_OK;
}

// --- building ---

static void move_to_end(struct mgx_ins *ins)
{
    struct mgx_module *m = ins->owner;
    mgx_unlink_ins(ins);
    mgx_link_ins(m, ins, NULL);
}

static enum mgx_status build_parameter(struct parser *ps, struct statement *st,
                                       struct mgx_module *m, struct mgx_ins **out)
{
    const char *name;
    TRY(scan_parameter(&ps->s, &name));
    TRY(scan_result(&ps->s, st));
    *out = mgx_add_parameter(m, name, &st->shape);
    return mgx_program_status(ps->p, NULL);
}

static enum mgx_status build_literal(struct parser *ps, struct statement *st, struct mgx_module *m,
                                     struct mgx_ins **out)
{
    struct mgx_scan *s = &ps->s;
    TRY(skip_values(s, st));
    TRY(scan_result(s, st));
    const char *after = s->at;
    struct mgx_tensor value;
    s->at = st->values;
    TRY(mgx_scan_literal(s, &st->shape, &value));
    s->at = after;
    *out = mgx_add_literal(m, &value);
    mgx_tensor_release(&value);
    return mgx_program_status(ps->p, NULL);
}

static enum mgx_status build_comment(struct parser *ps, struct mgx_module *m, struct mgx_ins **out)
{
    struct mgx_scan *s = &ps->s;
    const char *text;
    struct span line = take_line(s);
    struct mgx_scan part = *s;
    part.at = line.text;
    if (line.size && *line.text == '"') {
        TRY(mgx_scan_string(&part, "", &text));
    } else if (!(text = mgx_arena_strndup(s->arena, line.text, line.size)))
        return mgx_fail_memory(s->diag);
    *out = mgx_emit(m, &mgx_op_comment, MGX_ATTRS(mgx_text("text", text)),
                    (struct mgx_ins_list){NULL, 0});
    return mgx_program_status(ps->p, NULL);
}

static bool same_text(const struct mgx_shape *a, const struct mgx_shape *b, struct mgx_str *x,
                      struct mgx_str *y)
{
    mgx_shape_print(x, a);
    mgx_shape_print(y, b);
    return !x->failed && !y->failed && strcmp(x->text, y->text) == 0;
}

static enum mgx_status check_result(struct parser *ps, const struct statement *st,
                                    struct mgx_ins *ins)
{
    if (!st->has_shape || st->op == &mgx_op_return)
        return MGX_OK;
    if (mgx_shape_admits(&st->shape, &ins->shape)) {
        ins->shape = st->shape; // may be wider on purpose, or name its ranges
        return MGX_OK;
    }
    // What is left is a failure, or one element of rank 1 that is written as a scalar.
    struct mgx_str given = {0}, found = {0};
    enum mgx_status status = MGX_OK;
    if (!same_text(&st->shape, &ins->shape, &given, &found)) {
        if (given.failed || found.failed)
            status = mgx_fail_memory(ps->s.diag);
        else
            status = mgx_scan_fail(&ps->s, st->start, MGX_INVALID,
                                   "the result of %s is %.180s, not %.180s", st->op->name,
                                   found.text, given.text);
    }
    mgx_str_fini(&given);
    mgx_str_fini(&found);
    return status;
}

static enum mgx_status build_operator(struct parser *ps, struct statement *st, struct mgx_module *m,
                                      struct mgx_ins **out)
{
    TRY(scan_operator(ps, st));
    TRY(scan_inputs(ps, st));
    TRY(scan_tail(ps, st));
    if (st->op == &mgx_op_return) {
        *out = mgx_add_return(m, st->in.v, (int)st->in.count);
        return mgx_program_status(ps->p, NULL);
    }
    *out = mgx_insert(m, NULL, st->op, st->attr, st->in.v, (int)st->in.count, st->mod.v,
                      (int)st->mod.count);
    if (!*out && ps->p->diag.status != MGX_OK)
        mgx_scan_where(&ps->s, st->start);
    TRY(mgx_program_status(ps->p, NULL));
    return check_result(ps, st, *out);
}

// " # conv1 (Conv), relu1 (Relu)" to the end of the line.
static enum mgx_status scan_symbols(struct parser *ps, struct mgx_ins *ins)
{
    struct mgx_scan *s = &ps->s;
    if (!mgx_scan_accept(s, '#'))
        return MGX_OK;
    ps->p->print_origins = true;
    struct mgx_scan line = *s;
    line.at = take_line(s).text;
    line.end = s->at;
    for (int count = 0; mgx_scan_peek(&line); count++) {
        const char *symbol;
        if (count == MAX_SYMBOLS)
            return mgx_scan_fail(&line, line.at, MGX_LIMIT, "more than %d symbols", MAX_SYMBOLS);
        TRY(mgx_scan_string(&line, ",", &symbol));
        mgx_add_origin(ins, symbol);
        if (!mgx_scan_accept(&line, ','))
            break;
    }
    return mgx_program_status(ps->p, NULL);
}

static enum mgx_status read_statement(struct parser *ps, struct mgx_module *m)
{
    struct mgx_scan *s = &ps->s;
    struct statement st = {.start = s->at, .in.size = sizeof(void *), .mod.size = sizeof(void *)};
    TRY(scan_name(s, "=", &st.name));
    TRY(mgx_scan_expect(s, '='));
    if (mgx_module_return(m))
        return mgx_scan_fail(s, st.start, MGX_INVALID, "an instruction follows @return");
    struct mgx_ins *ins = NULL;
    if (accept_text(s, "@param:"))
        TRY(build_parameter(ps, &st, m, &ins));
    else if (accept_text(s, "@literal"))
        TRY(build_literal(ps, &st, m, &ins));
    else if (accept_text(s, "@comment:"))
        TRY(build_comment(ps, m, &ins));
    else
        TRY(build_operator(ps, &st, m, &ins));
    if (ins->op == &mgx_op_param || ins->op == &mgx_op_literal) {
        move_to_end(ins);
        if (mgx_scan_accept(s, ','))
            TRY(scan_target(s));
    }
    if (ins->op != &mgx_op_comment) // whose text goes to the end of the line
        TRY(scan_symbols(ps, ins));
    return define(ps, st.name, ins);
}

// --- modules ---

static struct mgx_ins *next_parameter(struct mgx_ins *ins)
{
    while (ins && ins->op != &mgx_op_param)
        ins = ins->next;
    return ins;
}

static struct mgx_ins *previous_parameter(struct mgx_ins *ins)
{
    while (ins && ins->op != &mgx_op_param)
        ins = ins->prev;
    return ins;
}

// Parameters print in reverse order of creation, so they are read in reverse.
static void reverse_parameters(struct mgx_module *m)
{
    int count = 0;
    for (struct mgx_ins *ins = next_parameter(m->first); ins; ins = next_parameter(ins->next))
        count++;
    struct mgx_ins *a = m->first, *b = m->last;
    for (int i = 0; i < count / 2; i++) {
        a = next_parameter(a);
        b = previous_parameter(b);
        struct mgx_param_attr *x = a->attr, *y = b->attr;
        const int64_t order = x->order;
        x->order = y->order;
        y->order = order;
        a = a->next;
        b = b->prev;
    }
}

static enum mgx_status read_section(struct parser *ps, struct section *section)
{
    struct mgx_scan *s = &ps->s;
    if (section->done)
        return MGX_OK;
    if (section->active)
        return mgx_scan_fail(s, s->at, MGX_INVALID, "module \"%.200s\" contains itself",
                             section->name);
    if (ps->depth == MAX_DEPTH)
        return mgx_scan_fail(s, s->at, MGX_LIMIT, "modules are nested deeper than %d", MAX_DEPTH);
    const char *at = s->at, *end = s->end;
    ps->chain[ps->depth++] = section;
    section->active = true;
    s->at = section->at;
    s->end = section->end;
    while (mgx_scan_peek(s) || s->at < s->end)
        TRY(read_statement(ps, section->module));
    reverse_parameters(section->module);
    section->active = false;
    section->done = true;
    ps->depth--;
    s->at = at;
    s->end = end;
    return MGX_OK;
}

static const char *next_line(const char *c, const char *end)
{
    const char *newline = c < end ? memchr(c, '\n', (size_t)(end - c)) : NULL;
    return newline ? newline + 1 : end;
}

// "module: " and a quote: a parameter may be called "module:x".
static bool is_header(const char *line, const char *end)
{
    static const char word[] = "module:";
    const size_t size = sizeof word - 1;
    if ((size_t)(end - line) <= size || memcmp(line, word, size) != 0)
        return false;
    const char *c = line + size;
    while (c < end && (*c == ' ' || *c == '\t'))
        c++;
    return c > line + size && c < end && *c == '"';
}

// The section from `line` to the next header; returns where that is.
static enum mgx_status add_section(struct parser *ps, const char **line)
{
    struct section *section = mgx_scan_entry(&ps->s, &ps->sections);
    if (!section)
        return MGX_NO_MEMORY;
    section->name = "main";
    section->at = *line;
    const char *end = *line;
    if (is_header(*line, ps->end)) {
        ps->s.at = *line + strlen("module:");
        ps->s.end = next_line(*line, ps->end);
        TRY(mgx_scan_string(&ps->s, "\n", &section->name));
        section->at = end = ps->s.end;
    }
    while (end < ps->end && !is_header(end, ps->end))
        end = next_line(end, ps->end);
    section->end = end;
    if (mgx_map_find(&ps->by_name, section->name))
        return mgx_scan_fail(&ps->s, *line, MGX_INVALID, "module \"%.200s\" is defined twice",
                             section->name);
    if (!mgx_map_put(&ps->by_name, section->name, (void *)(uintptr_t)ps->sections.count))
        return mgx_fail_memory(ps->s.diag);
    *line = end;
    return MGX_OK;
}

static enum mgx_status cut(struct parser *ps)
{
    const char *line = ps->begin;
    while (line < ps->end && strchr(" \t\r\n", *line) && *line)
        line++;
    do
        TRY(add_section(ps, &line));
    while (line < ps->end);
    if (strcmp(section_at(ps, 0)->name, "main") != 0)
        return mgx_scan_fail(&ps->s, ps->begin, MGX_INVALID,
                             "the first module is \"%.200s\", not \"main\"",
                             section_at(ps, 0)->name);
    for (int i = 0; i < ps->sections.count; i++) {
        struct section *section = section_at(ps, i);
        section->module =
            i ? mgx_program_add_module(ps->p, section->name) : mgx_program_main(ps->p);
        if (!section->module)
            return MGX_NO_MEMORY;
    }
    return MGX_OK;
}

static enum mgx_status read_all(struct parser *ps)
{
    TRY(cut(ps));
    struct section *main = section_at(ps, 0);
    TRY(read_section(ps, main));
    for (int i = 1; i < ps->sections.count; i++) { // unused modules see what main has defined
        ps->chain[0] = main;
        ps->depth = 1;
        TRY(read_section(ps, section_at(ps, i)));
    }
    return MGX_OK;
}

enum mgx_status mgx_program_parse(struct mgx_program **out, const struct mgx_op_set *ops,
                                  const char *text, size_t size, struct mgx_diag *diag)
{
    *out = NULL;
    struct mgx_program *p;
    TRY(mgx_program_create(&p, ops, diag));
    struct parser ps = {.p = p, .begin = text, .end = text + size};
    ps.sections.size = sizeof(struct section);
    ps.s = (struct mgx_scan){
        .text = text, .at = text, .end = ps.end, .arena = &p->arena, .diag = &p->diag};
    enum mgx_status status = read_all(&ps);
    for (int i = 0; i < ps.sections.count; i++)
        mgx_map_fini(&section_at(&ps, i)->names);
    mgx_map_fini(&ps.by_name);
    if (status == MGX_OK)
        status = mgx_program_verify(p, &p->diag);
    if (status != MGX_OK) {
        mgx_fail(&p->diag, status, "%s", mgx_status_text(status)); // if nobody said more
        status = mgx_program_status(p, diag);
        mgx_program_destroy(p);
        return status;
    }
    *out = p;
    return MGX_OK;
}
