// SPDX-License-Identifier: MIT
// Source text of scalar operators, compiled by the machine's compiler and compared bit for bit with
// the reference: every row for every type that it takes, conversions between all types, and random
// bodies of several operators. The same text must pass for C++ and, where clang is there, OpenCL C.
// Without a compiler (CC, else cc) nothing is proved, and the test says so.
#include "op/source.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/half.h"
#include "base/size.h"
#include "check.h"
#include "op/eval/eval.h"
#include "op/op.h"

static const enum mgx_type types[] = {
    MGX_FLOAT,       MGX_HALF,    MGX_BF16,        MGX_DOUBLE, MGX_BOOL,   MGX_INT8,
    MGX_INT16,       MGX_INT32,   MGX_INT64,       MGX_UINT8,  MGX_UINT16, MGX_UINT32,
    MGX_UINT64,      MGX_INT4,    MGX_INT2,        MGX_UINT4,  MGX_UINT2,  MGX_FP8E4M3FN,
    MGX_FP8E4M3FNUZ, MGX_FP8E5M2, MGX_FP8E5M2FNUZ, MGX_FP4,    MGX_FP8E8M0};
static const double reals[] = {0,   -0.0,     1,         -1,    0.5,   -0.5,   2.5,    -2.5, 3,
                               7,   -7,       1e-30,     65504, 1e10,  -1e19,  1.8e19, 3e38, -3e38,
                               NAN, INFINITY, -INFINITY, 0.1,   100.5, -33.25, 0.999,  2};
static const int64_t ints[] = {0,         1,         -1,
                               2,         -2,        3,
                               5,         7,         -7,
                               63,        64,        127,
                               128,       255,       256,
                               -128,      32767,     65535,
                               INT32_MAX, INT32_MIN, (INT64_C(1) << 53) + 1,
                               INT64_MAX, INT64_MIN, (INT64_C(1) << 40) + 12345,
                               19,        -255};
enum { VALUES = MGX_COUNT(reals), PLACES = VALUES * 8, MOST_IN = 3, BODIES = 150 };

static uint64_t state = 0x9e3779b97f4a7c15;

static int below(int bound)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (int)(state % (uint64_t)bound);
}

static struct mgx_program *program;
static struct mgx_str text;
static struct mgx_source source;
static int function_count;

struct function {
    struct mgx_module *body;
    int in_count;
    enum mgx_type in[MOST_IN], out;
};
static struct function functions[4096];

// --- bodies ---

static struct mgx_ins *param(struct mgx_module *m, int i, enum mgx_type type)
{
    const struct mgx_shape scalar = mgx_shape_scalar(type);
    static const char *const names[] = {"x0", "x1", "x2"};
    return mgx_add_parameter(m, names[i], &scalar);
}

static struct mgx_module *new_body(void)
{
    char name[16];
    snprintf(name, sizeof name, "b%d", function_count);
    return mgx_program_add_module(program, name);
}

// A wrapper that walks arrays of the classes' types, so that the test can call what was made.
static void add_function(struct mgx_module *body, enum mgx_type out, const enum mgx_type *in,
                         int in_count)
{
    struct mgx_diag diag = {0};
    char name[16];
    snprintf(name, sizeof name, "f%d", function_count);
    CHECK_OK(mgx_source_body(&source, name, body, &diag), diag);
    mgx_str_printf(&text, "#ifdef EXPORT\nEXPORT void run_%s(const void *const *v, long n)\n{\n",
                   name);
    mgx_str_put(&text, "    for (long i = 0; i < n; i++)\n        ");
    mgx_str_printf(&text, "%s(", name);
    for (int i = 0; i < in_count; i++)
        mgx_str_printf(&text, "((const %s *)v[%d])[i], ", mgx_source_type(in[i]), i);
    mgx_str_printf(&text, "&((%s *)v[%d])[i]);\n}\n#endif\n", mgx_source_type(out), in_count);
    struct function *f = &functions[function_count++];
    *f = (struct function){.body = body, .in_count = in_count, .out = out};
    memcpy(f->in, in, (size_t)in_count * sizeof *in);
}

// One operator on its parameters; no function where the operator refuses the type.
static void add_row(const struct mgx_op *op, enum mgx_type type)
{
    const struct mgx_pointwise *row = mgx_pointwise_find(op);
    struct mgx_module *m = new_body();
    struct mgx_ins *in[MOST_IN];
    enum mgx_type in_type[MOST_IN];
    for (int i = 0; i < row->arity; i++) {
        in_type[i] = op == &mgx_op_where && i == 0 ? MGX_BOOL : type;
        in[i] = param(m, i, in_type[i]);
    }
    if (!row->real && mgx_type_is_float(type))
        return;
    struct mgx_ins *y = mgx_emit(m, op, row->attrs ? MGX_ATTRS(mgx_real("alpha", 0.3)) : NULL,
                                 (struct mgx_ins_list){in, row->arity});
    mgx_add_return(m, &y, 1);
    add_function(m, y->shape.type, in_type, row->arity);
}

