// SPDX-License-Identifier: MIT
// What an input's or a result's name means, and the node or argument that bears it; see graph.h.
#include <assert.h>
#include <string.h>

#include "tf/graph.h"

struct mgx_tf_reference mgx_tf_reference_of(struct mgx_slice text)
{
    assert(text.text || !text.size);
    struct mgx_tf_reference r = {.name = text, .output = {"", 0}};
    r.control = text.size && text.text[0] == '^';
    if (r.control)
        r.name = (struct mgx_slice){text.text + 1, text.size - 1};
    const char *colon = r.name.size ? memchr(r.name.text, ':', r.name.size) : NULL;
    if (!colon)
        return r;
    const char *end = r.name.text + r.name.size, *last = colon;
    for (const char *p = colon; p < end; p++)
        last = *p == ':' ? p : last;
    for (const char *p = last + 1; p < end && r.index >= 0; p++)
        r.index = *p >= '0' && *p <= '9' && r.index < INT32_MAX ? 10 * r.index + (*p - '0') : -1;
    if (last > colon)
        r.output = (struct mgx_slice){colon + 1, (size_t)(last - colon - 1)};
    r.name.size = (size_t)(colon - r.name.text);
    return r;
}

int64_t mgx_tf_place(const struct mgx_tf_body *body, struct mgx_slice name)
{
    return (int64_t)(intptr_t)mgx_map_findn(&body->places, name.text, name.size) - 1;
}
