// SPDX-License-Identifier: MIT
// verify: does the target compute what the reference computes?
//
//     rms = sqrt(sum (a - b)^2) / (sqrt(n) * max(|a|, |b|))  <=  --rms-tol
//
// The same inputs go through both. With --per-instruction every instruction is tried alone, with
// --reduce the program is cut from its end step by step, with --bisect the first instruction whose
// result is wrong is searched for: instruction, nodes of the model and error are named. With
// --expect, or given a folder as the ONNX zoo lays it out, the results are compared with files, and
// nothing goes through the reference. A failed verification is an exit code of 1.
#include <math.h>

#include "verbs.h"
#include "verify.h"

// --- tolerances ---

// Its values are kept in fewer bits than a float's, and roundings of two targets that fall to other sides add
// up from layer to layer.
static bool is_narrow(const_migraphx_instruction_t ins)
{
    migraphx_shape_t shape = NULL;
    const char *name = "";
    if (OK(migraphx_instruction_name(&name, ins)) && strcmp(name, "quantizelinear") == 0)
        return true;
    migraphx_shape_datatype_t type = migraphx_shape_float_type;
    if (migraphx_instruction_shape(&shape, ins) == migraphx_status_success)
        migraphx_shape_type(&type, shape);
    migraphx_shape_destroy(shape);
    return type == migraphx_shape_half_type || type == migraphx_shape_bf16_type;
}

static bool uses_narrow_values(migraphx_program_t program)
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
    const bool narrow = o->fp16 || o->bf16 || o->int8 || o->fp8 || uses_narrow_values(program);
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

// A long one says on a terminal that it is at work.
static bool run_shown(const char *what, migraphx_program_t program,
                      migraphx_program_parameters_t params, migraphx_arguments_t *out)
{
    const bool part = work_is_begun(); // of what shows how far it is itself
    if (!part)
        work_begin(what, 0);
    const bool good = OK(migraphx_program_run(out, program, params));
    if (!part)
        work_end();
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
        run_shown("running the reference", ref, params, &expected) &&
        run_shown("running the target", got, params, &actual) && compare_all(expected, actual, t);
    migraphx_arguments_destroy(expected);
    migraphx_arguments_destroy(actual);
    migraphx_program_parameters_destroy(params);
    migraphx_program_destroy(ref);
    migraphx_program_destroy(got);
    return good;
}

// Tuples and sequences, which no generator makes.
static bool has_compound_input(migraphx_program_t program)
{
    migraphx_program_parameter_shapes_t shapes = NULL;
    size_t count = 0;
    bool found = false;
    if (!OK(migraphx_program_get_parameter_shapes(&shapes, program)) ||
        !OK(migraphx_program_parameter_shapes_size(&count, shapes)))
        return false;
    const char **names = calloc(count + 1, sizeof *names);
    const bool good = names && OK(migraphx_program_parameter_shapes_names(names, shapes));
    for (size_t i = 0; good && i < count; i++) {
        const_migraphx_shape_t shape;
        migraphx_shape_datatype_t type;
        const char *name = "";
        if (OK(migraphx_program_parameter_shapes_get(&shape, shapes, names[i])) &&
            OK(migraphx_shape_type(&type, shape)) && OK(migraphx_type_name(&name, type)))
            found = found || strcmp(name, "tuple_type") == 0 || strcmp(name, "sequence_type") == 0;
    }
    free(names);
    migraphx_program_parameter_shapes_destroy(shapes);
    return found;
}

// The same with `drop` instructions cut from the end, and only `keep` left if not 0.
static bool verify_part(const struct options *o, migraphx_program_t program,
                        const struct tolerance *t, size_t drop, size_t keep)
{
    migraphx_program_t part = NULL;
    forget_difference();
    const bool good = copy_program(program, &part) && OK(migraphx_program_trim(part, drop, keep)) &&
                      verify_program(o, part, t);
    migraphx_program_destroy(part);
    return good;
}

// --- searching ---

struct finding {
    size_t number; // of the first wrong instruction, from 1; 0: none was searched for
    char *text, *nodes;
    struct difference difference;
};

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

