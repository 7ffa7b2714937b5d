// SPDX-License-Identifier: MIT
// What the files of sizes share; see sizes.h. A table of chains under one lock. A row is what is
// known of one size: its lengths never change, everything else does under the lock only. Rows are
// in order of use as well.
//
//     sizes.c         runs, and a program's beginning and end
//     sizes_rows.c    the table
//     sizes_make.c    what plans cost, making them, and the thread that does
//     sizes_lens.c    a size that is asked for by name
#pragma once

#include <pthread.h>
#include <unistd.h>

#include "pass/engine/history.h"
#include "plan/plan.h"
#include "plan/shared.h"
#include "targets/sizes.h"
#include "targets/specialise.h"

enum {
    MGX_SIZES_BUCKETS = 256,
    MGX_SIZES_MEETINGS = 2,
    MGX_SIZES_MOST_LENS = 512,
    MGX_SIZES_HISTORIES = 16
};

enum mgx_size_state {
    MGX_SIZE_SEEN,
    MGX_SIZE_WAITING,
    MGX_SIZE_MAKING,
    MGX_SIZE_READY,
    MGX_SIZE_FAILED
};

struct mgx_size {
    struct mgx_size *next;          // in its bucket
    struct mgx_size *newer, *older; // by use
    struct mgx_size *waiting;       // behind this one, for the thread
    uint64_t hash;
    int64_t meetings; // how often it came; less when it kept others out (has_room)
    int users;        // runs that hold it, and whoever makes its plan
    enum mgx_size_state state;
    struct mgx_program *program;         // MGX_SIZE_READY
    struct mgx_plan_makeshift makeshift; // what it does without
    size_t plan_bytes;                   // of the program, of bytes
    double seconds;                      // that making it took
    size_t bytes;
    int64_t lens[]; // and the bytes of values
};

// What the passes did to a program of some kind: nearly the same to all of that kind.
struct mgx_size_known {
    uint64_t kind;
    struct mgx_pass_history *history; // complete
};

struct mgx_sizes {
    struct mgx_program *simplified;
    const struct mgx_target *target;
    struct mgx_compile_options options; // texts and lists in the arena
    struct mgx_arena arena;
    struct mgx_free_axis *axes;
    bool *follows;            // by axis: one before it has its name, and so its length
    int len_count;            // of them
    struct mgx_values values; // their bytes are the rest of the key
    bool only_beside;         // no run makes a plan, whatever it would save
    bool leaves_open;         // plans do not fix the lengths that are marked in `open`
    pthread_mutex_t lock;     // of everything below
    struct mgx_size *bucket[MGX_SIZES_BUCKETS];
    struct mgx_size *newest, *oldest;
    size_t bytes, limit;
    double plan_seconds; // that making a plan is expected to take
    double unit_seconds; // of a run of any size by the product of its lengths; 0: not known
    double own_seconds;  // the same of runs by plans
    double lost_seconds; // of runs through hasty plans since one was last made anew
    bool *open;          // by axis; with leaves_open
    int64_t *most;       // the largest length so far
    int *steps;          // how often that was one more than before
    struct mgx_size_known known[MGX_SIZES_HISTORIES]; // first come
    int known_count;
    int64_t met, plans, made, dropped; // sizes and plans there are, and for the explanation
    struct mgx_size *first_waiting, *last_waiting;
    pthread_t thread;
    pid_t process; // whose thread it is; 0: none was started, or it was joined
    bool at_work;  // the thread will look at the queue again
    bool stop;
};

// --- the table (sizes_rows.c) ---
// Bytes of a row's lengths and values.
size_t mgx_sizes_key_bytes(const struct mgx_sizes *s);
// NULL: the size was not met.
struct mgx_size *mgx_sizes_find(struct mgx_sizes *s, const int64_t *lens, uint64_t hash);
// NULL when out of memory.
struct mgx_size *mgx_sizes_add(struct mgx_sizes *s, const int64_t *lens, uint64_t hash);
// Takes a row out of the order of use, or makes it the newest.
void mgx_sizes_unlink_use(struct mgx_sizes *s, struct mgx_size *k);
void mgx_sizes_link_newest(struct mgx_sizes *s, struct mgx_size *k);
// Takes rows out until the rest is within its bound; the caller destroys them, without the lock.
struct mgx_size *mgx_sizes_shrink(struct mgx_sizes *s);
// Rows that are in no chain any more.
void mgx_sizes_destroy_row(struct mgx_size *k);
void mgx_sizes_destroy_rows(struct mgx_size *k);

// --- making plans (sizes_make.c) ---
// The product of the lengths, each name once.
double mgx_sizes_volume(const struct mgx_sizes *s, const struct mgx_size *k);
// Follows what is measured: down at once, since packing and other work slow some runs, up slowly.
double mgx_sizes_follow(double was, double is);
// Does a plan save its run as much as making it takes?
bool mgx_sizes_pays(const struct mgx_sizes *s, const struct mgx_size *k);
// Would a plan stay?
bool mgx_sizes_has_room(struct mgx_sizes *s, const struct mgx_size *k);
// A row's plan takes so many bytes now.
void mgx_sizes_weigh(struct mgx_sizes *s, struct mgx_size *k, size_t bytes);
// The best kernels of one size are packed: hasty plans of others have less to save.
void mgx_sizes_settle(struct mgx_sizes *s, double packed_seconds);
// Makes the plan of a row that its caller holds; the lock is held before and after.
void mgx_sizes_fill(struct mgx_sizes *s, struct mgx_size *k, bool soon);
// Leaves it to the thread, or does it where there is none.
void mgx_sizes_put_off(struct mgx_sizes *s, struct mgx_size *k);
// Waits for the thread.
void mgx_sizes_join(struct mgx_sizes *s);
