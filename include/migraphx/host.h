// SPDX-License-Identifier: MIT
// What a program needs that has this engine inside it, as ONNX Runtime has its providers: a graph
// out of its own memory, and runs in its own memory. extensions.h includes it.
#ifndef MIGRAPHX_GUARD_HOST_H
#define MIGRAPHX_GUARD_HOST_H

#include <migraphx/extensions.h>

#ifdef __cplusplus
extern "C" {
#endif

// --- a graph handed over node by node ---
//
// A host that has an ONNX graph in memory hands over what it has: nothing is serialised, and
// weights are addresses, or places in files that are mapped, until a kernel packs them.
//
//     migraphx_onnx_graph_create(&g);
//     migraphx_onnx_graph_set_opset(g, "", 21);
//     migraphx_onnx_graph_add_input(g, "x", &(migraphx_onnx_type){.element = 1, .rank = -1});
//     migraphx_onnx_graph_add_initializer(g, "w", 1, lens, 2, address, bytes, NULL, NULL);
//     migraphx_onnx_graph_add_node(g, "", "MatMul", "", in, 2, out, 1);
//     migraphx_onnx_graph_add_output(g, "y", NULL);
//     migraphx_parse_onnx_graph(&program, g, options);
//
// Calls in any order, but attributes follow their node. Nodes need not be sorted. What is handed
// over may be wrong in every way that a file may be; parsing says so as it does of a file. A graph
// and its bodies are used by one thread at a time. Names, attributes and lengths are copied.

typedef struct migraphx_onnx_graph *migraphx_onnx_graph_t;
typedef const struct migraphx_onnx_graph *const_migraphx_onnx_graph_t;

// What a value is.
typedef enum {
    migraphx_onnx_tensor,
    migraphx_onnx_sequence,          // of tensors
    migraphx_onnx_optional,          // a tensor or nothing
    migraphx_onnx_optional_sequence, // a sequence of tensors or nothing
} migraphx_onnx_container_t;

// The type of a value in ONNX's terms.
typedef struct {
    migraphx_onnx_container_t container;
    int element;              // of elements, by TensorProto's number: 1 is float
    int rank;                 // below 0: nothing is known of the lengths
    const int64_t *lens;      // below 0: open
    const char *const *names; // of open ones; NULL, also in the list: without a name
} migraphx_onnx_type;

// Makes a graph without nodes.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_graph_create(migraphx_onnx_graph_t *out);
// Makes a body for a node of `of`, which may be a body itself.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_graph_create_body(migraphx_onnx_graph_t *out,
                                                                  migraphx_onnx_graph_t of);
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_graph_destroy(migraphx_onnx_graph_t graph);
// Imports a version of a domain, "" for ONNX's own, for the graph with all its bodies.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_graph_set_opset(migraphx_onnx_graph_t graph,
                                                                const char *domain,
                                                                int64_t version);
// Adds an input.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_graph_add_input(migraphx_onnx_graph_t graph,
                                                                const char *name,
                                                                const migraphx_onnx_type *type);
// Adds an output; `type` may be NULL.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_graph_add_output(migraphx_onnx_graph_t graph,
                                                                 const char *name,
                                                                 const migraphx_onnx_type *type);
// Says what is known of a value between nodes: migraphx_onnx_graph_judge needs it of results of nodes
// that are not taken, nothing else does.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_graph_add_value(migraphx_onnx_graph_t graph,
                                                                const char *name,
                                                                const migraphx_onnx_type *type);
// Adds a weight of `size` bytes at `data`, as the standard has raw_data, of a type by its number.
// The bytes stay where they are: `release(owner)` is called, from whatever thread, when neither the
// graph nor a program made of it needs them any more, but not when the call fails; where it is NULL,
// they outlive both.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_graph_add_initializer(
    migraphx_onnx_graph_t graph, const char *name, int element, const int64_t *lens, size_t rank,
    const void *data, size_t size, void (*release)(void *owner), void *owner);
// Names the file that the host read its graph from. Weights that are kept, and that lie in it byte
// for byte under their names, are then shown from there, mapped; what cannot be read helps nobody and
// is no failure.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_graph_set_model_path(migraphx_onnx_graph_t graph,
                                                                     const char *path);
