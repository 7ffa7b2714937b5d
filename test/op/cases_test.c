// SPDX-License-Identifier: MIT
// Runs every case of test/op/cases/*.txt (format: case_format.h; most files are written by
// make_cases.py). An argument selects files, or cases, whose name contains it.
//
// What a case says is checked as it stands, and then, without having to be asked for:
//  - again with inputs laid out otherwise (axes stored in reverse order, gaps between elements);
//  - the shape rule on ranges that contain the lengths gives a result that contains the true one,
//    and compute under that declared shape gives the same values; likewise unranked inputs;
//  - again with every allocation failing once: MGX_NO_MEMORY, nothing leaked, nothing crashed.
#include "case_format.h"

#include <glob.h>

#include "op/eval/eval.h"
#include "test_malloc.h"

// --- comparing ---

// One unit in the last place of the type, as a relative error.
static double type_epsilon(enum mgx_type type)
{
    switch (type) {
    case MGX_DOUBLE:
    case MGX_COMPLEX128:
        return 1e-13; // the mathematical functions of two libraries
    case MGX_FLOAT:
    case MGX_COMPLEX64:
        return 0x1p-22;
    case MGX_HALF:
        return 0x1p-10;
    case MGX_BF16:
        return 0x1p-7;
    case MGX_FP8E4M3FN:
    case MGX_FP8E4M3FNUZ:
        return 0x1p-3;
    case MGX_FP8E5M2:
    case MGX_FP8E5M2FNUZ:
        return 0x1p-2;
    default:
        return 0;
    }
}

static bool near(const struct op_case *c, enum mgx_type type, double a, double e)
{
    const double eps = type_epsilon(type);
    const double rel = c->tol_rel < 0 ? eps : c->tol_rel,
                 abs = c->tol_abs < 0 ? eps / 16 : c->tol_abs;
    return a == e || (isnan(a) && isnan(e)) || fabs(a - e) <= abs + rel * fabs(e);
}

static bool element_differs(const struct op_case *c, const struct mgx_tensor *a, int64_t at,
                            const struct mgx_tensor *e, int64_t et, char *why, size_t size)
{
    const enum mgx_type type = e->shape.type;
    if (type == MGX_STRING) {
        const struct mgx_string *x = (const struct mgx_string *)a->data + at;
        const struct mgx_string *y = (const struct mgx_string *)e->data + et;
        snprintf(why, size, "\"%.*s\", expected \"%.*s\"", (int)x->size, x->text ? x->text : "",
                 (int)y->size, y->text ? y->text : "");
        return x->size != y->size || (x->size && memcmp(x->text, y->text, x->size) != 0);
    }
    if (mgx_type_is_float(type)) {
        const double x = mgx_load_double(type, a->data, at), y = mgx_load_double(type, e->data, et);
        snprintf(why, size, "%.9g, expected %.9g", x, y);
        return !near(c, type, x, y);
    }
    if (mgx_type_is_complex(type)) {
        const enum mgx_type part = type == MGX_COMPLEX64 ? MGX_FLOAT : MGX_DOUBLE;
        bool differs = false;
        for (int k = 0; k < 2; k++) {
            const double x = mgx_load_double(part, a->data, 2 * at + k);
            const double y = mgx_load_double(part, e->data, 2 * et + k);
            snprintf(why, size, "part %d is %.9g, expected %.9g", k, x, y);
            if (!near(c, type, x, y))
                return true;
        }
        return differs;
    }
    const enum mgx_type load = type == MGX_FP4X2 ? MGX_UINT8 : type;
    const int64_t x = mgx_load_int(load, a->data, at), y = mgx_load_int(load, e->data, et);
    snprintf(why, size, "%" PRId64 ", expected %" PRId64, x, y);
    return fabs((double)x - (double)y) > (c->tol_abs < 0 ? 0 : c->tol_abs) ||
           (c->tol_abs < 0 && x != y);
}

