// SPDX-License-Identifier: MIT
// The text of recipes: what is written reads back the same; every file that was cut off or flipped
// is refused with a message, none is taken for another; edited files without a checksum are read.
#include "quant/recipe.h"

#include "check.h"
#include "op/op.h"

static const char settings[] = "migraphx quantization 1\ntype int8_type\nmethod entropy\n"
                               "activations asymmetric\nweights whole\nbudget top 0.01 0.0025\n";
static const char entries[] = "instruction \"main:convolution:0\" int8_type\n"
                              "    origin \"conv 1 \\\"first\\\"\"\n"
                              "    input 0 -0.10000000000000001 2.5\n"
                              "    means {0.5, -1, 3e-05}\n"
                              "    cost 0.001 12.5\n"
                              "instruction \"main:dot:7\" float_type\n"
                              "    why \"an error of 0.2 alone\"\n"
                              "instruction \"main:dot:10\" half_type\n"
                              "    why \"it would not be faster\"\n"
                              "instruction \"main:dot:8\" int8_type\n"
                              "    input 0 -1 1\n    input 1 0 3\n    smooth {1, 2, 0.25}\n";

static bool parse(struct mgx_recipe *out, const char *text, size_t size, struct mgx_diag *diag)
{
    mgx_diag_clear(diag);
    return mgx_recipe_parse(out, text, size, diag) == MGX_OK;
}

// The settings and entries, without a checksum, as written again.
static struct mgx_str written(const char *end)
{
    struct mgx_str text = {0}, out = {0};
    struct mgx_recipe r;
    struct mgx_diag diag;
    mgx_str_printf(&text, "%s%s%s", settings, entries, end);
    if (parse(&r, text.text, text.size, &diag)) {
        mgx_recipe_print(&out, &r);
        mgx_recipe_fini(&r);
    } else
        printf("%s\n", diag.text);
    mgx_str_fini(&text);
    return out;
}

CASE(what_is_read_is_what_was_written)
{
    struct mgx_str text = written("end"), again = {0};
    struct mgx_recipe r, copy;
    struct mgx_diag diag;
    CHECK(text.size > 0);
    CHECK(parse(&r, text.text, text.size, &diag));
    CHECK_INT(r.count, 4);
    CHECK(r.asymmetric && r.per_tensor && r.has_budget);
    CHECK_INT(r.method, MGX_QUANT_ENTROPY);
    CHECK_INT(r.metric, MGX_QUANT_TOP);
    CHECK_NEAR(r.error, 0.0025, 0);
    const struct mgx_recipe_entry *e = mgx_recipe_find(&r, "main:convolution:0");
    CHECK(e && e->in[0].known && !e->in[1].known);
    CHECK_TEXT(e->origin, "conv 1 \"first\"");
    CHECK_NEAR(e->in[0].low, -0.1, 0);
    CHECK_NEAR(e->in[0].high, 2.5, 0);
    CHECK_INT(e->means.count, 3);
    CHECK_NEAR(e->means.v[2], 3e-5, 0);
    CHECK_NEAR(e->gain, 12.5, 0);
    e = mgx_recipe_find(&r, "main:dot:8");
    CHECK(e && e->in[1].known && e->smooth.count == 3 && e->smooth.v[2] == 0.25);
    CHECK_TEXT(mgx_recipe_find(&r, "main:dot:7")->why, "an error of 0.2 alone");
    CHECK(!mgx_recipe_find(&r, "main:dot:9"));
    CHECK_OK(mgx_recipe_copy(&copy, &r, &diag), diag);
    mgx_recipe_fini(&r);
    mgx_recipe_print(&again, &copy);
    CHECK_TEXT(again.text, text.text);
    mgx_recipe_fini(&copy);
    mgx_str_fini(&again);
    mgx_str_fini(&text);
}

CASE(cut_off_files_are_refused)
{
    struct mgx_str text = written("end");
    struct mgx_recipe r;
    struct mgx_diag diag;
    // The last byte is a newline; before it the checksum is short, or not there at all.
    for (size_t size = 0; size + 1 < text.size; size++) {
        char *part = malloc(size + 1); // no byte behind it
        memcpy(part, text.text, size);
        const bool good = parse(&r, part, size, &diag);
        free(part);
        // `end` and nothing behind it is how an edited file ends.
        const char *end = strstr(text.text, "\nend ") + 4;
        const bool edited = size == (size_t)(end - text.text) || text.text + size == end + 1;
        if (good) {
            mgx_recipe_fini(&r);
            CHECK(edited);
            continue;
        }
        CHECK(diag.text[0] != '\0');
    }
    mgx_str_fini(&text);
}

