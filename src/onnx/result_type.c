// SPDX-License-Identifier: MIT
// Element types of a node's results by the ONNX standard, for nodes that are imported only when
// they run. Operators that are not listed give the type of their first input.
#include <string.h>

#include "base/size.h"
#include "onnx/graph.h"

// One letter per result, the last one for all that follow:
//   0-9  type of that input            e  type of the members of input 0, a sequence
//   b f i l t u  bool float int32 int64 string uint8
//   @    named by the attribute (a TensorProto type number), else of the letter after it
//   s    a sequence of input 0's type  q  a sequence like input 0
struct row {
    const char *op, *codes, *attribute;
};

static const struct row rows[] = {
    {"And", "b", NULL},
    {"ArgMax", "l", NULL},
    {"ArgMin", "l", NULL},
    {"Attention", "0020", NULL},
    {"BatchNormalization", "03", NULL},
    {"Bernoulli", "@0", "dtype"},
    {"BitCast", "@0", "to"},
    {"BlackmanWindow", "@f", "output_datatype"},
    {"Cast", "@f", "to"},
    {"CastLike", "1", NULL},
    {"CategoryMapper", "l", NULL},
    {"ConcatFromSequence", "e", NULL},
    {"ConstantOfShape", "f", NULL},
    {"ConvInteger", "i", NULL},
    {"DequantizeLinear", "@1", "output_dtype"},
    {"Dropout", "0b", NULL},
    {"DynamicQuantizeLinear", "ufu", NULL},
    {"EmbedLayerNormalization", "2i2", NULL},
    {"Equal", "b", NULL},
    {"EyeLike", "@0", "dtype"},
    {"GatherBlockQuantized", "2", NULL},
    {"Greater", "b", NULL},
    {"GreaterOrEqual", "b", NULL},
    {"HammingWindow", "@f", "output_datatype"},
    {"HannWindow", "@f", "output_datatype"},
    {"ImageDecoder", "u", NULL},
    {"IsInf", "b", NULL},
    {"IsNaN", "b", NULL},
    {"LayerNormalization", "0f", NULL},
    {"Less", "b", NULL},
    {"LessOrEqual", "b", NULL},
    {"MatMulInteger", "i", NULL},
    {"MatMulIntegerToFloat", "2", NULL},
    {"MaxPool", "0l", NULL},
    {"MelWeightMatrix", "@f", "output_datatype"},
    {"Multinomial", "@i", "dtype"},
    {"NonMaxSuppression", "l", NULL},
    {"NonZero", "l", NULL},
    {"Not", "b", NULL},
    {"OneHot", "2", NULL},
    {"OptionalGetElement", "e", NULL},
    {"OptionalHasElement", "b", NULL},
    {"Or", "b", NULL},
    {"QAttention", "2", NULL},
    {"QGemm", "8", NULL},
    {"QLinearConcat", "1", NULL},
    {"QLinearConv", "7", NULL},
    {"QLinearMatMul", "7", NULL},
    {"QuantizeLinear", "@2", "output_dtype"},
    {"RMSNormalization", "1", NULL},
    {"RandomNormal", "@f", "dtype"},
    {"RandomNormalLike", "@0", "dtype"},
    {"RandomUniform", "@f", "dtype"},
    {"RandomUniformLike", "@0", "dtype"},
    {"RegexFullMatch", "b", NULL},
    {"SequenceAt", "e", NULL},
    {"SequenceConstruct", "s", NULL},
    {"SequenceErase", "q", NULL},
    {"SequenceInsert", "q", NULL},
    {"SequenceLength", "l", NULL},
    {"Shape", "l", NULL},
    {"SimplifiedLayerNormalization", "1f", NULL},
    {"Size", "l", NULL},
    {"SkipLayerNormalization", "0ff0", NULL},
    {"SkipSimplifiedLayerNormalization", "0ff0", NULL},
    {"SplitToSequence", "s", NULL},
    {"StringSplit", "tl", NULL},
    {"TfIdfVectorizer", "f", NULL},
    {"TopK", "0l", NULL},
    {"TreeEnsemble", "0", NULL},
    {"TreeEnsembleRegressor", "f", NULL},
    {"Unique", "0l", NULL},
    {"Where", "1", NULL},
    {"Xor", "b", NULL},
};

static const struct row *find_row(const char *op)
{
    for (int i = 0; i < MGX_COUNT(rows); i++)
        if (strcmp(rows[i].op, op) == 0)
            return &rows[i];
    return NULL;
}

static enum mgx_type type_of_input(const struct mgx_onnx_node *n, int i)
{
    const struct mgx_ins *in = mgx_onnx_in(n, i);
    return in ? in->shape.type : MGX_FLOAT;
}

static enum mgx_type element_of_input(const struct mgx_onnx_node *n, int i)
{
    const struct mgx_ins *in = mgx_onnx_in(n, i);
    if (!in)
        return MGX_FLOAT;
    return in->shape.sub_count ? in->shape.sub[0].type : in->shape.type;
}

// The type an attribute names, if it does.
static bool type_of_attribute(const struct mgx_onnx_node *n, const char *name, enum mgx_type *out)
{
    const int64_t number = mgx_onnx_has(n, name) ? mgx_onnx_int(n, name, 0) : 0;
    struct mgx_diag ignored;
    mgx_diag_clear(&ignored);
    return number && mgx_onnx_type_of(number, out, &ignored) == MGX_OK;
}

static enum mgx_type type_of_code(const struct mgx_onnx_node *n, char code, bool *sequence)
{
    switch (code) {
    case 'b':
        return MGX_BOOL;
    case 'f':
        return MGX_FLOAT;
    case 'i':
        return MGX_INT32;
    case 'l':
        return MGX_INT64;
    case 't':
        return MGX_STRING;
    case 'u':
        return MGX_UINT8;
    case 'q':
        *sequence = true;
        return element_of_input(n, 0);
    case 's':
        *sequence = true;
        return type_of_input(n, 0);
    case 'e':
        return element_of_input(n, 0);
    default:
        return type_of_input(n, code - '0');
    }
}

// Loop, If and Scan: what their body says.
static bool type_of_body(const struct mgx_onnx_node *n, int i, enum mgx_type *type, bool *sequence)
{
    if (strcmp(n->op_type, "If") == 0)
        return mgx_onnx_declared_type(n, "then_branch", i, type, sequence);
    if (strcmp(n->op_type, "Loop") == 0)
        return mgx_onnx_declared_type(n, "body", i + 1, type, sequence); // after the condition
    return strcmp(n->op_type, "Scan") == 0 && mgx_onnx_declared_type(n, "body", i, type, sequence);
}

enum mgx_type mgx_onnx_result_type(const struct mgx_onnx_node *n, int i, bool *sequence)
{
    const struct row *row = find_row(n->op_type);
    enum mgx_type type;
    *sequence = false;
    if (type_of_body(n, i, &type, sequence))
        return type;
    const char *codes = row ? row->codes : "0";
    if (codes[0] == '@') {
        if (type_of_attribute(n, row->attribute, &type))
            return type;
        return type_of_code(n, codes[1], sequence);
    }
    const int last = (int)strlen(codes) - 1;
    return type_of_code(n, codes[i < last ? i : last], sequence);
}
