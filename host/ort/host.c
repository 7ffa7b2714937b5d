// SPDX-License-Identifier: MIT
// The host's functions, failures in its form, lists, types.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

// --- tables ---

// "1.31.1" is version 31 of the interface.
static uint32_t version_of(const char *text)
{
    const char *dot = text ? strchr(text, '.') : NULL;
    const long minor = dot ? strtol(dot + 1, NULL, 10) : 0;
    return minor > ORT_API_NEWEST ? ORT_API_NEWEST : (uint32_t)(minor < 0 ? 0 : minor);
}

bool host_read(struct host *out, const OrtApiBase *base)
{
    enum { PROFILES = 25 };
    *out = (struct host){0};
    const void *const *table = base->GetApi(ORT_API_OLDEST);
    if (!table)
        return false;
#define X(place, result, name, arguments) memcpy(&out->name, &table[place], sizeof out->name);
    ORT_CALLS(X)
    table = out->GetEpApi();
    ORT_EP_CALLS(X)
    if (version_of(base->GetVersionString()) >= PROFILES) {
        ORT_EP_CALLS_25(X)
    }
    table = out->GetModelEditorApi();
    if (table) {
        ORT_EDITOR_CALLS(X)
    }
#undef X
    out->version = version_of(base->GetVersionString());
    return out->version >= ORT_API_OLDEST;
}

// --- failures ---

OrtStatus *host_fail(const struct host *h, int code, const char *fmt, ...)
{
    char text[4096];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return h->CreateStatus(code, text);
}

OrtStatus *host_no_memory(const struct host *h)
{
    return h->CreateStatus(ORT_FAIL, "MIGraphX: out of memory");
}

OrtStatus *host_pass_on(const struct host *h, const char *what)
{
    return host_fail(h, ORT_FAIL, "MIGraphX: %s: %s", what, migraphx_last_error());
}

void host_log(const struct host *h, const OrtLogger *logger, int severity, const char *fmt, ...)
{
    char text[4096];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    OrtStatus *status =
        logger ? h->Logger_LogMessage(logger, severity, text, "migraphx_ort", 0, "") : NULL;
    if (status)
        h->ReleaseStatus(status);
}

enum { HOST_UINT2 = 24, HOST_INT2 = 25, HOST_E8M0 = 26, E8M0 = 24, UINT2 = 25, INT2 = 26 };

int host_element(int type)
{
    return type == HOST_UINT2 ? UINT2 : type == HOST_INT2 ? INT2 : type == HOST_E8M0 ? E8M0 : type;
}

int host_own_element(int element)
{
    return element == UINT2  ? HOST_UINT2
           : element == INT2 ? HOST_INT2
           : element == E8M0 ? HOST_E8M0
                             : element;
}

// --- lists ---

static size_t ask(const struct host *h, OrtStatus *status, size_t count)
{
    if (status)
        h->ReleaseStatus(status);
    return status ? 0 : count;
}

#define COUNT(fn, of)                                                                              \
    static size_t count_##fn(const struct host *h, const of *from)                                 \
    {                                                                                              \
        size_t count = 0;                                                                          \
        OrtStatus *status = h->fn(from, &count);                                                   \
        return ask(h, status, count);                                                              \
    }
COUNT(Graph_GetNumNodes, OrtGraph)
COUNT(Graph_GetNumInputs, OrtGraph)
COUNT(Graph_GetNumOutputs, OrtGraph)
COUNT(Graph_GetNumInitializers, OrtGraph)
COUNT(Node_GetNumInputs, OrtNode)
COUNT(Node_GetNumImplicitInputs, OrtNode)
COUNT(Node_GetNumOutputs, OrtNode)
COUNT(Node_GetNumAttributes, OrtNode)
#undef COUNT
#define count_of_Graph_GetNodes count_Graph_GetNumNodes
#define count_of_Graph_GetInputs count_Graph_GetNumInputs
#define count_of_Graph_GetOutputs count_Graph_GetNumOutputs
#define count_of_Graph_GetInitializers count_Graph_GetNumInitializers
#define count_of_Node_GetInputs count_Node_GetNumInputs
#define count_of_Node_GetImplicitInputs count_Node_GetNumImplicitInputs
#define count_of_Node_GetOutputs count_Node_GetNumOutputs
#define count_of_Node_GetAttributes count_Node_GetNumAttributes

#define DEFINE(T, name, of)                                                                        \
    OrtStatus *list_##name(const struct host *h, const of *from, const T ***out, size_t *count)    \
    {                                                                                              \
        *count = count_of_##name(h, from);                                                         \
        *out = calloc(*count + 1, sizeof **out);                                                   \
        if (!*out)                                                                                 \
            return host_no_memory(h);                                                              \
        OrtStatus *status = *count ? h->name(from, *out, *count) : NULL;                           \
        if (status) {                                                                              \
            free(*out);                                                                            \
            *out = NULL;                                                                           \
        }                                                                                          \
        return status;                                                                             \
    }
