// SPDX-License-Identifier: MIT
// Along which axis values vary: of views by what they look at, of what is itself by its lengths.
#include "pass/engine/emit.h"

#include "check.h"
#include "op/op.h"

static const char text[] = "module: \"main\"\n"
                           "a = @param:a -> float_type, {1, 4, 1, 1}, {4, 1, 1, 1}\n"
                           "b = @param:b -> float_type, {1, 4, 1, 3}, {12, 3, 3, 1}\n"
                           "c = @param:c -> float_type, {4}, {1}\n"
                           "d = broadcast[axis=1,out_lens={2, 4, 5, 3}](c)\n"
                           "e = multibroadcast[out_lens={2, 4, 5, 3}](b)\n"
                           "@1 = @return(a, d, e)\n";

CASE(values_vary_along_one_axis)
{
    static const struct {
        const char *name;
        bool along[4];
    } rows[] = {
        {"a", {false, true, false, false}}, {"b", {false}}, {"d", {false, true}}, {"e", {false}}};
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    CHECK_OK(mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag), diag);
    struct mgx_ins *ins = mgx_program_main(p)->first;
    for (int i = 0; i < 4; i++, ins = ins->next) {
        if (i == 2)
            ins = ins->next; // c
        for (int axis = 0; axis < 4; axis++)
            if (mgx_is_along(ins, axis) != rows[i].along[axis])
                CHECK_FAIL("%s along axis %d", rows[i].name, axis);
    }
    mgx_program_destroy(p);
}

TEST_MAIN(ROW(values_vary_along_one_axis))
