// SPDX-License-Identifier: MIT
// Files that are written whole, and the words of JSON.
//
// A file is written beside the one it replaces and takes its place when it is complete, so Ctrl-C
// or a full disk leave the old one.
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver.h"

static const char suffix[] = ".XXXXXX";

// Pipes and devices are written to directly.
static bool is_special(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && !S_ISREG(found.st_mode);
}

FILE *open_new(const char *path, char **temporary)
{
    *temporary = NULL;
    if (!path)
        return stdout;
    if (is_special(path))
        return fopen(path, "wb");
    char *name = malloc(strlen(path) + sizeof suffix);
    if (!name)
        return NULL;
    sprintf(name, "%s%s", path, suffix);
    const int fd = mkstemp(name);
    const mode_t mask = umask(0);
    umask(mask);
    if (fd >= 0 && fchmod(fd, 0666 & ~mask) == 0) {
        *temporary = name;
        return fdopen(fd, "wb");
    }
    log_error("cannot write %s", path);
    free(name);
    return NULL;
}

bool close_new(FILE *file, const char *path, char *temporary, bool good)
{
    if (!file)
        return false;
    good = !ferror(file) && good;
    if (!path) {
        good = fflush(file) == 0 && good;
        if (!good)
            log_error("cannot write to stdout");
        return good;
    }
    if (temporary)
        good = fflush(file) == 0 && fsync(fileno(file)) == 0 && good;
    good = fclose(file) == 0 && good;
    if (temporary && good)
        good = rename(temporary, path) == 0;
    if (!good)
        log_error("cannot write %s", path);
    if (temporary && !good)
        unlink(temporary);
    free(temporary);
    return good;
}

void put_json_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (const unsigned char *c = (const unsigned char *)text; c && *c; c++)
        if (*c == '"' || *c == '\\')
            fprintf(file, "\\%c", *c);
        else if (*c < ' ' || *c == '<') // '<': so that it may stand in a page
            fprintf(file, "\\u%04x", *c);
        else
            fputc(*c, file);
    fputc('"', file);
}

void put_member(FILE *file, const char *name, const char *text)
{
    fprintf(file, "\"%s\": ", name);
    put_json_text(file, text);
}

void put_name(const struct options *o, const char *name, int number)
{
    if (!o->format) {
        printf("%s\n", name);
        return;
    }
    printf("%s", number ? ", " : "[");
    put_json_text(stdout, name);
}

void put_names_end(const struct options *o, int count)
{
    if (o->format)
        printf("%s]\n", count ? "" : "[");
}

void put_json_number(FILE *file, double value)
{
    if (isfinite(value))
        fprintf(file, "%.10g", value);
    else
        fputs("null", file);
}