static void add_conversion(enum mgx_type from, enum mgx_type to)
{
    struct mgx_module *m = new_body();
    struct mgx_ins *x = param(m, 0, from);
    struct mgx_ins *y =
        mgx_emit(m, &mgx_op_convert, MGX_ATTRS(mgx_int("target_type", to)), MGX_IN(x));
    mgx_add_return(m, &y, 1);
    add_function(m, to, &from, 1);
}

// Quantizing floats, by a scale that comes with the call, and back.
static void add_quantizing(enum mgx_type narrow, bool to, bool shifts)
{
    struct mgx_module *m = new_body();
    const enum mgx_type in[] = {to ? MGX_FLOAT : narrow, MGX_FLOAT, narrow};
    struct mgx_ins *x[MOST_IN];
    const int count = shifts ? 3 : 2;
    for (int i = 0; i < count; i++)
        x[i] = param(m, i, in[i]);
    const struct mgx_op *op = to ? &mgx_op_quantizelinear : &mgx_op_dequantizelinear;
    struct mgx_ins *y = mgx_emit(m, op, to ? MGX_ATTRS(mgx_int("out_type", narrow)) : NULL,
                                 (struct mgx_ins_list){x, count});
    mgx_add_return(m, &y, 1);
    add_function(m, y->shape.type, in, count);
}

static void add_all_quantizing(void)
{
    static const enum mgx_type narrow[] = {MGX_INT8, MGX_UINT8, MGX_INT16, MGX_UINT16, MGX_INT32};
    for (int t = 0; t < MGX_COUNT(narrow); t++)
        for (int shifts = 0; shifts < 2; shifts++)
            for (int to = 0; to < (narrow[t] == MGX_INT32 ? 1 : 2); to++)
                add_quantizing(narrow[t], to, shifts);
}

static struct mgx_ins *random_line(struct mgx_module *m, struct mgx_ins *const *pool, int count)
{
    static const struct mgx_op *const ops[] = {
        &mgx_op_add, &mgx_op_mul,  &mgx_op_sub,         &mgx_op_max,     &mgx_op_min,  &mgx_op_div,
        &mgx_op_exp, &mgx_op_tanh, &mgx_op_relu,        &mgx_op_sigmoid, &mgx_op_sqrt, &mgx_op_neg,
        &mgx_op_abs, &mgx_op_less, &mgx_op_logical_and, &mgx_op_sqdiff,  &mgx_op_erf};
    const struct mgx_op *op = ops[below(MGX_COUNT(ops))];
    struct mgx_ins *x = pool[below(count)], *y = pool[below(count)];
    if (below(4) == 0)
        return mgx_emit(m, &mgx_op_convert,
                        MGX_ATTRS(mgx_int("target_type", types[below(MGX_COUNT(types))])),
                        MGX_IN(x));
    if (op->in_min == 1)
        return mgx_emit(m, op, NULL, MGX_IN(x));
    if (below(3) == 0)
        y = mgx_literal_double(m, x->shape.type, reals[below(VALUES)]);
    if (x->shape.type != y->shape.type)
        y = mgx_emit(m, &mgx_op_convert, MGX_ATTRS(mgx_int("target_type", x->shape.type)),
                     MGX_IN(y));
    return mgx_emit(m, op, NULL, MGX_IN(x, y));
}

static void add_random_body(void)
{
    enum { LINES = 8 };
    struct mgx_module *m = new_body();
    struct mgx_ins *pool[MOST_IN + LINES];
    enum mgx_type in[MOST_IN];
    for (int i = 0; i < MOST_IN; i++) {
        in[i] = types[below(MGX_COUNT(types))];
        pool[i] = param(m, i, in[i]);
    }
    for (int i = 0; i < LINES; i++)
        pool[MOST_IN + i] = random_line(m, pool, MOST_IN + i);
    struct mgx_ins *y = pool[MOST_IN + LINES - 1];
    mgx_add_return(m, &y, 1);
    add_function(m, y->shape.type, in, MOST_IN);
}

static void make_all(void)
{
    int count;
    struct mgx_diag diag = {0};
    CHECK_OK(mgx_program_create(&program, &mgx_ops, &diag), diag);
    mgx_source_begin(&source, &text);
    const struct mgx_op *const *ops = mgx_op_all(&count);
    for (int i = 0; i < count; i++)
        for (int t = 0; mgx_pointwise_find(ops[i]) && t < MGX_COUNT(types); t++)
            add_row(ops[i], types[t]);
    for (int from = 0; from < MGX_COUNT(types); from++)
        for (int to = 0; to < MGX_COUNT(types); to++)
            add_conversion(types[from], types[to]);
    add_all_quantizing();
    for (int i = 0; i < check_rounds(BODIES); i++)
        add_random_body();
}

