// SPDX-License-Identifier: MIT
// What the machine can do at most, measured by the engine itself: a large product for arithmetic,
// sums over a large tensor for memory, and over ones that stay in the caches for what lies there.
// Products of bytes and of bfloat16 have limits of their own. An instruction that comes near one of
// them can hardly become faster, short of doing less; one that is faster than what was measured here
// raises the limit, so none is beyond it.
//
// The least of many short runs counts: other work on the machine leaves some of them alone, where it
// would meet every long one. Cost: some tenths of a second.
#include <math.h>
#include <unistd.h>

#include "driver.h"

enum { LEAST_ROUNDS = 8, MOST_ROUNDS = 200, LONG_MS = 150, TOO_LONG_MS = 1000 };

static bool is_worth_a_round(int done, double ms)
{
    return !done || (done <= LEAST_ROUNDS && ms < TOO_LONG_MS) ||
           (done <= MOST_ROUNDS && ms < LONG_MS);
}

// The first one touches its memory and does not count, but where it takes too long for a second one.
static double least_ms(migraphx_program_t program, migraphx_program_parameters_t params)
{
    const double begin = now_ms();
    double least = INFINITY;
    for (int i = 0; is_worth_a_round(i, now_ms() - begin); i++) {
        migraphx_arguments_t results = NULL;
        const double start = now_ms();
        if (!OK(migraphx_program_run(&results, program, params)))
            return INFINITY;
        const double took = now_ms() - start;
        if (i || took >= TOO_LONG_MS)
            least = fmin(least, took);
        migraphx_arguments_destroy(results);
    }
    return least;
}

static bool time_program(const struct options *o, const char *text, const char **inputs, int count,
                         double *ms)
{
    migraphx_program_t program = NULL;
    migraphx_program_parameters_t params = NULL;
    struct options plain = {
        .target = o->target, .threads = o->threads, .isa = o->isa, .offload_copy = o->offload_copy};
    plain.fill1 = (struct words){inputs, count};
    const bool good = OK(migraphx_program_parse(&program, text, strlen(text))) &&
                      compile_quietly(&plain, program, target_name(o)) &&
                      make_inputs(&plain, program, &params);
    *ms = good ? least_ms(program, params) : INFINITY;
    migraphx_program_parameters_destroy(params);
    migraphx_program_destroy(program);
    return good;
}

static bool time_product(const struct options *o, const char *op, const char *type,
                         const char *result, int side, double *gflops)
{
    static const char *inputs[] = {"x", "y"};
    char text[512];
    double ms;
    snprintf(text, sizeof text,
             "module: \"main\"\n"
             "y = @param:y -> %s, {%d, %d}, {%d, 1}\n"
             "x = @param:x -> %s, {%d, %d}, {%d, 1}\n"
             "main:@2 = %s(x,y) -> %s, {%d, %d}, {%d, 1}\n"
             "main:@3 = @return(main:@2)\n",
             type, side, side, side, type, side, side, side, op, result, side, side, side);
    if (!time_program(o, text, inputs, 2, &ms))
        return false;
    *gflops = 2.0 * side * side * side / ms * 1e-6;
    return true;
}

static bool time_sum(const struct options *o, int rows, int length, double *gbytes)
{
    static const char *inputs[] = {"x"};
    char text[512];
    double ms;
    snprintf(text, sizeof text,
             "module: \"main\"\n"
             "x = @param:x -> float_type, {%d, %d}, {%d, 1}\n"
             "main:@1 = reduce_sum[axes={1}](x) -> float_type, {%d, 1}, {1, 1}\n"
             "main:@2 = @return(main:@1)\n",
             rows, length, length, rows);
    if (!time_program(o, text, inputs, 1, &ms))
        return false;
    *gbytes = (double)sizeof(float) * rows * length / ms * 1e-6;
    return true;
}

static int thread_count(const struct options *o)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return o->threads ? o->threads : online > 0 && online < 4096 ? (int)online : 1;
}

// A millisecond of work for every thread, in whole tiles.
static int product_side(int threads)
{
    return ((int)cbrt(5e7 * threads) + 63) / 64 * 64;
}

static enum arithmetic kind_of(const struct plan_row *row)
{
    if (strcmp(row->reads, "int8_type") == 0 || strcmp(row->reads, "uint8_type") == 0)
        return OF_BYTES;
    return strcmp(row->reads, "bf16_type") == 0 ? OF_BF16 : OF_FLOATS;
}

// Winograd's method multiplies less than the convolution that it stands for: 36 times for 16 results
// of 9 products each, or 16 times for 4.
static double saved_by(const struct plan_row *row)
{
    if (strncmp(row->detail, "winograd", 8) != 0)
        return 1;
    return row->detail[8] == '4' ? 4 : 2.25;
}

