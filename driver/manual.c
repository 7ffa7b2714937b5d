// SPDX-License-Identifier: MIT
// --man: the man page in roff, from the tables of verbs, flags and variables. A table that several
// verbs share is printed once, after the verbs.
#include "verbs.h"

// Text of a table: roff takes '-' for a hyphen that nobody can copy, and a line that begins with
// '.' or "'" for a request.
static void put(const char *text)
{
    if (*text == '.' || *text == '\'')
        printf("\\&");
    for (const char *c = text; *c; c++)
        if (*c == '-')
            printf("\\-");
        else if (*c == '\\')
            printf("\\e");
        else
            putchar(*c);
}

static void put_bold(const char *text)
{
    printf("\\fB");
    put(text);
    printf("\\fR");
}

static void put_flag(const struct flag *f)
{
    printf(".TP\n");
    if (f->other) {
        put_bold(f->other);
        printf(", ");
    }
    put_bold(f->name);
    if (f->argument) {
        printf(" \\fI");
        put(f->argument);
        printf("\\fR");
    }
    printf("\n");
    put(f->help);
    printf("\n");
}

static void put_table(const struct flag *table)
{
    for (const struct flag *f = table; f->kind != FLAG_END; f++)
        if (f->kind != FLAG_HEADING)
            put_flag(f);
}

static bool is_shared(const struct flag *table)
{
    return table == loader_flags || table == output_flags || table == compile_flags ||
           table == json_flags || table == common_flags;
}

static void put_verb(const struct verb *verb)
{
    printf(".SS ");
    put(verb->name);
    printf(" ");
    put(verb->usage);
    printf("\n");
    put(verb->summary);
    printf("\n");
    const char *before = ".br\nTakes the flags";
    for (const struct flag *const *table = verb->flags; *table; table++)
        if (is_shared(*table) && *table != common_flags) {
            printf("%s of \\(lq%s\\(rq", before, (*table)->help);
            before = " and";
        }
    if (strcmp(before, " and") == 0)
        printf(".\n");
    for (const struct flag *const *table = verb->flags; *table; table++)
        if (!is_shared(*table))
            put_table(*table);
}

static void put_shared(const struct flag *table)
{
    printf(".SS ");
    put(table->help);
    printf("\n");
    put_table(table);
}

static void put_variables(void)
{
    printf(".SH ENVIRONMENT\n");
    for (const struct variable *v = driver_variables; v->name; v++) {
        printf(".TP\n");
        put_bold(v->name);
        printf("\n");
        put(v->help);
        printf("\n");
    }
}

static void put_end(void)
{
    printf(".SH EXIT STATUS\n"
           ".TP\n0\nThe work was done.\n"
           ".TP\n1\nIt was not: the model, the machine or a failed verification was in the way.\n"
           ".TP\n2\nThe command line makes no sense.\n"
           ".SH EXAMPLES\n.nf\n"
           "migraphx\\-driver read model.onnx\n"
           "migraphx\\-driver perf \\-\\-batch 8 model.onnx\n"
           "migraphx\\-driver verify \\-\\-cpu model.onnx\n"
           "migraphx\\-driver compile \\-\\-exhaustive\\-tune \\-\\-output model.mxr model.onnx\n"
           ".fi\n");
}

void print_manual(const char *version)
{
    printf(".\\\" Written by migraphx-driver --man.\n"
           ".TH MIGRAPHX\\-DRIVER 1 \"\" \"MIGraphX %s\" \"User Commands\"\n"
           ".SH NAME\nmigraphx\\-driver \\- read, compile, run, time and verify models\n"
           ".SH SYNOPSIS\n.B migraphx\\-driver\n.I verb\n.RI [ flags ]\n.RI [ file ]\n"
           ".SH DESCRIPTION\n"
           "Loads a trained model (ONNX) or a saved program and does with it what the verb says.\n"
           "Results go to standard output, what is said about the work to standard error.\n"
           "A word is a flag only if it equals one; a flag of many words takes all up to the next\n"
           "flag.\n"
           ".SH VERBS\n",
           version);
    for (const struct verb *const *v = driver_verbs; *v; v++)
        put_verb(*v);
    printf(".SH FLAGS\n");
    put_shared(loader_flags);
    put_shared(output_flags);
    put_shared(compile_flags);
    put_shared(common_flags);
    put_variables();
    put_end();
}
