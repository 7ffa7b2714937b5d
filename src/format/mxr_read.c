// SPDX-License-Identifier: MIT
// A tree of values into a program; mxr.c reads the tree.
//
// A file is hostile until read: every shape is checked, every result shape comes from the
// operators' own rules and must agree with what the file says, bodies may not contain themselves,
// and what comes out passes the verifier. Literals are views of the mapped file where their bytes
// lie at a multiple of 64; the others are copied.
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "format/mxr.h"
#include "format/mxr_read.h"
#include "ir/link.h"

enum { MAX_DEPTH = 64 };

struct reader {
    struct mgx_program *p;
    const struct mgx_op_set *ops;
    struct mgx_arena *arena;  // of the tree and of names
    struct mgx_storage *file; // NULL: bytes are copied
    struct mgx_carry *carry;  // of a container; NULL: none
    const struct mgx_value *modules;
    struct mgx_map names;  // as in the file -> instruction
    struct mgx_map read;   // module name -> module, when done
    struct mgx_map active; // module name -> itself, while being read
    int depth;
    int64_t unordered; // parameters that say no order
    struct mgx_diag *diag;
};

// --- instructions ---

static enum mgx_status read_module(struct reader *r, const char *name, struct mgx_module **out);

// Names of a list as what `map` holds for them.
static enum mgx_status look_up(struct reader *r, const struct mgx_value *list,
                               const struct mgx_map *map, void ***out, int *count)
{
    *count = 0;
    *out = NULL;
    if (!list)
        return MGX_OK;
    if (list->kind != MGX_VALUE_LIST || list->count > MGX_MXR_MAX_LIST)
        return mgx_mxr_missing("inputs", "a node", r->diag);
    void **v = *out = MGX_NEW_ARRAY(r->arena, void *, list->count);
    if (!v)
        return mgx_fail_memory(r->diag);
    for (const struct mgx_value *c = list->first; c; c = c->next) {
        v[*count] = c->kind == MGX_VALUE_TEXT ? mgx_map_find(map, c->data) : NULL;
        if (!v[(*count)++])
            return mgx_fail(r->diag, MGX_INVALID, "there is no \"%.80s\" before its use",
                            c->kind == MGX_VALUE_TEXT ? (const char *)c->data : "?");
    }
    return MGX_OK;
}

static enum mgx_status read_bodies(struct reader *r, const struct mgx_value *list)
{
    for (const struct mgx_value *c = mgx_value_is(list, MGX_VALUE_LIST) ? list->first : NULL; c;
         c = c->next) {
        struct mgx_module *body;
        if (c->kind != MGX_VALUE_TEXT)
            return mgx_mxr_missing("module_inputs", "a node", r->diag);
        TRY(read_module(r, c->data, &body));
    }
    return MGX_OK;
}

static enum mgx_status sink_string(struct mgx_sink *sink, const void *data, size_t size,
                                   struct mgx_diag *diag)
{
    struct mgx_str *text = sink->user;
    mgx_str_putn(text, data, size);
    return text->failed ? mgx_fail_memory(diag) : MGX_OK;
}

static bool has_field(const struct mgx_op *op, const char *name)
{
    return mgx_field_find(op, name) != NULL;
}

// The reader of attributes reads JSON; what the operator does not know is left out.
static enum mgx_status read_attributes(struct reader *r, const struct mgx_op *op,
                                       const struct mgx_value *v, void **out)
{
    struct mgx_value *known = mgx_value_new(r->arena, MGX_VALUE_MAP);
    struct mgx_str text = {0};
    struct mgx_sink sink = {.write = sink_string, .user = &text};
    for (const struct mgx_value *c = mgx_value_is(v, MGX_VALUE_MAP) ? v->first : NULL; c && known;
         c = c->next)
        if (has_field(op, c->key)) {
            struct mgx_value *copy = MGX_NEW(r->arena, struct mgx_value);
            if (!copy)
                return mgx_fail_memory(r->diag);
            *copy = *c;
            copy->next = NULL;
            mgx_value_put(known, c->key, copy);
        }
    enum mgx_status status =
        known ? mgx_json_write(&sink, known, r->diag) : mgx_fail_memory(r->diag);
    if (status == MGX_OK)
        status = mgx_attr_parse(op, text.text, text.size, &r->p->arena, out, r->diag);
    mgx_str_fini(&text);
    return status;
}

