// SPDX-License-Identifier: MIT
// Every function of the IR that allocates, with its 1st, 2nd, ... allocation failing: it must say
// that memory is out, leak nothing, and succeed once nothing fails.
#include "ir/module.h"

#include "check.h"
#include "ir_ops.h"
#include "test_malloc.h"

static const char text[] =
    "module: \"main\"\n"
    "main:@0 = @literal{1, 2} -> float_type, {2}, {1}\n"
    "main:@1 = @literal{\"a\", \"bc\"} -> string_type, {2}, {1}\n"
    "main:@2 = @literal{ ... } -> [float_type, {2}, {1}, int8_type, {1}, {0}]\n"
    "b = @param:b -> float_type, {2}, {1}\n"
    "d = @param:d -> dynamic, float_type, {n[1..4]}\n"
    "main:@5 = sum(b,main:@0) -> float_type, {2}, {1} # one, two\n"
    "main:@6 = call(main:@5), [body] -> float_type, {2}, {1}\n"
    "main:@7 = join[weight=1,label=a b,axes={1, 2},kind=fancy](d) -> dynamic, float_type, "
    "{n[1..4]}\n"
    "main:@8 = test::open(b) -> dynamic, float_type, {[0..3]}\n"
    "main:@9 = @return(main:@6,main:@7)\n"
    "module: \"body\"\n"
    "body:@0 = sum(main:@5,main:@0) -> float_type, {2}, {1}\n";

static struct mgx_program *sample(void)
{
    struct mgx_program *p = NULL;
    return mgx_program_parse(&p, &test_ops, text, sizeof text - 1, NULL) == MGX_OK ? p : NULL;
}

// Runs `body` with the n-th allocation failing for n = 0, 1, ... until none fails any more.
enum { TRIES = 2000 };
#define WITH_FAULTS(status, body)                                                                  \
    do {                                                                                           \
        const long live_ = test_malloc_live();                                                     \
        int n_ = 0;                                                                                \
        for (bool again_ = true; again_; n_++) {                                                   \
            CHECK(n_ < TRIES);                                                                     \
            test_malloc_fail_after(n_);                                                            \
            body;                                                                                  \
            again_ = test_malloc_failed();                                                         \
            test_malloc_fail_after(-1);                                                            \
            CHECK_INT(status, again_ ? MGX_NO_MEMORY : MGX_OK);                                    \
            CHECK_INT(test_malloc_live(), live_);                                                  \
        }                                                                                          \
    } while (0)

CASE(reading_a_program)
{
    enum mgx_status status;
    WITH_FAULTS(status, {
        struct mgx_program *p = NULL;
        struct mgx_diag diag = {0};
        status = mgx_program_parse(&p, &test_ops, text, sizeof text - 1, &diag);
        CHECK(!p == (status != MGX_OK) && status == diag.status);
        mgx_program_destroy(p);
    });
}

CASE(checking_and_copying_a_program)
{
    struct mgx_program *p = sample();
    CHECK(p);
    enum mgx_status status;
    WITH_FAULTS(status, status = mgx_program_verify(p, NULL));
    WITH_FAULTS(status, {
        struct mgx_program *copy = NULL;
        status = mgx_program_clone(&copy, p, NULL);
        mgx_program_destroy(copy);
    });
    mgx_program_destroy(p);
}

CASE(printing_a_program)
{
    struct mgx_program *p = sample();
    CHECK(p);
    enum mgx_status status;
    WITH_FAULTS(status, {
        struct mgx_str out = {0};
        mgx_program_print(&out, p);
        status = out.failed ? MGX_NO_MEMORY : MGX_OK;
        mgx_str_fini(&out);
    });
    mgx_program_destroy(p);
}

// Out of memory leaves the order as it was: in either case the program stays sound.
CASE(sorting_a_module)
{
    const long live = test_malloc_live();
    bool again = true;
    for (int n = 0; again; n++) {
        struct mgx_program *p = sample();
        CHECK(p && n < TRIES);
        test_malloc_fail_after(n);
        mgx_module_sort(mgx_program_main(p));
        again = test_malloc_failed();
        test_malloc_fail_after(-1);
        CHECK(mgx_program_verify(p, NULL) == MGX_OK);
        mgx_program_destroy(p);
        CHECK_INT(test_malloc_live(), live);
    }
}

CASE(reading_attributes)
{
    static const char attr[] = "{weight: 3, label: 'x', axes: [1, 2, 3, 4, 5, 6, 7, 8, 9]}";
    enum mgx_status status;
    WITH_FAULTS(status, {
        struct mgx_arena arena;
        void *out;
        mgx_arena_init(&arena);
        status = mgx_attr_parse(&op_join, attr, sizeof attr - 1, &arena, &out, NULL);
        if (status == MGX_OK)
            status = mgx_attr_copy(&op_join, out, &arena, &out, NULL);
        mgx_arena_fini(&arena);
    });
}

CASE(copying_tensors)
{
    struct mgx_program *p = sample();
    CHECK(p);
    enum mgx_status status;
    for (const struct mgx_ins *ins = p->modules[0]->first; ins->literal; ins = ins->next)
        WITH_FAULTS(status, {
            struct mgx_tensor copy;
            status = mgx_tensor_clone(&copy, ins->literal, NULL);
            mgx_tensor_release(&copy);
        });
    const struct mgx_shape *tuple = &p->modules[0]->first->next->next->shape;
    WITH_FAULTS(status, {
        struct mgx_tensor t;
        status = mgx_tensor_create(&t, tuple, NULL);
        mgx_tensor_release(&t);
    });
    mgx_program_destroy(p);
}

TEST_MAIN(ROW(reading_a_program) ROW(checking_and_copying_a_program) ROW(printing_a_program)
              ROW(sorting_a_module) ROW(reading_attributes) ROW(copying_tensors))
