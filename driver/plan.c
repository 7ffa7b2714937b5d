// SPDX-License-Identifier: MIT
// The plan of a compiled program as rows: what migraphx_program_plan prints, taken apart.
#include "driver.h"

enum { FIELDS = 16 };

// The next field ends at a tab or at the end of the line, which become its end.
static char *next_field(char **at)
{
    char *field = *at;
    *at += strcspn(field, "\t\n");
    if (**at)
        *(*at)++ = '\0';
    return field;
}

static void read_row(char **at, struct plan_row *row)
{
    const char *f[FIELDS];
    for (int i = 0; i < FIELDS; i++)
        f[i] = next_field(at);
    *row = (struct plan_row){.instruction = atoi(f[0]),
                             .op = f[1],
                             .kernel = f[2],
                             .detail = f[3],
                             .where = f[4],
                             .type = f[5],
                             .place = f[6],
                             .offset = strtod(f[7], NULL),
                             .bytes = strtod(f[8], NULL),
                             .first = atoi(f[9]),
                             .last = atoi(f[10]),
                             .flops = strtod(f[11], NULL),
                             .moved = strtod(f[12], NULL),
                             .why = f[13],
                             .nodes = f[14],
                             .reads = f[15]};
}

static int count_lines(const char *text)
{
    int count = 0;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

// Explain's last lines: those from "steps:" on.
static char *summary_of(migraphx_program_t program)
{
    char *text = NULL;
    if (!OK(migraphx_program_explain(&text, program)))
        return NULL;
    const char *at = strstr(text, "\nsteps: ");
    char *copy = strdup(at ? at + 1 : strncmp(text, "steps: ", 7) == 0 ? text : "");
    migraphx_string_destroy(text);
    return copy;
}

bool load_plan(migraphx_program_t program, struct plan *out)
{
    *out = (struct plan){0};
    if (!OK(migraphx_program_plan(&out->text, program)))
        return false;
    const int lines = count_lines(out->text);
    out->rows = calloc((size_t)lines + 1, sizeof *out->rows);
    out->summary = summary_of(program);
    if (!out->rows || !out->summary) {
        free_plan(out);
        return false;
    }
    char *at = out->text;
    while (out->count < lines)
        read_row(&at, &out->rows[out->count++]);
    return true;
}

void free_plan(struct plan *plan)
{
    migraphx_string_destroy(plan->text);
    free(plan->rows);
    free(plan->summary);
    *plan = (struct plan){0};
}
