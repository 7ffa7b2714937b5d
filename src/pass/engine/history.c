// SPDX-License-Identifier: MIT
// See history.h.
#include "pass/engine/history.h"

#include <assert.h>

// --- passes ---

// Rewrites rarely keep the number of instructions and of bodies.
static int size_of(const struct mgx_program *p)
{
    return mgx_program_main(p)->count + p->module_count;
}

bool mgx_trail_spares(struct mgx_pass_trail *t, const struct mgx_pass *pass,
                      const struct mgx_program *p)
{
    t->followed = NULL;
    if (!t->past || t->lost)
        return false;
    const struct mgx_pass_event *e = &t->past->event[t->at];
    if (t->at >= t->past->count || e->pass != pass || e->size != size_of(p)) {
        t->lost = true;
        return false;
    }
    const bool spared = !e->changed && !pass->by_size;
    t->at = spared ? e->next : t->at + 1;
    if (!spared && !pass->by_size)
        t->followed = e;
    return spared;
}

struct mgx_pass_event *mgx_trail_begin(struct mgx_pass_trail *t, const struct mgx_pass *pass,
                                       const struct mgx_program *p)
{
    struct mgx_pass_history *h = t->made;
    t->noted = NULL;
    if (!h || h->count == MGX_PASS_EVENTS)
        return NULL;
    t->noted = &h->event[h->count++];
    *t->noted =
        (struct mgx_pass_event){.pass = pass, .size = size_of(p), .first_rule = h->rule_count};
    return t->noted;
}

void mgx_trail_end(struct mgx_pass_trail *t, struct mgx_pass_event *noted, bool changed)
{
    t->followed = NULL;
    t->noted = NULL;
    if (!noted)
        return;
    noted->changed = changed;
    noted->next = t->made->count;
}

// --- rules ---

bool mgx_trail_tries_all(const struct mgx_pass_trail *t)
{
    return !t || !t->followed || t->followed->rule_count < 0;
}

static bool is_among(const struct mgx_pass_history *h, const struct mgx_pass_event *e,
                     const struct mgx_rule *rule)
{
    for (int i = 0; i < e->rule_count; i++)
        if (h->rule[e->first_rule + i] == rule)
            return true;
    return false;
}

bool mgx_trail_tries(const struct mgx_pass_trail *t, const struct mgx_rule *rule)
{
    return mgx_trail_tries_all(t) || is_among(t->past, t->followed, rule);
}

void mgx_trail_note(struct mgx_pass_trail *t, const struct mgx_rule *rule)
{
    struct mgx_pass_event *e = t ? t->noted : NULL;
    if (!e || e->rule_count < 0 || is_among(t->made, e, rule))
        return;
    assert(t->made->rule_count == e->first_rule + e->rule_count);
    if (t->made->rule_count == MGX_PASS_RULES) {
        e->rule_count = -1;
        return;
    }
    t->made->rule[t->made->rule_count++] = rule;
    e->rule_count++;
}
