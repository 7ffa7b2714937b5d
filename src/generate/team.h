// SPDX-License-Identifier: MIT
// Threads that do the same at the same time, one for each card of a decoder.
//
// Holds: one task at a time. The calling thread does the first card's; while the task runs nothing
// cancels it, for a card that stops alone leaves the others waiting.
// Cost: a task wakes the other threads, some microseconds each; a thread that has just been at work
// is still looking and takes less.
#pragma once

#include "base/status.h"

struct mgx_team;

// What one of them does; `card` from 0.
typedef enum mgx_status (*mgx_team_task)(void *user, int card, struct mgx_diag *diag);

enum mgx_status mgx_team_create(struct mgx_team **out, int count,
                                struct mgx_diag *diag) MGX_NODISCARD;
void mgx_team_destroy(struct mgx_team *team); // NULL is allowed
int mgx_team_count(const struct mgx_team *team);

// Returns when all have done it: the first card's failure, or else the next one's. A card whose
// task failed says so to `failed` at once, while others are still at theirs; NULL: nobody asks.
// *apart: one did what another could not.
enum mgx_status mgx_team_run(struct mgx_team *team, mgx_team_task task,
                             void (*failed)(void *user, int card), void *user, bool *apart,
                             struct mgx_diag *diag) MGX_NODISCARD;
