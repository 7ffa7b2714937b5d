// SPDX-License-Identifier: MIT
// From the graphs that were taken to programs, and their runs.
//
// A run hands the host's addresses to the engine and lets the host say where each result goes: no
// byte is copied but for strings. It takes no lock and compiles nothing.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

enum { STRING = 8, FEW = 32 };

struct fused {
    OrtNodeComputeInfo base;
    const struct host *host;
    migraphx_program_t program;
    size_t in_count, out_count;
    char **in_names; // by place among the node's inputs; NULL: the program does not read it
    migraphx_shape_datatype_t types[27]; // by the host's number of an element type
    migraphx_shape_datatype_t *out_types;
    bool has_texts; // some result is of strings
    char *name;
};

// --- compiling ---

static void fused_destroy(struct fused *f)
{
    if (!f)
        return;
    migraphx_program_destroy(f->program);
    for (size_t i = 0; f->in_names && i < f->in_count; i++)
        free(f->in_names[i]);
    free(f->in_names);
    free(f->out_types);
    free(f->name);
    free(f);
}

static void find_types(struct fused *f)
{
    static const char *const names[] = {
        NULL,    "float",  "uint8", "int8",      "uint16",      "int16",   "int32",
        "int64", "string", "bool",  "half",      "double",      "uint32",  "uint64",
        NULL,    NULL,     "bf16",  "fp8e4m3fn", "fp8e4m3fnuz", "fp8e5m2", "fp8e5m2fnuz",
        NULL,    NULL,     NULL,    NULL,        NULL,          "fp8e8m0"};
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
    if (status == migraphx_status_success && *o->isa)
        status = migraphx_compile_options_set_isa(c, o->isa);
    if (status == migraphx_status_success && *o->tuning_cache)
        status = migraphx_compile_options_set_tuning_cache(c, o->tuning_cache);
    return status;
}

static migraphx_status compile_program(migraphx_program_t program, const struct options *o)
{
    migraphx_target_t target = NULL;
    migraphx_compile_options_t c = NULL;
    migraphx_status status = quantize(program, o);
    if (status == migraphx_status_success)
        status = migraphx_target_create(&target, *o->device ? o->device : "cpu");
    if (status == migraphx_status_success)
        status = migraphx_compile_options_create(&c);
    if (status == migraphx_status_success)
        status = set_options(c, o);
    if (status == migraphx_status_success)
        status = migraphx_program_compile(program, target, c);
    if (status == migraphx_status_success && o->mem_limit)
        status = migraphx_program_set_run_memory(program, o->mem_limit);
    migraphx_compile_options_destroy(c);
    migraphx_target_destroy(target);
    return status;
}

