// SPDX-License-Identifier: MIT
// The time of an import grows as the graph does: eight times the nodes take no more than 24 times
// the time, where a square would take 64. Prints what it measured.
#include <time.h>

#include "graph_writer.h"

static double seconds_now(void) // of the processor: a busy machine fails nothing
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const char *name_of(const char *letter, int i)
{
    static char names[4][24];
    static int next;
    char *name = names[next++ % 4];
    snprintf(name, sizeof names[0], "%s%d", letter, i);
    return name;
}

// --- graphs of so many nodes ---

static struct pb chain(int nodes)
{
    struct pb g = {0};
    tf_placeholder(&g, "n0", LENS(2, 3));
    for (int i = 1; i < nodes; i++)
        tf_node(&g, name_of("n", i), i % 2 ? "Relu" : "Tanh", name_of("n", i - 1), NULL);
    return g;
}

// The same, the last node first.
static struct pb backwards(int nodes)
{
    struct pb g = {0};
    for (int i = nodes - 1; i > 0; i--)
        tf_node(&g, name_of("n", i), i % 2 ? "Relu" : "Tanh", name_of("n", i - 1), NULL);
    tf_placeholder(&g, "n0", LENS(2, 3));
    return g;
}

// A block of weights, bias and sum a layer, as networks have them.
static struct pb layers(int nodes)
{
    static const float numbers[4] = {1, 2, 3, 4};
    struct pb g = {0};
    tf_placeholder(&g, "y0", LENS(2, 2));
    for (int i = 1; i <= nodes / 5; i++) {
        char in[64];
        tf_constant(&g, name_of("w", i), TF_FLOAT, LENS(2, 2), 4, numbers, 16);
        tf_constant(&g, name_of("b", i), TF_FLOAT, LENS(2), 4, numbers, 8);
        snprintf(in, sizeof in, "y%d,w%d", i - 1, i);
        tf_node(&g, name_of("m", i), "MatMul", in, NULL);
        snprintf(in, sizeof in, "m%d,b%d", i, i);
        tf_node(&g, name_of("s", i), "BiasAdd", in, NULL);
        snprintf(in, sizeof in, "s%d,y%d", i, i - 1);
        tf_node(&g, name_of("y", i), "AddV2", in, NULL);
    }
    return g;
}

// One function, called again and again.
static struct pb calls(int nodes)
{
    struct pb g = {0}, a = {0}, inner = {0};
    tf_node(&inner, "r", "Relu", "a0", NULL);
    tf_node(&inner, "t", "Tanh", "r:activations:0", NULL);
    tf_define(&g, "f", 1, &inner, 1, (const char *const[]){"t:y:0"});
    tf_placeholder(&g, "n0", LENS(2, 3));
    for (int i = 1; i <= nodes / 3; i++) {
        tf_function(&a, "f", "f");
        tf_node(&g, name_of("n", i), "PartitionedCall", name_of("n", i - 1), &a);
    }
    return g;
}

// Conditions one after the other, so that control inputs are followed.
static struct pb conditions(int nodes)
{
    struct pb g = {0}, a = {0};
    struct pb v = {0}, shape = tf_shape(0, NULL);
    tf_type(&a, "dtype", 10);
    pb_message(&v, 7, &shape);
    tf_attribute(&a, "shape", &v);
    tf_node(&g, "c", "Placeholder", "", &a);
    tf_placeholder(&g, "n0", LENS(2, 3));
    for (int i = 1; i <= nodes / 4; i++) {
        char in[64];
        snprintf(in, sizeof in, "n%d,c", i - 1);
        tf_node(&g, name_of("s", i), "Switch", in, NULL);
        snprintf(in, sizeof in, "s%d:1,^n%d", i, i - 1);
        tf_node(&g, name_of("t", i), "Tanh", in, NULL);
        tf_node(&g, name_of("r", i), "Relu", name_of("s", i), NULL);
        snprintf(in, sizeof in, "r%d,t%d", i, i);
        tf_node(&g, name_of("n", i), "Merge", in, NULL);
    }
    return g;
}

static const struct {
    const char *name;
    struct pb (*make)(int nodes);
} graphs[] = {{"chain", chain},
              {"backwards", backwards},
              {"layers", layers},
              {"calls", calls},
              {"conditions", conditions}};
enum { GRAPHS = sizeof graphs / sizeof *graphs };

// --- time ---

// The least of three, in seconds; below 0: refused.
static double import_seconds(int graph, int nodes)
{
    double least = 1e9;
    struct pb g = graphs[graph].make(nodes);
    for (int i = 0; i < 3; i++) {
        struct mgx_program *p = NULL;
        struct mgx_diag diag;
        mgx_diag_clear(&diag);
        const double start = seconds_now();
        const enum mgx_status status = mgx_tf_import_buffer(&p, g.data, g.size, false, NULL, &diag);
        const double took = seconds_now() - start;
        mgx_program_destroy(p);
        if (status != MGX_OK) {
            printf("%s: %s\n", graphs[graph].name, diag.text);
            least = -1;
            break;
        }
        least = took < least ? took : least;
    }
    pb_free(&g);
    return least;
}

CASE(time_grows_with_the_nodes)
{
    enum { NODES = 4000 };
    for (int i = 0; i < GRAPHS; i++) {
        const double few = import_seconds(i, NODES), many = import_seconds(i, 8 * NODES);
        CHECK(few >= 0 && many >= 0);
        printf("%-10s %6d nodes %6.1f ms, %6d nodes %6.1f ms\n", graphs[i].name, NODES, 1e3 * few,
               8 * NODES, 1e3 * many);
        if (many > 24 * few + 0.05)
            CHECK_FAIL("%s: %.1f ms for %d nodes, %.1f ms for 8 times as many", graphs[i].name,
                       1e3 * few, NODES, 1e3 * many);
    }
}

TEST_MAIN(ROW(time_grows_with_the_nodes))
