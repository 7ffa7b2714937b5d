// SPDX-License-Identifier: MIT
// What the files of the backend share.
//
//     model     one per version of a model that is loaded: its file, options, inputs and results
//     engine    one per model and device: programs that are compiled, shared by all its instances
//     instance  one per entry of an instance group: runs one execution at a time
//
// Holds: a model and an engine do not change once the instances are made, so executions need no
// lock. Failures are the server's error objects; NULL is success, as everywhere in its interface.
#pragma once

#include <migraphx/extensions.h>
#include <pthread.h>
#include <stdlib.h>

#include "abi.h"
#include "json.h"

enum { MOST_RANK = 32, PATH_ROOM = 4096 };

// --- errors and logs ---

TritonError *fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
TritonError *no_memory(void);
// What the engine said last in this thread, behind `what`.
TritonError *pass_on(const char *what, migraphx_status status);
void say(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// For where an error helps nobody any more: it is logged and ended.
void drop(TritonError *);

#define TRY(call)                                                                                  \
    do {                                                                                           \
        TritonError *error_ = (call);                                                              \
        if (error_)                                                                                \
            return error_;                                                                         \
    } while (0)
// A call of the engine.
#define ENGINE_TRY(what, call)                                                                     \
    do {                                                                                           \
        const migraphx_status status_ = (call);                                                    \
        if (status_ != migraphx_status_success)                                                    \
            return pass_on(what, status_);                                                         \
    } while (0)

// --- types ---

// The engine's type for one of the server's; false where there is none.
bool type_engine(int type, migraphx_shape_datatype_t *out);
int type_server(migraphx_shape_datatype_t); // TRITON_NO_TYPE: there is none
int type_named(const char *name);           // "TYPE_FP32"
const char *type_name(int type);            // the same name
size_t type_bytes(int type);                // of an element; 0 of texts
// True when the product fits; below 0 nothing does.
bool count_elements(const int64_t *lens, size_t rank, uint64_t *out);

// --- options: parameters of a model, or of the backend for all its models ---

struct options {
    bool fp16, bf16, exhaustive_tune, fast_math, tf32, specialise, nhwc, generate;
    size_t threads, run_memory, int4_weights, context, texts;
    char isa[32], target[32], gemm_provider[32], tuning_cache[512], int8[512], cache_dir[1024];
    char batches[256];
};

void options_default(struct options *);
// One of a name that may be unknown: *known says whether it is. Names have any case.
TritonError *options_set(struct options *, const char *name, const char *value, bool *known);
// All names, for whoever mistyped one.
void options_names(char *out, size_t room);

// --- models ---

// An input or a result.
struct value {
    char *name;
    char *axis; // name of the first axis where it is open; may be NULL
    int type;
    size_t rank;
    int64_t lens[MOST_RANK]; // -1: open
    bool ragged;             // its lengths may differ within a batch
    int batch_kind;          // of an input that ragged.c makes
    bool follows;            // a result as long as an input
    size_t source;           // that input, of both
};

// What a sequence keeps: a result that is the input of its next request.
struct state {
    char *from, *to; // names of the result and of the input
    size_t result;   // number of the result
};

enum form { FORM_ONNX, FORM_TF, FORM_MXR, FORM_DECODER };

struct model {
    TritonModel *handle;
    char name[256];
    uint64_t version;
    char folder[PATH_ROOM]; // of this version
    char path[PATH_ROOM];   // of the model's file
    enum form form;
    struct options options;
    struct value *inputs, *results;
    size_t input_count, result_count;
    struct state *states;
    size_t state_count;
    bool opens;        // the first axis of everything is open: a batch
    size_t most;       // max_batch_size; 0: requests are whole
    size_t usual_most; // where a configuration says nothing
    size_t groups;     // instances on the processor
    bool decoupled;
    pthread_mutex_t lock;
    struct engine *engines;         // of each device, when it was first asked for
    migraphx_generator_t generator; // of a decoder; instances share its weights
};

TritonError *model_create(TritonModel *, struct model **out);
void model_destroy(struct model *);
struct value *model_find(struct value *, size_t count, const char *name);

// Finds the file of a version.
TritonError *files_find(struct model *, const char *name);
// Where the compiled form of this model lies, "" where none is kept.
TritonError *files_compiled(const struct model *, const char *target, int device, char *out,
                            size_t room);

// Inputs and results of the program, and whether they have a batch.
TritonError *shapes_read(struct model *, migraphx_program_t);
void shapes_fini(struct model *);
// What a configuration leaves out, or whether it fits the model.
TritonError *config_read(struct model *, const struct json_list *);
TritonError *config_complete(struct model *, const struct json_list *);
TritonError *config_check(struct model *, const struct json_list *);

// --- programs ---

struct plan {
    size_t rows; // of the batch it is for; 0: any
    migraphx_program_t program;
};
struct engine {
    char target[32];
    int device;
    struct plan *plans; // fewer rows first
    size_t count;
    struct engine *next;
};

// The model as it is in its file, with sizes left open. Where these are none of the file's,
// `rows` is the first of all.
TritonError *program_read(const struct model *, size_t rows, migraphx_program_t *out);
// The engine of a device, made when it is first asked for. It stays the model's.
// How a model is compiled for a device.
migraphx_status program_options(const struct model *, bool card, int device,
                                migraphx_compile_options_t);
TritonError *engine_require(struct model *, const char *target, int device,
                            const struct engine **out);
void engines_destroy(struct model *);
const struct plan *engine_plan(const struct engine *, size_t rows); // NULL: too many

// --- executions ---

// Memory that grows and is kept.
struct scratch {
    char *data;
    size_t size;
};
bool scratch_reserve(struct scratch *, size_t size);

struct instance {
    TritonInstance *handle;
    struct model *model;
    const struct engine *engine;
    struct scratch *inputs, *results; // what several requests share
    migraphx_cancellation_t cancellation;
    struct group *group; // that runs now
    struct decoder *decoder;
};

TritonError *instance_execute(struct instance *, TritonRequest **, uint32_t count);

// Nanoseconds as the server counts them.
uint64_t now(void);
