// SPDX-License-Identifier: MIT
// mgx-run-onnx: runs models on stored inputs and compares with stored outputs.
//
//     mgx-run-onnx [--target NAME] [--fixed] [--only TEXT] [--rtol R] [--atol A] [--seconds S]
//                  [--hostile] [--verbose] [--part I/N] [--batch N]
//                  PATH ...
//
// A PATH is a case (a folder with model.onnx and test_data_set_*) or a tree of them. Each case runs
// in a process of its own, so a crash or a hang is a failed case like any other. Without --target
// the reference evaluates the program as imported. Free dimensions stay free unless --fixed.
// Tolerances come from the case's tolerance.txt; the rule is numpy's |a - b| <= atol + rtol |b|.
// With --hostile a refusal that says why is as good as a result; one of a target must be one of the
// reference too, and results must agree with the reference's. Each case is run three times with other
// bytes in freed memory, and results must be the same to the bit (again.h). With --part 3/8 it is every eighth
// case, from the fourth on, for eight processes side by side. --batch 50 gives a process so many cases,
// for cards, where the start of a process is most of a case; one that crashes ends with its case.
// One line per failure, then a table per kind (the folder above the cases): how many passed, how many
// failed, and of how many of those that passed no step was left to the host. The exit status is 0 when
// all passed. With --verbose a line for each that passed as well, with what was left to the host:
// operators, of a deferred node the ONNX operator.
#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "again.h"
#include "base/array.h"
#include "base/size.h"
#include "onnx/deferred.h"
#include "onnx/onnx.h"
#include "op/eval/eval.h"
#include "op/op.h"
#include "targets/sizes.h"
#include "targets/target.h"

enum { MAX_VALUES = 256, TEXT = 3000 };

struct settings {
    const char *target, *only;
    double rtol, atol;
    int seconds, part, parts, batch;
    bool fixed, hostile, verbose;
};

struct tally {
    char kind[64];
    int passed, failed, whole;
};

static struct tally tallies[64];
static int tally_count;

// --- comparing ---

struct tolerance {
    double rtol, atol;
};

static bool close_enough(double a, double b, struct tolerance t)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b))
        return a == b;
    return fabs(a - b) <= t.atol + t.rtol * fabs(b);
}

static double part(const struct mgx_tensor *t, int64_t at, int which)
{
    return t->shape.type == MGX_COMPLEX64 ? ((const float *)t->data)[2 * at + which]
                                          : ((const double *)t->data)[2 * at + which];
}

static bool element_equal(const struct mgx_tensor *a, int64_t i, const struct mgx_tensor *b,
                          int64_t k, struct tolerance t)
{
    if (a->shape.type == MGX_STRING) {
        const struct mgx_string *x = (const struct mgx_string *)a->data + i;
        const struct mgx_string *y = (const struct mgx_string *)b->data + k;
        return x->size == y->size && (!x->size || memcmp(x->text, y->text, x->size) == 0);
    }
    if (mgx_type_is_complex(a->shape.type)) {
        const double dr = part(a, i, 0) - part(b, k, 0), di = part(a, i, 1) - part(b, k, 1);
        return hypot(dr, di) <= t.atol + t.rtol * hypot(part(b, k, 0), part(b, k, 1));
    }
    if (mgx_type_is_integral(a->shape.type) &&
        mgx_load_int(a->shape.type, a->data, i) == mgx_load_int(b->shape.type, b->data, k))
        return true;
    return close_enough(mgx_load_double(a->shape.type, a->data, i),
                        mgx_load_double(b->shape.type, b->data, k), t);
}

static void print_shape(char *why, const struct mgx_shape *got, const struct mgx_shape *want)
{
    struct mgx_str text = {0};
    mgx_shape_print(&text, got);
    mgx_str_put(&text, " where ");
    mgx_shape_print(&text, want);
    mgx_str_put(&text, " is expected");
    snprintf(why, TEXT, "%s", mgx_str_text(&text));
    mgx_str_fini(&text);
}

