// SPDX-License-Identifier: MIT
// One operator with a field of every kind: printed, read back in both forms, copied, compared.
#include "ir/attr.h"

#include "check.h"
#include "ir/op.h"

struct every {
    int64_t number;
    bool flag;
    double real;
    const char *text;
    struct mgx_ints ints;
    struct mgx_doubles reals;
    struct mgx_strings texts;
    int64_t mode;
    int64_t type;
    struct mgx_shape shape;
    struct mgx_shapes shapes;
    struct mgx_dims dims;
};

static const char *const modes[] = {"average", "max", "", "lpnorm", NULL};

static const struct mgx_field fields[] = {MGX_INT(struct every, number),
                                          MGX_FLAG(struct every, flag),
                                          MGX_REAL(struct every, real),
                                          MGX_TEXT(struct every, text),
                                          MGX_INTS(struct every, ints),
                                          MGX_REALS(struct every, reals),
                                          MGX_TEXTS(struct every, texts),
                                          MGX_ENUM(struct every, mode, modes),
                                          MGX_TYPE(struct every, type),
                                          MGX_SHAPE(struct every, shape),
                                          MGX_SHAPES(struct every, shapes),
                                          MGX_DIMS(struct every, dims),
                                          {0}};

static const int64_t default_ints[] = {0, 0};
static const struct every defaults = {
    .number = 7, .ints = {default_ints, 2}, .type = MGX_HALF, .shape = {.type = MGX_FLOAT}};

static const struct mgx_op every = {
    .name = "every", .fields = fields, .attr_size = sizeof(struct every), .defaults = &defaults};

static struct mgx_arena arena;
static struct mgx_diag diag;

static void *parse(const char *text)
{
    void *attr = NULL;
    mgx_diag_clear(&diag);
    return mgx_attr_parse(&every, text, strlen(text), &arena, &attr, &diag) == MGX_OK ? attr : NULL;
}

static const char *print(const void *attr)
{
    static char text[4096];
    struct mgx_str out = {0};
    mgx_op_print(&out, &every, attr);
    snprintf(text, sizeof text, "%s", mgx_str_text(&out));
    mgx_str_fini(&out);
    return text;
}

static const char *print_json(const void *attr)
{
    static char text[4096];
    struct mgx_str out = {0};
    mgx_attr_print_json(&out, &every, attr);
    snprintf(text, sizeof text, "%s", mgx_str_text(&out));
    mgx_str_fini(&out);
    return text;
}

CASE(defaults_print_as_migraphx_does)
{
    void *attr;
    CHECK_OK(mgx_attr_make(&every, NULL, &arena, &attr, &diag), diag);
    CHECK_TEXT(print(attr), "every[number=7,flag=0,real=0,text=,ints={0, 0},reals={},texts={},"
                            "mode=average,type=1,shape=float_type, {1}, {0},shapes={},dims={}]");
}

CASE(a_list_of_attributes_is_copied_and_converted)
{
    int64_t ints[] = {1, 2, 3};
    char name[] = "lpnorm";
    void *attr;
    CHECK_OK(mgx_attr_make(&every,
                           MGX_ATTRS(mgx_ints("ints", ints, 3), mgx_int("real", 3),
                                     mgx_int("flag", 1), mgx_text("mode", name),
                                     mgx_int("type", MGX_INT64), mgx_text("text", name)),
                           &arena, &attr, &diag),
             diag);
    ints[0] = 9;
    name[0] = 'x';
    CHECK_TEXT(print(attr), "every[number=7,flag=1,real=3,text=lpnorm,ints={1, 2, 3},reals={},"
                            "texts={},mode=lpnorm,type=9,shape=float_type, {1}, {0},shapes={},"
                            "dims={}]");
    CHECK_INT(mgx_attr_int(&every, attr, "flag"), 1);
    CHECK_INT(mgx_attr_int(&every, attr, "mode"), 3);
    CHECK_INT(mgx_attr_ints(&every, attr, "ints").v[2], 3);
    CHECK_NEAR(mgx_attr_real(&every, attr, "real"), 3, 0);
}