// Adds a weight that the host will not keep: its bytes are shown from the model's file, or copied.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_graph_add_initializer_kept(
    migraphx_onnx_graph_t graph, const char *name, int element, const int64_t *lens, size_t rank,
    const void *data, size_t size);
// Adds a weight that lies in a file, which is mapped once for all that lies in it. The path is the
// host's own word: unlike those in models it may lead anywhere.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_graph_add_initializer_file(
    migraphx_onnx_graph_t graph, const char *name, int element, const int64_t *lens, size_t rank,
    const char *path, size_t offset, size_t size);
// Adds a constant of strings; text i has sizes[i] bytes, which are copied.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_graph_add_initializer_strings(
    migraphx_onnx_graph_t graph, const char *name, const int64_t *lens, size_t rank,
    const char *const *texts, const size_t *sizes, size_t size);

// Adds a node; its number is how many were added to this graph before it. NULL and "" among the
// names stand for values that are absent.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_graph_add_node(
    migraphx_onnx_graph_t graph, const char *name, const char *op_type, const char *domain,
    const char *const *inputs, size_t inputs_size, const char *const *outputs, size_t outputs_size);
// Gives the node added last an attribute.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_graph_set_int(migraphx_onnx_graph_t graph,
                                                              const char *name, int64_t value);
// Gives it a list of integers.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_graph_set_ints(migraphx_onnx_graph_t graph,
                                                               const char *name,
                                                               const int64_t *values, size_t size);
// Gives it a number.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_graph_set_float(migraphx_onnx_graph_t graph,
                                                                const char *name, float value);
// Gives it a list of numbers.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_graph_set_floats(migraphx_onnx_graph_t graph,
                                                                 const char *name,
                                                                 const float *values, size_t size);
// Gives it a text of so many bytes.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_graph_set_string(migraphx_onnx_graph_t graph,
                                                                 const char *name, const char *text,
                                                                 size_t size);
// Gives it a list of texts; text i has sizes[i] bytes.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_graph_set_strings(migraphx_onnx_graph_t graph,
                                                                  const char *name,
                                                                  const char *const *texts,
                                                                  const size_t *sizes, size_t size);
// Gives it a tensor, as in migraphx_onnx_graph_add_initializer, whose bytes are copied.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_graph_set_tensor(migraphx_onnx_graph_t graph,
                                                                 const char *name, int element,
                                                                 const int64_t *lens, size_t rank,
                                                                 const void *data, size_t size);
// Gives it a tensor of strings.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_graph_set_string_tensor(
    migraphx_onnx_graph_t graph, const char *name, const int64_t *lens, size_t rank,
    const char *const *texts, const size_t *sizes, size_t size);
// Gives it a body, complete: nothing is added to that any more.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_graph_set_body(migraphx_onnx_graph_t graph,
                                                               const char *name,
                                                               migraphx_onnx_graph_t body);

// Makes a program of the graph, which may be judged, completed and parsed again. `options` may be
// NULL.
MIGRAPHX_C_EXPORT migraphx_status migraphx_parse_onnx_graph(migraphx_program_t *out,
                                                            migraphx_onnx_graph_t graph,
                                                            migraphx_onnx_options_t options);
// Finds out which nodes migraphx_parse_onnx_graph takes with these options: it is tried, so the answer
// is exact, and costs an import. The call fails where the graph as a whole is wrong.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_graph_judge(migraphx_onnx_graph_t graph,
                                                            migraphx_onnx_options_t options);
// Gives why a node was not taken by the last judgement, borrowed until the next one; NULL: it was.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_graph_verdict(const char **out,
                                                              const_migraphx_onnx_graph_t graph,
                                                              size_t node);

// --- runs in the host's memory ---

// A parameter of a run in the caller's memory, row-major and read only. Where `argument` is not NULL
// it is the value itself, and beside it only the name counts.
typedef struct {
    const char *name;
    migraphx_shape_datatype_t type;
    const size_t *lens;
    size_t rank;
    const void *data;
    const_migraphx_argument_t argument;
} migraphx_buffer;