static bool compare(const struct mgx_tensor *got, const struct mgx_tensor *want, struct tolerance t,
                    char *why)
{
    const struct mgx_shape *a = &got->shape, *b = &want->shape;
    const bool group = a->type == MGX_SEQUENCE || a->type == MGX_TUPLE;
    if (group && got->sub_count == want->sub_count && a->type == b->type) {
        for (int i = 0; i < got->sub_count; i++)
            if (!compare(&got->sub[i], &want->sub[i], t, why))
                return false;
        return true;
    }
    if (group || a->type != b->type || a->rank != b->rank ||
        memcmp(a->lens, b->lens, (size_t)a->rank * sizeof *a->lens) != 0) {
        print_shape(why, a, b);
        return false;
    }
    if (a->type == MGX_BF16)
        t.rtol = fmax(t.rtol, 1.0 / 64); // the suite allows two units of its last place
    const int64_t count = mgx_shape_elements(a);
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; i++)
        if (!element_equal(got, mgx_shape_index(a, i), want, mgx_shape_index(b, i), t) && !wrong++)
            snprintf(why, TEXT, "element %lld is %.9g, expected %.9g", (long long)i,
                     mgx_type_is_number(a->type)
                         ? mgx_load_double(a->type, got->data, mgx_shape_index(a, i))
                         : 0.0,
                     mgx_type_is_number(a->type)
                         ? mgx_load_double(b->type, want->data, mgx_shape_index(b, i))
                         : 0.0);
    const size_t used = strlen(why);
    if (wrong)
        snprintf(why + used, TEXT - used, " (%lld of %lld differ)", (long long)wrong,
                 (long long)count);
    return !wrong;
}

// --- one data set ---

static bool exists(const char *path)
{
    return access(path, R_OK) == 0;
}

struct values {
    struct mgx_named_tensor v[MAX_VALUES];
    int count;
};

static enum mgx_status load_inputs(const struct mgx_program *p, const char *folder,
                                   struct values *in, struct mgx_diag *diag)
{
    static struct mgx_ins *params[MAX_VALUES];
    const int count = mgx_module_parameters(mgx_program_main(p), params, MAX_VALUES);
    for (in->count = 0; in->count < count && in->count < MAX_VALUES; in->count++) {
        char path[PATH_MAX + 64];
        const int i = in->count;
        snprintf(path, sizeof path, "%s/input_%d.pb", folder, i);
        in->v[i].name = mgx_parameter_name(params[i]);
        TRY(mgx_onnx_load_value(&in->v[i].tensor, path, &params[i]->shape, diag));
    }
    return MGX_OK;
}

static enum mgx_status evaluate(struct mgx_program *p, const struct values *in,
                                struct mgx_tensor *out, struct mgx_arena *strings,
                                struct mgx_diag *diag)
{
    static struct mgx_tensor args[MAX_VALUES];
    for (int i = 0; i < in->count; i++)
        args[i] = in->v[i].tensor;
    for (int i = 0; i < p->module_count; i++)
        mgx_module_number(p->modules[i]);
    struct mgx_eval e = {.strings = strings};
    return mgx_eval_module(&e, mgx_program_main(p), args, in->count, out, diag);
}

static enum mgx_status run(const struct settings *s, struct mgx_program *p, const struct values *in,
                           struct mgx_tensor *out, int out_count, struct mgx_arena *strings,
                           struct mgx_diag *diag)
{
    if (!s->target)
        return evaluate(p, in, out, strings, diag);
    struct mgx_run call = {
        .params = in->v, .param_count = in->count, .results = out, .result_count = out_count};
    return mgx_program_run(p, &call, diag);
}

static bool check_outputs(const struct mgx_tensor *out, int count, const char *folder,
                          struct tolerance t, char *why)
{
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX + 64], detail[TEXT] = "";
        struct mgx_tensor want;
        struct mgx_diag diag;
        mgx_diag_clear(&diag);
        snprintf(path, sizeof path, "%s/output_%d.pb", folder, i);
        if (!exists(path))
            continue;
        const bool loaded = mgx_onnx_load_value(&want, path, &out[i].shape, &diag) == MGX_OK;
        const bool same = loaded && compare(&out[i], &want, t, detail);
        if (loaded)
            mgx_tensor_release(&want);
        if (!same) {
            snprintf(why, TEXT, "output %d: %.2500s", i, loaded ? detail : diag.text);
            return false;
        }
    }
    return true;
}

