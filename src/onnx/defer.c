// SPDX-License-Identifier: MIT
// onnx::deferred: a node that is imported when it runs.
//
// The node becomes a model of its own: its bytes, the opsets in force, its inputs (with what its
// bodies capture) as graph inputs. That model travels as text in an attribute, so it prints,
// parses, clones and saves like any other. At run time it is imported with the actual inputs as
// literals, every size and value known, and evaluated by the reference; nothing is kept afterwards.
// A node inside a function is wrapped in a function again, so that references to attributes stay
// what they were.
//
// Cost: an import of one node per evaluation. The result's type is known beforehand, its shape is
// when all inputs are static and the node needs no values.
#include <stdlib.h>
#include <string.h>

#include "onnx/graph.h"

struct deferred {
    const char *op_type;
    const char *node;
    int64_t opset;
    struct mgx_ints types; // of the results, in enum mgx_type; -1 - type: a sequence of that
    int64_t max_loop, limit_loop;
    const char *model; // base64
};

static const struct mgx_field fields[] = {
    MGX_TEXT(struct deferred, op_type), MGX_TEXT(struct deferred, node),
    MGX_INT(struct deferred, opset),    MGX_INTS(struct deferred, types),
    MGX_INT(struct deferred, max_loop), MGX_INT(struct deferred, limit_loop),
    MGX_TEXT(struct deferred, model),   {0}};

enum { MODEL_BYTES = 16 << 20 };

// --- base64 ---

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static char *encode(struct mgx_arena *arena, const uint8_t *data, size_t size)
{
    char *text = mgx_arena_alloc(arena, (size + 2) / 3 * 4 + 1);
    char *p = text;
    for (size_t i = 0; text && i < size; i += 3) {
        const uint32_t a = data[i], b = i + 1 < size ? data[i + 1] : 0,
                       c = i + 2 < size ? data[i + 2] : 0, bits = a << 16 | b << 8 | c;
        const size_t used = size - i < 3 ? size - i + 1 : 4; // no padding: the length says it
        for (size_t k = 0; k < used; k++)
            *p++ = digits[bits >> (18 - 6 * k) & 63];
    }
    return text;
}

