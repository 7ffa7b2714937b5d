// SPDX-License-Identifier: MIT
// Operators that cannot be imported. A walk goes on past one, so that one failure lists all of them
// instead of the first: a poison value is in the place of its results, and nodes that read it are
// passed over.
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "import/message.h"
#include "import/node.h"

struct mgx_missing_row { // an operator and a reason, and where it was met first
    const char *what, *node, *why;
    int64_t count;
    struct mgx_missing_row *next;
};

struct mgx_missing {
    struct mgx_arena *arena; // of the rows
    struct mgx_ins *poison;  // stands for the results of such an operator; NULL until it is needed
    struct mgx_map rows;     // text -> struct mgx_missing_row *
    struct mgx_missing_row *first, *last;
};

// Counts an operator `what` that cannot be imported; of `why` the first line counts.
enum mgx_status mgx_missing_add(struct mgx_missing *m, const char *what, const char *why,
                                struct mgx_slice node, struct mgx_diag *diag) MGX_NODISCARD;
// One failure that lists them all with a last line `hint` (NULL: none), or MGX_OK.
enum mgx_status mgx_missing_report(const struct mgx_missing *m, const char *hint,
                                   struct mgx_diag *diag) MGX_NODISCARD;
// Makes the poison, a parameter of main.
enum mgx_status mgx_missing_poison(struct mgx_missing *m, struct mgx_program *p,
                                   struct mgx_diag *diag) MGX_NODISCARD;
// Does the node read the result of an operator that could not be imported?
bool mgx_missing_reaches(const struct mgx_missing *m, const struct mgx_node *n);
void mgx_missing_fini(struct mgx_missing *m);
