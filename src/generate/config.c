// SPDX-License-Identifier: MIT
// Three JSON files, and from each what is known there.
#include "generate/config.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/size.h"
#include "format/tree.h"

enum { FILE_BYTES = 1 << 24, ENDS = 256, NAME = 256, STATES = 16 };

struct reading {
    struct mgx_generate_config *out;
    const char *folder;
    struct mgx_dirs dirs;
    struct mgx_arena *arena;
    const char *file; // that is read now
    bool encodes;     // a file says that the model has an encoder
    struct mgx_diag *diag;
};

// --- files ---

static enum mgx_status parse(struct reading *r, const struct mgx_file *file, struct mgx_value **out)
{
    if (file->size > FILE_BYTES)
        return mgx_fail(r->diag, MGX_LIMIT, "%s: %zu bytes, more than %d", r->file, file->size,
                        FILE_BYTES);
    enum mgx_status status =
        mgx_json_read(r->arena, (const char *)file->data, file->size, out, r->diag);
    if (status == MGX_OK)
        status = mgx_file_check(file, r->diag);
    if (status == MGX_OK && !mgx_value_is(*out, MGX_VALUE_MAP))
        status = mgx_fail(r->diag, MGX_INVALID, "json: an object was expected");
    mgx_where(r->diag, "%s/%s", r->folder, r->file);
    return status;
}

// *out is NULL when the folder has no such file.
static enum mgx_status read_json(struct reading *r, const char *name, struct mgx_value **out)
{
    struct mgx_file *file = NULL;
    struct mgx_diag own;
    *out = NULL;
    r->file = name;
    mgx_diag_clear(&own);
    const enum mgx_status status = mgx_dirs_open(&r->dirs, name, strlen(name), &file, &own);
    if (status == MGX_NOT_FOUND)
        return MGX_OK;
    if (status != MGX_OK)
        return mgx_fail(r->diag, status, "%s/%s: %s", r->folder, name, own.text);
    const enum mgx_status parsed = parse(r, file, out);
    mgx_file_release(file);
    return parsed;
}

static bool has_file(struct reading *r, const char *name)
{
    struct mgx_file *file = NULL;
    if (mgx_dirs_open(&r->dirs, name, strlen(name), &file, NULL) != MGX_OK)
        return false;
    mgx_file_release(file);
    return true;
}

// --- values ---

static enum mgx_status bad(struct reading *r, const char *key, const char *want)
{
    return mgx_fail(r->diag, MGX_INVALID, "%s/%s: \"%s\" should be %s", r->folder, r->file, key,
                    want);
}

static bool is_absent(const struct mgx_value *v)
{
    return !v || mgx_value_is(v, MGX_VALUE_NIL);
}

static enum mgx_status read_count(struct reading *r, const struct mgx_value *map, const char *key,
                                  int64_t *out)
{
    const struct mgx_value *v = mgx_value_find(map, key);
    if (is_absent(v) || *out)
        return MGX_OK;
    if (!mgx_value_is(v, MGX_VALUE_INT) || v->i < 0 || v->i > INT32_MAX)
        return bad(r, key, "a number from 0 to 2147483647");
    *out = v->i;
    return MGX_OK;
}

static enum mgx_status read_real(struct reading *r, const struct mgx_value *map, const char *key,
                                 double least, double most, double *out)
{
    const struct mgx_value *v = mgx_value_find(map, key);
    if (is_absent(v))
        return MGX_OK;
    const double value = mgx_value_is(v, MGX_VALUE_INT)    ? (double)v->i
                         : mgx_value_is(v, MGX_VALUE_REAL) ? v->f
                                                           : NAN;
    if (!(value >= least && value <= most))
        return mgx_fail(r->diag, MGX_INVALID, "%s/%s: \"%s\" should be a number from %g to %g",
                        r->folder, r->file, key, least, most);
    *out = value;
    return MGX_OK;
}

static enum mgx_status read_name(struct reading *r, const struct mgx_value *map, const char *key,
                                 const char **out)
{
    const struct mgx_value *v = mgx_value_find(map, key);
    if (is_absent(v))
        return MGX_OK;
    if (!mgx_value_is(v, MGX_VALUE_TEXT) || v->size == 0 || v->size > NAME)
        return bad(r, key, "a name of 1 to 256 bytes");
    *out = v->data;
    return MGX_OK;
}