static bool tensors_agree(const struct op_case *c, const struct mgx_tensor *a,
                          const struct mgx_tensor *e, char *why, size_t size)
{
    if (a->shape.type != e->shape.type || a->sub_count != e->sub_count) {
        snprintf(why, size, "is %s of %d members, expected %s of %d", mgx_type_name(a->shape.type),
                 a->sub_count, mgx_type_name(e->shape.type), e->sub_count);
        return false;
    }
    for (int i = 0; i < e->sub_count; i++)
        if (!tensors_agree(c, &a->sub[i], &e->sub[i], why, size))
            return false;
    if (e->shape.type == MGX_TUPLE || e->shape.type == MGX_SEQUENCE)
        return true;
    if (!mgx_shape_same_lens(&a->shape, &e->shape) || a->shape.rank != e->shape.rank) {
        struct mgx_str x = {0}, y = {0};
        mgx_shape_print(&x, &a->shape);
        mgx_shape_print(&y, &e->shape);
        snprintf(why, size, "is %s, expected %s", mgx_str_text(&x), mgx_str_text(&y));
        mgx_str_fini(&x);
        mgx_str_fini(&y);
        return false;
    }
    const int64_t count = mgx_shape_elements(&e->shape);
    for (int64_t i = 0; i < count; i++) {
        char text[200];
        if (element_differs(c, a, mgx_shape_index(&a->shape, i), e, mgx_shape_index(&e->shape, i),
                            text, sizeof text)) {
            snprintf(why, size, "element %" PRId64 " is %s", i, text);
            return false;
        }
    }
    return true;
}

// Could a value of static shape `s` be declared as `by`?
static bool contains(const struct mgx_shape *by, const struct mgx_shape *s)
{
    if (by->unranked)
        return by->type == s->type;
    if (by->type == MGX_SEQUENCE && s->type == MGX_SEQUENCE)
        return true;
    if (by->type == MGX_TUPLE && by->sub_count == 1 && s->type == MGX_TUPLE && s->sub_count == 0)
        return true; // an empty optional
    if (by->type != s->type || by->rank != s->rank || by->sub_count != s->sub_count)
        return false;
    for (int i = 0; i < by->sub_count; i++)
        if (!contains(&by->sub[i], &s->sub[i]))
            return false;
    for (int i = 0; i < by->rank; i++) {
        const struct mgx_dim d = mgx_shape_dim(by, i);
        if (s->lens[i] < d.min || s->lens[i] > d.max)
            return false;
    }
    return true;
}

// A static declaration is exact, strides too.
static bool lies_as_declared(const struct mgx_shape *declared, const struct mgx_tensor *t)
{
    if (!contains(declared, &t->shape))
        return false;
    for (int i = 0; !t->sub && mgx_shape_is_static(declared) && i < t->shape.rank; i++)
        if (t->shape.lens[i] > 1 && mgx_shape_elements(declared) &&
            t->shape.strides[i] != declared->strides[i])
            return false;
    return true;
}

// --- one call ---

struct call {
    const struct op_case *c;
    const struct mgx_op *op;
    void *attr;
    struct mgx_tensor in[CASE_MAX_IN];    // the case's own, or the same values laid out otherwise
    struct mgx_shape shapes[CASE_MAX_IN]; // what the shape rule is told
    struct mgx_arena *arena;
    struct mgx_diag diag;
};

#define COMPLAIN(k, ...)                                                                           \
    do {                                                                                           \
        printf("%s:%d: %s: ", (k)->c->file, (k)->c->line, (k)->c->op ? (k)->c->op : "program");    \
        printf(__VA_ARGS__);                                                                       \
        printf("\n");                                                                              \
        check_failures++;                                                                          \
    } while (0)

static enum mgx_status infer(struct call *k, struct mgx_shape *out)
{
    const struct mgx_shape *shapes[CASE_MAX_IN];
    const struct mgx_tensor *values[CASE_MAX_IN];
    for (int i = 0; i < k->c->in_count; i++) {
        shapes[i] = &k->shapes[i];
        values[i] = k->c->in[i].known ? &k->c->in[i].tensor : NULL;
    }
    struct mgx_shape_call call = {.op = k->op,
                                  .attr = k->attr,
                                  .in = shapes,
                                  .in_count = k->c->in_count,
                                  .values = values,
                                  .arena = k->arena,
                                  .diag = &k->diag};
    mgx_diag_clear(&k->diag);
    return mgx_op_shape(&call, out);
}

