// SPDX-License-Identifier: MIT
// Files and buffers: which form they have, and who reads and writes it; see mxr.h.
//
// A file that is read is mapped, and shared by the literals that are views of it. A failure to
// write leaves what was there (base/output.h).
#include "format/mxr.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/file.h"
#include "base/output.h"
#include "base/sniff.h"
#include "format/container.h"
#include "format/format.h"
#include "format/mxr_read.h"
#include "format/mxr_write.h"

// --- reading ---

static enum mgx_status parse(struct mgx_arena *arena, const void *data, size_t size,
                             enum mgx_file_form form, struct mgx_value **out, struct mgx_diag *diag)
{
    return form == MGX_FORM_JSON ? mgx_json_read(arena, data, size, out, diag)
                                 : mgx_msgpack_read(arena, data, size, out, diag);
}

// What is no saved program at all is told by its first bytes; one that is damaged, by the place.
static enum mgx_status read_tree(struct mgx_arena *arena, const void *data, size_t size,
                                 enum mgx_file_form form, struct mgx_value **out,
                                 struct mgx_diag *diag)
{
    struct mgx_diag why = {.status = MGX_OK};
    const enum mgx_status status = parse(arena, data, size, form, out, &why);
    if (status == MGX_OK)
        return MGX_OK;
    const bool meant =
        form == MGX_FORM_JSON ? size && *(const char *)data == '{' : mgx_sniff_is_saved(data, size);
    const char *what = status == MGX_INVALID && !meant ? mgx_sniff(data, size) : NULL;
    return what ? mgx_fail(diag, status, "not a saved program but %s", what)
                : mgx_fail(diag, status, "%s%s",
                           meant || status != MGX_INVALID ? "" : "not a saved program: ", why.text);
}

static enum mgx_status load(struct mgx_program **out, const struct mgx_op_set *ops,
                            struct mgx_storage *file, const void *data, size_t size,
                            enum mgx_file_form form, struct mgx_diag *diag)
{
    struct mgx_arena arena;
    struct mgx_value *root;
    mgx_arena_init(&arena);
    mgx_cancel_enter();
    enum mgx_status status = read_tree(&arena, data, size, form, &root, diag);
    if (status == MGX_OK)
        status = mgx_mxr_build(out, ops, &arena, file, NULL, root, diag);
    mgx_cancel_leave();
    mgx_arena_fini(&arena);
    return status;
}

// --- files ---

static void release_file(struct mgx_storage *storage)
{
    mgx_file_release(storage->owner);
    free(storage);
}

// A mapped file as storage of which literals are views.
static enum mgx_status open_file(const char *path, struct mgx_storage **out, struct mgx_diag *diag)
{
    struct mgx_file *file;
    TRY(mgx_file_open(&file, path, diag));
    struct mgx_storage *storage = calloc(1, sizeof *storage);
    if (!storage) {
        mgx_file_release(file);
        return mgx_fail_memory(diag);
    }
    storage->data = (void *)file->data;
    storage->bytes = file->size;
    storage->release = release_file;
    storage->owner = file;
    atomic_init(&storage->refs, 1);
    *out = storage;
    return MGX_OK;
}

static enum mgx_status check_form(enum mgx_file_form form, struct mgx_diag *diag)
{
    return form == MGX_FORM_NETRON
               ? mgx_fail(diag, MGX_UNSUPPORTED, "a graph for Netron is a picture, not a program")
               : MGX_OK;
}

enum mgx_status mgx_mxr_load(struct mgx_program **out, const struct mgx_op_set *ops,
                             const char *path, enum mgx_file_form form,
                             const struct mgx_carry_chooser *chooser, struct mgx_diag *diag)
{
    struct mgx_storage *file;
    TRY(check_form(form, diag));
    TRY(open_file(path, &file, diag));
    enum mgx_status status =
        form == MGX_FORM_MSGPACK && mgx_container_is(file->data, file->bytes)
            ? mgx_mxr_read_container(out, ops, file, chooser, diag)
            : load(out, ops, file, file->data ? file->data : "", file->bytes, form, diag);
    if (status == MGX_OK) {
        status = mgx_file_check(file->owner, diag);
        if (status != MGX_OK)
            mgx_program_destroy(*out);
    }
    mgx_where(diag, "%s", path);
    mgx_storage_release(file);
    return status;
}

