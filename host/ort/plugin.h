// SPDX-License-Identifier: MIT
// What the files of the plugin share: the host, a provider, a program that was made of a graph.
//
//     factory   one per name that the provider goes by; holds what is known of the host
//     provider  one per session: its options
//     fused     one per graph that was taken: the compiled program, and where its values come from
//     card      one per card of this machine (card.h)
//
// Holds: nothing here is mutable once a session is made, so runs of one session need no lock.
// Failures are the host's status objects; NULL is success, as everywhere in its interface.
#pragma once

#include <migraphx/extensions.h>

#include "abi.h"

#define NEWLY(type) ((type *)calloc(1, sizeof(type)))

// --- the host ---

struct host {
#define X(place, result, name, arguments) result(*name) arguments;
    ORT_CALLS(X)
    ORT_EP_CALLS(X)
    ORT_EP_CALLS_25(X)  // of 1.25; else NULL
    ORT_EDITOR_CALLS(X) // NULL where the host cannot write models
#undef X
    uint32_t version; // of its interface, and the newest that is known here
};

// False when the host is older than ORT_API_OLDEST.
bool host_read(struct host *out, const OrtApiBase *base);
// A failure in the host's form.
OrtStatus *host_fail(const struct host *, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
OrtStatus *host_no_memory(const struct host *);
// The same with what the engine said last in this thread, behind `what`.
OrtStatus *host_pass_on(const struct host *, const char *what);
void host_log(const struct host *, const OrtLogger *, int severity, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#define HOST_TRY(call)                                                                             \
    do {                                                                                           \
        OrtStatus *host_status_ = (call);                                                          \
        if (host_status_)                                                                          \
            return host_status_;                                                                   \
    } while (0)
// A call of the engine.
#define ENGINE_TRY(host, what, call)                                                               \
    do {                                                                                           \
        if ((call) != migraphx_status_success)                                                     \
            return host_pass_on(host, what);                                                       \
    } while (0)

// The standard's number of an element type that the host numbers otherwise.
int host_element(int type);
int host_own_element(int element); // and back

// --- types narrower than a byte ---

int narrow_bits(int element); // of the host's element type; 0: it is not one
// A byte for each element; free() it. NULL without memory.
void *narrow_unpack(const void *packed, size_t count, int element);
void narrow_pack(const void *values, size_t count, int element, void *packed);

// --- sets of names: a place for each ---

struct names {
    const char **keys; // borrowed
    size_t *values;
    size_t count, room;
};

void names_fini(struct names *);
// False without memory. A name that is there keeps its value.
bool names_put(struct names *, const char *name, size_t value);
bool names_find(const struct names *, const char *name, size_t *value);

// --- providers ---

extern const char *const provider_names[]; // NULL at the end

struct ranges; // ranges.h
struct card;   // card.h
struct cards;

struct factory {
    OrtEpFactory base;
    struct host host;
    const char *name;
    struct cards *cards; // of all factories
};

struct options {
    bool fp16, bf16, int8, exhaustive_tune, fast_math, specialise;
    size_t threads, mem_limit;
    char isa[32], device[32], tuning_cache[512], table[1024];
    // Of the host's own, "ep.context_...": whether compiled programs are kept, and where.
    bool context, context_inside;
    char context_path[1024];
};

struct provider {
    OrtEp base;
    const struct host *host;
    const OrtLogger *logger;
    const char *name;
    struct card *card; // NULL: the processor
    OrtKernelRegistry *kernels;
    struct ranges *ranges; // of int8; NULL: none
    struct options options;
};

// "ep.<name in small letters>.<option>" of the session's entries; unknown ones are refused.
OrtStatus *options_read(struct options *out, const struct host *, const OrtLogger *,
                        const char *provider, const OrtSessionOptions *);
OrtStatus *provider_create(const struct factory *, struct card *, const OrtSessionOptions *,
                           const OrtLogger *, OrtEp **out);
void provider_destroy(OrtEp *);
OrtStatus *provider_capability(OrtEp *, const OrtGraph *, OrtEpGraphSupportInfo *);
OrtStatus *provider_compile(OrtEp *, const OrtGraph **, const OrtNode **, size_t count,
                            OrtNodeComputeInfo **, OrtNode **);
void provider_release(OrtEp *, OrtNodeComputeInfo **, size_t count);

// --- profiles ---

OrtStatus *profiler_create(OrtEp *, OrtEpProfilerImpl **out);

// --- compiled programs in models ---

bool context_is_own(const struct provider *, const OrtNode *);
OrtStatus *context_load(const struct provider *, const OrtGraph *, const OrtNode *,
                        migraphx_program_t *out);
OrtStatus *context_make(const struct provider *, const OrtGraph *, const char *name,
                        const_migraphx_program_t, const char **in, size_t ins, const char **out,
                        size_t outs, OrtNode **node);

// --- lists that the host fills: an array of its own, NULL for none ---

// free() it.
#define LIST_OF(T, name, of)                                                                       \
    OrtStatus *list_##name(const struct host *, const of *, const T ***out, size_t *count);
#define LISTS(X)                                                                                   \
    X(OrtNode, Graph_GetNodes, OrtGraph)                                                           \
    X(OrtValueInfo, Graph_GetInputs, OrtGraph)                                                     \
    X(OrtValueInfo, Graph_GetOutputs, OrtGraph)                                                    \
    X(OrtValueInfo, Graph_GetInitializers, OrtGraph)                                               \
    X(OrtValueInfo, Node_GetInputs, OrtNode)                                                       \
    X(OrtValueInfo, Node_GetImplicitInputs, OrtNode)                                               \
    X(OrtValueInfo, Node_GetOutputs, OrtNode)                                                      \
    X(OrtOpAttr, Node_GetAttributes, OrtNode)
LISTS(LIST_OF)
#undef LIST_OF

// The name of a value; "" for one that is absent.
const char *value_name(const struct host *, const OrtValueInfo *);
bool value_is_constant(const struct host *, const OrtValueInfo *);

// A type in the engine's terms; the arrays are inside.
enum { MOST_RANK = 16 };
struct value_type {
    migraphx_onnx_type type;
    int64_t lens[MOST_RANK];
    const char *names[MOST_RANK];
    bool known;   // else the type is floats of whatever lengths
    bool crosses; // can be handed over at a run
};
OrtStatus *value_type_read(const struct host *, const OrtValueInfo *, struct value_type *out);

// The bytes of an attribute, with room for a zero behind them; free() them.
OrtStatus *attribute_read(const struct host *, const OrtOpAttr *, int type, void **data,
                          size_t *size);

// --- graphs ---

// Hands a graph over. `keep`: weights are copied or mapped, for a program that outlives the graph;
// else they are borrowed. `outputs`, if given, are its results instead of the graph's own. `ranges`, if
// given, say which products are rounded to bytes.
OrtStatus *graph_hand_over(const struct host *, const OrtGraph *,
                           const OrtValueInfo *const *outputs, size_t output_count, bool keep,
                           const struct ranges *ranges, migraphx_onnx_graph_t *out);
// A single node with what it reads from around it; `like` is of the same model.
OrtStatus *graph_hand_over_node(const struct host *, const OrtGraph *like, const OrtNode *,
                                migraphx_onnx_graph_t *out);
migraphx_status graph_options(migraphx_onnx_options_t *out);
