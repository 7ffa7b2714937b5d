// SPDX-License-Identifier: MIT
// The cases of test/op/cases/*.txt as programs on a card, against the reference target.
//
//     cases_test [--all] [--list] [FILE]   some and the first of every operator, or all of them; of files
//                                          whose name contains FILE
//
// Of types that kernels compute, an operator may go through the reference only if it is known below
// to have no kernel, or when its kernel gives one of the reasons below; --list shows all that did.
// The card is MGX_TEST_DEVICE, or whatever OpenCL has.
#include "../../op/case_program.h"

#include "op/eval/eval.h"
#include "targets/gpu/device/device.h"
#include "targets/target.h"

enum { SAMPLE = 64, FIRST = 1, MOST_OPS = 512 };

static int done, on_host;
static bool all, list, first; // first: a case is there for its values alone

// Operators without a kernel, and what kernels decline. The lists may only shrink.
static const char *const host_ops[] = {"gqa_rotary_embedding",
                                       "concat_past_present",
                                       "label_encoder",
                                       "max_roi_pool",
                                       "im2col",
                                       "outline",
                                       "dimensions_of",
                                       "optional_has_element",
                                       "capture",
                                       "nonmaxsuppression",
                                       "rnn_var_sl_shift_output",
                                       "rnn_var_sl_shift_sequence",
                                       "random_uniform",
                                       "random_seed",
                                       "multinomial",
                                       "group",
                                       "loop",
                                       "if",
                                       NULL};
static const char *const host_reasons[] = {"lanes that are empty, or too many",
                                           "padding that is worked out at run time",
                                           "a norm of order 0",
                                           "nothing to fold",
                                           "an activation with parameters",
                                           "a mean whose sum takes 128 bits",
                                           "factors that come with the run",
                                           "values that are not read as float",
                                           "known only at run time",
                                           NULL};

static const char *choice(void)
{
    const char *named = getenv("MGX_TEST_DEVICE");
    return named ? named : "opencl";
}

// A float on the card where the reference has a double: a few roundings of its type, of sums those
// of their terms.
static double tolerance(enum mgx_type type)
{
    return type == MGX_HALF ? 4e-3 : type == MGX_BF16 ? 3e-2 : type == MGX_DOUBLE ? 1e-6 : 2e-5;
}

static double largest_of(const struct mgx_tensor *t)
{
    double most = 0;
    for (int64_t i = 0; i < mgx_shape_elements(&t->shape); i++) {
        const double x =
            fabs(mgx_load_double(t->shape.type, t->data, mgx_shape_index(&t->shape, i)));
        most = isfinite(x) && x > most ? x : most;
    }
    return most;
}

static bool near_all(const struct mgx_tensor *a, const struct mgx_tensor *b)
{
    const double bound = tolerance(b->shape.type), most = largest_of(b);
    if (!mgx_shape_same_lens(&a->shape, &b->shape))
        return false;
    for (int64_t i = 0; i < mgx_shape_elements(&a->shape); i++) {
        const double x = mgx_load_double(a->shape.type, a->data, mgx_shape_index(&a->shape, i));
        const double y = mgx_load_double(b->shape.type, b->data, mgx_shape_index(&b->shape, i));
        if (x != y && !(isnan(x) && isnan(y)) && !(fabs(x - y) <= bound * most) &&
            !(fabs(x - y) <= bound * fabs(y))) {
            printf("element %lld: %.9g, expected %.9g\n", (long long)i, x, y);
            return false;
        }
    }
    return true;
}

static bool is_computed(enum mgx_type type)
{
    return type == MGX_HALF || type == MGX_BF16 || type == MGX_FLOAT || type == MGX_INT32 ||
           type == MGX_INT64 || type == MGX_BOOL;
}

// Are all types of the case those that every kernel should compute?
static bool has_common_types(const struct op_case *c)
{
    for (int i = 0; i < c->in_count; i++)
        if (!c->in[i].absent && !is_computed(c->in[i].tensor.shape.type))
            return false;
    for (int i = 0; i < c->out_count; i++)
        if (!is_computed(c->out[i].tensor.shape.type))
            return false;
    return true;
}

static bool is_declined(const char *line)
{
    for (int i = 0; host_reasons[i]; i++) {
        const char *at = strstr(line, host_reasons[i]);
        if (at && at < line + strcspn(line, "\n"))
            return true;
    }
    return false;
}

static bool is_host_op(const char *op, size_t size)
{
    for (int i = 0; host_ops[i]; i++)
        if (strlen(host_ops[i]) == size && memcmp(host_ops[i], op, size) == 0)
            return true;
    return false;
}