enum mgx_status mgx_mxr_load_buffer(struct mgx_program **out, const struct mgx_op_set *ops,
                                    const void *data, size_t size, enum mgx_file_form form,
                                    const struct mgx_carry_chooser *chooser, struct mgx_diag *diag)
{
    TRY(check_form(form, diag));
    if (form != MGX_FORM_MSGPACK || !mgx_container_is(data, size))
        return load(out, ops, NULL, data, size, form, diag);
    struct mgx_storage *copy = mgx_storage_create(NULL, size); // the caller's bytes may go
    if (!copy)
        return mgx_fail_memory(diag);
    memcpy(copy->data, data, size);
    const enum mgx_status status = mgx_mxr_read_container(out, ops, copy, chooser, diag);
    mgx_storage_release(copy);
    return status;
}

enum mgx_status mgx_tensor_load(struct mgx_tensor *out, const char *path, struct mgx_diag *diag)
{
    struct mgx_storage *file;
    struct mgx_arena arena;
    struct mgx_value *root;
    TRY(open_file(path, &file, diag));
    mgx_arena_init(&arena);
    enum mgx_status status =
        mgx_msgpack_read(&arena, file->data ? file->data : "", file->bytes, &root, diag);
    if (status == MGX_OK) // copied: an argument may be written to
        status = mgx_mxr_read_tensor(&arena, NULL, root, 0, out, diag);
    mgx_arena_fini(&arena);
    mgx_where(diag, "%s", path);
    mgx_storage_release(file);
    return status;
}

// --- writing ---

static enum mgx_status to_string(struct mgx_sink *sink, const void *data, size_t size,
                                 struct mgx_diag *diag)
{
    struct mgx_str *out = sink->user;
    TRY(mgx_cancel_check(diag));
    mgx_str_putn(out, data, size);
    return out->failed ? mgx_fail_memory(diag) : MGX_OK;
}

static enum mgx_status to_file(struct mgx_sink *sink, const void *data, size_t size,
                               struct mgx_diag *diag)
{
    TRY(mgx_cancel_check(diag));
    if (fwrite(data, 1, size, sink->user) == size)
        return MGX_OK;
    if (errno == EFAULT) // the system finds the hole in a mapped file before we do
        return mgx_fail(diag, MGX_IO, "a file with weights became shorter while in use");
    return mgx_fail_os(diag, errno, "cannot write");
}

static enum mgx_status write_tree(struct mgx_sink *sink, const struct mgx_value *v,
                                  enum mgx_file_form form, struct mgx_diag *diag)
{
    return form == MGX_FORM_JSON ? mgx_json_write(sink, v, diag) : mgx_msgpack_write(sink, v, diag);
}

static enum mgx_status write_netron(struct mgx_sink *sink, const struct mgx_program *p,
                                    struct mgx_diag *diag)
{
    struct mgx_str text = {0};
    enum mgx_status status = mgx_format_netron(&text, p, diag);
    if (status == MGX_OK)
        status = sink->write(sink, text.text, text.size, diag);
    mgx_str_fini(&text);
    return status;
}

// Literals that nobody has looked at yet.
static enum mgx_status check_literals(const struct mgx_program *p, struct mgx_diag *diag)
{
    if (!p->carry)
        return MGX_OK;
    mgx_carry_mark_literals(p->carry);
    return mgx_carry_check(p->carry, diag);
}

// Good only if the weights were there to be read.
static enum mgx_status write_forms(struct mgx_sink *sink, const struct mgx_mxr_forms *what,
                                   struct mgx_diag *diag)
{
    for (int i = what->portable ? -1 : 0; i < what->count; i++)
        TRY(check_literals(i < 0 ? what->portable : what->v[i].p, diag));
    TRY(mgx_mxr_write_container(sink, what, diag));
    for (int i = what->portable ? -1 : 0; i < what->count; i++)
        TRY(mgx_program_check_files(i < 0 ? what->portable : what->v[i].p, diag));
    return MGX_OK;
}

