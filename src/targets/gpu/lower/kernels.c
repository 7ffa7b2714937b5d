// SPDX-License-Identifier: MIT
// The GPU target's kernels in order of trial; the reference takes what they leave, on the host.
#include "plan/reference.h"
#include "targets/gpu/lower/lower.h"

const struct mgx_plan_kernel *const gpu_kernels[] = {
    &gpu_kernel_copy,         &gpu_kernel_depthwise,
    &gpu_kernel_direct,       &gpu_kernel_vendor,
    &gpu_kernel_wgmma,        &gpu_kernel_attention,
    &gpu_kernel_product,      &gpu_kernel_pointwise,
    &gpu_kernel_reduce,       &gpu_kernel_softmax,
    &gpu_kernel_pool_plane,   &gpu_kernel_pooling,
    &gpu_kernel_fused_reduce, &gpu_kernel_gather,
    &gpu_kernel_resize,       &gpu_kernel_pick,
    &gpu_kernel_scan,         &gpu_kernel_scatter,
    &gpu_kernel_lrn,          &gpu_kernel_grid_sample,
    &gpu_kernel_topk,         &gpu_kernel_linear_attention,
    &gpu_kernel_rnn_cluster,  &gpu_kernel_rnn,
    &gpu_kernel_col2im,       &gpu_kernel_deform,
    &gpu_kernel_pool_indices, &gpu_kernel_max_unpool,
    &gpu_kernel_roialign,     &gpu_kernel_det,
    &gpu_kernel_tfidf,        &gpu_kernel_trees,
    &gpu_kernel_nonzero,      &gpu_kernel_suppression,
    &gpu_kernel_unique,       &gpu_kernel_absent,
    &mgx_plan_reference,      NULL};
