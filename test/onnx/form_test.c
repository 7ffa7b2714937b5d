// SPDX-License-Identifier: MIT
// Forms of operators that exporters write though the standard has them otherwise, or not at all.
// Each row has such a form and the regular one, as lines of tiny.h; both get the same inputs and
// must give the same results, bit for bit. What the regular form gives is known from the suite.
#include "import.h"
#include "tiny.h"

enum { MOST = 8, ROOM = 4096 };

static const struct {
    const char *form, *regular;
} same[] = {
    // an empty list of axes is none
    {"Squeeze(x:f[3,1,5,1], a:i{})", "Squeeze(x:f[3,1,5,1], a:i{1,3})"},
    {"Squeeze(x:f[3,1,5,1]) axes=[] @11", "Squeeze(x:f[3,1,5,1]) axes=[1,3] @11"},
    {"Squeeze(x:f[3,5], a:i{})", "Identity(x:f[3,5])"},
    // lengths of 1 broadcast
    {"Einsum(a:f[3,1], b:f[2,2]) equation='ij,jk->ik'",
     "Einsum(a:f[3], b:f[2,2]) equation='i,jk->ik'"},
    {"Einsum(a:f[1,2], b:f[3,2]) equation='bi,bi->b'",
     "Einsum(a:f[2], b:f[3,2]) equation='i,bi->b'"},
    {"Einsum(a:f[1,1], b:f[3,4]) equation='...,...->...'",
     "Einsum(a:f[1], b:f[3,4]) equation='i,jk->jk'"},
    // numbers of another kind
    {"LeakyRelu(x:f[3,4]) alpha=2", "LeakyRelu(x:f[3,4]) alpha=2.0"},
    {"LeakyRelu(x:f[3,4]) alpha=[0.5]", "LeakyRelu(x:f[3,4]) alpha=0.5"},
    {"LSTM(x:f[2,1,3], w:f[1,8,3], r:f[1,8,2]) hidden_size=2 clip=1 ->3",
     "LSTM(x:f[2,1,3], w:f[1,8,3], r:f[1,8,2]) hidden_size=2 clip=1.0 ->3"},
    {"RandomUniformLike(x:f[3,4]) seed=1", "RandomUniformLike(x:f[3,4]) seed=1.0"},
    {"IsInf(x:f[3,4]) detect_negative=[1] detect_positive=[0]",
     "IsInf(x:f[3,4]) detect_negative=1 detect_positive=0"},
    {"Softmax(x:f[3,4]) axis=0.0", "Softmax(x:f[3,4]) axis=0"},
    {"Softmax(x:f[2,5,1]) axis=1 @11", "Softmax(x:f[2,5,1]) axis=1"},
    {"Hardmax(x:f[2,1,5]) axis=1 @11", "Hardmax(x:f[2,1,5]) axis=2"},
    {"Transpose(x:f[4]) perm=0", "Transpose(x:f[4]) perm=[0]"},
    {"RNN(x:f[2,1,3], w:f[1,2,3], r:f[1,2,2]) hidden_size=2 activations=['LeakyRelu'] "
     "activation_alpha=[1]",
     "RNN(x:f[2,1,3], w:f[1,2,3], r:f[1,2,2]) hidden_size=2 activations=['LeakyRelu'] "
     "activation_alpha=[1.0]"},
    // places of older versions in newer models
    {"Upsample(x:f[1,1,2,3], s:f{1.0,1.0,2.0,2.0}) @13",
     "Upsample(x:f[1,1,2,3], s:f{1.0,1.0,2.0,2.0}) @9"},
    {"Upsample(x:f[1,1,2,3], -, s:f{1.0,1.0,2.0,2.0}) mode='linear' @13",
     "Upsample(x:f[1,1,2,3], s:f{1.0,1.0,2.0,2.0}) mode='linear' @9"},
    {"Upsample(x:f[1,1,2,3]) scales=[1.0,1.0,2.0,2.0] @19",
     "Upsample(x:f[1,1,2,3], s:f{1.0,1.0,2.0,2.0}) @9"},
    {"TopK(x:f[3,5]) k=2 axis=1 @12 ->2", "TopK(x:f[3,5], k:i{2}) axis=1 @12 ->2"},
    {"Reshape(x:f[2,6]) shape=[3,4] @19", "Reshape(x:f[2,6], s:i{3,4}) @19"},
    {"Reshape(x:f[2,6], s:i{3,4}) allowzero=1", "Reshape(x:f[2,6], s:i{3,4})"},
    {"Reshape(x:f[3,0], s:i{2,0}) allowzero=1", "Transpose(x:f[0,2])"},
    {"LpPool(x:f[1,2,6]) kernel_shape=[6] p=1", "GlobalLpPool(x:f[1,2,6]) p=1"},
    {"GlobalMaxPool(x:f[2,3,5])", "MaxPool(x:f[2,3,5]) kernel_shape=[5]"},
    // one image is a batch
    {"BatchNormalization(x:f[1,3,8], s:f{1.0,-2.0,0.5}, b:f{0.0,1.0,2.0}, m:f{9.0,9.0,9.0}, "
     "v:f{4.0,4.0,4.0}) training_mode=1",
     "InstanceNormalization(x:f[1,3,8], s:f{1.0,-2.0,0.5}, b:f{0.0,1.0,2.0})"},
    {"Add(x:f[2,3,4], y:f[3]) broadcast=1 axis=1 @8",
     "Add(x:f[2,3,4], y:f[3]) broadcast=1 axis=1 @6"},
    {"Less(x:f[2,3], y:f[2]) broadcast=1 axis=0 @9",
     "Less(x:f[2,3], y:f[2]) broadcast=1 axis=0 @1"},
    {"ReverseSequence(x:f[4,2]) sequence_lens=[3,2]", "ReverseSequence(x:f[4,2], l:i{3,2})"},
    {"Clip(x:f[3,4]) min=-0.5 max=1.0 @13", "Clip(x:f[3,4], a:f=-0.5, b:f=1.0) @13"},
    {"Pad(x:f[2,3]) pads=[0,1,0,1] value=2.0 @13", "Pad(x:f[2,3], p:i{0,1,0,1}, v:f=2.0) @13"},
    {"Pad(x:f[2,3], p:i{1,1}, a:i{1})", "Pad(x:f[2,3], p:i{1,1}, -, a:i{1})"},
    {"RandomNormal(x:f[3,4]) seed=1.0", "RandomNormalLike(x:f[3,4]) seed=1.0"},
    {"RandomUniform(x:f[3,4]) seed=1.0", "RandomUniformLike(x:f[3,4]) seed=1.0"},
    {"Conv(x:f[1,2,5,5], w:f[3,2,2,2]) auto_pad='SAME'",
     "Conv(x:f[1,2,5,5], w:f[3,2,2,2]) auto_pad='SAME_UPPER'"},
    // one type where two are given
    {"Mod(x:f[3], y:j{2,3,4}) fmod=1", "Mod(x:f[3], y:f{2.0,3.0,4.0}) fmod=1"},
    {"Max(x:f[3], y:i{2,3,4}, z:i=1)", "Max(x:f[3], y:f{2.0,3.0,4.0}, z:f=1.0)"},
    {"Where(c:b{1,0,1}, x:f[3], y:i=1)", "Where(c:b{1,0,1}, x:f[3], y:f=1.0)"},
    {"GreaterOrEqual(x:f[3], y:i=1)", "GreaterOrEqual(x:f[3], y:f=1.0)"},
    {"Clip(x:f[3,4], -, b:i=1)", "Clip(x:f[3,4], -, b:f=1.0)"},
    // scale and bias of GroupNormalization by their length
    {"GroupNormalization(x:f[1,4,2], s:f[4], b:f[4]) num_groups=2 @18",
     "GroupNormalization(x:f[1,4,2], s:f[4], b:f[4]) num_groups=2 @21"},
    // statistics in the type of the input
    {"LayerNormalization(x:f[2,4], s:f[4]) stash_type=0 ->2",
     "LayerNormalization(x:f[2,4], s:f[4]) stash_type=1 ->2"},
    {"LayerNormalization(x:d[2,4], s:d[4]) stash_type=0 ->3",
     "LayerNormalization(x:d[2,4], s:d[4]) stash_type=11 ->3"},
    // lengths as a matrix of one
    {"com.microsoft.GroupQueryAttention(q:f[1,1,24], -, -, k:f[1,1,4,8], v:f[1,1,4,8], "
     "l:j[1,1], t:j[1,1]) num_heads=1 kv_num_heads=1 ->3",
     "com.microsoft.GroupQueryAttention(q:f[1,1,24], -, -, k:f[1,1,4,8], v:f[1,1,4,8], l:j[1], "
     "t:j[1]) num_heads=1 kv_num_heads=1 ->3"},
    // masks one place forward, as the bias is, behind packed keys
    {"com.microsoft.MultiHeadAttention(q:f[1,2,4], k:f[1,2,2,2,2], b:f[12], m:j[1,2]) num_heads=2",
     "com.microsoft.MultiHeadAttention(q:f[1,2,4], k:f[1,2,2,2,2], -, b:f[12], m:j[1,2]) "
     "num_heads=2"},
    // fewer activations than there are places
    {"RNN(x:f[2,1,3], w:f[2,2,3], r:f[2,2,2]) hidden_size=2 direction='bidirectional' "
     "activations=['Relu'] ->2",
     "RNN(x:f[2,1,3], w:f[2,2,3], r:f[2,2,2]) hidden_size=2 direction='bidirectional' "
     "activations=['Relu','Relu'] ->2"},
    {"GRU(x:f[2,1,3], w:f[2,6,3], r:f[2,6,2]) hidden_size=2 direction='bidirectional' "
     "activations=['Sigmoid','Relu','Tanh'] ->2",
     "GRU(x:f[2,1,3], w:f[2,6,3], r:f[2,6,2]) hidden_size=2 direction='bidirectional' "
     "activations=['Sigmoid','Relu','Tanh','Tanh'] ->2"},
    {"LSTM(x:f[2,1,3], w:f[2,8,3], r:f[2,8,2]) hidden_size=2 direction='bidirectional' "
     "activations=['Sigmoid','Relu'] ->3",
     "LSTM(x:f[2,1,3], w:f[2,8,3], r:f[2,8,2]) hidden_size=2 direction='bidirectional' "
     "activations=['Sigmoid','Relu','Relu','Sigmoid','Relu','Relu'] ->3"},
    // com.microsoft
    {"com.microsoft.MultiHeadAttention(q:f[1,3,8], k:f[1,5,2,2,4], b:f[24]) num_heads=2",
     "com.microsoft.MultiHeadAttention(q:f[1,3,8], k:f[1,5,2,2,4], -, b:f[24]) num_heads=2"},
    {"com.microsoft.MultiHeadAttention(q:f[1,3,8], k:f[1,5,8], v:f[1,5,8], w:f[12,2]) num_heads=2",
     "com.microsoft.MultiHeadAttention(q:f[1,3,8], k:f[1,5,8], v:f[1,5,8], w:f[24]) num_heads=2"},
    {"Attention(x:f[2,4,8], w:f[8,24]) num_heads=2 @19",
     "com.microsoft.Attention(x:f[2,4,8], w:f[8,24]) num_heads=2 @19"},
};

