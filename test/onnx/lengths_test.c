// SPDX-License-Identifier: MIT
// Lengths that a model gathers from shapes, puts together and reshapes to are known by range and name
// before any run, so that what follows need not wait for one. Runs agree.
#include "import.h"

enum { FLOAT = 1, INT64 = 7, OPEN = -1 };

static const struct mgx_dim batch = {.max = MGX_DIM_ANY, .name = "b"},
                            tokens = {.max = MGX_DIM_ANY, .name = "t"},
                            past = {.max = MGX_DIM_ANY, .name = "p"};

static struct mgx_dim fixed(int64_t length)
{
    return (struct mgx_dim){.min = length, .max = length};
}

// The model's first result, imported with the ranges of its inputs.
static struct mgx_program *import_open(struct pb *take_graph, const struct mgx_onnx_dims *inputs,
                                       int count)
{
    const struct mgx_onnx_options o = {.inputs = inputs, .input_count = count};
    struct pb m = pb_model(take_graph, 17);
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, &o, &diag);
    if (!p)
        printf("%s\n", diag.text);
    return p;
}

static bool result_is(const struct mgx_program *p, const char *shape)
{
    struct mgx_str text = {0};
    MGX_EACH (ins, mgx_program_main(p))
        if (strcmp(ins->op->name, "onnx::deferred") == 0) {
            printf("%s waits\n", ins->op->name);
            return false;
        }
    mgx_shape_print(&text, &mgx_module_result(mgx_program_main(p), 0)->shape);
    const bool same = strcmp(mgx_str_text(&text), shape) == 0;
    if (!same)
        printf("%s, not %s\n", mgx_str_text(&text), shape);
    mgx_str_fini(&text);
    return same;
}

// {length of axis `at` of s} as a vector `to`.
static void put_length(struct pb *g, int64_t at, const char *name, const char *to)
{
    char index[32], scalar[32], in[96];
    snprintf(index, sizeof index, "%s_at", to);
    snprintf(scalar, sizeof scalar, "%s_scalar", to);
    struct pb t = pb_tensor(index, INT64, 0, NULL);
    pb_int(&t, 7, at);
    pb_initializer(g, &t);
    snprintf(in, sizeof in, "%s,%s", name, index);
    pb_node(g, "Gather", in, scalar, NULL);
    snprintf(in, sizeof in, "%s,zero", scalar);
    pb_node(g, "Unsqueeze", in, to, NULL);
}

// x {b, t, 8} seen as {b, t, 2, 4}, as exporters write it, and the last axis split in halves.
static struct pb heads(const int64_t *last, int count)
{
    struct pb g = {0}, axis = {0}, cut = {0};
    pb_attr_int(&axis, "axis", 0);
    pb_attr_int(&cut, "axis", 3);
    pb_input(&g, "x", FLOAT, 3, (int64_t[]){OPEN, OPEN, 8});
    pb_ints(&g, "zero", (int64_t[]){0}, 1);
    pb_ints(&g, "last", last, count);
    pb_ints(&g, "halves", (int64_t[]){2, 2}, 2);
    pb_node(&g, "Shape", "x", "s", NULL);
    put_length(&g, 0, "s", "b");
    put_length(&g, -2, "s", "t");
    pb_node(&g, "Concat", "b,t,last", "to", &axis);
    pb_node(&g, "Reshape", "x,to", "y", NULL);
    pb_node(&g, "Split", "y,halves", "left,right", &cut);
    pb_output(&g, "right");
    return g;
}

static bool heads_are_known(const int64_t *last, int count)
{
    const struct mgx_dim dims[] = {batch, tokens, fixed(8)};
    const struct mgx_onnx_dims inputs[] = {{"x", dims, 3}};
    struct pb g = heads(last, count);
    struct mgx_program *p = import_open(&g, inputs, 1);
    float x[48];
    double y[24] = {0};
    bool good = p && result_is(p, "dynamic, float_type, {b[0..], t[0..], 2, 2}");
    for (int i = 0; i < 48; i++)
        x[i] = (float)i;
    const struct mgx_tensor arg = floats(x, 3, (int64_t[]){2, 3, 8});
    good = good && run_model(p, &arg, 1, NULL, y, 24) == 24;
    for (int i = 0; i < 24 && good; i++)
        good = y[i] == i / 2 * 4 + 2 + i % 2;
    mgx_program_destroy(p);
    return good;
}

CASE(lengths_put_together_are_known)
{
    CHECK(heads_are_known((int64_t[]){2, 4}, 2));
    CHECK(heads_are_known((int64_t[]){-1, 4}, 2));
}

// ids {b, t} seen as {-1, t}: what is left over is the other axis.
CASE(what_is_left_over_has_its_name)
{
    const struct mgx_dim dims[] = {batch, tokens};
    const struct mgx_onnx_dims inputs[] = {{"x", dims, 2}};
    struct pb g = {0}, axis = {0};
    pb_attr_int(&axis, "axis", 0);
    pb_input(&g, "x", FLOAT, 2, (int64_t[]){OPEN, OPEN});
    pb_ints(&g, "zero", (int64_t[]){0}, 1);
    pb_ints(&g, "rest", (int64_t[]){-1}, 1);
    pb_node(&g, "Shape", "x", "s", NULL);
    put_length(&g, 1, "s", "t");
    pb_node(&g, "Concat", "rest,t", "to", &axis);
    pb_node(&g, "Reshape", "x,to", "y", NULL);
    pb_output(&g, "y");
    struct mgx_program *p = import_open(&g, inputs, 1);
    CHECK(p && result_is(p, "dynamic, float_type, {b[0..], t[0..]}"));
    mgx_program_destroy(p);
}

