// SPDX-License-Identifier: MIT
// Which parameters decide sizes by their values, and that a program with those values set is one of
// fixed sizes.
#include "targets/values.h"

#include "check.h"
#include "op/op.h"
#include "targets/specialise.h"

static struct mgx_program *parse(const char *text)
{
    struct mgx_diag diag = {0};
    struct mgx_program *p = NULL;
    if (mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag) == MGX_OK)
        return p;
    printf("%s\n", diag.text);
    return NULL;
}

// The names of those found, each with a blank behind it.
static bool finds(const char *text, const char *names, size_t bytes)
{
    struct mgx_program *p = parse(text);
    struct mgx_arena arena;
    struct mgx_values v;
    struct mgx_ins *params[8];
    struct mgx_str found = {0};
    mgx_arena_init(&arena);
    bool good = p && mgx_values_find(&v, p, &arena);
    if (good)
        mgx_module_parameters(mgx_program_main(p), params, 8);
    for (int i = 0; good && i < v.count; i++)
        mgx_str_printf(&found, "%s ", mgx_parameter_name(params[v.list[i].param]));
    good = good && strcmp(mgx_str_text(&found), names) == 0 && v.bytes == bytes &&
           mgx_values_any(p) == (v.count > 0);
    if (!good)
        printf("found: %s\n", mgx_str_text(&found));
    mgx_str_fini(&found);
    mgx_arena_fini(&arena);
    mgx_program_destroy(p);
    return good;
}

#define MAIN "module: \"main\"\nx = @param:x -> float_type, {4, 6}, {6, 1}\n"

CASE(what_a_reshape_is_given)
{
    CHECK(finds(MAIN "n = @param:n -> int64_type, {3}, {1}\n@2 = reshape[dims={}](x,n)\n"
                     "@3 = @return(@2)\n",
                "n ", 24));
}

CASE(through_other_operators_with_literals_and_lengths)
{
    CHECK(finds(MAIN
                "n = @param:n -> int32_type, {1}, {1}\n@2 = @literal{2} -> int64_type, {1}, {1}\n"
                "@3 = convert[target_type=int64_type](n)\n@4 = dimensions_of[start=0,end=1](x)\n"
                "@5 = add(@3,@2)\n@6 = concat[axis=0](@4,@5)\n@7 = reshape[dims={}](x,@6)\n"
                "@8 = @return(@7)\n",
                "n ", 8));
}

// A large vector is data, and what is picked out of data too.
CASE(not_what_comes_out_of_data)
{
    CHECK(finds(MAIN "n = @param:n -> int64_type, {100}, {1}\n"
                     "@2 = slice[axes={0},starts={0},ends={3}](n)\n@3 = reshape[dims={}](x,@2)\n"
                     "@4 = @return(@3)\n",
                "", 0));
    CHECK(finds(MAIN "@2 = reduce_max[axes={0,1}](x)\n@3 = @return(@2)\n", "", 0));
}

// The other input of a product is as small, but no size.
CASE(not_what_is_only_small)
{
    CHECK(finds("module: \"main\"\nx = @param:x -> float_type, {2, 3}, {3, 1}\n"
                "y = @param:y -> float_type, {2, 3}, {3, 1}\nn = @param:n -> int64_type, {2}, {1}\n"
                "@3 = mul(x,y)\n@4 = reshape[dims={}](@3,n)\n@5 = @return(@4)\n",
                "n ", 16));
}

