// SPDX-License-Identifier: MIT
// What the rules of ai.onnx.ml share.
#pragma once

#include "onnx/build.h"

// Index of the best class of every row.
struct mgx_ins *mgx_ml_best(struct mgx_node *n, struct mgx_ins *scores);
// Indices of classes to the labels of the node's classlabels_* list.
struct mgx_ins *mgx_ml_labels(struct mgx_node *n, struct mgx_ins *index);
int mgx_ml_label_count(const struct mgx_node *n);
// Scores of two classes {rows, 2} from the only one {rows, 1}, by what it is.
enum mgx_ml_score {
    MGX_ML_PROBABILITY, // 1 - s beside it
    MGX_ML_MARGIN,      // -s beside it
    MGX_ML_LOGIT        // the logistic function of both
};
struct mgx_ins *mgx_ml_both_scores(struct mgx_node *n, struct mgx_ins *s, enum mgx_ml_score is);
