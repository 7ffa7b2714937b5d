// SPDX-License-Identifier: MIT
// The table of macros, and how one is added; see macro.h.
//
// A rule sees a node without a model around it: its attributes are written here, from the options.
#include "onnx/op/macro.h"

#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "import/wire_write.h"
#include "onnx/build.h"
#include "onnx/graph.h"

enum { ATTRIBUTES = 16 };

struct mgx_macro_call {
    struct mgx_node n;
    const struct mgx_macro *macro;
    const void *options;
    struct mgx_onnx_node_proto proto;
    struct mgx_onnx_attribute attributes[ATTRIBUTES];
    struct mgx_ins *out[MGX_MACRO_RESULTS];
};

// --- options as attributes ---

// One of a name that was there before is replaced.
static void put_attribute(struct mgx_macro_call *c, const char *name, enum mgx_onnx_kind kind,
                          struct mgx_str *take_body)
{
    int at = 0;
    while (at < c->proto.attribute_count && !mgx_slice_is(c->attributes[at].name, name))
        at++;
    const char *bytes = mgx_arena_strndup(c->n.scratch, mgx_str_text(take_body), take_body->size);
    assert(at < ATTRIBUTES);
    if (!bytes || take_body->failed) {
        mgx_fail_memory(c->n.diag);
    } else {
        c->attributes[at] =
            (struct mgx_onnx_attribute){.name = {name, strlen(name)},
                                        .kind = kind,
                                        .body = mgx_wire_of(bytes, take_body->size)};
        if (at == c->proto.attribute_count)
            c->proto.attribute_count++;
    }
    mgx_str_fini(take_body);
}

static void put_int(struct mgx_macro_call *c, const char *name, int64_t value)
{
    assert(name);
    struct mgx_str body = {0};
    mgx_wire_put_int(&body, 3, value);
    put_attribute(c, name, MGX_ONNX_INT, &body);
}

static void put_real(struct mgx_macro_call *c, const char *name, double value)
{
    assert(name);
    struct mgx_str body = {0};
    mgx_wire_put_float(&body, 2, (float)value);
    put_attribute(c, name, MGX_ONNX_FLOAT, &body);
}

static void put_text(struct mgx_macro_call *c, const char *name, const char *value)
{
    assert(name && value);
    struct mgx_str body = {0};
    mgx_wire_put_text(&body, 4, value ? value : "");
    put_attribute(c, name, MGX_ONNX_STRING, &body);
}

static void put_ints(struct mgx_macro_call *c, const char *name, const int64_t *v, int count)
{
    assert(count >= 0 && name);
    struct mgx_str body = {0};
    for (int i = 0; i < count; i++)
        mgx_wire_put_int(&body, 8, v[i]);
    put_attribute(c, name, MGX_ONNX_INTS, &body);
}

// An empty list and an optional that is not given are as if absent.
static void put_field(struct mgx_macro_call *c, const struct mgx_field *f)
{
    const void *value = (const char *)c->options + f->offset;
    const struct mgx_ints *ints = value;
    switch (f->kind) {
    case MGX_FIELD_INT:
        if (*(const int64_t *)value != MGX_NONE)
            put_int(c, f->name, *(const int64_t *)value);
        break;
    case MGX_FIELD_BOOL:
        put_int(c, f->name, *(const bool *)value);
        break;
    case MGX_FIELD_FLOAT:
        put_real(c, f->name, *(const double *)value);
        break;
    case MGX_FIELD_STRING:
        put_text(c, f->name, *(const char *const *)value);
        break;
    case MGX_FIELD_INTS:
        if (ints->count)
            put_ints(c, f->name, ints->v, ints->count);
        break;
    default:
        break; // a type: its builder says what it is to the rule
    }
}

static enum mgx_status by_rule(struct mgx_macro_call *c, const struct mgx_onnx_op *rule)
{
    c->n.rule = rule;
    return rule->import(&c->n);
}

// --- builders of their own ---

struct conv {
    struct mgx_ints paddings, strides, dilations;
    int64_t group, padding_mode;
    const char *auto_pad;
};

