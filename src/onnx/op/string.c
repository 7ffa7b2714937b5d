// SPDX-License-Identifier: MIT
// Operators on strings, TfIdfVectorizer, and Tokenizer of com.microsoft.
#include <string.h>

#include "onnx/build.h"

static enum mgx_status string_concat(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    n->out[0] = mgx_build_binary(n, &mgx_op_string_concat, n->in[0], n->in[1]);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_string_concat = {
    .name = "StringConcat", .import = string_concat, .takes = MGX_ONNX_TEXT};

static enum mgx_status string_split(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    struct mgx_ins *both =
        mgx_build_emit_n(n, &mgx_op_string_split,
                         MGX_ATTRS(mgx_text("delimiter", mgx_onnx_text(n, "delimiter", "")),
                                   mgx_int("maxsplit", mgx_onnx_int(n, "maxsplit", -1))),
                         n->in, 1);
    n->out[0] = mgx_build_member(n, both, 0);
    if (n->out_count > 1)
        n->out[1] = mgx_build_member(n, both, 1);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_string_split = {
    .name = "StringSplit", .import = string_split, .takes = MGX_ONNX_TEXT, .result = "tl"};

static enum mgx_status string_normalizer(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    const struct mgx_strings stop = mgx_onnx_texts(n, "stopwords");
    n->out[0] = mgx_build_emit_n(
        n, &mgx_op_string_normalizer,
        MGX_ATTRS(mgx_text("case_change_action", mgx_onnx_text(n, "case_change_action", "NONE")),
                  mgx_int("is_case_sensitive", mgx_onnx_int(n, "is_case_sensitive", 0) != 0),
                  mgx_texts("stopwords", stop.v, stop.count)),
        n->in, 1);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_string_normalizer = {
    .name = "StringNormalizer", .import = string_normalizer, .takes = MGX_ONNX_TEXT};

static enum mgx_status regex_full_match(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    n->out[0] =
        mgx_build_emit_n(n, &mgx_op_regex_full_match,
                         MGX_ATTRS(mgx_text("pattern", mgx_onnx_text(n, "pattern", ""))), n->in, 1);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_regex_full_match = {
    .name = "RegexFullMatch", .import = regex_full_match, .takes = MGX_ONNX_TEXT, .result = "b"};

static enum mgx_status tfidf(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    const struct mgx_ints counts = mgx_onnx_ints(n, "ngram_counts");
    const struct mgx_ints indexes = mgx_onnx_ints(n, "ngram_indexes");
    const struct mgx_ints numbers = mgx_onnx_ints(n, "pool_int64s");
    const struct mgx_strings words = mgx_onnx_texts(n, "pool_strings");
    const struct mgx_doubles weights = mgx_onnx_reals(n, "weights");
    n->out[0] = mgx_build_emit_n(
        n, &mgx_op_tfidf_vectorizer,
        MGX_ATTRS(mgx_text("mode", mgx_onnx_text(n, "mode", "TF")),
                  mgx_int("min_gram_length", mgx_onnx_int(n, "min_gram_length", 1)),
                  mgx_int("max_gram_length", mgx_onnx_int(n, "max_gram_length", 1)),
                  mgx_int("max_skip_count", mgx_onnx_int(n, "max_skip_count", 0)),
                  mgx_ints("ngram_counts", counts.v, counts.count),
                  mgx_ints("ngram_indexes", indexes.v, indexes.count),
                  mgx_ints("pool_int64s", numbers.v, numbers.count),
                  mgx_texts("pool_strings", words.v, words.count),
                  mgx_reals("weights", weights.v, weights.count)),
        n->in, 1);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_tfidf_vectorizer = {
    .name = "TfIdfVectorizer", .import = tfidf, .takes = MGX_ONNX_TEXT, .result = "f"};

static enum mgx_status tokenizer(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    const struct mgx_strings separators = mgx_onnx_texts(n, "separators");
    const char *expression = mgx_onnx_text(n, "tokenexp", "");
    const int64_t least = mgx_onnx_int(n, "mincharnum", 1);
    const bool each = strcmp(expression, ".") == 0 ||
                      (separators.count == 1 && !separators.v[0][0] && !expression[0]);
    if ((separators.count > 0) == (expression[0] != 0))
        return mgx_node_invalid(n, "%d separators, and an expression \"%s\"", separators.count,
                                expression);
    if (least < 1 || (each && least > 1))
        return mgx_node_invalid(n, "mincharnum is %lld", (long long)least);
    n->out[0] = mgx_build_emit_n(n, &mgx_op_tokenizer,
                                 MGX_ATTRS(mgx_texts("separators", separators.v, separators.count),
                                           mgx_text("tokenexp", expression),
                                           mgx_text("pad_value", mgx_onnx_text(n, "pad_value", "")),
                                           mgx_int("mincharnum", least),
                                           mgx_int("mark", mgx_onnx_int(n, "mark", 0) != 0)),
                                 n->in, 1);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_tokenizer = {
    .name = "Tokenizer", .domain = "com.microsoft", .import = tokenizer, .takes = MGX_ONNX_TEXT};