// Asked where a result is to be written, row-major: result number `index` of the type and lengths
// that it has in this run. NULL leaves it to the engine. Called once for each result of numbers, by
// the thread that runs, before it is computed where its size is known by then.
typedef void *(*migraphx_place_callback_t)(void *data, size_t index, migraphx_shape_datatype_t type,
                                           const size_t *lens, size_t rank);
// As program_run, with the caller's memory for parameters, which is borrowed until the call returns,
// and for results. *out holds all results, those that were placed too; `out` may be NULL. A place
// may be the memory of a parameter where the operators that meet there allow it, as caches of
// attention do.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_run_buffers(
    migraphx_arguments_t *out, migraphx_program_t program, const migraphx_buffer *params,
    size_t params_size, migraphx_place_callback_t place, void *data);
// The same, and tells after every instruction which threads were at it and when
// (migraphx_program_run_spans).
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_run_buffers_spans(
    migraphx_arguments_t *out, migraphx_program_t program, const migraphx_buffer *params,
    size_t params_size, migraphx_place_callback_t place, void *data,
    migraphx_span_callback_t callback, void *callback_data);

// The same, by a stream of the host's (a driver's handle, NULL its default one) on a card. Returns
// before its work is done where no step and no result is the processor's; what it was given stays
// until then.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_run_buffers_async(
    migraphx_arguments_t *out, migraphx_program_t program, const migraphx_buffer *params,
    size_t params_size, migraphx_place_callback_t place, void *data, void *stream);

// --- a card's memory, for a host with allocators and streams of its own ---
//
// A program that is compiled without offload_copy runs over such addresses: as parameters, and for
// the places of results of known size, which are parameters named main:#output_0 and so on. Cards
// are named as for migraphx_device_allocate (extensions.h).

// Writes the name of card `number` among those that `device` stands for, NULL being those that target
// "gpu" takes: "cuda:0". No card is opened where counting suffices. Behind the last one the call fails.
MIGRAPHX_C_EXPORT migraphx_status migraphx_device_card(char *out, size_t out_size,
                                                       const char *device, size_t number);
// Makes so many bytes, aligned to 64 at least.
MIGRAPHX_C_EXPORT migraphx_status migraphx_device_memory_allocate(void **out, size_t size,
                                                                  const char *device);
// Frees them. Nothing uses them any more.
MIGRAPHX_C_EXPORT migraphx_status migraphx_device_memory_free(void *address, const char *device);

// As migraphx_program_specialise, from a program that copies (offload_copy): one that takes its parameters
// and gives its results in the card's memory.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_specialise_on_card(
    migraphx_program_t *out, const_migraphx_program_t program, const char *const *names,
    const size_t *lens, const size_t *ranks, size_t count);

// A queue does what it is given in order, at some later time. It is used by one thread at a time.
typedef struct migraphx_device_queue *migraphx_device_queue_t;

// Makes a queue with a stream of its own.
MIGRAPHX_C_EXPORT migraphx_status migraphx_device_queue_create(migraphx_device_queue_t *out,
                                                               const char *device);
// Waits, and destroys it.
MIGRAPHX_C_EXPORT migraphx_status migraphx_device_queue_destroy(migraphx_device_queue_t queue);
// Gives the driver's handle of its stream.
MIGRAPHX_C_EXPORT migraphx_status migraphx_device_queue_stream(void **out,
                                                               migraphx_device_queue_t queue);
// Which of the two places of a copy are the processor's memory.
typedef enum {
    migraphx_copy_within, // neither
    migraphx_copy_in,     // the one that is read
    migraphx_copy_out,    // the one that is written
} migraphx_copy_t;
// Copies bytes. Those of the processor's memory stay as they are until the queue was waited for.
MIGRAPHX_C_EXPORT migraphx_status migraphx_device_queue_copy(migraphx_device_queue_t queue,
                                                             void *to, const void *from,
                                                             size_t size, migraphx_copy_t way);
// Waits until all that it was given is done, and says what failed meanwhile.
MIGRAPHX_C_EXPORT migraphx_status migraphx_device_queue_wait(migraphx_device_queue_t queue);

#ifdef __cplusplus
}
#endif

#endif