// Steps that the reference runs: their operators must be known to.
static void look_at_steps(const struct op_case *c, const struct mgx_program *p)
{
    struct mgx_str said = {0};
    p->executable->target->explain(p, &said);
    const char *at = strstr(mgx_str_text(&said), ": ref (reference)");
    if (at) {
        const char *op = at;
        while (op > mgx_str_text(&said) && op[-1] != ' ')
            op--;
        on_host++;
        if (list)
            printf("host %.*s %s:%d %.*s\n", (int)(at - op), op, c->file, c->line,
                   (int)strcspn(at, "\n"), at);
        else if (!first && has_common_types(c) && !is_declined(at) &&
                 !is_host_op(op, (size_t)(at - op))) {
            printf("%s:%d: %.*s went through the reference\n", c->file, c->line, (int)(at - op),
                   op);
            check_failures++;
        }
    }
    mgx_str_fini(&said);
}

static enum mgx_status run_on(struct mgx_program *p, const char *target,
                              struct mgx_named_tensor *named, int count, struct mgx_tensor *out,
                              struct mgx_diag *diag)
{
    const struct mgx_compile_options options = {.offload_copy = true,
                                                .own = MGX_SETTINGS({"device", choice()})};
    TRY(mgx_program_compile(p, mgx_target_find(target), &options, diag));
    struct mgx_run run = {.params = named,
                          .param_count = count,
                          .results = out,
                          .result_count = mgx_module_result_count(mgx_program_main(p))};
    return mgx_program_run(p, &run, diag);
}

// Of the sample: some of all cases, and the first of every operator that is not element-wise.
static bool is_sampled(const struct op_case *c)
{
    static struct {
        const char *op;
        int count;
    } seen[MOST_OPS];
    static int number;
    char name[64];
    snprintf(name, sizeof name, "%.*s", c->op ? (int)strcspn(c->op, "[ (") : 0, c->op ? c->op : "");
    const struct mgx_op *op = mgx_op_find(name);
    first = number++ % SAMPLE != 0;
    if (!first)
        return true;
    if (!op || (op->flags & MGX_OP_POINTWISE))
        return false;
    int i = 0;
    while (i < MOST_OPS && seen[i].op && strcmp(seen[i].op, op->name) != 0)
        i++;
    if (i == MOST_OPS || seen[i].count == FIRST)
        return false;
    seen[i].op = op->name;
    seen[i].count++;
    return true;
}

static void run_case(const struct op_case *c, struct mgx_program *p)
{
    struct mgx_tensor args[CASE_MAX_IN], expected[CASE_MAX_IN] = {{.data = NULL}},
                                         out[CASE_MAX_IN] = {{.data = NULL}};
    struct mgx_named_tensor named[CASE_MAX_IN];
    char names[CASE_MAX_IN][64];
    struct mgx_ins *params[CASE_MAX_IN];
    struct mgx_program *ref = NULL;
    struct mgx_diag diag = {0};
    if (!all && !is_sampled(c))
        return;
    const int count = case_arguments(c, args),
              given = mgx_module_parameters(mgx_program_main(p), params, CASE_MAX_IN),
              results = mgx_module_result_count(mgx_program_main(p));
    for (int i = 0; i < count && i < given; i++) { // compiling takes the program's own names away
        snprintf(names[i], sizeof names[i], "%s", mgx_parameter_name(params[i]));
        named[i] = (struct mgx_named_tensor){names[i], args[i]};
    }
    if (count == given && mgx_program_clone(&ref, p, &diag) == MGX_OK &&
        run_on(ref, "ref", named, count, expected, &diag) == MGX_OK) { // else it must fail
        const char *wrong = run_on(p, "gpu", named, count, out, &diag) == MGX_OK ? NULL : diag.text;
        for (int i = 0; i < results && !wrong; i++)
            wrong = case_same(&out[i], &expected[i], near_all)
                        ? NULL
                        : "another value than the reference's";
        if (wrong) {
            printf("%s:%d: %s: %s\n", c->file, c->line, c->op ? c->op : "program", wrong);
            check_failures++;
        } else {
            look_at_steps(c, p);
        }
        done++;
    }
    for (int i = 0; i < CASE_MAX_IN; i++) {
        mgx_tensor_release(&expected[i]);
        mgx_tensor_release(&out[i]);
    }
    mgx_program_destroy(ref);
}

static bool is_left_out(void)
{
    return false;
}

int main(int argc, char **argv)
{
    const char *wanted = "";
    struct mgx_diag diag = {.status = MGX_OK};
    struct gpu_device *d;
    for (int i = 1; i < argc; i++) {
        all |= strcmp(argv[i], "--all") == 0;
        list |= strcmp(argv[i], "--list") == 0;
        wanted = argv[i][0] == '-' ? wanted : argv[i];
    }
    if (gpu_device_open(choice(), 0, &d, &diag) != MGX_OK) {
        printf("skipped: %s\n", diag.text);
        return 0;
    }
    case_visit_all(wanted, is_left_out, run_case);
    gpu_device_close(d);
    printf("%d cases, %d with a step of the reference, %d failures\n", done, on_host,
           check_failures);
    return check_failures != 0 || done == 0;
}
