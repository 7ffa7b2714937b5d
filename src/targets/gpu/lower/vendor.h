// SPDX-License-Identifier: MIT
// What the parts of a library's product share: how it sees what is offered (vendor_view.c), the
// kernel of ours behind it where it cannot do the whole (vendor_tail.c), which of its algorithms is
// taken (vendor_contest.c), the step (vendor.c).
#pragma once

#include "targets/gpu/lower/product.h"
#include "targets/gpu/vendor/vendor.h"

struct gpu_vendor_view {
    struct gpu_product p;
    int row_axes[MGX_MAX_RANK], row_axis_count; // of the result, that count its rows
    int batch_axis_count;                       // the first ones
    int column_axis;
    struct gpu_vendor_product whole; // with the result where it is wanted, and the tail in `last`
    struct gpu_vendor_product bare;  // alone, its result packed in scratch
    const char *why;                 // `whole` cannot be asked for; NULL: it can
    int add, bias;                   // inputs of the offer, -1: none
};

// The result as a bare product leaves it: rows in the order of their axes, columns innermost.
struct mgx_shape gpu_vendor_packed(const struct mgx_plan_offer *c, const struct gpu_vendor_view *v);
// Why no library can be asked; NULL: one can.
const char *gpu_vendor_see(const struct mgx_plan_offer *c, struct gpu_vendor_view *v);

// The text of the kernel that makes the result of the bare product, and its launch. Why it cannot be
// written; NULL if it can. Parameters: the result, the product, the tail's other operands.
const char *gpu_vendor_emit_tail(struct mgx_str *out, const struct mgx_plan_offer *c,
                                 const struct gpu_vendor_view *v, struct gpu_launch *how);

enum { GPU_VENDOR_ENTRIES = 16 };

struct gpu_vendor_entry { // an algorithm of a library
    const struct gpu_vendor_library *library;
    struct gpu_vendor_choice choice;
    bool whole; // else it is bare, and the tail follows
};

static inline size_t gpu_vendor_rounded(size_t bytes)
{
    return (bytes + GPU_VENDOR_ALIGNMENT - 1) / GPU_VENDOR_ALIGNMENT * GPU_VENDOR_ALIGNMENT;
}
// The bare product lies at the begin of a workspace, the library's own behind it.
size_t gpu_vendor_product_bytes(const struct gpu_vendor_view *v, const struct gpu_vendor_entry *e);
size_t gpu_vendor_workspace(const struct gpu_vendor_view *v, const struct gpu_vendor_entry *e);

// Is there a word of a library's for this product, in the cache or the program?
bool gpu_vendor_is_kept(const struct mgx_plan_offer *c, const struct gpu_vendor_view *v);
// *choice: the entry to take, or -1 for our own kernel; every one that is taken has run once. *said:
// what measuring or trying said, in the arena; NULL: nothing was.
enum mgx_status gpu_vendor_choose(struct mgx_plan_offer *c, const struct gpu_vendor_view *v,
                                  const struct gpu_vendor_entry *entries, int count, int *choice,
                                  const char **said) MGX_NODISCARD;