static const struct conv conv_defaults = {.group = 1, .auto_pad = "NOTSET"};
static const struct mgx_field conv_fields[] = {MGX_INTS(struct conv, paddings),
                                               MGX_INTS(struct conv, strides),
                                               MGX_INTS(struct conv, dilations),
                                               MGX_INT(struct conv, group),
                                               MGX_INT(struct conv, padding_mode),
                                               MGX_TEXT(struct conv, auto_pad),
                                               {0}};

// One padding per axis stands for both of its ends, as in the operator.
static enum mgx_status convolution(struct mgx_macro_call *c)
{
    const struct conv *o = c->options;
    const int axes = c->n.in_count ? mgx_build_rank(c->n.in[0]) - 2 : 0;
    int64_t pads[2 * MGX_MAX_RANK];
    if (o->paddings.count > MGX_MAX_RANK * 2)
        return mgx_fail(c->n.diag, MGX_INVALID, "%d paddings are too many", o->paddings.count);
    for (int i = 0; i < o->paddings.count; i++)
        pads[i] = o->paddings.v[i];
    const bool twice = o->paddings.count == axes && axes <= MGX_MAX_RANK;
    for (int i = 0; twice && i < axes; i++)
        pads[axes + i] = pads[i];
    if (o->paddings.count)
        put_ints(c, "pads", pads, twice ? 2 * axes : o->paddings.count);
    if (o->padding_mode == 1 || o->padding_mode == 2)
        put_text(c, "auto_pad", o->padding_mode == 1 ? "SAME_LOWER" : "SAME_UPPER");
    return by_rule(c, c->macro->rule);
}

struct binary {
    int64_t broadcasted_axis;
};

static const struct binary binary_defaults = {MGX_NONE};
static const struct mgx_field binary_fields[] = {MGX_OPTIONAL_INT(struct binary, broadcasted_axis),
                                                 {0}};

// numpy's broadcasting, or the axes of b match those of a from one on.
static enum mgx_status binary(struct mgx_macro_call *c)
{
    const struct binary *o = c->options;
    struct mgx_node *n = &c->n;
    TRY(mgx_node_need(n, 2, 2));
    struct mgx_ins *b = n->in[1];
    if (o->broadcasted_axis != MGX_NONE) {
        put_int(c, "broadcast", 1);
        put_int(c, "axis", o->broadcasted_axis);
        n->opset = 6;
        TRY(mgx_onnx_align(n, &b));
    }
    n->out[0] = mgx_build_binary(n, c->macro->op, n->in[0], b);
    return MGX_OK;
}

static enum mgx_status matmul(struct mgx_macro_call *c)
{
    struct mgx_node *n = &c->n;
    TRY(mgx_node_need(n, 2, 2));
    if (!mgx_build_ranked(n) || !mgx_build_rank(n->in[0]) || !mgx_build_rank(n->in[1]))
        return mgx_node_invalid(n, "the operands need axes");
    n->out[0] = mgx_build_matmul(n, c->macro->op, n->in[0], n->in[1]);
    return MGX_OK;
}

struct fast {
    bool fast;
};

static const struct mgx_field fast_fields[] = {MGX_FLAG(struct fast, fast), {0}};

// The fast form is the same function in other words.
static enum mgx_status gelu(struct mgx_macro_call *c)
{
    struct mgx_node *n = &c->n;
    TRY(mgx_node_need(n, 1, 1));
    n->out[0] = mgx_build_gelu(n, n->in[0], c->macro->options.fields == fast_fields);
    return MGX_OK;
}

// The first half of the last axis times the Gelu of the second.
static enum mgx_status gelu_split(struct mgx_macro_call *c)
{
    struct mgx_node *n = &c->n;
    TRY(mgx_node_need(n, 1, 1));
    struct mgx_ins *x = n->in[0];
    const int axis = mgx_build_rank(x) - 1;
    if (axis < 0 || !mgx_build_fixed_dim(x, axis) || x->shape.lens[axis] % 2)
        return mgx_node_invalid(n, "the last axis has no two halves");
    const int64_t size = x->shape.lens[axis];
    struct mgx_ins *gate = mgx_build_gelu(n, mgx_build_slice(n, x, axis, size / 2, size), false);
    n->out[0] = mgx_build_mul(n, mgx_build_slice(n, x, axis, 0, size / 2), gate);
    return MGX_OK;
}

