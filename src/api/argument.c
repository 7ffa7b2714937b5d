// SPDX-License-Identifier: MIT
// Arguments: handles over struct mgx_tensor. A handle shows the tensor's shape as a handle of its
// own, and its members, so that borrowed pointers into it stay valid as long as it lives.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"

// --- making ---

static enum mgx_status add_members(struct migraphx_argument *a, struct mgx_diag *diag)
{
    if (!a->value.sub_count)
        return MGX_OK;
    a->members = calloc((size_t)a->value.sub_count, sizeof *a->members);
    if (!a->members)
        return mgx_fail_memory(diag);
    for (int i = 0; i < a->value.sub_count; i++) { // nesting is that of the type
        struct mgx_tensor member = mgx_tensor_share(&a->value.sub[i]);
        TRY(mgx_api_argument_init(&a->members[i], &member, diag));
    }
    return MGX_OK;
}

// For what reads or writes elements.
static enum mgx_status require_host(const struct mgx_tensor *t, struct mgx_diag *diag)
{
    assert(t && diag);
    const struct mgx_memory *memory = mgx_tensor_memory(t);
    return memory ? mgx_fail(diag, MGX_INVALID,
                             "the argument lies in memory of %s (%s), which the host cannot read: "
                             "from_gpu, or migraphx_device_copy to \"host\", gives a copy that it "
                             "can",
                             memory->name, memory->device ? memory->device : memory->name)
                  : MGX_OK;
}

static bool is_loose(const struct mgx_tensor *t)
{
    return t->storage && t->storage->grows && !mgx_shape_is_standard(&t->shape);
}

const struct mgx_tensor *mgx_api_argument_value(const struct migraphx_argument *a)
{
    const struct mgx_tensor *packed = atomic_load(&a->packed);
    return packed ? packed : &a->value;
}

static void drop_packed(struct mgx_tensor *packed)
{
    if (packed)
        mgx_tensor_release(packed);
    free(packed);
}

// Two threads may ask at once: one copy stays.
enum mgx_status mgx_api_argument_pack(const struct migraphx_argument *a, struct mgx_diag *diag)
{
    if (!is_loose(&a->value) || atomic_load(&a->packed))
        return MGX_OK;
    struct mgx_tensor *mine = API_NEW(struct mgx_tensor), *none = NULL;
    if (!mine)
        return mgx_fail_memory(diag);
    const enum mgx_status status = mgx_tensor_clone(mine, &a->value, diag);
    if (status != MGX_OK)
        free(mine);
    else if (!atomic_compare_exchange_strong(&((struct migraphx_argument *)a)->packed, &none, mine))
        drop_packed(mine);
    return status;
}

enum mgx_status mgx_api_argument_init(struct migraphx_argument *out, struct mgx_tensor *take,
                                      struct mgx_diag *diag)
{
    assert(out && take);
    *out = (struct migraphx_argument){.value = *take};
    *take = (struct mgx_tensor){0};
    mgx_arena_init(&out->shape.arena);
    out->shape.value =
        is_loose(&out->value)
            ? mgx_shape_make(out->value.shape.type, out->value.shape.rank, out->value.shape.lens)
            : out->value.shape;
    const enum mgx_status status = add_members(out, diag);
    if (status != MGX_OK)
        mgx_api_argument_fini(out);
    return status;
}

void mgx_api_argument_fini(struct migraphx_argument *a)
{
    for (int i = 0; a->members && i < a->value.sub_count; i++)
        mgx_api_argument_fini(&a->members[i]);
    free(a->members);
    mgx_arena_fini(&a->shape.arena);
    mgx_tensor_release(&a->value);
    drop_packed(atomic_load(&a->packed));
    *a = (struct migraphx_argument){0};
}

enum mgx_status mgx_api_argument_new(migraphx_argument_t *out, struct mgx_tensor *take,
                                     struct mgx_diag *diag)
{
    assert(out && take);
    struct migraphx_argument *a = API_NEW(struct migraphx_argument);
    if (!a) {
        mgx_tensor_release(take);
        return mgx_fail_memory(diag);
    }
    const enum mgx_status status = mgx_api_argument_init(a, take, diag);
    if (status == MGX_OK)
        *out = a;
    else
        free(a);
    return status;
}

