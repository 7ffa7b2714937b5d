// SPDX-License-Identifier: MIT
// Reference evaluation of whatever the text form lets through, on generated arguments: no operator
// may touch memory that is not its own, and a result must be what the shape rules promised.
// Programs that are large, or that may run long by intention (loops), are left out.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "op/eval/eval.h"
#include "op/op.h"

enum { MAX_ARGS = 32, MAX_ELEMENTS = 2048, MAX_BYTES = 1 << 18 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_small(const struct mgx_ins *ins)
{
    static const char *const endless[] = {"loop", "scan"};
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++)
        if (strcmp(ins->op->name, endless[i]) == 0)
            return false;
    return ins->op == &mgx_op_return || mgx_shape_elements(&ins->shape) <= MAX_ELEMENTS ||
           ins->shape.dims;
}

static bool all_small(const struct mgx_program *p)
{
    for (int i = 0; i < p->module_count; i++)
        for (const struct mgx_ins *ins = p->modules[i]->first; ins; ins = ins->next)
            if (!is_small(ins))
                return false;
    return true;
}

// A tensor of the declared shape; of ranges, a length inside each.
static bool make_argument(const struct mgx_shape *declared, uint64_t seed, struct mgx_tensor *out)
{
    struct mgx_shape shape = *declared;
    if (shape.unranked)
        return false;
    for (int i = 0; i < shape.rank; i++) {
        const struct mgx_dim d = mgx_shape_dim(declared, i);
        shape.lens[i] = mgx_min_i64(d.max, mgx_max_i64(d.min, 3));
    }
    if (declared->dims)
        shape = mgx_shape_make(shape.type, shape.rank, shape.lens);
    if (mgx_shape_space(&shape) > MAX_ELEMENTS || mgx_tensor_create(out, &shape, NULL) != MGX_OK)
        return false;
    mgx_tensor_generate(out, seed);
    return true;
}

static void broken_promise(const struct mgx_ins *ins, const struct mgx_shape *actual)
{
    struct mgx_str line = {0};
    mgx_ins_print(&line, ins);
    mgx_str_put(&line, "\n  gives ");
    mgx_shape_print(&line, actual);
    fprintf(stderr, "%s\n", mgx_str_text(&line));
    abort();
}

// Called after every instruction of main.
static enum mgx_status check_result(void *user, const struct mgx_ins *ins,
                                    const struct mgx_tensor *value, struct mgx_diag *diag)
{
    (void)user, (void)diag;
    const struct mgx_shape *declared = &ins->shape, *actual = &value->shape;
    if (declared->type != actual->type || !mgx_shape_may_match(declared, actual))
        broken_promise(ins, actual);
    return MGX_OK;
}

static void evaluate(struct mgx_program *p)
{
    struct mgx_module *m = mgx_program_main(p);
    struct mgx_ins *parameters[MAX_ARGS];
    struct mgx_tensor args[MAX_ARGS] = {0}, results[MAX_ARGS] = {0};
    const int count = mgx_module_parameters(m, parameters, MAX_ARGS);
    const int result_count = mgx_module_result_count(m);
    if (count > MAX_ARGS || result_count > MAX_ARGS)
        return;
    bool good = true;
    for (int i = 0; i < count && good; i++)
        good = make_argument(&parameters[i]->shape, (uint64_t)i, &args[i]);
    for (int i = 0; i < p->module_count; i++)
        mgx_module_number(p->modules[i]);
    struct mgx_arena strings;
    mgx_arena_init(&strings);
    struct mgx_eval e = {.strings = &strings, .limit_bytes = MAX_BYTES, .trace = check_result};
    struct mgx_diag diag = {0};
    if (good && mgx_eval_module(&e, m, args, count, results, &diag) != MGX_OK && !diag.text[0])
        abort();
    for (int i = 0; i < MAX_ARGS; i++) {
        mgx_tensor_release(&args[i]);
        mgx_tensor_release(&results[i]);
    }
    mgx_arena_fini(&strings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mgx_program *p;
    if (mgx_program_parse(&p, &mgx_ops, (const char *)data, size, NULL) != MGX_OK)
        return 0;
    if (all_small(p))
        evaluate(p);
    mgx_program_destroy(p);
    return 0;
}
