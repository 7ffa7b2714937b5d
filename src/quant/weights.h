// SPDX-License-Identifier: MIT
// The constant factor of a site: found behind its views, evaluated, rounded, put back.
//
//     dot(x, multibroadcast(w))   =>   dot(x, multibroadcast(dequantizelinear(w', scale)))
#pragma once

#include "quant/quant.h"
#include "quant/site.h"

enum { MGX_WEIGHTS_VIEWS = 8 };

struct mgx_weights {
    struct mgx_ins *at;                       // the site
    int input;                                // of the site, that they are
    struct mgx_ins *views[MGX_WEIGHTS_VIEWS]; // from the site's input on
    int view_count;
    struct mgx_tensor value; // what the views look at, row-major
    struct mgx_shape like;   // how it lay in memory
    int out_axis, in_axis;   // of value: channels of the result, and what is summed over
};

// mgx_weights_close releases them; also after a failure.
enum mgx_status mgx_weights_open(struct mgx_weights *w, const struct mgx_site *site, int input,
                                 struct mgx_diag *diag) MGX_NODISCARD;
void mgx_weights_close(struct mgx_weights *w);

// Row `i` of the odometer over the value: its element number, channel and place among the summed.
struct mgx_weights_walk {
    int64_t out_inner, outs, in_inner, ins;
};
struct mgx_weights_walk mgx_weights_walk(const struct mgx_weights *w);
static inline int64_t mgx_weights_out(const struct mgx_weights_walk *w, int64_t i)
{
    return i / w->out_inner % w->outs;
}
static inline int64_t mgx_weights_in(const struct mgx_weights_walk *w, int64_t i)
{
    return i / w->in_inner % w->ins;
}

struct mgx_weights_how {
    enum mgx_type type;
    bool per_tensor;
    struct mgx_doubles smooth; // the weights of what is summed are multiplied by it first
};
// Rounds them and gives what the site is to read instead, emitted before the site. `lost`, which
// may be NULL, has an element for every weight and gets what rounding added to it.
enum mgx_status mgx_weights_round(struct mgx_weights *w, const struct mgx_weights_how *how,
                                  float *lost, struct mgx_ins **out,
                                  struct mgx_diag *diag) MGX_NODISCARD;
// `core` behind the same views as the weights were.
struct mgx_ins *mgx_weights_dress(const struct mgx_weights *w, struct mgx_ins *core);
// The tensor as a literal that lies in memory as the weights did.
struct mgx_ins *mgx_weights_literal(const struct mgx_weights *w, struct mgx_tensor *take,
                                    struct mgx_diag *diag);
// The least scale of this type that does not lose digits.
double mgx_least_scale(enum mgx_type type);
