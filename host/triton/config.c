// SPDX-License-Identifier: MIT
// A model's configuration: what is read of it, and whether it fits the model. complete.c writes
// what it leaves out.
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "config.h"

// --- parameters ---

static TritonError *set(struct model *m, const char *name, const char *value, bool strict)
{
    char names[1024];
    bool known = false;
    TRY(options_set(&m->options, name, value, &known));
    if (known || !strict || strncasecmp(name, "TRITON_", 7) == 0)
        return NULL;
    options_names(names, sizeof names);
    return fail(TRITON_INVALID_ARGUMENT, "migraphx: model %s has no parameter %s; there are %s",
                m->name, name, names);
}

// Members of an object whose values are texts, or have one called "string_value".
static TritonError *set_all(struct model *m, const struct json_list *l, const struct json *of,
                            bool strict)
{
    for (const struct json *v = NULL; (v = json_step(l, of, v));) {
        const struct json *inner = json_find(l, v, "string_value");
        char *name = json_copy_key(v), *value = json_copy(inner ? inner : v);
        TritonError *error = name && value ? set(m, name, value, strict) : no_memory();
        free(name);
        free(value);
        if (error)
            return error;
    }
    return NULL;
}

// Of accelerators only those that have this engine's name.
static TritonError *set_accelerators(struct model *m, const struct json_list *l, const char *path)
{
    const struct json *all = json_find(l, l->values, path);
    for (const struct json *v = NULL; (v = json_step(l, all, v));)
        if (json_equal(json_find(l, v, "name"), "migraphx"))
            TRY(set_all(m, l, json_find(l, v, "parameters"), true));
    return NULL;
}

// What holds for all models of this backend, with names that other backends know too.
static TritonError *set_of_backend(struct model *m, bool *own)
{
    TritonBackend *backend = NULL;
    TritonMessage *message = NULL;
    const char *text = NULL, *name = NULL;
    size_t size = 0;
    struct json_list l;
    TRY(TRITONBACKEND_ModelBackend(m->handle, &backend));
    TRY(TRITONBACKEND_BackendName(backend, &name));
    *own = strcmp(name, "migraphx") == 0;
    TRY(TRITONBACKEND_BackendConfig(backend, &message));
    TRY(TRITONSERVER_MessageSerializeToJson(message, &text, &size));
    if (!json_read(&l, text, size))
        return fail(TRITON_INVALID_ARGUMENT, "migraphx: the backend's configuration is no JSON");
    TritonError *error = set_all(m, &l, json_find(&l, l.values, "cmdline"), false);
    int64_t most = 0;
    if (json_integer(json_find(&l, l.values, "cmdline.default-max-batch-size"), &most) && most > 0)
        m->usual_most = (size_t)most;
    json_fini(&l);
    return error;
}

// --- sequences, groups ---

static TritonError *read_states(struct model *m, const struct json_list *l)
{
    const struct json *all = json_find(l, l->values, "sequence_batching.state");
    m->states = calloc(json_size(l, all) + 1, sizeof *m->states);
    if (!m->states)
        return no_memory();
    for (const struct json *v = NULL; (v = json_step(l, all, v));) {
        struct state *s = &m->states[m->state_count++];
        s->from = json_copy(json_find(l, v, "output_name"));
        s->to = json_copy(json_find(l, v, "input_name"));
        if (!s->from || !s->to)
            return no_memory();
    }
    return NULL;
}

static void read_groups(struct model *m, const struct json_list *l)
{
    const struct json *all = json_find(l, l->values, "instance_group");
    for (const struct json *v = NULL; (v = json_step(l, all, v));) {
        int64_t count = 1;
        json_integer(json_find(l, v, "count"), &count);
        if (!json_equal(json_find(l, v, "kind"), "KIND_GPU") && count > 0)
            m->groups += (size_t)count;
    }
}

static TritonError *read_ragged(struct model *m, const struct json_list *l)
{
    const struct json *all = json_find(l, l->values, "input");
    for (const struct json *v = NULL; (v = json_step(l, all, v));) {
        char *name = json_copy(json_find(l, v, "name"));
        struct value *input = name ? model_find(m->inputs, m->input_count, name) : NULL;
        free(name);
        if (input)
            input->ragged = json_is_true(json_find(l, v, "allow_ragged_batch"));
    }
    return NULL;
}

TritonError *config_read(struct model *m, const struct json_list *l)
{
    int64_t most = 0;
    bool own = true;
    TRY(set_of_backend(m, &own));
    TRY(set_all(m, l, json_find(l, l->values, "parameters"), own));
    TRY(set_accelerators(m, l, "optimization.execution_accelerators.cpu_execution_accelerator"));
    TRY(set_accelerators(m, l, "optimization.execution_accelerators.gpu_execution_accelerator"));
    if (m->options.fp16 && m->options.bf16)
        return fail(TRITON_INVALID_ARGUMENT,
                    "migraphx: model %s: parameters fp16 and bf16 are both set", m->name);
    json_integer(json_find(l, l->values, "max_batch_size"), &most);
    m->most = most > 0 ? (size_t)most : 0;
    m->decoupled = json_is_true(json_find(l, l->values, "model_transaction_policy.decoupled"));
    read_groups(m, l);
    return read_states(m, l);
}

