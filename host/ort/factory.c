// SPDX-License-Identifier: MIT
// The two functions that the host finds by their names, and what it asks of a factory.
//
// The provider has several names: its own, by which sessions find it in every version; that of
// MIGraphX's own provider, which needs its device; and that of AMD's, for who registers it so.
#include <stdlib.h>
#include <string.h>

#include "card.h"

#define EXPORT __attribute__((visibility("default")))

static const char own_name[] = "MgxExecutionProvider";
static const char migraphx_name[] = "MIGraphXExecutionProvider";
static const char amd_name[] = "AMDGPUExecutionProvider";
const char *const provider_names[] = {own_name, migraphx_name, amd_name, NULL};

static const char *get_name(const OrtEpFactory *base)
{
    return ((const struct factory *)base)->name;
}

static const char *get_vendor(const OrtEpFactory *base)
{
    (void)base;
    return "migraphx";
}

static uint32_t get_vendor_id(const OrtEpFactory *base)
{
    (void)base;
    return 0;
}

// A version as the host wants it: three numbers.
static const char *get_version(const OrtEpFactory *base)
{
    (void)base;
    return MGX_ORT_VERSION;
}

static OrtStatus *offer_cards(struct factory *f, OrtEpDevice **out, size_t room, size_t *count)
{
    const struct host *h = &f->host;
    for (size_t i = 0; i < f->cards->count && *count < room; i++) {
        const struct card *c = &f->cards->list[i];
        HOST_TRY(h->CreateEpDevice(&f->base, c->hardware, NULL, NULL, &out[*count]));
        ++*count; // the host's, whatever comes next
        HOST_TRY(h->EpDevice_AddAllocatorInfo(out[*count - 1], c->memory));
    }
    return NULL;
}

// Cards, and the host's processor once. Who uses AMD's provider gets a card where there is one: all
// devices of that name are taken together.
static OrtStatus *get_devices(OrtEpFactory *base, const OrtHardwareDevice *const *devices,
                              size_t count, OrtEpDevice **out, size_t room, size_t *out_count)
{
    struct factory *f = (struct factory *)base;
    const struct host *h = &f->host;
    *out_count = 0;
    HOST_TRY(cards_find(f->cards, devices, count));
    HOST_TRY(offer_cards(f, out, room, out_count));
    if (f->name == amd_name && *out_count)
        return NULL;
    for (size_t i = 0; i < count && *out_count < room; i++) {
        if (h->HardwareDevice_Type(devices[i]) != ORT_DEVICE_CPU)
            continue;
        HOST_TRY(h->CreateEpDevice(base, devices[i], NULL, NULL, &out[*out_count]));
        ++*out_count;
        break;
    }
    return NULL;
}

static OrtStatus *create_ep(OrtEpFactory *base, const OrtHardwareDevice *const *devices,
                            const OrtKeyValuePairs *const *metadata, size_t count,
                            const OrtSessionOptions *session, const OrtLogger *logger, OrtEp **out)
{
    (void)metadata;
    const struct factory *f = (const struct factory *)base;
    struct card *card = NULL; // the first that is given; with none, the processor
    for (size_t i = 0; i < count && !card; i++)
        card = cards_of_hardware(f->cards, devices[i]);
    return provider_create(f, card, session, logger, out);
}

static void release_ep(OrtEpFactory *base, OrtEp *ep)
{
    (void)base;
    provider_destroy(ep);
}

// --- what processors need no answer to; the host calls all of these ---

static OrtStatus *validate(OrtEpFactory *base, const OrtHardwareDevice *const *devices,
                           size_t count, const char *info, int *out)
{
    enum { NOT_APPLICABLE = 0 };
    (void)base;
    (void)devices;
    (void)count;
    (void)info;
    *out = NOT_APPLICABLE;
    return NULL;
}

// --- what cards alone have ---

static OrtStatus *create_allocator(OrtEpFactory *base, const OrtMemoryInfo *memory,
                                   const OrtKeyValuePairs *options, OrtAllocator **out)
{
    (void)options;
    struct card *card = cards_of_memory(((struct factory *)base)->cards, memory);
    *out = card ? &card->allocator : NULL; // one for all; of the processor: the host's own
    return NULL;
}

static void release_allocator(OrtEpFactory *base, OrtAllocator *allocator)
{
    (void)base;
    (void)allocator;
}

static OrtStatus *create_transfer(OrtEpFactory *base, OrtDataTransferImpl **out)
{
    return card_transfer_create(((struct factory *)base)->cards, out);
}