struct bias_uint8 {
    bool has_bias;
};

static const struct mgx_field bias_fields[] = {MGX_FLAG(struct bias_uint8, has_bias), {0}};

// uint8 as int8: every value less 128, by way of half, which holds all of them.
static struct mgx_ins *shifted(struct mgx_node *n, struct mgx_ins *x)
{
    struct mgx_ins *half = mgx_build_convert(n, x, MGX_HALF);
    return mgx_build_convert(n, mgx_build_with(n, &mgx_op_add, half, -128), MGX_INT8);
}

static enum mgx_status bias_uint8(struct mgx_macro_call *c)
{
    const struct bias_uint8 *o = c->options;
    struct mgx_node *n = &c->n;
    TRY(mgx_node_need(n, 1 + o->has_bias, 1 + o->has_bias));
    for (int i = 0; i < n->in_count; i++) {
        if (n->in[i]->shape.type != MGX_UINT8)
            return mgx_node_invalid(n, "input %d is %s, not uint8_type", i,
                                    mgx_type_name(n->in[i]->shape.type));
        n->out[i] = shifted(n, n->in[i]);
    }
    return MGX_OK;
}

struct quantize {
    int64_t axis, block_size, output_type;
};

static const struct quantize quantize_defaults = {.axis = 1, .output_type = MGX_NONE};
static const struct mgx_field quantize_fields[] = {MGX_INT(struct quantize, axis),
                                                   MGX_INT(struct quantize, block_size),
                                                   MGX_OPTIONAL_TYPE(struct quantize, output_type),
                                                   {0}};
static const struct mgx_field dequantize_fields[] = {
    MGX_INT(struct quantize, axis), MGX_INT(struct quantize, block_size), {0}};

// The rule knows types by ONNX's numbers.
static enum mgx_status quantize(struct mgx_macro_call *c)
{
    enum { NUMBERS = 32 };
    const struct quantize *o = c->options;
    struct mgx_diag ignored;
    enum mgx_type type;
    for (int i = 1; o->output_type != MGX_NONE && i < NUMBERS; i++) {
        mgx_diag_clear(&ignored);
        if (mgx_onnx_type_of(i, &type, &ignored) == MGX_OK && (int64_t)type == o->output_type) {
            put_int(c, "output_dtype", i);
            break;
        }
    }
    return by_rule(c, c->macro->rule);
}

struct tile {
    struct mgx_ints repeats;
};

static const struct mgx_field tile_fields[] = {MGX_INTS(struct tile, repeats), {0}};

static enum mgx_status tile(struct mgx_macro_call *c)
{
    const struct tile *o = c->options;
    struct mgx_node *n = &c->n;
    TRY(mgx_node_need(n, 1, 1));
    struct mgx_ins *in[2] = {n->in[0], mgx_build_literal_ints(n, o->repeats.v, o->repeats.count)};
    if (!in[1])
        return mgx_program_status(n->module->program, n->diag);
    n->in = in;
    n->in_count = 2;
    return by_rule(c, c->macro->rule);
}

// --- options of macros that are rules ---

struct numbers {
    double epsilon, alpha, beta;
    bool transA, transB, interleaved;
    struct mgx_ints axes;
    const char *equation;
};

static const int64_t mvn_axes[] = {0, 2, 3};
static const struct numbers number_defaults = {
    .epsilon = 1e-5, .alpha = 1, .beta = 1, .axes = {mvn_axes, 3}, .equation = ""};
static const struct numbers quick_defaults = {.alpha = 1.702};
static const struct mgx_field epsilon_fields[] = {MGX_REAL(struct numbers, epsilon), {0}};
static const struct mgx_field alpha_fields[] = {MGX_REAL(struct numbers, alpha), {0}};
static const struct mgx_field gemm_fields[] = {MGX_REAL(struct numbers, alpha),
                                               MGX_REAL(struct numbers, beta),
                                               MGX_FLAG(struct numbers, transA),
                                               MGX_FLAG(struct numbers, transB),
                                               {0}};