// When a parameter was created, among all that the program ever had. Nodes list parameters in
// reverse order of creation, which holds for those that do not say it.
static enum mgx_status set_order(struct reader *r, struct mgx_ins *ins, const struct mgx_value *v)
{
    static const int64_t most = INT32_MAX;
    const bool says = mgx_value_is(v, MGX_VALUE_INT);
    const int64_t order = says ? v->i : most - r->unordered++;
    if (order < 0 || order > most)
        return mgx_fail(r->diag, MGX_INVALID, "parameter \"%.80s\" is number %lld of a program's",
                        mgx_parameter_name(ins), (long long)order);
    ((struct mgx_param_attr *)ins->attr)->order = order;
    r->p->parameter_count = mgx_max_i64(r->p->parameter_count, order + 1);
    return MGX_OK;
}

static enum mgx_status add_parameter(struct reader *r, struct mgx_module *m,
                                     const struct mgx_value *node, const struct mgx_shape *shape,
                                     struct mgx_ins **out)
{
    const struct mgx_value *attributes, *name;
    TRY(mgx_mxr_need(node, "operator", MGX_VALUE_MAP, "a parameter", &attributes, r->diag));
    TRY(mgx_mxr_need(attributes, "parameter", MGX_VALUE_TEXT, "a parameter", &name, r->diag));
    if (mgx_find_parameter(m, name->data))
        return mgx_fail(r->diag, MGX_INVALID, "two parameters \"%.80s\"", (const char *)name->data);
    *out = mgx_add_parameter(m, name->data, shape);
    if (*out)
        TRY(set_order(r, *out, mgx_value_find(attributes, "order")));
    return mgx_program_status(r->p, r->diag);
}

// A literal in a container's data. Small ones are checked at once, since their values decide about
// shapes and attributes; large ones by who reads them.
static enum mgx_status place_literal(const struct reader *r, const struct mgx_value *v, int64_t at,
                                     struct mgx_tensor *out)
{
    const struct mgx_value *of_shape;
    struct mgx_shape shape;
    TRY(mgx_mxr_need(v, "shape", MGX_VALUE_MAP, "a literal", &of_shape, r->diag));
    TRY(mgx_mxr_read_shape(r->arena, of_shape, 0, &shape, r->diag));
    const size_t bytes = mgx_shape_bytes(&shape), room = r->carry ? r->carry->literal_bytes : 0;
    if (!mgx_type_is_number(shape.type) || !mgx_shape_is_static(&shape) || at < 0 || at % 64 ||
        bytes > room || (uint64_t)at > room - bytes)
        return mgx_fail(r->diag, MGX_INVALID, "a literal beyond the data of its file");
    const uint8_t *data = r->carry->data + at;
    if (bytes <= MGX_CARRY_CHUNK)
        TRY(mgx_carry_check_now(r->carry, data, bytes, r->diag));
    *out = mgx_tensor_borrow(&shape, data);
    out->storage = mgx_storage_retain(r->carry->file);
    return MGX_OK;
}

static enum mgx_status add_literal(struct reader *r, struct mgx_module *m,
                                   const struct mgx_value *node, struct mgx_ins **out)
{
    const struct mgx_value *literal;
    struct mgx_tensor value;
    TRY(mgx_mxr_need(node, "literal", MGX_VALUE_MAP, "a literal", &literal, r->diag));
    const struct mgx_value *at = mgx_value_find(literal, "at");
    if (mgx_value_is(at, MGX_VALUE_INT))
        TRY(place_literal(r, literal, at->i, &value));
    else
        TRY(mgx_mxr_read_tensor(r->arena, r->file, literal, 0, &value, r->diag));
    *out = mgx_add_literal(m, &value);
    mgx_tensor_release(&value);
    return mgx_program_status(r->p, r->diag);
}

static enum mgx_status check_shape(const struct reader *r, struct mgx_ins *ins,
                                   const struct mgx_shape *said)
{
    if (ins->op == &mgx_op_return || mgx_shape_equal(said, &ins->shape))
        return MGX_OK;
    if (mgx_shape_admits(said, &ins->shape)) {
        if (!mgx_shape_copy(&r->p->arena, said, &ins->shape))
            return mgx_fail_memory(r->diag);
        return MGX_OK;
    }
    struct mgx_str text = {0};
    mgx_shape_print(&text, &ins->shape);
    mgx_str_put(&text, "}, the file says {");
    mgx_shape_print(&text, said);
    mgx_fail(r->diag, MGX_INVALID, "%s: the result is {%s}", ins->op->name, mgx_str_text(&text));
    mgx_str_fini(&text);
    return MGX_INVALID;
}

