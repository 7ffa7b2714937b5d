// SPDX-License-Identifier: MIT
// Do the names that flags give exist? A name that nobody has would change nothing, silently.
#include <sys/stat.h>

#include "driver.h"

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static void say_unknown(const char *flag, const char *kind, const char *name,
                        const char *const *names, size_t count)
{
    char list[256] = "none";
    size_t used = 0;
    for (size_t i = 0; i < count && used < sizeof list; i++)
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s'%s'", i ? ", " : "", names[i]);
    log_error("%s: the model has no %s '%s'; it has %s", flag, kind, name, list);
}

bool check_inputs(const char *flag, const struct words *words, const char *mark,
                  migraphx_program_t program)
{
    migraphx_program_parameter_shapes_t shapes = NULL;
    const size_t skip = strlen(mark);
    size_t count = 0;
    if (!words->count)
        return true;
    bool good = OK(migraphx_program_get_parameter_shapes(&shapes, program)) &&
                OK(migraphx_program_parameter_shapes_size(&count, shapes));
    const char **names = good ? calloc(count + 1, sizeof *names) : NULL;
    good = names && OK(migraphx_program_parameter_shapes_names(names, shapes));
    for (int i = 0; good && i < words->count; i++) {
        const char *word = words->items[i];
        good = strncmp(word, mark, skip) != 0 || is_one_of(word + skip, names, count);
        if (!good)
            say_unknown(flag, "input", word + skip, names, count);
    }
    free(names);
    migraphx_program_parameter_shapes_destroy(shapes);
    return good;
}

// --- named dimensions ---

struct names {
    const char **items; // borrowed
    size_t count;
};

static bool add_name(struct names *n, const char *name)
{
    if (!*name || is_one_of(name, n->items, n->count))
        return true;
    const char **more = realloc(n->items, (n->count + 1) * sizeof *more);
    if (!more)
        return false;
    n->items = more;
    n->items[n->count++] = name;
    return true;
}

// `dims` lives on in `keep`, as its names do.
static bool add_names_of(struct names *n, const_migraphx_shape_t shape,
                         migraphx_dynamic_dimensions_t *keep)
{
    size_t rank = 0;
    bool dynamic = false, good = OK(migraphx_shape_dynamic(&dynamic, shape));
    if (!good || !dynamic)
        return good;
    good = OK(migraphx_shape_dyn_dims(keep, shape)) &&
           OK(migraphx_dynamic_dimensions_size(&rank, *keep));
    for (size_t i = 0; good && i < rank; i++) {
        const_migraphx_dynamic_dimension_t dim = NULL;
        const char *name = "";
        good = OK(migraphx_dynamic_dimensions_get(&dim, *keep, i)) &&
               OK(migraphx_dynamic_dimension_name(&name, dim)) && add_name(n, name);
    }
    return good;
}

static bool compare_dims(const struct words *words, migraphx_program_t open)
{
    migraphx_program_parameter_shapes_t shapes = NULL;
    size_t count = 0;
    bool good = OK(migraphx_program_get_parameter_shapes(&shapes, open)) &&
                OK(migraphx_program_parameter_shapes_size(&count, shapes));
    const char **inputs = calloc(count + 1, sizeof *inputs);
    migraphx_dynamic_dimensions_t *dims = calloc(count + 1, sizeof *dims);
    struct names names = {0};
    good = good && inputs && dims && OK(migraphx_program_parameter_shapes_names(inputs, shapes));
    for (size_t i = 0; good && i < count; i++) {
        const_migraphx_shape_t shape = NULL;
        good = OK(migraphx_program_parameter_shapes_get(&shape, shapes, inputs[i])) &&
               add_names_of(&names, shape, &dims[i]);
    }
    for (int i = 0; good && i < words->count; i += 2)
        if (!is_one_of(words->items[i] + 1, names.items, names.count)) {
            say_unknown("--dim-param", "dimension", words->items[i] + 1, names.items, names.count);
            good = false;
        }
    for (size_t i = 0; dims && i < count; i++)
        migraphx_dynamic_dimensions_destroy(dims[i]);
    free(names.items);
    free(dims);
    free(inputs);
    migraphx_program_parameter_shapes_destroy(shapes);
    return good;
}

// The model is read once more, with its dimensions open: then it says what they are called.
bool check_dim_params(const struct options *o)
{
    if (!o->dim_param.count)
        return true;
    migraphx_onnx_options_t options = NULL;
    migraphx_program_t open = NULL;
    const bool good = OK(migraphx_onnx_options_create(&options)) &&
                      OK(migraphx_onnx_options_set_dynamic_dims(options, true)) &&
                      OK(migraphx_onnx_options_set_skip_unknown_operators(options, true)) &&
                      OK(migraphx_parse_onnx(&open, o->file, options)) &&
                      compare_dims(&o->dim_param, open);
    migraphx_program_destroy(open);
    migraphx_onnx_options_destroy(options);
    return good;
}

// --- files ---

// A cache is made by tuning where there is none yet, but never its folder.
bool check_tuning_cache(const struct options *o)
{
    struct stat info;
    if (!o->tuning_cache || stat(o->tuning_cache, &info) == 0)
        return true;
    char folder[4096] = ".";
    const char *slash = strrchr(o->tuning_cache, '/');
    if (slash)
        snprintf(folder, sizeof folder, "%.*s",
                 slash == o->tuning_cache ? 1 : (int)(slash - o->tuning_cache), o->tuning_cache);
    if (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode)) {
        log_error("--tuning-cache: there is no folder '%s'", folder);
        return false;
    }
    if (!o->exhaustive)
        log_warn("--tuning-cache: there is no '%s' yet; --exhaustive-tune makes one",
                 o->tuning_cache);
    return true;
}