// What a program makes of a data set.
struct outcome {
    struct values in;
    struct mgx_tensor out[MAX_VALUES];
    struct mgx_arena strings;
    struct mgx_diag diag;
    int count;
    bool ok;
};

static void start(const struct settings *s, struct mgx_program *p, const char *folder,
                  struct outcome *o)
{
    memset(o, 0, sizeof *o);
    mgx_diag_clear(&o->diag);
    mgx_arena_init(&o->strings);
    o->count = mgx_module_result_count(mgx_program_main(p));
    o->ok = o->count <= MAX_VALUES && load_inputs(p, folder, &o->in, &o->diag) == MGX_OK &&
            run(s, p, &o->in, o->out, o->count, &o->strings, &o->diag) == MGX_OK;
}

static void finish(struct outcome *o)
{
    for (int i = 0; o->ok && i < o->count; i++)
        mgx_tensor_release(&o->out[i]);
    for (int i = 0; i < o->in.count; i++)
        mgx_tensor_release(&o->in.v[i].tensor);
    mgx_arena_fini(&o->strings);
}

static bool agree(const struct outcome *got, const struct outcome *want, struct tolerance t,
                  char *why)
{
    char detail[TEXT / 2] = "";
    bool same = got->ok == want->ok && got->count == want->count;
    if (!same)
        snprintf(why, TEXT, "the target %s (%.1000s), the reference %s (%.1000s)",
                 got->ok ? "runs" : "refuses", got->diag.text, want->ok ? "runs" : "refuses",
                 want->diag.text);
    enum { MANY = 1 << 24 }; // a view of one number may have 2^60 elements
    for (int i = 0; same && got->ok && i < got->count; i++) {
        if (mgx_shape_is_static(&got->out[i].shape) &&
            mgx_shape_elements(&got->out[i].shape) > MANY)
            continue;
        same = compare(&got->out[i], &want->out[i], t, detail);
        if (!same)
            snprintf(why, TEXT, "output %d differs from the reference: %.1000s", i, detail);
    }
    return same;
}

// Is the case's program random by definition?
static bool is_random(const struct mgx_program *p)
{
    static const char *const names[] = {"RandomUniform",    "RandomNormal", "RandomUniformLike",
                                        "RandomNormalLike", "Multinomial",  "Bernoulli",
                                        "Dropout"};
    for (int m = 0; m < p->module_count; m++)
        for (const struct mgx_ins *ins = p->modules[m]->first; ins; ins = ins->next)
            for (int i = 0; ins->op == &mgx_onnx_deferred && i < MGX_COUNT(names); i++)
                if (strcmp(((const struct deferred *)ins->attr)->op_type, names[i]) == 0)
                    return true;
    return again_is_random(p);
}

// The runs after the first, whose outcome is at hand.
static bool same_again(const struct settings *s, struct mgx_program *p, const struct outcome *first,
                       char *why)
{
    static struct outcome o;
    bool same = true;
    for (int round = 1; round < AGAIN_ROUNDS && same && !is_random(p); round++) {
        mgx_diag_clear(&o.diag);
        mgx_arena_init(&o.strings);
        again_disturb(round);
        o.ok = run(s, p, &first->in, o.out, first->count, &o.strings, &o.diag) == MGX_OK;
        same = o.ok == first->ok;
        if (!same)
            snprintf(why, TEXT, "run %d: %s", round + 1, o.ok ? "succeeds" : o.diag.text);
        for (int i = 0; o.ok && i < first->count; i++) {
            if (same && !(same = again_same(&first->out[i], &o.out[i])))
                snprintf(why, TEXT, "run %d: output %d is another one", round + 1, i);
            mgx_tensor_release(&o.out[i]);
        }
        mgx_arena_fini(&o.strings);
    }
    return same;
}

