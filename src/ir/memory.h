// SPDX-License-Identifier: MIT
// Where bytes lie: a memory that is not the host's, as a target brings it.
//
// NULL stands for the host's own memory everywhere. An address of another memory is a number to the
// host: it may be added to, given to a kernel of the target, and to the functions here; whoever
// reads or writes through it on the host is wrong, and faults where the memory can see to it.
//
// A queue does what it is given in order, at some later time. `wait` returns when all of it is
// done, and says what went wrong meanwhile. Host memory that a copy reads or writes stays alive and
// untouched until then.
//
// Holds: a memory outlives all that was allocated from it. Its functions may be called by any
// number of threads, those of one queue by one thread at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct mgx_queue; // a memory's own

// Threads of the host that may help with a copy: fn(user, task, thread) for every task, by several
// of them at once, and done when it returns.
struct mgx_memory_help {
    void (*spread)(const void *who, int tasks, void (*fn)(void *user, int task, int thread),
                   void *user);
    const void *who;
};

struct mgx_memory {
    const char *name;
    const char *device; // which one, as whoever chooses names it: "cuda:0"; NULL: it has no name
    // 64-byte aligned, uninitialised; at least one byte. NULL when there is no room.
    void *(*allocate)(const struct mgx_memory *m, size_t bytes);
    // Nothing on any queue reads or writes it any more. NULL is allowed.
    void (*free)(const struct mgx_memory *m, void *address);

    struct mgx_queue *(*queue_create)(const struct mgx_memory *m); // NULL when there is no room
    void (*queue_destroy)(struct mgx_queue *queue);                // waits; NULL is allowed
    enum mgx_status (*copy_in)(struct mgx_queue *queue, void *to, const void *from, size_t bytes,
                               struct mgx_diag *diag) MGX_NODISCARD;
    enum mgx_status (*copy_out)(struct mgx_queue *queue, void *to, const void *from, size_t bytes,
                                struct mgx_diag *diag) MGX_NODISCARD;
    // From one place of the memory to another, which do not overlap; and the same byte everywhere.
    enum mgx_status (*copy)(struct mgx_queue *queue, void *to, const void *from, size_t bytes,
                            struct mgx_diag *diag) MGX_NODISCARD;
    enum mgx_status (*fill)(struct mgx_queue *queue, void *to, unsigned char byte, size_t bytes,
                            struct mgx_diag *diag) MGX_NODISCARD;
    enum mgx_status (*wait)(struct mgx_queue *queue, struct mgx_diag *diag) MGX_NODISCARD;

    // All of these three or none: callers' streams. `enter` has the queue give its work to the
    // caller's stream (a handle of the device's driver, NULL its default one), or with `own` to its
    // own again, behind all that it was given before. `leave` says that what was given will not be
    // waited for: the next `enter` comes behind it on the device, and so does queue_destroy.
    enum mgx_status (*enter)(struct mgx_queue *queue, bool own, void *stream,
                             struct mgx_diag *diag) MGX_NODISCARD;
    enum mgx_status (*leave)(struct mgx_queue *queue, struct mgx_diag *diag) MGX_NODISCARD;
    // The driver's handle of the stream that the queue gives its work to.
    void *(*stream)(struct mgx_queue *queue);
    // Is the address in it? Asked of addresses that came without a word about them.
    bool (*holds)(const struct mgx_memory *m, const void *address);
    // A mark behind what the queue was given (*mark NULL: made now), and the microseconds between
    // two marks that are past. NULL: the device has no clock.
    enum mgx_status (*mark)(struct mgx_queue *queue, void **mark,
                            struct mgx_diag *diag) MGX_NODISCARD;
    enum mgx_status (*elapsed)(struct mgx_queue *queue, void *from, void *to, double *microseconds,
                               struct mgx_diag *diag) MGX_NODISCARD;
    void (*unmark)(struct mgx_queue *queue, void *mark); // NULL is allowed
    // Large copies of the queue to and from the host's memory may have help from now on. Bytes for
    // the host are then in their place after `wait` or `leave`, not before. NULL: it needs none.
    void (*help)(struct mgx_queue *queue, const struct mgx_memory_help *help);
    // Waits until the device has done all that anybody has given it.
    enum mgx_status (*settle)(const struct mgx_memory *m, struct mgx_diag *diag) MGX_NODISCARD;
};

// Copies bytes from one memory to another, NULL being the host's, and returns when it is done. What
// the device is at is waited for first.
enum mgx_status mgx_memory_copy(const struct mgx_memory *to_memory, void *to,
                                const struct mgx_memory *from_memory, const void *from,
                                size_t bytes, struct mgx_diag *diag) MGX_NODISCARD;
