// SPDX-License-Identifier: MIT
// Ending calls before they are done: the object that threads, signal handlers and callbacks ask.
#include <stdlib.h>

#include "api/api.h"
#include "base/cancel.h"

struct migraphx_cancellation {
    struct mgx_cancel flag;
};

migraphx_status migraphx_cancellation_create(migraphx_cancellation_t *out)
{
    API_NEED(out);
    API_DIAG(diag);
    struct migraphx_cancellation *c = API_NEW(struct migraphx_cancellation);
    if (!c)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    *out = c;
    return migraphx_status_success;
}

migraphx_status migraphx_cancellation_destroy(migraphx_cancellation_t cancellation)
{
    if (!cancellation)
        return migraphx_status_success;
    const bool mine = mgx_cancel_attached() == &cancellation->flag;
    if (atomic_load(&cancellation->flag.attached) > (mine ? 1 : 0))
        return mgx_api_bad("%s: another thread obeys it: detach it there first", __func__);
    if (mine && !mgx_cancel_attach(NULL))
        return mgx_api_bad("%s: a call of this thread is at work under it", __func__);
    free(cancellation);
    return migraphx_status_success;
}

migraphx_status migraphx_cancellation_set_callback(migraphx_cancellation_t cancellation,
                                                   migraphx_cancellation_callback_t callback,
                                                   void *data)
{
    API_NEED(cancellation);
    API_NEED(callback);
    if (atomic_load(&cancellation->flag.attached))
        return mgx_api_bad("%s: a thread obeys it already: set the callback before", __func__);
    cancellation->flag.user = data;
    cancellation->flag.poll = callback;
    return migraphx_status_success;
}

migraphx_status migraphx_cancellation_request(migraphx_cancellation_t cancellation)
{
    API_NEED(cancellation);
    mgx_cancel_request(&cancellation->flag);
    return migraphx_status_success;
}

migraphx_status migraphx_cancellation_requested(bool *out,
                                                const_migraphx_cancellation_t cancellation)
{
    API_NEED(out);
    API_NEED(cancellation);
    *out = mgx_cancel_requested(&cancellation->flag);
    return migraphx_status_success;
}

migraphx_status migraphx_cancellation_reset(migraphx_cancellation_t cancellation)
{
    API_NEED(cancellation);
    if (!mgx_cancel_reset(&cancellation->flag))
        return mgx_api_bad("%s: a call is at work under it", __func__);
    return migraphx_status_success;
}

migraphx_status migraphx_cancellation_attach(migraphx_cancellation_t cancellation)
{
    API_NEED(cancellation);
    if (!mgx_cancel_attach(&cancellation->flag))
        return mgx_api_bad("%s: a call of this thread is at work", __func__);
    return migraphx_status_success;
}

migraphx_status migraphx_cancellation_detach(migraphx_cancellation_t cancellation)
{
    API_NEED(cancellation);
    if (mgx_cancel_attached() != &cancellation->flag)
        return mgx_api_bad("%s: this thread does not obey it", __func__);
    if (!mgx_cancel_attach(NULL))
        return mgx_api_bad("%s: a call of this thread is at work", __func__);
    return migraphx_status_success;
}