static enum mgx_status add_end(struct reading *r, const struct mgx_value *v, int64_t *ends)
{
    if (!mgx_value_is(v, MGX_VALUE_INT) || v->i < 0 || v->i > INT32_MAX ||
        r->out->end_count == ENDS)
        return bad(r, "eos_token_id", "a token, or a list of 256 tokens at most");
    ends[r->out->end_count++] = v->i;
    return MGX_OK;
}

// One token or a list of them; the first file that has it counts.
static enum mgx_status read_ends(struct reading *r, const struct mgx_value *map)
{
    const struct mgx_value *v = mgx_value_find(map, "eos_token_id");
    if (is_absent(v) || r->out->end_count)
        return MGX_OK;
    int64_t *ends = MGX_NEW_ARRAY(r->arena, int64_t, ENDS);
    if (!ends)
        return mgx_fail_memory(r->diag);
    r->out->ends = ends;
    if (!mgx_value_is(v, MGX_VALUE_LIST))
        return add_end(r, v, ends);
    for (const struct mgx_value *one = v->first; one; one = one->next)
        TRY(add_end(r, one, ends));
    return MGX_OK;
}

// The first file that has it counts.
static enum mgx_status read_start(struct reading *r, const struct mgx_value *map)
{
    int64_t start = 0;
    if (r->out->start >= 0 || is_absent(mgx_value_find(map, "decoder_start_token_id")))
        return MGX_OK;
    TRY(read_count(r, map, "decoder_start_token_id", &start));
    r->out->start = start;
    return MGX_OK;
}

// --- sampling ---

// Settings count where they ask for chance at all: "do_sample".
static enum mgx_status read_sampling(struct reading *r, const struct mgx_value *map)
{
    struct mgx_sampling *s = &r->out->sampling;
    const struct mgx_value *sample = mgx_value_find(map, "do_sample");
    const bool chance = mgx_value_is(sample, MGX_VALUE_BOOL) && sample->i;
    double temperature = 1, top_p = 1, min_p = 0;
    int64_t top_k = 0;
    TRY(read_real(r, map, "repetition_penalty", 1e-3, 1e3, &s->repetition));
    TRY(read_real(r, map, "temperature", 0, 1e6, &temperature));
    TRY(read_real(r, map, "top_p", 0, 1, &top_p));
    TRY(read_real(r, map, "min_p", 0, 1, &min_p));
    TRY(read_count(r, map, "top_k", &top_k));
    if (!chance)
        return MGX_OK;
    s->temperature = temperature;
    s->top_p = top_p;
    s->min_p = min_p;
    s->top_k = top_k;
    return MGX_OK;
}

// --- genai_config.json ---

static enum mgx_status read_state_names(struct reading *r, const struct mgx_value *inputs,
                                        const struct mgx_value *outputs)
{
    static const char *const keys[][2] = {{"past_key_names", "present_key_names"},
                                          {"past_value_names", "present_value_names"},
                                          {"past_names", "present_names"}};
    struct mgx_state_names *states = MGX_NEW_ARRAY(r->arena, struct mgx_state_names, STATES);
    if (!states)
        return mgx_fail_memory(r->diag);
    r->out->names.states = states;
    for (int i = 0; i < MGX_COUNT(keys); i++) {
        struct mgx_state_names one = {0};
        TRY(read_name(r, inputs, keys[i][0], &one.past));
        TRY(read_name(r, outputs, keys[i][1], &one.present));
        if (one.past && one.present)
            states[r->out->names.state_count++] = one;
    }
    return MGX_OK;
}

// Keys and values that the encoder gives, by the names that they have on both sides.
static enum mgx_status read_encoder(struct reading *r, const struct mgx_value *encoder,
                                    const struct mgx_value *decoder)
{
    static const char *const keys[][2] = {{"cross_past_key_names", "cross_present_key_names"},
                                          {"cross_past_value_names", "cross_present_value_names"},
                                          {"encoder_hidden_states", "encoder_hidden_states"}};
    const struct mgx_value *inputs = mgx_value_find(decoder, "inputs"),
                           *outputs = mgx_value_find(encoder, "outputs");
    struct mgx_state_names *list = MGX_NEW_ARRAY(r->arena, struct mgx_state_names, STATES);
    if (!list)
        return mgx_fail_memory(r->diag);
    TRY(read_name(r, encoder, "filename", &r->out->encoder));
    r->out->crossed = list;
    for (int i = 0; i < MGX_COUNT(keys); i++) {
        struct mgx_state_names one = {0};
        TRY(read_name(r, inputs, keys[i][0], &one.past));
        TRY(read_name(r, outputs, keys[i][1], &one.present));
        if (one.past && one.present)
            list[r->out->crossed_count++] = one;
    }
    return MGX_OK;
}

