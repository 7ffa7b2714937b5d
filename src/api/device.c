// SPDX-License-Identifier: MIT
// Memory of a card through the interface: arguments there, copies between there and the host, and
// waiting for the card. Which card a name stands for is the GPU target's to say.
//
// Holds: bytes of a card are never touched here but through their memory's own functions.
// Cost: a copy makes a queue and waits; nothing here is for the inside of a loop.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"

static const char host_name[] = "host";

enum { WHOLE_NAME = 128 }; // bytes of a card's name with its driver

// The target whose programs have a memory of their own.
static enum mgx_status find_target(const struct mgx_target **out, struct mgx_diag *diag)
{
    int count;
    const struct mgx_target *const *targets = mgx_target_all(&count);
    for (int i = 0; i < count; i++)
        if ((*out = targets[i])->memory)
            return MGX_OK;
    return mgx_fail(diag, MGX_NOT_FOUND, "no target of this build has memory of its own");
}

// ":n" is a number among the cards of the driver that the environment chose.
static const char *full_name(const char *device, char *room, size_t size)
{
    const char *chosen = mgx_api_environment()->gpu_device;
    if (!device || !*device)
        return chosen;
    if (*device != ':' || !chosen)
        return device;
    snprintf(room, size, "%.*s%s", (int)strcspn(chosen, ":"), chosen, device);
    return room;
}

enum mgx_status mgx_api_find_memory(const char *device, const struct mgx_memory **out,
                                    struct mgx_diag *diag)
{
    assert(out && diag);
    const struct mgx_target *target;
    *out = NULL;
    if (device && strcmp(device, host_name) == 0)
        return MGX_OK;
    TRY(find_target(&target, diag));
    char room[WHOLE_NAME];
    return target->memory(full_name(device, room, sizeof room), out, diag);
}

static enum mgx_status require_numbers(const struct mgx_shape *s, struct mgx_diag *diag)
{
    if (s->sub || s->type == MGX_TUPLE || s->type == MGX_SEQUENCE || s->type == MGX_STRING)
        return mgx_fail(diag, MGX_UNSUPPORTED, "values of %s have no bytes that a card could hold",
                        mgx_type_name(s->type));
    if (!mgx_shape_is_static(s))
        return mgx_fail(diag, MGX_INVALID, "an argument needs a static shape");
    return MGX_OK;
}

static size_t span(const struct mgx_shape *s)
{
    return (size_t)mgx_shape_space(s) * mgx_type_size(s->type);
}

// Where an argument lies; one over a caller's bytes where the card says.
static const struct mgx_memory *locate(const struct mgx_tensor *t)
{
    const struct mgx_memory *card;
    struct mgx_diag quiet = {.status = MGX_OK};
    if (t->storage || !t->data || mgx_api_find_memory(NULL, &card, &quiet) != MGX_OK || !card)
        return mgx_tensor_memory(t);
    return card->holds && card->holds(card, t->data) ? card : NULL;
}

static enum mgx_status allocate(struct mgx_tensor *out, const struct mgx_shape *s,
                                const char *device, struct mgx_diag *diag)
{
    const struct mgx_memory *memory;
    TRY(require_numbers(s, diag));
    TRY(mgx_api_find_memory(device, &memory, diag));
    TRY(mgx_tensor_create_on(out, s, memory, diag));
    if (!memory && out->data)
        memset(out->data, 0, span(s));
    return MGX_OK;
}

migraphx_status migraphx_device_allocate(migraphx_argument_t *out, const_migraphx_shape_t shape,
                                         const char *device)
{
    API_NEED(out);
    API_NEED(shape);
    API_DIAG(diag);
    struct mgx_tensor t = {0};
    enum mgx_status status = allocate(&t, &shape->value, device, &diag);
    if (status == MGX_OK)
        status = mgx_api_argument_new(out, &t, &diag);
    return mgx_api_leave(status, &diag);
}

static enum mgx_status own(struct mgx_tensor *out, const struct mgx_shape *s, void *address,
                           const char *device, void (*release)(void *owner), void *owner,
                           struct mgx_diag *diag)
{
    const struct mgx_memory *memory;
    TRY(require_numbers(s, diag));
    TRY(mgx_api_find_memory(device, &memory, diag));
    TRY(mgx_api_tensor_own(out, s, address, release, owner, diag));
    out->storage->memory = memory;
    return MGX_OK;
}

static void release_nothing(void *owner)
{
    (void)owner;
}

migraphx_status migraphx_device_argument(migraphx_argument_t *out, const_migraphx_shape_t shape,
                                         void *address, const char *device,
                                         void (*release)(void *owner), void *owner)
{
    API_NEED(out);
    API_NEED(shape);
    API_DIAG(diag);
    struct mgx_tensor t = {0};
    struct migraphx_argument *a = API_NEW(struct migraphx_argument);
    enum mgx_status status = a ? MGX_OK : mgx_fail_memory(&diag);
    if (status == MGX_OK)
        status = own(&t, &shape->value, address, device, release ? release : release_nothing, owner,
                     &diag);
    if (status == MGX_OK) {
        status = mgx_api_argument_init(a, &t, &diag); // a plain tensor has no members: cannot fail
        *out = a;
    } else {
        free(a);
    }
    return mgx_api_leave(status, &diag);
}

