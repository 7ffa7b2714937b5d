// SPDX-License-Identifier: MIT
// The list of operators that cannot be imported; see missing.h.
#include "import/missing.h"

#include <assert.h>
#include <string.h>

#include "base/str.h"

static enum mgx_status new_row(struct mgx_missing *m, const char *key, struct mgx_missing_row row,
                               struct mgx_slice node, struct mgx_diag *diag)
{
    struct mgx_missing_row *kept = MGX_NEW(m->arena, struct mgx_missing_row);
    row.node = mgx_arena_printf(m->arena, "%.*s", MGX_SLICE(node));
    if (!kept || !row.node || !mgx_map_put(&m->rows, key, kept))
        return mgx_fail_memory(diag);
    *kept = row;
    if (m->last)
        m->last->next = kept;
    else
        m->first = kept;
    assert(!m->first == !m->last || m->first == kept);
    m->last = kept;
    return MGX_OK;
}

enum mgx_status mgx_missing_add(struct mgx_missing *m, const char *what, const char *why,
                                struct mgx_slice node, struct mgx_diag *diag)
{
    assert(what && why);
    const char *end = strchr(why, '\n');
    struct mgx_missing_row row = {
        .what = mgx_arena_strdup(m->arena, what),
        .why = mgx_arena_strndup(m->arena, why, end ? (size_t)(end - why) : strlen(why)),
        .count = 1};
    const char *key =
        row.what && row.why ? mgx_arena_printf(m->arena, "%s: %s", row.what, row.why) : NULL;
    if (!key)
        return mgx_fail_memory(diag);
    struct mgx_missing_row *known = mgx_map_find(&m->rows, key);
    if (!known)
        return new_row(m, key, row, node, diag);
    known->count++;
    return MGX_OK;
}

enum mgx_status mgx_missing_report(const struct mgx_missing *m, const char *hint,
                                   struct mgx_diag *diag)
{
    if (!m->first)
        return MGX_OK;
    enum { ROOM = MGX_DIAG_TEXT_SIZE - 400 };
    struct mgx_str text = {0};
    int64_t rows = 0, left = 0;
    for (const struct mgx_missing_row *row = m->first; row; row = row->next, rows++) {
        if (text.size > ROOM) {
            left++;
            continue;
        }
        mgx_str_printf(&text, "\n  %.200s: %.300s; %lld node%s, first \"%.100s\"", row->what,
                       row->why, (long long)row->count, row->count == 1 ? "" : "s", row->node);
    }
    if (left)
        mgx_str_printf(&text, "\n  and %lld more", (long long)left);
    if (hint)
        mgx_str_printf(&text, "\n  (%s)", hint);
    mgx_diag_clear(diag);
    mgx_fail(diag, MGX_UNSUPPORTED, "%lld operator%s not supported:%s", (long long)rows,
             rows == 1 ? " is" : "s are", mgx_str_text(&text));
    mgx_str_fini(&text);
    return MGX_UNSUPPORTED;
}

void mgx_missing_fini(struct mgx_missing *m)
{
    mgx_map_fini(&m->rows);
}

enum mgx_status mgx_missing_poison(struct mgx_missing *m, struct mgx_program *p,
                                   struct mgx_diag *diag)
{
    const struct mgx_shape shape = mgx_shape_unranked(MGX_FLOAT);
    if (!m->poison)
        m->poison = mgx_add_parameter(mgx_program_main(p), "#unsupported", &shape);
    return m->poison ? MGX_OK : mgx_program_status(p, diag);
}

bool mgx_missing_reaches(const struct mgx_missing *m, const struct mgx_node *n)
{
    for (int i = 0; m->poison && i < n->in_count; i++)
        if (n->in[i] == m->poison)
            return true;
    return false;
}
