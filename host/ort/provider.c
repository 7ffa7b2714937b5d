// SPDX-License-Identifier: MIT
// A provider of one session.
#include <stdlib.h>

#include "plugin.h"

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

OrtStatus *provider_create(const struct factory *factory, const OrtSessionOptions *session,
                           const OrtLogger *logger, OrtEp **out)
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
                       .IsConcurrentRunSupported = is_concurrent,
                       .CreateProfiler = profiler_create};
    ep->host = h;
    ep->logger = logger;
    ep->name = factory->name;
    OrtStatus *status = options_read(&ep->options, h, logger, factory->name, session);
    if (status)
        free(ep);
    else
        *out = &ep->base;
    return status;
}

void provider_destroy(OrtEp *ep)
{
    free(ep);
}
