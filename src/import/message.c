// SPDX-License-Identifier: MIT
// Lists and names of messages; see message.h.
#include "import/message.h"

#include <assert.h>
#include <limits.h>

enum { LONGEST_NAME = 65536 };

// --- names ---

enum mgx_status mgx_name_check(struct mgx_slice name, const char *what, struct mgx_diag *diag)
{
    if (name.size > LONGEST_NAME)
        return mgx_fail(diag, MGX_LIMIT, "%s \"%.*s...\" is %zu bytes long, %d are allowed", what,
                        40, name.text, name.size, LONGEST_NAME);
    if (!mgx_utf8_valid(name.text, name.size))
        return mgx_fail(diag, MGX_INVALID, "%s of %zu bytes is not valid UTF-8 text without NUL",
                        what, name.size);
    return MGX_OK;
}

enum mgx_status mgx_name_text(struct mgx_slice name, const char *what, struct mgx_arena *arena,
                              const char **out, struct mgx_diag *diag)
{
    TRY(mgx_name_check(name, what, diag));
    *out = mgx_arena_strndup(arena, name.size ? name.text : "", name.size);
    return *out ? MGX_OK : mgx_fail_memory(diag);
}

// --- repeated fields: count, allocate, fill ---

static struct mgx_want *find_want(struct mgx_want *wants, int count, uint32_t number)
{
    assert(number > 0);
    for (int i = 0; i < count; i++)
        if (wants[i].number == number)
            return &wants[i];
    return NULL;
}

static enum mgx_status make_room(struct mgx_want *wants, int count, struct mgx_arena *arena,
                                 struct mgx_diag *diag)
{
    assert(count > 0);
    for (int i = 0; i < count; i++) {
        struct mgx_want *want = &wants[i];
        const size_t each = want->names ? sizeof(struct mgx_slice) : sizeof(struct mgx_wire);
        if (want->count && !(want->room = mgx_arena_array(arena, (size_t)want->count, each)))
            return mgx_fail_memory(diag);
        assert(!want->names != !want->messages); // one of the two
        if (want->names)
            *want->names = (struct mgx_names){want->room, want->count};
        else
            *want->messages = (struct mgx_messages){want->room, want->count};
    }
    return MGX_OK;
}

static void fill(struct mgx_want *want, const struct mgx_wire_field *f)
{
    assert(want->filled >= 0 && want->filled <= want->count);
    if (want->filled == want->count)
        return; // the bytes changed between the passes
    if (want->names)
        ((struct mgx_slice *)want->room)[want->filled] =
            (struct mgx_slice){(const char *)f->data, f->size};
    else
        ((struct mgx_wire *)want->room)[want->filled] = mgx_wire_sub(f);
    want->filled++;
}

enum mgx_status mgx_message_collect(struct mgx_wire message, struct mgx_want *wants, int count,
                                    const char *what, struct mgx_arena *arena,
                                    struct mgx_diag *diag)
{
    struct mgx_wire_field f;
    for (struct mgx_wire w = message; mgx_wire_next(&w, &f) || w.bad;) {
        struct mgx_want *want = w.bad ? NULL : find_want(wants, count, f.number);
        if (want && f.type != MGX_WIRE_BYTES)
            w.bad = "a field that should be a message or text is a number";
        if (want && want->count == INT_MAX)
            w.bad = "a field is repeated more often than 2^31 times";
        if (w.bad)
            return mgx_wire_fail(&w, what, diag);
        if (want)
            want->count++;
    }
    TRY(make_room(wants, count, arena, diag));
    for (struct mgx_wire w = message; mgx_wire_next(&w, &f);) {
        struct mgx_want *want = find_want(wants, count, f.number);
        if (want && f.type == MGX_WIRE_BYTES)
            fill(want, &f);
    }
    for (int i = 0; i < count; i++)
        if (wants[i].filled != wants[i].count)
            return mgx_fail(diag, MGX_IO, "the file changed while it was read");
    return MGX_OK;
}
