// SPDX-License-Identifier: MIT
// See thread.h.
#include "base/thread.h"

#include <signal.h>

bool mgx_thread_start(pthread_t *out, void *(*fn)(void *user), void *user)
{
    sigset_t all, old;
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const bool good = pthread_create(out, NULL, fn, user) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return good;
}
