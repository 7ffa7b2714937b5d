// SPDX-License-Identifier: MIT
// The table of scalar operators as code generators see it: codes, arities, and texts that keep to
// the language that C, CUDA C and OpenCL C share. (Values are tested by cases/pointwise.txt.)
#include "op/pointwise.h"

#include <ctype.h>

#include "check.h"
#include "op/op.h"

// What a text may name: operands, types, and functions that every one of the languages has.
static const char *const words[] = {
    "x",     "y",     "z",     "copysign", "a",     "b",    "i64",   "u64",  "acos",
    "acosh", "asin",  "asinh", "atan",     "atanh", "ceil", "cos",   "cosh", "erf",
    "exp",   "expm1", "fabs",  "floor",    "fmod",  "log",  "log1p", "log2", "pow",
    "rint",  "sin",   "sinh",  "sqrt",     "tan",   "tanh", "trunc", NULL,
};

static bool known_word(const char *text, size_t size)
{
    for (int i = 0; words[i]; i++)
        if (strlen(words[i]) == size && memcmp(words[i], text, size) == 0)
            return true;
    // a helper: its definition must be in the prelude
    char call[64];
    snprintf(call, sizeof call, " %.*s(", (int)size, text);
    return size > 3 && memcmp(text, "pw_", 3) == 0 && strstr(mgx_pointwise_prelude, call);
}

// The first word that is not allowed, or NULL.
static const char *foreign_word(const char *text)
{
    for (const char *p = text; p && *p;) {
        if (!isalpha((unsigned char)*p) && *p != '_') {
            p++;
            continue;
        }
        size_t n = 0;
        while (isalnum((unsigned char)p[n]) || p[n] == '_')
            n++;
        if (!known_word(p, n))
            return p;
        p += n;
    }
    return NULL;
}

CASE(texts_keep_to_the_common_language)
{
    int count;
    const struct mgx_op *const *ops = mgx_op_all(&count);
    for (int i = 0; i < count; i++) {
        const struct mgx_pointwise *row = mgx_pointwise_find(ops[i]);
        const char *texts[] = {row ? row->real : NULL, row ? row->sint : NULL,
                               row ? row->uint : NULL};
        for (int k = 0; k < 3; k++)
            if (foreign_word(texts[k]))
                CHECK_FAIL("%s: \"%s\" at \"%s\"", ops[i]->name, texts[k], foreign_word(texts[k]));
    }
}

CASE(rows_agree_with_their_operators)
{
    int count, rows = 0;
    bool seen[MGX_PW_COUNT] = {false};
    const struct mgx_op *const *ops = mgx_op_all(&count);
    for (int i = 0; i < count; i++) {
        const struct mgx_pointwise *row = mgx_pointwise_find(ops[i]);
        if (!row)
            continue;
        rows++;
        CHECK(!seen[row->code]);
        seen[row->code] = true;
        CHECK_INT(row->arity, ops[i]->in_min);
        CHECK_INT(row->arity, ops[i]->in_max);
        CHECK(ops[i]->flags & MGX_OP_POINTWISE);
        CHECK(row->real || (row->sint && row->uint));
        CHECK_INT(row->attrs > 0, ops[i]->attr_size == sizeof(struct mgx_line_attr));
    }
    CHECK_INT(rows, MGX_PW_COUNT);
    CHECK_INT(mgx_pointwise_find(&mgx_op_relu)->code, MGX_PW_relu);
    CHECK(mgx_pointwise_find(&mgx_op_where)->code == MGX_PW_where);
    CHECK(!mgx_pointwise_find(&mgx_op_concat));
    CHECK(!mgx_pointwise_find(&mgx_op_convert));
}

CASE(texts_are_not_expanded)
{
    CHECK_TEXT(mgx_pointwise_find(&mgx_op_abs)->real, "fabs(x)");
    CHECK_TEXT(mgx_pointwise_find(&mgx_op_relu)->real, "x < 0 ? 0 : x");
    CHECK(strstr(mgx_pointwise_prelude, "PW_FN i64 pw_div"));
}

TEST_MAIN(ROW(texts_keep_to_the_common_language) ROW(rows_agree_with_their_operators)
              ROW(texts_are_not_expanded))
