// SPDX-License-Identifier: MIT
// Hostile TensorFlow graphs: containers, structure, constants, functions, loops and operators. Each
// one must end in an error that says why, quickly, with everything given back (the sanitizer builds
// see to the latter). Damaged variables of SavedModels are in python/test_tf.py.
#include <time.h>

#include "graph_writer.h"

static double seconds_now(void) // of the processor: a busy machine fails nothing
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool survives(const void *data, size_t size)
{
    struct mgx_program *p = NULL;
    struct mgx_diag diag;
    mgx_diag_clear(&diag);
    uint8_t *exact = malloc(size ? size : 1);
    if (size)
        memcpy(exact, data, size);
    const enum mgx_status status = mgx_tf_import_buffer(&p, exact, size, false, NULL, &diag);
    const bool valid = !p || mgx_program_verify(p, NULL) == MGX_OK;
    mgx_program_destroy(p);
    free(exact);
    return valid && (status == MGX_OK) == (p != NULL) && (p || diag.text[0]);
}

// --- container ---

CASE(the_small_graph_is_one)
{
    struct pb g = tf_small_graph();
    CHECK(tf_imports(&g));
}

CASE(other_files_are_not_graphs)
{
    static const char text[] = "This is a text file.\nIt has lines.\n";
    static const uint8_t gzip[] = {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0x4B, 4, 0};
    struct pb m = {0};
    CHECK(tf_refused(&m, MGX_INVALID, "not a TensorFlow graph"));
    pb_raw(&m, text, sizeof text - 1);
    CHECK(tf_refused(&m, MGX_INVALID, "not a TensorFlow graph"));
    pb_raw(&m, gzip, sizeof gzip);
    CHECK(tf_refused(&m, MGX_INVALID, "not a TensorFlow graph"));
    pb_raw(&m, "\x0A\xFF\xFF\xFF\xFF\x0F", 6); // a node of 4 GiB
    CHECK(tf_refused(&m, MGX_INVALID, "not a TensorFlow graph"));
    pb_raw(&m, "\x08\x01", 2); // the version of a SavedModel, and nothing else
    CHECK(tf_refused(&m, MGX_INVALID, "without a graph"));
}

CASE(cut_off_anywhere)
{
    struct pb g = tf_small_graph();
    for (size_t size = 0; size < g.size; size++)
        CHECK(survives(g.data, size));
    pb_free(&g);
}

CASE(any_byte_changed)
{
    static const uint8_t masks[] = {1, 2, 8, 0x10, 0x80, 0xFF};
    struct pb g = tf_small_graph();
    for (size_t i = 0; i < g.size; i++)
        for (size_t k = 0; k < sizeof masks; k++) {
            g.data[i] ^= masks[k];
            CHECK(survives(g.data, g.size));
            g.data[i] ^= masks[k];
        }
    pb_free(&g);
}

// Where nobody says an input's rank, a failure says whose it is.
CASE(an_input_without_a_shape)
{
    struct pb g = {0}, a = {0};
    tf_type(&a, "dtype", TF_FLOAT);
    tf_node(&g, "x", "Placeholder", "", &a);
    tf_node(&g, "y", "Softmax", "x", NULL);
    CHECK(tf_refused(&g, MGX_INVALID, "input \"x\" declares no shape"));
}

