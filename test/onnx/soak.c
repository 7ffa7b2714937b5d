// SPDX-License-Identifier: MIT
// mgx-soak: one compiled program by many threads for a long time, every result the same to the bit.
//
//     mgx-soak [--target cpu] [--threads 8] [--seconds 60] FOLDER
//
// FOLDER is a case as of mgx-run-onnx: model.onnx and test_data_set_<k>/input_<i>.pb. Each data set is
// run by the main thread first; then the threads take data sets at random, which for detectors means
// other numbers of boxes, and compare. Every thread's kernels are its own, so that the threads that run
// at a time are those that were asked for. For builds with a sanitizer: what races or is read too late
// ends the process. Prints how many runs there were; the exit status is 0 when all agreed.
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "again.h"
#include "base/clock.h"
#include "onnx/onnx.h"
#include "targets/target.h"

enum { MAX_VALUES = 64, MAX_SETS = 16, MAX_THREADS = 64 };

struct set {
    struct mgx_named_tensor in[MAX_VALUES];
    struct mgx_tensor out[MAX_VALUES];
};

struct soak {
    const struct mgx_program *program;
    struct set sets[MAX_SETS];
    int set_count, in_count, out_count;
    double end;
    atomic_long runs, wrong;
};

struct worker {
    pthread_t thread;
    struct soak *soak;
    uint32_t random;
};

static enum mgx_status load(struct soak *s, const char *folder, struct set *set,
                            struct mgx_diag *diag)
{
    struct mgx_ins *params[MAX_VALUES];
    mgx_module_parameters(mgx_program_main(s->program), params, MAX_VALUES);
    for (int i = 0; i < s->in_count; i++) {
        char path[PATH_MAX + 64];
        snprintf(path, sizeof path, "%s/input_%d.pb", folder, i);
        set->in[i].name = mgx_parameter_name(params[i]);
        TRY(mgx_onnx_load_value(&set->in[i].tensor, path, &params[i]->shape, diag));
    }
    return MGX_OK;
}

static enum mgx_status run(const struct soak *s, const struct set *set, struct mgx_tensor *out,
                           struct mgx_diag *diag)
{
    struct mgx_run call = {.params = set->in,
                           .param_count = s->in_count,
                           .results = out,
                           .result_count = s->out_count};
    return mgx_program_run(s->program, &call, diag);
}

static void *work(void *user)
{
    struct worker *w = user;
    struct soak *s = w->soak;
    while (mgx_clock_seconds() < s->end) {
        struct mgx_tensor out[MAX_VALUES] = {{.data = NULL}};
        struct mgx_diag diag = {0};
        w->random = w->random * 1664525u + 1013904223u;
        const struct set *set = &s->sets[(w->random >> 16) % (uint32_t)s->set_count];
        bool good = run(s, set, out, &diag) == MGX_OK;
        if (!good)
            printf("%s\n", diag.text);
        for (int i = 0; i < s->out_count; i++) {
            good = good && again_same(&set->out[i], &out[i]);
            mgx_tensor_release(&out[i]);
        }
        atomic_fetch_add(&s->runs, 1);
        atomic_fetch_add(&s->wrong, !good);
    }
    return NULL;
}

static enum mgx_status prepare(struct soak *s, const char *folder, const char *target,
                               struct mgx_diag *diag)
{
    char path[PATH_MAX];
    struct mgx_program *p = NULL;
    const struct mgx_onnx_options options = {.dynamic_dims = true};
    const struct mgx_compile_options compile = {
        .offload_copy = true, .threads = 1, .specialise = MGX_SPECIALISE_IN_CALL};
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    TRY(mgx_onnx_import_file(&p, path, &options, diag));
    s->program = p;
    TRY(mgx_program_compile(p, mgx_target_find(target), &compile, diag));
    s->in_count = mgx_module_parameters(mgx_program_main(p), NULL, 0);
    s->out_count = mgx_module_result_count(mgx_program_main(p));
    if (s->in_count > MAX_VALUES || s->out_count > MAX_VALUES)
        return mgx_fail(diag, MGX_LIMIT, "%d inputs and %d results", s->in_count, s->out_count);
    for (; s->set_count < MAX_SETS; s->set_count++) {
        struct set *set = &s->sets[s->set_count];
        snprintf(path, sizeof path, "%s/test_data_set_%d", folder, s->set_count);
        if (access(path, R_OK) != 0)
            break;
        TRY(load(s, path, set, diag));
        TRY(run(s, set, set->out, diag));
    }
    return s->set_count ? MGX_OK : mgx_fail(diag, MGX_NOT_FOUND, "%s: no data sets", folder);
}

static void destroy(struct soak *s)
{
    for (int k = 0; k < s->set_count; k++) {
        for (int i = 0; i < s->in_count; i++)
            mgx_tensor_release(&s->sets[k].in[i].tensor);
        for (int i = 0; i < s->out_count; i++)
            mgx_tensor_release(&s->sets[k].out[i]);
    }
    mgx_program_destroy((struct mgx_program *)(uintptr_t)s->program);
}

static int soak(struct soak *s, int threads, double seconds)
{
    struct worker w[MAX_THREADS];
    int started = 0;
    s->end = mgx_clock_seconds() + seconds;
    for (; started < threads && started < MAX_THREADS; started++) {
        w[started] = (struct worker){.soak = s, .random = (uint32_t)started};
        if (pthread_create(&w[started].thread, NULL, work, &w[started]) != 0)
            break;
    }
    for (int i = 0; i < started; i++)
        pthread_join(w[i].thread, NULL);
    printf("%ld runs by %d threads over %d data sets, %ld wrong\n", atomic_load(&s->runs), started,
           s->set_count, atomic_load(&s->wrong));
    return atomic_load(&s->wrong) != 0 || !atomic_load(&s->runs);
}

int main(int argc, char **argv)
{
    static struct soak s;
    const char *target = "cpu", *folder = NULL;
    int threads = 8;
    double seconds = 60;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--target") == 0 && i + 1 < argc)
            target = argv[++i];
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            threads = atoi(argv[++i]);
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            seconds = atof(argv[++i]);
        else
            folder = argv[i];
    struct mgx_diag diag = {0};
    const bool good = folder && prepare(&s, folder, target, &diag) == MGX_OK;
    if (!good)
        printf("%s\n", folder ? diag.text : "which folder?");
    const int code = good ? soak(&s, threads, seconds) : 2;
    destroy(&s);
    return code;
}