CASE(a_program_with_the_values_set_has_fixed_sizes)
{
    struct mgx_program *p = parse(MAIN "n = @param:n -> int64_type, {2}, {1}\n@2 = tanh(x)\n"
                                       "@3 = reshape[dims={}](@2,n)\n@4 = @return(@3)\n");
    struct mgx_diag diag = {0};
    struct mgx_arena arena;
    struct mgx_values v;
    struct mgx_program *fixed = NULL;
    const struct mgx_compile_options options = {.threads = 1};
    const int64_t key[] = {8, 3};
    mgx_arena_init(&arena);
    CHECK(p && mgx_values_find(&v, p, &arena) && v.count == 1);
    const float x[24] = {0};
    const struct mgx_shape s = mgx_shape_make(MGX_FLOAT, 2, (int64_t[]){4, 6});
    const struct mgx_shape n = mgx_shape_vector(MGX_INT64, 2);
    const struct mgx_named_tensor data = {"x", mgx_tensor_borrow(&s, (void *)x)},
                                  size = {"n", mgx_tensor_borrow(&n, (void *)key)};
    const struct mgx_named_tensor given[] = {v.list[0].param == 0 ? size : data,
                                             v.list[0].param == 0 ? data : size};
    int64_t gathered[2] = {-1, -1};
    mgx_values_gather(&v, given, gathered);
    CHECK(gathered[0] == 8 && gathered[1] == 3);
    CHECK(mgx_specialise(&fixed, p, mgx_target_find("cpu"), &options, &v, key, &diag) == MGX_OK);
    if (fixed) {
        const struct mgx_shape *y = &mgx_module_result(mgx_program_main(fixed), 0)->shape;
        CHECK(mgx_shape_is_static(y) && y->rank == 2 && y->lens[0] == 8 && y->lens[1] == 3);
        CHECK(mgx_module_parameters(mgx_program_main(fixed), NULL, 0) == 2); // n is still given
    }
    mgx_program_destroy(fixed);
    mgx_program_destroy(p);
    mgx_arena_fini(&arena);
}

// What a key has of a total of so many tokens, where caches have room for `room` and 16; -1: no value.
static int64_t key_of(const char *more, int64_t total, int64_t room)
{
    char text[1024];
    snprintf(text, sizeof text,
             "module: \"main\"\nnow = @param:now -> float_type, {1, 2, 1, 4}, {8, 4, 4, 1}\n"
             "ends = @param:ends -> int64_type, {1}, {1}\n"
             "total = @param:total -> int64_type, {1}, {1}\n"
             "a = @param:a -> float_type, {1, 2, %lld, 4}, {%lld, %lld, 4, 1}\n"
             "b = @param:b -> float_type, {1, 2, 16, 4}, {128, 64, 4, 1}\n"
             "@5 = cache_append(now,ends,total,a)\n@6 = cache_append(now,ends,total,b)\n%s"
             "@8 = @return(@5,@6%s)\n",
             (long long)room, 8 * (long long)room, 4 * (long long)room, more, *more ? ",@7" : "");
    struct mgx_program *p = parse(text);
    struct mgx_arena arena;
    struct mgx_values v = {.count = 0};
    struct mgx_ins *params[5];
    struct mgx_named_tensor given[5];
    mgx_arena_init(&arena);
    int64_t key = -1;
    if (p && mgx_values_find(&v, p, &arena) && v.count == 1) {
        mgx_module_parameters(mgx_program_main(p), params, 5);
        for (int i = 0; i < 5; i++)
            given[i] = (struct mgx_named_tensor){mgx_parameter_name(params[i]),
                                                 mgx_tensor_borrow(&params[i]->shape, &total)};
        key = mgx_values_gather(&v, given, &key) ? key : -2;
    }
    mgx_arena_fini(&arena);
    mgx_program_destroy(p);
    return key;
}

CASE(tokens_that_caches_have_room_for_are_one_size)
{
    CHECK(key_of("", 5, 8) == 8 && key_of("", 8, 8) == 8 && key_of("", 9, 8) == 9);
    CHECK(key_of("", 9, 32) == 16 && key_of("", 17, 32) == 17);
    CHECK(key_of("", 0, 8) == 0 && key_of("", -1, 8) == -1);
    CHECK(key_of("@7 = identity(total)\n", 5, 8) == 5); // somebody else wants to know
}

TEST_MAIN(ROW(what_a_reshape_is_given) ROW(through_other_operators_with_literals_and_lengths)
              ROW(not_what_comes_out_of_data) ROW(not_what_is_only_small)
                  ROW(a_program_with_the_values_set_has_fixed_sizes)
                      ROW(tokens_that_caches_have_room_for_are_one_size))
