// SPDX-License-Identifier: MIT
// The nodes that the host puts between its own and those of a card's provider: MemcpyFromHost and
// MemcpyToHost. Each provider with memory of its own brings them.
#include <stdlib.h>

#include "card.h"

struct kernel {
    OrtKernelImpl base;
    struct card *card;
    migraphx_copy_t way;
};

static OrtStatus *compute(OrtKernelImpl *base, OrtKernelContext *context)
{
    const struct kernel *k = (const struct kernel *)base;
    const struct host *h = k->card->host;
    const OrtValue *from = NULL;
    OrtValue *to = NULL;
    const int64_t *lens = NULL;
    struct copy copy = {.way = k->way};
    size_t rank = 0;
    int element = 0;
    HOST_TRY(h->KernelContext_GetInput(context, 0, &from));
    HOST_TRY(h->GetTensorElementTypeAndShapeDataReference(from, &element, &lens, &rank));
    HOST_TRY(h->KernelContext_GetOutput(context, 0, lens, rank, &to));
    HOST_TRY(h->GetTensorSizeInBytes(from, &copy.size));
    HOST_TRY(h->GetTensorData(from, &copy.from));
    HOST_TRY(h->GetTensorMutableData(to, &copy.to));
    return card_copy(k->card, &copy, 1);
}

static void release(OrtKernelImpl *base)
{
    free(base);
}

static OrtStatus *create(struct card *card, migraphx_copy_t way, OrtKernelImpl **out)
{
    struct kernel *k = NEWLY(struct kernel);
    if (!k)
        return host_no_memory(card->host);
    k->base = (OrtKernelImpl){
        .ort_version_supported = card->host->version, .Compute = compute, .Release = release};
    k->card = card;
    k->way = way;
    *out = &k->base;
    return NULL;
}

static OrtStatus *create_in(void *card, const OrtKernelInfo *info, OrtKernelImpl **out)
{
    (void)info;
    return create(card, migraphx_copy_in, out);
}

static OrtStatus *create_out(void *card, const OrtKernelInfo *info, OrtKernelImpl **out)
{
    (void)info;
    return create(card, migraphx_copy_out, out);
}

// What a card's provider hands over (capability.c).
static OrtStatus *allow_types(const struct host *h, OrtKernelDefBuilder *b)
{
    enum { FLOAT = 1, STRING = 8, DOUBLE = 11, COMPLEX64 = 14, COMPLEX128 = 15, LAST = 20 };
    const OrtDataType *types[LAST];
    size_t count = 0;
    for (int i = FLOAT; i <= LAST; i++)
        if (i != STRING && i != COMPLEX64 && i != COMPLEX128)
            HOST_TRY(h->GetTensorDataType(i, &types[count++]));
    return h->KernelDefBuilder_AddTypeConstraint(b, "T", types, count);
}

static OrtStatus *define(const struct host *h, OrtKernelDefBuilder *b, const char *provider,
                         bool in, OrtKernelDef **out)
{
    HOST_TRY(h->KernelDefBuilder_SetOperatorType(b, in ? "MemcpyFromHost" : "MemcpyToHost"));
    HOST_TRY(h->KernelDefBuilder_SetDomain(b, ""));
    HOST_TRY(h->KernelDefBuilder_SetSinceVersion(b, 1, 1));
    HOST_TRY(h->KernelDefBuilder_SetExecutionProvider(b, provider));
    HOST_TRY(in ? h->KernelDefBuilder_SetInputMemType(b, 0, ORT_OPERAND_HOST)
                : h->KernelDefBuilder_SetOutputMemType(b, 0, ORT_RESULT_HOST));
    HOST_TRY(allow_types(h, b));
    return h->KernelDefBuilder_Build(b, out);
}

static OrtStatus *add(struct card *card, const char *provider, bool in, OrtKernelRegistry *to)
{
    const struct host *h = card->host;
    OrtKernelDefBuilder *b = NULL;
    OrtKernelDef *def = NULL;
    HOST_TRY(h->CreateKernelDefBuilder(&b));
    OrtStatus *status = define(h, b, provider, in, &def);
    if (!status)
        status = h->KernelRegistry_AddKernel(to, def, in ? create_in : create_out, card);
    if (def)
        h->ReleaseKernelDef(def);
    h->ReleaseKernelDefBuilder(b);
    return status;
}

OrtStatus *card_kernels(struct card *card, const char *provider, OrtKernelRegistry **out)
{
    const struct host *h = card->host;
    HOST_TRY(h->CreateKernelRegistry(out));
    OrtStatus *status = add(card, provider, true, *out);
    if (!status)
        status = add(card, provider, false, *out);
    if (status) {
        h->ReleaseKernelRegistry(*out);
        *out = NULL;
    }
    return status;
}
