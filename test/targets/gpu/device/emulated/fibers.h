// SPDX-License-Identifier: MIT
// The threads of a block, one at a time on one processor, each on a stack of its own.
#pragma once

#include <stdbool.h>

enum { FIBERS_MOST = 1024 };

// Makes `count` fibers that will call `run`; those of before are forgotten. False: no memory.
bool fibers_begin(int count, void (*run)(void));
void fibers_resume(int i); // from outside, until it pauses or ends
bool fibers_ended(int i);
void fibers_pause(void); // from inside
int fibers_current(void);
