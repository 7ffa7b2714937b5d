// SPDX-License-Identifier: MIT
// verify: does the target compute what the reference computes?
//
//     rms = sqrt(sum (a - b)^2) / (sqrt(n) * max(|a|, |b|))  <=  --rms-tol
//
// The same inputs go through both. With --per-instruction every instruction is tried alone, with
// --reduce the program is cut from its end step by step, with --bisect the first instruction whose
// result is wrong is searched for. A failed verification is an exit code of 1.
#include <math.h>

#include "verbs.h"

enum { SHOWN = 32 };

struct tolerance {
    double rms, atol, rtol;
    bool elementwise; // --atol or --rtol was given
};

// --- tolerances ---

static bool is_narrow(const_migraphx_instruction_t ins)
{
    migraphx_shape_t shape = NULL;
    migraphx_shape_datatype_t type = migraphx_shape_float_type;
    if (migraphx_instruction_shape(&shape, ins) == migraphx_status_success)
        migraphx_shape_type(&type, shape);
    migraphx_shape_destroy(shape);
    return type == migraphx_shape_half_type || type == migraphx_shape_bf16_type;
}

static bool uses_narrow_floats(migraphx_program_t program)
{
    migraphx_module_t m;
    migraphx_instructions_t list = NULL;
    size_t count = 0;
    bool found = false;
    if (OK(migraphx_program_get_main_module(&m, program)) &&
        OK(migraphx_module_instructions(&list, m)))
        migraphx_instructions_size(&count, list);
    for (size_t i = 0; i < count && !found; i++) {
        migraphx_instruction_t ins = NULL;
        if (OK(migraphx_instructions_get(&ins, list, i)))
            found = is_narrow(ins);
        migraphx_instruction_destroy(ins);
    }
    migraphx_instructions_destroy(list);
    return found;
}

static struct tolerance choose_tolerance(const struct options *o, migraphx_program_t program)
{
    const bool narrow = o->fp16 || o->bf16 || uses_narrow_floats(program);
    struct tolerance t = {narrow ? 0.08 : 0.001, narrow ? 0.04 : 0.001, narrow ? 0.04 : 0.001,
                          o->atol || o->rtol};
    if (o->rms_tol)
        t.rms = strtod(o->rms_tol, NULL);
    if (o->atol)
        t.atol = strtod(o->atol, NULL);
    if (o->rtol)
        t.rtol = strtod(o->rtol, NULL);
    log_info("rms_tol: %g, atol: %g, rtol: %g", t.rms, t.atol, t.rtol);
    return t;
}

// --- comparing ---

static double rms_error(const double *a, const double *b, size_t count)
{
    double squares = 0, largest = 2.2250738585072014e-308;
    for (size_t i = 0; i < count; i++) {
        squares += (a[i] - b[i]) * (a[i] - b[i]);
        largest = fmax(largest, fmax(fabs(a[i]), fabs(b[i])));
    }
    return count ? sqrt(squares) / (sqrt((double)count) * largest) : 0;
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
    if (good && rms <= t->rms)
        return true;
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

static bool compare(const_migraphx_argument_t ref, const_migraphx_argument_t got,
                    const struct tolerance *t);

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
               OK(migraphx_argument_member(&b, got, i)) && compare(a, b, t);
    }
    return good && n == m;
}

static bool compare(const_migraphx_argument_t ref, const_migraphx_argument_t got,
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

static bool compare_all(migraphx_arguments_t ref, migraphx_arguments_t got,
                        const struct tolerance *t)
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
               compare(a, b, t);
    }
    return good;
}

// --- one verification ---

static bool copy_program(migraphx_program_t from, migraphx_program_t *out)
{
    *out = NULL;
    return OK(migraphx_program_create(out)) && OK(migraphx_program_assign_to(*out, from));
}

// What is measured against the reference: a file that was compiled before, or a copy compiled now.
static bool make_target_program(const struct options *o, migraphx_program_t program,
                                migraphx_program_t *out)
{
    if (!o->compiled_model)
        return copy_program(program, out) && quantize_model(o, *out) &&
               compile_model(o, *out, target_name(o), false);
    migraphx_file_options_t options = NULL;
    const bool good = OK(migraphx_file_options_create(&options)) &&
                      OK(migraphx_load(out, o->compiled_model, options)) &&
                      compile_model(o, *out, target_name(o), false);
    migraphx_file_options_destroy(options);
    return good;
}

// Compiles copies for both targets and compares their results. The program itself stays as it is.
static bool verify_program(const struct options *o, migraphx_program_t program,
                           const struct tolerance *t)
{
    migraphx_program_t ref = NULL, got = NULL;
    migraphx_program_parameters_t params = NULL;
    migraphx_arguments_t expected = NULL, actual = NULL;
    const bool good =
        copy_program(program, &ref) && make_inputs(o, program, &params) &&
        compile_model(o, ref, "ref", o->ref_double) && make_target_program(o, program, &got) &&
        OK(migraphx_program_run(&expected, ref, params)) &&
        OK(migraphx_program_run(&actual, got, params)) && compare_all(expected, actual, t);
    migraphx_arguments_destroy(expected);
    migraphx_arguments_destroy(actual);
    migraphx_program_parameters_destroy(params);
    migraphx_program_destroy(ref);
    migraphx_program_destroy(got);
    return good;
}

