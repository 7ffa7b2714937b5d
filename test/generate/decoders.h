// SPDX-License-Identifier: MIT
// One small decoder of each kind as text, and a model of it for generators: caches with room, one that
// grows, a state of fixed lengths. Four words each.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "generate/generator.h"
#include "op/op.h"
#include "targets/target.h"

enum { WORDS = 4 };

// Scores are attention over a cache, and what one decaying state adds; "%s" is the cache.
static const char head[] =
    "module: \"main\"\n"
    "ids = @param:input_ids -> dynamic, int64_type, {b[0..], t[0..]}\n"
    "lengths = @param:seqlens_k -> dynamic, int64_type, {b[0..]}\n"
    "total = @param:total_sequence_length -> int64_type, {1}, {0}\n"
    "table = @literal{1, 0, 2, -1, 0.5, 1, -2, 1, -1, 2, 1, 0, 0.25, -1, 0.75, 2} -> float_type, "
    "{4, 4}, {4, 1}\n"
    "one = @literal{1} -> int64_type, {1}, {0}\n"
    "half = @literal{0.5} -> float_type, {1}, {0}\n"
    "x = gather[axis=0](table,ids)\n"
    "h = reshape[dims={0, 0, 1, 4}](x)\n"
    "q = transpose[permutation={0, 2, 1, 3}](h)\n";

static const char room[] =
    "past = @param:past_key_values.0.key -> dynamic, float_type, {b[0..], 1, p[0..], 4}\n"
    "ones = multibroadcast[out_lens={},out_dyn_dims={}](one,lengths)\n"
    "ends = add(lengths,ones)\n"
    "cache = cache_append(q,ends,total,past)\n"
    "y = cache_attention[scale=0.5,cap=0,window=0,bias=0,sink=0](q,cache,cache,ends)\n"
    "z = transpose[permutation={0, 2, 1, 3}](y)\n"
    "logits = reshape[dims={0, 0, 4}](z)\n"
    "r = @return(logits,cache)\n";

static const char growing[] =
    "past = @param:past_key_values.0.key -> dynamic, float_type, {b[0..], 1, p[0..], 4}\n"
    "cache = concat[axis=2](past,q)\n"
    "s = reduce_sum[axes={2}](cache)\n"
    "w = multibroadcast[out_lens={},out_dyn_dims={}](s,q)\n"
    "y = add(q,w)\n"
    "z = transpose[permutation={0, 2, 1, 3}](y)\n"
    "logits = reshape[dims={0, 0, 4}](z)\n"
    "r = @return(logits,cache)\n";

static const char fixed[] =
    "past = @param:past_key_values.0.key -> dynamic, float_type, {b[0..], 1, 4}\n"
    "halves = multibroadcast[out_lens={},out_dyn_dims={}](half,past)\n"
    "old = mul(past,halves)\n"
    "sum = reduce_sum[axes={1}](x)\n"
    "cache = add(old,sum)\n"
    "w = multibroadcast[out_lens={},out_dyn_dims={}](cache,x)\n"
    "logits = add(x,w)\n"
    "r = @return(logits,cache)\n";

static const char *const bodies[] = {room, growing, fixed};

// --- making ---

static enum mgx_status make_model(const char *body, struct mgx_generator_model **out,
                                  struct mgx_diag *diag)
{
    const struct mgx_compile_options options = {.threads = 1, .fast_math = true};
    char text[4096];
    snprintf(text, sizeof text, "%s%s", head, body);
    struct mgx_generator_model *m = *out = mgx_generator_model_create();
    if (!m)
        return mgx_fail_memory(diag);
    TRY(mgx_program_parse(&m->program, &mgx_ops, text, strlen(text), diag));
    static const char *const names[] = {"logits", "present.0.key"};
    m->program->output_names = (struct mgx_strings){names, 2};
    TRY(mgx_roles_find(&m->roles, m->program, NULL, &m->arena, diag));
    return mgx_program_compile(m->program, mgx_target_find("cpu"), &options, diag);
}

static struct mgx_generator_model *must_make(const char *body)
{
    struct mgx_diag diag;
    struct mgx_generator_model *m = NULL;
    mgx_diag_clear(&diag);
    if (make_model(body, &m, &diag) != MGX_OK) {
        printf("%s\n", diag.text);
        exit(2);
    }
    return m;
}
