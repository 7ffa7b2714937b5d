// SPDX-License-Identifier: MIT
// From the graphs that were taken to programs.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "card.h"
#include "fused.h"

// --- compiling ---

static void fused_destroy(struct fused *f)
{
    if (!f)
        return;
    card_plans_destroy(f->plans); // which share what the program has
    migraphx_program_destroy(f->program);
    for (size_t i = 0; f->in_names && i < f->in_count; i++)
        free(f->in_names[i]);
    free(f->in_names);
    free(f->out_elements);
    free(f->name);
    free(f);
}

static void find_types(struct fused *f)
{
    static const char *const names[] = {
        NULL,    "float",  "uint8",      "int8",      "uint16",      "int16",   "int32",
        "int64", "string", "bool",       "half",      "double",      "uint32",  "uint64",
        NULL,    NULL,     "bf16",       "fp8e4m3fn", "fp8e4m3fnuz", "fp8e5m2", "fp8e5m2fnuz",
        "uint4", "int4",   "float4e2m1", "uint2",     "int2",        "fp8e8m0"};
    for (size_t i = 0; i < sizeof f->types / sizeof *f->types; i++) {
        f->types[i] = migraphx_shape_tuple_type;
        if (i < sizeof names / sizeof *names && names[i])
            migraphx_type_find(&f->types[i], names[i]);
    }
}

static migraphx_status quantize(migraphx_program_t program, const struct options *o)
{
    migraphx_status status = migraphx_status_success;
    if (o->fp16)
        status = migraphx_quantize_fp16(program);
    if (o->bf16 && status == migraphx_status_success)
        status = migraphx_quantize_bf16(program);
    return status;
}

static migraphx_status set_options(migraphx_compile_options_t c, const struct options *o)
{
    migraphx_status status = migraphx_compile_options_set_fast_math(c, o->fast_math);
    if (status == migraphx_status_success)
        status = migraphx_compile_options_set_exhaustive_tune_flag(c, o->exhaustive_tune);
    if (status == migraphx_status_success)
        status = migraphx_compile_options_set_threads(c, o->threads);
    if (status == migraphx_status_success) // no run ever waits for a plan
        status = migraphx_compile_options_set_specialise(
            c, o->specialise ? migraphx_specialise_background : migraphx_specialise_never);
    if (status == migraphx_status_success && *o->isa)
        status = migraphx_compile_options_set_isa(c, o->isa);
    if (status == migraphx_status_success && *o->tuning_cache)
        status = migraphx_compile_options_set_tuning_cache(c, o->tuning_cache);
    return status;
}

static migraphx_status has_open_sizes(migraphx_program_t program, bool *out)
{
    migraphx_program_parameter_shapes_t shapes = NULL;
    migraphx_status status = migraphx_program_get_parameter_shapes(&shapes, program);
    size_t count = 0;
    *out = false;
    if (status == migraphx_status_success)
        status = migraphx_program_parameter_shapes_size(&count, shapes);
    const char **names = calloc(count + 1, sizeof *names);
    if (status == migraphx_status_success && names)
        status = migraphx_program_parameter_shapes_names(names, shapes);
    for (size_t i = 0; names && i < count && status == migraphx_status_success; i++) {
        const_migraphx_shape_t shape = NULL;
        bool open = false;
        status = migraphx_program_parameter_shapes_get(&shape, shapes, names[i]);
        if (status == migraphx_status_success)
            status = migraphx_shape_dynamic(&open, shape);
        *out |= open;
    }
    free(names);
    migraphx_program_parameter_shapes_destroy(shapes);
    return names ? status : migraphx_status_unknown_error;
}

// A program of fixed sizes takes the card's addresses; of one with open sizes such are made as sizes
// come (card_run.c).
static migraphx_status set_card(migraphx_compile_options_t c, migraphx_program_t program,
                                const struct card *card)
{
    bool open = true; // the host's memory, whatever computes
    migraphx_status status = migraphx_status_success;
    if (card) {
        const char *number = strchr(card->name, ':') + 1;
        status = migraphx_compile_options_set_device_id(c, (size_t)strtoul(number, NULL, 10));
        if (status == migraphx_status_success)
            status = has_open_sizes(program, &open);
    }
    return status == migraphx_status_success ? migraphx_compile_options_set_offload_copy(c, open)
                                             : status;
}