static enum mgx_status write_program(struct mgx_sink *sink, const struct mgx_program *p,
                                     const struct mgx_carry *carry, enum mgx_file_form form,
                                     struct mgx_diag *diag)
{
    const struct mgx_mxr_form one = {p, carry};
    if (carry && form == MGX_FORM_MSGPACK)
        return write_forms(sink, &(struct mgx_mxr_forms){.v = &one, .count = 1}, diag);
    TRY(check_literals(p, diag));
    if (form == MGX_FORM_NETRON)
        return write_netron(sink, p, diag);
    struct mgx_arena arena;
    struct mgx_value *root;
    mgx_arena_init(&arena);
    enum mgx_status status =
        mgx_mxr_program_value(&arena, p, carry ? carry->target : NULL, NULL, &root, diag);
    if (status == MGX_OK)
        status = write_tree(sink, root, form, diag);
    mgx_arena_fini(&arena);
    TRY(status);
    return mgx_program_check_files(p, diag);
}

// A program in some form, or several forms.
struct job {
    const struct mgx_mxr_forms *what; // NULL: the rest
    const struct mgx_program *p;
    const struct mgx_carry *carry;
    enum mgx_file_form form;
};

static enum mgx_status write_job(struct mgx_sink *sink, const struct job *job,
                                 struct mgx_diag *diag)
{
    mgx_cancel_enter();
    const enum mgx_status status = job->what
                                       ? write_forms(sink, job->what, diag)
                                       : write_program(sink, job->p, job->carry, job->form, diag);
    mgx_cancel_leave();
    return status;
}

static enum mgx_status save(const struct job *job, const char *path, struct mgx_diag *diag)
{
    struct mgx_output out;
    enum mgx_status status = mgx_output_open(&out, path, diag);
    if (status == MGX_OK) {
        mgx_output_enlarge(&out);
        struct mgx_sink sink = {.write = to_file, .user = out.file};
        status = mgx_output_close(&out, write_job(&sink, job, diag), diag);
    }
    mgx_where(diag, "%s", path);
    return status;
}

static enum mgx_status save_buffer(const struct job *job, struct mgx_str *out,
                                   struct mgx_diag *diag)
{
    struct mgx_sink sink = {.write = to_string, .user = out};
    return write_job(&sink, job, diag);
}

enum mgx_status mgx_mxr_save(const struct mgx_program *p, const struct mgx_carry *carry,
                             const char *path, enum mgx_file_form form, struct mgx_diag *diag)
{
    return save(&(struct job){.p = p, .carry = carry, .form = form}, path, diag);
}

enum mgx_status mgx_mxr_save_buffer(const struct mgx_program *p, const struct mgx_carry *carry,
                                    enum mgx_file_form form, struct mgx_str *out,
                                    struct mgx_diag *diag)
{
    return save_buffer(&(struct job){.p = p, .carry = carry, .form = form}, out, diag);
}

enum mgx_status mgx_mxr_save_forms(const struct mgx_mxr_forms *what, const char *path,
                                   struct mgx_diag *diag)
{
    return save(&(struct job){.what = what}, path, diag);
}

enum mgx_status mgx_mxr_save_forms_buffer(const struct mgx_mxr_forms *what, struct mgx_str *out,
                                          struct mgx_diag *diag)
{
    return save_buffer(&(struct job){.what = what}, out, diag);
}

enum mgx_status mgx_tensor_save(const struct mgx_tensor *t, const char *path, struct mgx_diag *diag)
{
    struct mgx_arena arena;
    mgx_arena_init(&arena);
    const struct mgx_value *root = mgx_mxr_tensor_value(&arena, t);
    struct mgx_output out;
    enum mgx_status status =
        arena.failed ? mgx_fail_memory(diag) : mgx_output_open(&out, path, diag);
    if (status == MGX_OK) {
        struct mgx_sink sink = {.write = to_file, .user = out.file};
        status = mgx_output_close(&out, mgx_msgpack_write(&sink, root, diag), diag);
    }
    mgx_where(diag, "%s", path);
    mgx_arena_fini(&arena);
    return status;
}
