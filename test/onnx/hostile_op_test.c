// SPDX-License-Identifier: MIT
// Hostile operators: attributes and constants that no honest exporter writes, and indices that are
// hostile only when the model runs. Each row must end in an error with a text, at import or at run
// (rows marked `runs` are odd but legal), on every target; none may crash, hang or take memory for
// what it promises.
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "import.h"
#include "targets/target.h"
#include "tiny.h"

enum verdict { REFUSED, RUNS, EITHER };

struct row {
    enum verdict verdict;
    const char *model;
    int64_t fill; // value of every integer input at run time; floats get 0.5
};

// What the user reads, word for word, for mistakes that are made often.
static const struct {
    const char *model, *text;
} told[] = {
    {"Cast(x:f[2])", "attribute \"to\" is missing"},
    {"BatchNormalization(x:f[1,4,2], s:f[4], b:f[3], m:f[4], v:f[4])",
     "bias has 3 elements for 4 channels"},
    {"Add(x:f[2,5], z:f[3,5])", "shapes {2, 5} and {3, 5} do not broadcast"},
    {"Conv(x:f[1,4,8,8], w:f[8,3,3,3])", "input channels (4) != weights channels (3) * group (1)"},
    {"MatMul(x:f[2,5], w:f[4,3])", "input 0 is {2, 5}, input 1 is {4, 3}"},
    {"Reshape(x:f[2,5], s:i{3,-1})", "10 elements cannot be divided by 3"},
    {"Concat(x:f[2,5], z:f[3,5]) axis=1", "input 0 is {2, 5}, input 1 is {3, 5}"},
    {"Cast(x:f[2]) ->0", "attribute \"to\" is missing"}, // though nobody reads it
    {"SoftmaxCrossEntropyLoss(x:f[4,4,2,1], t:j[4,1,2])",
     "labels {4, 1, 2} do not fit scores {4, 4, 2, 1}"},
    {"SoftmaxCrossEntropyLoss(x:f[2,4], t:j[1]) reduction='none'",
     "labels {1} do not fit scores {2, 4}"},
    {"NegativeLogLikelihoodLoss(x:f[2,4], t:j[2], w:f[3])", "weights {3} do not fit scores {2, 4}"},
    {"com.microsoft.MultiHeadAttention(q:f[1,2,4], k:f[1,2,4], v:f[1,2,4], b:f[13]) num_heads=2",
     "the bias has 13 elements for 12 channels"},
    {"com.microsoft.MultiHeadAttention(q:f[1,2,4], k:f[1,2,4], v:f[1,2,4], b:f[12], -, "
     "a:f[2,2,2,2]) num_heads=2",
     "attention_bias has 2 batch for 1"},
    {"com.microsoft.MultiHeadAttention(q:f[1,1,4], k:f[1,1,4], v:f[2,1,4]) num_heads=2",
     "a batch of 1 queries, 1 keys and 2 values"},
    {"com.microsoft.MultiHeadAttention(q:f[1,1,4], k:f[1,1,4], v:f[1,1,4], -, -, -, "
     "p:f[1,2,3,2], r:f[1,2,3,2], n:f[1]) num_heads=2",
     "past_sequence_length is of type float_type"},
    {"Conv(x:f[1,3,8,8], w:f[1,3,1,1]) auto_pad='SAME' pads=[0,0,1,1,0,0,1,1]",
     "pads has 8 entries, expected 4"},
    {"com.microsoft.RotaryEmbedding(x:f[1,2,18], p:i[1,2], c:f[4,3], s:f[4,3]) num_heads=3 "
     "rotary_embedding_dim=8",
     "rotary_embedding_dim is 8, but the caches turn 6 entries"},
    {"com.microsoft.RotaryEmbedding(x:f[2,2,18], p:i[1,1], c:f[4,3], s:f[4,3])",
     "positions {1, 1} do not fit an input of {2, 2, 18}"},
    {"com.microsoft.CausalConvWithState(x:f[1,3,5], w:f[3,1,4], -, p:f[1,2,3,16])",
     "past_state, input 3, has rank 4, not 3"},
    {"com.microsoft.CausalConvWithState(x:f[1,3,5], w:f[3,1,4,1])", "weight, input 1, has rank 4"},
    {"GroupNormalization(x:f[1,4,3], s:f[1], b:f[2]) num_groups=2 @19",
     "scale of rank 1 has 1 elements for 2 groups"},
    {"Einsum(x:f[3,3,3], z:f[3,3,3]) equation='...ii,...jj->ij'",
     "the ellipsis stands for 1 axes, the result has none"},
    {"com.microsoft.SkipLayerNormalization(x:f[2,2,2,4], s:f[2,2,4], g:f[2,4])",
     "gamma {2, 4} do not fit an input of {2, 2, 2, 4}"},
    {"com.microsoft.SkipSimplifiedLayerNormalization(x:f[1,2,4], s:f[3,2,4], g:f[4])",
     "skip {3, 2, 4} do not fit an input of {1, 2, 4}"},
    {"Slice(x:f[3,2], s:f[2], e:f[2])", "starts are of type float_type, not of integers"},
    {"Softmax(x:f[2,5]) axis='last'", "attribute \"axis\" is of type STRING, not INT"},
};

