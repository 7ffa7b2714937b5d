// SPDX-License-Identifier: MIT
// Private to the random programs: the state of a program under construction, and the candidates.
#pragma once

#include "random_program.h"

enum { RANDOM_POOL = 96, RANDOM_IN = 6 };

struct random_value {
    struct mgx_ins *ins;
    struct mgx_tensor tensor; // borrowed from `owned` of the builder
    double error;             // how far two ways of computing it may lie apart, absolute
    double scale;             // largest magnitude
};

struct random_builder {
    uint64_t state;
    const struct random_options *options;
    struct mgx_program *program;
    struct mgx_module *module;
    struct random_value pool[RANDOM_POOL];
    int count;
    enum mgx_type type; // that most values have
    int64_t dims[5];    // lengths that shapes are made of
    int depth;          // of modules
    struct mgx_arena arena, strings;
    struct mgx_eval eval;
    struct random_program *out;
};

uint64_t random_next(struct random_builder *b);
int random_below(struct random_builder *b, int bound); // 0 .. bound-1
bool random_chance(struct random_builder *b, int percent);
double random_real(struct random_builder *b, double low, double high);

// Each returns the index of a value in the pool, -1 if there is none or the candidate was rejected.
int random_pick(struct random_builder *b, bool (*fits)(const struct mgx_shape *s));
int random_pick_like(struct random_builder *b, const struct mgx_shape *s, int but);
int random_literal(struct random_builder *b, const struct mgx_shape *s, double low, double high);
int random_splat(struct random_builder *b, const struct mgx_shape *like, double value);
// Something to combine with `like`: another value, a literal, a broadcast one, a single number.
int random_operand(struct random_builder *b, const struct mgx_shape *like, int but);
int random_emit(struct random_builder *b, const struct mgx_op *op, const struct mgx_attr *attrs,
                const int *in, int in_count);
int random_emit_bodies(struct random_builder *b, const struct mgx_op *op,
                       const struct mgx_attr *attrs, const int *in, int in_count,
                       struct mgx_module *const *mod, int mod_count);
const struct mgx_shape *random_shape(const struct random_builder *b, int value);

// One more instruction or pattern; random_candidates.c.
void random_step(struct random_builder *b);