static int digit(char c)
{
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

// False on text that is not base64 or when out of memory.
static bool decode(struct mgx_arena *arena, const char *text, uint8_t **data, size_t *size)
{
    const size_t length = strlen(text);
    uint8_t *out = mgx_arena_alloc(arena, length / 4 * 3 + 3);
    uint32_t bits = 0;
    size_t count = 0;
    for (size_t i = 0; out && i < length; i++) {
        const int value = digit(text[i]);
        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        if (i % 4)
            out[count++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
    }
    *data = out;
    *size = count;
    return out != NULL;
}

// --- writing the model ---

static void put_varint(struct mgx_str *s, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        mgx_str_putc(s, (char)(value | 0x80));
    mgx_str_putc(s, (char)value);
}

static void put_int(struct mgx_str *s, uint32_t field, int64_t value)
{
    put_varint(s, field << 3);
    put_varint(s, (uint64_t)value);
}

static void put_bytes(struct mgx_str *s, uint32_t field, const void *data, size_t size)
{
    put_varint(s, field << 3 | MGX_WIRE_BYTES);
    put_varint(s, size);
    mgx_str_putn(s, data, size);
}

static void put_slice(struct mgx_str *s, uint32_t field, struct mgx_slice text)
{
    put_bytes(s, field, text.text, text.size);
}

static void put_text(struct mgx_str *s, uint32_t field, const char *text)
{
    put_bytes(s, field, text, strlen(text));
}

// A finished message as a field of another; empties it.
static void put_message(struct mgx_str *s, uint32_t field, struct mgx_str *message)
{
    put_bytes(s, field, mgx_str_text(message), message->size);
    s->failed |= message->failed;
    mgx_str_fini(message);
}

static void put_opsets(struct mgx_str *s, uint32_t field, struct mgx_onnx_opsets opsets)
{
    for (int i = 0; i < opsets.count; i++) {
        struct mgx_str opset = {0};
        put_slice(&opset, 1, opsets.v[i].domain);
        put_int(&opset, 2, opsets.v[i].version);
        put_message(s, field, &opset);
    }
}

// What the deferred instruction reads and makes.
struct signature {
    struct mgx_slice *in; // names, each once; captured ones last
    struct mgx_ins **ins; // NULL: an absent argument of the enclosing function
    int in_count;
    struct mgx_slice *out; // results that have a name
    int *out_index;        // which output of the node each one is
    int out_count;
    bool wrap; // needs a function around the node
};

static const char wrapper_name[] = "node", wrapper_domain[] = "mgx.deferred";

// FunctionProto around the node.
static void put_wrapper(struct mgx_str *model, const struct mgx_onnx_node *n,
                        const struct signature *sig)
{
    const struct mgx_onnx_node_proto *node = n->wire;
    struct mgx_str f = {0};
    put_text(&f, 1, wrapper_name);
    put_text(&f, 10, wrapper_domain);
    for (int i = 0; i < sig->in_count; i++)
        put_slice(&f, 4, sig->in[i]);
    for (int i = 0; i < sig->out_count; i++)
        put_slice(&f, 5, sig->out[i]);
    put_bytes(&f, 7, node->body.p, (size_t)(node->body.end - node->body.p));
    put_opsets(&f, 9, n->graph->opsets);
    put_message(model, 25, &f);
}

// NodeProto that calls it, with what the references stand for.
static void put_call(struct mgx_str *graph, const struct mgx_onnx_node *n,
                     const struct signature *sig)
{
    const struct mgx_onnx_call *call = n->graph->call;
    struct mgx_str node = {0};
    for (int i = 0; i < sig->in_count; i++)
        put_slice(&node, 1, sig->ins[i] ? sig->in[i] : (struct mgx_slice){"", 0});
    for (int i = 0; i < sig->out_count; i++)
        put_slice(&node, 2, sig->out[i]);
    put_text(&node, 4, wrapper_name);
    put_text(&node, 7, wrapper_domain);
    for (int i = 0; call && i < call->attribute_count; i++) {
        const struct mgx_onnx_attribute *a = &call->attributes[i];
        struct mgx_str attribute = {0};
        mgx_str_putn(&attribute, (const char *)a->body.p, (size_t)(a->body.end - a->body.p));
        put_slice(&attribute, 1, a->name); // the last name counts
        put_message(&node, 5, &attribute);
    }
    put_message(graph, 1, &node);
}

static void put_graph(struct mgx_str *model, const struct mgx_onnx_node *n,
                      const struct signature *sig)
{
    const struct mgx_onnx_node_proto *node = n->wire;
    struct mgx_str graph = {0};
    if (sig->wrap)
        put_call(&graph, n, sig);
    else
        put_bytes(&graph, 1, node->body.p, (size_t)(node->body.end - node->body.p));
    for (int i = 0; i < sig->in_count; i++) {
        struct mgx_str value = {0};
        if (sig->ins[i]) {
            put_slice(&value, 1, sig->in[i]);
            put_message(&graph, 11, &value);
        }
    }
    for (int i = 0; i < sig->out_count; i++) {
        struct mgx_str value = {0};
        put_slice(&value, 1, sig->out[i]);
        put_message(&graph, 12, &value);
    }
    put_message(model, 7, &graph);
}

static enum mgx_status write_model(struct mgx_onnx_node *n, const struct signature *sig,
                                   const char **out)
{
    const struct mgx_onnx_import *import = n->graph->import;
    const struct mgx_onnx_node_proto *node = n->wire;
    struct mgx_str model = {0};
    put_int(&model, 1, import->model.ir_version);
    put_opsets(&model, 8, n->graph->opsets);
    for (int i = 0; node->has_graphs && i < import->model.functions.count; i++) {
        const struct mgx_wire f = import->model.functions.v[i]; // a body may call any of them
        put_bytes(&model, 25, f.p, (size_t)(f.end - f.p));
    }
    if (sig->wrap)
        put_wrapper(&model, n, sig);
    put_graph(&model, n, sig);
    enum mgx_status status = MGX_OK;
    if (model.failed)
        status = mgx_fail_memory(n->diag);
    else if (model.size > MODEL_BYTES)
        status = mgx_onnx_unsupported(n,
                                      "needs sizes known only at run time, and its %zu bytes "
                                      "are more than can be kept until then",
                                      model.size);
    else if (!(*out = encode(&n->module->program->arena, (const uint8_t *)mgx_str_text(&model),
                             model.size)))
        status = mgx_fail_memory(n->diag);
    mgx_str_fini(&model);
    return status;
}

// --- deferring ---

static void add_input(const struct mgx_onnx_node *n, struct signature *sig, struct mgx_slice name)
{
    if (!name.size)
        return;
    for (int i = 0; i < sig->in_count; i++)
        if (mgx_slice_equal(sig->in[i], name))
            return;
    const struct mgx_onnx_value *value = mgx_onnx_graph_find(n->graph, name);
    sig->ins[sig->in_count] = value ? value->ins : NULL;
    sig->wrap |= !sig->ins[sig->in_count];
    sig->in[sig->in_count++] = name;
}

static enum mgx_status make_signature(struct mgx_onnx_node *n, struct signature *sig)
{
    const struct mgx_onnx_node_proto *node = n->wire;
    struct mgx_onnx_names captured = {0};
    enum { MANY = 1000 };
    *sig = (struct signature){0};
    if (node->has_graphs)
        TRY(mgx_onnx_captures(n->graph->import, node, n->graph->depth + 1, n->scratch, &captured));
    const size_t room = (size_t)node->in.count + (size_t)captured.count;
    if (room > MANY)
        return mgx_onnx_unsupported(n, "needs sizes known only at run time, with %zu inputs", room);
    sig->in = MGX_NEW_ARRAY(n->scratch, struct mgx_slice, room);
    sig->ins = MGX_NEW_ARRAY(n->scratch, struct mgx_ins *, room);
    sig->out = MGX_NEW_ARRAY(n->scratch, struct mgx_slice, node->out.count);
    sig->out_index = MGX_NEW_ARRAY(n->scratch, int, node->out.count);
    if (!sig->in || !sig->ins || !sig->out || !sig->out_index)
        return mgx_fail_memory(n->diag);
    for (int i = 0; i < node->in.count; i++)
        add_input(n, sig, node->in.v[i]);
    for (int i = 0; i < captured.count; i++)
        add_input(n, sig, captured.v[i]);
    for (int i = 0; i < node->out.count; i++)
        if (node->out.v[i].size) {
            sig->out_index[sig->out_count] = i;
            sig->out[sig->out_count++] = node->out.v[i];
        }
    for (int i = 0; i < node->attribute_count; i++)
        sig->wrap |= node->attributes[i].reference.size > 0;
    sig->wrap |= n->graph->call && node->has_graphs;
    return MGX_OK;
}

static enum mgx_status emit(struct mgx_onnx_node *n, const struct signature *sig, const char *model)
{
    const struct mgx_onnx_options *o = &n->graph->import->options;
    int64_t *types = MGX_NEW_ARRAY(n->scratch, int64_t, sig->out_count);
    struct mgx_ins **in = MGX_NEW_ARRAY(n->scratch, struct mgx_ins *, sig->in_count);
    if (!types || !in)
        return mgx_fail_memory(n->diag);
    for (int i = 0; i < sig->out_count; i++) {
        bool sequence = false;
        const enum mgx_type type = mgx_onnx_result_type(n, sig->out_index[i], &sequence);
        types[i] = sequence ? -1 - (int64_t)type : (int64_t)type;
    }
    int count = 0;
    for (int i = 0; i < sig->in_count; i++)
        if (sig->ins[i])
            in[count++] = sig->ins[i];
    struct mgx_ins *ins = mgx_onnx_emit_n(
        n, &mgx_onnx_deferred,
        MGX_ATTRS(mgx_text("op_type", n->op_type), mgx_text("node", n->name),
                  mgx_int("opset", n->opset), mgx_ints("types", types, sig->out_count),
                  mgx_int("max_loop", o->max_loop_iterations),
                  mgx_int("limit_loop", o->limit_loop_iterations), mgx_text("model", model)),
        in, count);
    for (int i = 0; i < sig->out_count; i++)
        n->out[sig->out_index[i]] = sig->out_count == 1 ? ins : mgx_onnx_member(n, ins, i);
    return MGX_OK;
}

enum mgx_status mgx_onnx_defer(struct mgx_onnx_node *n)
{
    if (n->graph->import->final) {
        n->graph->import->gave_up = true;
        return mgx_onnx_unsupported(n, "needs sizes or values that are not known");
    }
    struct signature sig;
    const char *model = NULL;
    TRY(make_signature(n, &sig));
    TRY(write_model(n, &sig, &model));
    return emit(n, &sig, model);
}

// --- the operator ---

static enum mgx_status import(const struct deferred *d, const struct mgx_onnx_bound *bound,
                              int count, struct mgx_arena *arena, bool *gave_up,
                              struct mgx_program **out, struct mgx_diag *diag)
{
    uint8_t *data;
    size_t size;
    *gave_up = false;
    if (!decode(arena, d->model ? d->model : "", &data, &size))
        return mgx_fail(diag, arena->failed ? MGX_NO_MEMORY : MGX_INVALID,
                        "attribute \"model\" is not base64");
    const struct mgx_onnx_options options = {.max_loop_iterations = d->max_loop,
                                             .limit_loop_iterations = d->limit_loop,
                                             .quick_reject = true};
    return mgx_onnx_import_bound(out, data, size, &options, bound, count, gave_up, diag);
}

// All that is known without inputs: the types.
static enum mgx_status only_types(struct mgx_shape_call *c, const struct deferred *d,
                                  struct mgx_shape *out)
{
    struct mgx_shape *sub = MGX_NEW_ARRAY(c->arena, struct mgx_shape, d->types.count);
    struct mgx_shape *members = MGX_NEW_ARRAY(c->arena, struct mgx_shape, d->types.count);
    if (!sub || !members)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < d->types.count; i++) {
        const int64_t code = d->types.v[i], type = code < 0 ? -1 - code : code;
        if (type >= MGX_TYPE_COUNT)
            return mgx_fail(c->diag, MGX_INVALID, "onnx::deferred: type %lld is not known",
                            (long long)type);
        members[i] = mgx_shape_unranked((enum mgx_type)type);
        sub[i] = code < 0 ? mgx_shape_sequence(&members[i]) : members[i];
    }
    *out = d->types.count == 1 ? sub[0] : mgx_shape_tuple(sub, d->types.count);
    return MGX_OK;
}

static bool is_tensor(const struct mgx_shape *s)
{
    return mgx_shape_is_static(s) && s->type != MGX_TUPLE && s->type != MGX_SEQUENCE;
}

// Shapes of an imported program's results.
static enum mgx_status result_shapes(struct mgx_shape_call *c, const struct mgx_program *p,
                                     struct mgx_shape *out)
{
    const struct mgx_module *m = mgx_program_main(p);
    const int count = mgx_module_result_count(m);
    struct mgx_shape *sub = MGX_NEW_ARRAY(c->arena, struct mgx_shape, count);
    if (!sub)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < count; i++)
        if (!mgx_shape_copy(c->arena, &mgx_module_result(m, i)->shape, &sub[i]))
            return mgx_fail_memory(c->diag);
    *out = count == 1 ? sub[0] : mgx_shape_tuple(sub, count);
    return MGX_OK;
}