// The same with `drop` instructions cut from the end, and only `keep` left if not 0.
static bool verify_part(const struct options *o, migraphx_program_t program,
                        const struct tolerance *t, size_t drop, size_t keep)
{
    migraphx_program_t part = NULL;
    const bool good = copy_program(program, &part) && OK(migraphx_program_trim(part, drop, keep)) &&
                      verify_program(o, part, t);
    migraphx_program_destroy(part);
    return good;
}

// --- searching ---

static bool is_computing(const_migraphx_instruction_t ins)
{
    const char *name = "@";
    migraphx_instruction_name(&name, ins);
    return name[0] != '@';
}

static size_t count_computing(migraphx_program_t program)
{
    migraphx_module_t m;
    migraphx_instructions_t list = NULL;
    size_t count = 0, computing = 0;
    if (OK(migraphx_program_get_main_module(&m, program)) &&
        OK(migraphx_module_instructions(&list, m)))
        migraphx_instructions_size(&count, list);
    for (size_t i = 0; i < count; i++) {
        migraphx_instruction_t ins = NULL;
        if (OK(migraphx_instructions_get(&ins, list, i)))
            computing += is_computing(ins);
        migraphx_instruction_destroy(ins);
    }
    migraphx_instructions_destroy(list);
    return computing;
}

static bool each_instruction(const struct options *o, migraphx_program_t program,
                             const struct tolerance *t)
{
    const size_t count = count_computing(program);
    bool good = true;
    for (size_t i = 0; i < count; i++)
        if (!verify_part(o, program, t, count - 1 - i, 1)) {
            log_error("Failed instruction: %zu of %zu", i + 1, count);
            good = false;
        }
    return good;
}

static bool reduce(const struct options *o, migraphx_program_t program, const struct tolerance *t)
{
    const size_t count = count_computing(program);
    bool good = true;
    for (size_t drop = 0; drop < count; drop++) {
        const bool passed = verify_part(o, program, t, drop, 0);
        log_info("Trimmed by %zu: %s", drop, passed ? "passed" : "FAILED");
        good = good && passed;
    }
    return good;
}

// The shortest beginning of the program that fails; assumes that what follows it fails too.
static bool bisect(const struct options *o, migraphx_program_t program, const struct tolerance *t)
{
    const size_t count = count_computing(program);
    if (!count || verify_part(o, program, t, 0, 0))
        return true;
    size_t low = 0, high = count - 1; // index of the last instruction kept
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (verify_part(o, program, t, count - 1 - middle, 0))
            low = middle + 1;
        else
            high = middle;
    }
    log_error("Failure starts at: %zu", low + 1);
    return false;
}

static int run(struct options *o)
{
    migraphx_program_t program;
    if (!load_model(o, &program))
        return EXIT_FAILURE;
    const struct tolerance t = choose_tolerance(o, program);
    const bool printed = OK(migraphx_program_print(program));
    const bool good = printed && (o->per_instruction ? each_instruction(o, program, &t)
                                  : o->reduce        ? reduce(o, program, &t)
                                  : o->bisect        ? bisect(o, program, &t)
                                                     : verify_program(o, program, &t));
    migraphx_program_destroy(program);
    if (good)
        log_info("MIGraphX verification passed successfully.");
    else
        log_error("FAILED: %s", o->file ? o->file : o->model ? o->model : "gemm");
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static const struct flag own[] = {
    {FLAG_HEADING, NULL, NULL, 0, NULL, "verify", 0, NULL},
    {FLAG_REAL, "--rms-tol", NULL, OFFSET(rms_tol), "<x>", "tolerance of the rms error", 0, NULL},
    {FLAG_REAL, "--atol", NULL, OFFSET(atol), "<x>", "compare every element too", 0, NULL},
    {FLAG_REAL, "--rtol", NULL, OFFSET(rtol), "<x>", "compare every element too", 0, NULL},
    {FLAG_SET, "--per-instruction", "-i", OFFSET(per_instruction), NULL, "every instruction alone",
     0, NULL},
    {FLAG_SET, "--reduce", "-r", OFFSET(reduce), NULL, "cut from the end step by step", 0, NULL},
    {FLAG_SET, "--bisect", "-b", OFFSET(bisect), NULL, "find the first wrong instruction", 0, NULL},
    {FLAG_WORD, "--compiled-model", "-c", OFFSET(compiled_model), "<mxr>",
     "the target's side is this saved program", 0, NULL},
    {FLAG_SET, "--ref-use-double", NULL, OFFSET(ref_double), NULL,
     "the reference computes floats as doubles", 0, NULL},
    {FLAG_END, NULL, NULL, 0, NULL, NULL, 0, NULL}};
static const struct flag *const flags[] = {loader_flags, compile_flags, own, common_flags, NULL};
const struct verb verb_verify = {
    "verify", "Compares a target with the reference.", "[flags] <file>", flags, run, true};