// Positions of new tokens: from p to p + t.
CASE(a_range_from_past_to_present_is_as_long_as_what_is_new)
{
    const struct mgx_dim a[] = {tokens}, b[] = {past};
    const struct mgx_onnx_dims inputs[] = {{"x", a, 1}, {"past", b, 1}};
    struct pb g = {0}, to = {0};
    pb_attr_int(&to, "to", FLOAT);
    pb_input(&g, "x", FLOAT, 1, (int64_t[]){OPEN});
    pb_input(&g, "past", FLOAT, 1, (int64_t[]){OPEN});
    struct pb one = pb_tensor("one", INT64, 0, NULL), none = pb_tensor("none", INT64, 0, NULL);
    pb_int(&one, 7, 1);
    pb_int(&none, 7, 0);
    pb_initializer(&g, &one);
    pb_initializer(&g, &none);
    pb_node(&g, "Shape", "x", "xs", NULL);
    pb_node(&g, "Gather", "xs,none", "t", NULL);
    pb_node(&g, "Shape", "past", "ps", NULL);
    pb_node(&g, "Gather", "ps,none", "p", NULL);
    pb_node(&g, "Shape", "past", "qs", NULL); // twice, as exporters do
    pb_node(&g, "Gather", "qs,none", "q", NULL);
    pb_node(&g, "Add", "q,t", "end", NULL);
    pb_node(&g, "Range", "p,end,one", "at", NULL);
    pb_node(&g, "Cast", "at", "y", &to);
    pb_output(&g, "y");
    struct mgx_program *p = import_open(&g, inputs, 2);
    CHECK(p && result_is(p, "dynamic, float_type, {t[0..]}"));
    const float x[8] = {0};
    for (int64_t t = 1; t < 4; t++) {
        const struct mgx_tensor args[] = {floats(x, 1, &t), floats(x, 1, (int64_t[]){5})};
        double y[4];
        CHECK_INT(run_model(p, args, 2, NULL, y, 4), t);
        for (int i = 0; i < t; i++)
            CHECK(y[i] == 5 + i);
    }
    mgx_program_destroy(p);
}

// A triangle of any size.
static bool triangle_is_right(bool upper, int64_t diagonal)
{
    const struct mgx_dim dims[] = {batch, tokens};
    const struct mgx_onnx_dims inputs[] = {{"x", dims, 2}};
    struct pb g = {0}, attrs = {0}, k = pb_tensor("k", INT64, 0, NULL);
    pb_attr_int(&attrs, "upper", upper);
    pb_input(&g, "x", FLOAT, 2, (int64_t[]){OPEN, OPEN});
    pb_int(&k, 7, diagonal);
    pb_initializer(&g, &k);
    pb_node(&g, "Trilu", "x,k", "y", &attrs);
    pb_output(&g, "y");
    struct mgx_program *p = import_open(&g, inputs, 1);
    bool good = p && result_is(p, "dynamic, float_type, {b[0..], t[0..]}");
    const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    for (int rows = 1; rows <= 4 && good; rows++) {
        const int columns = 12 / rows;
        const struct mgx_tensor arg = floats(x, 2, (int64_t[]){rows, columns});
        double y[12];
        good = run_model(p, &arg, 1, NULL, y, 12) == 12;
        for (int i = 0; i < 12 && good; i++) {
            const int64_t at = i % columns - i / columns;
            good = y[i] == ((upper ? at >= diagonal : at <= diagonal) ? (double)x[i] : 0);
        }
    }
    mgx_program_destroy(p);
    return good;
}

CASE(triangles_need_no_size)
{
    for (int64_t diagonal = -2; diagonal <= 2; diagonal++) {
        CHECK(triangle_is_right(true, diagonal));
        CHECK(triangle_is_right(false, diagonal));
    }
    CHECK(triangle_is_right(true, INT64_MAX) && triangle_is_right(true, INT64_MIN));
    CHECK(triangle_is_right(false, INT64_MAX) && triangle_is_right(false, INT64_MIN));
}

// A number that is written as a sum of itself and itself, sixty times over: nobody follows all of it.
CASE(sums_of_sums_cost_little)
{
    const struct mgx_dim dims[] = {batch, tokens};
    const struct mgx_onnx_dims inputs[] = {{"x", dims, 2}};
    struct pb g = {0}, axis = {0};
    pb_attr_int(&axis, "axis", 0);
    pb_input(&g, "x", FLOAT, 2, (int64_t[]){OPEN, OPEN});
    pb_ints(&g, "zero", (int64_t[]){0}, 1);
    pb_ints(&g, "rest", (int64_t[]){-1}, 1);
    pb_node(&g, "Shape", "x", "s", NULL);
    put_length(&g, 1, "s", "t0");
    for (int i = 0; i < 60; i++) {
        char in[32], out[16];
        snprintf(in, sizeof in, "t%d,t%d", i, i);
        snprintf(out, sizeof out, "t%d", i + 1);
        pb_node(&g, "Add", in, out, NULL);
    }
    pb_node(&g, "Concat", "rest,t60", "to", &axis);
    pb_node(&g, "Reshape", "x,to", "y", NULL);
    pb_output(&g, "y");
    struct mgx_program *p = import_open(&g, inputs, 1);
    CHECK(p && result_is(p, "dynamic, float_type, {[0..], [0..]}"));
    mgx_program_destroy(p);
}

TEST_MAIN(ROW(lengths_put_together_are_known) ROW(what_is_left_over_has_its_name)
              ROW(a_range_from_past_to_present_is_as_long_as_what_is_new)
                  ROW(triangles_need_no_size) ROW(sums_of_sums_cost_little))