// Instruction i alone, or with those before it that make what cannot be generated.
static bool verify_one(const struct options *o, migraphx_program_t program,
                       const struct tolerance *t, size_t i, size_t count)
{
    bool compound = true, good = true;
    for (size_t keep = 1; keep <= i + 1 && compound && good; keep++) {
        migraphx_program_t part = NULL;
        good = copy_program(program, &part) && OK(migraphx_program_trim(part, count - 1 - i, keep));
        compound = good && has_compound_input(part) && keep <= i;
        good = good && (compound || verify_program(o, part, t));
        migraphx_program_destroy(part);
    }
    return good;
}

static bool each_instruction(const struct options *o, migraphx_program_t program,
                             const struct tolerance *t)
{
    const size_t count = count_computing(program);
    bool good = true;
    work_begin("verifying", (int)count);
    for (size_t i = 0; i < count && work_step((int)i); i++)
        if (!verify_one(o, program, t, i, count)) {
            log_error("Failed instruction: %zu of %zu", i + 1, count);
            good = false;
        }
    work_end();
    return good && !work_stopped();
}

static bool reduce(const struct options *o, migraphx_program_t program, const struct tolerance *t)
{
    const size_t count = count_computing(program);
    bool good = true;
    for (size_t drop = 0; drop < count; drop++) {
        const bool passed = verify_part(o, program, t, drop, 0);
        log_result("Trimmed by %zu: %s", drop, passed ? "passed" : "FAILED");
        good = good && passed;
    }
    return good;
}

// The first `keep` instructions, with all that they leave behind as results, so that a wrong value
// is seen wherever it went.
static bool verify_beginning(const struct options *o, migraphx_program_t program,
                             const struct tolerance *t, size_t keep)
{
    migraphx_program_t part = NULL;
    forget_difference();
    const bool good = copy_program(program, &part) && OK(migraphx_program_keep_first(part, keep)) &&
                      verify_program(o, part, t);
    migraphx_program_destroy(part);
    return good;
}

// The computing instruction of this number, as text, and the nodes it came from.
static void describe_computing(migraphx_program_t program, size_t number, struct finding *out)
{
    migraphx_module_t m;
    migraphx_instructions_t list = NULL;
    size_t count = 0;
    if (OK(migraphx_program_get_main_module(&m, program)) &&
        OK(migraphx_module_instructions(&list, m)))
        migraphx_instructions_size(&count, list);
    for (size_t i = 0; i < count; i++) {
        migraphx_instruction_t ins = NULL;
        if (OK(migraphx_instructions_get(&ins, list, i)) && is_computing(ins) && --number == 0) {
            migraphx_instruction_to_string(&out->text, ins);
            migraphx_instruction_nodes(&out->nodes, ins);
        }
        migraphx_instruction_destroy(ins);
        if (!number)
            break;
    }
    migraphx_instructions_destroy(list);
}

// The shortest beginning of the program that fails; what follows it is taken to fail too.
static bool bisect(const struct options *o, migraphx_program_t program, const struct tolerance *t,
                   struct finding *out)
{
    const size_t count = count_computing(program);
    if (!count || verify_part(o, program, t, 0, 0))
        return true;
    size_t low = 1, high = count; // instructions kept
    out->difference = last_difference();
    work_begin("searching", 0);
    while (low < high && work_step(0)) {
        const size_t middle = low + (high - low) / 2;
        if (verify_beginning(o, program, t, middle))
            low = middle + 1;
        else {
            high = middle;
            out->difference = last_difference();
        }
    }
    work_end();
    out->number = low;
    describe_computing(program, low, out);
    log_error("Failure starts at: %zu", low);
    log_error("%s", out->text ? out->text : "");
    if (out->nodes && *out->nodes)
        log_error("which is: %s", out->nodes);
    if (isnan(out->difference.rms))
        log_error("It does not run to its end there");
    else
        log_error("RMS Error there: %g, Max diff: %g", out->difference.rms,
                  out->difference.largest);
    return false;
}

// --- against given results ---