// With static inputs of which some value is open, a trial import may tell the result's shape. With
// all values known (at run time) it would be done twice.
static enum mgx_status deferred_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct deferred *d = c->attr;
    bool is_static = true, all_known = true;
    struct mgx_onnx_bound *bound = MGX_NEW_ARRAY(c->arena, struct mgx_onnx_bound, c->in_count);
    if (!bound)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < c->in_count; i++) {
        const struct mgx_tensor *value = c->values ? c->values[i] : NULL;
        all_known &= value != NULL;
        is_static &= is_tensor(c->in[i]);
        bound[i].shape = c->in[i];
        bound[i].value = value && value->storage ? value : NULL;
    }
    if (!is_static || all_known)
        return only_types(c, d, out);
    struct mgx_program *p = NULL;
    struct mgx_diag diag;
    mgx_diag_clear(&diag);
    bool gave_up;
    enum mgx_status status = import(d, bound, c->in_count, c->arena, &gave_up, &p, &diag);
    if (status == MGX_OK) {
        status = result_shapes(c, p, out);
        mgx_program_destroy(p);
        return status;
    }
    if (status == MGX_NO_MEMORY)
        return mgx_fail_memory(c->diag);
    if (gave_up || status == MGX_UNSUPPORTED)
        return only_types(c, d, out);
    return mgx_fail(c->diag, status, "%s", diag.text);
}