static OrtStatus *make_program(struct fused *f, const OrtGraph *graph,
                               const OrtValueInfo *const *outputs, const struct options *o)
{
    migraphx_onnx_graph_t handed = NULL;
    migraphx_onnx_options_t options = NULL;
    HOST_TRY(graph_hand_over(f->host, graph, outputs, f->out_count, true, &handed));
    migraphx_status status = graph_options(&options);
    if (status == migraphx_status_success)
        status = migraphx_parse_onnx_graph(&f->program, handed, options);
    migraphx_onnx_options_destroy(options);
    migraphx_onnx_graph_destroy(handed);
    if (status == migraphx_status_success)
        status = compile_program(f->program, o);
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
    f->out_types = calloc(f->out_count + 1, sizeof *f->out_types);
    if (!f->out_types)
        return host_no_memory(f->host);
    for (size_t i = 0; i < f->out_count; i++) {
        struct value_type type;
        HOST_TRY(value_type_read(f->host, outputs[i], &type));
        f->out_types[i] = f->types[host_own_element(type.type.element)];
        f->has_texts |= type.type.element == STRING;
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
    return kept ? context_load(ep, graph, kept, &f->program)
                : make_program(f, graph, outputs, &ep->options);
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
    if (!status && kept && ep->options.context && f->host->CreateNode)
        status = keep_program(f, ep, graph, in, out, kept);
    free(in);
    free(out);
    return status;
}

// --- a run ---

struct run {
    const struct fused *fused;
    OrtKernelContext *context;
    OrtStatus *status; // of what the host could not do
};

static void *place(void *data, size_t index, migraphx_shape_datatype_t type, const size_t *lens,
                   size_t rank)
{
    struct run *r = data;
    const struct host *h = r->fused->host;
    OrtValue *value = NULL;
    void *at = NULL;
    if (r->status || type != r->fused->out_types[index]) {
        if (!r->status)
            r->status = host_fail(h, ORT_FAIL,
                                  "MIGraphX: result %zu of %s is of another type than the model "
                                  "says",
                                  index, r->fused->name);
        return NULL;
    }
    r->status = h->KernelContext_GetOutput(r->context, index, (const int64_t *)lens, rank, &value);
    if (!r->status && value)
        r->status = h->GetTensorMutableData(value, &at);
    return r->status ? NULL : at;
}

static OrtStatus *take_texts(const struct host *h, const OrtValue *value, const size_t *lens,
                             size_t rank, migraphx_argument_t *out)
{
    migraphx_shape_t shape = NULL;
    size_t size = 0, count = 1;
    HOST_TRY(h->GetStringTensorDataLength(value, &size));
    for (size_t i = 0; i < rank; i++)
        count *= lens[i];
    char *bytes = malloc(size + 1);
    size_t *offsets = calloc(2 * count + 1, sizeof *offsets);
    const char **texts = calloc(count + 1, sizeof *texts);
    OrtStatus *status = bytes && offsets && texts ? NULL : host_no_memory(h);
    if (!status && count)
        status = h->GetStringTensorContent(value, bytes, size, offsets, count);
    for (size_t i = 0; !status && i < count; i++) {
        texts[i] = bytes + offsets[i];
        offsets[count + i] = (i + 1 < count ? offsets[i + 1] : size) - offsets[i];
    }
    migraphx_shape_datatype_t type;
    if (!status && (migraphx_type_find(&type, "string") ||
                    migraphx_shape_create(&shape, type, (size_t *)lens, rank) ||
                    migraphx_argument_create_strings(out, shape, texts, offsets + count, count)))
        status = host_pass_on(h, "an input of strings");
    migraphx_shape_destroy(shape);
    free(bytes);
    free(offsets);
    free(texts);
    return status;
}

static OrtStatus *take_input(const struct fused *f, const OrtKernelContext *context, size_t index,
                             migraphx_buffer *out, migraphx_argument_t *texts)
{
    const struct host *h = f->host;
    const OrtValue *value = NULL;
    const int64_t *lens = NULL;
    int element = 0;
    HOST_TRY(h->KernelContext_GetInput(context, index, &value));
    if (!value)
        return host_fail(h, ORT_FAIL, "MIGraphX: input %s of %s is absent", f->in_names[index],
                         f->name);
    HOST_TRY(h->GetTensorElementTypeAndShapeDataReference(value, &element, &lens, &out->rank));
    out->name = f->in_names[index];
    out->lens = (const size_t *)lens;
    if (element == STRING) {
        HOST_TRY(take_texts(h, value, out->lens, out->rank, texts));
        out->argument = *texts;
        return NULL;
    }
    out->type = f->types[element];
    return h->GetTensorData(value, &out->data);
}

// --- results of strings ---

static OrtStatus *give_texts(const struct host *h, OrtKernelContext *context, size_t index,
                             const_migraphx_argument_t result)
{
    const_migraphx_shape_t shape = NULL;
    const size_t *lens = NULL;
    size_t rank = 0, is_scalar = 0, count = 0;
    OrtValue *value = NULL;
    ENGINE_TRY(h, "a result", migraphx_argument_shape(&shape, result));
    ENGINE_TRY(h, "a result", migraphx_shape_lengths(&lens, &rank, shape));
    ENGINE_TRY(h, "a result", migraphx_shape_rank(&is_scalar, shape));
    ENGINE_TRY(h, "a result", migraphx_shape_elements(&count, shape));
    HOST_TRY(h->KernelContext_GetOutput(context, index, (const int64_t *)lens, is_scalar ? rank : 0,
                                        &value));
    for (size_t i = 0; value && i < count; i++) {
        const char *text;
        size_t size;
        char *to = NULL;
        ENGINE_TRY(h, "a result", migraphx_argument_string(&text, &size, result, i));
        HOST_TRY(h->GetResizedStringTensorElementBuffer(value, i, size, &to));
        memcpy(to, text, size);
    }
    return NULL;
}

static OrtStatus *give_all_texts(const struct fused *f, OrtKernelContext *context,
                                 migraphx_arguments_t results)
{
    migraphx_shape_datatype_t string = f->types[STRING];
    for (size_t i = 0; i < f->out_count; i++) {
        const_migraphx_argument_t result = NULL;
        if (f->out_types[i] != string)
            continue;
        ENGINE_TRY(f->host, f->name, migraphx_arguments_get(&result, results, i));
        HOST_TRY(give_texts(f->host, context, i, result));
    }
    return NULL;
}

static OrtStatus *run_with(const struct fused *f, OrtKernelContext *context,
                           migraphx_buffer *buffers, migraphx_argument_t *texts)
{
    struct run r = {.fused = f, .context = context};
    migraphx_arguments_t results = NULL;
    size_t count = 0;
    for (size_t i = 0; i < f->in_count; i++)
        if (f->in_names[i]) {
            HOST_TRY(take_input(f, context, i, &buffers[count], &texts[count]));
            count++;
        }
    const migraphx_status status = migraphx_program_run_buffers(
        f->has_texts ? &results : NULL, f->program, buffers, count, place, &r);
    if (status != migraphx_status_success && !r.status)
        r.status = host_pass_on(f->host, f->name);
    if (!r.status && f->has_texts)
        r.status = give_all_texts(f, context, results);
    migraphx_arguments_destroy(results);
    return r.status;
}

static OrtStatus *compute(OrtNodeComputeInfo *base, void *state, OrtKernelContext *context)
{
    (void)state;
    const struct fused *f = (const struct fused *)base;
    migraphx_buffer few[FEW] = {{0}}, *buffers = few;
    migraphx_argument_t few_texts[FEW] = {0}, *texts = few_texts;
    if (f->in_count > FEW) {
        buffers = calloc(f->in_count, sizeof *buffers);
        texts = calloc(f->in_count, sizeof *texts);
    }
    OrtStatus *status =
        buffers && texts ? run_with(f, context, buffers, texts) : host_no_memory(f->host);
    for (size_t i = 0; texts && i < f->in_count; i++)
        migraphx_argument_destroy(texts[i]);
    if (f->in_count > FEW) {
        free(buffers);
        free(texts);
    }
    return status;
}

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
                                   .Compute = compute,
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
