// SPDX-License-Identifier: MIT
// Which cards there are.
//
// The engine names its cards; the host finds hardware by itself, where the system shows it. A card's
// hardware is the first of its driver's vendor that no other card has; where there is none (a
// container hides it, OpenCL runs on a processor) the provider makes one.
#include "card.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct driver {
    const char *name, *company;
    uint32_t vendor; // of PCI
};

// OpenCL is any vendor's. Where the host has found no hardware, Khronos' number of PoCL stands for it:
// memory of vendor 0 is to the host's Python a thing that it was built without.
enum { NVIDIA = 0x10de, AMD = 0x1002, POCL = 0x10006 };

static const struct driver drivers[] = {
    {"cuda", "NVIDIA", NVIDIA}, {"hip", "AMD", AMD}, {"opencl", "OpenCL", POCL}};

static const struct driver *driver_of(const char *card)
{
    const size_t size = strcspn(card, ":");
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++)
        if (strlen(drivers[i].name) == size && memcmp(drivers[i].name, card, size) == 0)
            return &drivers[i];
    return NULL;
}

static const OrtHardwareDevice *find_hardware(const struct cards *cards, uint32_t vendor,
                                              const OrtHardwareDevice *const *devices, size_t count)
{
    const struct host *h = &cards->host;
    for (size_t i = 0; i < count; i++) {
        bool taken = false;
        for (size_t k = 0; k < cards->count; k++)
            taken |= cards->list[k].hardware == devices[i];
        if (!taken && h->HardwareDevice_Type(devices[i]) == ORT_DEVICE_GPU &&
            (vendor == POCL || h->HardwareDevice_VendorId(devices[i]) == vendor))
            return devices[i];
    }
    return NULL;
}

static OrtStatus *describe(const struct cards *cards, struct card *c,
                           const OrtHardwareDevice *const *devices, size_t count)
{
    const struct host *h = &cards->host;
    const struct driver *driver = driver_of(c->name);
    const int number = (int)strtol(c->name + strcspn(c->name, ":") + 1, NULL, 10);
    c->hardware = find_hardware(cards, driver->vendor, devices, count);
    if (!c->hardware) {
        HOST_TRY(h->CreateHardwareDevice(ORT_DEVICE_GPU, driver->vendor, (uint32_t)number,
                                         driver->company, NULL, &c->own));
        c->hardware = c->own;
    }
    // GenAI's door for AMD's provider asks for memory "Hip", which is that vendor's.
    c->vendor = cards->as_amds ? AMD : h->HardwareDevice_VendorId(c->hardware);
    HOST_TRY(h->CreateMemoryInfo_V2("MIGraphX", ORT_DEVICE_GPU, c->vendor, number,
                                    ORT_MEMORY_DEVICE, 0, ORT_ALLOCATOR_DEVICE, &c->memory));
    return card_memory_init(c, h);
}

static void forget(struct card *c, const struct host *h)
{
    if (c->host)
        card_memory_fini(c);
    if (c->memory)
        h->ReleaseMemoryInfo(c->memory);
    if (c->own)
        h->ReleaseHardwareDevice(c->own);
    *c = (struct card){0};
}

OrtStatus *cards_find(struct cards *cards, const OrtHardwareDevice *const *devices, size_t count)
{
    if (cards->looked)
        return NULL;
    cards->looked = true;
    for (size_t i = 0; i < MOST_CARDS; i++) {
        struct card *c = &cards->list[i];
        if (migraphx_device_card(c->name, sizeof c->name, NULL, i) || !driver_of(c->name))
            break;
        OrtStatus *status = describe(cards, c, devices, count);
        if (status) {
            forget(c, &cards->host);
            return status;
        }
        cards->count++;
    }
    return NULL;
}

void cards_leave(struct cards *cards)
{
    if (--cards->users > 0)
        return;
    for (size_t i = 0; i < cards->count; i++)
        forget(&cards->list[i], &cards->host);
    free(cards);
}

struct card *cards_of_hardware(struct cards *cards, const OrtHardwareDevice *hardware)
{
    for (size_t i = 0; i < cards->count; i++)
        if (cards->list[i].hardware == hardware)
            return &cards->list[i];
    return NULL;
}

struct card *cards_of_memory(struct cards *cards, const OrtMemoryInfo *memory)
{
    const struct host *h = &cards->host;
    for (size_t i = 0; memory && i < cards->count; i++)
        if (h->MemoryDevice_AreEqual(h->MemoryInfo_GetMemoryDevice(memory),
                                     h->MemoryInfo_GetMemoryDevice(cards->list[i].memory)))
            return &cards->list[i];
    return NULL;
}