// A value that becomes of unknown rank on the way: refused in words, by whoever needs its rank.
CASE(operators_on_a_value_without_a_rank)
{
    static const char *const ops[] = {
        "Split",      "Unpack",  "ConcatV2", "Sum",      "ArgMax",      "Cumsum", "ReverseV2",
        "ExpandDims", "Squeeze", "Softmax",  "GatherV2", "Transpose",   "OneHot", "Pack",
        "TopKV2",     "Tile",    "Pad",      "Slice",    "StridedSlice"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (int first = 0; first < 2; first++) {
            struct pb g = {0}, a = {0};
            const int64_t one = 1;
            tf_type(&a, "dtype", TF_FLOAT);
            pb_message(&a, 5, &(struct pb){0});
            tf_node(&g, "x", "Placeholder", "", &a);
            tf_number(&g, "j", one);
            tf_vector(&g, "p", 1, &one);
            tf_int(&a, "num_split", 2);
            tf_int(&a, "num", 2);
            tf_int(&a, "axis", 1);
            tf_node(&g, "s", ops[i], first ? "x,j,j" : "j,x,p", &a);
            tf_node(&g, "y", "Identity", "s", NULL);
            CHECK(survives(g.data, g.size));
            pb_free(&g);
        }
}

// --- names and order ---

CASE(names_must_be_there_once)
{
    struct pb g = {0};
    tf_placeholder(&g, "x", LENS(2));
    tf_node(&g, "y", "Relu", "nobody", NULL);
    CHECK(tf_refused(&g, MGX_INVALID, "\"nobody\" is produced by no node"));
    tf_placeholder(&g, "x", LENS(2));
    tf_node(&g, "y", "Relu", "x", NULL);
    tf_node(&g, "y", "Tanh", "x", NULL);
    CHECK(tf_refused(&g, MGX_INVALID, "\"y\" is defined twice"));
    tf_placeholder(&g, "x", LENS(2));
    tf_node(&g, "y", "Relu", "x:7", NULL);
    CHECK(tf_refused(&g, MGX_INVALID, "has no such result"));
    tf_node(&g, "y\xFF", "Relu", "x", NULL);
    CHECK(tf_refused(&g, MGX_INVALID, "not valid UTF-8"));
}

CASE(cycles_are_seen)
{
    struct pb g = {0};
    const struct mgx_tf_options named = {.outputs = (const char *const[]){"a"}, .output_count = 1};
    tf_node(&g, "a", "Relu", "b", NULL);
    tf_node(&g, "b", "Relu", "a", NULL);
    CHECK(tf_refused_with(&g, &named, MGX_INVALID, "cycle"));
    tf_node(&g, "a", "NextIteration", "a", NULL);
    CHECK(tf_refused_with(&g, &named, MGX_INVALID, "cycle"));
}

CASE(long_chains_are_linear_and_need_no_stack)
{
    enum { NODES = 100000 };
    struct pb g = {0};
    char name[16], before[16] = "x";
    tf_placeholder(&g, "x", LENS(2));
    for (int i = 0; i < NODES; i++) {
        snprintf(name, sizeof name, "n%d", i);
        tf_node(&g, name, "Relu", before, NULL);
        memcpy(before, name, sizeof name);
    }
    const double start = seconds_now();
    CHECK(tf_imports(&g));
    CHECK(seconds_now() - start < 10);
}

CASE(missing_operators_are_listed)
{
    struct pb g = {0};
    tf_placeholder(&g, "x", LENS(2));
    tf_node(&g, "a", "Frobnicate", "x", NULL);
    tf_node(&g, "b", "Frobnicate", "a", NULL);
    tf_node(&g, "c", "Grind", "x", NULL);
    CHECK(tf_refused(&g, MGX_UNSUPPORTED, "Grind: operator is not known; 1 node, first \"c\""));
}

// --- constants ---

CASE(constants_must_be_true)
{
    struct pb g = {0};
    const float two[2] = {1, 2};
    tf_constant(&g, "c", TF_FLOAT, LENS(3), 4, two, sizeof two);
    tf_node(&g, "y", "Relu", "c", NULL);
    CHECK(tf_refused(&g, MGX_INVALID, "data of 8 bytes where its dimensions need 12"));
    tf_constant(&g, "c", TF_FLOAT, LENS(1), 5, two, sizeof two);
    tf_node(&g, "y", "Relu", "c", NULL);
    CHECK(tf_refused(&g, MGX_INVALID, "data of 2 numbers where its dimensions need 1"));
    tf_constant(&g, "c", TF_FLOAT, LENS(-1), 5, two, sizeof two);
    tf_node(&g, "y", "Relu", "c", NULL);
    CHECK(tf_refused(&g, MGX_INVALID, "unknown"));
    tf_constant(&g, "c", 77, LENS(1), 5, two, sizeof two);
    tf_node(&g, "y", "Relu", "c", NULL);
    CHECK(tf_refused(&g, MGX_UNSUPPORTED, "data type number 77"));
    tf_constant(&g, "c", TF_FLOAT, LENS((int64_t)1 << 40, (int64_t)1 << 40), 5, two, 4);
    tf_node(&g, "y", "Relu", "c", NULL);
    CHECK(survives(g.data, g.size));
    pb_free(&g);
    tf_constant(&g, "c", TF_FLOAT, LENS((int64_t)1 << 33), 5, two, 4);
    tf_node(&g, "y", "Relu", "c", NULL);
    CHECK(tf_refused(&g, MGX_LIMIT, "above the limit"));
    tf_constant(&g, "c", TF_FLOAT, LENS((int64_t)1 << 28), 5, two, 8); // a GiB from two numbers
    tf_node(&g, "y", "Relu", "c", NULL);
    CHECK(tf_refused(&g, MGX_LIMIT, "above the limit"));
    tf_constant(&g, "c", TF_FLOAT, LENS((int64_t)1 << 28), 5, two, 4); // of one it is a view
    tf_node(&g, "y", "Relu", "c", NULL);
    CHECK(tf_imports(&g));
}

// --- functions ---

CASE(functions_that_call_themselves_are_refused)
{
    struct pb g = {0}, nodes = {0}, a = {0};
    tf_function(&a, "f", "f");
    tf_node(&nodes, "again", "PartitionedCall", "a0", &a);
    tf_define(&g, "f", 1, &nodes, 1, (const char *const[]){"again:output:0"});
    tf_placeholder(&g, "x", LENS(2));
    tf_function(&a, "f", "f");
    tf_node(&g, "y", "PartitionedCall", "x", &a);
    CHECK(tf_refused(&g, MGX_LIMIT, "nested deeper than 64"));
}

// f0 calls f1 twice, f1 calls f2 twice, ...: 2^40 nodes.
CASE(expansion_has_a_limit)
{
    enum { DEEP = 40 };
    struct pb g = {0}, nodes = {0}, a = {0}, library = {0};
    for (int i = 0; i < DEEP; i++) {
        char name[8], next[8];
        snprintf(name, sizeof name, "f%d", i);
        snprintf(next, sizeof next, "f%d", i + 1);
        if (i + 1 < DEEP) {
            tf_function(&a, "f", next);
            tf_node(&nodes, "one", "PartitionedCall", "a0", &a);
            tf_function(&a, "f", next);
            tf_node(&nodes, "two", "PartitionedCall", "one:output:0", &a);
        } else {
            tf_node(&nodes, "two", "Relu", "a0", NULL);
        }
        tf_add_function(&library, name, 1, &nodes, 1, (const char *const[]){"two:output:0"});
    }
    pb_message(&g, 2, &library);
    tf_placeholder(&g, "x", LENS(2));
    tf_function(&a, "f", "f0");
    tf_node(&g, "y", "PartitionedCall", "x", &a);
    const struct mgx_tf_options few = {.limit_nodes = 100000};
    CHECK(tf_refused_with(&g, &few, MGX_LIMIT, "more than 100000 nodes after expansion"));
}

CASE(functions_are_defined_once)
{
    struct pb g = {0}, nodes = {0}, library = {0};
    for (int i = 0; i < 2; i++) {
        tf_node(&nodes, "z", "Relu", "a0", NULL);
        tf_add_function(&library, "f", 1, &nodes, 1, (const char *const[]){"z:z:0"});
    }
    pb_message(&g, 2, &library);
    tf_placeholder(&g, "x", LENS(2));
    tf_node(&g, "y", "Relu", "x", NULL);
    CHECK(tf_refused(&g, MGX_INVALID, "function \"f\" is defined twice"));
}

CASE(calls_must_fit_their_function)
{
    struct pb g = {0}, nodes = {0}, a = {0};
    tf_node(&nodes, "z", "AddV2", "a0,a1", NULL);
    tf_define(&g, "f", 2, &nodes, 1, (const char *const[]){"z:z:0"});
    tf_placeholder(&g, "x", LENS(2));
    tf_function(&a, "f", "f");
    tf_node(&g, "y", "PartitionedCall", "x", &a);
    CHECK(tf_refused(&g, MGX_INVALID, "takes 2 arguments, given 1"));
    tf_placeholder(&g, "x", LENS(2));
    tf_function(&a, "f", "nobody");
    tf_node(&g, "y", "PartitionedCall", "x", &a);
    CHECK(tf_refused(&g, MGX_INVALID, "has no function \"nobody\""));
}

// --- control flow ---

CASE(frames_must_be_loops)
{
    struct pb g = {0}, a = {0};
    tf_placeholder(&g, "x", LENS(2));
    tf_node(&g, "y", "Exit", "x", NULL);
    CHECK(tf_refused(&g, MGX_INVALID, "leaves no frame"));
    tf_placeholder(&g, "x", LENS(2));
    tf_text(&a, "frame_name", "f");
    tf_node(&g, "e", "Enter", "x", &a);
    tf_node(&g, "m", "Merge", "e,n", NULL);
    tf_node(&g, "s", "Switch", "m,x", NULL);
    tf_node(&g, "n", "NextIteration", "s:1", NULL);
    tf_node(&g, "y", "Exit", "s", NULL);
    CHECK(survives(g.data, g.size));
    pb_free(&g);
    tf_placeholder(&g, "x", LENS(2));
    tf_node(&g, "y", "Merge", "x,x", NULL);
    CHECK(tf_refused(&g, MGX_UNSUPPORTED, "no condition divides"));
}

CASE(a_loop_of_itself_is_refused)
{
    struct pb g = {0}, nodes = {0}, a = {0};
    tf_function(&a, "cond", "f");
    tf_function(&a, "body", "f");
    tf_node(&nodes, "w", "While", "a0", &a);
    tf_define(&g, "f", 1, &nodes, 1, (const char *const[]){"w:output:0"});
    tf_placeholder(&g, "x", LENS(2));
    tf_function(&a, "cond", "f");
    tf_function(&a, "body", "f");
    tf_node(&g, "y", "While", "x", &a);
    CHECK(tf_refused(&g, MGX_LIMIT, "nested deeper"));
}

// --- operators: what their constants may say ---

// `op` of x {2, 3, 4, 5} and two vectors of one number repeated.
static bool extreme(const char *op, const char *inputs, int count, int64_t first, int64_t second)
{
    struct pb g = {0}, a = {0};
    int64_t v[2][8];
    for (int i = 0; i < 8; i++) {
        v[0][i] = first;
        v[1][i] = second;
    }
    tf_placeholder(&g, "x", LENS(2, 3, 4, 5));
    tf_vector(&g, "p", count, v[0]);
    tf_vector(&g, "q", count, v[1]);
    tf_number(&g, "i", first);
    tf_number(&g, "j", second);
    tf_constant(&g, "f", TF_FLOAT, 0, NULL, 5, (const float[]){2}, 4);
    tf_int(&a, "block_size", first);
    tf_int(&a, "num_split", first);
    tf_int(&a, "num", second);
    tf_int(&a, "axis", second);
    tf_int(&a, "batch_dims", first);
    tf_int(&a, "begin_mask", second);
    tf_int(&a, "ellipsis_mask", second);
    tf_int(&a, "shrink_axis_mask", first);
    tf_int(&a, "depth_radius", first);
    tf_int(&a, "num_bits", first);
    tf_ints(&a, "strides", 4, v[0]);
    tf_ints(&a, "ksize", 4, v[1]);
    tf_ints(&a, "dilations", 4, v[1]);
    tf_ints(&a, "squeeze_dims", 4, v[0]);
    tf_ints(&a, "explicit_paddings", 8, v[0]);
    tf_text(&a, "padding", first & 1 ? "EXPLICIT" : "SAME");
    tf_text(&a, "mode", "REFLECT");
    tf_node(&g, "y", op, inputs, &a);
    const double start = seconds_now();
    const bool ok = survives(g.data, g.size) && seconds_now() - start < 5;
    pb_free(&g);
    return ok;
}

CASE(operators_with_extreme_numbers)
{
    static const struct {
        const char *op, *inputs;
        int count;
    } rows[] = {{"StridedSlice", "x,p,q,p", 4},
                {"StridedSlice", "x,p,q,q", 8},
                {"Slice", "x,p,q", 4},
                {"Pad", "x,p", 8},
                {"MirrorPad", "x,p", 8},
                {"Reshape", "x,p", 4},
                {"Fill", "p,f", 4},
                {"BroadcastTo", "x,p", 4},
                {"Tile", "x,p", 4},
                {"Transpose", "x,p", 4},
                {"Range", "i,j,i", 1},
                {"LinSpace", "f,f,i", 1},
                {"OneHot", "p,i,f,f", 4},
                {"Split", "j,x", 1},
                {"SplitV", "x,p,j", 4},
                {"Unpack", "x", 1},
                {"Pack", "x,x", 1},
                {"ConcatV2", "x,x,i", 1},
                {"GatherV2", "x,p,j", 4},
                {"GatherNd", "x,p", 4},
                {"ScatterNd", "p,x,q", 4},
                {"TopKV2", "x,i", 1},
                {"SpaceToDepth", "x", 1},
                {"DepthToSpace", "x", 1},
                {"SpaceToBatchND", "x,p,q", 2},
                {"BatchToSpaceND", "x,p,q", 2},
                {"ResizeBilinear", "x,p", 2},
                {"Sum", "x,p", 2},
                {"ArgMax", "x,i", 1},
                {"Cumsum", "x,j", 1},
                {"MaxPool", "x", 1},
                {"AvgPool", "x", 1},
                {"Conv2D", "x,x", 1},
                {"DepthwiseConv2dNative", "x,x", 1},
                {"Conv2DBackpropInput", "p,x,x", 4},
                {"ExpandDims", "x,i", 1},
                {"Squeeze", "x", 1},
                {"LRN", "x", 1},
                {"MatrixBandPart", "x,i,j", 1},
                {"ReverseV2", "x,p", 2},
                {"TensorListReserve", "p,i", 4},
                {"FakeQuantWithMinMaxArgs", "x", 1},
                {"InvertPermutation", "p", 4},
                {"BroadcastArgs", "p,q", 4}};
    static const int64_t numbers[] = {
        0, 1, 2, -1, -2, 7, 65536, INT32_MAX, INT32_MIN, (int64_t)1 << 40, INT64_MAX, INT64_MIN};
    enum { COUNT = sizeof numbers / sizeof *numbers };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int a = 0; a < COUNT; a++)
            for (int b = 0; b < COUNT; b++)
                if (!extreme(rows[i].op, rows[i].inputs, rows[i].count, numbers[a], numbers[b]))
                    CHECK_FAIL("%s(%s) with %lld and %lld", rows[i].op, rows[i].inputs,
                               (long long)numbers[a], (long long)numbers[b]);
}