static const struct row rows[] = {
    // convolution and pooling
    {REFUSED, "Conv(x:f[1,4,5,5], w:f[6,2,3,3]) group=0", 0},
    {REFUSED, "Conv(x:f[1,4,5,5], w:f[6,2,3,3]) group=3", 0},
    {REFUSED, "Conv(x:f[1,4,5,5], w:f[6,2,3,3]) group=-2", 0},
    {REFUSED, "Conv(x:f[1,4,5,5], w:f[6,4,3,3]) strides=[0,1]", 0},
    {REFUSED, "Conv(x:f[1,4,5,5], w:f[6,4,3,3]) strides=[-1,1]", 0},
    {REFUSED, "Conv(x:f[1,4,5,5], w:f[6,4,3,3]) strides=[1]", 0},
    {REFUSED, "Conv(x:f[1,4,5,5], w:f[6,4,3,3]) dilations=[0,1]", 0},
    {REFUSED, "Conv(x:f[1,4,5,5], w:f[6,4,3,3]) dilations=[2147483648,1]", 0},
    {REFUSED, "Conv(x:f[1,4,5,5], w:f[6,4,7,7])", 0},
    {REFUSED, "Conv(x:f[1,4,5,5], w:f[6,4,3,3]) pads=[-9,0,0,0]", 0},
    {REFUSED, "Conv(x:f[1,4,5,5], w:f[6,4,3,3]) pads=[4611686018427387904,0,0,0]", 0},
    {REFUSED, "Conv(x:f[1,4,5,5], w:f[6,4,3,3]) pads=[9223372036854775807,0,9223372036854775807,0]",
     0},
    {REFUSED, "Conv(x:f[1,4,5,5], w:f[6,4,3,3]) kernel_shape=[3,2]", 0},
    {REFUSED, "Conv(x:f[1,4,5,5], w:f[6,4,3])", 0},
    {REFUSED, "Conv(x:f[1,4,5,5], w:f[6,4,3,3], b:f[5])", 0},
    {REFUSED, "Conv(x:f[1,4,5,5])", 0},
    {REFUSED, "Conv(x:f[4], w:f[6])", 0},
    {REFUSED, "ConvTranspose(x:f[1,4,5,5], w:f[4,2,3,3]) group=0", 0},
    {REFUSED, "ConvTranspose(x:f[1,4,5,5], w:f[4,2,3,3]) strides=[0,0]", 0},
    {REFUSED, "ConvTranspose(x:f[1,4,5,5], w:f[4,2,3,3]) output_shape=[-1,-1]", 0},
    {REFUSED, "ConvTranspose(x:f[1,4,5,5], w:f[4,2,3,3]) output_shape=[-9223372036854775808,9]", 0},
    {REFUSED, "ConvTranspose(x:f[1,4,5,5], w:f[4,2,3,3]) output_padding=[-9223372036854775808,0]",
     0},
    {REFUSED, "MaxPool(x:f[1,4,5,5]) kernel_shape=[0,3]", 0},
    {REFUSED, "MaxPool(x:f[1,4,5,5]) kernel_shape=[3,3] strides=[0,1]", 0},
    {REFUSED, "MaxPool(x:f[1,4,5,5]) kernel_shape=[9,9]", 0},
    {REFUSED, "MaxPool(x:f[1,4,5,5]) kernel_shape=[3,3] pads=[-3,-3,-3,-3]", 0},
    {REFUSED, "MaxPool(x:f[1,4,5,5])", 0},
    {EITHER, "MaxPool(x:f[1,4,5,5]) kernel_shape=[2,2] strides=[9,9] ceil_mode=1", 0},
    {REFUSED, "AveragePool(x:f[1,4,5,5]) kernel_shape=[-3,3]", 0},
    {REFUSED, "AveragePool(x:f[1,4,5,5]) kernel_shape=[3,3] dilations=[0,0] @19", 0},
    {REFUSED, "LpPool(x:f[1,4,5,5]) kernel_shape=[3,3] p=0", 0},
    // resize
    {REFUSED, "Resize(x:f[1,1,4,4], -, s:f{1,1,0,2})", 0},
    {REFUSED, "Resize(x:f[1,1,4,4], -, s:f{1,1,-1,2})", 0},
    {REFUSED, "Resize(x:f[1,1,4,4], -, s:f{1,1,nan,2})", 0},
    {REFUSED, "Resize(x:f[1,1,4,4], -, s:f{1,1,inf,2})", 0},
    {REFUSED, "Resize(x:f[1,1,4,4], -, s:f{1,1,1e30,2})", 0},
    {REFUSED, "Resize(x:f[1,1,4,4], -, s:f{1,1})", 0},
    {REFUSED, "Resize(x:f[1,1,4,4], -, -, z:i{1,1,-4,4})", 0},
    {REFUSED, "Resize(x:f[1,1,4,4], -, -, z:i{1,1,4611686018427387904,4})", 0},
    {REFUSED, "Resize(x:f[1,1,4,4])", 0},
    // sizes
    {REFUSED, "Reshape(x:f[2,3], s:i{-1,-1})", 0},
    {REFUSED, "Reshape(x:f[2,3], s:i{4,2})", 0},
    {REFUSED, "Reshape(x:f[2,3], s:i{6,1,0})", 0},
    {REFUSED, "Reshape(x:f[2,3], s:i{-2,3})", 0},
    {REFUSED, "Reshape(x:f[2,3], s:i{0,3}) allowzero=1", 0},
    {REFUSED, "Reshape(x:f[0,3], s:i{0,-1}) allowzero=1", 0},
    {REFUSED, "Reshape(x:f[2,3], s:i{4294967296,4294967296})", 0},
    {REFUSED, "Split(x:f[4], s:i{5,-1})", 0},
    {REFUSED, "Split(x:f[4], s:i{1,2}) ->2", 0},
    {REFUSED, "Split(x:f[4]) num_outputs=0", 0},
    {REFUSED, "Split(x:f[4]) num_outputs=-2 ->2", 0},
    {REFUSED, "Split(x:f[4], s:i{2,2}) axis=3 ->2", 0},
    {REFUSED, "Tile(x:f[4], r:i{1099511627776})", 0},
    {REFUSED, "Tile(x:f[4], r:i{-1})", 0},
    {REFUSED, "Tile(x:f[4], r:i{1,2})", 0},
    {REFUSED, "Expand(x:f[1], s:i{1125899906842624,1125899906842624})", 0},
    {REFUSED, "Expand(x:f[3], s:i{2})", 0},
    {REFUSED, "Expand(x:f[1], s:i{-4})", 0},
    {REFUSED, "Range(a:f=0, b:f=10, d:f=0)", 0},
    {REFUSED, "Range(a:f=0, b:f=10, d:f=nan)", 0},
    {REFUSED, "Range(a:f=0, b:f=inf, d:f=1)", 0},
    {REFUSED, "Range(a:i=0, b:i=4611686018427387904, d:i=1)", 0},
    {REFUSED, "Range(a:i=0, b:i=4, d:i=0)", 0},
    {REFUSED, "ConstantOfShape(s:i{1125899906842624,1125899906842624})", 0},
    {REFUSED, "ConstantOfShape(s:i{-1})", 0},
    {EITHER, "ConstantOfShape(s:i{2147483647,2147483647})", 0},
    {REFUSED, "OneHot(x:i[3], d:i=-1, v:f{0,1})", 0},
    {REFUSED, "OneHot(x:i[3], d:i=4611686018427387904, v:f{0,1})", 0},
    {REFUSED, "OneHot(x:i[3], d:i=4, v:f{0})", 0},
    {REFUSED, "Pad(x:f[4], p:i{1125899906842624,1125899906842624})", 0},
    {REFUSED, "Pad(x:f[4], p:i{-3,-3})", 0},
    {REFUSED, "Pad(x:f[4], p:i{1})", 0},
    {EITHER, "Pad(x:f[4], p:i{9,0}) mode='reflect'", 0},
    {REFUSED, "Pad(x:f[4], p:i{1,1}) mode='nonsense'", 0},
    {REFUSED, "Transpose(x:f[2,3]) perm=[0,0]", 0},
    {REFUSED, "Transpose(x:f[2,3]) perm=[0,2]", 0},
    {REFUSED, "Transpose(x:f[2,3]) perm=[0]", 0},
    {REFUSED, "Squeeze(x:f[2,3], a:i{0})", 0},
    {REFUSED, "Squeeze(x:f[1,3], a:i{5})", 0},
    {REFUSED, "Unsqueeze(x:f[2,3], a:i{0,0})", 0},
    {REFUSED, "Unsqueeze(x:f[2,3], a:i{7})", 0},
    {REFUSED, "Slice(x:f[4], s:i{0}, e:i{4}, a:i{0}, t:i{0})", 0},
    {REFUSED, "Slice(x:f[4], s:i{0}, e:i{4}, a:i{3})", 0},
    {REFUSED, "Slice(x:f[4], s:i{0,1}, e:i{4})", 0},
    {RUNS, "Slice(x:f[4], s:i{-9223372036854775807}, e:i{9223372036854775807})", 0},
    {RUNS,
     "Slice(x:f[4], s:i{9223372036854775807}, e:i{-9223372036854775807}, a:i{0}, "
     "t:i{-9223372036854775807})",
     0},
    {REFUSED, "Concat(x:f[2,3], z:f[3,2]) axis=0", 0},
    {REFUSED, "Concat(x:f[2,3], z:f[2,3]) axis=2", 0},
    {REFUSED, "Concat(x:f[2,3], z:d[2,3]) axis=0", 0},
    {REFUSED, "Flatten(x:f[2,3]) axis=4", 0},
    {REFUSED, "DepthToSpace(x:f[1,4,2,2]) blocksize=0", 0},
    {REFUSED, "DepthToSpace(x:f[1,4,2,2]) blocksize=3", 0},
    {REFUSED, "DepthToSpace(x:f[1,4,2,2]) blocksize=4294967296", 0},
    {REFUSED, "SpaceToDepth(x:f[1,1,4,4]) blocksize=3", 0},
    {REFUSED, "ReduceSum(x:f[2,3], a:i{2})", 0},
    {REFUSED, "ReduceMax(x:f[2,3], a:i{0,0})", 0},
    {REFUSED, "Softmax(x:f[2,3]) axis=2", 0},
    {REFUSED, "ArgMax(x:f[2,3]) axis=-3", 0},
    {REFUSED, "ArgMax(x:f[2,0]) axis=1", 0},
    {REFUSED, "Trilu(x:f[4])", 0},
    {REFUSED, "CumSum(x:f[4], a:i=3)", 0},
    {REFUSED, "EyeLike(x:f[2,2,2])", 0},
    // products
    {REFUSED, "MatMul(a:f[2,3], b:f[4,2])", 0},
    {REFUSED, "MatMul(a:f[2,3], b:d[3,2])", 0},
    {REFUSED, "Gemm(a:f[2,3], b:f[4,2])", 0},
    {REFUSED, "Gemm(a:f[2], b:f[2,2])", 0},
    {REFUSED, "Einsum(a:f[2,3]) equation='ij->k'", 0},
    {REFUSED, "Einsum(a:f[2,3]) equation='ijk->i'", 0},
    {REFUSED, "Einsum(a:f[2,3]) equation='i.j->i'", 0},
    {REFUSED, "Einsum(a:f[2,3]) equation='...i...j->ij'", 0},
    {REFUSED, "Einsum(a:f[2,3]) equation='ij,jk->ik'", 0},
    {REFUSED, "Einsum(a:f[2,3], b:f[4,5]) equation='ij,jk->ik'", 0},
    {REFUSED, "Einsum(a:f[1,1]) equation='abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ->a'",
     0},
    {REFUSED, "Einsum(a:f[2,3])", 0},
    // indices at run time
    {REFUSED, "Gather(x:f[4], i:i[2])", 4},
    {REFUSED, "Gather(x:f[4], i:i[2])", -5},
    {REFUSED, "Gather(x:f[4], i:i[2])", INT64_MAX},
    {REFUSED, "Gather(x:f[4], i:i[2]) axis=1", 0},
    {REFUSED, "GatherElements(x:f[4], i:i[2])", 4},
    {REFUSED, "GatherElements(x:f[4], i:i[2])", INT64_MIN},
    {REFUSED, "GatherND(x:f[4], i:i[2,1])", 4},
    {REFUSED, "GatherND(x:f[4], i:i[2,2])", 0},
    {REFUSED, "GatherND(x:f[4], i:i[2,1])", INT64_MIN},
    {REFUSED, "ScatterElements(x:f[4], i:i[2], u:f[2])", 4},
    {REFUSED, "ScatterElements(x:f[4], i:i[2], u:f[2])", -5},
    {REFUSED, "ScatterElements(x:f[4], i:i[2], u:f[3])", 0},
    {REFUSED, "ScatterND(x:f[4], i:i[2,1], u:f[2])", 4},
    {REFUSED, "ScatterND(x:f[4], i:i[2,1], u:f[2])", INT64_MAX},
    {REFUSED, "ScatterND(x:f[4], i:i[2,1], u:f[3])", 0},
    {REFUSED, "TopK(x:f[4], k:i{5}) ->2", 0},
    {REFUSED, "TopK(x:f[4], k:i[1]) ->2", 5},
    {REFUSED, "TopK(x:f[4], k:i[1]) ->2", -1},
    {REFUSED, "TopK(x:f[4], k:i{1}) axis=2 ->2", 0},
    {EITHER, "OneHot(x:i[3], d:i=4, v:f{0,1})", INT64_MAX},
    {REFUSED, "ReverseSequence(x:f[4,2], l:i[2])", 5},
    {EITHER, "ReverseSequence(x:f[4,2], l:i[2])", -1},
    {EITHER, "NonMaxSuppression(b:f[1,4,4], s:f[1,1,4], m:i=-1, t:f=0.5)", 0},
    {REFUSED, "NonMaxSuppression(b:f[1,4,3], s:f[1,1,4], m:i=4, t:f=0.5)", 0},
    {REFUSED, "RoiAlign(x:f[1,1,4,4], r:f[2,4], i:i[2])", 7},
    {REFUSED, "RoiAlign(x:f[1,1,4,4], r:f[2,4], i:i[2])", -1},
    {REFUSED, "RoiAlign(x:f[1,1,4,4], r:f[2,4], i:i{0,0}) output_height=-1", 0},
    {REFUSED, "RoiAlign(x:f[1,1,4,4], r:f[2,4], i:i{0,0}) output_height=4611686018427387904", 0},
    {REFUSED, "GridSample(x:f[1,1,4,4], g:f[1,2,2,3])", 0},
    {REFUSED, "MaxUnpool(x:f[1,1,2,2], i:i[1,1,2,2]) kernel_shape=[2,2] strides=[2,2]", 16},
    {REFUSED, "MaxUnpool(x:f[1,1,2,2], i:i[1,1,2,2]) kernel_shape=[2,2] strides=[2,2]", -1},
    {REFUSED, "Reshape(x:f[4], s:i[1])", 5},
    {REFUSED, "Reshape(x:f[4], s:i[1])", INT64_MAX},
    {REFUSED, "Expand(x:f[1], s:i[3])", (int64_t)1 << 50},
    {REFUSED, "ConstantOfShape(s:i[2])", (int64_t)1 << 40},
    {REFUSED, "Tile(x:f[4], r:i[1])", (int64_t)1 << 50},
    {REFUSED, "Pad(x:f[4], p:i[2])", (int64_t)1 << 50},
    {REFUSED, "Slice(x:f[4], s:i[1], e:i{4}, a:i{0}, t:i[1])", 0},
    {REFUSED, "Range(a:i[], b:i=4, d:i[])", 0},
    // normalisation, quantisation, attention
    {REFUSED, "BatchNormalization(x:f[1,4,2], s:f[3], b:f[4], m:f[4], v:f[4])", 0},
    {REFUSED, "LayerNormalization(x:f[2,3], s:f[2]) axis=-1", 0},
    {REFUSED, "LayerNormalization(x:f[2,3], s:f[3]) axis=5", 0},
    {REFUSED, "GroupNormalization(x:f[1,4,2], s:f[4], b:f[4]) num_groups=3", 0},
    {REFUSED, "GroupNormalization(x:f[1,4,2], s:f[4], b:f[4]) num_groups=0", 0},
    {REFUSED, "LRN(x:f[1,4,2,2]) size=0", 0},
    {REFUSED, "QuantizeLinear(x:f[4], s:f{1,2,3}, z:u{0,0,0}) axis=0", 0},
    {REFUSED, "QuantizeLinear(x:f[4,4], s:f{1,2,3,4}, z:u{0,0,0,0}) axis=2", 0},
    {REFUSED, "DequantizeLinear(x:u[4], s:f{1,2,3,4}, z:u{0,0}) axis=0", 0},
    {REFUSED, "DequantizeLinear(x:u[4], s:f[3]) axis=0 block_size=3", 0},
    {EITHER, "QuantizeLinear(x:f[4], s:f=0, z:u=0)", 0},
    {REFUSED, "Attention(q:f[1,2,8], k:f[1,2,8], v:f[1,2,8]) q_num_heads=0 kv_num_heads=0 @23", 0},
    {REFUSED, "Attention(q:f[1,2,8], k:f[1,2,8], v:f[1,2,8]) q_num_heads=3 kv_num_heads=3 @23", 0},
    {REFUSED, "Attention(q:f[1,2,8], k:f[1,2,8], v:f[1,2,8]) q_num_heads=4 kv_num_heads=3 @23", 0},
    {REFUSED, "RotaryEmbedding(x:f[1,2,8], c:f[2,4], s:f[2,4]) @23", 0},
    {REFUSED, "LSTM(x:f[2,1,3], w:f[1,8,3], r:f[1,8,2]) hidden_size=-2 ->3", 0},
    {REFUSED, "LSTM(x:f[2,1,3], w:f[1,8,3], r:f[1,8,2]) hidden_size=3 ->3", 0},
    {REFUSED, "GRU(x:f[2,1,3], w:f[1,6,3], r:f[1,6,2], -, l:j[1]) hidden_size=2 ->2", 9},
    {REFUSED,
     "com.microsoft.MatMulNBits(a:f[1,32], b:u[4,1,16], s:f[4]) K=64 N=4 bits=4 "
     "block_size=32",
     0},
    {REFUSED,
     "com.microsoft.MatMulNBits(a:f[1,32], b:u[4,1,16], s:f[4]) K=32 N=4 bits=0 "
     "block_size=32",
     0},
    {REFUSED,
     "com.microsoft.MatMulNBits(a:f[1,32], b:u[4,1,16], s:f[4]) K=32 N=4 bits=4 "
     "block_size=0",
     0},
    // types that would give results nobody means
    {REFUSED, "Gelu(x:j[4])", 0},
    {REFUSED, "LayerNormalization(x:c[2,3], s:c[3])", 0},
    {REFUSED, "GroupNormalization(x:j[1,4,2], s:j[4], b:j[4]) num_groups=2", 0},
    {REFUSED, "RandomNormal() shape=[3] dtype=6", 0},
    {REFUSED, "RandomUniform() shape=[3] dtype=7", 0},
    {REFUSED, "RandomUniformLike(x:j[3])", 0},
    {REFUSED, "RandomNormal()", 0},
    {REFUSED, "QuantizeLinear(x:f[4], s:f=1, z:u=0) output_dtype=3", 0},
    {REFUSED, "Split(x:f[4], s:i{}) ->2", 0},
    {REFUSED, "MatMulInteger(a:u[2,3], b:u[3,2], p:c=1)", 0},
    {REFUSED, "MatMulInteger(a:j[2,3], b:u[3,2])", 0},
    {REFUSED, "ConvInteger(x:u[1,2,4,4], w:c[3,2,2,2], p:c=1)", 0},
    {REFUSED, "com.microsoft.Attention(x:f[2,4,8], w:f[8,24], -, m:f[2,4]) num_heads=2", 0},
    {REFUSED,
     "com.microsoft.MultiHeadAttention(q:f[2,4,8], k:f[2,4,8], v:f[2,4,8], -, m:f[2,4]) "
     "num_heads=2",
     0},
    {REFUSED, "Resize(x:f[1,1,4,4], -, s:h{1,1,2,2})", 0},
    {REFUSED, "Resize(x:f[1,1,4,4], -, s:i{1,1,2,2})", 0},
    {REFUSED, "com.microsoft.RotaryEmbedding(x:f[2,3,8], p:i[2,3], c:f[10,2], s:f[11,2])", 0},
    {REFUSED, "com.microsoft.RotaryEmbedding(x:f[2,3,8], p:i[3,3], c:f[10,2], s:f[10,2])", 0},
    {REFUSED,
     "com.microsoft.MultiHeadAttention(q:f[2,3,8], k:f[2,5,8], v:f[2,5,8], -, -, a:f[3,2,3,5]) "
     "num_heads=2",
     0},
    {REFUSED,
     "com.microsoft.MultiHeadAttention(q:f[2,3,8], k:f[2,5,8], v:f[2,5,8], -, -, a:f[2,3,5]) "
     "num_heads=2",
     0},
    {REFUSED, "SoftmaxCrossEntropyLoss(x:f[3,5], l:i[4])", 0},
    {REFUSED, "SoftmaxCrossEntropyLoss(x:f[3,5], l:i[3], w:f[4])", 0},
    // types and arity
    {REFUSED, "Add(x:f[2])", 0},
    {REFUSED, "SequenceAt()", 0},
    {REFUSED, "SequenceLength()", 0},
    {REFUSED, "SplitToSequence()", 0},
    {REFUSED, "Add(x:f[2], -)", 0},
    {REFUSED, "Add(x:f[2], z:f[2], q:f[2])", 0},
    {REFUSED, "Add(x:f[2], z:f[3])", 0},
    {REFUSED, "Cast(x:f[2])", 0},
    {REFUSED, "Cast(x:f[2]) to=99", 0},
    {REFUSED, "Cast(x:f[2]) to=0", 0},
    {REFUSED, "Cast(x:f[2]) to='float'", 0},
    {REFUSED, "Constant()", 0},
    {REFUSED, "Loop(m:i=1, c:b=1)", 0},
    {REFUSED, "If(c:b=1)", 0},
    {REFUSED, "Scan(x:f[2]) num_scan_inputs=1", 0},
    // com.microsoft
    {REFUSED, "com.microsoft.Attention(x:f[2,4,8], w:f[8,24]) num_heads=0", 0},
    {REFUSED, "com.microsoft.Attention(x:f[2,4,8], w:f[8,24]) num_heads=-2", 0},
    {REFUSED, "com.microsoft.Attention(x:f[2,4,8], w:f[8,24]) num_heads=3", 0},
    {REFUSED, "com.microsoft.Attention(x:f[2,4,8], w:f[8,24])", 0},
    {REFUSED, "com.microsoft.Attention(x:f[2,4,8], w:f[9,24]) num_heads=2", 0},
    {REFUSED, "com.microsoft.Attention(x:f[2,4], w:f[8,24]) num_heads=2", 0},
    {REFUSED, "com.microsoft.Attention(x:f[2,4,8], w:f[8,24]) num_heads=2 qkv_hidden_sizes=[8,8]",
     0},
    {REFUSED,
     "com.microsoft.Attention(x:f[2,4,8], w:f[8,24]) num_heads=2 qkv_hidden_sizes=[8,8,-8]", 0},
    {REFUSED,
     "com.microsoft.Attention(x:f[2,4,8], w:f[8,24]) num_heads=2 "
     "qkv_hidden_sizes=[9223372036854775806,8,8]",
     0},
    {REFUSED, "com.microsoft.Attention(x:f[2,4,8], w:f[8,24], b:f[23]) num_heads=2", 0},
    {REFUSED, "com.microsoft.Attention(x:f[2,4,8], w:f[8,24], -, m:j[5]) num_heads=2", 0},
    {REFUSED, "com.microsoft.Attention(x:f[2,4,8], w:f[8,24], -, m:j[2,5]) num_heads=2", 0},
    {REFUSED, "com.microsoft.Attention(x:f[2,4,8], w:f[8,24], -, -, p:f[1,2,2,3,4]) num_heads=2",
     0},
    {REFUSED, "com.microsoft.Attention(x:f[2,4,8], w:f[8,24], -, -, p:f[2,2,3,3,4]) num_heads=2",
     0},
    {REFUSED, "com.microsoft.MultiHeadAttention(q:f[2,4,8], k:f[2,4,8], v:f[2,4,8]) num_heads=0",
     0},
    {REFUSED, "com.microsoft.MultiHeadAttention(q:f[2,4,8], k:f[2,4,8], v:f[2,5,8]) num_heads=2",
     0},
    {REFUSED, "com.microsoft.MultiHeadAttention(q:f[2,4,8], k:f[2,4,12], v:f[2,4,8]) num_heads=2",
     0},
    {REFUSED, "com.microsoft.MultiHeadAttention(q:f[2,4,8]) num_heads=2", 0},
    {REFUSED, "com.microsoft.MultiHeadAttention(q:f[2,4,2,2,4]) num_heads=2", 0},
    {REFUSED,
     "com.microsoft.MultiHeadAttention(q:f[2,4,8], k:f[2,4,8], v:f[2,4,8], b:f[9]) num_heads=2", 0},
    {REFUSED,
     "com.microsoft.MultiHeadAttention(q:f[2,4,8], k:f[2,4,8], v:f[2,4,8], -, -, -, p:f[2,2,3,4]) "
     "num_heads=2",
     0},
    {REFUSED,
     "com.microsoft.MatMulNBits(x:f[3,32], b:u[5,1,16], s:f[5]) K=0 N=5 bits=4 block_size=32", 0},
    {REFUSED,
     "com.microsoft.MatMulNBits(x:f[3,32], b:u[5,1,16], s:f[5]) K=32 N=4 bits=4 block_size=32", 0},
    {REFUSED,
     "com.microsoft.MatMulNBits(x:f[3,32], b:u[5,1,16], s:f[5]) K=9223372036854775807 "
     "N=9223372036854775807 bits=4 block_size=32",
     0},
    {REFUSED,
     "com.microsoft.MatMulNBits(x:f[3,32], b:u[5,1,16], s:f[5]) K=32 N=5 bits=3 block_size=32", 0},
    {REFUSED,
     "com.microsoft.MatMulNBits(x:f[3,32], b:u[5,1,16], s:f[5]) K=32 N=5 bits=4 block_size=0", 0},
    {REFUSED,
     "com.microsoft.MatMulNBits(x:f[3,32], b:u[5,1,16], s:f[5]) K=32 N=5 bits=4 block_size=33", 0},
    {REFUSED,
     "com.microsoft.MatMulNBits(x:f[3,32], b:u[5,1,16], s:f[4]) K=32 N=5 bits=4 block_size=32", 0},
    {REFUSED,
     "com.microsoft.MatMulNBits(x:f[3,32], b:u[5,1,16], s:f[5], z:u[4]) K=32 N=5 bits=4 "
     "block_size=32",
     0},
    {REFUSED,
     "com.microsoft.MatMulNBits(x:f[3,31], b:u[5,1,16], s:f[5]) K=32 N=5 bits=4 block_size=32", 0},
    {REFUSED, "com.microsoft.GatherBlockQuantized(x:u[7,32], i:i[2], s:f[7,4]) block_size=0", 0},
    {REFUSED, "com.microsoft.GatherBlockQuantized(x:u[7,32], i:i[2], s:f[7,3]) block_size=16", 0},
    {REFUSED,
     "com.microsoft.GatherBlockQuantized(x:u[7,32], i:i[2], s:f[7,4]) block_size=16 "
     "quantize_axis=0",
     0},
    {REFUSED,
     "com.microsoft.GatherBlockQuantized(x:u[7,32], i:i[2], s:f[7,4]) block_size=16 bits=5", 0},
    {REFUSED, "com.microsoft.RotaryEmbedding(x:f[2,5,24], p:i[2,5], c:f[20,0], s:f[20,0])", 0},
    {REFUSED, "com.microsoft.RotaryEmbedding(x:f[2,5,25], p:i[2,5], c:f[20,4], s:f[20,4])", 0},
    {REFUSED,
     "com.microsoft.RotaryEmbedding(x:f[2,5,24], p:i[2,5], c:f[20,4], s:f[20,4]) num_heads=-1", 0},
    {REFUSED,
     "com.microsoft.RotaryEmbedding(x:f[2,5,24], p:i[2,5], c:f[20,4], s:f[20,4]) num_heads=12", 0},
    {REFUSED,
     "com.microsoft.GroupQueryAttention(q:f[2,1,64], k:f[2,1,32], v:f[2,1,32], -, -, l:j[2], "
     "t:j=1) num_heads=0 kv_num_heads=0",
     0},
    {REFUSED,
     "com.microsoft.GroupQueryAttention(q:f[2,1,64], k:f[2,1,32], v:f[2,1,32], -, -, l:j[2], "
     "t:j=1) num_heads=4 kv_num_heads=3",
     0},
    {REFUSED,
     "com.microsoft.GroupQueryAttention(q:f[2,1,64], k:f[2,1,31], v:f[2,1,32], -, -, l:j[2], "
     "t:j=1) num_heads=4 kv_num_heads=2",
     0},
    {REFUSED,
     "com.microsoft.GroupQueryAttention(q:f[2,1,64], k:f[2,1,32], v:f[2,1,32], -, -, l:j[3], "
     "t:j=1) num_heads=4 kv_num_heads=2",
     0},
    {REFUSED,
     "com.microsoft.GroupQueryAttention(q:f[2,1,64], k:f[2,1,32], v:f[2,1,32], -, -, l:j[2], "
     "t:j=0) num_heads=4 kv_num_heads=2",
     0},
    {REFUSED,
     "com.microsoft.GroupQueryAttention(q:f[2,1,64], k:f[2,1,32], v:f[2,1,32], -, -, l:j[2], "
     "t:j=2147483647) num_heads=4 kv_num_heads=2",
     0},
    {REFUSED,
     "com.microsoft.GroupQueryAttention(q:f[2,1,64], k:f[2,1,32], v:f[2,1,32], -, -, l:j[2], "
     "t:j=1) num_heads=4 kv_num_heads=2 do_rotary=1",
     0},
    {REFUSED, "com.microsoft.SkipLayerNormalization(x:f[2,3,8], s:f[2,3,7], g:f[8])", 0},
    {REFUSED, "com.microsoft.SkipLayerNormalization(x:f[2,3,8], s:f[2,3,8], g:f[7])", 0},
    {REFUSED, "com.microsoft.GroupNorm(x:f[1,2,2,6], g:f[6], b:f[6]) groups=0", 0},
    {REFUSED, "com.microsoft.GroupNorm(x:f[1,2,2,6], g:f[6], b:f[6]) groups=4", 0},
    {REFUSED, "com.microsoft.FusedConv(x:f[1,4,5,5], w:f[6,4,3,3]) activation='Clip'", 0},
    {REFUSED, "com.microsoft.FusedConv(x:f[1,4,5,5], w:f[6,4,3,3]) activation='Nonsense'", 0},
    {REFUSED, "com.microsoft.NhwcConv(x:f[4], w:f[6,3,3,4])", 0},
    {REFUSED, "com.microsoft.NhwcConv(x:f[1,5,5,4], w:f[6])", 0},
    {REFUSED, "com.microsoft.NhwcConv(x:f[1,5,5,4], w:f[])", 0},
    {REFUSED, "com.microsoft.QLinearConcat(s:f=1, z:u=0, x:u[2,3])", 0},
    {REFUSED, "com.microsoft.QLinearSoftmax(x:u[2,3], a:f=1, z:u=0, b:f=1, y:u=0) axis=2", 0},
    // attributes of the wrong form
    {REFUSED, "RoiAlign(x:f[1,1,4,4], r:f[2,4], i:i{0,0}) mode='none'", 0},
    {REFUSED, "MaxRoiPool(x:f[1,1,4,4], r:f[2,5]) pooled_shape=[2]", 0},
    {REFUSED, "GridSample(x:f[1,1,4,4], g:f[1,2,2,2]) mode='none'", 0},
    {REFUSED, "GridSample(x:f[1,1,4,4], g:f[1,2,2,2]) padding_mode='none'", 0},
    {REFUSED, "AffineGrid(t:f[1,2,3], s:i{1,1,4})", 0},
    {REFUSED, "AffineGrid(t:f[1,2,3], s:i{1,1,-4,4})", 0},
    {REFUSED, "AffineGrid(t:f[1,2,3], s:i{1,1,2147483647,2147483647})", 0},
    {REFUSED, "DeformConv(x:f[1,4,5,5], w:f[6,4,3], o:f[1,18,3,3])", 0},
    {REFUSED, "DepthToSpace(x:f[1,4,2,2]) blocksize=2 mode='none'", 0},
    {REFUSED, "Tile(x:f[2,3], r:i{2})", 0},
    {REFUSED, "Tile(x:f[2,3], r:i[3])", 1},
    {REFUSED, "GatherElements(x:f[4,2], i:i[2])", 0},
    {REFUSED, "GatherElements(x:f[4,2], i:i[2,3])", 0},
    {RUNS, "GatherElements(x:f[4,2], i:i[0,2])", 0},
    {RUNS, "Compress(x:f[4,2], c:b{1,0,1,0}) axis=0", 0},
    {RUNS, "Compress(x:f[4,2], c:b{1,0,1})", 0},
    {REFUSED, "Compress(x:f[4,2], c:b{1,0,1}) axis=5", 0},
    {REFUSED, "ReverseSequence(x:f[4,2], l:i[2]) batch_axis=1 time_axis=1", 1},
    {REFUSED, "ReverseSequence(x:f[4,2], l:i[2]) batch_axis=3 time_axis=0", 1},
    {REFUSED, "ReverseSequence(x:f[4,2], l:i[2]) time_axis=9223372036854775807", 1},
    {REFUSED, "ConstantOfShape(s:i{1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1})", 0},
    {REFUSED, "RandomUniform() shape=[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", 0},
    {REFUSED, "Einsum(a:f[2,3]) equation='ij-ij'", 0},
    {REFUSED, "Einsum(a:f[2,3]) equation='ij->ij,'", 0},
    {REFUSED, "Einsum(a:f[2,3]) equation='ii->i'", 0},
    {REFUSED, "Einsum(a:f[2,3]) equation='ij->iijjiijjiijjiijjiijj'", 0},
    {REFUSED, "Einsum(a:f[2]) equation='iiiiiiiiiiiiiiiiiiiiiiii->i'", 0},
    {RUNS, "Einsum(a:f[2,3]) equation='i...'", 0},
    {REFUSED, "QuantizeLinear(x:f[4,4], s:f[2,2,2], z:u{0}) axis=0", 0},
    {REFUSED, "QuantizeLinear(x:f[4,5], s:f[4,2]) axis=1 block_size=7", 0},
    {REFUSED, "QuantizeLinear(x:f[4,5], s:f[4,2]) axis=1 block_size=-2", 0},
    {RUNS, "QuantizeLinear(x:f[4,5], s:f[4,2]) axis=1 block_size=3", 0},
    {REFUSED, "QuantizeLinear(x:f[4], s:f=1) output_dtype=77", 0},
    {REFUSED, "QuantizeLinear(x:f[4], s:f=1) precision=77", 0},
    {REFUSED, "ConvInteger(x:u[1,2], w:u[1,2,2,2])", 0},
    {REFUSED, "ConvInteger(x:u[1,2,4,4], w:u[3,2,2,2]) group=0", 0},
    {REFUSED, "MatMulInteger(a:u[], b:u[3,3,2], p:u[1], q:u[2])", 0},
    {REFUSED, "MatMulInteger(a:u[2,3], b:u[], p:u[1], q:u[2])", 0},
    {RUNS, "MatMulInteger(a:u[3], b:u[3,2], p:u=1, q:u=2)", 1},
    {RUNS, "MatMulInteger(a:u[2,3], b:u[3], p:u=1, q:u=2)", 1},
    {RUNS, "MatMulInteger(a:u[3], b:u[3], p:u=0, q:u=0)", 1},
    {RUNS, "MatMulInteger(a:u[2,3], b:u[3,2], p:u{1,2}, q:u{2,1})", 1},
    {REFUSED, "TopK(x:f[4,2], k:i{1,1}) ->2", 0},
    {REFUSED, "Scan(x:f[2]) num_scan_inputs=3", 0},
    {RUNS, "Constant() value_float=1.5", 0},
    {RUNS, "Constant() value_int=3", 0},
    {RUNS, "Constant() value_ints=[3,4]", 0},
    {RUNS, "Constant() value_floats=[0.5,0.25]", 0},
    {RUNS, "Constant() value_string='abc'", 0},
    {RUNS, "Range(a:f=0.5, b:f=3.25, d:f=0.5)", 0},
    {RUNS, "Range(a:d=0.5, b:d=3.25, d:d=0.5)", 0},
    {RUNS, "EyeLike(x:f[2,3]) k=9", 0},
    {RUNS, "ReduceSum(x:f[2,3], a:i{0}) keepdims=0", 0},
    {RUNS, "LpNormalization(x:f[2,3]) axis=1 p=1", 0},
    {REFUSED, "LpNormalization(x:f[2,3]) axis=1 p=7", 0},
    {REFUSED, "Bernoulli(x:f[2,3]) dtype=99", 0},
    {REFUSED, "Multinomial(x:f[2,3]) sample_size=0", 0},
    {REFUSED, "Multinomial(x:f[6]) sample_size=3", 0},
    {REFUSED, "Dropout(x:f[2,3], r:f=1.5, t:b=1)", 0},
    {REFUSED, "InstanceNormalization(x:f[2,3], s:f[3], b:f[3])", 0},
    {REFUSED, "SpaceToDepth(x:f[4,4]) blocksize=2", 0},
    {REFUSED, "ai.onnx.ml.Normalizer(x:f[2,3]) norm='L9'", 0},
    {REFUSED, "ai.onnx.ml.Normalizer(x:f[])", 0},
    {REFUSED, "ai.onnx.ml.FeatureVectorizer(x:f[2,3], z:f[2,2]) inputdimensions=[3]", 0},
    {REFUSED, "ai.onnx.ml.FeatureVectorizer(x:f[2,3], z:f[2,2]) inputdimensions=[3,-1]", 0},
    {REFUSED, "ai.onnx.ml.FeatureVectorizer(x:f[2,3]) inputdimensions=[4611686018427387904]", 0},
    {RUNS, "ai.onnx.ml.FeatureVectorizer(x:f[3], z:f[2]) inputdimensions=[2,4]", 0},
    {REFUSED, "ai.onnx.ml.LinearRegressor(x:f[2,3]) coefficients=[1.0,2.0]", 0},
    {REFUSED, "ai.onnx.ml.LinearRegressor(x:f[2,3]) coefficients=[1.0,2.0,3.0] post_transform='X'",
     0},
    {REFUSED,
     "ai.onnx.ml.LinearClassifier(x:f[2,3]) coefficients=[1.0,2.0,3.0,1.0,2.0,3.0] "
     "intercepts=[1.0,2.0,3.0] classlabels_ints=[1,2] ->2",
     0},
    {REFUSED, "ai.onnx.ml.CategoryMapper(x:i[2]) cats_int64s=[1,2]", 0},
    {REFUSED, "ai.onnx.ml.LabelEncoder(x:f[2]) @9", 0},
    {REFUSED, "ai.onnx.ml.TreeEnsembleRegressor(x:f[2,3]) nodes_treeids=[0,0] nodes_nodeids=[0]",
     0},
    {REFUSED, "ai.onnx.ml.TreeEnsembleRegressor(x:f[2,3]) aggregate_function='X'", 0},
    {REFUSED,
     "com.microsoft.GroupQueryAttention(q:f[2,1,64], k:f[2,1,32]) num_heads=4 kv_num_heads=2", 0},
    {REFUSED,
     "com.microsoft.GroupQueryAttention(q:f[2,64], k:f[2,32], v:f[2,32], -, -, l:j[2], t:j=1) "
     "num_heads=4 kv_num_heads=2",
     0},
    {REFUSED,
     "com.microsoft.GroupQueryAttention(q:f[2,1,64], k:f[2,1,32], v:f[2,1,32], p:f[2,2,4,16], -, "
     "l:j[2], t:j=1) num_heads=4 kv_num_heads=2",
     0},
    {REFUSED, "com.microsoft.RotaryEmbedding(x:f[2,5,24], p:i[2,2,5], c:f[20,4], s:f[20,4])", 0},
    {REFUSED, "com.microsoft.RotaryEmbedding(x:f[24], p:i[1], c:f[20,4], s:f[20,4])", 0},
    {REFUSED, "com.microsoft.Attention(x:f[2,4,8], w:f[8,24]) num_heads=2 do_rotary=1", 0},
    {REFUSED, "com.microsoft.Attention(x:f[2,4,8], w:f[8,24], b:f[24], m:j[2,1,1,2]) num_heads=2",
     0},
    {REFUSED,
     "com.microsoft.MultiHeadAttention(q:f[2,4,2,3,4], k:f[2,4,8], v:f[2,4,8]) num_heads=2", 0},
    {REFUSED, "com.microsoft.EmbedLayerNormalization(i:j[2,5])", 0},
    {REFUSED,
     "com.microsoft.EmbedLayerNormalization(i:j[5], -, w:f[11,8], p:f[6,8], -, g:f[8], b:f[8]) ->2",
     0},
    {REFUSED,
     "com.microsoft.EmbedLayerNormalization(i:j[2,9], -, w:f[11,8], p:f[6,8], -, g:f[8], b:f[8]) "
     "->2",
     0},
    {REFUSED,
     "com.microsoft.EmbedLayerNormalization(i:j[2,5], s:j[2,5], w:f[11,8], p:f[6,8], -, g:f[8], "
     "b:f[8]) ->2",
     0},
    {REFUSED, "ATen(x:f[4,2], i:i[3]) operator='none'", 0},
    {REFUSED, "org.pytorch.aten.ATen(x:f[4,2], i:i[3]) operator='none'", 0},
    {REFUSED,
     "LinearAttention(q:f[1,2,8], k:f[1,2,8], v:f[1,2,8]) q_num_heads=0 kv_num_heads=0 @27", 0},
    {REFUSED,
     "LinearAttention(q:f[1,2,8], k:f[1,2,8], v:f[1,2,8]) q_num_heads=3 kv_num_heads=3 @27", 0},
    {REFUSED, "QuantizeLinear(x:f[4,5], s:f[4,0]) axis=1", 0},
    {REFUSED, "QuantizeLinear(x:f[4,5], s:f[4,0]) axis=1 block_size=2", 0},
    {REFUSED, "DequantizeLinear(x:u[4,5], s:f[4,0]) axis=1", 0},
    {EITHER, "QuantizeLinear(x:f[4,0], s:f[4,0]) axis=1", 0},
    {REFUSED, "com.microsoft.GatherBlockQuantized(x:u[7,32], i:i[2], s:f[7,0]) block_size=16", 0},
    {EITHER, "Split(x:f[0]) num_outputs=2 ->2", 0},
    {REFUSED, "Split(x:f[4]) num_outputs=0 ->2", 0},
    {REFUSED, "STFT(x:f[1,8,1], s:i=0, -, n:i=4)", 0},
    {REFUSED, "STFT(x:f[1,8,1], s:i=2, -, n:i=0)", 0},
    {REFUSED, "MelWeightMatrix(a:i=0, b:i=16, c:i=8000, d:f=0, e:f=4000)", 0},
    {REFUSED, "MelWeightMatrix(a:i=4, b:i=16, c:i=0, d:f=0, e:f=4000)", 0},
    {REFUSED, "MelWeightMatrix(a:i=4, b:i=0, c:i=8000, d:f=0, e:f=4000)", 0},
    {REFUSED, "MelWeightMatrix(a:i=4, b:i=16, c:i=8000, d:f=-1, e:f=4000)", 0},
    {REFUSED, "MelWeightMatrix(a:i=4, b:i=16, c:i=8000, d:f=500, e:f=400)", 0},
    {REFUSED, "MelWeightMatrix(a:i=4, b:i=16, c:i=8000, d:f=0, e:f=1e15)", 0},
    {REFUSED, "MelWeightMatrix(a:i=67108864, b:i=1, c:i=8000, d:f=0, e:f=4000)", 0},
    {REFUSED, "MelWeightMatrix(a:i=9000, b:i=16000, c:i=8000, d:f=0, e:f=4000)", 0},
    {REFUSED, "STFT(x:f[1,8,1], s:i=2, -, n:i=9)", 0},
    {RUNS, "STFT(x:f[1,8,1], s:i=2, -, n:i=8)", 0},
    {REFUSED, "STFT(x:f[1,8], s:i=2, -, n:i=4)", 0},
    {REFUSED, "STFT(x:f[1,8,1], s:i=2, w:f[4,1])", 0},
    {REFUSED, "DFT(x:f[1,8,1]) axis=3 @17", 0},
    {REFUSED, "HannWindow(n:i=-1)", 0},
    {REFUSED, "HannWindow(n:i=67108865)", 0},
    {RUNS, "HannWindow(n:i=1)", 0},
    {RUNS, "HannWindow(n:i=0)", 0},
};