struct results {
    struct mgx_tensor v[MOST];
    int count;
};

static void fill(struct mgx_tensor *t, int parameter)
{
    const int64_t count = mgx_shape_elements(&t->shape);
    const bool real = mgx_type_is_float(t->shape.type);
    for (int64_t i = 0; i < count; i++) {
        const double step = (double)((i * 7 + parameter * 3) % 11);
        mgx_store_double(t->shape.type, (void *)t->data, i, real ? (step - 5) / 4 : step);
    }
}

static bool evaluate(struct mgx_program *p, struct results *out)
{
    struct mgx_diag diag;
    struct mgx_arena strings;
    struct mgx_ins *parameters[MOST];
    struct mgx_tensor args[MOST] = {0};
    mgx_diag_clear(&diag);
    mgx_arena_init(&strings);
    const int count = mgx_module_parameters(mgx_program_main(p), parameters, MOST);
    bool ok = count <= MOST;
    for (int i = 0; ok && i < count; i++) {
        ok = mgx_tensor_create(&args[i], &parameters[i]->shape, &diag) == MGX_OK;
        if (ok)
            fill(&args[i], i);
    }
    for (int i = 0; i < p->module_count; i++)
        mgx_module_number(p->modules[i]);
    struct mgx_eval e = {.strings = &strings};
    out->count = mgx_module_result_count(mgx_program_main(p));
    ok = ok && out->count <= MOST &&
         mgx_eval_module(&e, mgx_program_main(p), args, count, out->v, &diag) == MGX_OK;
    if (!ok)
        printf("run: %s\n", diag.text);
    for (int i = 0; i < MOST; i++)
        mgx_tensor_release(&args[i]);
    mgx_arena_fini(&strings);
    return ok;
}