static enum mgx_status add_operator(struct reader *r, struct mgx_module *m, const char *name,
                                    const struct mgx_value *node, const struct mgx_shape *said,
                                    struct mgx_ins **out)
{
    void **in, **mod, *attr = NULL;
    int in_count, mod_count;
    const struct mgx_op *op = r->ops->find(r->ops, name, strlen(name));
    if (!op || op == &mgx_op_param || op == &mgx_op_literal)
        return mgx_fail(r->diag, MGX_NOT_FOUND, "Operator not found: %.80s", name);
    TRY(look_up(r, mgx_value_find(node, "inputs"), &r->names, &in, &in_count));
    if (op == &mgx_op_return) {
        *out = mgx_add_return(m, (struct mgx_ins *const *)in, in_count);
        return mgx_program_status(r->p, r->diag);
    }
    TRY(read_bodies(r, mgx_value_find(node, "module_inputs")));
    TRY(look_up(r, mgx_value_find(node, "module_inputs"), &r->read, &mod, &mod_count));
    TRY(read_attributes(r, op, mgx_value_find(node, "operator"), &attr));
    *out = mgx_insert(m, NULL, op, attr, (struct mgx_ins *const *)in, in_count,
                      (struct mgx_module *const *)mod, mod_count);
    TRY(mgx_program_status(r->p, r->diag));
    return check_shape(r, *out, said);
}

static void add_origins(struct mgx_ins *ins, const struct mgx_value *list)
{
    for (const struct mgx_value *c = mgx_value_is(list, MGX_VALUE_LIST) ? list->first : NULL; c;
         c = c->next)
        if (c->kind == MGX_VALUE_TEXT)
            mgx_add_origin(ins, c->data);
}

static enum mgx_status read_node(struct reader *r, struct mgx_module *m,
                                 const struct mgx_value *node)
{
    const struct mgx_value *name, *output, *of_shape;
    struct mgx_shape shape;
    struct mgx_ins *ins = NULL;
    TRY(mgx_mxr_need(node, "name", MGX_VALUE_TEXT, "a node", &name, r->diag));
    TRY(mgx_mxr_need(node, "output", MGX_VALUE_TEXT, "a node", &output, r->diag));
    TRY(mgx_mxr_need(node, "shape", MGX_VALUE_MAP, "a node", &of_shape, r->diag));
    TRY(mgx_mxr_read_shape(r->arena, of_shape, 0, &shape, r->diag));
    if (mgx_module_return(m))
        return mgx_fail(r->diag, MGX_INVALID, "an instruction follows @return");
    if (strcmp(name->data, mgx_op_param.name) == 0)
        TRY(add_parameter(r, m, node, &shape, &ins));
    else if (strcmp(name->data, mgx_op_literal.name) == 0)
        TRY(add_literal(r, m, node, &ins));
    else
        TRY(add_operator(r, m, name->data, node, &shape, &ins));
    if (ins->op == &mgx_op_param || ins->op == &mgx_op_literal) { // they were put at the front
        mgx_unlink_ins(ins);
        mgx_link_ins(m, ins, NULL);
    }
    add_origins(ins, mgx_value_find(node, "debug_symbols"));
    if (mgx_map_find(&r->names, output->data))
        return mgx_fail(r->diag, MGX_INVALID, "two instructions \"%.80s\"",
                        (const char *)output->data);
    return mgx_map_put(&r->names, output->data, ins) ? MGX_OK : mgx_fail_memory(r->diag);
}

static enum mgx_status read_nodes(struct reader *r, struct mgx_module *m, const struct mgx_value *v)
{
    const struct mgx_value *nodes;
    TRY(mgx_mxr_need(v, "nodes", MGX_VALUE_LIST, "a module", &nodes, r->diag));
    m->bypass = mgx_value_find(v, "bypass") != NULL;
    for (const struct mgx_value *node = nodes->first; node; node = node->next) {
        const enum mgx_status status = read_node(r, m, node);
        if (status != MGX_OK) {
            const struct mgx_value *output = mgx_value_find(node, "output");
            if (mgx_value_is(output, MGX_VALUE_TEXT))
                mgx_where(r->diag, "instruction %.80s", (const char *)output->data);
            return status;
        }
    }
    return MGX_OK;
}