void add_load(struct load *load, const struct plan_row *row)
{
    load->flops[kind_of(row)] += row->flops / saved_by(row);
    load->bytes += row->moved;
}

static bool has_kind(const struct plan *plan, enum arithmetic kind)
{
    for (int i = 0; i < plan->count; i++)
        if (plan->rows[i].flops > 0 && kind_of(&plan->rows[i]) == kind)
            return true;
    return false;
}

static bool time_products(const struct options *o, const struct plan *plan, int side,
                          struct limits *out)
{
    if (!time_product(o, "dot", "float_type", "float_type", side, &out->gflops))
        return false;
    for (int i = 0; i < ARITHMETICS; i++)
        out->of_kind[i] = out->gflops;
    const bool good =
        (!has_kind(plan, OF_BYTES) ||
         time_product(o, "quant_dot", "int8_type", "int32_type", side, &out->of_kind[OF_BYTES])) &&
        (!has_kind(plan, OF_BF16) ||
         time_product(o, "dot", "bf16_type", "bf16_type", side, &out->of_kind[OF_BF16]));
    for (int i = 0; i < ARITHMETICS; i++)
        if (!(out->of_kind[i] > 0)) // its runs failed
            out->of_kind[i] = out->gflops;
    for (int i = 0; i < ARITHMETICS; i++)
        out->measured[i] = i == OF_FLOATS || has_kind(plan, i);
    return good;
}

bool measure_limits(const struct options *o, const struct plan *plan, struct limits *out)
{
    enum { SIDE = 1024, ROWS = 256, LENGTH = 65536, NEAR_ROWS = 32, NEAR_LENGTH = 1024 };
    enum { MIDDLE_ROWS = 1024, MIDDLE_LENGTH = 1024 };
    const bool card = strcmp(target_name(o), "gpu") == 0;
    const int threads = thread_count(o);
    *out = (struct limits){0};
    if (!time_products(o, plan, card ? SIDE : product_side(threads), out) ||
        !time_sum(o, ROWS, LENGTH, &out->gbytes))
        return false;
    if (card)
        return true;
    out->cache_bytes = 2.0 * sizeof(float) * NEAR_ROWS * NEAR_LENGTH * threads;
    out->middle_bytes = fmax(2.0 * sizeof(float) * MIDDLE_ROWS * MIDDLE_LENGTH, out->cache_bytes);
    if (!time_sum(o, NEAR_ROWS * threads, NEAR_LENGTH, &out->cache_gbytes) ||
        !time_sum(o, MIDDLE_ROWS, MIDDLE_LENGTH, &out->middle_gbytes))
        return false;
    out->middle_gbytes = fmax(out->middle_gbytes, out->gbytes);
    out->cache_gbytes = fmax(out->cache_gbytes, out->middle_gbytes);
    return true;
}

static bool is_known(const struct limits *limits, const struct load *load)
{
    return limits->gflops > 0 && limits->gbytes > 0 && load->ms > 0;
}

// Milliseconds that the arithmetic, and that the bytes take at the limits.
static double arithmetic_ms(const struct limits *limits, const struct load *load)
{
    double ms = 0;
    for (int i = 0; i < ARITHMETICS; i++)
        if (load->flops[i] > 0)
            ms += load->flops[i] * 1e-6 / limits->of_kind[i];
    return ms;
}

static double bytes_ms(const struct limits *limits, const struct load *load)
{
    const double gbytes = load->bytes <= limits->cache_bytes    ? limits->cache_gbytes
                          : load->bytes <= limits->middle_bytes ? limits->middle_gbytes
                                                                : limits->gbytes;
    return load->bytes * 1e-6 / gbytes;
}

void raise_limits(struct limits *limits, const struct load *load)
{
    if (!is_known(limits, load))
        return;
    const double faster = arithmetic_ms(limits, load) / load->ms;
    for (int i = 0; i < ARITHMETICS && faster > 1; i++)
        if (load->flops[i] > 0)
            limits->of_kind[i] *= faster;
    limits->gflops = limits->of_kind[OF_FLOATS];
    for (int i = 0; i < ARITHMETICS; i++)
        if (!limits->measured[i])
            limits->of_kind[i] = limits->gflops;
    const double reached = load->bytes * 1e-6 / load->ms;
    if (load->bytes > limits->middle_bytes)
        limits->gbytes = fmax(limits->gbytes, reached);
    if (load->bytes > limits->cache_bytes)
        limits->middle_gbytes = fmax(limits->middle_gbytes, reached);
    limits->cache_gbytes = fmax(limits->cache_gbytes, reached);
}

double share_of_limit(const struct limits *limits, const struct load *load)
{
    if (!is_known(limits, load))
        return 0;
    return 100 * fmax(arithmetic_ms(limits, load), bytes_ms(limits, load)) / load->ms;
}
