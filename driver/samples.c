// SPDX-License-Identifier: MIT
// Calibration samples out of folders and files.
//
//     a.npz             one sample: its arrays are inputs by name (of one alone, by any name)
//     a.npy  a.pb       one sample of a model with one input
//     a.jpg  a.png ...  one sample of a model whose one input is an image (images.c)
//     folder            its files and folders in the order of their names, each a sample; a folder
//                       within it is one sample, its files named <input>.npy, <input>.pb, or
//                       input_<number> in the model's order, or images, each a sample
//
// An array of another type than the input's is converted.
#include <dirent.h>

#include "samples.h"

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

// Images are read when all are known: one process decodes them.
static bool note_image(struct reader *r, const char *path)
{
    if (!is_image(path))
        return true;
    const char **items = realloc(r->images.items, (size_t)(r->images.count + 1) * sizeof *items);
    char *copy = items ? strdup(path) : NULL;
    r->images.items = items ? items : r->images.items;
    if (copy)
        r->images.items[r->images.count++] = copy;
    else
        log_error("out of memory");
    return copy != NULL;
}

static bool add_part(struct reader *r, const char *path)
{
    return !is_array(path) || add_file(r, path);
}

static bool note_array(struct reader *r, const char *path)
{
    r->arrays = r->arrays || is_array(path);
    return true;
}

// A folder in a folder: of arrays it is a sample, its images are samples each.
static bool add_folder(struct reader *r, const char *path)
{
    r->arrays = false;
    return walk(r, path, note_image) && walk(r, path, note_array) &&
           (!r->arrays || (begin_sample(r) && end_sample(r, walk(r, path, add_part))));
}

static bool add_sample(struct reader *r, const char *path)
{
    if (is_folder(path))
        return add_folder(r, path);
    if (!is_array(path))
        return note_image(r, path);
    return begin_sample(r) && end_sample(r, add_file(r, path));
}

static bool add_path(struct reader *r, const char *path)
{
    if (is_folder(path))
        return walk(r, path, add_sample);
    if (is_array(path) || is_image(path))
        return add_sample(r, path);
    log_error("%s: samples are folders, or files whose names end in .npz, .npy or .pb, or those of "
              "images (.jpg, .png, ...)",
              path);
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
    good = good && add_images(&r);
    for (int i = 0; i < r.images.count; i++)
        free((char *)r.images.items[i]);
    free(r.images.items);
    free(r.names);
    migraphx_program_parameter_shapes_destroy(r.shapes);
    return good;
}
