// SPDX-License-Identifier: MIT
// Which card: the APIs in order of preference, and the cards that are open in this process.
//
// A card is opened once and shared, because its context, and the weights that lie on it, belong to
// the process and not to a program. This list is one of the few mutable globals.
#include "targets/gpu/device/device.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct gpu_api *const gpu_apis[] = {&gpu_api_cuda, &gpu_api_hip, &gpu_api_opencl, NULL};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpu_device *devices;

static enum mgx_status find_card(const struct gpu_api *api, int index, struct mgx_diag *diag)
{
    int count;
    TRY(api->count(&count, diag));
    if (index < 0 || index >= count)
        return mgx_fail(diag, MGX_NOT_FOUND, "%s has %d device%s, there is no number %d", api->name,
                        count, count == 1 ? "" : "s", index);
    return MGX_OK;
}

static enum mgx_status open_card(const struct gpu_api *api, int index, struct gpu_device **out,
                                 struct mgx_diag *diag)
{
    TRY(find_card(api, index, diag));
    for (struct gpu_device *d = devices; d; d = d->next)
        if (d->api == api && d->index == index) {
            d->users++;
            *out = d;
            return MGX_OK;
        }
    TRY(api->open(index, out, diag));
    (*out)->api = api;
    (*out)->index = index;
    (*out)->users = 1;
    (*out)->next = devices;
    devices = *out;
    return MGX_OK;
}

// ":1"
static bool read_number(const char *text, int *index)
{
    char *end;
    const long n = strtol(text + 1, &end, 10);
    *index = (int)n;
    return end != text + 1 && !*end && n >= 0 && n < 1 << 16;
}

// "hip:1": API and number. False for a word that names no API.
static bool read_choice(const char *choice, const struct gpu_api **api, int *index)
{
    const size_t size = strcspn(choice, ":");
    *api = NULL;
    for (int i = 0; gpu_apis[i]; i++)
        if (strlen(gpu_apis[i]->name) == size && memcmp(gpu_apis[i]->name, choice, size) == 0)
            *api = gpu_apis[i];
    return *api && (!choice[size] || read_number(choice + size, index));
}

static void leave(struct gpu_device *d)
{
    if (--d->users > 0)
        return;
    struct gpu_device **at = &devices;
    while (*at != d)
        at = &(*at)->next;
    *at = d->next;
    d->api->close(d);
}

// A CPU behind OpenCL is no GPU: whoever wants one for tests asks for it by name.
static enum mgx_status open_card_not_cpu(const struct gpu_api *api, int index,
                                         struct gpu_device **out, struct mgx_diag *diag)
{
    TRY(open_card(api, index, out, diag));
    if (!((*out)->properties.features & GPU_HOST_MEMORY))
        return MGX_OK;
    mgx_fail(diag, MGX_NOT_FOUND, "%s has but a CPU (%s), which must be asked for by name",
             api->name, (*out)->properties.name);
    leave(*out);
    *out = NULL;
    return MGX_NOT_FOUND;
}

static enum mgx_status count_cards(const struct gpu_api *api, int index, struct gpu_device **out,
                                   struct mgx_diag *diag)
{
    int count;
    (void)out;
    TRY(api->count(&count, diag));
    if (index >= count)
        return mgx_fail(diag, MGX_NOT_FOUND, "%s has no device", api->name);
    if (api != &gpu_api_opencl)
        return MGX_OK;
    struct gpu_device *card; // only its properties tell a CPU
    TRY(open_card_not_cpu(api, index, &card, diag));
    leave(card);
    return MGX_OK;
}

typedef enum mgx_status (*try_fn)(const struct gpu_api *api, int index, struct gpu_device **out,
                                  struct mgx_diag *diag);

