// SPDX-License-Identifier: MIT
// What a session says about its provider: the options that MIGraphX's provider has, in both
// spellings (with and without "migraphx_"), and a few of this engine.
//
// Three kinds: those that do something here; those whose work needs nobody to ask for it, which are
// taken and checked; and those that would change results or memory in a way that is not there,
// which are refused unless they are off. Nothing is ignored in silence: an unknown name is an error.
#include <stdio.h>
#include <string.h>

#include "plugin.h"
#include "words.h"

struct row {
    const char *name;
    enum { FLAG, SIZE, TEXT, OFF, NO_USE } kind;
    size_t at, room; // in struct options
    const char *why; // of OFF
};

#define AT(member) offsetof(struct options, member), sizeof(((struct options *)0)->member)

static const struct row rows[] = {
    {"fp16_enable", FLAG, AT(fp16), NULL},
    {"bf16_enable", FLAG, AT(bf16), NULL},
    {"int8_enable", FLAG, AT(int8), NULL},
    {"int8_calibration_table_name", TEXT, AT(table), NULL},
    {"exhaustive_tune", FLAG, AT(exhaustive_tune), NULL},
    {"fast_math", FLAG, AT(fast_math), NULL},
    {"specialise", FLAG, AT(specialise), NULL},
    {"threads", SIZE, AT(threads), NULL},
    {"mem_limit", SIZE, AT(mem_limit), NULL},
    {"isa", TEXT, AT(isa), NULL},
    {"target", TEXT, AT(device), NULL},
    {"tuning_cache", TEXT, AT(tuning_cache), NULL},
    {"fp8_enable", OFF, 0, 0, "quantize the model before: migraphx-driver quantize"},
    {"external_alloc", OFF, 0, 0, "memory is the engine's"},
    {"external_free", OFF, 0, 0, "memory is the engine's"},
    {"external_empty_cache", OFF, 0, 0, "memory is the engine's"},
    {"device_id", NO_USE, 0, 0, NULL},
    {"int8_use_native_calibration_table", NO_USE, 0, 0, NULL},
    {"arena_extend_strategy", NO_USE, 0, 0, NULL},
    {"model_cache_dir", NO_USE, 0, 0, NULL},
    {"cache_dir", NO_USE, 0, 0, NULL},
    {"disable_caching", NO_USE, 0, 0, NULL},
    {"force_recompile", NO_USE, 0, 0, NULL},
    {"max_dynamic_batch", NO_USE, 0, 0, NULL},
    {"compile_batches", NO_USE, 0, 0, NULL},
    {"max_compiled_models", NO_USE, 0, 0, NULL},
    {"hip_graph_enable", NO_USE, 0, 0, NULL},
    {"coalesce_io", NO_USE, 0, 0, NULL},
    {"model_arch", NO_USE, 0, 0, NULL},
};

static const struct row *find_row(const char *name)
{
    static const char prefix[] = "migraphx_";
    if (strncmp(name, prefix, sizeof prefix - 1) == 0)
        name += sizeof prefix - 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

// The host's word for no limit is the largest number.
static bool read_limit(const char *text, size_t *out)
{
    if (!words_size(text, out))
        return false;
    *out = *out == SIZE_MAX ? 0 : *out;
    return true;
}

static OrtStatus *bad(const struct host *h, const char *key, const char *value, const char *want)
{
    return host_fail(h, ORT_INVALID_ARGUMENT, "MIGraphX: option %s is \"%s\", %s", key, value,
                     want);
}

static OrtStatus *set(struct options *o, const struct host *h, const struct row *row,
                      const char *key, const char *value)
{
    char *to = (char *)o + row->at;
    bool on = false;
    switch (row->kind) {
    case FLAG:
        return words_flag(value, (bool *)(void *)to) ? NULL : bad(h, key, value, "not 0 or 1");
    case SIZE:
        return read_limit(value, (size_t *)(void *)to) ? NULL : bad(h, key, value, "not a size");
    case TEXT:
        if (strlen(value) >= row->room)
            return bad(h, key, value, "which is too long");
        strcpy(to, value);
        return NULL;
    case OFF:
        return words_flag(value, &on) && !on ? NULL : bad(h, key, value, row->why);
    default:
        return NULL;
    }
}

// All names, for whoever mistyped one.
static OrtStatus *unknown(const struct host *h, const char *key)
{
    char known[2048] = "";
    size_t at = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", i ? ", " : "", rows[i].name);
    return host_fail(h, ORT_INVALID_ARGUMENT, "MIGraphX: unknown option %s; there are %s", key,
                     known);
}

// What the host says to every provider about keeping compiled programs.
static OrtStatus *read_context(struct options *o, const struct host *h, const char *key,
                               const char *value)
{
    if (strcmp(key, "ep.context_enable") == 0)
        return words_flag(value, &o->context) ? NULL : bad(h, key, value, "not 0 or 1");
    if (strcmp(key, "ep.context_embed_mode") == 0)
        return words_flag(value, &o->context_inside) ? NULL : bad(h, key, value, "not 0 or 1");
    if (strcmp(key, "ep.context_file_path") != 0)
        return NULL;
    if (strlen(value) >= sizeof o->context_path)
        return bad(h, key, value, "which is too long");
    strcpy(o->context_path, value);
    return NULL;
}

static OrtStatus *read_all(struct options *o, const struct host *h, const OrtLogger *logger,
                           const char *prefix, const OrtKeyValuePairs *entries)
{
    const char *const *keys, *const *values;
    size_t count = 0;
    h->GetKeyValuePairs(entries, &keys, &values, &count);
    for (size_t i = 0; i < count; i++) {
        HOST_TRY(read_context(o, h, keys[i], values[i]));
        if (strncmp(keys[i], prefix, strlen(prefix)) != 0)
            continue;
        const char *key = keys[i] + strlen(prefix);
        const struct row *row = find_row(key);
        if (!row)
            return unknown(h, key);
        if (row->kind == NO_USE)
            host_log(h, logger, ORT_LOG_INFO, "option %s has no use here", key);
        HOST_TRY(set(o, h, row, key, values[i]));
    }
    if (o->fp16 && o->bf16)
        return host_fail(h, ORT_INVALID_ARGUMENT,
                         "MIGraphX: options fp16_enable and bf16_enable are both set");
    if (o->int8 && !*o->table)
        return host_fail(h, ORT_INVALID_ARGUMENT,
                         "MIGraphX: int8_enable needs int8_calibration_table_name, or a model that "
                         "was quantized before: migraphx-driver quantize");
    return NULL;
}

OrtStatus *options_read(struct options *out, const struct host *h, const OrtLogger *logger,
                        const char *provider, const OrtSessionOptions *session)
{
    OrtKeyValuePairs *entries = NULL;
    char prefix[128] = "";
    *out = (struct options){.fast_math = true, .specialise = true};
    snprintf(prefix, sizeof prefix, "ep.%s.", provider);
    for (char *c = prefix; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
    HOST_TRY(h->GetSessionOptionsConfigEntries(session, &entries));
    OrtStatus *status = read_all(out, h, logger, prefix, entries);
    h->ReleaseKeyValuePairs(entries);
    return status;
}