static enum mgx_status evaluate(struct call *k, const struct mgx_shape *declared,
                                struct mgx_tensor *out)
{
    const struct mgx_tensor *in[CASE_MAX_IN];
    struct mgx_eval e = {.strings = k->arena, .seed = 1, .limit_bytes = (size_t)1 << 30};
    for (int i = 0; i < k->c->in_count; i++)
        in[i] = &k->in[i];
    mgx_diag_clear(&k->diag);
    return mgx_eval_op(&e, k->op, k->attr, in, k->c->in_count, NULL, 0, declared, out, &k->diag);
}

// --- what a case says ---

static void check_shape_text(struct call *k, const struct mgx_shape *s, const char *expected)
{
    struct mgx_str text = {0};
    mgx_shape_print(&text, s);
    if (strcmp(mgx_str_text(&text), expected) != 0)
        COMPLAIN(k, "shape is <%s>, expected <%s>", mgx_str_text(&text), expected);
    mgx_str_fini(&text);
}

static void check_value(struct call *k, const struct mgx_tensor *out, const struct case_value *e,
                        const char *how)
{
    char why[400];
    if (!tensors_agree(k->c, out, &e->tensor, why, sizeof why))
        COMPLAIN(k, "%s%s", how, why);
    for (int i = 0; e->has_strides && !*how && i < e->shape.rank; i++)
        if (out->shape.strides[i] != e->shape.strides[i])
            COMPLAIN(k, "stride %d is %" PRId64 ", expected %" PRId64, i, out->shape.strides[i],
                     e->shape.strides[i]);
}

static bool failed_as_told(struct call *k, enum mgx_status status, const char *text,
                           const char *what)
{
    if (status == MGX_OK)
        COMPLAIN(k, "%s accepted, should fail with \"%s\"", what, text);
    else if (!strstr(k->diag.text, text))
        COMPLAIN(k, "fails with \"%s\", should be \"%s\"", k->diag.text, text);
    else if (status == MGX_INTERNAL)
        COMPLAIN(k, "bad failure \"%s\"", k->diag.text);
    return status != MGX_OK;
}

// --- variations ---

// Another layout of the same values: order of axes reversed in memory, a gap after each element.
static bool relay(const struct mgx_tensor *t, struct mgx_tensor *out)
{
    if (t->sub_count || t->shape.rank == 0 || t->shape.type == MGX_SEQUENCE) {
        *out = mgx_tensor_share(t);
        return true;
    }
    struct mgx_shape s = t->shape;
    int64_t step = 2;
    for (int i = 0; i < s.rank; i++) {
        s.strides[i] = step;
        step *= s.lens[i] > 1 ? s.lens[i] : 1;
    }
    if (mgx_tensor_create(out, &s, NULL) != MGX_OK)
        return false;
    if (s.type != MGX_STRING)
        memset(out->data, 0x5b, mgx_shape_bytes(&s));
    mgx_tensor_copy(t, out);
    return true;
}

static void try_layouts(struct call *k)
{
    struct call v = *k;
    const int count = k->c->in_count;
    struct mgx_shape declared;
    struct mgx_tensor out = {0};
    for (int i = 0; i < count; i++) {
        if (!relay(&k->in[i], &v.in[i]))
            COMPLAIN(k, "no memory for another layout");
        v.shapes[i] = v.in[i].shape;
    }
    if (infer(&v, &declared) != MGX_OK || evaluate(&v, &declared, &out) != MGX_OK)
        COMPLAIN(k, "in another layout: %s", v.diag.text);
    else
        check_value(k, &out, &k->c->out[0], "in another layout: ");
    mgx_tensor_release(&out);
    for (int i = 0; i < count; i++)
        mgx_tensor_release(&v.in[i]);
}

static struct mgx_shape relax(const struct call *k, int i, bool unranked)
{
    const struct mgx_shape *s = &k->shapes[i];
    if (k->c->in[i].known || k->c->in[i].absent || s->type == MGX_TUPLE || s->type == MGX_SEQUENCE)
        return *s;
    if (unranked)
        return mgx_shape_unranked(s->type);
    struct mgx_dim *dims = MGX_NEW_ARRAY(k->arena, struct mgx_dim, s->rank);
    for (int axis = 0; axis < s->rank; axis++)
        dims[axis] = (struct mgx_dim){.min = s->lens[axis] ? s->lens[axis] - 1 : 0,
                                      .max = s->lens[axis] + 2};
    return mgx_shape_dynamic(s->type, s->rank, dims);
}

