// SPDX-License-Identifier: MIT
// The main module as an ONNX model, for Netron and its like to draw: operators keep their own names
// and are in a domain of ours, attributes are texts, weights have shapes and no data. It is a
// picture, not a model that runs.
//
// A message is {field number, kind, content}; what holds others is written inside out.
#include <stdio.h>
#include <string.h>

#include "format/format.h"

// --- protobuf ---

static void put_varint(struct mgx_str *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        mgx_str_putc(out, (char)(value | 0x80));
    mgx_str_putc(out, (char)value);
}

static void put_int(struct mgx_str *out, int field, int64_t value)
{
    put_varint(out, (uint64_t)field << 3);
    put_varint(out, (uint64_t)value);
}

static void put_bytes(struct mgx_str *out, int field, const char *data, size_t size)
{
    put_varint(out, (uint64_t)field << 3 | 2);
    put_varint(out, size);
    mgx_str_putn(out, data, size);
}

static void put_text(struct mgx_str *out, int field, const char *text)
{
    put_bytes(out, field, text, strlen(text));
}

// Takes the message over.
static void put_message(struct mgx_str *out, int field, struct mgx_str *message)
{
    out->failed |= message->failed;
    put_bytes(out, field, mgx_str_text(message), message->size);
    mgx_str_fini(message);
}

// --- ONNX's messages: the field numbers are those of onnx.proto ---

static int type_number(enum mgx_type type)
{
    static const struct {
        const char *name;
        int number;
    } types[] = {{"float_type", 1},    {"uint8_type", 2},       {"int8_type", 3},
                 {"uint16_type", 4},   {"int16_type", 5},       {"int32_type", 6},
                 {"int64_type", 7},    {"string_type", 8},      {"bool_type", 9},
                 {"half_type", 10},    {"double_type", 11},     {"uint32_type", 12},
                 {"uint64_type", 13},  {"complex64_type", 14},  {"complex128_type", 15},
                 {"bf16_type", 16},    {"fp8e4m3fn_type", 17},  {"fp8e4m3fnuz_type", 18},
                 {"fp8e5m2_type", 19}, {"fp8e5m2fnuz_type", 20}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, mgx_type_name(type)) == 0)
            return types[i].number;
    return 0;
}

static void put_dimension(struct mgx_str *shape, const struct mgx_shape *s, int axis)
{
    struct mgx_str dimension = {0};
    const struct mgx_dim d = mgx_shape_dim(s, axis);
    if (d.min == d.max)
        put_int(&dimension, 1, d.min);
    else if (d.name && *d.name)
        put_text(&dimension, 2, d.name);
    else {
        char range[48];
        snprintf(range, sizeof range, "%lld..%lld", (long long)d.min, (long long)d.max);
        put_text(&dimension, 2, range);
    }
    put_message(shape, 1, &dimension);
}

// ValueInfoProto {name, type {tensor {element type, shape}}}
static void put_value(struct mgx_str *graph, int field, const char *name, const struct mgx_shape *s)
{
    struct mgx_str value = {0}, type = {0}, tensor = {0}, shape = {0};
    put_text(&value, 1, name);
    if (type_number(s->type)) {
        put_int(&tensor, 1, type_number(s->type));
        for (int i = 0; !s->unranked && i < s->rank; i++)
            put_dimension(&shape, s, i);
        if (!s->unranked)
            put_message(&tensor, 2, &shape);
        put_message(&type, 1, &tensor);
        put_message(&value, 2, &type);
    }
    put_message(graph, field, &value);
}

static void put_attributes(struct mgx_str *node, const struct mgx_ins *ins)
{
    const struct mgx_field *f = ins->op->fields;
    for (; ins->attr && f && f->kind != MGX_FIELD_END; f++) {
        struct mgx_str attribute = {0}, value = {0};
        enum { STRING = 3 };
        mgx_field_print_json(&value, f, ins->attr);
        put_text(&attribute, 1, f->name);
        put_bytes(&attribute, 4, mgx_str_text(&value), value.size);
        put_int(&attribute, 20, STRING);
        put_message(node, 5, &attribute);
        mgx_str_fini(&value);
    }
}

static void put_name(struct mgx_str *out, int field, const struct mgx_ins *ins)
{
    struct mgx_str name = {0};
    mgx_ins_print_name(&name, ins);
    put_message(out, field, &name);
}

// NodeProto {inputs, output, name, operator, attributes, domain}
static void put_node(struct mgx_str *graph, const struct mgx_ins *ins)
{
    struct mgx_str node = {0}, nodes = {0};
    for (int i = 0; i < ins->in_count; i++)
        put_name(&node, 1, ins->in[i]);
    put_name(&node, 2, ins);
    put_name(&node, 3, ins);
    put_text(&node, 4, ins->mod_count ? ins->mod[0]->name : ins->op->name);
    put_attributes(&node, ins);
    for (int i = 0; i < ins->origin.count; i++)
        mgx_str_printf(&nodes, "%s%s", i ? "; " : "", ins->origin.v[i]);
    put_message(&node, 6, &nodes); // its documentation
    put_text(&node, 7, "migraphx");
    put_message(graph, 1, &node);
}

// TensorProto {dimensions, type, name}
static void put_weight(struct mgx_str *graph, const struct mgx_ins *ins)
{
    struct mgx_str tensor = {0};
    for (int i = 0; i < ins->shape.rank; i++)
        put_int(&tensor, 1, ins->shape.lens[i]);
    put_int(&tensor, 2, type_number(ins->shape.type));
    put_name(&tensor, 8, ins);
    put_message(graph, 5, &tensor);
}

static void put_instruction(struct mgx_str *graph, const struct mgx_ins *ins)
{
    struct mgx_str name = {0};
    mgx_ins_print_name(&name, ins);
    if (ins->op == &mgx_op_param)
        put_value(graph, 11, mgx_str_text(&name), &ins->shape);
    else if (ins->op == &mgx_op_literal)
        put_weight(graph, ins);
    else {
        put_node(graph, ins);
        put_value(graph, 13, mgx_str_text(&name), &ins->shape);
    }
    mgx_str_fini(&name);
}

static void put_graph(struct mgx_str *model, const struct mgx_module *m)
{
    struct mgx_str graph = {0};
    for (const struct mgx_ins *ins = m->first; ins; ins = ins->next)
        if (ins->op != &mgx_op_return)
            put_instruction(&graph, ins);
    put_text(&graph, 2, m->name);
    for (int i = 0; i < mgx_module_result_count(m); i++) {
        const struct mgx_ins *result = mgx_module_result(m, i);
        struct mgx_str name = {0};
        mgx_ins_print_name(&name, result);
        put_value(&graph, 12, mgx_str_text(&name), &result->shape);
        mgx_str_fini(&name);
    }
    put_message(model, 7, &graph);
}

enum mgx_status mgx_format_netron(struct mgx_str *out, const struct mgx_program *p,
                                  struct mgx_diag *diag)
{
    enum { IR_VERSION = 8, OPSET = 1 };
    struct mgx_str opset = {0};
    put_int(out, 1, IR_VERSION);
    put_text(out, 2, "AMDMIGraphX");
    put_graph(out, mgx_program_main(p));
    put_text(&opset, 1, "migraphx");
    put_int(&opset, 2, OPSET);
    put_message(out, 8, &opset);
    return out->failed ? mgx_fail_memory(diag) : MGX_OK;
}
