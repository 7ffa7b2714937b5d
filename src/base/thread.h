// SPDX-License-Identifier: MIT
// Starting a thread of the library's own.
//
// Signals are for the host program's threads: ours start with all of them blocked, but for a
// thread's own faults. A fault that is blocked ends the process, and the bus error of a mapped file
// that shrank has a handler (file.h).
#pragma once

#include <pthread.h>
#include <stdbool.h>

// False when the system refuses. The caller joins it.
bool mgx_thread_start(pthread_t *out, void *(*fn)(void *user), void *user);
