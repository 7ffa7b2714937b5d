// SPDX-License-Identifier: MIT
// Loading: files by their suffix or by force, options of the import, and what is done to a program
// after it has been read.
#include <ctype.h>
#include <errno.h>
#include <unistd.h>

#include "driver.h"

// --- ranges ---

// The number after `key` and a colon; -1 if the key is not there.
static long long number_of(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    if (!at)
        return -1;
    at += strlen(key);
    while (*at == '"' || *at == ':' || *at == ' ')
        at++;
    return isdigit((unsigned char)*at) ? strtoll(at, NULL, 10) : -1;
}

static size_t optimals_of(const char *text, size_t *out, size_t capacity)
{
    const char *at = strstr(text, "optimals");
    size_t count = 0;
    at = at ? strpbrk(at, "[{") : NULL;
    while (at && *at && *at != ']' && *at != '}' && count < capacity) {
        at++;
        if (isdigit((unsigned char)*at)) {
            char *end;
            out[count++] = strtoull(at, &end, 10);
            at = end;
        }
    }
    return count;
}

bool parse_dim(const char *text, migraphx_dynamic_dimension_t *out)
{
    char *end;
    while (*text == ' ')
        text++;
    if (isdigit((unsigned char)*text)) {
        const size_t fixed = strtoull(text, &end, 10);
        return OK(migraphx_dynamic_dimension_create_min_max(out, fixed, fixed));
    }
    const long long min = number_of(text, "min"), max = number_of(text, "max");
    size_t sizes[64];
    const size_t count = optimals_of(text, sizes, 64);
    if (min < 0 || max < 0) {
        log_error("'%s' is neither a length nor {min:..,max:..}", text);
        return false;
    }
    if (!count)
        return OK(migraphx_dynamic_dimension_create_min_max(out, (size_t)min, (size_t)max));
    migraphx_optimals_t optimals = NULL;
    const bool good = OK(migraphx_optimals_create(&optimals, sizes, count)) &&
                      OK(migraphx_dynamic_dimension_create_min_max_optimals(out, (size_t)min,
                                                                            (size_t)max, optimals));
    migraphx_optimals_destroy(optimals);
    return good;
}

// Copies the next entry of a bracketed list, whose braces may hold commas; NULL at the end.
static const char *next_entry(const char *at, char *entry, size_t size)
{
    int depth = 0;
    size_t n = 0;
    while (*at == ' ' || *at == ',')
        at++;
    if (!*at || (*at == ']' && depth == 0))
        return NULL;
    for (; *at; at++) {
        if (depth == 0 && (*at == ',' || *at == ']'))
            break;
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        if (n + 1 < size)
            entry[n++] = *at;
    }
    entry[n] = '\0';
    return at;
}

bool parse_dims(const char *text, migraphx_dynamic_dimensions_t *out)
{
    enum { MAX_RANK = 16 };
    migraphx_dynamic_dimension_t dims[MAX_RANK] = {NULL};
    size_t count = 0;
    char entry[256];
    bool good = true;
    const char *at = text + (*text == '[');
    while (good && count < MAX_RANK && (at = next_entry(at, entry, sizeof entry)))
        good = parse_dim(entry, &dims[count]) && ++count;
    if (good)
        good = OK(migraphx_dynamic_dimensions_create(
            out, (const const_migraphx_dynamic_dimension_t *)dims, count));
    for (size_t i = 0; i < MAX_RANK; i++)
        migraphx_dynamic_dimension_destroy(dims[i]);
    return good;
}

// --- options of ONNX ---

static bool parse_length(const char *text, size_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (isdigit((unsigned char)text[0]) && !*end && !errno)
        return true;
    log_error("--input-dim: '%s' is no length", text);
    return false;
}

static migraphx_status put_input_dims(void *options, const char *name, size_t *dims, size_t rank)
{
    return migraphx_onnx_options_set_input_parameter_shape(options, name, dims, rank);
}

static migraphx_status put_tf_input_dims(void *options, const char *name, size_t *dims, size_t rank)
{
    return migraphx_tf_options_set_input_parameter_shape(options, name, dims, rank);
}

// Each input's lengths, handed to `put`.
static bool set_input_dims(const struct options *o, void *options,
                           migraphx_status (*put)(void *, const char *, size_t *, size_t))
{
    const struct words *w = &o->input_dim;
    for (int i = 0; i < w->count;) {
        if (w->items[i][0] != '@') {
            log_error("--input-dim: '%s' should be @<input>", w->items[i]);
            return false;
        }
        const char *name = w->items[i++] + 1;
        size_t dims[16], rank = 0;
        for (; i < w->count && w->items[i][0] != '@' && rank < 16; i++)
            if (!parse_length(w->items[i], &dims[rank++]))
                return false;
        if (!OK(put(options, name, dims, rank)))
            return false;
    }
    return true;
}