// Every API says why it has no card, for one sentence about all of them.
static enum mgx_status try_all(try_fn try, int index, struct gpu_device **out,
                               struct mgx_diag *diag)
{
    struct mgx_str why = {0};
    enum mgx_status status = MGX_NOT_FOUND;
    for (int i = 0; gpu_apis[i] && status == MGX_NOT_FOUND; i++) {
        struct mgx_diag one = {.status = MGX_OK};
        status = try(gpu_apis[i], index, out, &one);
        if (status != MGX_OK && status != MGX_NOT_FOUND)
            mgx_fail(diag, status, "%s", one.text);
        mgx_str_printf(&why, "%s%s", why.size ? "; " : "", one.text);
    }
    if (status == MGX_NOT_FOUND)
        mgx_fail(diag, status, "no GPU can be used: %s", mgx_str_text(&why));
    mgx_str_fini(&why);
    return status;
}

static enum mgx_status find_device(const char *choice, int index, bool open,
                                   struct gpu_device **out, struct mgx_diag *diag)
{
    const struct gpu_api *api = NULL;
    const bool any = !choice || !*choice || *choice == ':';
    if (any && choice && *choice && !read_number(choice, &index))
        return mgx_fail(diag, MGX_INVALID, "'%s' names no device: a number follows the colon",
                        choice);
    if (!any && !read_choice(choice, &api, &index))
        return mgx_fail(diag, MGX_INVALID,
                        "'%s' names no device: cuda, hip or opencl, and maybe :number", choice);
    pthread_mutex_lock(&lock);
    enum mgx_status status;
    if (any)
        status = try_all(open ? open_card_not_cpu : count_cards, index, out, diag);
    else
        status = open ? open_card(api, index, out, diag) : find_card(api, index, diag);
    pthread_mutex_unlock(&lock);
    return status;
}

enum mgx_status gpu_device_open(const char *choice, int index, struct gpu_device **out,
                                struct mgx_diag *diag)
{
    *out = NULL;
    return find_device(choice, index, true, out, diag);
}

enum mgx_status gpu_device_usable(const char *choice, struct mgx_diag *diag)
{
    struct gpu_device *unused = NULL;
    return find_device(choice, 0, false, &unused, diag);
}

void gpu_device_close(struct gpu_device *d)
{
    if (!d)
        return;
    pthread_mutex_lock(&lock);
    leave(d);
    pthread_mutex_unlock(&lock);
}

// The first API that has a card.
static enum mgx_status first_api(const struct gpu_api **out, struct mgx_diag *diag)
{
    struct gpu_device *unused = NULL;
    for (int i = 0; gpu_apis[i]; i++) {
        struct mgx_diag quiet = {.status = MGX_OK};
        *out = gpu_apis[i];
        if (count_cards(*out, 0, &unused, &quiet) == MGX_OK)
            return MGX_OK;
    }
    return try_all(count_cards, 0, &unused, diag); // says why
}

static enum mgx_status name_card(const char *choice, int number, char name[GPU_CARD_SIZE],
                                 struct mgx_diag *diag)
{
    const struct gpu_api *api = NULL;
    const bool any = !choice || !*choice || *choice == ':';
    int index = -1, count = 0;
    if (any ? choice && *choice && !read_number(choice, &index)
            : !read_choice(choice, &api, &index))
        return mgx_fail(diag, MGX_INVALID, "'%s' names no device", choice);
    if (any)
        TRY(first_api(&api, diag));
    TRY(api->count(&count, diag));
    const int card = index < 0 ? number : index;
    if (card >= count || (index >= 0 && number > 0))
        return mgx_fail(diag, MGX_NOT_FOUND, "there is no card %d of %s", number,
                        any ? api->name : choice);
    snprintf(name, GPU_CARD_SIZE, "%s:%d", api->name, card);
    return MGX_OK;
}

enum mgx_status gpu_device_name(const char *choice, int number, char name[GPU_CARD_SIZE],
                                struct mgx_diag *diag)
{
    pthread_mutex_lock(&lock);
    const enum mgx_status status = name_card(choice, number, name, diag);
    pthread_mutex_unlock(&lock);
    return status;
}