// Each of them is as wide as one node may be, by an attribute of some bytes.
CASE(wide_nodes_are_counted_together)
{
    enum { NODES = 40, WIDTH = 1 << 16 };
    struct pb g = {0}, a = {0};
    char name[16];
    tf_placeholder(&g, "x", LENS(WIDTH));
    tf_number(&g, "j", 0);
    for (int i = 0; i < NODES; i++) {
        snprintf(name, sizeof name, "s%d", i);
        tf_int(&a, "num_split", WIDTH);
        tf_node(&g, name, "Split", "j,x", &a);
    }
    const double start = seconds_now();
    CHECK(tf_refused(&g, MGX_LIMIT, "nodes of several results have more than"));
    CHECK(seconds_now() - start < 20);
}

// --- names that are bytes ---

// A SavedModel whose graph has a call "r" of function "fn" and whose Saver restores by node
// `restore`; the function is there for the effect of a node `effect`.
static struct pb saved_model(const char *restore, size_t restore_size, const char *effect,
                             size_t effect_size)
{
    struct pb saved = {0}, meta = {0}, saver = {0}, graph = {0}, a = {0}, library = {0}, f = {0},
              signature = {0}, entry = {0}, node = {0};
    tf_placeholder(&graph, "x", LENS(2));
    tf_function(&a, "f", "fn");
    tf_node(&graph, "r", "StatefulPartitionedCall", "", &a);
    pb_text(&signature, 1, "fn");
    pb_message(&f, 1, &signature);
    pb_text(&node, 1, "n");
    pb_text(&node, 2, "NoOp");
    pb_message(&f, 3, &node);
    pb_text(&entry, 1, "c");
    pb_bytes(&entry, 2, effect, effect_size);
    pb_message(&f, 6, &entry);
    pb_message(&library, 1, &f);
    pb_message(&graph, 2, &library);
    pb_bytes(&saver, 3, restore, restore_size);
    pb_message(&meta, 2, &graph);
    pb_message(&meta, 3, &saver);
    pb_int(&saved, 1, 1);
    pb_message(&saved, 2, &meta);
    return saved;
}