static void try_ranges(struct call *k, const struct mgx_tensor *truth, bool unranked)
{
    struct call v = *k;
    struct mgx_shape declared;
    const char *how = unranked ? "unranked: " : "with ranges: ";
    for (int i = 0; i < k->c->in_count; i++)
        v.shapes[i] = relax(k, i, unranked);
    if (infer(&v, &declared) != MGX_OK) {
        COMPLAIN(k, "%s%s", how, v.diag.text);
        return;
    }
    struct mgx_str text = {0};
    mgx_shape_print(&text, &declared);
    if (!contains(&declared, &truth->shape))
        COMPLAIN(k, "%sthe declared shape %s does not contain the true one", how,
                 mgx_str_text(&text));
    struct mgx_tensor out = {0};
    if (evaluate(&v, &declared, &out) != MGX_OK)
        COMPLAIN(k, "%s%s", how, v.diag.text);
    else if (!lies_as_declared(&declared, &out))
        COMPLAIN(k, "%sthe result does not lie as %s", how, mgx_str_text(&text));
    else
        check_value(k, &out, &k->c->out[0], how);
    mgx_str_fini(&text);
    mgx_tensor_release(&out);
}

static void try_no_memory(struct call *k)
{
    struct mgx_shape declared;
    struct mgx_arena own;
    for (int n = 0; n < 200; n++) {
        struct mgx_tensor out = {0};
        struct call v = *k;
        mgx_arena_init(&own);
        v.arena = &own;
        const long before = test_malloc_live();
        test_malloc_fail_after(n);
        enum mgx_status status = infer(&v, &declared);
        if (status == MGX_OK)
            status = evaluate(&v, &declared, &out);
        const bool all = !test_malloc_failed();
        test_malloc_fail_after(-1);
        if (!all && status != MGX_NO_MEMORY)
            COMPLAIN(k, "allocation %d fails: status %d, \"%s\"", n, status, v.diag.text);
        mgx_tensor_release(&out);
        mgx_arena_fini(&own);
        if (test_malloc_live() != before)
            COMPLAIN(k, "allocation %d fails: %ld blocks leak", n, test_malloc_live() - before);
        if (all)
            return;
    }
}

// --- running ---

static void run_values(struct call *k, const struct mgx_shape *declared)
{
    struct mgx_tensor out = {0};
    const struct op_case *c = k->c;
    const enum mgx_status status = evaluate(k, declared, &out);
    if (c->aborts) {
        failed_as_told(k, status, c->aborts, "compute");
    } else if (status != MGX_OK) {
        COMPLAIN(k, "%s", k->diag.text);
    } else {
        const int before = check_failures;
        check_value(k, &out, &c->out[0], "");
        if (!lies_as_declared(declared, &out))
            COMPLAIN(k, "the result is not of the declared shape");
        if (!c->skip_stride && check_failures == before)
            try_layouts(k);
        if (!c->skip_dynamic && check_failures == before) {
            try_ranges(k, &out, false);
            try_ranges(k, &out, true);
        }
        if (check_failures == before)
            try_no_memory(k);
    }
    mgx_tensor_release(&out);
}

static bool setup(struct call *k)
{
    const struct op_case *c = k->c;
    const size_t n = strcspn(c->op, "[ \n");
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)n, c->op);
    k->op = mgx_op_find(name);
    if (!k->op) {
        COMPLAIN(k, "no such operator");
        return false;
    }
    const char *text = c->op[n] == '[' ? c->op + n + 1 : "";
    const size_t size = strlen(text);
    if (mgx_attr_parse(k->op, text, size ? size - 1 : 0, k->arena, &k->attr, &k->diag) != MGX_OK) {
        if (!c->fails || !strstr(k->diag.text, c->fails))
            COMPLAIN(k, "%s", k->diag.text);
        return false;
    }
    for (int i = 0; i < c->in_count; i++) {
        k->in[i] = c->in[i].tensor;
        k->shapes[i] = c->in[i].shape;
    }
    return true;
}

