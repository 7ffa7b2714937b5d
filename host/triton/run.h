// SPDX-License-Identifier: MIT
// What the files share that execute requests.
//
//     item   a request: its inputs where they lie, its response, its own error
//     group  items of one execution whose lengths agree: they run together
#pragma once

#include "backend.h"

// An input of a request.
struct part {
    TritonInput *handle;
    const int64_t *lens;
    uint32_t rank, buffers;
    uint64_t size;
    const void *data; // of the only buffer; NULL where there are several
};

struct item {
    TritonRequest *request;
    TritonResponse *response;
    TritonError *error; // of this request alone
    struct part *parts; // one for each input of the model
    size_t rows;        // of the batch; 1 where there is none
    bool *wanted;       // which results the client asked for
    bool done;
};

struct group {
    struct instance *instance;
    struct item **items;
    size_t count, rows;
    TritonError *error;         // of the server, while results were placed
    bool *placed;               // results that lie where they belong already
    int64_t (*lens)[MOST_RANK]; // of each result
    size_t *ranks;
    bool *numbers; // results that were asked for a place
};

// Reads a request; failures become the item's own.
void item_read(const struct model *, struct item *);
bool item_agrees(const struct model *, const struct item *, const struct item *);
bool item_is_cancelled(const struct item *);
void item_fail(struct item *, TritonError *);

// The bytes of an input, one request behind the other; NULL and an error otherwise.
TritonError *gather(struct group *, size_t input, size_t rows, const void **out);
// An input of texts.
TritonError *gather_texts(struct group *, size_t input, const size_t *lens, size_t rank,
                          migraphx_argument_t *out);

// An input that is all requests' elements one behind the other, and how many these are.
bool value_is_joined(const struct value *);
size_t ragged_elements(const struct group *, size_t input);
// An input that says where each request begins.
TritonError *ragged_input(struct group *, size_t input, size_t *lens, size_t *rank,
                          const void **out);

// Where a result is to be written (migraphx_place_callback_t).
void *group_place(void *group, size_t index, migraphx_shape_datatype_t type, const size_t *lens,
                  size_t rank);
// Hands out what is not there yet.
TritonError *group_scatter(struct group *, migraphx_arguments_t results);
TritonError *scatter_texts(struct group *, size_t index, const_migraphx_argument_t);
// Room for a result of one item; `size` bytes.
TritonError *item_output(struct item *, const struct value *, const int64_t *lens, size_t rank,
                         uint64_t size, void **out);