// --- running it ---

static void release_borrowed(struct mgx_storage *storage)
{
    mgx_storage_release(storage->owner);
    free(storage);
}

// A literal owns a share in its bytes; an input may be borrowed. The wrapper owns nothing but lets
// it be shared for as long as the input is there.
static enum mgx_status as_literal(const struct mgx_tensor *in, struct mgx_tensor *out,
                                  struct mgx_diag *diag)
{
    if (in->storage || mgx_shape_elements(&in->shape) == 0 || in->sub) {
        *out = mgx_tensor_share(in);
        return MGX_OK;
    }
    struct mgx_storage *storage = calloc(1, sizeof *storage);
    if (!storage)
        return mgx_fail_memory(diag);
    atomic_init(&storage->refs, 1);
    storage->data = in->data;
    storage->release = release_borrowed;
    *out = *in;
    out->storage = storage;
    return MGX_OK;
}

static enum mgx_status run(struct mgx_compute_call *c, struct mgx_program *p)
{
    struct mgx_module *m = mgx_program_main(p);
    for (int i = 0; i < p->module_count; i++)
        mgx_module_number(p->modules[i]);
    const int count = mgx_module_result_count(m);
    struct mgx_tensor *results = MGX_NEW_ARRAY(c->scratch, struct mgx_tensor, count);
    if (!results)
        return mgx_fail_memory(c->diag);
    TRY(mgx_eval_module(c->eval, m, NULL, 0, results, c->diag));
    if (count != 1)
        return mgx_tensor_group(c->out, results, count, false, c->diag);
    *c->out = results[0];
    return MGX_OK;
}

