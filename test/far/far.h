// SPDX-License-Identifier: MIT
// far: a target for tests whose memory the host cannot touch and whose kernels run later.
//
// Bytes of its memory lie in a file without a name that is mapped twice. The address handed out is
// of the first mapping, which has no access rights: whoever on the host reads or writes there
// faults at once. The second mapping lies elsewhere, and only what runs on a queue asks for it. A
// queue has a thread of its own. Every other queue runs nothing before it is waited for, as late as
// can be; the rest begin at once, and dawdle.
//
// Its kernels are few: element-wise instructions and bodies, copies, products with their epilogues,
// reductions. Everything else goes through the reference, with the copies that this needs. So far
// is what a card looks like to the planner, and mistakes about who may read which bytes when are
// faults or wrong results.
//
// New bytes are 0xff, which is NaN and -1; bytes behind an allocation are looked after.
#pragma once

#include "ir/memory.h"
#include "targets/target.h"

extern const struct mgx_target far_target; // not among mgx_target_all
extern const struct mgx_memory far_memory;
extern bool far_outputs; // programs compiled from now on are given the bytes of their results
extern bool far_borrows; // from now on their steps on the host are done by what target("cpu") lends

size_t far_memory_live(void); // bytes that are allocated now
// Allocations beyond so many live bytes fail; SIZE_MAX: none does.
void far_memory_limit(size_t bytes);

// --- for what runs on a queue ---
// The address at which bytes can be read and written.
void *far_look(const void *address);

typedef enum mgx_status (*far_work)(void *arguments, struct mgx_diag *diag);
// Gives work to a queue, with a copy of its arguments. What fails is told by the next wait; until
// then nothing more is run.
enum mgx_status far_submit(struct mgx_queue *queue, far_work work, const void *arguments,
                           size_t size, struct mgx_diag *diag) MGX_NODISCARD;
struct mgx_queue *far_queue_create(const struct mgx_memory *m);
void far_queue_destroy(struct mgx_queue *queue);
extern const struct mgx_plan_recorder far_recorder; // keeps commands and gives them again
extern int far_recordings;                          // live ones
extern int far_refusals; // recordings that cannot begin; counted down as they are asked for
enum mgx_status far_queue_wait(struct mgx_queue *queue, struct mgx_diag *diag) MGX_NODISCARD;

extern const struct mgx_plan_kernel *const far_kernels[];
extern const struct mgx_plan_kernel far_kernel_copy;