CASE(flipped_files_are_refused)
{
    struct mgx_str text = written("end");
    struct mgx_recipe r;
    struct mgx_diag diag;
    const size_t sum = (size_t)(strstr(text.text, "\nend ") - text.text) + 5;
    for (size_t i = 0; i + 1 < text.size; i++)
        for (int bit = 0; bit < 8; bit++) {
            text.text[i] ^= (char)(1 << bit);
            const bool good = parse(&r, text.text, text.size, &diag);
            text.text[i] ^= (char)(1 << bit);
            if (good) { // the blank before the checksum, as another blank
                mgx_recipe_fini(&r);
                CHECK(i == sum - 1);
                continue;
            }
            CHECK(diag.text[0] != '\0');
        }
    mgx_str_fini(&text);
}

CASE(messages_say_where)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"", "it does not start with 'migraphx quantization 1'"},
        {"migraphx quantization 1\n",
         "line 2, column 1: expected 'instruction' or 'end' but the text ends"},
        {"migraphx quantization 1\ntype int32_type end",
         "line 2, column 5: products are not quantized to int32_type"},
        {"migraphx quantization 1\ntype half_type\nend",
         "line 2, column 5: products are not quantized to half_type"},
        {"migraphx quantization 1\ninstruction a int8_type input 2 0 1 end",
         "line 2, column 30: a product has inputs 0 and 1, not 2"},
        {"migraphx quantization 1\ninstruction a int8_type input 0 1 2 end",
         "line 2, column 30: a range from 1 to 2 does not hold 0"},
        {"migraphx quantization 1\ninstruction a int8_type input 0 -inf 2 end",
         "line 2, column 37: a number is not finite"},
        {"migraphx quantization 1\ninstruction a int8_type smooth {1, 0} end",
         "line 2, column 31: number 1 of the list is 0"},
        {"migraphx quantization 1\ninstruction a int8_type instruction a int8_type end",
         "line 2, column 36: a comes twice"},
        {"migraphx quantization 1\nend 12", "the file is not what was written: its checksum is "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct mgx_recipe r;
        struct mgx_diag diag;
        CHECK(!parse(&r, rows[i].text, strlen(rows[i].text), &diag));
        diag.text[strlen(rows[i].message)] = '\0';
        CHECK_TEXT(diag.text, rows[i].message);
    }
}

CASE(programs_keep_recipes)
{
    static const char program[] = "module: \"main\"\nx = @param:x -> float_type, {2}, {1}\n"
                                  "y = relu(x)\nz = @return(y)\n";
    struct mgx_str text = written("end"), kept = {0}, printed = {0}, again = {0};
    struct mgx_program *p = NULL, *q = NULL;
    struct mgx_recipe r, found;
    struct mgx_diag diag = {0};
    CHECK(parse(&r, text.text, text.size, &diag));
    CHECK_OK(mgx_program_parse(&p, &mgx_ops, program, strlen(program), &diag), diag);
    CHECK_INT(mgx_recipe_of(&found, p, &diag), MGX_NOT_FOUND);
    mgx_diag_clear(&diag);
    CHECK_OK(mgx_recipe_attach(&r, p, &diag), diag);
    CHECK_OK(mgx_recipe_attach(&r, p, &diag), diag); // in the place of the first
    CHECK_OK(mgx_program_verify(p, &diag), diag);
    mgx_program_print(&printed, p);
    CHECK_OK(mgx_program_parse(&q, &mgx_ops, printed.text, printed.size, &diag), diag);
    mgx_program_print(&again, q);
    CHECK_TEXT(again.text, printed.text);
    CHECK_OK(mgx_recipe_of(&found, q, &diag), diag);
    mgx_recipe_print(&kept, &found);
    CHECK_TEXT(kept.text, text.text);
    mgx_recipe_fini(&found);
    mgx_recipe_fini(&r);
    mgx_program_destroy(p);
    mgx_program_destroy(q);
    mgx_str_fini(&text);
    mgx_str_fini(&kept);
    mgx_str_fini(&printed);
    mgx_str_fini(&again);
}

TEST_MAIN(ROW(what_is_read_is_what_was_written) ROW(cut_off_files_are_refused)
              ROW(flipped_files_are_refused) ROW(messages_say_where) ROW(programs_keep_recipes))
