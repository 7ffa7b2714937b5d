// SPDX-License-Identifier: MIT
// compile: load, quantize, compile, print or save what came out.
#include "verbs.h"

static bool explain(migraphx_program_t program)
{
    char *text = NULL;
    const bool good = OK(migraphx_program_explain(&text, program));
    if (good)
        fputs(text, stdout);
    migraphx_string_destroy(text);
    return good;
}

// --- several forms in one file ---

enum { MOST_FORMS = 8 };

// "cpu:avx2": a target, and maybe a set of instructions.
static bool compile_form(const struct options *o, migraphx_program_t program, const char *word,
                         migraphx_program_t *out)
{
    const char *colon = strchr(word, ':');
    char target[16];
    struct options own = *o;
    snprintf(target, sizeof target, "%.*s", colon ? (int)(colon - word) : (int)strlen(word), word);
    own.isa = colon ? colon + 1 : o->isa;
    own.offload_copy = o->offload_copy;
    own.on_card = true; // as without --enable-offload-copy: the form is for programs to load
    log_info("Compiling for %s", word);
    return OK(migraphx_program_create(out)) && OK(migraphx_program_assign_to(*out, program)) &&
           compile_model(&own, *out, target, false);
}

static bool save_forms(const struct options *o, migraphx_program_t program,
                       migraphx_file_options_t options)
{
    migraphx_program_t form[MOST_FORMS] = {NULL};
    bool good = true;
    for (int i = 0; i < o->forms.count && good; i++)
        good = compile_form(o, program, o->forms.items[i], &form[i]) &&
               OK(migraphx_file_options_add_form(options, form[i]));
    good = good && OK(migraphx_save(program, o->output, options));
    for (int i = 0; i < MOST_FORMS; i++)
        migraphx_program_destroy(form[i]);
    return good;
}

static bool write_forms(const struct options *o, migraphx_program_t program)
{
    migraphx_file_options_t options = NULL;
    bool compiled = false;
    if (!o->output || (o->format && strcmp(o->format, "binary") != 0) ||
        o->forms.count > MOST_FORMS) {
        log_error(o->forms.count > MOST_FORMS ? "--for: at most %d forms fit a file"
                                              : "--for needs --output: %d forms at most go into a "
                                                "saved program",
                  MOST_FORMS);
        return false;
    }
    if (OK(migraphx_program_is_compiled(&compiled, program)) && compiled) {
        log_error("--for: the program is compiled already; --strip-context takes the portable one "
                  "out of a file that has it");
        return false;
    }
    const bool good = OK(migraphx_file_options_create(&options)) && save_forms(o, program, options);
    migraphx_file_options_destroy(options);
    return good;
}

static int run(struct options *o)
{
    migraphx_program_t program;
    bool good;
    if (!load_model(o, &program))
        return EXIT_FAILURE;
    good = quantize_model(o, program);
    if (good && o->forms.count)
        good = write_forms(o, program);
    else
        good = good && compile_model(o, program, target_name(o), false) &&
               (o->explain ? explain(program) : write_program(o, program));
    migraphx_program_destroy(program);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static const struct flag own[] = {
    {FLAG_HEADING, NULL, NULL, 0, NULL, "compile", 0, NULL},
    {FLAG_SET, "--explain", NULL, OFFSET(explain), NULL,
     "print kernel, layout and threads of every instruction instead", 0, NULL},
    {FLAG_WORDS, "--for", NULL, OFFSET(forms), "<target[:isa]> ...",
     "save the program with a form for each: cpu:avx2 cpu:avx512 gpu", 0, NULL},
    {FLAG_END, NULL, NULL, 0, NULL, NULL, 0, NULL}};
static const struct flag *const flags[] = {loader_flags, compile_flags, output_flags,
                                           own,          common_flags,  NULL};
const struct verb verb_compile = {
    "compile", "Compiles a model and prints or saves the result.", "[flags] <file>", flags, run,
    true};
