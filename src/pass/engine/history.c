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

static bool is_next(const struct mgx_pass_history *h, int at, const struct mgx_pass *pass, int size)
{
    return at < h->count && h->event[at].pass == pass && h->event[at].size == size;
}

// Is what was noted so far the beginning of a history? Of passes that run still the end is open.
static bool begins(const struct mgx_pass_history *made, const struct mgx_pass_history *h)
{
    for (int i = 0; i < made->count; i++) {
        const struct mgx_pass_event *e = &made->event[i];
        if (!is_next(h, i, e->pass, e->size))
            return false;
        if (e->next && (e->next != h->event[i].next || e->changed != h->event[i].changed))
            return false;
    }
    return true;
}

// The event of this pass in the history that is followed, or in the first that can be from here on;
// NULL from the moment there is none.
static const struct mgx_pass_event *find_event(struct mgx_pass_trail *t,
                                               const struct mgx_pass *pass, int size)
{
    const int at = t->made->count;
    if (!t->past || !is_next(t->past, at, pass, size)) {
        t->past = NULL;
        for (int i = 0; i < t->known_count && !t->past; i++)
            if (is_next(t->known[i], at, pass, size) && begins(t->made, t->known[i]))
                t->past = t->known[i];
    }
    t->lost = !t->past;
    return t->past ? &t->past->event[at] : NULL;
}

// The event, and those of the passes that it ran, as if they had come about.
static void note_again(struct mgx_pass_trail *t, const struct mgx_pass_event *e)
{
    struct mgx_pass_history *h = t->made;
    assert(e == &t->past->event[h->count] && e->next > h->count && e->next <= MGX_PASS_EVENTS);
    for (; h->count < e->next; h->count++) {
        h->event[h->count] = t->past->event[h->count];
        h->event[h->count].first_rule = h->rule_count;
        h->event[h->count].rule_count = 0;
    }
}

bool mgx_trail_spares(struct mgx_pass_trail *t, const struct mgx_pass *pass,
                      const struct mgx_program *p)
{
    t->followed = NULL;
    if (!t->made || t->full || t->lost)
        return false;
    const struct mgx_pass_event *e = find_event(t, pass, size_of(p));
    if (!e || pass->by_size)
        return false;
    if (!e->changed) {
        note_again(t, e);
        return true;
    }
    t->followed = e;
    return false;
}

struct mgx_pass_event *mgx_trail_begin(struct mgx_pass_trail *t, const struct mgx_pass *pass,
                                       const struct mgx_program *p)
{
    struct mgx_pass_history *h = t->made;
    t->noted = NULL;
    t->full |= !h || h->count == MGX_PASS_EVENTS;
    if (t->full)
        return NULL;
    t->noted = &h->event[h->count++];
    *t->noted = (struct mgx_pass_event){.pass = pass, .size = size_of(p)};
    t->noted->first_rule = h->rule_count;
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