static enum mgx_status read_decoder(struct reading *r, const struct mgx_value *decoder)
{
    const struct mgx_value *inputs = mgx_value_find(decoder, "inputs"),
                           *outputs = mgx_value_find(decoder, "outputs");
    struct mgx_role_names *n = &r->out->names;
    const struct mgx_value *pipeline = mgx_value_find(decoder, "pipeline");
    if (mgx_value_is(pipeline, MGX_VALUE_LIST) && pipeline->count)
        return mgx_fail(r->diag, MGX_UNSUPPORTED, "%s/%s: a decoder of several models (pipeline)",
                        r->folder, r->file);
    TRY(read_name(r, decoder, "filename", &r->out->model));
    TRY(read_name(r, inputs, "input_ids", &n->tokens));
    TRY(read_name(r, inputs, "attention_mask", &n->mask));
    TRY(read_name(r, inputs, "position_ids", &n->positions));
    TRY(read_name(r, inputs, "total_sequence_length", &n->total));
    TRY(read_name(r, outputs, "logits", &n->logits));
    return read_state_names(r, inputs, outputs);
}

static enum mgx_status read_genai(struct reading *r)
{
    struct mgx_value *all;
    TRY(read_json(r, "genai_config.json", &all));
    if (!all)
        return MGX_OK;
    const struct mgx_value *model = mgx_value_find(all, "model"),
                           *search = mgx_value_find(all, "search");
    if (!mgx_value_is(model, MGX_VALUE_MAP))
        return bad(r, "model", "an object");
    TRY(read_count(r, model, "context_length", &r->out->context));
    TRY(read_count(r, model, "vocab_size", &r->out->words));
    TRY(read_ends(r, model));
    const struct mgx_value *decoder = mgx_value_find(model, "decoder"),
                           *encoder = mgx_value_find(model, "encoder");
    TRY(read_start(r, model));
    TRY(read_decoder(r, decoder));
    if (mgx_value_is(encoder, MGX_VALUE_MAP))
        TRY(read_encoder(r, encoder, decoder));
    return mgx_value_is(search, MGX_VALUE_MAP) ? read_sampling(r, search) : MGX_OK;
}

// --- config.json, generation_config.json ---

static enum mgx_status read_transformers(struct reading *r)
{
    static const char *const lengths[] = {"max_position_embeddings", "n_positions",
                                          "max_sequence_length", "n_ctx", "max_target_positions"};
    struct mgx_value *all, *generation;
    const bool has_sampling = r->file && r->out->model;
    TRY(read_json(r, "config.json", &all));
    const struct mgx_value *text = mgx_value_find(all, "text_config"),
                           *decoder = mgx_value_find(all, "decoder");
    const struct mgx_value *main = mgx_value_is(text, MGX_VALUE_MAP)      ? text
                                   : mgx_value_is(decoder, MGX_VALUE_MAP) ? decoder
                                                                          : all;
    TRY(read_json(r, "generation_config.json", &generation));
    if (mgx_value_is(generation, MGX_VALUE_MAP)) {
        TRY(read_ends(r, generation));
        TRY(read_start(r, generation));
        if (!has_sampling)
            TRY(read_sampling(r, generation));
    }
    r->file = "config.json";
    if (!main)
        return MGX_OK;
    for (int i = 0; i < MGX_COUNT(lengths); i++)
        TRY(read_count(r, main, lengths[i], &r->out->context));
    TRY(read_count(r, main, "vocab_size", &r->out->words));
    const struct mgx_value *encodes = mgx_value_find(all, "is_encoder_decoder");
    r->encodes = mgx_value_is(encodes, MGX_VALUE_BOOL) && encodes->i;
    TRY(read_start(r, all));
    TRY(read_start(r, main));
    TRY(read_ends(r, main));
    return main == all ? MGX_OK : read_ends(r, all);
}

// --- the model's file ---