LISTS(DEFINE)
#undef DEFINE

// --- values ---

const char *value_name(const struct host *h, const OrtValueInfo *value)
{
    const char *name = NULL;
    OrtStatus *status = value ? h->GetValueInfoName(value, &name) : NULL;
    if (status)
        h->ReleaseStatus(status);
    return name ? name : "";
}

bool value_is_constant(const struct host *h, const OrtValueInfo *value)
{
    bool constant = false;
    OrtStatus *status = value ? h->ValueInfo_IsConstantInitializer(value, &constant) : NULL;
    if (status)
        h->ReleaseStatus(status);
    return !status && constant;
}

static OrtStatus *read_tensor(const struct host *h, const OrtTypeInfo *info, struct value_type *out)
{
    const OrtTensorTypeAndShapeInfo *tensor = NULL;
    size_t rank = 0;
    HOST_TRY(h->CastTypeInfoToTensorInfo(info, &tensor));
    if (!tensor)
        return NULL;
    HOST_TRY(h->GetTensorElementType(tensor, &out->type.element));
    out->type.element = host_element(out->type.element);
    out->type.rank = -1;
    out->known = out->type.element != 0;
    if (!h->TensorTypeAndShape_HasShape(tensor))
        return NULL;
    HOST_TRY(h->GetDimensionsCount(tensor, &rank));
    if (rank > MOST_RANK) {
        out->known = false;
        return NULL;
    }
    HOST_TRY(h->GetDimensions(tensor, out->lens, rank));
    if (rank)
        HOST_TRY(h->GetSymbolicDimensions(tensor, out->names, rank));
    out->type.rank = (int)rank;
    return NULL;
}

static OrtStatus *read_type(const struct host *h, const OrtTypeInfo *info, struct value_type *out);

static OrtStatus *read_sequence(const struct host *h, const OrtTypeInfo *info,
                                struct value_type *out)
{
    const OrtSequenceTypeInfo *sequence = NULL;
    OrtTypeInfo *inner = NULL;
    const migraphx_onnx_container_t around = out->type.container;
    HOST_TRY(h->CastTypeInfoToSequenceTypeInfo(info, &sequence));
    if (!sequence || around == migraphx_onnx_sequence || around == migraphx_onnx_optional_sequence)
        return NULL; // a sequence of sequences
    HOST_TRY(h->GetSequenceElementType(sequence, &inner));
    out->type.container =
        around == migraphx_onnx_optional ? migraphx_onnx_optional_sequence : migraphx_onnx_sequence;
    OrtStatus *status = read_type(h, inner, out);
    if (out->type.rank > 0) { // names live as long as the type does
        memset(out->names, 0, sizeof out->names);
        out->type.names = NULL;
    }
    h->ReleaseTypeInfo(inner);
    return status;
}

static OrtStatus *read_optional(const struct host *h, const OrtTypeInfo *info,
                                struct value_type *out)
{
    const OrtOptionalTypeInfo *optional = NULL;
    OrtTypeInfo *inner = NULL;
    HOST_TRY(h->CastTypeInfoToOptionalTypeInfo(info, &optional));
    if (!optional || out->type.container != migraphx_onnx_tensor)
        return NULL;
    HOST_TRY(h->GetOptionalContainedTypeInfo(optional, &inner));
    out->type.container = migraphx_onnx_optional;
    OrtStatus *status = read_type(h, inner, out);
    memset(out->names, 0, sizeof out->names);
    h->ReleaseTypeInfo(inner);
    return status;
}

static OrtStatus *read_type(const struct host *h, const OrtTypeInfo *info, struct value_type *out)
{
    int kind = 0;
    HOST_TRY(h->GetOnnxTypeFromTypeInfo(info, &kind));
    return kind == ORT_TYPE_TENSOR     ? read_tensor(h, info, out)
           : kind == ORT_TYPE_SEQUENCE ? read_sequence(h, info, out)
           : kind == ORT_TYPE_OPTIONAL ? read_optional(h, info, out)
                                       : NULL; // maps, sparse tensors and others stay unknown
}

static bool can_cross(int element)
{
    enum { COMPLEX64 = 14, COMPLEX128 = 15 };
    return element >= 1 && element <= INT2 && element != COMPLEX64 && element != COMPLEX128;
}

OrtStatus *value_type_read(const struct host *h, const OrtValueInfo *value, struct value_type *out)
{
    const OrtTypeInfo *info = NULL;
    *out = (struct value_type){0};
    HOST_TRY(h->GetValueInfoTypeInfo(value, &info));
    if (info)
        HOST_TRY(read_type(h, info, out));
    if (!out->known) // whoever reads it is not taken (capability.c)
        out->type = (migraphx_onnx_type){.element = 1, .rank = -1};
    out->type.lens = out->lens;
    out->type.names = out->names;
    out->crosses =
        out->known && out->type.container == migraphx_onnx_tensor && can_cross(out->type.element);
    return NULL;
}