static bool run_data(const struct settings *s, struct mgx_program *p, struct mgx_program *reference,
                     const char *folder, struct tolerance t, char *why)
{
    static struct outcome o, r;
    const struct settings on_reference = {0};
    again_disturb(0);
    start(s, p, folder, &o);
    bool ok = o.ok || (s->hostile && o.diag.text[0]);
    if (!ok)
        snprintf(why, TEXT, "run: %s", o.diag.text);
    if (ok && reference) {
        start(&on_reference, reference, folder, &r);
        ok = agree(&o, &r, t, why);
        finish(&r);
    }
    if (ok && o.ok)
        ok = check_outputs(o.out, o.count, folder, t, why);
    if (ok)
        ok = same_again(s, p, &o, why);
    finish(&o);
    return ok;
}

// --- one case ---

static struct tolerance tolerance_of(const struct settings *s, const char *folder)
{
    struct tolerance t = {1e-3, 1e-7};
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/tolerance.txt", folder);
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%lf %lf", &t.rtol, &t.atol) != 2)
        t = (struct tolerance){1e-3, 1e-7};
    if (f)
        fclose(f);
    if (s->rtol >= 0)
        t.rtol = s->rtol;
    if (s->atol >= 0)
        t.atol = s->atol;
    return t;
}

static bool compile(const struct settings *s, struct mgx_program *p, char *why)
{
    struct mgx_diag diag;
    mgx_diag_clear(&diag);
    if (!s->target)
        return true;
    const struct mgx_target *target = mgx_target_find(s->target);
    const struct mgx_compile_options options = {
        .offload_copy = true,
        .own = MGX_SETTINGS({"device", getenv("MGX_TEST_DEVICE")},
                            {"kernel_folder", getenv("MIGRAPHX_KERNEL_CACHE")})};
    if (target && mgx_program_compile(p, target, &options, &diag) == MGX_OK)
        return true;
    snprintf(why, TEXT, "compile: %s", target ? diag.text : "no such target");
    return false;
}

static enum mgx_status import(const struct settings *s, const char *folder, struct mgx_program **p,
                              struct mgx_diag *diag)
{
    char path[PATH_MAX + 32];
    mgx_diag_clear(diag);
    const struct mgx_onnx_options options = {.dynamic_dims = !s->fixed};
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    return mgx_onnx_import_file(p, path, &options, diag);
}

// An operator that the host computes, of a deferred node the model's operator behind a colon.
static void put_left(const struct mgx_program *p, int index, const char *op, struct mgx_str *left)
{
    const struct mgx_ins *ins = mgx_program_main(p)->first;
    while (ins && ins->index != index)
        ins = ins->next;
    mgx_str_printf(left, " %s", op);
    if (ins && ins->op == &mgx_onnx_deferred)
        mgx_str_printf(left, ":%s", ((const struct deferred *)ins->attr)->op_type);
}

// What kernels of the target's own do not compute: "" where they compute every step; the steps are
// those of the last run, which a plan of its own may have been made for.
static void find_left(const struct settings *s, const struct mgx_program *p, struct mgx_str *left)
{
    const struct mgx_target *target = s->target ? mgx_target_find(s->target) : NULL;
    struct mgx_str table = {0};
    if (!target || !target->plan) {
        mgx_str_put(left, " all");
        return;
    }
    if (p->executable->sizes && mgx_sizes_last(p->executable->sizes))
        p = mgx_sizes_last(p->executable->sizes);
    target->plan(p, &table);
    for (char *row = table.text; row && *row;) { // number, operator, kernel, ...
        char *end = strchr(row, '\n'), *field[3];
        for (int i = 0; i < MGX_COUNT(field); i++)
            field[i] = strsep(&row, "\t");
        if (strcmp(field[2], "ref") == 0)
            put_left(p, atoi(field[0]), field[1], left);
        row = end ? end + 1 : NULL;
    }
    mgx_str_fini(&table);
}