// --- compiling ---

static const char c_dialect[] =
    "#include <math.h>\n#include <stdint.h>\n"
    "typedef int64_t i64;\ntypedef uint64_t u64;\ntypedef double pw_real;\n"
    "#define PW_FN static\n#define EXPORT\n"
    "double (*pw_narrow_of[8])(double);\n"
    "#define pw_half(x) pw_narrow_of[0](x)\n#define pw_bf16(x) pw_narrow_of[1](x)\n"
    "#define pw_e4m3fn(x) pw_narrow_of[2](x)\n#define pw_e4m3fnuz(x) pw_narrow_of[3](x)\n"
    "#define pw_e5m2(x) pw_narrow_of[4](x)\n#define pw_e5m2fnuz(x) pw_narrow_of[5](x)\n"
    "#define pw_e2m1(x) pw_narrow_of[6](x)\n#define pw_e8m0(x) pw_narrow_of[7](x)\n";
#define ROUND_NOTHING                                                                              \
    "#define pw_half(x) (x)\n#define pw_bf16(x) (x)\n#define pw_e4m3fn(x) (x)\n"                   \
    "#define pw_e4m3fnuz(x) (x)\n#define pw_e5m2(x) (x)\n#define pw_e5m2fnuz(x) (x)\n"             \
    "#define pw_e2m1(x) (x)\n#define pw_e8m0(x) (x)\n"
static const char cpp_dialect[] =
    "#include <math.h>\n#include <stdint.h>\n"
    "typedef int64_t i64;\ntypedef uint64_t u64;\ntypedef float pw_real;\n"
    "#define PW_FN static\n#define EXPORT extern \"C\"\n" ROUND_NOTHING;
static const char opencl_dialect[] =
    "typedef long i64;\ntypedef ulong u64;\ntypedef float pw_real;\n"
    "#define PW_FN\n" ROUND_NOTHING;

#define ROUNDING(name, to, from)                                                                   \
    static double name##_of(double x)                                                              \
    {                                                                                              \
        return to(from);                                                                           \
    }
#define ROUNDING8(kind)                                                                            \
    static double kind##_of(double x)                                                              \
    {                                                                                              \
        return mgx_fp8_to_float(kind, mgx_fp8_from_double(kind, x, false));                        \
    }
ROUNDING(half, mgx_half_to_float, mgx_half_from_double(x))
ROUNDING(bf16, mgx_bf16_to_float, mgx_bf16_from_double(x))
ROUNDING(e2m1, mgx_fp4_to_float, mgx_fp4_from_double(x))
ROUNDING(e8m0, mgx_e8m0_to_float, mgx_e8m0_from_double(x, 'n', false))
ROUNDING8(MGX_F8_E4M3FN)
ROUNDING8(MGX_F8_E4M3FNUZ)
ROUNDING8(MGX_F8_E5M2)
ROUNDING8(MGX_F8_E5M2FNUZ)

static void write_file(const char *path, const char *dialect, const char *body)
{
    FILE *f = fopen(path, "w");
    CHECK(f);
    fputs(dialect, f);
    fputs(body, f);
    fclose(f);
}

static char folder[] = "/tmp/mgx-source-XXXXXX";

static bool compile(const char *command, const char *file, const char *dialect, const char *body)
{
    char line[512], path[128];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    write_file(path, dialect, body);
    snprintf(line, sizeof line, "cd %s && %s %s", folder, command, file);
    return system(line) == 0;
}

static bool has(const char *program_name)
{
    char line[128];
    snprintf(line, sizeof line, "command -v %s > /dev/null 2>&1", program_name);
    return system(line) == 0;
}

// --- comparing ---

static double real_value(int which, int i)
{
    return reals[(i * (which ? which == 1 ? 7 : 11 : 1) + (which ? i / VALUES : 0)) % VALUES];
}

static int64_t int_value(int which, int i)
{
    return ints[(i * (which ? which == 1 ? 7 : 11 : 1) + (which ? i / VALUES : 0)) % VALUES];
}