// --- names that a configuration gives elsewhere than among its inputs and outputs ---

static bool has_name(const struct json_list *l, const char *path, const char *key, const char *name)
{
    const struct json *all = json_find(l, l->values, path);
    for (const struct json *v = NULL; (v = json_step(l, all, v));)
        if (json_equal(json_find(l, v, key), name))
            return true;
    return false;
}

bool config_gives_input(const struct json_list *l, const char *name)
{
    const struct json *all = json_find(l, l->values, "batch_input");
    for (const struct json *v = NULL; (v = json_step(l, all, v));) {
        const struct json *targets = json_find(l, v, "target_name");
        for (const struct json *t = NULL; (t = json_step(l, targets, t));)
            if (json_equal(t, name))
                return true;
    }
    return has_name(l, "sequence_batching.control_input", "name", name) ||
           has_name(l, "sequence_batching.state", "input_name", name);
}

bool config_keeps_result(const struct json_list *l, const char *name)
{
    return has_name(l, "sequence_batching.state", "output_name", name);
}

// --- whether it fits ---

static char *names_of(const struct value *values, size_t count)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    for (size_t i = 0; file && i < count; i++)
        fprintf(file, "%s%s", i ? ", " : "", values[i].name);
    if (file)
        fclose(file);
    return text;
}

static TritonError *check_one(const struct model *m, const struct json_list *l,
                              const struct json *v, bool input)
{
    struct value *values = input ? m->inputs : m->results;
    const size_t count = input ? m->input_count : m->result_count;
    const char *what = input ? "input" : "output";
    char *name = json_copy(json_find(l, v, "name")),
         *type = json_copy(json_find(l, v, "data_type"));
    const struct value *found = name ? model_find(values, count, name) : NULL;
    TritonError *error = NULL;
    if (!name || !type) {
        error = no_memory();
    } else if (!found) {
        char *names = names_of(values, count);
        error = fail(TRITON_INVALID_ARGUMENT, "migraphx: model %s has no %s %s; it has %s", m->name,
                     what, name, names ? names : "others");
        free(names);
    } else if (type_named(type) != found->type) {
        error = fail(TRITON_INVALID_ARGUMENT,
                     "migraphx: model %s: %s %s is %s in the configuration, %s in the model",
                     m->name, what, name, type, type_name(found->type));
    }
    free(name);
    free(type);
    return error;
}

static TritonError *check_listed(const struct model *m, const struct json_list *l)
{
    for (size_t i = 0; i < m->input_count; i++) {
        const char *name = m->inputs[i].name;
        if (!has_name(l, "input", "name", name) && !config_gives_input(l, name))
            return fail(TRITON_INVALID_ARGUMENT,
                        "migraphx: model %s: the configuration lacks input %s of the model",
                        m->name, name);
    }
    return NULL;
}

static TritonError *check_states(struct model *m)
{
    for (size_t i = 0; i < m->state_count; i++) {
        struct state *s = &m->states[i];
        const struct value *from = model_find(m->results, m->result_count, s->from);
        const struct value *to = model_find(m->inputs, m->input_count, s->to);
        if (!from || !to)
            return fail(TRITON_INVALID_ARGUMENT, "migraphx: model %s has no %s %s of a state",
                        m->name, from ? "input" : "output", from ? s->to : s->from);
        if (from->type != to->type)
            return fail(TRITON_INVALID_ARGUMENT,
                        "migraphx: model %s: %s and %s of a state are %s and %s", m->name, s->from,
                        s->to, type_name(from->type), type_name(to->type));
        s->result = (size_t)(from - m->results);
    }
    return NULL;
}

static TritonError *check_batch(const struct model *m)
{
    if (!m->most || m->opens || m->form != FORM_ONNX)
        return NULL;
    for (size_t i = 0; i < m->input_count; i++)
        if (!m->inputs[i].rank || m->inputs[i].lens[0] >= 0)
            return fail(TRITON_INVALID_ARGUMENT,
                        "migraphx: model %s: max_batch_size is %zu, but input %s has no open "
                        "first axis",
                        m->name, m->most, m->inputs[i].name);
    return NULL;
}

TritonError *config_check(struct model *m, const struct json_list *l)
{
    const struct json *inputs = json_find(l, l->values, "input");
    const struct json *results = json_find(l, l->values, "output");
    for (const struct json *v = NULL; (v = json_step(l, inputs, v));)
        if (!json_is_true(json_find(l, v, "optional")))
            TRY(check_one(m, l, v, true));
    for (const struct json *v = NULL; (v = json_step(l, results, v));)
        TRY(check_one(m, l, v, false));
    TRY(check_listed(m, l));
    TRY(check_states(m));
    TRY(check_batch(m));
    TRY(read_ragged(m, l));
    return ragged_read(m, l);
}