static bool set_dyn_input_dims(const struct options *o, migraphx_onnx_options_t options)
{
    const struct words *w = &o->dyn_input_dim;
    for (int i = 0; i < w->count; i += 2) {
        if (w->items[i][0] != '@' || i + 1 >= w->count) {
            log_error("--dyn-input-dim needs @<input> and a list of ranges");
            return false;
        }
        migraphx_dynamic_dimensions_t dims = NULL;
        const bool good =
            parse_dims(w->items[i + 1], &dims) &&
            OK(migraphx_onnx_options_set_dyn_input_parameter_shape(options, w->items[i] + 1, dims));
        migraphx_dynamic_dimensions_destroy(dims);
        if (!good)
            return false;
    }
    return true;
}

static bool set_dim_params(const struct options *o, migraphx_onnx_options_t options)
{
    const struct words *w = &o->dim_param;
    for (int i = 0; i < w->count; i += 2) {
        if (w->items[i][0] != '@' || i + 1 >= w->count) {
            log_error("--dim-param needs @<name> and a length or range");
            return false;
        }
        migraphx_dynamic_dimension_t dim = NULL;
        const bool good = parse_dim(w->items[i + 1], &dim) &&
                          OK(migraphx_onnx_options_set_dim_param(options, w->items[i] + 1, dim));
        migraphx_dynamic_dimension_destroy(dim);
        if (!good)
            return false;
    }
    return true;
}

static bool set_defaults(const struct options *o, migraphx_onnx_options_t options)
{
    if (!OK(migraphx_onnx_options_set_skip_unknown_operators(options, o->skip_unknown)) ||
        !OK(migraphx_onnx_options_set_use_debug_symbols(options, o->debug_symbols)) ||
        !OK(migraphx_onnx_options_set_dynamic_dims(options, o->dynamic_dims)))
        return false;
    if (o->default_dyn_dim) {
        migraphx_dynamic_dimension_t dim = NULL;
        const bool good = parse_dim(o->default_dyn_dim, &dim) &&
                          OK(migraphx_onnx_options_set_default_dyn_dim_value(options, dim));
        migraphx_dynamic_dimension_destroy(dim);
        return good;
    }
    if (o->dynamic_dims && !o->batch)
        return true;
    return OK(
        migraphx_onnx_options_set_default_dim_value(options, o->batch ? (size_t)o->batch : 1));
}

static bool load_onnx(const struct options *o, migraphx_program_t *out)
{
    migraphx_onnx_options_t options = NULL;
    const bool good = OK(migraphx_onnx_options_create(&options)) && set_defaults(o, options) &&
                      set_input_dims(o, options, put_input_dims) &&
                      set_dyn_input_dims(o, options) && set_dim_params(o, options) &&
                      OK(migraphx_parse_onnx(out, o->file, options));
    migraphx_onnx_options_destroy(options);
    // a misspelt input would leave the model's own sizes in force
    return good && check_inputs("--input-dim", &o->input_dim, "@", *out) &&
           check_inputs("--dyn-input-dim", &o->dyn_input_dim, "@", *out) && check_dim_params(o);
}

// --- other kinds ---

static bool load_tf(const struct options *o, migraphx_program_t *out)
{
    migraphx_tf_options_t options = NULL;
    const bool good =
        OK(migraphx_tf_options_create(&options)) &&
        OK(migraphx_tf_options_set_nhwc(options, !o->nchw)) &&
        OK(migraphx_tf_options_set_default_dim_value(options, o->batch ? (size_t)o->batch : 1)) &&
        OK(migraphx_tf_options_set_output_names(options, o->output_names.items,
                                                (size_t)o->output_names.count)) &&
        set_input_dims(o, options, put_tf_input_dims) &&
        OK(migraphx_parse_tf(out, o->file, options));
    migraphx_tf_options_destroy(options);
    return good && check_inputs("--input-dim", &o->input_dim, "@", *out);
}

static bool load_saved(const struct options *o, const char *format, migraphx_program_t *out)
{
    migraphx_file_options_t options = NULL;
    const bool good = OK(migraphx_file_options_create(&options)) &&
                      OK(migraphx_file_options_set_file_format(options, format)) &&
                      OK(migraphx_file_options_set_target(options, o->target)) &&
                      OK(migraphx_file_options_set_portable(options, o->strip_context)) &&
                      OK(migraphx_file_options_set_trusted(options, o->trust)) &&
                      OK(migraphx_load(out, o->file, options));
    migraphx_file_options_destroy(options);
    return good;
}

