// SPDX-License-Identifier: MIT
// A version of a model, from its folder and configuration.
#include <stdio.h>
#include <string.h>

#include "backend.h"

static TritonError *name_it(struct model *m)
{
    const char *name = NULL, *repository = NULL;
    int artifact;
    TRY(TRITONBACKEND_ModelName(m->handle, &name));
    TRY(TRITONBACKEND_ModelVersion(m->handle, &m->version));
    TRY(TRITONBACKEND_ModelRepository(m->handle, &artifact, &repository));
    if (strlen(name) >= sizeof m->name ||
        snprintf(m->folder, sizeof m->folder, "%s/%llu", repository,
                 (unsigned long long)m->version) >= (int)sizeof m->folder)
        return fail(TRITON_INVALID_ARGUMENT, "migraphx: the path of model %.100s is too long",
                    name);
    strcpy(m->name, name);
    return NULL;
}

static TritonError *read_config(const struct model *m, struct json_list *out, char **text)
{
    TritonMessage *message = NULL;
    const char *shown = NULL;
    size_t size = 0;
    TRY(TRITONBACKEND_ModelConfig(m->handle, 1, &message));
    TritonError *error = TRITONSERVER_MessageSerializeToJson(message, &shown, &size);
    if (!error && !(*text = strndup(shown, size)))
        error = no_memory();
    drop(TRITONSERVER_MessageDelete(message));
    if (!error && !json_read(out, *text, strlen(*text)))
        error =
            fail(TRITON_INTERNAL, "migraphx: the configuration of model %s is no JSON", m->name);
    return error;
}

// --- what is known of the model ---

// A graph of TensorFlow's does not say which of its lengths follow from the batch; two readings do.
static TritonError *find_rows(struct model *m)
{
    struct model twice = {.form = m->form, .options = m->options};
    migraphx_program_t program = NULL;
    strcpy(twice.path, m->path);
    strcpy(twice.name, m->name);
    TRY(program_read(m, 2, &program));
    TritonError *error = shapes_read(&twice, program);
    migraphx_program_destroy(program);
    bool grows = !error && twice.input_count == m->input_count &&
                 twice.result_count == m->result_count && m->input_count;
    for (size_t i = 0; grows && i < m->input_count + m->result_count; i++) {
        const bool input = i < m->input_count;
        const struct value *a = input ? &m->inputs[i] : &m->results[i - m->input_count];
        const struct value *b = input ? &twice.inputs[i] : &twice.results[i - m->input_count];
        grows = a->rank && b->rank && a->lens[0] == 1 && b->lens[0] == 2;
    }
    for (size_t i = 0; grows && i < m->input_count + m->result_count; i++)
        (i < m->input_count ? &m->inputs[i] : &m->results[i - m->input_count])->lens[0] = -1;
    m->opens = grows;
    shapes_fini(&twice);
    return error;
}

static TritonError *look(struct model *m)
{
    migraphx_program_t program = NULL;
    if (m->form == FORM_DECODER)
        return NULL;
    TRY(program_read(m, m->form == FORM_TF, &program));
    TritonError *error = shapes_read(m, program);
    migraphx_program_destroy(program);
    if (!error && m->form == FORM_TF)
        error = find_rows(m);
    return error;
}

static TritonError *complete(struct model *m, const struct json_list *given)
{
    struct json_list l = {0};
    char *text = NULL;
    bool wanted = false;
    TRY(TRITONBACKEND_ModelAutoCompleteConfig(m->handle, &wanted));
    if (wanted)
        TRY(config_complete(m, given));
    TritonError *error = read_config(m, &l, &text);
    if (!error && m->form == FORM_DECODER)
        m->decoupled = json_is_true(json_find(&l, l.values, "model_transaction_policy.decoupled"));
    else if (!error)
        error = config_check(m, &l);
    json_fini(&l);
    free(text);
    return error;
}

static TritonError *fill(struct model *m)
{
    struct json_list l = {0};
    char *text = NULL;
    TRY(name_it(m));
    TritonError *error = read_config(m, &l, &text);
    if (!error)
        error = config_read(m, &l);
    if (!error) {
        char *file = json_copy(json_find(&l, l.values, "default_model_filename"));
        error = files_find(m, file);
        free(file);
    }
    if (!error)
        error = look(m);
    if (!error)
        error = complete(m, &l);
    json_fini(&l);
    free(text);
    return error;
}

// --- its life ---

TritonError *model_create(TritonModel *handle, struct model **out)
{
    struct model *m = calloc(1, sizeof *m);
    if (!m)
        return no_memory();
    m->handle = handle;
    m->usual_most = 4;
    pthread_mutex_init(&m->lock, NULL);
    options_default(&m->options);
    TritonError *error = fill(m);
    if (error) {
        model_destroy(m);
        return error;
    }
    *out = m;
    return NULL;
}

void model_destroy(struct model *m)
{
    if (!m)
        return;
    engines_destroy(m);
    shapes_fini(m);
    for (size_t i = 0; i < m->state_count; i++) {
        free(m->states[i].from);
        free(m->states[i].to);
    }
    free(m->states);
    migraphx_generator_destroy(m->generator);
    pthread_mutex_destroy(&m->lock);
    free(m);
}