static const struct mgx_field axes_fields[] = {MGX_INTS(struct numbers, axes), {0}};
static const struct mgx_field einsum_fields[] = {MGX_TEXT(struct numbers, equation), {0}};
static const struct mgx_field rotary_fields[] = {MGX_FLAG(struct numbers, interleaved), {0}};

// --- the table, sorted by name ---

#define OPTIONS(name_, fields_, defaults_)                                                         \
    {                                                                                              \
        .name = name_, .fields = fields_, .attr_size = sizeof *(defaults_), .defaults = defaults_  \
    }
#define NO_OPTIONS(name_)                                                                          \
    {                                                                                              \
        .name = name_                                                                              \
    }
#define BINARY(name_)                                                                              \
    {                                                                                              \
        .options = OPTIONS(#name_, binary_fields, &binary_defaults), .build = binary,              \
        .op = &mgx_op_##name_                                                                      \
    }
#define NUMBERS(name_, fields_, rule_, opset_)                                                     \
    {                                                                                              \
        .options = OPTIONS(name_, fields_, &number_defaults), .rule = &mgx_onnx_##rule_,           \
        .opset = opset_                                                                            \
    }
static const struct fast fast_defaults = {false};
static const struct bias_uint8 bias_defaults = {false};
static const struct tile tile_defaults = {{0}};

static const struct mgx_macro table[] = {
    BINARY(add),
    NUMBERS("batchnorm", epsilon_fields, batch_normalization, 15),
    {.options = OPTIONS("bias_uint8", bias_fields, &bias_defaults), .build = bias_uint8},
    BINARY(bitwise_and),
    NUMBERS("celu", alpha_fields, celu, 12),
    {.options = NO_OPTIONS("clip"), .rule = &mgx_onnx_clip, .opset = 13},
    {.options = OPTIONS("convolution", conv_fields, &conv_defaults),
     .build = convolution,
     .rule = &mgx_onnx_conv,
     .opset = 11},
    {.options = OPTIONS("dequantizelinear", dequantize_fields, &quantize_defaults),
     .rule = &mgx_onnx_dequantize_linear,
     .opset = 21},
    BINARY(div),
    {.options = NO_OPTIONS("dot"), .build = matmul, .op = &mgx_op_dot},
    NUMBERS("einsum", einsum_fields, einsum, 12),
    {.options = NO_OPTIONS("gelu_erf"), .build = gelu},
    {.options = OPTIONS("gelu_quick", alpha_fields, &quick_defaults),
     .rule = &mgx_onnx_ms_quick_gelu,
     .opset = 1},
    {.options = NO_OPTIONS("gelu_split"), .build = gelu_split},
    {.options = OPTIONS("gelu_tanh", fast_fields, &fast_defaults), .build = gelu},
    NUMBERS("gemm", gemm_fields, gemm, 13),
    BINARY(logical_and),
    BINARY(logical_or),
    BINARY(logical_xor),
    NUMBERS("mean_variance_normalization", axes_fields, mean_variance_normalization, 13),
    BINARY(mul),
    BINARY(pow),
    BINARY(prelu),
    {.options = OPTIONS("quant_convolution", conv_fields, &conv_defaults),
     .build = convolution,
     .rule = &mgx_onnx_conv_integer,
     .opset = 11},
    {.options = NO_OPTIONS("quant_dot"), .build = matmul, .op = &mgx_op_quant_dot},
    {.options = OPTIONS("quantizelinear", quantize_fields, &quantize_defaults),
     .build = quantize,
     .rule = &mgx_onnx_quantize_linear,
     .opset = 21},
    NUMBERS("rotary_embedding", rotary_fields, rotary_embedding, 23),
    BINARY(sqdiff),
    BINARY(sub),
    {.options = OPTIONS("tile", tile_fields, &tile_defaults),
     .build = tile,
     .rule = &mgx_onnx_tile,
     .opset = 13}};

int mgx_macro_count(void)
{
    return MGX_COUNT(table);
}

const char *mgx_macro_name(int i)
{
    return table[i].options.name;
}

const struct mgx_macro *mgx_macro_find(const char *name)
{
    for (int i = 0; i < MGX_COUNT(table); i++)
        if (strcmp(table[i].options.name, name) == 0)
            return &table[i];
    return NULL;
}

// --- adding one ---

// Removes what came between and nobody reads, newest first: literals go to the front of a module,
// everything else in front of `before`.
static void take_back(struct mgx_module *m, struct mgx_ins *before, struct mgx_ins *old_first,
                      struct mgx_ins *old_last)
{
    struct mgx_ins *ins = before ? before->prev : m->last;
    for (struct mgx_ins *prev; ins && ins != old_last; ins = prev) {
        prev = ins->prev;
        if (!ins->uses)
            mgx_remove(ins);
    }
    ins = old_first ? old_first->prev : NULL;
    for (struct mgx_ins *prev; ins; ins = prev) {
        prev = ins->prev;
        if (!ins->uses)
            mgx_remove(ins);
    }
}

static enum mgx_status build(struct mgx_macro_call *c)
{
    struct mgx_node *n = &c->n;
    for (const struct mgx_field *f = c->macro->options.fields; f && f->name; f++)
        put_field(c, f);
    enum mgx_status status = n->diag->status;
    if (status == MGX_OK)
        status = c->macro->build ? c->macro->build(c) : by_rule(c, c->macro->rule);
    if (status == MGX_OK)
        status = n->diag->status; // an accessor recorded it
    struct mgx_program *p = n->module->program;
    if (status == MGX_OK)
        status = mgx_program_status(p, n->diag);
    mgx_diag_clear(&p->diag);
    if (status != MGX_OK)
        mgx_where(n->diag, "macro %s", c->macro->options.name);
    return status;
}

// What the macro's rule sees as its node.
static void describe_node(struct mgx_macro_call *c, struct mgx_onnx_graph *graph,
                          struct mgx_ins *const *in, int in_count)
{
    struct mgx_onnx_import *import = graph->import;
    const char *name = c->macro->options.name;
    c->proto.op_type = (struct mgx_slice){name, strlen(name)};
    c->proto.attributes = c->attributes;
    c->n = (struct mgx_node){.name = "",
                             .op_type = name,
                             .domain = "",
                             .opset = c->macro->opset,
                             .module = graph->module,
                             .in = in,
                             .in_count = in_count,
                             .out = c->out,
                             .out_count = 1,
                             .scratch = &import->scratch,
                             .before = import->before,
                             .diag = import->diag,
                             .fold = &import->fold,
                             .graph = graph,
                             .wire = &c->proto};
}

static int hand_out(const struct mgx_macro_call *c, struct mgx_ins *out[MGX_MACRO_RESULTS])
{
    int count = 0;
    for (; count < MGX_MACRO_RESULTS && c->out[count]; count++)
        out[count] = c->out[count];
    return count;
}

enum mgx_status mgx_macro_add(const struct mgx_macro *macro, const void *options,
                              struct mgx_module *m, struct mgx_ins *before,
                              struct mgx_ins *const *in, int in_count,
                              struct mgx_ins *out[MGX_MACRO_RESULTS], int *out_count,
                              struct mgx_diag *diag)
{
    static const struct mgx_onnx_options import_options;
    struct mgx_onnx_import import;
    enum mgx_status status = mgx_onnx_begin(&import, &import_options, diag);
    import.program = m->program;
    import.before = before;
    import.final = true;
    struct mgx_onnx_graph graph = {.import = &import, .module = m, .label = macro->options.name};
    struct mgx_macro_call c = {.macro = macro, .options = options};
    describe_node(&c, &graph, in, in_count);
    struct mgx_ins *const old_first = m->first, *const old_last = before ? before->prev : m->last;
    if (status == MGX_OK)
        status = build(&c);
    if (status != MGX_OK)
        take_back(m, before, old_first, old_last);
    *out_count = status == MGX_OK ? hand_out(&c, out) : 0;
    mgx_onnx_end(&import);
    return status;
}