// Row-major where the host can see to it; from a card as the bytes lie there.
static enum mgx_status copy_to(struct mgx_tensor *out, const struct mgx_tensor *from,
                               const char *device, struct mgx_diag *diag)
{
    const struct mgx_memory *memory, *has = locate(from);
    struct mgx_tensor packed;
    TRY(require_numbers(&from->shape, diag));
    TRY(mgx_api_find_memory(device, &memory, diag));
    if (has)
        packed = mgx_tensor_share(from);
    else
        TRY(mgx_tensor_pack(&packed, from, diag));
    const size_t bytes = span(&packed.shape);
    struct mgx_storage *storage = mgx_storage_create(memory, bytes ? bytes : 1);
    enum mgx_status status =
        storage ? mgx_memory_copy(memory, storage->data, has, packed.data, bytes, diag)
                : mgx_fail(diag, MGX_NO_MEMORY, "out of memory: %zu bytes of %s", bytes,
                           memory ? memory->name : "the host");
    if (status == MGX_OK) {
        *out = mgx_tensor_borrow(&packed.shape, storage->data);
        out->storage = storage;
    } else {
        mgx_storage_release(storage);
    }
    mgx_tensor_release(&packed);
    return status;
}

migraphx_status migraphx_device_copy(migraphx_argument_t *out, const_migraphx_argument_t argument,
                                     const char *device)
{
    API_NEED(out);
    API_NEED(argument);
    API_DIAG(diag);
    struct mgx_tensor t = {0};
    enum mgx_status status = copy_to(&t, mgx_api_argument_value(argument), device, &diag);
    if (status == MGX_OK)
        status = mgx_api_argument_new(out, &t, &diag);
    return mgx_api_leave(status, &diag);
}

static enum mgx_status copy_into(const struct mgx_tensor *to, const struct mgx_tensor *from,
                                 struct mgx_diag *diag)
{
    TRY(require_numbers(&to->shape, diag));
    if (!mgx_shape_equal(&to->shape, &from->shape))
        return mgx_fail(diag, MGX_INVALID, "bytes are copied between arguments of one shape");
    return mgx_memory_copy(locate(to), to->data, locate(from), from->data, span(&to->shape), diag);
}

migraphx_status migraphx_device_copy_into(migraphx_argument_t to, const_migraphx_argument_t from)
{
    API_NEED(to);
    API_NEED(from);
    API_DIAG(diag);
    enum mgx_status status = mgx_api_argument_pack(to, &diag);
    if (status == MGX_OK)
        status = mgx_api_argument_pack(from, &diag);
    if (status == MGX_OK)
        status = copy_into(mgx_api_argument_value(to), mgx_api_argument_value(from), &diag);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_argument_device(const char **out, const_migraphx_argument_t argument)
{
    API_NEED(out);
    API_NEED(argument);
    const struct mgx_memory *memory = mgx_tensor_memory(mgx_api_argument_value(argument));
    *out = !memory ? host_name : memory->device ? memory->device : memory->name;
    return migraphx_status_success;
}

migraphx_status migraphx_device_find(const char **out, const char *device)
{
    API_NEED(out);
    API_DIAG(diag);
    const struct mgx_memory *memory;
    const enum mgx_status status = mgx_api_find_memory(device, &memory, &diag);
    if (status == MGX_OK)
        *out = !memory ? host_name : memory->device;
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_device_wait(const char *device)
{
    API_DIAG(diag);
    const struct mgx_memory *memory;
    enum mgx_status status = mgx_api_find_memory(device, &memory, &diag);
    if (status == MGX_OK && memory && memory->settle)
        status = memory->settle(memory, &diag);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_device_card(char *out, size_t out_size, const char *device, size_t number)
{
    API_NEED(out);
    API_DIAG(diag);
    enum { ROOM = 24 };
    const struct mgx_target *target;
    char name[ROOM] = "", whole[WHOLE_NAME];
    enum mgx_status status = find_target(&target, &diag);
    if (number > INT16_MAX)
        return mgx_api_bad("%s: there is no card %zu", __func__, number);
    if (status == MGX_OK)
        status = target->card(full_name(device, whole, sizeof whole), (int)number, name, &diag);
    if (status == MGX_OK && strlen(name) >= out_size)
        return mgx_api_bad("%s: \"%s\" needs %zu bytes, %zu are given", __func__, name,
                           strlen(name) + 1, out_size);
    if (status == MGX_OK)
        strcpy(out, name);
    return mgx_api_leave(status, &diag);
}
