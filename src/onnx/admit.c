// SPDX-License-Identifier: MIT
// Which operators take anything but numbers. Rules are written for numbers; a hostile model hands
// strings to a convolution. By the standard's type constraints a few dozen operators take strings,
// complex numbers, sequences or optionals; all others are spared them here, in one place.
#include <string.h>

#include "base/size.h"
#include "onnx/graph.h"

enum { TEXT = 1, COMPLEX = 2, SEQUENCE = 4, OPTIONAL = 8 };

struct row {
    const char *op;
    int takes;
};

static const struct row rows[] = {
    {"ArrayFeatureExtractor", TEXT},
    {"BitCast", COMPLEX},
    {"Cast", TEXT},
    {"CastLike", TEXT},
    {"CategoryMapper", TEXT},
    {"CenterCropPad", TEXT | COMPLEX},
    {"Col2Im", COMPLEX},
    {"Compress", TEXT | COMPLEX},
    {"Concat", TEXT | COMPLEX},
    {"ConcatFromSequence", SEQUENCE},
    {"DepthToSpace", TEXT | COMPLEX},
    {"Equal", TEXT},
    {"Expand", TEXT | COMPLEX},
    {"Flatten", TEXT | COMPLEX},
    {"Gather", TEXT | COMPLEX},
    {"GatherElements", TEXT | COMPLEX},
    {"GatherND", TEXT | COMPLEX},
    {"Identity", TEXT | COMPLEX | SEQUENCE | OPTIONAL},
    {"LabelEncoder", TEXT},
    {"Loop", TEXT | COMPLEX | SEQUENCE | OPTIONAL},
    {"OneHot", TEXT | COMPLEX},
    {"OneHotEncoder", TEXT},
    {"Optional", TEXT | COMPLEX | SEQUENCE},
    {"OptionalGetElement", TEXT | COMPLEX | SEQUENCE | OPTIONAL},
    {"OptionalHasElement", TEXT | COMPLEX | SEQUENCE | OPTIONAL},
    {"Pad", TEXT | COMPLEX},
    {"RegexFullMatch", TEXT},
    {"Reshape", TEXT | COMPLEX},
    {"ReverseSequence", TEXT | COMPLEX},
    {"Scan", TEXT | COMPLEX},
    {"Scatter", TEXT | COMPLEX},
    {"ScatterElements", TEXT | COMPLEX},
    {"ScatterND", TEXT | COMPLEX},
    {"SequenceAt", SEQUENCE},
    {"SequenceConstruct", TEXT | COMPLEX},
    {"SequenceErase", SEQUENCE},
    {"SequenceInsert", TEXT | COMPLEX | SEQUENCE},
    {"SequenceLength", SEQUENCE},
    {"SequenceMap", TEXT | COMPLEX | SEQUENCE},
    {"Shape", TEXT | COMPLEX},
    {"Size", TEXT | COMPLEX},
    {"Slice", TEXT | COMPLEX},
    {"SpaceToDepth", TEXT | COMPLEX},
    {"Split", TEXT | COMPLEX},
    {"SplitToSequence", TEXT | COMPLEX},
    {"Squeeze", TEXT | COMPLEX},
    {"StringConcat", TEXT},
    {"StringNormalizer", TEXT},
    {"StringSplit", TEXT},
    {"TensorScatter", TEXT | COMPLEX},
    {"TfIdfVectorizer", TEXT},
    {"Tile", TEXT | COMPLEX},
    {"Transpose", TEXT | COMPLEX},
    {"Trilu", TEXT | COMPLEX},
    {"Unique", TEXT | COMPLEX},
    {"Unsqueeze", TEXT | COMPLEX},
    {"Where", TEXT | COMPLEX},
};

static int kind_of(enum mgx_type type)
{
    return type == MGX_STRING          ? TEXT
           : mgx_type_is_complex(type) ? COMPLEX
           : type == MGX_SEQUENCE      ? SEQUENCE
           : type == MGX_TUPLE         ? OPTIONAL
                                       : 0;
}

static int takes(const char *op)
{
    for (int i = 0; i < MGX_COUNT(rows); i++)
        if (strcmp(rows[i].op, op) == 0)
            return rows[i].takes;
    return 0;
}

enum mgx_status mgx_onnx_admit(struct mgx_onnx_node *n)
{
    int kinds = 0;
    for (int i = 0; i < n->in_count; i++)
        kinds |= n->in[i] ? kind_of(n->in[i]->shape.type) : 0;
    const int allowed = kinds ? takes(n->op_type) : 0; // numbers alone need no look-up
    for (int i = 0; kinds & ~allowed && i < n->in_count; i++)
        if (n->in[i] && kind_of(n->in[i]->shape.type) & ~allowed)
            return mgx_onnx_invalid(n, "input %d is of type %s, which the operator does not take",
                                    i, mgx_type_name(n->in[i]->shape.type));
    return MGX_OK;
}