static migraphx_status compile_program(migraphx_program_t program, const struct options *o,
                                       const struct card *card)
{
    const char *name = *o->device ? o->device : card ? "gpu" : "cpu";
    migraphx_target_t target = NULL;
    migraphx_compile_options_t c = NULL;
    migraphx_status status = quantize(program, o);
    if (status == migraphx_status_success)
        status = migraphx_target_create(&target, name);
    if (status == migraphx_status_success)
        status = migraphx_compile_options_create(&c);
    if (status == migraphx_status_success)
        status = set_options(c, o);
    if (status == migraphx_status_success)
        status = set_card(c, program, card);
    if (status == migraphx_status_success)
        status = migraphx_program_compile(program, target, c);
    if (status == migraphx_status_success && o->mem_limit)
        status = migraphx_program_set_run_memory(program, o->mem_limit);
    migraphx_compile_options_destroy(c);
    migraphx_target_destroy(target);
    return status;
}

static OrtStatus *make_program(struct fused *f, const OrtGraph *graph,
                               const OrtValueInfo *const *outputs, const struct provider *ep)
{
    migraphx_onnx_graph_t handed = NULL;
    migraphx_onnx_options_t options = NULL;
    HOST_TRY(graph_hand_over(f->host, graph, outputs, f->out_count, true, ep->ranges, &handed));
    migraphx_status status = graph_options(&options);
    if (status == migraphx_status_success)
        status = migraphx_parse_onnx_graph(&f->program, handed, options);
    migraphx_onnx_options_destroy(options);
    migraphx_onnx_graph_destroy(handed);
    if (status == migraphx_status_success)
        status = compile_program(f->program, &ep->options, ep->card);
    return status == migraphx_status_success ? NULL : host_pass_on(f->host, f->name);
}

// --- what goes in and out ---

static OrtStatus *find_inputs(struct fused *f, const OrtValueInfo *const *inputs)
{
    migraphx_program_parameter_shapes_t shapes = NULL;
    ENGINE_TRY(f->host, f->name, migraphx_program_get_parameter_shapes(&shapes, f->program));
    f->in_names = calloc(f->in_count + 1, sizeof *f->in_names);
    for (size_t i = 0; f->in_names && i < f->in_count; i++) {
        const_migraphx_shape_t shape = NULL;
        const char *name = value_name(f->host, inputs[i]);
        if (*name && !migraphx_program_parameter_shapes_get(&shape, shapes, name))
            f->in_names[i] = strdup(name);
    }
    migraphx_program_parameter_shapes_destroy(shapes);
    return f->in_names ? NULL : host_no_memory(f->host);
}

// A result of another type than the host makes room for would be written beyond it.
static OrtStatus *find_outputs(struct fused *f, const OrtValueInfo *const *outputs)
{
    f->out_elements = calloc(f->out_count + 1, sizeof *f->out_elements);
    if (!f->out_elements)
        return host_no_memory(f->host);
    for (size_t i = 0; i < f->out_count; i++) {
        struct value_type type;
        HOST_TRY(value_type_read(f->host, outputs[i], &type));
        f->out_elements[i] = host_own_element(type.type.element);
        f->has_values |= fused_is_value(f->out_elements[i]);
    }
    return NULL;
}

// The only node of a graph, if it holds a program of ours.
static OrtStatus *find_context(const struct provider *ep, const OrtGraph *graph,
                               const OrtNode **out)
{
    const OrtNode **nodes;
    size_t count;
    *out = NULL;
    HOST_TRY(list_Graph_GetNodes(ep->host, graph, &nodes, &count));
    if (count == 1 && context_is_own(ep, nodes[0]))
        *out = nodes[0];
    free(nodes);
    return NULL;
}

static OrtStatus *get_program(struct fused *f, const struct provider *ep, const OrtGraph *graph,
                              const OrtValueInfo *const *outputs)
{
    const OrtNode *kept = NULL;
    HOST_TRY(find_context(ep, graph, &kept));
    return kept ? context_load(ep, graph, kept, &f->program) : make_program(f, graph, outputs, ep);
}

