// SPDX-License-Identifier: MIT
// Comparing what two runs gave; see cmd_verify.c for the measure.
#include <math.h>

#include "verify.h"

enum { SHOWN = 32 };

static struct difference last;

struct difference last_difference(void)
{
    return last;
}

void forget_difference(void)
{
    last = (struct difference){.rms = NAN, .largest = NAN};
}

static double rms_error(const double *a, const double *b, size_t count)
{
    double squares = 0, largest = 2.2250738585072014e-308;
    for (size_t i = 0; i < count; i++) {
        squares += (a[i] - b[i]) * (a[i] - b[i]);
        largest = fmax(largest, fmax(fabs(a[i]), fabs(b[i])));
    }
    return count ? sqrt(squares) / (sqrt((double)count) * largest) : 0;
}

static double largest_difference(const double *a, const double *b, size_t count)
{
    double largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(a[i] - b[i]));
    return largest;
}

static bool all_zero(const double *v, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (v[i] != 0)
            return false;
    return count > 0;
}

static void show(const char *label, const double *v, size_t count)
{
    char line[SHOWN * 26];
    int at = 0;
    for (size_t i = 0; i < count && i < SHOWN; i++)
        at += snprintf(line + at, sizeof line - (size_t)at, "%s%g", i ? ", " : "", v[i]);
    log_error("%s: %s", label, count ? line : "");
}

// A NaN or infinity in one place must be met by the same in the other.
static bool same_special(double a, double b)
{
    return (isnan(a) && isnan(b)) || a == b;
}

static void describe(const double *ref, const double *got, size_t count, double rms)
{
    double largest = 0;
    size_t where = count;
    for (size_t i = 0; i < count; i++) {
        const double difference = fabs(ref[i] - got[i]);
        largest = difference > largest ? difference : largest;
        if (where == count && !same_special(ref[i], got[i]) &&
            !(difference <= 1e-3 * fmax(1, fabs(ref[i]))))
            where = i;
    }
    last = (struct difference){rms, largest};
    log_error("RMS Error: %g", rms);
    if (count <= SHOWN) {
        show("ref", ref, count);
        show("target", got, count);
    }
    if (all_zero(ref, count))
        log_error("Ref data is all zeros");
    if (all_zero(got, count))
        log_error("Target data is all zeros");
    log_error("Max diff: %g", largest);
    if (where < count)
        log_error("Mismatch at %zu: %g != %g", where, ref[where], got[where]);
}

static bool compare_values(double *ref, double *got, size_t count, const struct tolerance *t)
{
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(ref[i]) || !isfinite(got[i])) {
            if (!same_special(ref[i], got[i])) {
                log_error("Non finite number found in %s at %zu: %g",
                          isfinite(got[i]) ? "ref" : "target", i,
                          isfinite(got[i]) ? ref[i] : got[i]);
                return false;
            }
            ref[i] = got[i] = 0; // equal: takes no part in the measure
        }
        if (t->elementwise && !(fabs(ref[i] - got[i]) <= t->atol + t->rtol * fabs(got[i])))
            good = false;
    }
    const double rms = rms_error(ref, got, count);
    if (good && rms <= t->rms) {
        last.rms = fmax(last.rms, rms);
        last.largest = fmax(last.largest, largest_difference(ref, got, count));
        return true;
    }
    describe(ref, got, count, rms);
    return false;
}

static bool same_lengths(const_migraphx_shape_t a, const_migraphx_shape_t b)
{
    const size_t *x, *y;
    size_t n, m;
    migraphx_shape_datatype_t s, t;
    if (!OK(migraphx_shape_lengths(&x, &n, a)) || !OK(migraphx_shape_lengths(&y, &m, b)) ||
        !OK(migraphx_shape_type(&s, a)) || !OK(migraphx_shape_type(&t, b)))
        return false;
    if (n == m && memcmp(x, y, n * sizeof *x) == 0)
        return true;
    char *left = NULL, *right = NULL;
    if (OK(migraphx_shape_to_string(&left, a)) && OK(migraphx_shape_to_string(&right, b)))
        log_error("Shape mismatch {%s} != {%s}", left, right);
    migraphx_string_destroy(left);
    migraphx_string_destroy(right);
    return false;
}

static bool compare_numbers(const_migraphx_argument_t ref, const_migraphx_argument_t got,
                            const struct tolerance *t)
{
    const_migraphx_shape_t a, b;
    size_t count;
    if (!OK(migraphx_argument_shape(&a, ref)) || !OK(migraphx_argument_shape(&b, got)) ||
        !same_lengths(a, b) || !OK(migraphx_shape_elements(&count, a)))
        return false;
    double *x = calloc(count + 1, sizeof *x), *y = calloc(count + 1, sizeof *y);
    const bool good = x && y && OK(migraphx_argument_values(x, count, ref)) &&
                      OK(migraphx_argument_values(y, count, got)) && compare_values(x, y, count, t);
    free(x);
    free(y);
    return good;
}

static const char *type_of(const_migraphx_argument_t argument)
{
    const_migraphx_shape_t shape;
    migraphx_shape_datatype_t type;
    const char *name = "";
    if (OK(migraphx_argument_shape(&shape, argument)) && OK(migraphx_shape_type(&type, shape)))
        migraphx_type_name(&name, type);
    return name;
}

// Tuples and sequences: as many members, one by one. Nesting is that of the type.
static bool compare_members(const_migraphx_argument_t ref, const_migraphx_argument_t got,
                            const struct tolerance *t)
{
    size_t n = 0, m = 0;
    bool good =
        OK(migraphx_argument_members_size(&n, ref)) && OK(migraphx_argument_members_size(&m, got));
    if (good && n != m)
        log_error("%zu members != %zu members", n, m);
    for (size_t i = 0; good && n == m && i < n; i++) {
        const_migraphx_argument_t a, b;
        good = OK(migraphx_argument_member(&a, ref, i)) &&
               OK(migraphx_argument_member(&b, got, i)) && compare_argument(a, b, t);
    }
    return good && n == m;
}

bool compare_argument(const_migraphx_argument_t ref, const_migraphx_argument_t got,
                      const struct tolerance *t)
{
    const char *type = type_of(ref), *other = type_of(got);
    if (strcmp(type, other) != 0) {
        log_error("%s != %s", type, other);
        return false;
    }
    if (strcmp(type, "tuple_type") == 0 || strcmp(type, "sequence_type") == 0)
        return compare_members(ref, got, t);
    if (strcmp(type, "string_type") != 0 && strncmp(type, "complex", 7) != 0)
        return compare_numbers(ref, got, t);
    bool same = false; // texts and complex numbers are the same or not
    if (OK(migraphx_argument_equal(&same, ref, got)) && !same)
        log_error("values of %s differ", type);
    return same;
}

bool compare_all(migraphx_arguments_t ref, migraphx_arguments_t got, const struct tolerance *t)
{
    size_t n = 0, m = 0;
    bool good = OK(migraphx_arguments_size(&n, ref)) && OK(migraphx_arguments_size(&m, got));
    if (good && n != m) {
        log_error("%zu results != %zu results", n, m);
        return false;
    }
    for (size_t i = 0; good && i < n; i++) {
        const_migraphx_argument_t a, b;
        good = OK(migraphx_arguments_get(&a, ref, i)) && OK(migraphx_arguments_get(&b, got, i)) &&
               compare_argument(a, b, t);
    }
    return good;
}