static enum mgx_status deferred_compute(struct mgx_compute_call *c)
{
    const struct deferred *d = c->attr;
    struct mgx_tensor *in = MGX_NEW_ARRAY(c->scratch, struct mgx_tensor, c->in_count);
    struct mgx_onnx_bound *bound = MGX_NEW_ARRAY(c->scratch, struct mgx_onnx_bound, c->in_count);
    if (!in || !bound)
        return mgx_fail_memory(c->diag);
    enum mgx_status status = MGX_OK;
    for (int i = 0; i < c->in_count && status == MGX_OK; i++) {
        status = as_literal(c->in[i], &in[i], c->diag);
        bound[i] = (struct mgx_onnx_bound){.value = &in[i], .shape = &in[i].shape};
    }
    struct mgx_program *p = NULL;
    bool gave_up;
    if (status == MGX_OK)
        status = import(d, bound, c->in_count, c->scratch, &gave_up, &p, c->diag);
    if (status == MGX_OK)
        status = run(c, p);
    mgx_program_destroy(p);
    for (int i = 0; i < c->in_count; i++)
        mgx_tensor_release(&in[i]);
    return status;
}

static enum mgx_type unranked_type(const struct mgx_shape_call *c)
{
    const struct deferred *d = c->attr;
    return d->types.count == 1 && d->types.v[0] >= 0 ? (enum mgx_type)d->types.v[0] : MGX_TUPLE;
}

const struct mgx_op mgx_onnx_deferred = {
    .name = "onnx::deferred",
    .meaning = "an ONNX node that is imported when its inputs are known",
    .fields = fields,
    .attr_size = sizeof(struct deferred),
    .in_min = 0,
    .in_max = -1,
    .flags = MGX_OP_AGGREGATE | MGX_OP_IMPURE | MGX_OP_UNRANKED | MGX_OP_ANY_STRIDE,
    .shape = deferred_shape,
    .unranked_type = unranked_type,
    .compute = deferred_compute,
};

// --- the set of operators ---

static const struct mgx_op *find(const struct mgx_op_set *set, const char *name, size_t size)
{
    (void)set;
    const struct mgx_slice text = {name, size};
    return mgx_slice_is(text, mgx_onnx_deferred.name) ? &mgx_onnx_deferred
                                                      : mgx_ops.find(&mgx_ops, name, size);
}

const struct mgx_op_set mgx_onnx_ops = {.find = find};
