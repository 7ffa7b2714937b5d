// SPDX-License-Identifier: MIT
// What steps read and write: bytes in a physical shape.
//
// A value is what an instruction makes; its physical shape (strides) is the planner's choice, the
// logical lengths are the instruction's. A view is a value without bytes of its own: a root and an
// offset. A root is a value that is its own root.
//
// Holds: following `root` ends; a root's offset is 0. The bytes of a root lie on one side. Where
// the other side reads them too there is a twin, a root of the same shape over there.
#pragma once

#include "ir/module.h"

enum mgx_plan_place {
    MGX_PLAN_SCRATCH, // offset into the context's block of the value's side
    MGX_PLAN_CONST,   // absolute address of immutable bytes
    MGX_PLAN_PARAM,   // caller's bytes
    MGX_PLAN_RESULT,  // the run's result number `index`
    MGX_PLAN_DYNAMIC, // tensor slot `index` of the context: shape known at run time
};

// The host, or the memory that the target brings. A target without one has the host alone.
enum mgx_plan_side { MGX_PLAN_HOST, MGX_PLAN_DEVICE, MGX_PLAN_SIDES };

struct mgx_plan_value {
    const struct mgx_ins *ins;
    struct mgx_shape shape;      // physical; of a dynamic value: what is known
    struct mgx_plan_value *root; // itself, or what this is a view of (which may be a view again)
    int64_t offset;              // bytes from the root's first byte
    bool dynamic;
    bool bound; // a root that was placed inside another value before it was computed (concat)
    // Of a root:
    enum mgx_plan_place place;
    enum mgx_plan_side side;
    int index;        // of parameter, result or dynamic slot
    const void *data; // MGX_PLAN_CONST
    size_t bytes;     // MGX_PLAN_SCRATCH
    size_t scratch;   // MGX_PLAN_SCRATCH: offset in the block
    int first, last;  // steps between which the bytes must stay
    // Of a root, while steps are made:
    struct mgx_plan_value *twin; // the same bytes on the other side, as of write number `twin_age`
    int writes, twin_age;
};

// Where a kernel finds an operand at run time.
struct mgx_plan_ref {
    enum mgx_plan_place place;
    enum mgx_plan_side side;
    int index;
    int64_t offset;
    const void *data;
};

// Follows views to the value that owns the bytes; adds up the offsets.
struct mgx_plan_value *mgx_plan_root(struct mgx_plan_value *v, int64_t *offset);
