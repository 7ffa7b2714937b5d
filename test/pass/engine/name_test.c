// SPDX-License-Identifier: MIT
// Names of groups: the operators in them, one after the other.
#include "pass/engine/name.h"

#include "check.h"
#include "op/op.h"

// A failure prints what came.
static bool same(const char *name, const char *expected)
{
    if (strcmp(name, expected) != 0)
        printf("%s, not %s\n", name, expected);
    return strcmp(name, expected) == 0;
}

// Names the instructions of a program's main module between its parameters and its @return.
static void name_of(char out[MGX_GROUP_NAME], const char *text, const char *tag)
{
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    struct mgx_ins *ins[16];
    int count = 0;
    out[0] = '\0';
    if (mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag) != MGX_OK) {
        printf("%s\n", diag.text);
        return;
    }
    for (struct mgx_ins *i = mgx_program_main(p)->first; i; i = i->next)
        if (i->op->name[0] != '@')
            ins[count++] = i;
    mgx_name_group(ins, count, tag, out);
    mgx_program_destroy(p);
}

#define HEAD                                                                                       \
    "module: \"main\"\n"                                                                           \
    "x = @param:x -> float_type, {2, 2}, {2, 1}\n"                                                 \
    "w = @param:w -> float_type, {2, 2}, {2, 1}\n"                                                 \
    "c = @literal{0.5, 0.5, 0.5, 0.5} -> float_type, {2, 2}, {2, 1}\n"                             \
    "d = dot(x,w)\n"
#define IS(text, expected)                                                                         \
    do {                                                                                           \
        char name[MGX_GROUP_NAME];                                                                 \
        name_of(name, HEAD text, "epilogue");                                                      \
        CHECK(same(name, expected));                                                               \
    } while (0)

CASE(operators_one_after_the_other)
{
    IS("a = add(d,w)\nb = relu(a)\nr = @return(b)\n", "dot_add_relu");
    IS("a = transpose[permutation={1, 0}](d)\nb = tanh(a)\nr = @return(b)\n", "dot_tanh");
}

CASE(bodies_count_in_place)
{
    char name[MGX_GROUP_NAME];
    name_of(name,
            HEAD "p = pointwise(d,w), [body]\nr = @return(p)\n\n"
                 "module: \"body\"\n"
                 "x0 = @param:x0 -> float_type, {1}, {0}\n"
                 "x1 = @param:x1 -> float_type, {1}, {0}\n"
                 "a = add(x0,x1)\n"
                 "m = silu(a)\n"
                 "q = @return(m)\n",
            "epilogue");
    CHECK(same(name, "dot_add_silu"));
}

CASE(a_tag_that_says_it_is_the_name)
{
    char name[MGX_GROUP_NAME];
    name_of(name, HEAD "r = @return(d)\n", "layer_norm");
    CHECK(same(name, "layer_norm"));
}

CASE(a_long_name_ends_at_an_operator)
{
    char name[MGX_GROUP_NAME];
    name_of(name,
            HEAD "a = convert[target_type=2](d)\nb = convert[target_type=2](a)\n"
                 "e = convert[target_type=2](b)\nf = convert[target_type=2](e)\n"
                 "g = convert[target_type=2](f)\nh = convert[target_type=2](g)\n"
                 "i = convert[target_type=2](h)\nj = convert[target_type=2](i)\n"
                 "k = convert[target_type=2](j)\nl = convert[target_type=2](k)\n"
                 "m = convert[target_type=2](l)\nn = convert[target_type=2](m)\n"
                 "r = @return(n)\n",
            "epilogue");
    CHECK(strlen(name) < MGX_GROUP_NAME);
    CHECK(same(strrchr(name, '_'), "_convert"));
}

TEST_MAIN(ROW(operators_one_after_the_other) ROW(bodies_count_in_place)
              ROW(a_tag_that_says_it_is_the_name) ROW(a_long_name_ends_at_an_operator))
