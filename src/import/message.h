// SPDX-License-Identifier: MIT
// Repeated fields of a message as lists of slices, and names.
//
// Holds: lists lie in the arena that was handed in; names are checked (UTF-8, no NUL, at most
// 64 KiB) when they are used. Cost: two passes over a message's own fields, never into its
// children.
#pragma once

#include "base/arena.h"
#include "import/wire.h"

struct mgx_messages {
    const struct mgx_wire *v;
    int count;
};

struct mgx_names {
    const struct mgx_slice *v;
    int count;
};

// A repeated field to collect, into one of the two; the rest is the collector's own.
struct mgx_want {
    uint32_t number;
    struct mgx_messages *messages;
    struct mgx_names *names;
    void *room;
    int count, filled;
};

// `what` names the message in a failure.
enum mgx_status mgx_message_collect(struct mgx_wire message, struct mgx_want *wants, int count,
                                    const char *what, struct mgx_arena *arena,
                                    struct mgx_diag *diag) MGX_NODISCARD;

// A name as text in the arena; refuses what cannot be one. `what` says whose it is.
enum mgx_status mgx_name_text(struct mgx_slice name, const char *what, struct mgx_arena *arena,
                              const char **out, struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_name_check(struct mgx_slice name, const char *what,
                               struct mgx_diag *diag) MGX_NODISCARD;

static inline bool mgx_slice_equal(struct mgx_slice a, struct mgx_slice b)
{
    return a.size == b.size && (!a.size || __builtin_memcmp(a.text, b.text, a.size) == 0);
}

// For printf("%.*s"): a name in a message, cut to a bearable length.
#define MGX_SLICE(s) ((int)((s).size < 120 ? (s).size : 120)), ((s).text ? (s).text : "")