static bool run_case(const struct settings *s, const char *folder, bool *whole, char *why)
{
    char path[PATH_MAX + 32];
    struct mgx_program *p = NULL, *reference = NULL;
    struct mgx_diag diag;
    if (import(s, folder, &p, &diag) != MGX_OK) {
        snprintf(why, TEXT, "import: %s", diag.text);
        return s->hostile && diag.text[0];
    }
    bool ok = compile(s, p, why);
    if (s->hostile && s->target)
        ok = import(s, folder, &reference, &diag) == MGX_OK && (ok || why[0]);
    const bool compiled = !why[0]; // what a target refuses to compile, the reference may run
    for (int i = 0; ok && compiled; i++) {
        snprintf(path, sizeof path, "%s/test_data_set_%d", folder, i);
        if (!exists(path))
            break;
        ok = run_data(s, p, reference, path, tolerance_of(s, folder), why);
    }
    struct mgx_str left = {0};
    if (ok && compiled)
        find_left(s, p, &left);
    *whole = ok && compiled && !left.size;
    if (ok && !*whole)
        snprintf(why, TEXT, "%s", mgx_str_text(&left));
    mgx_str_fini(&left);
    mgx_program_destroy(reference);
    mgx_program_destroy(p);
    return ok;
}

// Of the processor's time, so that a busy machine fails nothing; one that sleeps has ten times that.
static void limit_time(int seconds)
{
    const struct itimerval processor = {.it_value.tv_sec = seconds};
    setitimer(ITIMER_PROF, &processor, NULL);
    alarm(10u * (unsigned)seconds);
}

static struct tally *tally_of(const char *folder)
{
    const char *end = strrchr(folder, '/'), *begin = end;
    while (begin && begin > folder && begin[-1] != '/')
        begin--;
    char kind[64] = ".";
    if (end && end > begin)
        snprintf(kind, sizeof kind, "%.*s", (int)(end - begin), begin);
    for (int i = 0; i < tally_count; i++)
        if (strcmp(tallies[i].kind, kind) == 0)
            return &tallies[i];
    if (tally_count < 63)
        tally_count++;
    struct tally *t = &tallies[tally_count - 1];
    snprintf(t->kind, sizeof t->kind, "%s", kind);
    return t;
}

// What a child says of a case; `size` bytes of why follow.
struct record {
    int size;
    bool ok, whole;
};

static void work(const struct settings *s, char *const *cases, int count, int to)
{
    static char text[TEXT];
    for (int i = 0; i < count; i++) {
        struct record r = {0};
        text[0] = '\0';
        limit_time(s->seconds);
        r.ok = run_case(s, cases[i], &r.whole, text);
        r.size = (int)strlen(text);
        if (write(to, &r, sizeof r) < 0 || write(to, text, strlen(text)) < 0)
            break;
    }
    exit(0); // what is measured by coverage is written at exit
}

static bool receive(int from, void *to, size_t size)
{
    for (ssize_t got; size; size -= (size_t)got, to = (char *)to + got)
        if ((got = read(from, to, size)) <= 0)
            return false;
    return true;
}

static bool receive_record(int from, struct record *r, char *why)
{
    if (!receive(from, r, sizeof *r) || !receive(from, why, (size_t)r->size))
        return false;
    why[r->size] = '\0';
    return true;
}

// How a child ended that should have gone on; "" if it should not.
static const char *end_of(int status)
{
    static char text[80];
    text[0] = '\0';
    if (WIFSIGNALED(status)) {
        const bool slow = WTERMSIG(status) == SIGALRM || WTERMSIG(status) == SIGPROF;
        snprintf(text, sizeof text, slow ? "took too long" : "crashed: %s",
                 strsignal(WTERMSIG(status)));
    } else if (WEXITSTATUS(status)) // a sanitizer's
        snprintf(text, sizeof text, "ended with status %d", WEXITSTATUS(status));
    return text;
}

static void tell(const struct settings *s, const char *folder, const struct record *r,
                 const char *why)
{
    struct tally *t = tally_of(folder);
    *(r->ok ? &t->passed : &t->failed) += 1;
    t->whole += r->ok && r->whole;
    if (!r->ok)
        printf("FAILED %s: %s\n", folder, why);
    else if (s->verbose)
        printf("passed %s%s%s\n", folder,
               r->whole ? ", whole" : ", left to the host:", r->whole ? "" : why);
}

