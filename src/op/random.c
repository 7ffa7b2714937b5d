// SPDX-License-Identifier: MIT
// random_uniform, random_mersenne, random_normal, random_seed, multinomial.
//
// random_uniform(seed, like) fills the lengths and type of `like` one after the other with what
// C++'s std::mt19937 gives for the seed through the uniform distributions of libstdc++, as
// MIGraphX does: floats on [0, 1), integers from 0 to their largest. random_mersenne draws what
// numpy's generator draws from the same state. Element i of a normal tensor is a function of
// (seed, i) alone, two steps of SplitMix64 made normal by Box and Muller. A seed that is a float
// counts without its fraction. random_seed gives the next seed of the run; multinomial(cdf, u)
// picks the first class whose cumulative weight exceeds u times the total.
#include <assert.h>
#include <math.h>

#include "op/rule/rule.h"

static uint64_t mix(uint64_t seed, uint64_t i)
{
    uint64_t z = seed + (i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static enum mgx_type uniform_type(const struct mgx_shape_call *c)
{
    return c->in[1]->type;
}

static enum mgx_status uniform_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(mgx_require_number(c, 0));
    TRY(mgx_require_number(c, 1));
    *out = mgx_shape_retype(c->in[1], c->in[1]->type);
    return MGX_OK;
}

// --- MT19937 ---

enum { WORDS = 624, AHEAD = 397 };

struct mersenne {
    uint32_t word[WORDS];
    int next;
};

static void mersenne_init(struct mersenne *m, uint32_t seed)
{
    for (uint32_t i = 0; i < WORDS; i++) {
        m->word[i] = seed;
        seed = 1812433253u * (seed ^ seed >> 30) + i + 1;
    }
    m->next = WORDS;
}

static void mersenne_turn(struct mersenne *m)
{
    for (int i = 0; i < WORDS; i++) {
        const uint32_t both = (m->word[i] & 0x80000000u) | (m->word[(i + 1) % WORDS] & 0x7FFFFFFFu);
        m->word[i] = m->word[(i + AHEAD) % WORDS] ^ both >> 1 ^ (both & 1 ? 0x9908B0DFu : 0);
    }
    m->next = 0;
}

static uint32_t mersenne_word(struct mersenne *m)
{
    if (m->next == WORDS)
        mersenne_turn(m);
    uint32_t w = m->word[m->next++];
    w ^= w >> 11;
    w ^= w << 7 & 0x9D2C5680u;
    w ^= w << 15 & 0xEFC60000u;
    return w ^ w >> 18;
}

// --- random_uniform ---

// Two words a number, the later one weighs more. What a narrower type would round up to 1 becomes
// the largest number below.
static double uniform_real(struct mersenne *m, enum mgx_type type)
{
    const double low = mersenne_word(m), high = mersenne_word(m);
    const double value = (high * 0x1p32 + low) * 0x1p-64;
    const int digits = type == MGX_DOUBLE  ? 53
                       : type == MGX_FLOAT ? 24
                       : type == MGX_HALF  ? 11
                       : type == MGX_BF16  ? 8
                                           : 3;
    return fmin(value, 1 - ldexp(1, -digits));
}

// The upper bits of a word; types of more than 32 bits take a second word below them.
static int64_t uniform_int(struct mersenne *m, int bits)
{
    assert(bits > 0 && bits <= 64);
    if (bits <= 32)
        return mersenne_word(m) >> (32 - bits);
    const uint64_t high = mersenne_word(m) >> (64 - bits);
    return (int64_t)(high << 32 | mersenne_word(m));
}

static enum mgx_status uniform(struct mgx_compute_call *c)
{
    int64_t seed;
    TRY(mgx_scalar_int(c, 0, &seed));
    struct mersenne m;
    mersenne_init(&m, (uint32_t)seed);
    const int64_t count = mgx_shape_elements(&c->out->shape);
    const enum mgx_type type = c->out->shape.type;
    const int bits = 8 * (int)mgx_type_size(type) - (mgx_type_lowest(type) < 0);
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = mgx_shape_index(&c->out->shape, i);
        if (mgx_type_is_float(type))
            mgx_store_double(type, c->out->data, at, uniform_real(&m, type));
        else
            mgx_store_int(type, c->out->data, at, uniform_int(&m, type == MGX_BOOL ? 1 : bits));
    }
    return MGX_OK;
}

const struct mgx_op mgx_op_random_uniform = {
    .name = "random_uniform",
    .meaning = "uniform on [0, 1), from a seed, with the lengths and type of the second input",
    .in_min = 2,
    .in_max = 2,
    .shape = uniform_shape,
    .unranked_type = uniform_type,
    .compute = uniform,
};

// --- random_mersenne: two words a number, 53 bits of them ---

static enum mgx_status mersenne_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    if (c->in[1]->type != MGX_DOUBLE) // a narrower type would round the largest up to 1
        return mgx_fail(c->diag, MGX_INVALID, "random_mersenne: input 1 is %s, not double_type",
                        mgx_type_name(c->in[1]->type));
    return uniform_shape(c, out);
}

static enum mgx_status mersenne(struct mgx_compute_call *c)
{
    int64_t seed;
    TRY(mgx_scalar_int(c, 0, &seed));
    struct mersenne m;
    mersenne_init(&m, (uint32_t)seed);
    const int64_t count = mgx_shape_elements(&c->out->shape);
    double *y = c->out->data;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t high = mersenne_word(&m) >> 5, low = mersenne_word(&m) >> 6;
        y[mgx_shape_index(&c->out->shape, i)] = ((double)high * 0x1p26 + low) * 0x1p-53;
    }
    return MGX_OK;
}

