// SPDX-License-Identifier: MIT
// Stacks are made once. A fiber begins by swapcontext, which asks the kernel about signals, and goes
// on by the jumps of setjmp, which do not.
#undef _FORTIFY_SOURCE // its longjmp takes another stack for a mistake
#include "fibers.h"

#include <setjmp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK_BYTES = 256 << 10 };

static _Thread_local struct fiber {
    ucontext_t context;
    jmp_buf there;
    bool begun, ended;
} fibers[FIBERS_MOST];

static _Thread_local char *stacks;
static _Thread_local int current;
static _Thread_local void (*body)(void);
static _Thread_local ucontext_t outside_context;
static _Thread_local jmp_buf outside;

static void enter(void)
{
    body();
    fibers[current].ended = true;
    _longjmp(outside, 1);
}

bool fibers_begin(int count, void (*run)(void))
{
    const size_t bytes = (size_t)FIBERS_MOST * STACK_BYTES;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    if (!stacks)
        stacks = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (stacks == MAP_FAILED) {
        stacks = NULL;
        return false;
    }
    body = run;
    for (int i = 0; i < count; i++)
        fibers[i].begun = fibers[i].ended = false;
    return true;
}

static void begin(struct fiber *f)
{
    f->begun = true;
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = stacks + (size_t)(f - fibers) * STACK_BYTES;
    f->context.uc_stack.ss_size = STACK_BYTES;
    f->context.uc_link = NULL;
    makecontext(&f->context, enter, 0);
    swapcontext(&outside_context, &f->context);
}

void fibers_resume(int i)
{
    current = i;
    if (_setjmp(outside))
        return;
    if (fibers[i].begun)
        _longjmp(fibers[i].there, 1);
    begin(&fibers[i]);
}

void fibers_pause(void)
{
    if (!_setjmp(fibers[current].there))
        _longjmp(outside, 1);
}

bool fibers_ended(int i)
{
    return fibers[i].ended;
}

int fibers_current(void)
{
    return current;
}
