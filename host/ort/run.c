// SPDX-License-Identifier: MIT
// Runs of what was taken.
//
// A run hands the host's addresses to the engine and lets the host say where each result goes: no
// byte is copied but of strings and of types narrower than a byte. It takes no lock and compiles
// nothing.
#include <stdlib.h>
#include <string.h>

#include "card.h"
#include "fused.h"

enum { FEW = 32 };

bool fused_is_value(int element)
{
    return element == STRING || narrow_bits(element) != 0;
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
    const int element = r->fused->out_elements[index];
    if (fused_is_value(element)) // given when the run is over
        return NULL;
    if (r->status || type != r->fused->types[element]) {
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

static OrtStatus *take_narrow(const struct host *h, const OrtValue *value, int element,
                              const migraphx_buffer *b, migraphx_argument_t *out)
{
    migraphx_shape_t shape = NULL;
    const void *packed = NULL;
    size_t count = 1;
    HOST_TRY(h->GetTensorData(value, &packed));
    for (size_t i = 0; i < b->rank; i++)
        count *= b->lens[i];
    void *bytes = narrow_unpack(packed, count, element);
    if (!bytes)
        return host_no_memory(h);
    migraphx_status status =
        b->rank ? migraphx_shape_create(&shape, b->type, (size_t *)b->lens, b->rank)
                : migraphx_shape_create_scalar(&shape, b->type);
    if (status == migraphx_status_success)
        status = migraphx_argument_create_owned(out, shape, bytes, free, bytes);
    migraphx_shape_destroy(shape);
    if (status == migraphx_status_success)
        return NULL;
    free(bytes);
    return host_pass_on(h, "an input");
}

static OrtStatus *take_input(const struct fused *f, const OrtKernelContext *context, size_t index,
                             migraphx_buffer *out, migraphx_argument_t *made)
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
    out->type = f->types[element];
    if (!fused_is_value(element))
        return h->GetTensorData(value, &out->data);
    HOST_TRY(element == STRING ? take_texts(h, value, out->lens, out->rank, made)
                               : take_narrow(h, value, element, out, made));
    out->argument = *made;
    return NULL;
}

// --- results without a place ---

static OrtStatus *give_texts(const struct host *h, OrtValue *value, size_t count,
                             const_migraphx_argument_t result)
{
    for (size_t i = 0; i < count; i++) {
        const char *text;
        size_t size;
        char *to = NULL;
        ENGINE_TRY(h, "a result", migraphx_argument_string(&text, &size, result, i));
        HOST_TRY(h->GetResizedStringTensorElementBuffer(value, i, size, &to));
        memcpy(to, text, size);
    }
    return NULL;
}

static OrtStatus *give_narrow(const struct host *h, OrtValue *value, size_t count, int element,
                              const_migraphx_argument_t result)
{
    char *bytes = NULL;
    void *to = NULL;
    ENGINE_TRY(h, "a result", migraphx_argument_buffer(&bytes, result));
    HOST_TRY(h->GetTensorMutableData(value, &to));
    narrow_pack(bytes, count, element, to);
    return NULL;
}

static OrtStatus *give_value(const struct fused *f, OrtKernelContext *context, size_t index,
                             const_migraphx_argument_t result)
{
    const struct host *h = f->host;
    const_migraphx_shape_t shape = NULL;
    const size_t *lens = NULL;
    size_t count = 0, rank = 0, axes = 0;
    OrtValue *value = NULL;
    migraphx_shape_datatype_t type;
    ENGINE_TRY(h, f->name, migraphx_argument_shape(&shape, result));
    ENGINE_TRY(h, f->name, migraphx_shape_type(&type, shape));
    if (type != f->types[f->out_elements[index]])
        return host_fail(h, ORT_FAIL,
                         "MIGraphX: result %zu of %s is of another type than the "
                         "model says",
                         index, f->name);
    ENGINE_TRY(h, f->name, migraphx_shape_lengths(&lens, &rank, shape));
    ENGINE_TRY(h, f->name, migraphx_shape_rank(&axes, shape)); // 0 of a scalar
    ENGINE_TRY(h, f->name, migraphx_shape_elements(&count, shape));
    HOST_TRY(
        h->KernelContext_GetOutput(context, index, (const int64_t *)lens, axes ? rank : 0, &value));
    if (!value)
        return NULL;
    return f->out_elements[index] == STRING
               ? give_texts(h, value, count, result)
               : give_narrow(h, value, count, f->out_elements[index], result);
}

static OrtStatus *give_values(const struct fused *f, OrtKernelContext *context,
                              migraphx_arguments_t results)
{
    for (size_t i = 0; i < f->out_count; i++) {
        const_migraphx_argument_t result = NULL;
        if (!fused_is_value(f->out_elements[i]))
            continue;
        ENGINE_TRY(f->host, f->name, migraphx_arguments_get(&result, results, i));
        HOST_TRY(give_value(f, context, i, result));
    }
    return NULL;
}

static OrtStatus *run_on_host(const struct fused *f, OrtKernelContext *context,
                              const migraphx_buffer *buffers, size_t count)
{
    struct run r = {.fused = f, .context = context};
    migraphx_arguments_t results = NULL, *out = f->has_values ? &results : NULL;
    migraphx_status status;
    if (!profiler_run(f, out, buffers, count, place, &r, &status))
        status = migraphx_program_run_buffers(out, f->program, buffers, count, place, &r);
    if (status != migraphx_status_success && !r.status)
        r.status = host_pass_on(f->host, f->name);
    if (!r.status && f->has_values)
        r.status = give_values(f, context, results);
    migraphx_arguments_destroy(results);
    return r.status;
}

static OrtStatus *run_with(const struct fused *f, OrtKernelContext *context,
                           migraphx_buffer *buffers, migraphx_argument_t *made)
{
    size_t count = 0;
    for (size_t i = 0; i < f->in_count; i++)
        if (f->in_names[i]) {
            HOST_TRY(take_input(f, context, i, &buffers[count], &made[count]));
            count++;
        }
    if (f->plans)
        return card_compute(f->plans, context, buffers, count);
    struct filled filled = {{0}};
    if (f->fill.there)
        HOST_TRY(fill_run(f, buffers, &filled));
    OrtStatus *status = run_on_host(f, context, buffers, count);
    free(filled.data);
    return status;
}

OrtStatus *fused_compute(OrtNodeComputeInfo *base, void *state, OrtKernelContext *context)
{
    (void)state;
    const struct fused *f = (const struct fused *)base;
    migraphx_buffer few[FEW] = {{0}}, *buffers = few;
    migraphx_argument_t few_made[FEW] = {0}, *made = few_made;
    if (f->in_count > FEW) {
        buffers = calloc(f->in_count, sizeof *buffers);
        made = calloc(f->in_count, sizeof *made);
    }
    OrtStatus *status =
        buffers && made ? run_with(f, context, buffers, made) : host_no_memory(f->host);
    for (size_t i = 0; made && i < f->in_count; i++)
        migraphx_argument_destroy(made[i]);
    if (f->in_count > FEW) {
        free(buffers);
        free(made);
    }
    return status;
}