static bool load_text(const struct options *o, migraphx_program_t *out)
{
    size_t size;
    char *text = read_whole(o->file, &size);
    if (!text) {
        log_error("cannot read %s", o->file);
        return false;
    }
    const bool good = OK(migraphx_program_parse(out, text, size));
    free(text);
    return good;
}

bool is_saved_model(const char *path)
{
    char inside[4096];
    const int size = snprintf(inside, sizeof inside, "%s/saved_model.pb", path);
    return size > 0 && (size_t)size < sizeof inside && access(inside, F_OK) == 0;
}

static enum file_type type_of(const char *path)
{
    static const char start[] = "module: \"";
    char head[sizeof start] = "";
    enum { VERSION = 0x08, LATEST = 0x40 }; // ONNX begins with its version; no saved program does
    if (is_saved_model(path))
        return FILE_TF;
    if (ends_with(path, ".onnx"))
        return FILE_ONNX;
    if (ends_with(path, ".pb"))
        return FILE_TF;
    if (ends_with(path, ".json"))
        return FILE_JSON;
    FILE *file = fopen(path, "rb");
    const size_t got = file ? fread(head, 1, sizeof start - 1, file) : 0;
    if (file)
        fclose(file);
    if (got > 2 && head[0] == VERSION && head[1] > 0 && head[1] < LATEST)
        return FILE_ONNX;
    return got == sizeof start - 1 && memcmp(head, start, got) == 0 ? FILE_TEXT : FILE_MXR;
}

static bool load_file(const struct options *o, migraphx_program_t *out)
{
    if (access(o->file, F_OK) != 0) {
        log_error("Path does not exist: %s", o->file);
        return false;
    }
    if (is_folder(o->file) && !is_saved_model(o->file)) {
        log_error("%s is a folder without saved_model.pb: name the model's file in it", o->file);
        return false;
    }
    log_info("Reading: %s", o->file);
    if (o->type == FILE_AUTO && ends_with(o->file, ".py"))
        return load_python(o, out);
    switch (o->type == FILE_AUTO ? type_of(o->file) : o->type) {
    case FILE_ONNX:
        return load_onnx(o, out);
    case FILE_TF:
        return load_tf(o, out);
    case FILE_JSON:
        return load_saved(o, "json", out);
    case FILE_TEXT:
        return load_text(o, out);
    default:
        return load_saved(o, "msgpack", out);
    }
}

bool load_model(const struct options *o, migraphx_program_t *out)
{
    *out = NULL;
    work_begin("reading", 0);
    const bool loaded =
        o->test || o->model ? builtin_model(o->model ? o->model : "gemm", out) : load_file(o, out);
    work_end();
    if (loaded && prepare_model(o, *out))
        return true;
    migraphx_program_destroy(*out);
    *out = NULL;
    return false;
}

// --- after reading ---

// Passes of MIGraphX whose work belongs to compiling here: memory is planned, and attention fused,
// by the target.
static bool belongs_to_compiling(const char *name)
{
    static const char *const names[] = {"eliminate_allocation", "eliminate_concat",
                                        "fuse_attention"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

const char *pass_name(const char *word)
{
    if (strcmp(word, "eliminate_dead_code") == 0) // MIGraphX knows one pass by two names
        return "dead_code_elimination";
    return belongs_to_compiling(word) ? NULL : word;
}

static bool apply_passes(const struct words *w, migraphx_program_t program)
{
    for (int i = 0; i < w->count; i++) {
        const char *name = pass_name(w->items[i]);
        if (!name) {
            log_warn("pass %s: compiling does this; nothing to do now", w->items[i]);
            continue;
        }
        if (!OK(migraphx_program_run_passes(program, &name, 1)))
            return false;
    }
    return true;
}

// A copy of a program is not compiled.
static bool strip(migraphx_program_t program)
{
    migraphx_program_t copy = NULL;
    const bool good = OK(migraphx_program_create(&copy)) &&
                      OK(migraphx_program_assign_to(copy, program)) &&
                      OK(migraphx_program_assign_to(program, copy));
    migraphx_program_destroy(copy);
    return good;
}

bool prepare_model(const struct options *o, migraphx_program_t program)
{
    if (o->strip_context && !strip(program))
        return false;
    if ((o->trim || o->trim_size) &&
        !OK(migraphx_program_trim(program, (size_t)o->trim, (size_t)o->trim_size)))
        return false;
    if (o->mlir)
        log_warn("--mlir: there is no such generator here; the flag changes nothing");
    if (o->replace_literals && !OK(migraphx_program_replace_literals(program)))
        return false;
    if (o->optimize && !OK(migraphx_program_optimize(program)))
        return false;
    return apply_passes(&o->apply_pass, program);
}