CASE(lists_of_every_kind_are_copied)
{
    const char *texts[] = {"a", ""};
    double reals[] = {0.5, -1};
    struct mgx_dim dims[] = {{1, 4, "n"}, {3, 3}};
    struct mgx_shape shapes[] = {mgx_shape_vector(MGX_INT8, 2), mgx_shape_scalar(MGX_BOOL)};
    void *attr;
    CHECK_OK(mgx_attr_make(&every,
                           MGX_ATTRS(mgx_texts("texts", texts, 2), mgx_reals("reals", reals, 2),
                                     mgx_dims_attr("dims", dims, 2),
                                     mgx_shapes_attr("shapes", shapes, 2),
                                     mgx_shape_attr("shape", &shapes[0])),
                           &arena, &attr, &diag),
             diag);
    texts[0] = "b";
    reals[0] = 9;
    dims[0].max = 9;
    shapes[0].lens[0] = 9;
    CHECK_TEXT(print(attr),
               "every[number=7,flag=0,real=0,text=,ints={0, 0},reals={0.5, -1},texts={a, \"\"},"
               "mode=average,type=1,shape=int8_type, {2}, {1},shapes={int8_type, {2}, {1}, "
               "bool_type, {1}, {0}},dims={n[1..4], 3}]");
    CHECK_NEAR(mgx_attr_reals(&every, attr, "reals").v[1], -1, 0);
    CHECK_TEXT(mgx_attr_text(&every, attr, "text"), "");
}

CASE(escapes_are_those_of_json)
{
    const void *attr = parse("{text: \"a\\n\\t\\\\\\\"\\/\\u0041\\u00e4\\u20ac\"}");
    CHECK(attr);
    CHECK_TEXT(mgx_attr_text(&every, attr, "text"), "a\n\t\\\"/A\303\244\342\202\254");
    CHECK(!parse("{text: \"\\u00g0\"}") && !parse("{text: \"\\u0000\"}"));
    mgx_diag_clear(&diag);
}

CASE(unknown_names_are_refused)
{
    void *attr;
    CHECK_INT(mgx_attr_make(&every, MGX_ATTRS(mgx_int("axes", 1)), &arena, &attr, &diag),
              MGX_INVALID);
    CHECK_TEXT(diag.text, "No key 'axes' in every");
    CHECK(!parse("axes=1"));
    CHECK(strncmp(diag.text, "No key 'axes' in every", 22) == 0);
    mgx_diag_clear(&diag);
    CHECK(mgx_attr_make(&every, MGX_ATTRS(mgx_text("mode", "")), &arena, &attr, &diag));
    CHECK_TEXT(diag.text, "attribute 'mode' of every has no value ''");
    mgx_diag_clear(&diag);
}

CASE(relaxed_json_is_read)
{
    const void *attr =
        parse("{ # a comment\n"
              "  number: 5, \"flag\": true, real: 1e-3, // another\n"
              "  text: 'it''s', ints: [1, -2,], reals: [inf, nan, -0.5],\n"
              "  texts: [a, \"b c\", d e], mode: max, type: int8_type,\n"
              "  shape: {type: half_type, lens: [2, 3], strides: [1, 2]},\n"
              "  shapes: [{lens: [4]}], dims: [{min: 1, max: 4, optimals: [2]}, 3]}");
    CHECK(!attr); // two strings side by side are one too many
    attr = parse("{ # a comment\n"
                 "  number: 5, \"flag\": true, real: 1e-3, // another\n"
                 "  text: 'it\\'s', ints: [1, -2,], reals: [inf, nan, -0.5],\n"
                 "  texts: [a, \"b c\", d e], mode: max, type: int8_type,\n"
                 "  shape: {type: half_type, lens: [2, 3], strides: [1, 2]},\n"
                 "  shapes: [{lens: [4]}], dims: [{min: 1, max: 4, optimals: [2]}, 3], }");
    if (!attr)
        CHECK_FAIL("%s", diag.text);
    CHECK_TEXT(print(attr), "every[number=5,flag=1,real=0.001,text=\"it's\",ints={1, -2},"
                            "reals={inf, nan, -0.5},texts={a, b c, d e},mode=max,type=5,"
                            "shape=half_type, {2, 3}, {1, 2},shapes={float_type, {4}, {1}},"
                            "dims={[1..4], 3}]");
    // As newer versions of MIGraphX write them.
    attr =
        parse("{texts: [{name: tanh, operator: {}}, {operator: {alpha: [0.5, {a: b}]}, name: elu}],"
              " shape: {type: float_type, sub_shapes: [], lens: [2], strides: [1],"
              " dynamic_dimensions: [], dyn_strides: []},"
              " dims: [{range: {min: 1, max: 4}, optimals: [2], sym: {x: [1]}}, 3]}");
    if (!attr)
        CHECK_FAIL("%s", diag.text);
    CHECK(strstr(print(attr), "texts={tanh, elu}"));
    CHECK(strstr(print(attr), "shape=float_type, {2}, {1},"));
    CHECK(strstr(print(attr), "dims={[1..4], 3}"));
    CHECK(!parse("{texts: [{operator: {}}]}"));
    attr = parse("{shapes: {type: tuple_type, sub_shapes: [{type: half_type, lens: [2]},"
                 " {lens: [3], strides: [1]}], lens: []}}"); // one tuple where a list is meant
    CHECK(attr && strstr(print(attr), "shapes={half_type, {2}, {1}, float_type, {3}, {1}}"));
    attr = parse("{shapes: {\"type\": \"int8_type\", \"lens\": [5]}}");
    CHECK(attr && strstr(print(attr), "shapes={int8_type, {5}, {1}}"));
    attr = parse("number=1, ints={} , shape=float_type, {2, 2},flag=1,mode=3,type=2,real=null");
    CHECK(attr && strstr(print(attr), "number=1,flag=1,real=0,text=,ints={}"));
    CHECK(strstr(print(attr), "mode=lpnorm,type=2,shape=float_type, {2, 2}, {2, 1}"));
    CHECK(parse("") && parse("{}") && parse(" # nothing"));
}

