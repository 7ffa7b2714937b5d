// SPDX-License-Identifier: MIT
// What each pass makes of given programs: test/pass/<pass>/<topic>.txt, several cases a file.
//
//     === name of the case                 may name options: fast_math, changes_values
//                                          (not compared), once (not run again), multiplies_bf16,
//                                          multiplies_bytes, multiplies_fp8, leaves_ranges,
//                                          near_bytes (64 KiB of them, and one thread),
//                                          supported (the target takes what it is asked about)
//     module: "main"                       the program before
//     ...
//     ---
//     module: "main"                       the program after
//     ...
//
// A case is read, run through the pass (dead code goes), printed and compared; then run again,
// which must change nothing; and both programs are evaluated on the same inputs and must agree.
//
//     cases_test                  all of them
//     cases_test --update FILE    writes what comes out into the file, for a person to judge
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "op/eval/eval.h"
#include "pass/pass.h"
#include "targets/cpu/lower/epilogue.h"
#include "targets/gpu/lower/lower.h"

enum { MAX_RESULTS = 16 };

struct one {
    const char *file, *name;
    const struct mgx_pass *pass;
    char *before, *after;
    bool fast_math, changes_values, once, multiplies_bf16, multiplies_bytes, multiplies_fp8,
        leaves_ranges, near_bytes, supported;
};

static int failures, passed;

static void fail(const struct one *c, const char *what, const char *detail)
{
    printf("FAILED %s: %s: %s\n%s\n", c->file, c->name, what, detail);
    failures++;
}

// --- running ---

static bool takes_all(void *user, const char *tag, const struct mgx_region *region)
{
    return !user && tag && region;
}

static bool takes_roles(void *user, const struct mgx_product_roles *roles)
{
    return !user && roles;
}

// As the CPU's kernels do.
static bool takes_constants(struct mgx_bytes_known known)
{
    return known.right_zero && (known.left_zero || known.right);
}

static enum mgx_status run_pass(const struct one *c, struct mgx_program *p, struct mgx_diag *diag)
{
    const struct mgx_pass *const passes[] = {c->pass, NULL};
    const struct mgx_pass_options options = {.fast_math = c->fast_math,
                                             .target = {.multiplies_bf16 = c->multiplies_bf16,
                                                        .multiplies_bytes = c->multiplies_bytes,
                                                        .multiplies_fp8 = c->multiplies_fp8,
                                                        .leaves_ranges = c->leaves_ranges,
                                                        .takes_bytes = takes_constants,
                                                        .near_bytes = c->near_bytes ? 1 << 16 : 0,
                                                        .threads = c->near_bytes,
                                                        .supports = c->supported ? takes_all : NULL,
                                                        .takes = c->supported          ? takes_roles
                                                                 : c->multiplies_bytes ? gpu_takes
                                                                                       : cpu_takes},
                                             .verify = true};
    return mgx_run_passes(p, passes, &options, diag);
}

static bool generate(const struct mgx_module *m, struct mgx_tensor *args, int *count)
{
    struct mgx_ins *params[MAX_RESULTS];
    struct mgx_diag diag = {0};
    *count = mgx_module_parameters(m, params, MAX_RESULTS);
    for (int i = 0; i < *count; i++) {
        if (!mgx_shape_is_static(&params[i]->shape) ||
            mgx_tensor_create(&args[i], &params[i]->shape, &diag) != MGX_OK)
            return false;
        mgx_tensor_generate(&args[i], (uint64_t)i + 1);
    }
    return true;
}

static enum mgx_status evaluate(struct mgx_program *p, const struct mgx_tensor *args, int count,
                                struct mgx_tensor *results, struct mgx_diag *diag)
{
    struct mgx_arena strings;
    struct mgx_eval eval = {.strings = &strings};
    mgx_arena_init(&strings);
    for (int i = 0; i < p->module_count; i++)
        mgx_module_number(p->modules[i]);
    const enum mgx_status status =
        mgx_eval_module(&eval, mgx_program_main(p), args, count, results, diag);
    mgx_arena_fini(&strings);
    return status;
}

static bool agree(const struct mgx_tensor *a, const struct mgx_tensor *b)
{
    if (a->shape.type != b->shape.type || !mgx_shape_same_lens(&a->shape, &b->shape))
        return false;
    if (!mgx_type_is_number(a->shape.type))
        return true;
    const int64_t count = mgx_shape_elements(&a->shape);
    double *x = calloc((size_t)count + 1, sizeof *x), *y = calloc((size_t)count + 1, sizeof *y);
    bool ok = x && y;
    if (ok) {
        mgx_tensor_to_doubles(a, x);
        mgx_tensor_to_doubles(b, y);
    }
    for (int64_t i = 0; i < count && ok; i++)
        ok = x[i] == y[i] || (isnan(x[i]) && isnan(y[i])) ||
             fabs(x[i] - y[i]) <= 1e-4 * (1 + fabs(x[i]));
    free(x);
    free(y);
    return ok;
}

static void compare_values(const struct one *c, struct mgx_program *a, struct mgx_program *b)
{
    struct mgx_tensor args[MAX_RESULTS] = {0}, x[MAX_RESULTS] = {0}, y[MAX_RESULTS] = {0};
    struct mgx_diag diag = {0};
    int count = 0;
    const int results = mgx_module_result_count(mgx_program_main(a));
    if (results <= MAX_RESULTS && generate(mgx_program_main(a), args, &count)) {
        if (evaluate(a, args, count, x, &diag) != MGX_OK ||
            evaluate(b, args, count, y, &diag) != MGX_OK)
            fail(c, "does not run", diag.text);
        else
            for (int i = 0; i < results; i++)
                if (!agree(&x[i], &y[i]))
                    fail(c, "computes something else", "");
    }
    for (int i = 0; i < MAX_RESULTS; i++) {
        mgx_tensor_release(&args[i]);
        mgx_tensor_release(&x[i]);
        mgx_tensor_release(&y[i]);
    }
}