static enum mgx_status read_module(struct reader *r, const char *name, struct mgx_module **out)
{
    *out = mgx_map_find(&r->read, name);
    if (*out)
        return MGX_OK;
    const struct mgx_value *v = mgx_value_find(r->modules, name);
    if (!v)
        return mgx_fail(r->diag, MGX_INVALID, "there is no module \"%.80s\"", name);
    if (mgx_map_find(&r->active, name) || r->depth == MAX_DEPTH)
        return mgx_fail(r->diag, MGX_INVALID, "module \"%.80s\" contains itself, or too many",
                        name);
    struct mgx_module *m = r->depth ? mgx_program_add_module(r->p, name) : mgx_program_main(r->p);
    if (!m || !mgx_map_put(&r->active, name, m))
        return mgx_fail_memory(r->diag);
    r->depth++;
    TRY(read_nodes(r, m, v));
    r->depth--;
    *out = m;
    return mgx_map_put(&r->read, name, m) ? MGX_OK : mgx_fail_memory(r->diag);
}

// --- programs ---

static enum mgx_status check_version(const struct mgx_value *root, struct mgx_diag *diag)
{
    const struct mgx_value *version;
    TRY(mgx_mxr_need(root, "version", MGX_VALUE_INT, "a program", &version, diag));
    if (version->i >= MGX_MXR_OLDEST_VERSION && version->i <= MGX_MXR_VERSION)
        return MGX_OK;
    return mgx_fail(diag, MGX_UNSUPPORTED,
                    "Program version mismatch. MXR file was created using program file version: "
                    "%lld, readable are %d to %d",
                    (long long)version->i, MGX_MXR_OLDEST_VERSION, MGX_MXR_VERSION);
}

static enum mgx_status read_output_names(struct reader *r, const struct mgx_value *list)
{
    if (!mgx_value_is(list, MGX_VALUE_LIST) || list->count > MGX_MXR_MAX_LIST)
        return MGX_OK;
    const char **v = MGX_NEW_ARRAY(&r->p->arena, const char *, list->count);
    int count = 0;
    if (!v)
        return mgx_fail_memory(r->diag);
    for (const struct mgx_value *c = list->first; c; c = c->next)
        if (c->kind == MGX_VALUE_TEXT && !(v[count++] = mgx_arena_strdup(&r->p->arena, c->data)))
            return mgx_fail_memory(r->diag);
    r->p->output_names = (struct mgx_strings){v, count};
    return MGX_OK;
}

static enum mgx_status read_target(struct mgx_program *p, const struct mgx_value *root,
                                   struct mgx_diag *diag)
{
    const struct mgx_value *contexts = mgx_value_find(root, "contexts"), *name;
    const struct mgx_value *targets = mgx_value_find(root, "targets");
    if (p->carry || !contexts || !contexts->count)
        return MGX_OK; // said by the container, or not compiled
    if (!mgx_value_is(targets, MGX_VALUE_LIST) || targets->count != 1)
        return mgx_fail(diag, MGX_UNSUPPORTED, "a program for %zu targets at once",
                        targets ? targets->count : (size_t)0);
    TRY(mgx_mxr_need(targets->first, "name", MGX_VALUE_TEXT, "a target", &name, diag));
    if (name->size >= MGX_CARRY_NAME)
        return mgx_mxr_missing("name", "a target", diag);
    if (!(p->carry = mgx_carry_create()))
        return mgx_fail_memory(diag);
    p->carry->options.fast_math = true; // such files do not say
    memcpy(p->carry->target, name->data, name->size + 1);
    return MGX_OK;
}

static enum mgx_status read_program(struct reader *r, const struct mgx_value *root)
{
    struct mgx_module *main;
    TRY(check_version(root, r->diag));
    TRY(read_target(r->p, root, r->diag));
    TRY(mgx_mxr_need(root, "modules", MGX_VALUE_MAP, "a program", &r->modules, r->diag));
    TRY(read_module(r, "main", &main));
    TRY(read_output_names(r, mgx_value_find(root, "output_names")));
    r->p->print_origins = mgx_value_find(root, "debug_symbols") != NULL;
    return mgx_program_verify(r->p, r->diag);
}

enum mgx_status mgx_mxr_build(struct mgx_program **out, const struct mgx_op_set *ops,
                              struct mgx_arena *arena, struct mgx_storage *file,
                              struct mgx_carry *carry, const struct mgx_value *root,
                              struct mgx_diag *diag)
{
    struct reader r = {.ops = ops, .arena = arena, .file = file, .carry = carry, .diag = diag};
    TRY(mgx_program_create(&r.p, ops, diag));
    r.p->carry = carry;
    const enum mgx_status status = read_program(&r, root);
    mgx_map_fini(&r.names);
    mgx_map_fini(&r.read);
    mgx_map_fini(&r.active);
    if (status == MGX_OK) {
        *out = r.p;
    } else {
        if (carry) // the caller's
            r.p->carry = NULL;
        mgx_program_destroy(r.p);
    }
    return status;
}