static bool is_stream_aware(const OrtEpFactory *base)
{
    (void)base;
    return false;
}

static OrtStatus *create_stream(OrtEpFactory *base, const OrtMemoryDevice *device,
                                const OrtKeyValuePairs *options, OrtSyncStreamImpl **out)
{
    (void)device;
    (void)options;
    *out = NULL;
    return host_fail(&((struct factory *)base)->host, ORT_NOT_IMPLEMENTED,
                     "MIGraphX: runs and copies are done when a call returns");
}

static OrtStatus *get_incompatibility(OrtEpFactory *base, const OrtHardwareDevice *device,
                                      OrtDeviceEpIncompatibilityDetails *details)
{
    (void)base;
    (void)device;
    (void)details;
    return NULL;
}

static OrtStatus *create_importer(OrtEpFactory *base, const OrtEpDevice *device,
                                  OrtExternalResourceImporterImpl **out)
{
    (void)base;
    (void)device;
    *out = NULL;
    return NULL;
}

static OrtStatus *count_domains(OrtEpFactory *base, size_t *out)
{
    (void)base;
    *out = 0;
    return NULL;
}

static OrtStatus *get_domains(OrtEpFactory *base, OrtCustomOpDomain **out, size_t count)
{
    (void)base;
    (void)out;
    (void)count;
    return NULL;
}

// --- factories ---

static struct factory *create(const struct host *host, const char *name, struct cards *cards)
{
    struct factory *f = NEWLY(struct factory);
    if (!f)
        return NULL;
    f->host = *host;
    f->name = name;
    f->cards = cards;
    cards->users++;
    f->base = (OrtEpFactory){.ort_version_supported = host->version,
                             .GetName = get_name,
                             .GetVendor = get_vendor,
                             .GetSupportedDevices = get_devices,
                             .CreateEp = create_ep,
                             .ReleaseEp = release_ep,
                             .GetVendorId = get_vendor_id,
                             .GetVersion = get_version,
                             .ValidateCompiledModelCompatibilityInfo = validate,
                             .CreateAllocator = create_allocator,
                             .ReleaseAllocator = release_allocator,
                             .CreateDataTransfer = create_transfer,
                             .IsStreamAware = is_stream_aware,
                             .CreateSyncStreamForDevice = create_stream,
                             .GetHardwareDeviceIncompatibilityDetails = get_incompatibility,
                             .CreateExternalResourceImporterForDevice = create_importer,
                             .GetNumCustomOpDomains = count_domains,
                             .GetCustomOpDomains = get_domains};
    return f;
}

// Where the oldest version is not there either, there is a status to be had from version 1 on.
static OrtStatus *too_old(const OrtApiBase *base)
{
    OrtStatus *(*create_status)(int, const char *);
    const void *const *table = base->GetApi(1);
    if (!table)
        return NULL;
    memcpy(&create_status, &table[0], sizeof create_status);
    return create_status(ORT_FAIL, "MIGraphX: this provider needs ONNX Runtime 1.24 or newer");
}

EXPORT OrtStatus *CreateEpFactories(const char *registered_name, const OrtApiBase *base,
                                    const OrtLogger *logger, OrtEpFactory **out, size_t room,
                                    size_t *out_count);
EXPORT OrtStatus *ReleaseEpFactory(OrtEpFactory *factory);

OrtStatus *CreateEpFactories(const char *registered_name, const OrtApiBase *base,
                             const OrtLogger *logger, OrtEpFactory **out, size_t room,
                             size_t *out_count)
{
    (void)logger;
    struct host host;
    const bool as_amd = registered_name && strcmp(registered_name, amd_name) == 0;
    const char *const names[] = {as_amd ? amd_name : own_name, migraphx_name};
    *out_count = 0;
    if (!host_read(&host, base))
        return too_old(base);
    struct cards *cards = NEWLY(struct cards);
    if (!cards)
        return host_no_memory(&host);
    cards->host = host;
    cards->users = 1; // until there are factories
    cards->as_amds = as_amd;
    for (size_t i = 0; i < (as_amd ? 1 : 2) && i < room; i++) {
        struct factory *f = create(&host, names[i], cards);
        if (!f)
            break;
        out[(*out_count)++] = &f->base;
    }
    cards_leave(cards);
    return *out_count ? NULL : host_no_memory(&host);
}

OrtStatus *ReleaseEpFactory(OrtEpFactory *factory)
{
    if (factory)
        cards_leave(((struct factory *)factory)->cards);
    free(factory);
    return NULL;
}