static void argument_fini(struct migraphx_argument *a)
{
    mgx_api_argument_fini(a);
}

static enum mgx_status argument_copy(struct migraphx_argument *out,
                                     const struct migraphx_argument *in, struct mgx_diag *diag)
{
    struct mgx_tensor share = mgx_tensor_share(mgx_api_argument_value(in));
    return mgx_api_argument_init(out, &share, diag);
}

API_HANDLE(argument)

migraphx_status migraphx_argument_share(migraphx_argument_t *out,
                                        const_migraphx_argument_t argument)
{
    API_NEED(out);
    API_NEED(argument);
    API_DIAG(diag);
    struct mgx_tensor share = mgx_tensor_share(mgx_api_argument_value(argument));
    return mgx_api_leave(mgx_api_argument_new(out, &share, &diag), &diag);
}

// Only static tensors have bytes of their own.
static enum mgx_status require_plain(const struct mgx_shape *s, struct mgx_diag *diag)
{
    if (s->sub || s->type == MGX_TUPLE || s->type == MGX_SEQUENCE)
        return mgx_fail(diag, MGX_INVALID, "an argument of type %s is made of its members",
                        mgx_type_name(s->type));
    if (!mgx_shape_is_static(s))
        return mgx_fail(diag, MGX_INVALID, "an argument needs a static shape");
    return MGX_OK;
}

static enum mgx_status create_empty(struct mgx_tensor *out, const struct mgx_shape *s,
                                    struct mgx_diag *diag)
{
    TRY(require_plain(s, diag));
    TRY(mgx_tensor_create(out, s, diag));
    if (s->type != MGX_STRING && mgx_shape_bytes(s))
        memset(out->data, 0, mgx_shape_bytes(s));
    return MGX_OK;
}

// Hands a tensor made by a call that gave `status` to the caller.
static migraphx_status hand_out(migraphx_argument_t *out, enum mgx_status status,
                                struct mgx_tensor *take, const struct mgx_diag *diag)
{
    if (status == MGX_OK)
        status = mgx_api_argument_new(out, take, (struct mgx_diag *)diag);
    return mgx_api_leave(status, diag);
}

migraphx_status migraphx_argument_create(migraphx_argument_t *out, const_migraphx_shape_t shape,
                                         void *buffer)
{
    API_NEED(out);
    API_NEED(shape);
    API_DIAG(diag);
    enum mgx_status status = require_plain(&shape->value, &diag);
    if (status == MGX_OK && !buffer && mgx_shape_bytes(&shape->value))
        return mgx_api_null(__func__, "buffer");
    if (status == MGX_OK && shape->value.type == MGX_STRING && mgx_shape_bytes(&shape->value))
        return mgx_api_bad("%s: bytes of string_type are the engine's own: "
                           "migraphx_argument_create_strings takes texts",
                           __func__);
    struct mgx_tensor t = {0};
    if (status == MGX_OK)
        t = mgx_tensor_borrow(&shape->value, buffer);
    return hand_out(out, status, &t, &diag);
}

migraphx_status migraphx_argument_create_empty(migraphx_argument_t *out,
                                               const_migraphx_shape_t shape)
{
    API_NEED(out);
    API_NEED(shape);
    API_DIAG(diag);
    struct mgx_tensor t = {0};
    const enum mgx_status status = create_empty(&t, &shape->value, &diag);
    return hand_out(out, status, &t, &diag);
}

// A caller's buffer as shared storage.
struct foreign {
    struct mgx_storage storage;
    void (*release)(void *owner);
};

static void release_foreign(struct mgx_storage *storage)
{
    struct foreign *f = (struct foreign *)storage;
    f->release(storage->owner);
    free(f);
}

