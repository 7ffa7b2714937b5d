// SPDX-License-Identifier: MIT
// A graph that a host hands over node by node, out of its own memory.
//
// What is small (names, attributes, types) is kept in the form that the walk reads nodes in, a
// message each, so nodes from a host and nodes from a file are imported, put off until the run and
// saved by the same code. Weights never get there: they are addresses, or places in files, that
// become literals as they lie.
//
//     root   the graph; opsets, files and the weights of all its bodies
//     body   a graph of a node's attribute; its weights are the root's under a name of their own,
//            and a first node of the body passes each on under the name it has there
//
// Holds: a body ends before its root. Writing is sticky: what failed is told by
// mgx_onnx_handed_status, so a host may hand over a whole graph and ask once.
// Cost: the bytes of names and attributes, once; O(1) per weight.
#pragma once

#include "base/array.h"
#include "base/map.h"
#include "base/str.h"
#include "import/message.h"
#include "import/source.h"
#include "onnx/onnx.h"

struct mgx_onnx_weight {
    const char *name;
    int64_t type; // by the standard's number
    struct mgx_ints dims;
    struct mgx_region region; // its storage is a share
};

// What a value is, in ONNX's terms.
enum mgx_onnx_container { // the last one stands for all from there on
    MGX_ONNX_IS_TENSOR,
    MGX_ONNX_IS_SEQUENCE,
    MGX_ONNX_IS_OPTIONAL,
    MGX_ONNX_IS_OPTIONAL_SEQUENCE,
};

struct mgx_onnx_declared {
    enum mgx_onnx_container container;
    int64_t type;             // of elements
    int rank;                 // below 0: nothing is known
    const int64_t *dims;      // below 0: open
    const char *const *names; // of open ones; NULL: none has one
};

struct mgx_onnx_handed {
    struct mgx_onnx_handed *root; // itself, or that of a body
    struct mgx_str graph;         // fields of a GraphProto
    struct mgx_str node;          // the node that attributes go to
    int node_count;
    // Of the root alone:
    struct mgx_str opsets; // fields of a ModelProto
    struct mgx_arena arena;
    MGX_ARRAY(struct mgx_onnx_weight) weights;
    struct mgx_map files;          // path -> struct mgx_source_file *
    struct mgx_source_file *model; // that the host read the graph from; NULL: not known
    struct mgx_map in_model;       // name of a weight in it -> its bytes, a struct mgx_slice
    const char **verdicts;         // of the last judgement, per node; NULL: it is taken
    int verdict_count;
};

void mgx_onnx_handed_init(struct mgx_onnx_handed *h, struct mgx_onnx_handed *root);
void mgx_onnx_handed_fini(struct mgx_onnx_handed *h);
// MGX_NO_MEMORY when something that was handed over could not be kept.
enum mgx_status mgx_onnx_handed_status(const struct mgx_onnx_handed *h,
                                       struct mgx_diag *diag) MGX_NODISCARD;

// --- the graph ---
void mgx_onnx_handed_opset(struct mgx_onnx_handed *h, const char *domain, int64_t version);
// `field`: of the GraphProto that holds it.
enum mgx_onnx_value_field {
    MGX_ONNX_INPUT = 11,
    MGX_ONNX_OUTPUT = 12,
    MGX_ONNX_BETWEEN = 13,
};
void mgx_onnx_handed_value(struct mgx_onnx_handed *h, enum mgx_onnx_value_field field,
                           const char *name, const struct mgx_onnx_declared *type);
// Keeps a share in the region's storage.
enum mgx_status mgx_onnx_handed_weight(struct mgx_onnx_handed *h, const char *name, int64_t type,
                                       const int64_t *dims, int rank,
                                       const struct mgx_region *region,
                                       struct mgx_diag *diag) MGX_NODISCARD;
// The file of that path, which is opened once; *out is the root's.
enum mgx_status mgx_onnx_handed_file(struct mgx_onnx_handed *h, const char *path,
                                     struct mgx_source_file **out,
                                     struct mgx_diag *diag) MGX_NODISCARD;
// The file that the graph was read from, for the next one. Nothing depends on it: what cannot be
// read has no weights.
void mgx_onnx_handed_model(struct mgx_onnx_handed *h, const char *path);
// The same bytes in that file, under the name of a weight; false where they are not there. Costs a
// comparison.
bool mgx_onnx_handed_find(const struct mgx_onnx_handed *h, const char *name, const void *data,
                          size_t size, struct mgx_region *out);
// Text i has sizes[i] bytes, which are copied.
void mgx_onnx_handed_texts(struct mgx_onnx_handed *h, const char *name, const int64_t *dims,
                           int rank, const char *const *texts, const size_t *sizes, size_t count);

// --- nodes ---
// Begins a node, which gets the attributes that follow. A NULL name stands for an absent value.
void mgx_onnx_handed_node(struct mgx_onnx_handed *h, const char *name, const char *op_type,
                          const char *domain, const char *const *in, size_t in_count,
                          const char *const *out, size_t out_count);
void mgx_onnx_handed_ints(struct mgx_onnx_handed *h, const char *name, const int64_t *values,
                          size_t count, bool list);
void mgx_onnx_handed_floats(struct mgx_onnx_handed *h, const char *name, const float *values,
                            size_t count, bool list);
void mgx_onnx_handed_strings(struct mgx_onnx_handed *h, const char *name, const char *const *texts,
                             const size_t *sizes, size_t count, bool list);
// The bytes, as the standard has raw_data, are copied.
void mgx_onnx_handed_tensor(struct mgx_onnx_handed *h, const char *name, int64_t type,
                            const int64_t *dims, int rank, const void *data, size_t size);
void mgx_onnx_handed_text_tensor(struct mgx_onnx_handed *h, const char *name, const int64_t *dims,
                                 int rank, const char *const *texts, const size_t *sizes,
                                 size_t count);
// A body, complete; it stays the caller's.
void mgx_onnx_handed_body(struct mgx_onnx_handed *h, const char *name,
                          struct mgx_onnx_handed *body);

// --- import ---
enum mgx_status mgx_onnx_import_handed(struct mgx_program **out, struct mgx_onnx_handed *h,
                                       const struct mgx_onnx_options *options,
                                       struct mgx_diag *diag) MGX_NODISCARD;
// Says of every node of the root whether an import with these options takes it: what stands in for
// the results of one that is not has the type that the host gave them (MGX_ONNX_BETWEEN or
// MGX_ONNX_OUTPUT), so one refusal does not hide the next. Fails where that is missing, or where
// the graph is no graph. Cost: an import.
enum mgx_status mgx_onnx_judge_handed(struct mgx_onnx_handed *h,
                                      const struct mgx_onnx_options *options,
                                      struct mgx_diag *diag) MGX_NODISCARD;
