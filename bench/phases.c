// SPDX-License-Identifier: MIT
// What import and compilation of one model cost, phase by phase, in a process of its own.
//
//     mgx-phases [--passes] [--cpu THREADS] MODEL.onnx [INPUT=LEN,LEN,...] ...
//
// Without --cpu: import, verification and the shared passes. With --cpu: import and the whole
// compilation, of which the passes' part is told apart by the pass manager's trace. --passes lists
// every pass with its runs and its time. Memory is anonymous memory (resident, not backed by the
// model's file) above what the process had before, and the peak of everything.
//
// One line of `name value` pairs on stdout, for bench/import.py.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "onnx/onnx.h"
#include "pass/pass.h"
#include "targets/target.h"

enum { MAX_INPUTS = 32, MAX_PASSES = 128 };

struct pass_time {
    const char *name;
    double ms;
    int runs, changes;
};

struct phases {
    const char *path;
    int threads; // of --cpu; 0: stop after the shared passes
    bool list;
    struct mgx_onnx_dims inputs[MAX_INPUTS];
    struct mgx_dim dims[MAX_INPUTS][MGX_MAX_RANK];
    int input_count;
    struct pass_time passes[MAX_PASSES];
    int pass_count;
};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

// A value of /proc/self/status in MiB; 0 where there is none.
static double status_mb(const char *key)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    double found = 0;
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0)
            found = strtod(line + strlen(key) + 1, NULL) / 1024;
    if (f)
        fclose(f);
    return found;
}

// INPUT=1,3,224,224
static bool add_input(struct phases *p, char *word)
{
    char *at = strchr(word, '=');
    if (!at || p->input_count == MAX_INPUTS)
        return false;
    *at++ = '\0';
    struct mgx_dim *dims = p->dims[p->input_count];
    int count = 0;
    while (*at && count < MGX_MAX_RANK) {
        const long long size = strtoll(at, &at, 10);
        dims[count++] = (struct mgx_dim){.min = size, .max = size};
        at += *at == ',';
    }
    p->inputs[p->input_count++] = (struct mgx_onnx_dims){word, dims, count};
    return true;
}

static bool read_words(struct phases *p, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--passes") == 0)
            p->list = true;
        else if (strcmp(argv[i], "--cpu") == 0 && i + 1 < argc)
            p->threads = atoi(argv[++i]);
        else if (!p->path)
            p->path = argv[i];
        else if (!add_input(p, argv[i]))
            return false;
    }
    return p->path != NULL;
}

// --- passes ---

// A pass that runs others is reported after them: its own share is what they have not had.
static void note_pass(void *user, const char *name, const struct mgx_program *program, bool changed,
                      double microseconds)
{
    (void)program;
    struct phases *p = user;
    int i = 0;
    while (i < p->pass_count && strcmp(p->passes[i].name, name) != 0)
        i++;
    if (i == MAX_PASSES)
        return;
    if (i == p->pass_count)
        p->passes[p->pass_count++] = (struct pass_time){.name = name};
    p->passes[i].ms += microseconds / 1e3;
    p->passes[i].runs++;
    p->passes[i].changes += changed;
}

static void list_passes(const struct phases *p)
{
    for (int i = 0; i < p->pass_count; i++)
        printf("  %-36s %9.3f ms in %d runs, %d with changes\n", p->passes[i].name, p->passes[i].ms,
               p->passes[i].runs, p->passes[i].changes);
}

// --- phases ---

static int count_instructions(const struct mgx_program *p)
{
    int count = 0;
    for (int i = 0; i < p->module_count; i++)
        count += p->modules[i]->count;
    return count;
}

static enum mgx_status simplify(struct phases *p, struct mgx_program *program,
                                struct mgx_diag *diag)
{
    const struct mgx_pass_options options = {
        .fast_math = true, .trace = p->list ? note_pass : NULL, .trace_user = p};
    double start = now_ms();
    TRY(mgx_program_verify(program, diag));
    printf(" verify %.3f", now_ms() - start);
    start = now_ms();
    TRY(mgx_run_passes(program, mgx_pipeline_simplify, &options, diag));
    printf(" simplify %.3f", now_ms() - start);
    return MGX_OK;
}

static enum mgx_status compile(struct phases *p, struct mgx_program *program, struct mgx_diag *diag)
{
    const struct mgx_compile_options options = {
        .threads = p->threads,
        .fast_math = true,
        .pass = {.fast_math = true, .trace = p->list ? note_pass : NULL, .trace_user = p}};
    const double start = now_ms();
    TRY(mgx_program_compile(program, mgx_target_find("cpu"), &options, diag));
    printf(" compile %.3f", now_ms() - start);
    return MGX_OK;
}

static enum mgx_status measure(struct phases *p, struct mgx_diag *diag)
{
    const struct mgx_onnx_options options = {.inputs = p->inputs, .input_count = p->input_count};
    const double before = status_mb("RssAnon"), start = now_ms();
    struct mgx_program *program;
    TRY(mgx_onnx_import_file(&program, p->path, &options, diag));
    printf("import %.3f", now_ms() - start);
    printf(" imported %d", count_instructions(program));
    const enum mgx_status status =
        p->threads ? compile(p, program, diag) : simplify(p, program, diag);
    if (status == MGX_OK)
        printf(" total %.3f instructions %d anon_mb %.2f file_mb %.2f peak_mb %.2f\n",
               now_ms() - start, count_instructions(program), status_mb("RssAnon") - before,
               status_mb("RssFile"), status_mb("VmHWM"));
    mgx_program_destroy(program);
    return status;
}

int main(int argc, char **argv)
{
    static struct phases p;
    static struct mgx_diag diag;
    if (!read_words(&p, argc, argv)) {
        fprintf(stderr, "usage: %s [--passes] [--cpu THREADS] MODEL.onnx [INPUT=LEN,...] ...\n",
                argv[0]);
        return EXIT_FAILURE;
    }
    if (measure(&p, &diag) != MGX_OK) {
        fprintf(stderr, "%s\n", diag.text);
        return EXIT_FAILURE;
    }
    list_passes(&p);
    return EXIT_SUCCESS;
}