static uint64_t state = 88172645463325252u;

static int below(int n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)(state % (uint64_t)n);
}

static const char *random_text(void)
{
    static const char bytes[] = "ab:/ ,{}[]()#\"\\'=->\n\t\001\303\244.1";
    char *text = mgx_arena_alloc(&arena, 9);
    for (int i = below(9); i > 0; i--)
        text[i - 1] = bytes[below(sizeof bytes - 1)];
    return text;
}

static struct mgx_shape random_shape(int depth)
{
    const int kind = below(depth > 2 ? 3 : 5);
    if (kind == 3 || kind == 4) {
        const int count = kind == 4 ? 1 : below(3);
        struct mgx_shape *sub = MGX_NEW_ARRAY(&arena, struct mgx_shape, count);
        for (int i = 0; i < count; i++)
            sub[i] = random_shape(depth + 1);
        return kind == 4 ? mgx_shape_sequence(sub) : mgx_shape_tuple(sub, count);
    }
    const enum mgx_type type = (enum mgx_type)below(MGX_TUPLE);
    if (kind == 2 && below(3) == 0)
        return mgx_shape_unranked(type);
    const int rank = below(4);
    struct mgx_dim *dims = MGX_NEW_ARRAY(&arena, struct mgx_dim, rank);
    int64_t strides[4];
    for (int i = 0; i < rank; i++) {
        dims[i].min = below(5);
        dims[i].max = dims[i].min + (kind == 2 ? below(3) : 0);
        dims[i].name = kind == 2 && dims[i].max != dims[i].min && below(2) ? random_text() : NULL;
        if (dims[i].name && !*dims[i].name)
            dims[i].name = NULL;
        strides[i] = 1 + below(9);
    }
    struct mgx_shape s = mgx_shape_dynamic(type, rank, dims);
    if (!s.dims && below(2))
        memcpy(s.strides, strides, (size_t)rank * sizeof *strides);
    return s;
}

static struct every *random_attr(void)
{
    struct every *a = MGX_NEW(&arena, struct every);
    a->number = (int64_t)((uint64_t)below(1 << 30) << below(34)) * (below(2) ? 1 : -1);
    a->flag = below(2);
    a->real = below(3) ? below(1000) / 8.0 : below(2) ? INFINITY : -1e-300;
    a->text = random_text();
    a->mode = below(2) ? 3 : below(2);
    a->type = below(MGX_TUPLE);
    a->shape = random_shape(0);
    const int count = below(4);
    int64_t *ints = MGX_NEW_ARRAY(&arena, int64_t, count);
    double *reals = MGX_NEW_ARRAY(&arena, double, count);
    const char **texts = MGX_NEW_ARRAY(&arena, const char *, count);
    struct mgx_shape *shapes = MGX_NEW_ARRAY(&arena, struct mgx_shape, count);
    for (int i = 0; i < count; i++) {
        ints[i] = below(100) - 50;
        reals[i] = below(100) / 4.0;
        texts[i] = random_text();
        shapes[i] = random_shape(0);
    }
    a->ints = (struct mgx_ints){ints, count};
    a->reals = (struct mgx_doubles){reals, count};
    a->texts = (struct mgx_strings){texts, count};
    a->shapes = (struct mgx_shapes){shapes, count};
    const struct mgx_shape s = random_shape(9);
    if (s.dims)
        a->dims = (struct mgx_dims){s.dims, s.rank};
    return a;
}

