// SPDX-License-Identifier: MIT
// A provider of one session.
#include <stdlib.h>
#include <string.h>

#include "card.h"
#include "ranges.h"

static const char *get_name(const OrtEp *base)
{
    return ((const struct provider *)base)->name;
}

// Any number of threads may run one session.
static OrtStatus *is_concurrent(OrtEp *base, bool *out)
{
    (void)base;
    *out = true;
    return NULL;
}

// The host's own copies between its nodes and these.
static OrtStatus *get_kernels(OrtEp *base, const OrtKernelRegistry **out)
{
    *out = ((const struct provider *)base)->kernels;
    return NULL;
}

static OrtStatus *get_memory(const OrtEp *base, const OrtMemoryDevice **out)
{
    const struct provider *ep = (const struct provider *)base;
    *out = ep->card ? ep->host->MemoryInfo_GetMemoryDevice(ep->card->memory) : NULL;
    return NULL;
}

static OrtStatus *set_up(struct provider *ep, const OrtSessionOptions *session)
{
    HOST_TRY(options_read(&ep->options, ep->host, ep->logger, ep->name, session));
    if (ep->options.int8)
        HOST_TRY(ranges_read(ep->host, ep->options.table, &ep->ranges));
    if (!ep->card)
        return NULL;
    const char *target = ep->options.device;
    if (*target && strcmp(target, "gpu") != 0)
        return host_fail(ep->host, ORT_INVALID_ARGUMENT,
                         "MIGraphX: option target is \"%s\", but the session's device is card %s",
                         target, ep->card->name);
    return card_kernels(ep->card, ep->name, &ep->kernels);
}

OrtStatus *provider_create(const struct factory *factory, struct card *card,
                           const OrtSessionOptions *session, const OrtLogger *logger, OrtEp **out)
{
    const struct host *h = &factory->host;
    struct provider *ep = NEWLY(struct provider);
    if (!ep)
        return host_no_memory(h);
    ep->base = (OrtEp){.ort_version_supported = h->version,
                       .GetName = get_name,
                       .GetCapability = provider_capability,
                       .Compile = provider_compile,
                       .ReleaseNodeComputeInfos = provider_release,
                       .GetKernelRegistry = card ? get_kernels : NULL,
                       .IsConcurrentRunSupported = is_concurrent,
                       .CreateProfiler = profiler_create,
                       .GetDefaultMemoryDevice = get_memory};
    ep->host = h;
    ep->logger = logger;
    ep->name = factory->name;
    ep->card = card;
    OrtStatus *status = set_up(ep, session);
    if (status)
        provider_destroy(&ep->base);
    else
        *out = &ep->base;
    return status;
}

void provider_destroy(OrtEp *base)
{
    struct provider *ep = (struct provider *)base;
    if (ep && ep->kernels)
        ep->host->ReleaseKernelRegistry(ep->kernels);
    if (ep)
        ranges_destroy(ep->ranges);
    free(ep);
}
