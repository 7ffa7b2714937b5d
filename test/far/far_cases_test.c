// SPDX-License-Identifier: MIT
// Every case of test/op/cases/*.txt that has a result, as a program on the far target: inputs that
// the shape rule knows are literals, the others parameters. What comes out must be what the
// reference target makes of the same program. An argument selects files whose name contains it.
#include "../op/case_program.h"

#include "far/run.h"

static int done;

static bool same_elements(const struct mgx_tensor *a, const struct mgx_tensor *b)
{
    if (!mgx_shape_same_lens(&a->shape, &b->shape))
        return false;
    for (int64_t i = 0; i < mgx_shape_elements(&a->shape); i++) {
        const double x = mgx_load_double(a->shape.type, a->data, mgx_shape_index(&a->shape, i));
        const double y = mgx_load_double(b->shape.type, b->data, mgx_shape_index(&b->shape, i));
        if (x != y && !(isnan(x) && isnan(y)) && !(fabs(x - y) <= 1e-6 * fabs(y)))
            return false;
    }
    return true;
}

static void complain(const struct op_case *c, bool offload, const char *what)
{
    printf("%s:%d: %s, results %s: %s\n", c->file, c->line, c->op ? c->op : "program",
           offload ? "copied" : "left", what);
    check_failures++;
}

static void compare(const struct op_case *c, const struct mgx_program *p,
                    const struct mgx_tensor *expected, int results)
{
    struct mgx_tensor args[CASE_MAX_IN], out[CASE_MAX_IN];
    const int count = case_arguments(c, args);
    for (int offload = 0; offload < 2; offload++) {
        struct mgx_diag diag = {0};
        memset(out, 0, sizeof out);
        if (far_try(p, offload, args, count, out, &diag) != MGX_OK)
            complain(c, offload, diag.text);
        for (int i = 0; i < results && diag.status == MGX_OK; i++)
            if (!case_same(&out[i], &expected[i], same_elements))
                complain(c, offload, "another value than the reference's");
        for (int i = 0; i < CASE_MAX_IN; i++)
            mgx_tensor_release(&out[i]);
    }
}

static void run_case(const struct op_case *c, struct mgx_program *p)
{
    struct mgx_tensor args[CASE_MAX_IN], expected[CASE_MAX_IN] = {{.data = NULL}};
    struct mgx_named_tensor named[CASE_MAX_IN];
    struct mgx_ins *params[CASE_MAX_IN];
    struct mgx_program *ref = NULL;
    struct mgx_diag diag = {0};
    const int count = case_arguments(c, args),
              given = mgx_module_parameters(mgx_program_main(p), params, CASE_MAX_IN);
    for (int i = 0; i < count && i < given; i++)
        named[i] = (struct mgx_named_tensor){mgx_parameter_name(params[i]), args[i]};
    struct mgx_run run = {.params = named,
                          .param_count = count,
                          .results = expected,
                          .result_count = mgx_module_result_count(mgx_program_main(p))};
    if (count != given || mgx_program_clone(&ref, p, &diag) != MGX_OK ||
        mgx_program_compile(ref, mgx_target_find("ref"), NULL, &diag) != MGX_OK ||
        mgx_program_run(ref, &run, &diag) != MGX_OK) {
        mgx_program_destroy(ref); // a case that must fail, or that a program cannot say
        return;
    }
    compare(c, p, expected, run.result_count);
    for (int i = 0; i < CASE_MAX_IN; i++)
        mgx_tensor_release(&expected[i]);
    mgx_program_destroy(ref);
    done++;
}

int main(int argc, char **argv)
{
    case_visit_all(argc < 2 ? "" : argv[1], NULL, run_case);
    printf("%d cases, %d failures, %zu bytes left\n", done, check_failures, far_memory_live());
    return check_failures != 0 || done == 0 || far_memory_live() != 0;
}