static bool run(const char *line, struct results *out)
{
    struct mgx_diag diag;
    struct pb m = tiny_model(line);
    *out = (struct results){0};
    struct mgx_program *p = import_model(&m, NULL, &diag);
    if (!p)
        printf("import: %s\n", diag.text);
    const bool ok = p && evaluate(p, out);
    mgx_program_destroy(p);
    return ok;
}

static bool equal(const struct mgx_tensor *a, const struct mgx_tensor *b)
{
    static double x[ROOM], y[ROOM];
    const int64_t count = mgx_shape_elements(&a->shape);
    if (a->shape.type != b->shape.type || a->shape.rank != b->shape.rank || count > ROOM ||
        memcmp(a->shape.lens, b->shape.lens, (size_t)a->shape.rank * sizeof *x) != 0)
        return false;
    mgx_tensor_to_doubles(a, x);
    mgx_tensor_to_doubles(b, y);
    return memcmp(x, y, (size_t)count * sizeof *x) == 0;
}

static bool agree(const char *form, const char *regular)
{
    struct results a, b;
    bool ok = run(form, &a);
    ok = run(regular, &b) && ok && a.count == b.count;
    for (int i = 0; ok && i < a.count; i++)
        ok = equal(&a.v[i], &b.v[i]);
    for (int i = 0; i < MOST; i++) {
        mgx_tensor_release(&a.v[i]);
        mgx_tensor_release(&b.v[i]);
    }
    return ok;
}

CASE(forms_are_the_regular_ones)
{
    for (int i = 0; i < (int)(sizeof same / sizeof *same); i++) {
        const bool ok = agree(same[i].form, same[i].regular);
        if (!ok)
            printf("%s\n  is not %s\n", same[i].form, same[i].regular);
        CHECK(ok);
    }
}

TEST_MAIN(ROW(forms_are_the_regular_ones))
