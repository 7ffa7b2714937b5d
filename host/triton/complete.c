// SPDX-License-Identifier: MIT
// What a configuration leaves out, written for it: inputs, outputs, max_batch_size, dynamic
// batching, and that a decoder answers in pieces.
//
// What it has stays as it is, to the letter. The server takes over no more than these of what is
// set here.
#include <stdio.h>
#include <string.h>

#include "config.h"

static void write_text(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(to, "\\%c", c);
        else if (c < 0x20)
            fprintf(to, "\\u%04x", c);
        else
            fputc(c, to);
    }
    fputc('"', to);
}

// The server wants at least one length: a value without axes is shown as one of one, and where
// there is a batch the server itself takes that away.
static void write_value(FILE *to, const struct value *v, size_t skip)
{
    fputs("{\"name\":", to);
    write_text(to, v->name);
    fprintf(to, ",\"data_type\":\"%s\",\"dims\":[", type_name(v->type));
    for (size_t i = skip; i < v->rank; i++)
        fprintf(to, "%s%lld", i > skip ? "," : "", (long long)v->lens[i]);
    if (v->rank > skip)
        fputs("]}", to);
    else
        fputs(skip ? "1],\"reshape\":{\"shape\":[]}}" : "1]}", to);
}

static void write_raw(FILE *to, const char *name, const struct json *v)
{
    fprintf(to, ",\"%s\":%.*s", name, (int)v->size, v->text);
}

static void write_values(FILE *to, const struct model *m, const struct json_list *l, bool inputs)
{
    const struct value *values = inputs ? m->inputs : m->results;
    const size_t count = inputs ? m->input_count : m->result_count;
    bool first = true;
    fprintf(to, ",\"%s\":[", inputs ? "input" : "output");
    for (size_t i = 0; i < count; i++) {
        if (inputs ? config_gives_input(l, values[i].name) : config_keeps_result(l, values[i].name))
            continue;
        fputs(first ? "" : ",", to);
        write_value(to, &values[i], m->most ? 1 : 0);
        first = false;
    }
    fputc(']', to);
}

// --- decoders ---

static const char decoder_inputs[] =
    ",\"input\":[{\"name\":\"input_ids\",\"data_type\":\"TYPE_INT64\",\"dims\":[-1]}"
#define OPTIONAL(name, type)                                                                       \
    ",{\"name\":\"" name "\",\"data_type\":\"" type "\",\"dims\":[1],\"optional\":true}"
    OPTIONAL("max_tokens", "TYPE_INT64") OPTIONAL("temperature", "TYPE_FP32")
        OPTIONAL("top_k", "TYPE_INT64") OPTIONAL("top_p", "TYPE_FP32")
            OPTIONAL("min_p", "TYPE_FP32") OPTIONAL("repetition_penalty", "TYPE_FP32")
                OPTIONAL("seed", "TYPE_INT64") "]";
#undef OPTIONAL
static const char decoder_results[] =
    ",\"output\":[{\"name\":\"output_ids\",\"data_type\":\"TYPE_INT64\",\"dims\":[-1]}]"
    ",\"model_transaction_policy\":{\"decoupled\":true}";

// --- the whole ---

static bool is_empty(const struct json_list *l, const char *name)
{
    return json_size(l, json_find(l, l->values, name)) == 0;
}

static void choose_batch(struct model *m, const struct json_list *l)
{
    if (!m->most && m->opens && is_empty(l, "input") && is_empty(l, "output"))
        m->most = m->usual_most;
}

static void write_schedule(FILE *to, const struct model *m, const struct json_list *l)
{
    static const char *const kinds[] = {"dynamic_batching", "sequence_batching"};
    for (size_t i = 0; i < 2; i++) {
        const struct json *v = json_find(l, l->values, kinds[i]);
        if (v) {
            write_raw(to, kinds[i], v);
            return;
        }
    }
    if (m->most > 1)
        fputs(",\"dynamic_batching\":{}", to);
}

static void write_all(FILE *to, const struct model *m, const struct json_list *l)
{
    const struct json *inputs = json_find(l, l->values, "input");
    const struct json *results = json_find(l, l->values, "output");
    const bool decoder = m->form == FORM_DECODER;
    fprintf(to, "{\"max_batch_size\":%zu", m->most);
    if (!is_empty(l, "input"))
        write_raw(to, "input", inputs);
    else if (decoder)
        fputs(decoder_inputs, to);
    else
        write_values(to, m, l, true);
    if (!is_empty(l, "output"))
        write_raw(to, "output", results);
    else if (decoder)
        fputs(decoder_results, to);
    else
        write_values(to, m, l, false);
    write_schedule(to, m, l);
    fputc('}', to);
}

TritonError *config_complete(struct model *m, const struct json_list *l)
{
    char *text = NULL;
    size_t size = 0;
    TritonMessage *message = NULL;
    choose_batch(m, l);
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return no_memory();
    write_all(to, m, l);
    const bool good = !ferror(to);
    fclose(to);
    if (!good || !text) {
        free(text);
        return no_memory();
    }
    TritonError *error = TRITONSERVER_MessageNewFromSerializedJson(&message, text, size);
    if (!error)
        error = TRITONBACKEND_ModelSetConfig(m->handle, 1, message);
    if (message)
        drop(TRITONSERVER_MessageDelete(message));
    free(text);
    return error;
}