const struct mgx_op mgx_op_random_mersenne = {
    .name = "random_mersenne",
    .meaning = "uniform on [0, 1), as numpy draws it from the seed, with the lengths of the second "
               "input",
    .in_min = 2,
    .in_max = 2,
    .shape = mersenne_shape,
    .unranked_type = uniform_type,
    .compute = mersenne,
};

static enum mgx_status normal_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(mgx_require_float(c, 1));
    return uniform_shape(c, out);
}

static enum mgx_status normal(struct mgx_compute_call *c)
{
    int64_t seed;
    TRY(mgx_scalar_int(c, 0, &seed));
    const int64_t count = mgx_shape_elements(&c->out->shape);
    for (int64_t i = 0; i < count; i++) {
        // 53 bits each; the first is in (0, 1], so that its logarithm is finite
        const uint64_t a = mix((uint64_t)seed, 2 * (uint64_t)i) >> 11;
        const uint64_t b = mix((uint64_t)seed, 2 * (uint64_t)i + 1) >> 11;
        const double radius = sqrt(-2 * log((double)(a + 1) * 0x1p-53));
        mgx_store_double(c->out->shape.type, c->out->data, i,
                         radius * cos(2 * M_PI * 0x1p-53 * (double)b));
    }
    return MGX_OK;
}

const struct mgx_op mgx_op_random_normal = {
    .name = "random_normal",
    .meaning = "normal of mean 0 and deviation 1, from a seed, shaped like the second input",
    .in_min = 2,
    .in_max = 2,
    .shape = normal_shape,
    .unranked_type = uniform_type,
    .compute = normal,
};

struct seed {
    int64_t dtype;
};

static const struct mgx_field seed_fields[] = {MGX_TYPE(struct seed, dtype), {0}};
static const struct seed seed_defaults = {.dtype = MGX_UINT64};

static enum mgx_status seed_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const enum mgx_type type = (enum mgx_type)((const struct seed *)c->attr)->dtype;
    if (!mgx_type_is_integral(type))
        return mgx_fail(c->diag, MGX_INVALID, "random_seed: %s is no integer type",
                        mgx_type_name(type));
    const int64_t one = 1;
    *out = mgx_shape_make(type, 1, &one);
    return MGX_OK;
}

static enum mgx_status next_seed(struct mgx_compute_call *c)
{
    mgx_store_int(c->out->shape.type, c->out->data, 0, (int64_t)mix(c->eval->seed++, 0));
    return MGX_OK;
}

const struct mgx_op mgx_op_random_seed = {
    .name = "random_seed",
    .meaning = "a seed that differs from call to call",
    .fields = seed_fields,
    .attr_size = sizeof(struct seed),
    .defaults = &seed_defaults,
    .flags = MGX_OP_IMPURE,
    .shape = seed_shape,
    .compute = next_seed,
};

struct multinomial {
    int64_t dtype;
};

static const struct mgx_field multinomial_fields[] = {MGX_TYPE(struct multinomial, dtype), {0}};
static const struct multinomial multinomial_defaults = {.dtype = MGX_INT32};

static enum mgx_type multinomial_type(const struct mgx_shape_call *c)
{
    return (enum mgx_type)((const struct multinomial *)c->attr)->dtype;
}

static enum mgx_status multinomial_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const enum mgx_type type = (enum mgx_type)((const struct multinomial *)c->attr)->dtype;
    for (int i = 0; i < 2; i++) {
        TRY(mgx_require_rank(c, i, 1, MGX_MAX_RANK));
        TRY(mgx_require_number(c, i));
    }
    if (!mgx_type_is_integral(type) && !mgx_type_is_float(type))
        return mgx_fail(c->diag, MGX_INVALID, "multinomial: %s is no type of numbers",
                        mgx_type_name(type));
    *out = mgx_shape_retype(c->in[1], type);
    return MGX_OK;
}

// The first class of row `cdf` (cumulative, not normalised) beyond u.
static int64_t draw(const double *cdf, int64_t classes, double u)
{
    assert(classes > 0);
    int64_t low = 0, high = classes - 1;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (cdf[middle] > u * cdf[classes - 1])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static enum mgx_status multinomial(struct mgx_compute_call *c)
{
    const struct mgx_shape *x = &c->in[0]->shape, *y = &c->out->shape;
    const int64_t classes = x->lens[x->rank - 1], samples = y->lens[y->rank - 1];
    const int64_t count = mgx_shape_elements(y);
    if (count == 0)
        return MGX_OK;
    const int64_t rows = count / samples;
    if (classes == 0 || rows != mgx_shape_elements(x) / classes)
        return mgx_fail(c->diag, MGX_INVALID,
                        "multinomial: %lld rows of samples for weights of %lld elements",
                        (long long)rows, (long long)mgx_shape_elements(x));
    const double *cdf = mgx_scratch_doubles(c, c->in[0]), *u = mgx_scratch_doubles(c, c->in[1]);
    int64_t *classes_drawn = MGX_NEW_ARRAY(c->scratch, int64_t, count);
    if (!cdf || !u || !classes_drawn)
        return mgx_fail_memory(c->diag);
    for (int64_t i = 0; i < count; i++)
        classes_drawn[i] = draw(cdf + i / samples * classes, classes, u[i]);
    mgx_write_ints(c->out, classes_drawn);
    return MGX_OK;
}

const struct mgx_op mgx_op_multinomial = {
    .name = "multinomial",
    .meaning = "classes drawn from cumulative weights by uniform numbers",
    .fields = multinomial_fields,
    .attr_size = sizeof(struct multinomial),
    .defaults = &multinomial_defaults,
    .in_min = 2,
    .in_max = 2,
    .shape = multinomial_shape,
    .unranked_type = multinomial_type,
    .compute = multinomial,
};
