// SPDX-License-Identifier: MIT
// A model's folder as the ONNX zoo lays it out: the model, and inputs with the outputs that are
// right for them.
//
//     model.onnx
//     test_data_set_0/input_0.pb ... output_0.pb ...
//     test_data_set_1/...
#include <dirent.h>
#include <sys/stat.h>

#include "verify.h"

static bool exists(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0;
}

bool find_model(const char *folder, char *path, size_t room)
{
    snprintf(path, room, "%s/model.onnx", folder);
    if (exists(path))
        return true;
    DIR *list = opendir(folder);
    int count = 0;
    for (struct dirent *e = list ? readdir(list) : NULL; e; e = readdir(list)) {
        const char *dot = strrchr(e->d_name, '.');
        if (dot && strcmp(dot, ".onnx") == 0 && ++count == 1)
            snprintf(path, room, "%s/%s", folder, e->d_name);
    }
    if (list)
        closedir(list);
    if (count != 1)
        log_error("%s: holds %d .onnx files, and no model.onnx", folder, count);
    return count == 1;
}

static bool add_input(migraphx_program_parameters_t params, const char *file,
                      const char *const *names, size_t count, size_t number)
{
    char name[256];
    migraphx_argument_t argument = NULL;
    const char *input = number < count ? names[number] : NULL;
    if (tensor_file_name(file, name, sizeof name))
        for (size_t i = 0; i < count; i++) // by its name where the model has that
            if (strcmp(names[i], name) == 0)
                input = names[i];
    if (!input) {
        log_error("%s: the model has %zu inputs", file, count);
        return false;
    }
    const bool good = load_tensor(file, NULL, &argument) &&
                      OK(migraphx_program_parameters_add(params, input, argument));
    migraphx_argument_destroy(argument);
    return good;
}

static bool load_inputs(const char *set, migraphx_program_t program,
                        migraphx_program_parameters_t params)
{
    migraphx_program_parameter_shapes_t shapes = NULL;
    size_t count = 0;
    char file[4096];
    bool good = OK(migraphx_program_get_parameter_shapes(&shapes, program)) &&
                OK(migraphx_program_parameter_shapes_size(&count, shapes));
    const char **names = good ? calloc(count + 1, sizeof *names) : NULL;
    good = names && OK(migraphx_program_parameter_shapes_names(names, shapes));
    for (size_t i = 0; good; i++) {
        snprintf(file, sizeof file, "%s/input_%zu.pb", set, i);
        if (!exists(file))
            break;
        good = add_input(params, file, names, count, i);
    }
    free(names);
    migraphx_program_parameter_shapes_destroy(shapes);
    return good;
}

static bool verify_set(const char *set, migraphx_program_t program, const struct tolerance *t)
{
    migraphx_program_parameters_t params = NULL;
    migraphx_arguments_t results = NULL;
    size_t count = 0;
    char file[4096];
    bool good = OK(migraphx_program_parameters_create(&params)) &&
                load_inputs(set, program, params) &&
                OK(migraphx_program_run(&results, program, params)) &&
                OK(migraphx_arguments_size(&count, results));
    for (size_t i = 0; good && i < count; i++) {
        migraphx_argument_t expected = NULL;
        const_migraphx_argument_t result;
        snprintf(file, sizeof file, "%s/output_%zu.pb", set, i);
        if (!exists(file))
            break;
        good = load_tensor(file, NULL, &expected) &&
               OK(migraphx_arguments_get(&result, results, i)) &&
               compare_argument(expected, result, t);
        if (!good)
            log_error("differs from %s", file);
        migraphx_argument_destroy(expected);
    }
    migraphx_arguments_destroy(results);
    migraphx_program_parameters_destroy(params);
    return good;
}

bool verify_folder(const char *folder, migraphx_program_t program, const struct tolerance *t)
{
    char set[3072];
    bool good = true;
    int count = 0;
    for (;; count++) {
        snprintf(set, sizeof set, "%s/test_data_set_%d", folder, count);
        if (!is_folder(set))
            break;
        const bool passed = verify_set(set, program, t);
        log_result("%s: %s", set, passed ? "passed" : "FAILED");
        good = good && passed;
    }
    if (!count)
        log_error("%s: has no test_data_set_0", folder);
    return good && count;
}