static bool verify_expected(const struct options *o, migraphx_program_t program,
                            const struct tolerance *t)
{
    migraphx_program_parameters_t params = NULL;
    migraphx_arguments_t results = NULL;
    size_t count = 0;
    bool good = make_inputs(o, program, &params) && quantize_model(o, program) &&
                compile_model(o, program, target_name(o), false) &&
                OK(migraphx_program_run(&results, program, params)) &&
                OK(migraphx_arguments_size(&count, results));
    if (good && (size_t)o->expect.count > count) {
        log_error("--expect: %d files, the model has %zu results", o->expect.count, count);
        good = false;
    }
    for (int i = 0; good && i < o->expect.count; i++) {
        migraphx_argument_t expected = NULL;
        const_migraphx_argument_t result;
        good = load_tensor(o->expect.items[i], NULL, &expected) &&
               OK(migraphx_arguments_get(&result, results, (size_t)i)) &&
               compare_argument(expected, result, t);
        migraphx_argument_destroy(expected);
    }
    migraphx_arguments_destroy(results);
    migraphx_program_parameters_destroy(params);
    return good;
}

static bool verify_sets(const struct options *o, const char *folder, migraphx_program_t program,
                        const struct tolerance *t)
{
    return quantize_model(o, program) && compile_model(o, program, target_name(o), false) &&
           verify_folder(folder, program, t);
}

// --- what came out ---

static void print_json(const struct finding *f, bool passed)
{
    const struct difference d = f->number ? f->difference : last_difference();
    printf("{\"passed\": %s, \"rms\": ", passed ? "true" : "false");
    put_json_number(stdout, d.rms);
    printf(", \"max_diff\": ");
    put_json_number(stdout, d.largest);
    if (f->number) {
        printf(", \"failure_starts_at\": %zu, \"instruction\": ", f->number);
        put_json_text(stdout, f->text ? f->text : "");
        printf(", \"nodes\": ");
        put_json_text(stdout, f->nodes ? f->nodes : "");
    }
    printf("}\n");
}

static bool verify(const struct options *o, const char *folder, migraphx_program_t program,
                   const struct tolerance *t, struct finding *f)
{
    if (folder)
        return verify_sets(o, folder, program, t);
    if (o->expect.count)
        return verify_expected(o, program, t);
    return o->per_instruction ? each_instruction(o, program, t)
           : o->reduce        ? reduce(o, program, t)
           : o->bisect        ? bisect(o, program, t, f)
                              : verify_program(o, program, t);
}

static int run(struct options *o)
{
    migraphx_program_t program;
    struct finding f = {0};
    const bool tf = o->type == FILE_TF || (o->file && is_saved_model(o->file));
    const char *folder = !tf && is_folder(o->file) ? o->file : NULL;
    char model[4096];
    if (folder && !find_model(folder, model, sizeof model))
        return EXIT_FAILURE;
    o->file = folder ? model : o->file;
    if (!load_model(o, &program))
        return EXIT_FAILURE;
    const struct tolerance t = choose_tolerance(o, program);
    const bool printed = o->format || !o->print || OK(migraphx_program_print(program));
    const bool good = printed && verify(o, folder, program, &t, &f);
    migraphx_program_destroy(program);
    if (o->format)
        print_json(&f, good);
    migraphx_string_destroy(f.text);
    migraphx_string_destroy(f.nodes);
    if (good)
        log_result("RMS Error: %g of %g allowed, Max diff: %g", last_difference().rms, t.rms,
                   last_difference().largest);
    if (good)
        log_result("MIGraphX verification passed successfully.");
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
    {FLAG_SET, "--print", NULL, OFFSET(print), NULL, "print the program first", 0, NULL},
    {FLAG_WORDS, "--expect", NULL, OFFSET(expect), "<file> ...",
     "compare with these results (.npy, .npz, .pb or saved arguments)", 0, NULL},
    {FLAG_END, NULL, NULL, 0, NULL, NULL, 0, NULL}};
static const struct flag *const flags[] = {loader_flags, compile_flags, own,
                                           json_flags,   common_flags,  NULL};
const struct verb verb_verify = {
    "verify",
    "Compares a target with the reference, or with results that are given.",
    "[flags] <file>",
    flags,
    run,
    true};
