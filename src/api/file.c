// SPDX-License-Identifier: MIT
// Programs and arguments in files.
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "format/mxr.h"
#include "targets/form.h"

struct migraphx_file_options {
    enum mgx_file_form form;
    const struct migraphx_program *forms[MGX_MXR_FORMS]; // borrowed
    int form_count;
    const char *target; // that a form is wanted for; NULL: the best
    bool portable, trusted;
};

static void file_options_fini(struct migraphx_file_options *o)
{
    (void)o;
}

static enum mgx_status file_options_copy(struct migraphx_file_options *out,
                                         const struct migraphx_file_options *in,
                                         struct mgx_diag *diag)
{
    (void)diag;
    *out = *in;
    return MGX_OK;
}

API_HANDLE(file_options)

migraphx_status migraphx_file_options_create(migraphx_file_options_t *out)
{
    API_NEED(out);
    API_DIAG(diag);
    struct migraphx_file_options *o = API_NEW(struct migraphx_file_options);
    if (!o)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    *out = o;
    return migraphx_status_success;
}

migraphx_status migraphx_file_options_set_file_format(migraphx_file_options_t file_options,
                                                      const char *format)
{
    API_NEED(file_options);
    API_NEED(format);
    static const char *const names[] = {
        [MGX_FORM_MSGPACK] = "msgpack", [MGX_FORM_JSON] = "json", [MGX_FORM_NETRON] = "netron"};
    for (int i = 0; i < MGX_COUNT(names); i++)
        if (strcmp(format, names[i]) == 0) {
            file_options->form = (enum mgx_file_form)i;
            return migraphx_status_success;
        }
    return mgx_api_bad("Unknown format: %s", format);
}

migraphx_status migraphx_file_options_add_form(migraphx_file_options_t file_options,
                                               const_migraphx_program_t program)
{
    API_NEED(file_options);
    API_NEED(program);
    if (!program->p->executable)
        return mgx_api_bad("%s: the program is not compiled", __func__);
    if (file_options->form_count == MGX_MXR_FORMS)
        return mgx_api_bad("%s: more than %d forms", __func__, MGX_MXR_FORMS);
    file_options->forms[file_options->form_count++] = program;
    return migraphx_status_success;
}

migraphx_status migraphx_file_options_set_target(migraphx_file_options_t file_options,
                                                 const char *name)
{
    API_NEED(file_options);
    const struct mgx_target *target = name ? mgx_target_find(name) : NULL;
    if (name && !target)
        return mgx_api_bad("%s: there is no target \"%s\"", __func__, name);
    file_options->target = target ? target->name : NULL;
    return migraphx_status_success;
}

migraphx_status migraphx_file_options_set_portable(migraphx_file_options_t file_options, bool value)
{
    API_NEED(file_options);
    file_options->portable = value;
    return migraphx_status_success;
}

migraphx_status migraphx_file_options_set_trusted(migraphx_file_options_t file_options, bool value)
{
    API_NEED(file_options);
    file_options->trusted = value;
    return migraphx_status_success;
}

// What NULL stands for.
static const struct migraphx_file_options usual;

// --- saving ---

// One program, or with it forms that were compiled from it.
struct saving {
    const struct migraphx_file_options *options;
    const struct mgx_program *p;
    struct mgx_carry *carry[MGX_MXR_FORMS]; // of the program alone: the first
};

static enum mgx_status begin_forms(struct saving *s, struct mgx_diag *diag)
{
    if (s->options->form != MGX_FORM_MSGPACK)
        return mgx_fail(diag, MGX_INVALID, "several forms are kept in format msgpack alone");
    if (s->p->executable)
        return mgx_fail(diag, MGX_INVALID,
                        "the program that forms are saved with is compiled: it should be the "
                        "one that they were compiled from");
    for (int i = 0; i < s->options->form_count; i++) {
        TRY(mgx_api_prove(s->options->forms[i]->p, diag));
        TRY(mgx_api_carry(s->options->forms[i]->p, true, &s->carry[i], diag));
    }
    return MGX_OK;
}

static enum mgx_status begin_saving(struct saving *s, struct mgx_diag *diag)
{
    TRY(mgx_api_prove(s->p, diag));
    return s->options->form_count
               ? begin_forms(s, diag)
               : mgx_api_carry(s->p, s->options->form == MGX_FORM_MSGPACK, &s->carry[0], diag);
}

// To a file, or without a path to a buffer.
static enum mgx_status save(struct saving *s, const char *path, struct mgx_str *out,
                            struct mgx_diag *diag)
{
    const struct migraphx_file_options *o = s->options;
    struct mgx_mxr_form forms[MGX_MXR_FORMS];
    for (int i = 0; i < o->form_count; i++)
        forms[i] = (struct mgx_mxr_form){o->forms[i]->p, s->carry[i]};
    const struct mgx_mxr_forms all = {.portable = s->p, .v = forms, .count = o->form_count};
    if (o->form_count)
        return path ? mgx_mxr_save_forms(&all, path, diag)
                    : mgx_mxr_save_forms_buffer(&all, out, diag);
    return path ? mgx_mxr_save(s->p, s->carry[0], path, o->form, diag)
                : mgx_mxr_save_buffer(s->p, s->carry[0], o->form, out, diag);
}

