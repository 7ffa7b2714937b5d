// SPDX-License-Identifier: MIT
// Threads that do the same task: each once, and what failures of one and of all come to.
#include "generate/team.h"

#include <stdatomic.h>

#include "check.h"

enum { COUNT = 3 };

struct work {
    _Atomic int done[COUNT], told;
    int failing; // card, COUNT: all, -1: none
};

static enum mgx_status act(void *user, int card, struct mgx_diag *diag)
{
    struct work *w = user;
    w->done[card]++;
    if (w->failing == card || w->failing == COUNT)
        return mgx_fail(diag, MGX_LIMIT, "no room");
    return MGX_OK;
}

static void failed(void *user, int card)
{
    (void)card;
    ((struct work *)user)->told++;
}

CASE(each_does_every_task_once)
{
    struct work w = {.failing = -1};
    struct mgx_team *team;
    struct mgx_diag diag;
    bool apart = true;
    mgx_diag_clear(&diag);
    CHECK_OK(mgx_team_create(&team, COUNT, &diag), diag);
    CHECK_INT(mgx_team_count(team), COUNT);
    for (int i = 0; i < 500; i++)
        CHECK_OK(mgx_team_run(team, act, failed, &w, &apart, &diag), diag);
    for (int i = 0; i < COUNT; i++)
        CHECK_INT(w.done[i], 500);
    CHECK(!apart && !w.told);
    mgx_team_destroy(team);
}

CASE(what_one_could_not_do_sets_them_apart)
{
    struct mgx_team *team;
    struct mgx_diag diag;
    bool apart = false;
    mgx_diag_clear(&diag);
    CHECK_OK(mgx_team_create(&team, COUNT, &diag), diag);
    for (int card = 0; card <= COUNT; card++) {
        struct work w = {.failing = card};
        mgx_diag_clear(&diag);
        CHECK(mgx_team_run(team, act, failed, &w, &apart, &diag) == MGX_LIMIT);
        CHECK_TEXT(diag.text, "no room");
        CHECK(apart == (card < COUNT));
        CHECK_INT(w.told, card < COUNT ? 1 : COUNT);
    }
    mgx_team_destroy(team);
}

TEST_MAIN(ROW(each_does_every_task_once) ROW(what_one_could_not_do_sets_them_apart))
