// SPDX-License-Identifier: MIT
// Names of groups: activations under their own name, lookalikes by their operators.
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

CASE(silu_is_a_value_times_its_sigmoid)
{
    IS("s = sigmoid(d)\nm = mul(d,s)\nr = @return(m)\n", "dot_silu");
    IS("s = sigmoid(d)\nm = mul(w,s)\nr = @return(m)\n", "dot_sigmoid_mul");
}

CASE(hard_swish_is_a_value_times_its_clip)
{
    IS("m = mul(d,c)\na = add(m,c)\nk = clip(a,c,c)\ny = mul(k,d)\nr = @return(y)\n",
       "dot_hard_swish");
    IS("m = mul(d,c)\na = add(m,c)\nk = clip(a,c,c)\ny = mul(k,w)\nr = @return(y)\n",
       "dot_mul_add_clip_mul");
}

CASE(gelu_in_the_orders_that_exporters_write)
{
    IS("h = mul(d,c)\ns = mul(d,c)\ne = erf(s)\na = add(e,c)\ny = mul(h,a)\nr = @return(y)\n",
       "dot_gelu");
    IS("s = div(d,c)\ne = erf(s)\na = add(e,c)\nm = mul(d,a)\ny = mul(m,c)\nr = @return(y)\n",
       "dot_gelu");
    IS("b = add(d,w)\nq = mul(b,b)\nt = mul(q,b)\nu = mul(t,c)\nv = add(u,b)\nz = mul(v,c)\n"
       "e = tanh(z)\na = add(e,c)\nh = mul(b,c)\ny = mul(h,a)\nr = @return(y)\n",
       "dot_add_gelu");
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
                 "s = sigmoid(a)\n"
                 "m = mul(a,s)\n"
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

TEST_MAIN(ROW(operators_one_after_the_other) ROW(silu_is_a_value_times_its_sigmoid)
              ROW(hard_swish_is_a_value_times_its_clip) ROW(gelu_in_the_orders_that_exporters_write)
                  ROW(bodies_count_in_place) ROW(a_tag_that_says_it_is_the_name)
                      ROW(a_long_name_ends_at_an_operator))