// They are as long as the file says, whatever bytes they have, and are refused before they are used.
CASE(names_of_effects_are_as_long_as_they_say)
{
    enum { LONG = 1 << 20 };
    char *zeros = calloc(LONG + 1, 1);
    CHECK(zeros != NULL);
    for (size_t size = 1; size <= LONG; size *= LONG) {
        const char *why = size > 1 ? "bytes long" : "not valid UTF-8 text without NUL";
        const enum mgx_status status = size > 1 ? MGX_LIMIT : MGX_INVALID;
        struct pb m = saved_model(zeros, size, "n", 1);
        CHECK(tf_refused(&m, status, why));
        m = saved_model("r", 1, zeros, size);
        CHECK(tf_refused(&m, status, why));
        memcpy(zeros, "r", 1);
        m = saved_model(zeros, size + 1, "n", 1);
        CHECK(tf_refused(&m, status, why));
        memset(zeros, 0, 1);
    }
    free(zeros);
}

TEST_MAIN(ROW(names_of_effects_are_as_long_as_they_say) ROW(an_input_without_a_shape)
              ROW(operators_on_a_value_without_a_rank) ROW(the_small_graph_is_one)
                  ROW(other_files_are_not_graphs) ROW(cut_off_anywhere) ROW(any_byte_changed)
                      ROW(names_must_be_there_once) ROW(cycles_are_seen)
                          ROW(long_chains_are_linear_and_need_no_stack)
                              ROW(missing_operators_are_listed) ROW(constants_must_be_true)
                                  ROW(functions_that_call_themselves_are_refused)
                                      ROW(expansion_has_a_limit) ROW(functions_are_defined_once)
                                          ROW(calls_must_fit_their_function)
                                              ROW(frames_must_be_loops)
                                                  ROW(a_loop_of_itself_is_refused)
                                                      ROW(operators_with_extreme_numbers)
                                                          ROW(wide_nodes_are_counted_together))
