// SPDX-License-Identifier: MIT
// The libraries there are, and those that are open; vendor.h says what holds.
#include "targets/gpu/vendor/vendor.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "targets/gpu/device/driver.h"

const struct gpu_vendor *const gpu_vendors[] = {&gpu_vendor_cublaslt, &gpu_vendor_hipblaslt,
                                                &gpu_vendor_rocblas,  &gpu_vendor_cudnn,
                                                &gpu_vendor_miopen,   NULL};

enum { OPEN_MOST = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpu_vendor_library *libraries[OPEN_MOST]; // to the end of the process

const struct gpu_vendor *gpu_vendor_find(const char *name)
{
    for (int i = 0; gpu_vendors[i]; i++)
        if (strcmp(gpu_vendors[i]->name, name) == 0)
            return gpu_vendors[i];
    return NULL;
}

// --- with the card current ---

static enum mgx_status enter(struct gpu_device *d, void **before, struct mgx_diag *diag)
{
    const struct driver *driver = ((const struct driver_device *)d)->driver;
    const int status = driver->enter(d, before);
    return status == 0
               ? MGX_OK
               : driver_fail(driver, d->api->name, "making the device current", status, diag);
}

static void leave(struct gpu_device *d, void *before)
{
    ((const struct driver_device *)d)->driver->leave(d, before);
}

static enum mgx_status open_library(const struct gpu_vendor *vendor, struct gpu_device *device,
                                    struct gpu_vendor_library **out, struct mgx_diag *diag)
{
    void *before = NULL;
    struct gpu_vendor_library *library = calloc(1, sizeof *library);
    if (!library)
        return mgx_fail_memory(diag);
    *library = (struct gpu_vendor_library){.vendor = vendor, .device = device};
    enum mgx_status status = enter(device, &before, diag);
    if (status == MGX_OK) {
        status = vendor->open(library, diag);
        leave(device, before);
    }
    if (status == MGX_OK)
        *out = library;
    else
        free(library);
    return status;
}

// Handles live as long as the card's context, which a process that has allocated there keeps.
enum mgx_status gpu_vendor_open(const struct gpu_vendor *vendor, struct gpu_device *device,
                                const struct gpu_vendor_library **out, struct mgx_diag *diag)
{
    enum mgx_status status = MGX_OK;
    int i = 0;
    *out = NULL;
    if (vendor->api != device->api)
        return mgx_fail(diag, MGX_NOT_FOUND, "%s is for %s, the card is %s's", vendor->title,
                        vendor->api->name, device->api->name);
    pthread_mutex_lock(&lock);
    while (i < OPEN_MOST && libraries[i] &&
           (libraries[i]->vendor != vendor || libraries[i]->device != device))
        i++;
    if (i == OPEN_MOST)
        status = mgx_fail(diag, MGX_LIMIT, "%d libraries are open already", OPEN_MOST);
    else if (!libraries[i])
        status = open_library(vendor, device, &libraries[i], diag);
    if (status == MGX_OK)
        *out = libraries[i];
    pthread_mutex_unlock(&lock);
    return status;
}

// One of two that have the same name goes: kept under it, nobody could tell which is meant.
static int drop_twins(struct gpu_vendor_choice *choices, int count)
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        int k = 0;
        while (k < kept && strcmp(choices[k].name, choices[i].name) != 0)
            k++;
        if (k == kept)
            choices[kept++] = choices[i];
    }
    return kept;
}

enum mgx_status gpu_vendor_rank(const struct gpu_vendor_library *library,
                                const struct gpu_vendor_product *product,
                                struct gpu_vendor_choice *choices, int *count,
                                struct mgx_diag *diag)
{
    void *before = NULL;
    *count = 0;
    TRY(enter(library->device, &before, diag));
    const enum mgx_status status = library->vendor->rank(library, product, choices, count, diag);
    leave(library->device, before);
    *count = status == MGX_OK ? drop_twins(choices, *count) : 0;
    return status;
}

enum mgx_status gpu_vendor_make(const struct gpu_vendor_library *library,
                                const struct gpu_vendor_product *product,
                                const struct gpu_vendor_choice *choice,
                                struct gpu_vendor_call **out, struct mgx_diag *diag)
{
    void *before = NULL;
    *out = NULL;
    TRY(enter(library->device, &before, diag));
    const enum mgx_status status = library->vendor->make(library, product, choice, out, diag);
    leave(library->device, before);
    return status;
}

enum mgx_status gpu_vendor_run(const struct gpu_vendor_call *call,
                               const struct gpu_vendor_args *args, struct mgx_diag *diag)
{
    const struct gpu_vendor_library *library = call->library;
    void *before = NULL;
    TRY(enter(library->device, &before, diag));
    const enum mgx_status status = library->vendor->run(call, args, diag);
    leave(library->device, before);
    return status;
}

void gpu_vendor_destroy(struct gpu_vendor_call *call)
{
    if (call)
        call->library->vendor->destroy(call);
}
