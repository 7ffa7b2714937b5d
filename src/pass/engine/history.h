// SPDX-License-Identifier: MIT
// What each pass of a pipeline did to one program, so that another of its kind is spared the passes
// that found nothing.
//
//     the first of a kind     every pass runs; noted are its name, the size of the program before it,
//                             whether it changed anything, and by which rules (rewrite.h)
//     another of that kind    a pass that changed nothing there is passed over; one that did tries
//                             these rules alone
//
// A kind is a program with free sizes that gets fixed ones (targets/sizes.h): the same
// instructions, other lengths. Most passes of a pipeline find nothing, those of its loops above
// all, and the others by few of their rules. Where the way of a program parts from the history it
// follows, it goes on by another one that is the same up to there, or else on its own; then its
// notes are one more history.
//
// Holds: a rewrite keeps the meaning of a program and is never owed to it, so a history that does
// not fit leaves a program slower than it might be, never wrong. A way parts where another pass
// comes, or the program has another size. A pass whose choice depends on how large things are
// (mgx_pass.by_size) always runs. A history that is complete never changes, and may be followed by
// several programs at once.
#pragma once

#include "pass/engine/pass.h"

struct mgx_rule; // rewrite.h

enum { MGX_PASS_EVENTS = 128, MGX_PASS_RULES = 256 };

struct mgx_pass_event {
    const struct mgx_pass *pass;
    int size;     // of the program, before
    int next;     // the event behind those of the passes that this one ran; 0 while it runs
    bool changed; // by it, or by one of these
    int first_rule, rule_count; // that rewrote something; -1: not known
};

struct mgx_pass_history {
    struct mgx_pass_event event[MGX_PASS_EVENTS];
    const struct mgx_rule *rule[MGX_PASS_RULES]; // of one event after the other
    int count, rule_count;                       // what came later is not known
};

// One program's way through its pipelines.
struct mgx_pass_trail {
    const struct mgx_pass_history *const *known; // of its kind
    int known_count;
    struct mgx_pass_history *made; // its own; NULL: all passes run, and nothing is noted
    bool lost;                     // none of the known ones fits
    // Inside:
    bool full;                           // `made` is
    const struct mgx_pass_history *past; // followed as far as `made` goes
    // The pass at work, unless it ran others since: its event in `past`, and in `made`; or NULL.
    const struct mgx_pass_event *followed;
    struct mgx_pass_event *noted;
};

// Need this pass not run?
bool mgx_trail_spares(struct mgx_pass_trail *t, const struct mgx_pass *pass,
                      const struct mgx_program *p);
// Around a pass that runs; `begin` gives what `end` wants.
struct mgx_pass_event *mgx_trail_begin(struct mgx_pass_trail *t, const struct mgx_pass *pass,
                                       const struct mgx_program *p);
void mgx_trail_end(struct mgx_pass_trail *t, struct mgx_pass_event *noted, bool changed);

// Of the pass at work. `t` may be NULL.
bool mgx_trail_tries(const struct mgx_pass_trail *t, const struct mgx_rule *rule);
bool mgx_trail_tries_all(const struct mgx_pass_trail *t);
void mgx_trail_note(struct mgx_pass_trail *t, const struct mgx_rule *rule); // it rewrote something