// --- running a row ---

static enum mgx_status fill(struct mgx_tensor *t, const struct mgx_shape *s, int64_t value,
                            struct mgx_diag *diag)
{
    TRY(mgx_tensor_create(t, s, diag));
    for (int64_t k = 0; k < mgx_shape_elements(s); k++) {
        if (mgx_type_is_integral(s->type))
            mgx_store_int(s->type, t->data, k, value);
        else
            mgx_store_double(s->type, t->data, k, 0.5);
    }
    return MGX_OK;
}

static enum mgx_status evaluate(struct mgx_program *p, const struct mgx_named_tensor *args,
                                int count, struct mgx_tensor *results, struct mgx_diag *diag)
{
    struct mgx_tensor values[16];
    struct mgx_arena strings;
    for (int i = 0; i < p->module_count; i++)
        mgx_module_number(p->modules[i]);
    for (int i = 0; i < count; i++)
        values[i] = args[i].tensor;
    mgx_arena_init(&strings);
    struct mgx_eval e = {.strings = &strings, .limit_bytes = (size_t)1 << 30};
    const enum mgx_status status =
        mgx_eval_module(&e, mgx_program_main(p), values, count, results, diag);
    for (int i = 0; i < 16; i++)
        mgx_tensor_release(&results[i]);
    mgx_arena_fini(&strings);
    return status;
}

