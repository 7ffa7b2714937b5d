// SPDX-License-Identifier: MIT
// Long work: how far it is, and Ctrl-C.
//
// The engine asks every two milliseconds, while a call of it is at work, whether to go on. That is
// when the state is shown: on a terminal, from the second second on, in one line that is wiped
// when the work ends. In a pipe nothing is shown.
//
// The first Ctrl-C ends the call that is at work; whoever runs rounds prints what he has. The
// second one ends the process.
#include <math.h>
#include <signal.h>
#include <unistd.h>

#include "driver.h"

static struct {
    const char *what; // NULL: no work
    int done, total;  // total 0: not known
    double begin, shown;
    double most;  // seconds that it may take; 0: any
    double share; // that is done; 0: not known
    bool terminal;
    migraphx_cancellation_t cancellation;
} work;

static volatile sig_atomic_t stopped, interrupted;

static void on_interrupt(int number)
{
    (void)number;
    stopped = interrupted = 1;
}

static void wipe(void)
{
    if (work.shown > 0)
        fprintf(stderr, "\r\033[K");
    work.shown = 0;
}

static void show(void)
{
    const double now = now_ms(), passed = now - work.begin;
    if (!work.terminal || !work.what || passed < 2000 || now - work.shown < 200)
        return;
    work.shown = now;
    fprintf(stderr, "\r\033[K%s: ", work.what);
    if (work.total > 1 && work.done > 0)
        fprintf(stderr, "%d of %d, %.0f s left", work.done, work.total,
                ceil(passed / work.done * (work.total - work.done) / 1000));
    else if (work.done > 0)
        fprintf(stderr, "%d problem%s, %.0f s", work.done, work.done == 1 ? "" : "s",
                passed / 1000);
    else
        fprintf(stderr, "%.0f s", passed / 1000);
    if (work.share > 0)
        fprintf(stderr, ", about %.0f s left", ceil(passed / work.share * (1 - work.share) / 1000));
    if (work.most > 0)
        fprintf(stderr, " of %.0f s at most", work.most);
    fflush(stderr);
}

static bool asked(void *data)
{
    (void)data;
    show();
    return stopped;
}

void work_start(void)
{
    struct sigaction action = {.sa_handler = on_interrupt,
                               .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};
    work.terminal = isatty(STDERR_FILENO);
    if (migraphx_cancellation_create(&work.cancellation) != migraphx_status_success ||
        migraphx_cancellation_set_callback(work.cancellation, asked, NULL) !=
            migraphx_status_success ||
        migraphx_cancellation_attach(work.cancellation) != migraphx_status_success)
        return;
    sigaction(SIGINT, &action, NULL);
}

void work_stop(void)
{
    wipe();
    migraphx_cancellation_detach(work.cancellation);
    migraphx_cancellation_destroy(work.cancellation);
    work.cancellation = NULL;
}

void work_begin(const char *what, int total)
{
    wipe();
    work.what = what;
    work.done = 0;
    work.total = total;
    work.most = work.share = 0;
    work.begin = now_ms();
}

void work_limit(double seconds)
{
    work.most = seconds;
}

void work_share(double share)
{
    work.share = share;
}

bool work_is_begun(void)
{
    return work.what != NULL;
}

bool work_step(int done)
{
    work.done = done;
    show();
    return !stopped;
}

void work_end(void)
{
    wipe();
    work.what = NULL;
}

void work_wipe(void)
{
    wipe();
}

bool work_stopped(void)
{
    return stopped;
}

bool work_interrupted(void)
{
    return interrupted;
}

void work_finish(void)
{
    stopped = 0;
    migraphx_cancellation_reset(work.cancellation);
}
