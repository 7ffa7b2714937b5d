// SPDX-License-Identifier: MIT
// What MIGRAPHX_TRACE_EVAL prints about every instruction, on stdout, one write per instruction so
// that runs in several threads do not mix their lines.
//
//     1  Run instruction: <text>
//        Time: <launch>ms, <total>ms
//     2  Output has normal, zero
//        Output: <first five>, ..., <last five>
//        Min value: -1, Max value: 2, Mean: 0.5, StdDev: 0.25
//     3  Output: <all values>, and so above 3
#include <math.h>
#include <stdlib.h>

#include "api/api.h"
#include "base/clock.h"

enum { SHOWN = 5 };

double mgx_api_milliseconds(void)
{
    return mgx_clock_seconds() * 1e3;
}

static void put_classes(struct mgx_str *out, const double *v, int64_t count)
{
    static const struct {
        int class;
        const char *name;
    } classes[] = {{FP_NORMAL, "normal"},
                   {FP_ZERO, "zero"},
                   {FP_NAN, "nan"},
                   {FP_INFINITE, "inf"},
                   {FP_SUBNORMAL, "subnormal"}};
    bool seen[MGX_COUNT(classes)] = {false};
    for (int64_t i = 0; i < count; i++)
        for (int c = 0; c < MGX_COUNT(classes); c++)
            seen[c] |= fpclassify(v[i]) == classes[c].class;
    const char *separator = "Output has ";
    for (int c = 0; c < MGX_COUNT(classes); c++)
        if (seen[c]) {
            mgx_str_printf(out, "%s%s", separator, classes[c].name);
            separator = ", ";
        }
    mgx_str_putc(out, '\n');
}

static void put_values(struct mgx_str *out, const double *v, int64_t count, bool all)
{
    mgx_str_put(out, "Output: ");
    for (int64_t i = 0; i < count; i++) {
        if (!all && count > 2 * SHOWN && i == SHOWN) {
            mgx_str_put(out, ", ...");
            i = count - SHOWN;
        }
        mgx_str_printf(out, "%s%g", i ? ", " : "", v[i]);
    }
    mgx_str_putc(out, '\n');
}

static void put_statistics(struct mgx_str *out, const double *v, int64_t count)
{
    double low = v[0], high = v[0], sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++) {
        low = fmin(low, v[i]);
        high = fmax(high, v[i]);
        sum += v[i];
    }
    const double mean = sum / (double)count;
    for (int64_t i = 0; i < count; i++)
        squares += (v[i] - mean) * (v[i] - mean);
    mgx_str_printf(out, "Min value: %g, Max value: %g, Mean: %g, StdDev: %g\n", low, high, mean,
                   sqrt(squares / (double)count));
}

static void put_output(struct mgx_str *out, int level, const struct mgx_tensor *value)
{
    if (value->sub || !mgx_type_is_number(value->shape.type))
        return;
    const int64_t count = mgx_shape_elements(&value->shape);
    double *v = count ? calloc((size_t)count, sizeof *v) : NULL;
    if (!v)
        return;
    mgx_tensor_to_doubles(value, v);
    if (level == 2)
        put_classes(out, v, count);
    put_values(out, v, count, level > 2);
    if (level == 2)
        put_statistics(out, v, count);
    free(v);
}

void mgx_api_trace_eval(int level, const struct mgx_ins *ins, const struct mgx_tensor *value,
                        double milliseconds)
{
    struct mgx_str text = {0};
    mgx_str_put(&text, "Run instruction: ");
    mgx_ins_print(&text, ins);
    mgx_str_printf(&text, "\nTime: %gms, %gms\n", milliseconds, milliseconds);
    if (level > 1)
        put_output(&text, level, value);
    mgx_api_print(mgx_str_text(&text));
    mgx_str_fini(&text);
}