// `target` NULL: the program as imported.
static enum mgx_status run_row(struct mgx_program *p, const char *target, int64_t value,
                               struct mgx_diag *diag)
{
    struct mgx_ins *params[16];
    struct mgx_named_tensor args[16] = {0};
    struct mgx_tensor results[16] = {0};
    const struct mgx_compile_options options = {.offload_copy = true};
    enum mgx_status status = MGX_OK;
    if (target)
        status = mgx_program_compile(p, mgx_target_find(target), &options, diag);
    if (status != MGX_OK)
        return status;
    const int count = mgx_module_parameters(mgx_program_main(p), params, 16);
    for (int i = 0; i < count && status == MGX_OK; i++) {
        args[i].name = mgx_parameter_name(params[i]);
        status = fill(&args[i].tensor, &params[i]->shape, value, diag);
    }
    struct mgx_run run = {.params = args,
                          .param_count = count,
                          .results = results,
                          .result_count = mgx_module_result_count(mgx_program_main(p))};
    if (status == MGX_OK)
        status = target ? mgx_program_run(p, &run, diag) : evaluate(p, args, count, results, diag);
    for (int i = 0; i < 16; i++) {
        mgx_tensor_release(&args[i].tensor);
        mgx_tensor_release(&results[i]);
    }
    return status;
}