// The files of a model, as exporters call them; an encoder's decoder of first tokens is needed
// where that of later ones does not have both.
struct layout {
    const char *model, *encoder, *first;
};
static const struct layout layouts[] = {
    {"model.onnx", NULL, NULL},
    {"onnx/model.onnx", NULL, NULL},
    {"decoder_model_merged.onnx", "encoder_model.onnx", NULL},
    {"onnx/decoder_model_merged.onnx", "onnx/encoder_model.onnx", NULL},
    {"decoder_with_past_model.onnx", "encoder_model.onnx", "decoder_model.onnx"},
    {"onnx/decoder_with_past_model.onnx", "onnx/encoder_model.onnx", "onnx/decoder_model.onnx"},
    {"decoder/model.onnx", "encoder/model.onnx", NULL},
    {"decoder_model_merged.onnx", NULL, NULL},
    {"onnx/decoder_model_merged.onnx", NULL, NULL},
    {"decoder_with_past_model.onnx", NULL, NULL}};

static bool has_layout(struct reading *r, const struct layout *l)
{
    return has_file(r, l->model) && (!l->encoder || has_file(r, l->encoder)) &&
           (!l->first || has_file(r, l->first));
}

// The name becomes the file's path.
static enum mgx_status find_file(struct reading *r, const char *what, const char **name)
{
    struct mgx_file *file = NULL;
    if (!*name)
        return MGX_OK;
    const enum mgx_status status = mgx_dirs_open(&r->dirs, *name, strlen(*name), &file, r->diag);
    mgx_where(r->diag, "the %s's file in %s", what, r->folder);
    TRY(status);
    mgx_file_release(file);
    *name = mgx_arena_printf(r->arena, "%s/%s", r->folder, *name);
    return *name ? MGX_OK : mgx_fail_memory(r->diag);
}

static enum mgx_status find_model(struct reading *r)
{
    struct mgx_generate_config *c = r->out;
    for (int i = 0; i < MGX_COUNT(layouts) && !c->model; i++)
        if (has_layout(r, &layouts[i])) {
            c->model = layouts[i].model;
            c->encoder = layouts[i].encoder;
            c->first = layouts[i].first;
        }
    if (!c->model)
        return mgx_fail(r->diag, MGX_NOT_FOUND,
                        "%s: there is no model: neither genai_config.json that names one, nor "
                        "model.onnx",
                        r->folder);
    if (r->encodes && !c->encoder && strstr(c->model, "decoder_"))
        return mgx_fail(r->diag, MGX_NOT_FOUND,
                        "%s: config.json says that the model has an encoder, and there is no "
                        "encoder_model.onnx beside %s%s",
                        r->folder, c->model,
                        strstr(c->model, "merged") ? "" : ", or no decoder_model.onnx");
    TRY(find_file(r, "model", &c->model));
    TRY(find_file(r, "encoder", &c->encoder));
    return find_file(r, "model", &c->first);
}

// The folder, and where its files really lie if the first of these that there is is a link into a
// store. So a link beside plain files leads nowhere else.
static enum mgx_status open_folder(struct reading *r)
{
    static const char *const files[] = {"genai_config.json", "config.json", "model.onnx"};
    TRY(mgx_dirs_add(&r->dirs, r->folder, true, r->diag));
    for (int i = 0; i < MGX_COUNT(files); i++) {
        const char *path = mgx_arena_printf(r->arena, "%s/%s", r->folder, files[i]);
        if (!path)
            return mgx_fail_memory(r->diag);
        if (access(path, F_OK) == 0)
            return mgx_dirs_add_file(&r->dirs, path, false, r->diag);
    }
    return MGX_OK;
}

enum mgx_status mgx_generate_config_read(struct mgx_generate_config *out, const char *folder,
                                         struct mgx_arena *arena, struct mgx_diag *diag)
{
    *out = (struct mgx_generate_config){.sampling = mgx_sampling_plain(), .start = -1};
    struct reading r = {.out = out, .folder = folder, .arena = arena, .diag = diag};
    enum mgx_status status = open_folder(&r);
    if (status == MGX_OK)
        status = read_genai(&r);
    if (status == MGX_OK)
        status = read_transformers(&r);
    if (status == MGX_OK)
        status = find_model(&r);
    mgx_dirs_close(&r.dirs);
    return status;
}