// What is printed reads back as the same text; JSON, which keeps all digits, as an equal struct.
CASE(random_attributes_survive_both_forms)
{
    for (int round = 0; round < 3000; round++) {
        struct every *a = random_attr();
        char *text = mgx_arena_strdup(&arena, print(a));
        char *open = strchr(text, '[') + 1;
        open[strlen(open) - 1] = '\0';
        const void *b = parse(open);
        if (!b)
            CHECK_FAIL("%s\n%s", open, diag.text);
        open[strlen(open)] = ']';
        CHECK_TEXT(print(b), text);
        const char *json = mgx_arena_strdup(&arena, print_json(a));
        const void *c = parse(json);
        if (!c)
            CHECK_FAIL("%s\n%s", json, diag.text);
        CHECK_TEXT(print_json(c), json);
        CHECK(mgx_attr_equal(&every, a, c));
        CHECK_INT(mgx_attr_hash(&every, a, 1), mgx_attr_hash(&every, c, 1));
        void *d;
        CHECK_OK(mgx_attr_copy(&every, c, &arena, &d, &diag), diag);
        CHECK(mgx_attr_equal(&every, c, d));
        ((struct every *)d)->number++;
        CHECK(!mgx_attr_equal(&every, c, d));
        CHECK(mgx_attr_hash(&every, c, 1) != mgx_attr_hash(&every, d, 1));
    }
}

CASE(bad_text_is_refused_with_its_place)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"number=x", "line 1, column 8: expected an integer but found 'x'"},
        {"number=99999999999999999999", "line 1, column 8: expected an integer"},
        {"number=1 2", "line 1, column 10: expected ',' but found '2'"},
        {"ints={1,\n 2", "line 2, column 3: expected ',' or '}' but the text ends"},
        {"mode=4", "line 1, column 6: attribute 'mode' has no value 4"},
        {"mode=2", "line 1, column 6: attribute 'mode' has no value 2"},
        {"type=tuple", "attribute 'type' cannot be tuple_type"},
        {"mode=mean", "line 1, column 6: attribute 'mode' has no value 'mean'"},
        {"type=int9", "line 1, column 6: expected a type but found 'int9'"},
        {"type=99", "type number 99 is not in 0..28"},
        {"text=\"abc", "the string that starts here does not end"},
        {"{number: 1", "expected ',' or '}' but the text ends"},
        {"{number: 1} x", "expected the end of the attributes but found 'x'"},
        {"shape=float_type, {1, 2}, {1}", "a shape has 2 lengths but 1 strides"},
        {"shape=float_type, {-1}, {1}", "axis 0 of a shape has length -1"},
        {"shape=float_type, {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}", "rank 17 is above the limit"},
        {"shape=float_type, {1099511627776, 1099511627776}", "a shape of rank 2 is too large"},
        {"dims={[4..1]}", "the range [4..1] is empty"},
        {"=1", "expected the name of an attribute"},
        {"texts={{name: tanh, operator: {a: -)", "expected '}' or ']' but the text ends"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK(!parse(rows[i].text));
        if (!strstr(diag.text, rows[i].message))
            CHECK_FAIL("%s\n  gives %s\n  expected %s", rows[i].text, diag.text, rows[i].message);
    }
}

CASE(deep_and_cut_texts_end)
{
    static char deep[100000];
    memset(deep, '[', sizeof deep - 1);
    memcpy(deep, "shape=", 6);
    CHECK(!parse(deep));
    CHECK(strstr(diag.text, "nested deeper than 16"));
    const char *text = print_json(random_attr());
    const size_t size = strlen(text);
    for (size_t cut = 1; cut < size; cut++) {
        void *attr;
        char *exact = malloc(cut); // so that a read past the end is seen
        memcpy(exact, text, cut);
        CHECK(mgx_attr_parse(&every, exact, cut, &arena, &attr, NULL) != MGX_OK);
        free(exact);
    }
}

TEST_MAIN(ROW(defaults_print_as_migraphx_does) ROW(a_list_of_attributes_is_copied_and_converted)
              ROW(lists_of_every_kind_are_copied) ROW(escapes_are_those_of_json)
                  ROW(unknown_names_are_refused) ROW(relaxed_json_is_read)
                      ROW(random_attributes_survive_both_forms)
                          ROW(bad_text_is_refused_with_its_place) ROW(deep_and_cut_texts_end))
