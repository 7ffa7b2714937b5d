// SPDX-License-Identifier: MIT
// Products in bytes by a calibration table, as nodes of the graph:
//
//     x   =>   DequantizeLinear(QuantizeLinear(x, s), s)      s = range / 127, or / 255 from 0 on
//     w   =>   the same, a scale for each channel of the result
//
// The engine makes products of integers of these, and rounds weights when it compiles. What is
// neither a weight of floats nor in the table leaves its product wide.
// Cost: a walk over the weights of such products, for their scales.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranges.h"

enum { FLOAT = 1, UINT8 = 2, INT8 = 3, NO_AXIS = -1 };

struct factor {
    const char *name;
    int axis; // of weights that have a scale for each place along it
    int type;
    size_t count;
    float *scales;
};

void bytes_fini(struct bytes_of_graph *b)
{
    for (size_t i = 0; i < b->count; i++)
        free(b->texts[i]);
    free(b->texts);
    names_fini(&b->made);
}

// "<name>:<axis>:<what>", which lives as long as `b`; NULL without memory.
static const char *own_name(struct bytes_of_graph *b, const struct factor *f, const char *what)
{
    if (b->count == b->room) {
        const size_t room = b->room ? 2 * b->room : 64;
        char **more = realloc(b->texts, room * sizeof *more);
        if (!more)
            return NULL;
        b->texts = more;
        b->room = room;
    }
    const size_t size = strlen(f->name) + strlen(what) + 16;
    char *text = malloc(size);
    if (text) {
        snprintf(text, size, "%s:%d:%s", f->name, f->axis, what);
        b->texts[b->count++] = text;
    }
    return text;
}

// --- scales ---

static float scale_of(double magnitude, double steps)
{
    return magnitude > 0 ? (float)fmax(magnitude / steps, 1e-30) : 1;
}

// The largest number at each place of the axis.
static void measure(const float *w, const int64_t *lens, size_t rank, struct factor *f)
{
    size_t inner = 1, all = 1;
    for (size_t i = 0; i < rank; i++)
        all *= (size_t)lens[i];
    for (size_t i = rank; f->axis != NO_AXIS && i > (size_t)f->axis + 1; i--)
        inner *= (size_t)lens[i - 1];
    for (size_t i = 0; i < all; i++) {
        float *at = &f->scales[f->axis == NO_AXIS ? 0 : i / inner % f->count];
        *at = fmaxf(*at, fabsf(w[i]));
    }
    for (size_t i = 0; i < f->count; i++)
        f->scales[i] = scale_of(f->scales[i], 127);
}

static OrtStatus *read_weight(const struct host *h, const OrtValueInfo *info, struct factor *f,
                              bool *known)
{
    const OrtValue *value = NULL;
    const void *data = NULL;
    const int64_t *lens = NULL;
    size_t rank = 0;
    int element = 0;
    HOST_TRY(h->ValueInfo_GetInitializerValue(info, &value));
    if (!value)
        return NULL;
    HOST_TRY(h->GetTensorElementTypeAndShapeDataReference(value, &element, &lens, &rank));
    if (host_element(element) != FLOAT)
        return NULL;
    if (f->axis >= (int)rank || (f->axis == 1 && rank > 2)) // of a batch of matrices all have one
        f->axis = NO_AXIS;
    f->count = f->axis == NO_AXIS ? 1 : (size_t)lens[f->axis];
    f->type = INT8;
    f->scales = calloc(f->count + 1, sizeof *f->scales);
    if (!f->scales)
        return host_no_memory(h);
    HOST_TRY(h->GetTensorData(value, &data));
    measure(data, lens, rank, f);
    *known = true;
    return NULL;
}

static OrtStatus *read_value(const struct bytes_of_graph *b, const OrtValueInfo *info,
                             struct factor *f, bool *known)
{
    struct value_type type;
    double low, high;
    HOST_TRY(value_type_read(b->host, info, &type));
    if (!type.known || type.type.element != FLOAT || !ranges_find(b->ranges, f->name, &low, &high))
        return NULL;
    f->axis = NO_AXIS;
    f->count = 1;
    f->type = low < 0 ? INT8 : UINT8;
    f->scales = calloc(1, sizeof *f->scales);
    if (!f->scales)
        return host_no_memory(b->host);
    f->scales[0] = scale_of(fmax(-low, high), low < 0 ? 127 : 255);
    *known = true;
    return NULL;
}

// --- nodes ---

