// SPDX-License-Identifier: MIT
// Calibration samples out of folders and files.
//
//     a.npz             one sample: its arrays are inputs by name (of one alone, by any name)
//     a.npy  a.pb       one sample of a model with one input
//     folder            its files and folders in the order of their names, each a sample; a folder
//                       within it is one sample, its files named <input>.npy, <input>.pb, or
//                       input_<number> in the model's order
//
// An array of another type than the input's is converted.
#include <dirent.h>
#include <sys/stat.h>

#include "driver.h"

struct reader {
    const struct options *o;
    migraphx_program_parameter_shapes_t shapes;
    const char **names;
    size_t count;
    bool (*add)(void *data, migraphx_program_parameters_t sample);
    void *data;
    migraphx_program_parameters_t sample; // the one that is being read
    const char *path;
};

// --- arrays become inputs ---

static bool convert(migraphx_argument_t array, migraphx_shape_datatype_t type,
                    migraphx_argument_t *out)
{
    const_migraphx_shape_t from;
    migraphx_shape_t to = NULL;
    const size_t *lens;
    size_t rank, count;
    if (!OK(migraphx_argument_shape(&from, array)) ||
        !OK(migraphx_shape_lengths(&lens, &rank, from)) ||
        !OK(migraphx_shape_elements(&count, from)))
        return false;
    double *values = calloc(count + 1, sizeof *values);
    const bool good = values && OK(migraphx_argument_values(values, count, array)) &&
                      OK(migraphx_shape_create(&to, type, (size_t *)lens, rank)) &&
                      OK(migraphx_argument_create_values(out, to, values, count));
    migraphx_shape_destroy(to);
    free(values);
    return good;
}

static bool add_array(void *data, const char *name, migraphx_argument_t array)
{
    struct reader *r = data;
    const_migraphx_shape_t want, have;
    migraphx_shape_datatype_t type, is;
    migraphx_argument_t converted = NULL;
    unsigned number;
    if (sscanf(name, "input_%u", &number) == 1 && number < r->count)
        name = r->names[number];
    bool known = r->count == 1;
    for (size_t i = 0; i < r->count && !known; i++)
        known = strcmp(r->names[i], name) == 0;
    if (!known) {
        log_error("%s: the model has no input '%s'", r->path, name);
        return false;
    }
    name = r->count == 1 ? r->names[0] : name;
    bool good = OK(migraphx_program_parameter_shapes_get(&want, r->shapes, name)) &&
                OK(migraphx_shape_type(&type, want)) && OK(migraphx_argument_shape(&have, array)) &&
                OK(migraphx_shape_type(&is, have));
    if (good && type != is)
        good = convert(array, type, &converted);
    good =
        good && OK(migraphx_program_parameters_add(r->sample, name, converted ? converted : array));
    migraphx_argument_destroy(converted);
    return good;
}

static bool add_file(struct reader *r, const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    char name[256];
    migraphx_argument_t array = NULL;
    r->path = path;
    if (ends_with(path, ".npz"))
        return load_tensors(path, add_array, r);
    snprintf(name, sizeof name, "%.*s", (int)(strrchr(base, '.') - base), base);
    const bool good = load_tensor(path, NULL, &array) && add_array(r, name, array);
    migraphx_argument_destroy(array);
    return good;
}

// --- samples ---

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static bool is_array(const char *name)
{
    return ends_with(name, ".npy") || ends_with(name, ".npz") ||
           (ends_with(name, ".pb") && !strstr(name, "output_"));
}

static bool begin_sample(struct reader *r)
{
    return OK(migraphx_program_parameters_create(&r->sample));
}

static bool end_sample(struct reader *r, bool good)
{
    good = good && r->add(r->data, r->sample);
    migraphx_program_parameters_destroy(r->sample);
    r->sample = NULL;
    return good;
}

// Calls `each` for what is in a folder, in the order of names.
static bool walk(struct reader *r, const char *folder, bool (*each)(struct reader *, const char *))
{
    struct dirent **entries;
    const int count = scandir(folder, &entries, NULL, alphasort);
    bool good = count >= 0;
    if (!good)
        log_error("cannot read the folder %s", folder);
    for (int i = 0; i < count; i++) {
        char path[4096];
        const int size = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (good && entries[i]->d_name[0] != '.')
            good = size < (int)sizeof path && each(r, path);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return good;
}

static bool add_part(struct reader *r, const char *path)
{
    return !is_array(path) || add_file(r, path);
}

static bool add_sample(struct reader *r, const char *path)
{
    const bool folder = is_folder(path);
    if (!folder && !is_array(path))
        return true;
    return begin_sample(r) && end_sample(r, folder ? walk(r, path, add_part) : add_file(r, path));
}

static bool add_path(struct reader *r, const char *path)
{
    if (is_folder(path))
        return walk(r, path, add_sample);
    if (is_array(path))
        return add_sample(r, path);
    log_error("%s: samples are folders, or files whose names end in .npz, .npy or .pb", path);
    return false;
}

bool read_samples(const struct options *o, migraphx_program_t program,
                  bool (*add)(void *data, migraphx_program_parameters_t sample), void *data)
{
    struct reader r = {.o = o, .add = add, .data = data};
    bool good = OK(migraphx_program_get_parameter_shapes(&r.shapes, program)) &&
                OK(migraphx_program_parameter_shapes_size(&r.count, r.shapes));
    r.names = good ? calloc(r.count + 1, sizeof *r.names) : NULL;
    good = r.names && OK(migraphx_program_parameter_shapes_names(r.names, r.shapes));
    for (int i = 0; good && i < o->calibration.count; i++)
        good = add_path(&r, o->calibration.items[i]);
    free(r.names);
    migraphx_program_parameter_shapes_destroy(r.shapes);
    return good;
}
