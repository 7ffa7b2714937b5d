// SPDX-License-Identifier: MIT
// Algebra of views: any chain of reshapes, transposes and broadcasts in one normal form.
//
// The result's axes are lists of factors. A factor is a length and a stride, counted in elements of
// the source in row-major order (its logical order: how the source lies in memory does not matter);
// stride 0 repeats. So
//
//     source {2, 12}, reshape {2, 3, 4}, transpose {1, 0, 2}   is   axes [3:4] [2:12] [4:1]
//
// Two neighbouring factors n:s, m:t are one, n*m:t, if s == m*t; that is all there is to reshaping.
// From the normal form the shortest chain is written down again: at most reshape, transpose,
// reshape, multibroadcast, reshape, multibroadcast. What a reshape joins to something repeated is
// repeated before it, at the cost of a copy; whole axes are repeated after it.
//
// Holds: shapes are static and not empty. Cost: O(rank) per step.
#pragma once

#include "pass/engine/pass.h"

enum { MGX_VIEW_FACTORS = 32 };

struct mgx_factor {
    int64_t length, stride;
};

struct mgx_view {
    struct mgx_shape source; // lengths alone matter
    int rank;
    int64_t lens[MGX_MAX_RANK];
    int begin[MGX_MAX_RANK +
              1]; // axis d has factors begin[d] .. begin[d + 1] - 1; none if length 1
    struct mgx_factor factor[MGX_VIEW_FACTORS];
};

// The source itself. False if the shape is dynamic or empty.
bool mgx_view_start(struct mgx_view *v, const struct mgx_shape *source);

// Each applies one more step; false (the view is then spoilt) where factors do not split that way.
bool mgx_view_reshape(struct mgx_view *v, const int64_t *lens, int rank);
bool mgx_view_transpose(struct mgx_view *v, const int *permutation);
bool mgx_view_broadcast(struct mgx_view *v, const int64_t *lens, int rank, int first_axis);

// Is it one of the operators that a view describes (reshape, squeeze, unsqueeze, flatten,
// transpose, multibroadcast, broadcast, identity, contiguous)?
bool mgx_is_reshaper(const struct mgx_ins *ins);
bool mgx_view_apply(struct mgx_view *v, const struct mgx_ins *ins);
// The step that takes the lengths of `ins` back to those of its input; not for broadcasts.
bool mgx_view_apply_inverse(struct mgx_view *v, const struct mgx_ins *ins);

// How far two shapes agree, lengths of 1 left out: where they differ; both ranks where they do not.
void mgx_shapes_agree(const struct mgx_shape *a, const struct mgx_shape *b, int *i, int *k);
// Are they the same values of one source in the same places?
bool mgx_view_equal(const struct mgx_view *x, const struct mgx_view *y);

// The shortest chain: which steps it has.
struct mgx_view_plan {
    bool split;      // reshape of the source into its factors
    bool transpose;  // permutation[] of `ordered_rank` axes
    bool join;       // reshape into the lengths before repetition, ...
    bool regroup;    // ... which is more than taking out or putting in lengths of 1
    bool spread;     // multibroadcast, or ...
    bool lay;        // ... broadcast along `axis`, alone
    bool join_after; // reshape of what was repeated, ...
    bool widen;      // ... and multibroadcast of axes that repeat nothing else
    int axis;
    int split_rank, permutation[MGX_MAX_RANK];
    int64_t split_lens[MGX_MAX_RANK];
    int narrow_rank; // before repetition
    int64_t narrow_lens[MGX_MAX_RANK], wide_lens[MGX_MAX_RANK];
    int64_t join_lens[MGX_MAX_RANK]; // what join_after makes; as many as the result has
    int steps;
};

// False if the chain would need more than MGX_MAX_RANK axes.
bool mgx_view_plan(const struct mgx_view *v, struct mgx_view_plan *out);
// Does it move bytes, even of a row-major source: a reshape after a transpose or a repetition?
bool mgx_view_copies(const struct mgx_view_plan *plan);
// How many elements the reshape behind a repetition copies; 0 where there is none.
int64_t mgx_view_copied(const struct mgx_view *v, const struct mgx_view_plan *plan);
struct mgx_ins *mgx_view_emit(struct mgx_ins *at, struct mgx_ins *source, const struct mgx_view *v,
                              const struct mgx_view_plan *plan);