// The same values as a tensor and as the array that the compiled function reads.
static void *fill(struct mgx_tensor *t, enum mgx_type type, int which)
{
    const struct mgx_shape shape = mgx_shape_vector(type, PLACES);
    if (mgx_tensor_create(t, &shape, NULL) != MGX_OK)
        return NULL;
    int64_t *array = calloc(PLACES, sizeof *array);
    for (int i = 0; i < PLACES; i++) {
        if (mgx_type_is_float(type)) {
            mgx_store_double(type, t->data, i, real_value(which, i));
            ((double *)array)[i] = mgx_load_double(type, t->data, i);
        } else {
            mgx_store_int(type, t->data, i, int_value(which, i));
            array[i] = mgx_load_int(type, t->data, i);
        }
    }
    return array;
}

static bool same(const struct mgx_tensor *want, const void *got, int i)
{
    if (!mgx_type_is_float(want->shape.type))
        return mgx_load_int(want->shape.type, want->data, i) == ((const int64_t *)got)[i];
    const double x = mgx_load_double(want->shape.type, want->data, i);
    const double y = ((const double *)got)[i];
    return (isnan(x) && isnan(y)) || memcmp(&x, &y, sizeof x) == 0;
}

static void compare(const struct function *f, void (*run)(const void *const *, long))
{
    struct mgx_tensor in[MOST_IN], want = {0};
    const struct mgx_tensor *list[MOST_IN];
    const void *arrays[MOST_IN + 1];
    struct mgx_diag diag = {0};
    struct mgx_arena strings;
    mgx_arena_init(&strings);
    for (int i = 0; i < f->in_count; i++) {
        arrays[i] = fill(&in[i], f->in[i], i);
        list[i] = &in[i];
    }
    struct mgx_eval e = {.strings = &strings};
    struct mgx_module *body = f->body;
    CHECK_OK(
        mgx_eval_op(&e, &mgx_op_pointwise, NULL, list, f->in_count, &body, 1, NULL, &want, &diag),
        diag);
    void *got = calloc(PLACES, sizeof(int64_t));
    arrays[f->in_count] = got;
    run(arrays, PLACES);
    for (int i = 0; i < PLACES; i++)
        if (!same(&want, got, i)) {
            CHECK_FAIL("%s (%s): place %d differs: %.17g or %lld, %.17g or %lld computed",
                       f->body->first->next->op->name, mgx_type_name(f->in[0]), i,
                       mgx_load_double(want.shape.type, want.data, i),
                       (long long)mgx_load_int(want.shape.type, want.data, i),
                       ((const double *)got)[i], (long long)((const int64_t *)got)[i]);
            break;
        }
    for (int i = 0; i < f->in_count; i++) {
        mgx_tensor_release(&in[i]);
        free((void *)arrays[i]);
    }
    free(got);
    mgx_tensor_release(&want);
    mgx_arena_fini(&strings);
}

static void compare_all(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/text.so", folder);
    void *library = dlopen(path, RTLD_NOW);
    CHECK(library);
    if (!library)
        return;
    double (*const narrow[8])(double) = {
        half_of, bf16_of, MGX_F8_E4M3FN_of, MGX_F8_E4M3FNUZ_of, MGX_F8_E5M2_of, MGX_F8_E5M2FNUZ_of,
        e2m1_of, e8m0_of};
    memcpy(dlsym(library, "pw_narrow_of"), narrow, sizeof narrow);
    for (int i = 0; i < function_count; i++) {
        char name[24];
        snprintf(name, sizeof name, "run_f%d", i);
        void (*run)(const void *const *, long);
        *(void **)&run = dlsym(library, name);
        CHECK(run);
        compare(&functions[i], run);
    }
    dlclose(library);
}

CASE(every_row_computes_what_the_reference_computes)
{
    char remove[64];
    make_all();
    CHECK(function_count > 600 && !text.failed);
    CHECK(mkdtemp(folder));
    if (has("${CC:-cc}")) {
        CHECK(compile("${CC:-cc} -std=c17 -O0 -Wall -Wextra -Werror -Wno-unused-function "
                      "-Wno-unused-parameter -Wno-unused-variable -Wno-tautological-compare "
                      "-ffp-contract=off -fPIC -shared "
                      "-lm -o text.so",
                      "text.c", c_dialect, mgx_str_text(&text)));
        compare_all();
    } else {
        printf("no compiler: nothing is proved\n");
    }
    if (has("c++"))
        CHECK(compile("c++ -fsyntax-only -w", "text.cpp", cpp_dialect, mgx_str_text(&text)));
    if (has("clang"))
        CHECK(compile("clang -x cl -cl-std=CL1.2 -target spir64 -Xclang -finclude-default-header "
                      "-fsyntax-only -w",
                      "text.cl", opencl_dialect, mgx_str_text(&text)));
    snprintf(remove, sizeof remove, "rm -rf %s", folder);
    CHECK(system(remove) == 0);
    mgx_str_fini(&text);
    mgx_program_destroy(program);
}

TEST_MAIN(ROW(every_row_computes_what_the_reference_computes))