enum mgx_status mgx_api_tensor_own(struct mgx_tensor *out, const struct mgx_shape *shape,
                                   void *buffer, void (*release)(void *owner), void *owner,
                                   struct mgx_diag *diag)
{
    assert(out && shape);
    TRY(require_plain(shape, diag));
    if (!buffer && mgx_shape_bytes(shape))
        return mgx_fail(diag, MGX_INVALID, "the buffer is NULL");
    struct foreign *f = API_NEW(struct foreign);
    if (!f)
        return mgx_fail_memory(diag);
    f->release = release;
    f->storage.data = buffer;
    f->storage.bytes = mgx_shape_bytes(shape);
    f->storage.release = release_foreign;
    f->storage.owner = owner;
    atomic_init(&f->storage.refs, 1);
    *out = mgx_tensor_borrow(shape, buffer);
    out->storage = &f->storage;
    return MGX_OK;
}

void mgx_api_tensor_disown(struct mgx_tensor *t)
{
    free(t->storage);
    *t = (struct mgx_tensor){0};
}

migraphx_status migraphx_argument_create_owned(migraphx_argument_t *out,
                                               const_migraphx_shape_t shape, void *buffer,
                                               void (*release)(void *owner), void *owner)
{
    API_NEED(out);
    API_NEED(shape);
    API_NEED(release);
    if (!buffer && mgx_shape_is_static(&shape->value) && mgx_shape_bytes(&shape->value))
        return mgx_api_null(__func__, "buffer");
    API_DIAG(diag);
    struct mgx_tensor t = {0};
    struct migraphx_argument *a = API_NEW(struct migraphx_argument);
    enum mgx_status status = a ? MGX_OK : mgx_fail_memory(&diag);
    if (status == MGX_OK)
        status = mgx_api_tensor_own(&t, &shape->value, buffer, release, owner, &diag);
    if (status == MGX_OK) {
        status = mgx_api_argument_init(a, &t, &diag); // a plain tensor has no members: cannot fail
        *out = a;
    } else {
        free(a); // nothing is taken over by a call that fails
    }
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_argument_generate(migraphx_argument_t *out, const_migraphx_shape_t s,
                                           size_t seed)
{
    API_NEED(out);
    API_NEED(s);
    API_DIAG(diag);
    struct mgx_tensor t = {0};
    const enum mgx_status status = create_empty(&t, &s->value, &diag);
    if (status == MGX_OK)
        mgx_tensor_generate(&t, seed);
    return hand_out(out, status, &t, &diag);
}

static enum mgx_status require_count(const struct mgx_shape *s, size_t size, struct mgx_diag *diag)
{
    TRY(require_plain(s, diag));
    if (size != (size_t)mgx_shape_elements(s))
        return mgx_fail(diag, MGX_INVALID,
                        "Values and shape elements do not match: %zu values, %lld elements", size,
                        (long long)mgx_shape_elements(s));
    return MGX_OK;
}

static enum mgx_status require_number(const struct mgx_shape *s, struct mgx_diag *diag)
{
    if (!mgx_type_is_number(s->type))
        return mgx_fail(diag, MGX_UNSUPPORTED, "type %s has no numbers", mgx_type_name(s->type));
    return MGX_OK;
}

static enum mgx_status create_values(struct mgx_tensor *out, const struct mgx_shape *s,
                                     const double *values, const int64_t *integers, size_t size,
                                     struct mgx_diag *diag)
{
    assert((values != NULL) != (integers != NULL) || !size);
    TRY(require_count(s, size, diag));
    TRY(require_number(s, diag));
    TRY(create_empty(out, s, diag));
    for (size_t i = 0; i < size; i++) {
        const int64_t at = mgx_shape_index(s, (int64_t)i);
        if (values)
            mgx_store_double(s->type, out->data, at, values[i]);
        else
            mgx_store_int(s->type, out->data, at, integers[i]);
    }
    return MGX_OK;
}

migraphx_status migraphx_argument_create_values(migraphx_argument_t *out,
                                                const_migraphx_shape_t shape, const double *values,
                                                size_t size)
{
    API_NEED(out);
    API_NEED(shape);
    API_NEED(values);
    API_DIAG(diag);
    struct mgx_tensor t = {0};
    const enum mgx_status status = create_values(&t, &shape->value, values, NULL, size, &diag);
    return hand_out(out, status, &t, &diag);
}

migraphx_status migraphx_argument_create_integers(migraphx_argument_t *out,
                                                  const_migraphx_shape_t shape,
                                                  const int64_t *values, size_t size)
{
    API_NEED(out);
    API_NEED(shape);
    API_NEED(values);
    API_DIAG(diag);
    struct mgx_tensor t = {0};
    const enum mgx_status status = create_values(&t, &shape->value, NULL, values, size, &diag);
    return hand_out(out, status, &t, &diag);
}

migraphx_status migraphx_argument_fill(migraphx_argument_t *out, const_migraphx_shape_t shape,
                                       double value)
{
    API_NEED(out);
    API_NEED(shape);
    API_DIAG(diag);
    struct mgx_tensor t = {0};
    enum mgx_status status = require_number(&shape->value, &diag);
    if (status == MGX_OK)
        status = create_empty(&t, &shape->value, &diag);
    const int64_t space = status == MGX_OK ? mgx_shape_space(&shape->value) : 0;
    for (int64_t i = 0; i < space; i++)
        mgx_store_double(t.shape.type, t.data, i, value);
    return hand_out(out, status, &t, &diag);
}

// Strings in one block with their tensor: the pointers first, the bytes after them.
static enum mgx_status create_strings(struct mgx_tensor *out, const struct mgx_shape *s,
                                      const char *const *texts, const size_t *sizes, size_t size,
                                      struct mgx_diag *diag)
{
    if (s->type != MGX_STRING || !mgx_shape_is_standard(s))
        return mgx_fail(diag, MGX_INVALID, "strings need a standard shape of string_type");
    TRY(require_count(s, size, diag));
    struct mgx_tensor lent;
    struct mgx_string *v = calloc(size + 1, sizeof *v);
    if (!v)
        return mgx_fail_memory(diag);
    for (size_t i = 0; i < size; i++)
        v[i] = (struct mgx_string){texts[i], sizes[i]};
    lent = mgx_tensor_borrow(s, v);
    const enum mgx_status status = mgx_tensor_clone(out, &lent, diag);
    free(v);
    return status;
}

migraphx_status migraphx_argument_create_strings(migraphx_argument_t *out,
                                                 const_migraphx_shape_t shape,
                                                 const char *const *texts, const size_t *sizes,
                                                 size_t size)
{
    API_NEED(out);
    API_NEED(shape);
    API_NEED(texts);
    API_NEED(sizes);
    API_DIAG(diag);
    struct mgx_tensor t = {0};
    const enum mgx_status status = create_strings(&t, &shape->value, texts, sizes, size, &diag);
    return hand_out(out, status, &t, &diag);
}

migraphx_status migraphx_argument_create_group(migraphx_argument_t *out,
                                               const const_migraphx_argument_t *ptr, size_t size,
                                               bool sequence)
{
    API_NEED(out);
    if (size)
        API_NEED(ptr);
    for (size_t i = 0; i < size; i++)
        API_NEED(ptr[i]);
    if (size > INT16_MAX)
        return mgx_api_bad("%s: a group of %zu members is too long", __func__, size);
    API_DIAG(diag);
    struct mgx_tensor *members = calloc(size + 1, sizeof *members);
    if (!members)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    for (size_t i = 0; i < size; i++)
        members[i] = mgx_tensor_share(mgx_api_argument_value(ptr[i]));
    struct mgx_tensor t = {0};
    const enum mgx_status status = mgx_tensor_group(&t, members, (int)size, sequence, &diag);
    free(members);
    return hand_out(out, status, &t, &diag);
}

// --- asking ---

migraphx_status migraphx_argument_shape(const_migraphx_shape_t *out,
                                        const_migraphx_argument_t argument)
{
    API_NEED(out);
    API_NEED(argument);
    *out = &argument->shape;
    return migraphx_status_success;
}

migraphx_status migraphx_argument_buffer(char **out, const_migraphx_argument_t argument)
{
    API_NEED(out);
    API_NEED(argument);
    API_DIAG(diag);
    const enum mgx_status status = mgx_api_argument_pack(argument, &diag);
    if (status == MGX_OK)
        *out = mgx_api_argument_value(argument)->data;
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_argument_equal(bool *out, const_migraphx_argument_t argument,
                                        const_migraphx_argument_t x)
{
    API_NEED(out);
    API_NEED(argument);
    API_NEED(x);
    API_DIAG(diag);
    const struct mgx_tensor *a = mgx_api_argument_value(argument), *b = mgx_api_argument_value(x);
    enum mgx_status status = require_host(a, &diag);
    if (status == MGX_OK)
        status = require_host(b, &diag);
    if (status == MGX_OK)
        *out = a->shape.type == b->shape.type && mgx_tensor_equal(a, b, false);
    return mgx_api_leave(status, &diag);
}

// Numbers on the host, as many as the caller has room for.
static enum mgx_status require_numbers(const struct mgx_tensor *t, size_t size,
                                       struct mgx_diag *diag)
{
    TRY(require_count(&t->shape, size, diag));
    TRY(require_number(&t->shape, diag));
    return require_host(t, diag);
}

migraphx_status migraphx_argument_values(double *out, size_t size,
                                         const_migraphx_argument_t argument)
{
    API_NEED(out);
    API_NEED(argument);
    API_DIAG(diag);
    const enum mgx_status status = require_numbers(&argument->value, size, &diag);
    if (status == MGX_OK)
        mgx_tensor_to_doubles(mgx_api_argument_value(argument), out);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_argument_integers(int64_t *out, size_t size,
                                           const_migraphx_argument_t argument)
{
    API_NEED(out);
    API_NEED(argument);
    API_DIAG(diag);
    const enum mgx_status status = require_numbers(&argument->value, size, &diag);
    if (status == MGX_OK)
        mgx_tensor_to_ints(mgx_api_argument_value(argument), out);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_argument_string(const char **out, size_t *out_size,
                                         const_migraphx_argument_t argument, size_t idx)
{
    API_NEED(out);
    API_NEED(out_size);
    API_NEED(argument);
    const struct mgx_shape *s = &argument->value.shape;
    if (s->type != MGX_STRING)
        return mgx_api_bad("%s: the argument is of type %s", __func__, mgx_type_name(s->type));
    if (idx >= (size_t)mgx_shape_elements(s))
        return mgx_api_bad("%s: there is no element %zu", __func__, idx);
    const struct mgx_string *v = argument->value.data;
    const struct mgx_string *string = &v[mgx_shape_index(s, (int64_t)idx)];
    *out = string->text ? string->text : "";
    *out_size = string->size;
    return migraphx_status_success;
}

migraphx_status migraphx_argument_members_size(size_t *out, const_migraphx_argument_t argument)
{
    API_NEED(out);
    API_NEED(argument);
    *out = (size_t)argument->value.sub_count;
    return migraphx_status_success;
}

migraphx_status migraphx_argument_member(const_migraphx_argument_t *out,
                                         const_migraphx_argument_t argument, size_t idx)
{
    API_NEED(out);
    API_NEED(argument);
    if (idx >= (size_t)argument->value.sub_count)
        return mgx_api_bad("%s: index %zu, but there are %d members", __func__, idx,
                           argument->value.sub_count);
    *out = &argument->members[idx];
    return migraphx_status_success;
}

migraphx_status migraphx_argument_to_string(char **out, const_migraphx_argument_t argument)
{
    API_NEED(out);
    API_NEED(argument);
    API_DIAG(diag);
    struct mgx_str text = {0};
    enum mgx_status status = require_host(&argument->value, &diag);
    if (status == MGX_OK) {
        mgx_tensor_print(&text, mgx_api_argument_value(argument));
        status = mgx_api_take_text(&text, out, &diag);
    }
    return mgx_api_leave(status, &diag);
}