static struct mgx_program *parse(const struct one *c, const char *text)
{
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    if (mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag) != MGX_OK)
        fail(c, "does not parse", diag.text);
    return p;
}

static char *print(const struct mgx_program *p)
{
    struct mgx_str text = {0};
    mgx_program_print(&text, p);
    return mgx_str_take(&text);
}

// Runs the case and returns what came out (heap), NULL after a failure that was reported.
static char *run_case(const struct one *c)
{
    struct mgx_diag diag = {0};
    struct mgx_program *before = parse(c, c->before), *p = before ? parse(c, c->before) : NULL;
    char *once = NULL, *twice = NULL;
    if (p && run_pass(c, p, &diag) == MGX_OK) {
        once = print(p);
        if (!c->changes_values)
            compare_values(c, before, p);
        if (!c->once && run_pass(c, p, &diag) == MGX_OK)
            twice = print(p);
        if (once && twice && strcmp(once, twice) != 0)
            fail(c, "changes more when run again", twice);
    }
    if (diag.status != MGX_OK)
        fail(c, "fails", diag.text);
    free(twice);
    mgx_program_destroy(before);
    mgx_program_destroy(p);
    return once;
}

static void check_case(const struct one *c)
{
    const int before = failures;
    char *got = run_case(c);
    struct mgx_program *p = c->after && got ? parse(c, c->after) : NULL;
    char *want = p ? print(p) : NULL;
    if (got && want && strcmp(got, want) != 0) {
        fail(c, "came out as", got);
        printf("expected\n%s\n", want);
    }
    passed += failures == before && got && want;
    if (failures == before && !(got && want))
        fail(c, "has no program after", "");
    mgx_program_destroy(p);
    free(want);
    free(got);
}

// --- files ---

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    if (f && text)
        text[fread(text, 1, (1 << 20) - 1, f)] = 0;
    if (f)
        fclose(f);
    return text;
}

// The next case of the text, which is cut up; NULL at the end.
static char *next_case(char *text, struct one *c)
{
    char *head = strncmp(text, "=== ", 4) == 0 ? text : strstr(text, "\n=== ");
    if (!head)
        return NULL;
    head += *head == '\n' ? 5 : 4;
    char *line_end = strchr(head, '\n');
    if (!line_end)
        return NULL;
    *line_end = 0;
    c->fast_math = strstr(head, "fast_math") != NULL;
    c->multiplies_bf16 = strstr(head, "multiplies_bf16") != NULL;
    c->multiplies_bytes = strstr(head, "multiplies_bytes") != NULL;
    c->multiplies_fp8 = strstr(head, "multiplies_fp8") != NULL;
    c->leaves_ranges = strstr(head, "leaves_ranges") != NULL;
    c->supported = strstr(head, ", supported") != NULL;
    c->near_bytes = strstr(head, "near_bytes") != NULL;
    c->changes_values = strstr(head, "changes_values") != NULL;
    c->once = strstr(head, ", once") != NULL;
    c->name = head;
    c->before = line_end + 1;
    char *end = strstr(c->before, "\n=== ");
    char *rest = end ? end : c->before + strlen(c->before);
    char *cut = strstr(c->before, "\n---\n");
    c->after = NULL;
    if (cut && cut < rest) {
        cut[1] = 0;
        c->after = cut + 5;
    }
    if (end) {
        *end = 0; // the newline; the next case starts behind it
        return end + 1;
    }
    return rest;
}

static void update_file(const struct mgx_pass *pass, const char *path)
{
    char *text = read_file(path), *at = text;
    FILE *f = fopen(path, "wb");
    struct one c = {.file = path, .pass = pass};
    char *first = text ? strstr(text, "=== ") : NULL;
    if (f && first)
        fwrite(text, 1, (size_t)(first - text), f);
    while (at && f && (at = next_case(at, &c))) {
        char *got = run_case(&c);
        size_t size = strlen(c.before);
        while (size && c.before[size - 1] == '\n')
            size--;
        fprintf(f, "=== %s\n%.*s\n---\n%s", c.name, (int)size, c.before, got ? got : "");
        free(got);
    }
    if (f)
        fclose(f);
    free(text);
}

static void check_file(const struct mgx_pass *pass, const char *path)
{
    char *text = read_file(path), *at = text;
    struct one c = {.file = path, .pass = pass};
    while (at && (at = next_case(at, &c)))
        check_case(&c);
    free(text);
}

static void check_folder(const struct mgx_pass *pass, const char *update)
{
    char folder[256], path[1024];
    snprintf(folder, sizeof folder, "test/pass/%s", pass->name);
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        const size_t size = strlen(e->d_name);
        if (size < 4 || strcmp(e->d_name + size - 4, ".txt") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (!update)
            check_file(pass, path);
        else if (strcmp(update, path) == 0)
            update_file(pass, path);
    }
    if (dir)
        closedir(dir);
}

int main(int argc, char **argv)
{
    int count;
    const struct mgx_pass *const *all = mgx_pass_all(&count);
    for (int i = 0; i < count; i++)
        check_folder(all[i], argc == 3 && strcmp(argv[1], "--update") == 0 ? argv[2] : NULL);
    printf("%d passed, %d failed\n", passed, failures);
    return failures != 0;
}
