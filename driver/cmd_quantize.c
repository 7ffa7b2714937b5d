// SPDX-License-Identifier: MIT
// quantize: makes a model's products narrow, within a budget if there is one, says what each of
// them costs and gains, and writes the program; or checks such a program against its model again.
#include <math.h>

#include "verbs.h"

// With --json, unless that is the form of a file.
static bool prints_json(const struct options *o)
{
    return o->format && strcmp(o->format, "json") == 0 && (o->check || !o->output);
}

// A line of the table: instruction, type, error, gain, the rest. "-" is a number not known.
static void put_product(char *line, bool first)
{
    char *rest = line;
    const char *word[4];
    for (int i = 0; i < 4; i++)
        word[i] = (rest += strspn(rest, " "), strsep(&rest, " "));
    printf("%s\n  {\"instruction\": ", first ? "" : ",");
    put_json_text(stdout, word[0]);
    printf(", \"type\": ");
    put_json_text(stdout, word[1]);
    printf(", \"error\": ");
    put_json_number(stdout, *word[2] == '-' ? NAN : strtod(word[2], NULL));
    printf(", \"gain_us\": ");
    put_json_number(stdout, strcmp(word[3], "-") == 0 ? NAN : strtod(word[3], NULL));
    printf(", \"note\": ");
    put_json_text(stdout, rest ? rest + strspn(rest, " ") : "");
    printf("}");
}

// A head, the products, a line that sums up.
static void put_table(char *table)
{
    char *rest = table, *line;
    bool first = true;
    strsep(&rest, "\n");
    printf("{\"products\": [");
    while ((line = strsep(&rest, "\n")) && rest && *rest) {
        put_product(line, first);
        first = false;
    }
    printf("],\n \"summary\": ");
    put_json_text(stdout, line ? line : "");
}

static bool print_table(const struct options *o, const char *ranges)
{
    char *table = NULL;
    const bool good = OK(migraphx_quantization_table(&table, ranges, strlen(ranges)));
    if (good && prints_json(o))
        put_table(table);
    else if (good)
        fputs(table, stdout);
    migraphx_string_destroy(table);
    return good;
}

static bool quantize(const struct options *o, migraphx_program_t program)
{
    char *ranges = NULL;
    const bool good = quantize_products(o, program, o->fp8, &ranges) && print_table(o, ranges) &&
                      (!o->output || write_program(o, program));
    if (good && prints_json(o))
        printf("}\n");
    if (good && strstr(ranges, "it would not be faster"))
        log_info("Some products are not faster in 8 bits here; --reckon-time narrows them too");
    migraphx_string_destroy(ranges);
    return good;
}

// --- checking ---

// The line "budget <metric> <allowed> <found>" of what the program keeps.
static bool find_budget(const char *ranges, char *metric, double *allowed)
{
    const char *line = strstr(ranges, "\nbudget ");
    return line && sscanf(line, "\nbudget %15s %lf", metric, allowed) == 2;
}

static void put_judgement(double relative, double top, const char *metric, double allowed,
                          double error)
{
    printf(",\n \"relative_error\": ");
    put_json_number(stdout, relative);
    printf(", \"other_top\": ");
    put_json_number(stdout, top);
    if (metric) {
        printf(", \"budget\": {\"metric\": ");
        put_json_text(stdout, metric);
        printf(", \"allowed\": ");
        put_json_number(stdout, allowed);
        printf(", \"within\": %s}", error <= allowed ? "true" : "false");
    }
    printf("}\n");
}

static bool judge(const struct options *o, const char *ranges, double relative, double top)
{
    char metric[16] = "relative";
    double allowed = 0;
    bool known = find_budget(ranges, metric, &allowed);
    if (o->budget) {
        allowed = strtod(o->budget, NULL);
        snprintf(metric, sizeof metric, "%s", o->metric ? o->metric : "relative");
        known = true;
    }
    const double error = strcmp(metric, "top") == 0 ? top : relative;
    if (prints_json(o)) {
        put_judgement(relative, top, known ? metric : NULL, allowed, error);
        return !known || error <= allowed;
    }
    printf("relative error %.3g, %.3g of the rows have another top\n", relative, top);
    if (!known)
        return true;
    printf("%s error %.3g %s the budget of %.3g\n", metric, error,
           error <= allowed ? "is within" : "is above", allowed);
    return error <= allowed;
}

static bool check(const struct options *o, migraphx_program_t program)
{
    migraphx_program_t quantized = NULL;
    migraphx_file_options_t file = NULL;
    migraphx_quantize_options_t options = NULL;
    migraphx_target_t target = NULL;
    char *ranges = NULL;
    double relative = 0, top = 0;
    const bool good =
        OK(migraphx_file_options_create(&file)) && OK(migraphx_load(&quantized, o->check, file)) &&
        OK(migraphx_program_quantization(&ranges, quantized)) && print_table(o, ranges) &&
        OK(migraphx_target_create(&target, target_name(o))) &&
        make_quantize_options(o, program, o->fp8, &options) &&
        OK(migraphx_quantization_error(&relative, &top, program, quantized, target, options)) &&
        judge(o, ranges, relative, top);
    migraphx_string_destroy(ranges);
    migraphx_quantize_options_destroy(options);
    migraphx_target_destroy(target);
    migraphx_program_destroy(quantized);
    migraphx_file_options_destroy(file);
    return good;
}

static int run(struct options *o)
{
    migraphx_program_t program;
    if (!load_model(o, &program))
        return EXIT_FAILURE;
    const bool good = o->check ? check(o, program) : quantize(o, program);
    migraphx_program_destroy(program);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static const struct flag own[] = {
    {FLAG_HEADING, NULL, NULL, 0, NULL, "quantize", 0, NULL},
    {FLAG_WORD, "--check", NULL, OFFSET(check), "<file>",
     "measure the error of this quantized program instead, against its budget", 0, NULL},
    {FLAG_END, NULL, NULL, 0, NULL, NULL, 0, NULL}};
static const struct flag *const flags[] = {loader_flags, compile_flags, output_flags,
                                           own,          common_flags,  NULL};
const struct verb verb_quantize = {
    "quantize",
    "Quantizes a model's products to 8 bits and prints what each costs and gains.",
    "[flags] <file>",
    flags,
    run,
    true};