static void end_saving(struct saving *s)
{
    for (int i = 0; i < MGX_MXR_FORMS; i++)
        mgx_carry_destroy(s->carry[i]);
}

// --- loading ---

static enum mgx_status compile(struct mgx_program *p, const struct mgx_form_wish *wish,
                               struct mgx_diag *diag)
{
    const struct mgx_target *target;
    struct migraphx_compile_options o = {.values = {0}};
    TRY(mgx_form_options(p->carry, wish, &target, &o.values, diag));
    return mgx_api_compile(p, target, &o, diag);
}

static struct mgx_form_wish wish_of(const struct migraphx_file_options *o,
                                    const struct mgx_settings *given)
{
    return (struct mgx_form_wish){
        .target = o->target, .portable = o->portable, .trusted = o->trusted, .given = given};
}

// The portable program of a file, left as it is: whoever compiles it reads its literals.
static enum mgx_status check_portable(struct mgx_program *p, struct mgx_diag *diag)
{
    mgx_carry_mark_literals(p->carry);
    return mgx_carry_check(p->carry, diag);
}

// A program that was saved compiled is compiled when it is loaded; takes it over, also on failure.
static enum mgx_status finish(migraphx_program_t *out, struct mgx_program *take,
                              const struct mgx_form_wish *wish, struct mgx_diag *diag)
{
    enum mgx_status status = MGX_OK;
    if (take->carry)
        status = take->carry->target[0] ? compile(take, wish, diag) : check_portable(take, diag);
    if (status == MGX_OK)
        return mgx_api_program_new(out, take, diag);
    mgx_program_destroy(take);
    return status;
}

// From a file, or without a name from bytes.
static enum mgx_status load(migraphx_program_t *out, const char *name, const void *data,
                            size_t size, const struct migraphx_file_options *o,
                            struct mgx_diag *diag)
{
    const struct mgx_api_environment *env = mgx_api_environment();
    const struct mgx_settings given = MGX_SETTINGS({"isa", env->isa}, {"device", env->gpu_device});
    const struct mgx_form_wish wish = wish_of(o, &given);
    const struct mgx_carry_chooser chooser = mgx_form_chooser(&wish);
    struct mgx_program *p;
    if (name)
        TRY(mgx_mxr_load(&p, &mgx_api_ops, name, o->form, &chooser, diag));
    else
        TRY(mgx_mxr_load_buffer(&p, &mgx_api_ops, data, size, o->form, &chooser, diag));
    return finish(out, p, &wish, diag);
}

migraphx_status migraphx_load(migraphx_program_t *out, const char *name,
                              migraphx_file_options_t options)
{
    API_NEED(out);
    API_NEED(name);
    API_DIAG(diag);
    return mgx_api_leave(load(out, name, NULL, 0, options ? options : &usual, &diag), &diag);
}

migraphx_status migraphx_save(migraphx_program_t p, const char *name,
                              migraphx_file_options_t options)
{
    API_NEED(p);
    API_NEED(name);
    API_DIAG(diag);
    struct saving s = {.options = options ? options : &usual, .p = p->p};
    enum mgx_status status = begin_saving(&s, &diag);
    if (status == MGX_OK)
        status = save(&s, name, NULL, &diag);
    end_saving(&s);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_load_buffer(migraphx_program_t *out, const void *data, size_t size,
                                     migraphx_file_options_t options)
{
    API_NEED(out);
    API_NEED(data);
    API_DIAG(diag);
    return mgx_api_leave(load(out, NULL, data, size, options ? options : &usual, &diag), &diag);
}

migraphx_status migraphx_save_buffer(char **out, size_t *out_size, const_migraphx_program_t program,
                                     migraphx_file_options_t options)
{
    API_NEED(out);
    API_NEED(out_size);
    API_NEED(program);
    API_DIAG(diag);
    struct mgx_str bytes = {0};
    struct saving s = {.options = options ? options : &usual, .p = program->p};
    enum mgx_status status = begin_saving(&s, &diag);
    if (status == MGX_OK)
        status = save(&s, NULL, &bytes, &diag);
    end_saving(&s);
    if (status == MGX_OK) {
        *out_size = bytes.size;
        status = mgx_api_take_text(&bytes, out, &diag);
    } else
        mgx_str_fini(&bytes);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_argument_save(const_migraphx_argument_t a, const char *filename)
{
    API_NEED(a);
    API_NEED(filename);
    API_DIAG(diag);
    return mgx_api_leave(mgx_tensor_save(&a->value, filename, &diag), &diag);
}

migraphx_status migraphx_argument_load(migraphx_argument_t *out, const char *filename)
{
    API_NEED(out);
    API_NEED(filename);
    API_DIAG(diag);
    struct mgx_tensor t;
    enum mgx_status status = mgx_tensor_load(&t, filename, &diag);
    if (status == MGX_OK)
        status = mgx_api_argument_new(out, &t, &diag);
    return mgx_api_leave(status, &diag);
}
