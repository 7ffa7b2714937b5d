// SPDX-License-Identifier: MIT
// How far the results of two programs lie apart, over all samples.
//
//     relative   sqrt(sum (a - b)^2 / sum a^2) of each result, the largest of them
//     top        of all rows (the last axis) of all results, those whose largest element, the
//                first of equal ones, stands elsewhere
//
// Results that are no numbers are left out. A NaN on one side alone is an infinite distance.
#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "quant/apply.h"

enum mgx_status mgx_quant_results_take(struct mgx_quant_results *out, const struct mgx_program *p,
                                       const struct mgx_quant_runner *runner, struct mgx_diag *diag)
{
    assert(p->executable && runner->run && runner->samples > 0);
    const int count = mgx_module_result_count(mgx_program_main(p));
    *out = (struct mgx_quant_results){.per_sample = count};
    out->v = calloc((size_t)count * (size_t)runner->samples + 1, sizeof *out->v);
    if (!out->v)
        return mgx_fail_memory(diag);
    for (int i = 0; i < runner->samples; i++) {
        const enum mgx_status status =
            runner->run(runner->user, p, i, out->v + (size_t)i * (size_t)count, count, diag);
        if (status != MGX_OK) {
            mgx_quant_results_fini(out);
            return status;
        }
        out->samples++;
    }
    return MGX_OK;
}

void mgx_quant_results_fini(struct mgx_quant_results *r)
{
    for (int i = 0; i < r->per_sample * r->samples; i++)
        mgx_tensor_release(&r->v[i]);
    free(r->v);
    *r = (struct mgx_quant_results){0};
}

struct sums {
    double difference, size; // of squares
    int64_t rows, elsewhere;
    bool apart; // a NaN
};

static int64_t top_of(const double *row, int64_t length)
{
    int64_t top = 0;
    for (int64_t i = 1; i < length; i++)
        if (row[i] > row[top])
            top = i;
    return top;
}

static void add_values(struct sums *s, const double *a, const double *b, int64_t count, int64_t row)
{
    for (int64_t i = 0; i < count; i++) {
        if (isnan(a[i]) && isnan(b[i]))
            continue;
        s->apart |= isnan(a[i]) || isnan(b[i]);
        if (a[i] == b[i]) // infinities too
            s->size += isfinite(a[i]) ? a[i] * a[i] : 0;
        else {
            s->difference += (a[i] - b[i]) * (a[i] - b[i]);
            s->size += a[i] * a[i];
        }
    }
    for (int64_t i = 0; row > 1 && i + row <= count; i += row) {
        s->rows++;
        s->elsewhere += top_of(a + i, row) != top_of(b + i, row);
    }
}

static enum mgx_status add_tensors(struct sums *s, const struct mgx_tensor *a,
                                   const struct mgx_tensor *b, struct mgx_diag *diag)
{
    if (!mgx_type_is_number(a->shape.type))
        return MGX_OK;
    if (!mgx_shape_same_lens(&a->shape, &b->shape)) { // sizes that depend on values
        s->apart = true;
        return MGX_OK;
    }
    const int64_t count = mgx_shape_elements(&a->shape);
    double *values = calloc(2 * (size_t)count + 1, sizeof *values);
    if (!values)
        return mgx_fail_memory(diag);
    mgx_tensor_to_doubles(a, values);
    mgx_tensor_to_doubles(b, values + count);
    add_values(s, values, values + count, count,
               a->shape.rank ? a->shape.lens[a->shape.rank - 1] : 1);
    free(values);
    return MGX_OK;
}

enum mgx_status mgx_quant_results_compare(const struct mgx_quant_results *a,
                                          const struct mgx_quant_results *b,
                                          struct mgx_quant_distance *out, struct mgx_diag *diag)
{
    assert(a->samples == b->samples);
    int64_t rows = 0, elsewhere = 0;
    *out = (struct mgx_quant_distance){0};
    if (a->per_sample != b->per_sample || a->samples != b->samples)
        return mgx_fail(diag, MGX_INVALID, "one program has %d results, the other %d",
                        a->per_sample, b->per_sample);
    for (int k = 0; k < a->per_sample; k++) {
        struct sums s = {0};
        for (int i = 0; i < a->samples; i++)
            TRY(add_tensors(&s, &a->v[i * a->per_sample + k], &b->v[i * a->per_sample + k], diag));
        double distance = s.difference > 0 ? sqrt(s.difference / fmax(s.size, DBL_MIN)) : 0;
        if (s.apart || !isfinite(distance))
            distance = INFINITY;
        out->relative = fmax(out->relative, distance);
        rows += s.rows;
        elsewhere += s.elsewhere;
    }
    out->top = rows ? (double)elsewhere / (double)rows : 0;
    return MGX_OK;
}

enum mgx_status mgx_quant_compare(const struct mgx_program *a, const struct mgx_program *b,
                                  const struct mgx_quant_runner *runner,
                                  struct mgx_quant_distance *out, struct mgx_diag *diag)
{
    struct mgx_quant_results x = {0}, y = {0};
    enum mgx_status status = mgx_quant_results_take(&x, a, runner, diag);
    if (status == MGX_OK)
        status = mgx_quant_results_take(&y, b, runner, diag);
    if (status == MGX_OK)
        status = mgx_quant_results_compare(&x, &y, out, diag);
    mgx_quant_results_fini(&x);
    mgx_quant_results_fini(&y);
    return status;
}
