// SPDX-License-Identifier: MIT
// Writing a program: as text of some kind to stdout or a file, or saved.
#include "driver.h"

// Bytes of a saved program, or of a graph for Netron: a file is replaced only when all went well.
static bool save(const struct options *o, migraphx_program_t program, const char *format)
{
    migraphx_file_options_t options = NULL;
    char *bytes = NULL;
    size_t size = 0;
    bool good = OK(migraphx_file_options_create(&options)) &&
                OK(migraphx_file_options_set_file_format(options, format));
    if (o->output)
        good = good && OK(migraphx_save(program, o->output, options));
    else
        good = good && OK(migraphx_save_buffer(&bytes, &size, program, options)) &&
               fwrite(bytes, 1, size, stdout) == size && fflush(stdout) == 0;
    migraphx_string_destroy(bytes);
    migraphx_file_options_destroy(options);
    return good;
}

static bool put(const char *path, const char *text)
{
    char *temporary;
    FILE *file = open_new(path, &temporary);
    const bool good = file && fputs(text, file) >= 0 && fputc('\n', file) >= 0;
    return close_new(file, path, temporary, good);
}

bool print_program(const struct options *o, migraphx_program_t program)
{
    if (!o->format)
        return OK(migraphx_program_print(program));
    char *text = NULL;
    const bool good = OK(migraphx_program_format(&text, program, o->format)) && put(NULL, text);
    migraphx_string_destroy(text);
    return good;
}

static bool write_form(const struct options *o, migraphx_program_t program)
{
    const char *format = o->format ? o->format : o->output ? "binary" : "text";
    if (strcmp(format, "binary") == 0)
        return save(o, program, "msgpack");
    if (strcmp(format, "netron") == 0)
        return save(o, program, "netron");
    if (strcmp(format, "json") == 0 && o->output)
        return save(o, program, "json");
    if (strcmp(format, "graphviz") == 0 && o->brief)
        format = "graphviz-brief";
    char *text = NULL;
    const bool good = OK(migraphx_program_format(&text, program, format)) && put(o->output, text);
    migraphx_string_destroy(text);
    return good;
}

bool write_program(const struct options *o, migraphx_program_t program)
{
    work_begin("writing", 0);
    const bool good = write_form(o, program);
    work_end();
    return good;
}
