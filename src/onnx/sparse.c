// SPDX-License-Identifier: MIT
// SparseTensorProto to a dense tensor: values [NNZ], indices [NNZ] or [NNZ, rank], dims.
//
// Holds: indices are inside dims, ascending and without duplicates, as the format demands; the
// dense result counts against the limit on folded constants, because a few bytes may ask for many.
#include <string.h>

#include "onnx/graph.h"

struct sparse {
    struct mgx_wire values, indices;
    int64_t dims[MGX_MAX_RANK];
    int rank;
};

static enum mgx_status read_message(struct mgx_wire w, struct sparse *s, struct mgx_diag *diag)
{
    *s = (struct sparse){0};
    struct mgx_wire_field f;
    struct mgx_wire list;
    while (mgx_wire_next(&w, &f)) {
        if (f.number == 1)
            mgx_wire_once(&w, &f, &s->values);
        else if (f.number == 2)
            mgx_wire_once(&w, &f, &s->indices);
        else if (f.number == 3 && mgx_wire_packed(&w, &f, 0, &list))
            for (uint64_t value; list.p < list.end && mgx_wire_varint(&list, &value); s->rank++) {
                if (s->rank == MGX_MAX_RANK)
                    return mgx_fail(diag, MGX_LIMIT, "rank of a sparse tensor is above %d",
                                    MGX_MAX_RANK);
                s->dims[s->rank] = (int64_t)value;
            }
    }
    if (w.bad)
        return mgx_wire_fail(&w, "SparseTensorProto", diag);
    if (!s->values.p || !s->indices.p)
        return mgx_fail(diag, MGX_INVALID, "a sparse tensor without values or without indices");
    return MGX_OK;
}

// Position of entry i in the dense tensor; -1 when outside.
static int64_t position(const struct sparse *s, const struct mgx_shape *dense,
                        const struct mgx_tensor *indices, int64_t i)
{
    const int64_t *v = indices->data;
    if (indices->shape.rank == 1)
        return v[i] >= 0 && v[i] < mgx_shape_elements(dense) ? v[i] : -1;
    int64_t at = 0;
    for (int axis = 0; axis < s->rank; axis++) {
        const int64_t index = v[i * s->rank + axis];
        if (index < 0 || index >= s->dims[axis])
            return -1;
        at = at * s->dims[axis] + index;
    }
    return at;
}

static enum mgx_status check_parts(const struct sparse *s, const struct mgx_tensor *values,
                                   const struct mgx_tensor *indices, struct mgx_diag *diag)
{
    const struct mgx_shape *v = &values->shape, *i = &indices->shape;
    if (v->rank != 1)
        return mgx_fail(diag, MGX_INVALID, "values of a sparse tensor have rank %d, not 1",
                        v->rank);
    if (v->type == MGX_STRING)
        return mgx_fail(diag, MGX_UNSUPPORTED, "sparse tensors of strings are not supported");
    if (i->type != MGX_INT64 || i->rank < 1 || i->rank > 2 || i->lens[0] != v->lens[0] ||
        (i->rank == 2 && i->lens[1] != s->rank))
        return mgx_fail(diag, MGX_INVALID,
                        "indices of a sparse tensor are %s of rank %d with %lld entries, where "
                        "%lld values in %d dimensions need int64_type",
                        mgx_type_name(i->type), i->rank, i->rank ? (long long)i->lens[0] : 1,
                        (long long)v->lens[0], s->rank);
    return MGX_OK;
}

static enum mgx_status fail_outside(const struct sparse *s, const struct mgx_tensor *indices,
                                    int64_t i, struct mgx_diag *diag)
{
    const int64_t *v = indices->data;
    if (indices->shape.rank == 1)
        return mgx_fail(diag, MGX_INVALID,
                        "entry %lld of a sparse tensor is at %lld, outside its elements",
                        (long long)i, (long long)v[i]);
    int axis = 0;
    while (v[i * s->rank + axis] >= 0 && v[i * s->rank + axis] < s->dims[axis])
        axis++;
    return mgx_fail(diag, MGX_INVALID,
                    "entry %lld of a sparse tensor is at %lld of axis %d, which has length %lld",
                    (long long)i, (long long)v[i * s->rank + axis], axis, (long long)s->dims[axis]);
}

static enum mgx_status scatter(const struct sparse *s, const struct mgx_tensor *values,
                               const struct mgx_tensor *indices, struct mgx_tensor *out,
                               struct mgx_diag *diag)
{
    const size_t size = mgx_type_size(values->shape.type);
    int64_t last = -1;
    for (int64_t i = 0; i < values->shape.lens[0]; i++) {
        const int64_t at = position(s, &out->shape, indices, i);
        if (at < 0)
            return fail_outside(s, indices, i, diag);
        if (at <= last)
            return mgx_fail(diag, MGX_INVALID,
                            "entry %lld of a sparse tensor is at %lld, not behind the one before "
                            "at %lld",
                            (long long)i, (long long)at, (long long)last);
        memcpy((char *)out->data + (size_t)at * size, (char *)values->data + (size_t)i * size,
               size);
        last = at;
    }
    return MGX_OK;
}

static enum mgx_status make_dense(struct mgx_onnx_import *import, const struct sparse *s,
                                  const struct mgx_tensor *values, const struct mgx_tensor *indices,
                                  struct mgx_tensor *out)
{
    TRY(check_parts(s, values, indices, import->diag));
    const struct mgx_shape shape = mgx_shape_make(values->shape.type, s->rank, s->dims);
    TRY(mgx_shape_check(&shape, import->diag));
    const size_t bytes = mgx_shape_bytes(&shape);
    TRY(mgx_onnx_spend(import, bytes, "a sparse tensor"));
    TRY(mgx_tensor_create(out, &shape, import->diag));
    memset(out->data, 0, bytes);
    return scatter(s, values, indices, out, import->diag);
}

enum mgx_status mgx_onnx_read_sparse(struct mgx_onnx_import *import, struct mgx_wire w,
                                     struct mgx_slice *name, struct mgx_tensor *out)
{
    struct sparse s;
    struct mgx_tensor values = {0}, indices = {0};
    struct mgx_slice own = {"", 0};
    *out = (struct mgx_tensor){0};
    enum mgx_status status = read_message(w, &s, import->diag);
    if (status == MGX_OK)
        status = mgx_onnx_read_tensor(import, s.values, &own, &values);
    if (status == MGX_OK)
        status = mgx_onnx_read_tensor(import, s.indices, NULL, &indices);
    if (status == MGX_OK)
        status = make_dense(import, &s, &values, &indices, out);
    mgx_tensor_release(&values);
    mgx_tensor_release(&indices);
    if (status != MGX_OK) {
        mgx_tensor_release(out);
        if (own.size)
            mgx_where(import->diag, "sparse tensor \"%.*s\"", MGX_SLICE(own));
    }
    if (name)
        *name = own;
    return status;
}
