// SPDX-License-Identifier: MIT
// passes: the stages of passes that a target runs, and when each does. No model and no card needed.
#include "verbs.h"

// One stage, "name TAB condition TAB passes": for people, or an object of a list.
static void put_stage(const struct options *o, char *line, int number)
{
    char *when = strchr(line, '\t');
    char *passes = when ? strchr(when + 1, '\t') : NULL;
    if (!passes)
        return;
    *when++ = *passes++ = '\0';
    if (!o->format) {
        printf("%s%s%s%s:\n    %s\n", line, *when ? " (" : "", when, *when ? ")" : "", passes);
        return;
    }
    printf("%s{\"stage\": ", number ? ", " : "[");
    put_json_text(stdout, line);
    printf(", \"when\": ");
    put_json_text(stdout, when);
    printf(", \"passes\": ");
    int found = 0;
    for (char *rest = NULL, *name = strtok_r(passes, " ", &rest); name;
         name = strtok_r(NULL, " ", &rest))
        put_name(o, name, found++);
    printf("]}");
}

static int run(struct options *o)
{
    char *text = NULL;
    int count = 0;
    if (!OK(migraphx_get_target_stages(&text, o->target ? o->target : "cpu")))
        return EXIT_FAILURE;
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        put_stage(o, line, count++);
    }
    put_names_end(o, count);
    migraphx_string_destroy(text);
    return EXIT_SUCCESS;
}

static const struct flag own[] = {
    {FLAG_HEADING, NULL, NULL, 0, NULL, "passes", 0, NULL},
    {FLAG_NAME, "--ref", NULL, OFFSET(target), NULL, "the reference target", 0, "ref"},
    {FLAG_NAME, "--cpu", NULL, OFFSET(target), NULL, "the CPU target (the default)", 0, "cpu"},
    {FLAG_NAME, "--gpu", NULL, OFFSET(target), NULL, "the GPU target", 0, "gpu"},
    {FLAG_END, NULL, NULL, 0, NULL, NULL, 0, NULL}};
static const struct flag *const flags[] = {own, json_flags, common_flags, NULL};
const struct verb verb_passes = {
    "passes", "Prints the stages of passes that a target runs, and when.", "", flags, run, false};