static OrtStatus *add_constant(struct bytes_of_graph *b, const struct factor *f, const char *name,
                               int type, const void *data, size_t size)
{
    const int64_t lens[] = {(int64_t)f->count};
    ENGINE_TRY(b->host, name,
               migraphx_onnx_graph_add_initializer_kept(b->graph, name, type, lens,
                                                        f->axis != NO_AXIS, data, size));
    return NULL;
}

static OrtStatus *add_node(struct bytes_of_graph *b, const struct factor *f, const char *op,
                           const char *const *in, const char *out)
{
    ENGINE_TRY(b->host, out,
               migraphx_onnx_graph_add_node(b->graph, out, op, "com.microsoft", in, 3, &out, 1));
    if (f->axis != NO_AXIS)
        ENGINE_TRY(b->host, out, migraphx_onnx_graph_set_int(b->graph, "axis", f->axis));
    return NULL;
}

static OrtStatus *round_factor(struct bytes_of_graph *b, const struct factor *f, const char **out)
{
    const char *scale = own_name(b, f, "scale"), *zero = own_name(b, f, "zero"),
               *narrow = own_name(b, f, "bytes"), *wide = own_name(b, f, "rounded");
    char *zeros = calloc(f->count + 1, 1);
    if (!scale || !zero || !narrow || !wide || !zeros) {
        free(zeros);
        return host_no_memory(b->host);
    }
    *out = wide;
    OrtStatus *status = NULL;
    if (!names_find(&b->made, wide, NULL)) {
        status = names_put(&b->made, wide, 0) ? NULL : host_no_memory(b->host);
        if (!status)
            status = add_constant(b, f, scale, FLOAT, f->scales, f->count * sizeof(float));
        if (!status)
            status = add_constant(b, f, zero, f->type, zeros, f->count);
        if (!status)
            status =
                add_node(b, f, "QuantizeLinear", (const char *[]){f->name, scale, zero}, narrow);
        if (!status)
            status =
                add_node(b, f, "DequantizeLinear", (const char *[]){narrow, scale, zero}, wide);
    }
    free(zeros);
    return status;
}

// --- products ---

static OrtStatus *is_transposed(const struct host *h, const OrtNode *node, bool *out)
{
    const OrtOpAttr **list;
    size_t count;
    HOST_TRY(list_Node_GetAttributes(h, node, &list, &count));
    OrtStatus *status = NULL;
    for (size_t i = 0; i < count && !status; i++) {
        const char *name = NULL;
        void *data;
        size_t size;
        status = h->OpAttr_GetName(list[i], &name);
        if (status || strcmp(name, "transB") != 0)
            continue;
        status = attribute_read(h, list[i], ORT_ATTR_INT, &data, &size);
        if (status)
            break;
        *out = *(const int64_t *)data != 0;
        free(data);
    }
    free(list);
    return status;
}

// Along which axis of a product's second factor the channels of its result lie; below NO_AXIS: it is
// no product.
static OrtStatus *axis_of(const struct host *h, const OrtNode *node, int *out)
{
    const char *op = NULL, *domain = NULL;
    bool transposed = false;
    *out = NO_AXIS - 1;
    HOST_TRY(h->Node_GetOperatorType(node, &op));
    HOST_TRY(h->Node_GetDomain(node, &domain));
    if (*domain && strcmp(domain, "ai.onnx") != 0)
        return NULL;
    if (strcmp(op, "Conv") == 0)
        *out = 0;
    else if (strcmp(op, "MatMul") == 0)
        *out = 1;
    else if (strcmp(op, "Gemm") == 0) {
        HOST_TRY(is_transposed(h, node, &transposed));
        *out = transposed ? 0 : 1;
    }
    return NULL;
}

static OrtStatus *read_factor(const struct bytes_of_graph *b, const OrtValueInfo *info,
                              struct factor *f, bool *known)
{
    *known = false;
    return value_is_constant(b->host, info) ? read_weight(b->host, info, f, known)
                                            : read_value(b, info, f, known);
}

OrtStatus *bytes_of_product(struct bytes_of_graph *b, const OrtNode *node, const OrtValueInfo **in,
                            size_t count, const char **names)
{
    int axis;
    bool known = b->ranges && count >= 2;
    if (!known)
        return NULL;
    HOST_TRY(axis_of(b->host, node, &axis));
    struct factor f[2] = {{.name = names[0], .axis = NO_AXIS}, {.name = names[1], .axis = axis}};
    OrtStatus *status = NULL;
    known = axis >= NO_AXIS;
    for (int i = 0; i < 2 && known && !status; i++)
        status = read_factor(b, in[i], &f[i], &known);
    for (int i = 0; i < 2 && known && !status; i++)
        status = round_factor(b, &f[i], &names[i]);
    for (int i = 0; i < 2; i++)
        free(f[i].scales);
    return status;
}
