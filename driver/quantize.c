// SPDX-License-Identifier: MIT
// Quantizing as the flags say: samples, options, ranges from and into files, progress.
//
// Without --calibration the inputs that a run would be fed with are the one sample, as MIGraphX has
// it: enough to measure speed, not to keep accuracy.
#include "driver.h"

struct samples {
    migraphx_quantize_options_t options;
    size_t count;
};

static bool add_sample(void *data, migraphx_program_parameters_t sample)
{
    struct samples *s = data;
    s->count++;
    return OK(migraphx_quantize_options_add_calibration_data(s->options, sample));
}

static bool add_samples(const struct options *o, migraphx_program_t program,
                        migraphx_quantize_options_t options)
{
    struct samples s = {options, 0};
    if (!o->calibration.count) {
        migraphx_program_parameters_t data = NULL;
        const bool good = make_inputs(o, program, &data) && add_sample(&s, data);
        migraphx_program_parameters_destroy(data);
        return good;
    }
    if (!read_samples(o, program, add_sample, &s))
        return false;
    if (!s.count)
        log_error("--calibration: there is no sample in %s: samples are files whose names end in "
                  ".npz, .npy or .pb, images (.jpg, .png, ...), and folders of these",
                  o->calibration.items[0]);
    else
        log_info("Calibration samples: %zu", s.count);
    return s.count > 0;
}

static void show_progress(void *data, const char *what, size_t done, size_t total)
{
    const char **last = data; // what the line says now
    if (*last != what) {
        work_end();
        work_begin(what, (int)total);
        *last = what;
    }
    work_step((int)done);
}

static bool set_ranges(const struct options *o, migraphx_quantize_options_t options)
{
    size_t size;
    char *text = o->ranges ? read_whole(o->ranges, &size) : NULL;
    if (!o->ranges)
        return true;
    if (!text || !size)
        log_error("%s is empty or cannot be read", o->ranges);
    const bool good = text && size && OK(migraphx_quantize_options_set_ranges(options, text, size));
    free(text);
    return good;
}

static bool set_options(const struct options *o, bool fp8, migraphx_quantize_options_t options)
{
    static const char *last; // of one thread, as all work is
    last = NULL;
    return (!fp8 ||
            OK(migraphx_quantize_options_set_type(options, migraphx_shape_fp8e4m3fn_type))) &&
           (!o->method || OK(migraphx_quantize_options_set_method(options, o->method))) &&
           (!o->percentile ||
            OK(migraphx_quantize_options_set_percentile(options, strtod(o->percentile, NULL)))) &&
           OK(migraphx_quantize_options_set_asymmetric(options, o->asymmetric)) &&
           OK(migraphx_quantize_options_set_per_tensor(options, o->per_tensor)) &&
           OK(migraphx_quantize_options_set_smooth(options, o->smooth)) &&
           OK(migraphx_quantize_options_set_correct_bias(options, o->correct_bias)) &&
           OK(migraphx_quantize_options_set_reckon_time(options, o->reckon)) &&
           (!o->budget ||
            OK(migraphx_quantize_options_set_budget(options, o->metric ? o->metric : "relative",
                                                    strtod(o->budget, NULL)))) &&
           OK(migraphx_quantize_options_set_progress(options, show_progress, &last));
}

bool make_quantize_options(const struct options *o, migraphx_program_t program, bool fp8,
                           migraphx_quantize_options_t *out)
{
    *out = NULL;
    const bool needs_samples = !o->ranges || o->budget || o->check;
    if (OK(migraphx_quantize_options_create(out)) && set_options(o, fp8, *out) &&
        set_ranges(o, *out) && (!needs_samples || add_samples(o, program, *out)))
        return true;
    migraphx_quantize_options_destroy(*out);
    *out = NULL;
    return false;
}

static bool save_ranges(const struct options *o, const char *ranges)
{
    FILE *file = o->save_ranges ? fopen(o->save_ranges, "wb") : NULL;
    if (!o->save_ranges)
        return true;
    bool good = file && fputs(ranges, file) >= 0;
    good = file && fclose(file) == 0 && good;
    if (!good)
        log_error("cannot write %s", o->save_ranges);
    return good;
}

static bool quantize(char **ranges, migraphx_program_t program, migraphx_target_t target,
                     migraphx_quantize_options_t options)
{
    work_begin("quantizing", 0);
    const bool good = OK(migraphx_quantize(ranges, program, target, options));
    work_end();
    return good;
}

bool quantize_products(const struct options *o, migraphx_program_t program, bool fp8, char **ranges)
{
    migraphx_quantize_options_t options = NULL;
    migraphx_target_t target = NULL;
    const bool good = OK(migraphx_target_create(&target, target_name(o))) &&
                      make_quantize_options(o, program, fp8, &options) &&
                      quantize(ranges, program, target, options) && save_ranges(o, *ranges);
    migraphx_quantize_options_destroy(options);
    migraphx_target_destroy(target);
    return good;
}

static bool quantize_8bits(const struct options *o, migraphx_program_t program, bool fp8)
{
    char *ranges = NULL;
    const bool good = quantize_products(o, program, fp8, &ranges);
    migraphx_string_destroy(ranges);
    return good;
}

bool quantize_model(const struct options *o, migraphx_program_t program)
{
    const size_t block = o->int4_block ? (size_t)o->int4_block : 32;
    return (!o->int4 || OK(migraphx_quantize_int4_weights(program, block, false))) &&
           (!o->int8 || quantize_8bits(o, program, false)) &&
           (!o->fp8 || quantize_8bits(o, program, true)) &&
           (!o->fp16 || OK(migraphx_quantize_fp16(program))) &&
           (!o->bf16 || OK(migraphx_quantize_bf16(program)));
}