static OrtStatus *keep_program(const struct fused *f, const struct provider *ep,
                               const OrtGraph *graph, const OrtValueInfo *const *in,
                               const OrtValueInfo *const *out, OrtNode **node)
{
    const char **names = calloc(f->in_count + f->out_count + 1, sizeof *names);
    if (!names)
        return host_no_memory(f->host);
    for (size_t i = 0; i < f->in_count; i++)
        names[i] = value_name(f->host, in[i]);
    for (size_t i = 0; i < f->out_count; i++)
        names[f->in_count + i] = value_name(f->host, out[i]);
    OrtStatus *status = context_make(ep, graph, f->name, f->program, names, f->in_count,
                                     names + f->in_count, f->out_count, node);
    free(names);
    return status;
}

// A plan for each set of lengths pays where these come again.
static OrtStatus *make_plans(struct fused *f, const struct provider *ep, const OrtGraph *graph,
                             const OrtValueInfo *const *in)
{
    if (ep->options.specialise)
        HOST_TRY(fill_find(f, graph, in));
    return ep->card ? card_plans_create(&f->plans, f, ep->card, ep->options.specialise) : NULL;
}

static OrtStatus *fill(struct fused *f, const struct provider *ep, const OrtGraph *graph,
                       const OrtNode *node, OrtNode **kept)
{
    const OrtValueInfo **in = NULL, **out = NULL;
    const char *name = NULL;
    find_types(f);
    HOST_TRY(f->host->Node_GetName(node, &name));
    f->name = strdup(name ? name : "");
    OrtStatus *status = f->name ? NULL : host_no_memory(f->host);
    if (!status)
        status = list_Node_GetInputs(f->host, node, &in, &f->in_count);
    if (!status)
        status = list_Node_GetOutputs(f->host, node, &out, &f->out_count);
    if (!status)
        status = find_outputs(f, out);
    if (!status)
        status = get_program(f, ep, graph, out);
    if (!status)
        status = find_inputs(f, in);
    if (!status)
        status = make_plans(f, ep, graph, in);
    if (!status && kept && ep->options.context && f->host->CreateNode)
        status = keep_program(f, ep, graph, in, out, kept);
    free(in);
    free(out);
    return status;
}

// --- what a node computes with ---

static OrtStatus *create_state(OrtNodeComputeInfo *base, OrtNodeComputeContext *context, void **out)
{
    (void)context;
    *out = base; // nothing is held between runs
    return NULL;
}

static void release_state(OrtNodeComputeInfo *base, void *state)
{
    (void)base;
    (void)state;
}

// --- the host's calls ---

static OrtStatus *compile_one(const struct provider *ep, const OrtGraph *graph, const OrtNode *node,
                              OrtNodeComputeInfo **out, OrtNode **kept)
{
    struct fused *f = NEWLY(struct fused);
    if (!f)
        return host_no_memory(ep->host);
    f->base = (OrtNodeComputeInfo){.ort_version_supported = ep->host->version,
                                   .CreateState = create_state,
                                   .Compute = fused_compute,
                                   .ReleaseState = release_state};
    f->host = ep->host;
    OrtStatus *status = fill(f, ep, graph, node, kept);
    if (status)
        fused_destroy(f);
    else
        *out = &f->base;
    return status;
}

OrtStatus *provider_compile(OrtEp *base, const OrtGraph **graphs, const OrtNode **nodes,
                            size_t count, OrtNodeComputeInfo **infos, OrtNode **ep_context_nodes)
{
    OrtStatus *status = NULL;
    size_t done = 0;
    for (; done < count && !status; done += !status)
        status = compile_one((struct provider *)base, graphs[done], nodes[done], &infos[done],
                             ep_context_nodes ? &ep_context_nodes[done] : NULL);
    while (status && done > 0) {
        fused_destroy((struct fused *)infos[--done]);
        infos[done] = NULL;
    }
    return status;
}

void provider_release(OrtEp *base, OrtNodeComputeInfo **infos, size_t count)
{
    (void)base;
    for (size_t i = 0; i < count; i++)
        fused_destroy((struct fused *)infos[i]);
}