// Exit status: 0 refused with a text, 1 ran, 2 refused without saying why.
static int try_row(const struct row *row, const char *target, char *text, size_t room)
{
    struct pb m = tiny_model(row->model);
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    enum mgx_status status = diag.status;
    if (p)
        status = run_row(p, target, row->fill, &diag);
    mgx_program_destroy(p);
    snprintf(text, room, "%s", diag.text);
    return status == MGX_OK ? 1 : diag.text[0] ? 0 : 2;
}

static bool holds_on(const struct row *row, const char *target)
{
    static char text[MGX_DIAG_TEXT_SIZE];
    const int result = try_row(row, target, text, sizeof text);
    const bool ok = row->verdict == EITHER ? result != 2
                    : row->verdict == RUNS ? result == 1
                                           : result == 0;
    if (!ok)
        printf("%s\n    %s: %s %s\n", row->model, target ? target : "as imported",
               result == 1 ? "ran" : "refused:", text);
    return ok;
}

// In a child: a crash or a hang is a failed row, not the end of the table.
static bool row_holds(const struct row *row)
{
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit core = {0, 0};
        setrlimit(RLIMIT_CORE, &core);
        const struct itimerval processor = {.it_value.tv_sec = 20}; // a busy machine fails nothing
        setitimer(ITIMER_PROF, &processor, NULL);
        alarm(200);
        bool ok = holds_on(row, NULL);
        ok = holds_on(row, "ref") && ok;
        ok = holds_on(row, "cpu") && ok;
        fflush(stdout);
        exit(!ok); // what is measured by coverage is written at exit
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        printf("%s\n    ended by signal %d\n", row->model, WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

CASE(hostile_operators_are_refused)
{
    int wrong = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        wrong += !row_holds(&rows[i]);
    CHECK_INT(wrong, 0);
}

CASE(messages_name_what_disagrees)
{
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        struct pb m = tiny_model(told[i].model);
        if (!refused(&m, MGX_INVALID, told[i].text))
            CHECK_FAIL("%s", told[i].model);
    }
}

TEST_MAIN(ROW(messages_name_what_disagrees) ROW(hostile_operators_are_refused))