static void run_op(const struct op_case *c, struct mgx_arena *arena)
{
    struct call k = {.c = c, .arena = arena};
    struct mgx_shape declared;
    if (!setup(&k))
        return;
    const enum mgx_status status = infer(&k, &declared);
    if (c->fails) {
        failed_as_told(&k, status, c->fails, "shape rule");
        return;
    }
    if (status != MGX_OK) {
        COMPLAIN(&k, "%s", k.diag.text);
        return;
    }
    if (c->shape)
        check_shape_text(&k, &declared, c->shape);
    if (c->out_count || c->aborts)
        run_values(&k, &declared);
    else if (!c->shape)
        COMPLAIN(&k, "the case expects nothing");
}

static void run_results(struct call *k, struct mgx_program *p)
{
    const struct op_case *c = k->c;
    struct mgx_module *main = mgx_program_main(p);
    struct mgx_tensor args[CASE_MAX_IN], out[CASE_MAX_IN] = {{.data = NULL}};
    struct mgx_eval e = {.strings = k->arena, .seed = 1, .limit_bytes = (size_t)1 << 30};
    for (int i = 0; i < p->module_count; i++)
        mgx_module_number(p->modules[i]);
    for (int i = 0; i < c->in_count; i++)
        args[i] = c->in[i].tensor;
    if (!c->aborts && mgx_module_result_count(main) != c->out_count) {
        COMPLAIN(k, "%d results, expected %d", mgx_module_result_count(main), c->out_count);
        return;
    }
    const enum mgx_status status = mgx_eval_module(&e, main, args, c->in_count, out, &k->diag);
    if (c->aborts) {
        if (status == MGX_OK || !strstr(k->diag.text, c->aborts))
            COMPLAIN(k, "should abort with \"%s\": \"%s\"", c->aborts, k->diag.text);
    } else if (status != MGX_OK) {
        COMPLAIN(k, "%s", k->diag.text);
    }
    for (int i = 0; i < c->out_count; i++) {
        if (status == MGX_OK)
            check_value(k, &out[i], &c->out[i], "");
        if (status == MGX_OK && !lies_as_declared(&mgx_module_result(main, i)->shape, &out[i]))
            COMPLAIN(k, "result %d is not of the declared shape", i);
        mgx_tensor_release(&out[i]);
    }
}

static void run_program(const struct op_case *c, struct mgx_arena *arena)
{
    struct call k = {.c = c, .arena = arena};
    struct mgx_program *p = NULL;
    const enum mgx_status status =
        mgx_program_parse(&p, &mgx_ops, c->program, strlen(c->program), &k.diag);
    if (c->fails) {
        if (status == MGX_OK || !strstr(k.diag.text, c->fails))
            COMPLAIN(&k, "should fail with \"%s\": \"%s\"", c->fails, k.diag.text);
    } else if (status != MGX_OK) {
        COMPLAIN(&k, "%s", k.diag.text);
    } else {
        run_results(&k, p);
    }
    mgx_program_destroy(p);
}

static int run_file(const char *path, const char *select)
{
    struct mgx_arena arena;
    mgx_arena_init(&arena);
    char *text = case_read_file(path);
    struct case_reader r = {.file = path, .at = text, .arena = &arena};
    struct op_case c;
    int count = 0;
    if (!text)
        case_error(&r, "a readable file", path);
    while (text && case_next(&r, &c)) {
        if (!select || strstr(path, select) || (c.op && strstr(c.op, select))) {
            count++;
            if (c.op)
                run_op(&c, &arena);
            else
                run_program(&c, &arena);
        }
        case_free(&c);
    }
    if (r.error[0]) {
        printf("expected %s\n", r.error);
        check_failures++;
    }
    free(text);
    mgx_arena_fini(&arena);
    return count;
}

int main(int argc, char **argv)
{
    glob_t files;
    int count = 0;
    if (glob("test/op/cases/*.txt", 0, NULL, &files) == 0)
        for (size_t i = 0; i < files.gl_pathc; i++)
            count += run_file(files.gl_pathv[i], argc > 1 ? argv[1] : NULL);
    globfree(&files);
    printf("%d cases, %d failures\n", count, check_failures);
    return check_failures != 0 || count == 0;
}