// Cases one after the other in a child; how many it came through, the one that ended it among them.
static int run_apart(const struct settings *s, char *const *cases, int count)
{
    static char why[TEXT];
    struct record r;
    int ends[2], got = 0, status = 0;
    fflush(stdout);
    if (pipe(ends) != 0)
        exit(2);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        work(s, cases, count, ends[1]);
    }
    close(ends[1]);
    while (got < count && receive_record(ends[0], &r, why))
        if (++got < count)
            tell(s, cases[got - 1], &r, why);
    close(ends[0]);
    waitpid(child, &status, 0);
    const char *end = end_of(status);
    if (got == count && !*end) {
        tell(s, cases[count - 1], &r, why);
        return count;
    }
    const int at = got == count ? count - 1 : got;
    tell(s, cases[at], &(struct record){0}, end);
    return at + 1;
}

// --- trees ---

static struct {
    MGX_ARRAY(char *);
} cases;

static void note_case(const struct settings *s, const char *folder)
{
    static int number;
    if ((s->only && !strstr(folder, s->only)) || number++ % s->parts != s->part)
        return;
    char *copy = strdup(folder);
    if (!copy || !MGX_PUSH(&cases, NULL, copy))
        exit(2);
}

static void do_cases(const struct settings *s)
{
    for (int64_t i = 0; i < cases.count;)
        i += run_apart(s, cases.v + i, (int)mgx_min_i64(s->batch, cases.count - i));
    for (int64_t i = 0; i < cases.count; i++)
        free(cases.v[i]);
    free(cases.v);
}

static void find_cases(const struct settings *s, const char *folder)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    if (exists(path)) {
        note_case(s, folder);
        return;
    }
    struct dirent **names;
    const int count = scandir(folder, &names, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        if (names[i]->d_name[0] != '.' && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
            find_cases(s, path);
        free(names[i]);
    }
    if (count >= 0)
        free(names);
}

static int summary(void)
{
    int passed = 0, failed = 0, whole = 0;
    for (int i = 0; i < tally_count; i++) {
        printf("%-20s %5d passed %5d failed %5d whole\n", tallies[i].kind, tallies[i].passed,
               tallies[i].failed, tallies[i].whole);
        whole += tallies[i].whole;
        passed += tallies[i].passed;
        failed += tallies[i].failed;
    }
    printf("%-20s %5d passed %5d failed %5d whole, %.1f %%\n", "all", passed, failed, whole,
           passed + failed ? 100.0 * passed / (passed + failed) : 0.0);
    return failed || !passed;
}

static const char *next(int argc, char **argv, int *i)
{
    return *i + 1 < argc ? argv[++*i] : "";
}

// "3/8"; anything else is all of them.
static void read_part(struct settings *s, const char *text)
{
    if (sscanf(text, "%d/%d", &s->part, &s->parts) != 2 || s->part < 0 || s->parts <= s->part)
        s->part = 0, s->parts = 1;
}

int main(int argc, char **argv)
{
    struct settings s = {.rtol = -1, .atol = -1, .seconds = 60, .parts = 1, .batch = 1};
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (strcmp(arg, "--target") == 0)
            s.target = next(argc, argv, &i);
        else if (strcmp(arg, "--only") == 0)
            s.only = next(argc, argv, &i);
        else if (strcmp(arg, "--rtol") == 0)
            s.rtol = atof(next(argc, argv, &i));
        else if (strcmp(arg, "--atol") == 0)
            s.atol = atof(next(argc, argv, &i));
        else if (strcmp(arg, "--seconds") == 0)
            s.seconds = atoi(next(argc, argv, &i));
        else if (strcmp(arg, "--part") == 0)
            read_part(&s, next(argc, argv, &i));
        else if (strcmp(arg, "--batch") == 0)
            s.batch = (int)mgx_max_i64(1, atoi(next(argc, argv, &i)));
        else if (strcmp(arg, "--fixed") == 0)
            s.fixed = true;
        else if (strcmp(arg, "--hostile") == 0)
            s.hostile = true;
        else if (strcmp(arg, "--verbose") == 0)
            s.verbose = true;
        else
            find_cases(&s, arg);
    }
    do_cases(&s);
    return summary();
}
