// SPDX-License-Identifier: MIT
// Steps that a machine keeps and runs as one: device graphs.
//
//     steps      h d d d d d h d d d        h works on the host or copies from or to it
//     stretches    [-------]   [---]        d only gives work to the queue
//
// A stretch that is met a second time with the same addresses is recorded while its steps are
// given to the queue, and from then on played: one launch for all of them. Scratch and constants
// of a context never move, so only the caller's bytes decide: parameters and results that the
// stretch touches. A context keeps a few recordings of each stretch, one for every set of them.
//
// Holds: a recording belongs to a context, so one run at a time plays it. A machine that cannot
// record some stretch is asked once; its steps then run one by one, as they did before.
// Cost: the comparison of the stretch's own addresses in every run; a second run that records.
#pragma once

#include "plan/plan.h"

struct mgx_context;

enum { MGX_PLAN_RECORDINGS = 8, MGX_PLAN_STRETCH = 2 }; // kept of a stretch; its fewest steps

struct mgx_plan_stretch {
    int first, last;                    // steps
    const struct mgx_plan_ref **caller; // where it touches the caller's bytes
    int caller_count;
};

// The plan's stretches; none for machines without a recorder. When the steps are final.
enum mgx_status mgx_plan_build_stretches(struct mgx_plan *plan,
                                         struct mgx_diag *diag) MGX_NODISCARD;

enum mgx_plan_played { MGX_PLAN_STEP_BY_STEP, MGX_PLAN_RECORD, MGX_PLAN_PLAYED };

// What to do with the stretch that begins at this step: it is on the queue already; its steps are
// to be run between begin and end; or they are to be run as if there were no stretch.
enum mgx_status mgx_plan_play(struct mgx_context *x, int stretch, enum mgx_plan_played *what,
                              struct mgx_diag *diag) MGX_NODISCARD;
// The steps of a stretch to be recorded were given to the queue; `failed`: one of them could not.
// Plays what was recorded. False: nothing was, and the steps must run one by one.
bool mgx_plan_recorded(struct mgx_context *x, int stretch, bool failed);

void mgx_plan_drop_recordings(struct mgx_context *x);
