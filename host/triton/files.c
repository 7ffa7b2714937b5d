// SPDX-License-Identifier: MIT
// Which file of a version's folder is the model, and where its compiled form is kept.
//
// A compiled form has a name that stands for all that it was made of: the files of the version,
// their sizes and times, the options and the engine's own library. Another of these is another
// name, so a form that is there fits.
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backend.h"

static const char compiled_prefix[] = "compiled-";

static bool is_there(const char *path, bool *folder)
{
    struct stat s;
    if (stat(path, &s) != 0)
        return false;
    *folder = S_ISDIR(s.st_mode);
    return true;
}

static bool ends(const char *text, const char *end)
{
    const size_t size = strlen(text), tail = strlen(end);
    return size >= tail && strcmp(text + size - tail, end) == 0;
}

// --- the model ---

static bool form_of(const char *name, bool folder, enum form *out)
{
    if (ends(name, ".onnx"))
        *out = FORM_ONNX;
    else if (ends(name, ".mxr") && !folder)
        *out = FORM_MXR;
    else if (ends(name, ".savedmodel") || ends(name, ".graphdef") || ends(name, ".pb"))
        *out = FORM_TF;
    else
        return false;
    return true;
}

// A model may be a folder that has a file of its own name, with weights beside it.
static bool take(struct model *m, const char *name)
{
    char inner[2 * PATH_ROOM];
    bool folder = false;
    const int size = snprintf(m->path, sizeof m->path, "%s/%s", m->folder, name);
    if (size < 0 || size >= PATH_ROOM || !is_there(m->path, &folder) ||
        !form_of(name, folder, &m->form))
        return false;
    if (!folder || m->form == FORM_TF)
        return true;
    const int more = snprintf(inner, sizeof inner, "%s/%s", m->path, "model.onnx");
    if (more < 0 || more >= PATH_ROOM || !is_there(inner, &folder) || folder)
        return false;
    strcpy(m->path, inner);
    return true;
}

// The only file with one of the endings; *count says how many there are.
static void take_only(struct model *m, size_t *count)
{
    DIR *folder = opendir(m->folder);
    char name[256] = "";
    enum form form;
    *count = 0;
    for (struct dirent *e; folder && (e = readdir(folder));)
        if (form_of(e->d_name, false, &form) &&
            strncmp(e->d_name, compiled_prefix, sizeof compiled_prefix - 1) != 0) {
            ++*count;
            snprintf(name, sizeof name, "%s", e->d_name);
        }
    if (folder)
        closedir(folder);
    if (*count == 1 && !take(m, name))
        *count = 0;
}

TritonError *files_find(struct model *m, const char *name)
{
    static const char *const usual[] = {"model.mxr",      "model.onnx", "model.savedmodel",
                                        "model.graphdef", "model.pb",   "saved_model.pb"};
    char decoder[PATH_ROOM + 32];
    bool folder;
    size_t count;
    snprintf(decoder, sizeof decoder, "%s/genai_config.json", m->folder);
    if (m->options.generate || is_there(decoder, &folder)) {
        m->form = FORM_DECODER;
        strcpy(m->path, m->folder);
        return NULL;
    }
    if (name && *name && take(m, name))
        return NULL;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (take(m, usual[i]))
            return NULL;
    take_only(m, &count);
    if (count == 1)
        return NULL;
    return fail(TRITON_NOT_FOUND,
                "migraphx: model %s: %s has %s; wanted is one of model.onnx, model.mxr, "
                "model.savedmodel and model.pb, or the file that default_model_filename names",
                m->name, m->folder, count ? "several models" : "no model");
}

// --- its compiled form ---

static uint64_t mix(uint64_t sum, const void *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
    return sum;
}

static uint64_t sum_of_file(const char *path, const char *name)
{
    struct stat s;
    if (stat(path, &s) != 0)
        return 0;
    const int64_t facts[] = {s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec};
    return mix(mix(0xcbf29ce484222325u, name, strlen(name)), facts, sizeof facts);
}

// Whatever the order in which a folder tells its files.
static uint64_t sum_of_folder(const char *path, int depth)
{
    uint64_t sum = 0;
    DIR *folder = opendir(path);
    for (struct dirent *e; folder && (e = readdir(folder));) {
        char inner[PATH_ROOM];
        bool below = false;
        if (*e->d_name == '.' ||
            strncmp(e->d_name, compiled_prefix, sizeof compiled_prefix - 1) == 0)
            continue;
        const int size = snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
        if (size < 0 || size >= PATH_ROOM || !is_there(inner, &below))
            continue;
        if (!below)
            sum += sum_of_file(inner, e->d_name);
        else if (depth < 4)
            sum += 3 * sum_of_folder(inner, depth + 1);
    }
    if (folder)
        closedir(folder);
    return sum;
}

static uint64_t sum_of_engine(void)
{
    Dl_info info;
    void *address;
    migraphx_status (*function)(const char **) = migraphx_get_version;
    memcpy(&address, &function, sizeof address);
    return dladdr(address, &info) && info.dli_fname ? sum_of_file(info.dli_fname, "engine") : 0;
}

TritonError *files_compiled(const struct model *m, const char *target, int device, char *out,
                            size_t room)
{
    const char *where = m->options.cache_dir;
    *out = '\0';
    if (!*where || m->form == FORM_DECODER)
        return NULL;
    uint64_t sum = sum_of_folder(m->folder, 0) + sum_of_engine();
    sum = mix(sum, &m->options, sizeof m->options);
    sum = mix(sum, &m->most, sizeof m->most);
    const int size =
        snprintf(out, room, "%s%s%s/%s%s-%u-%s%d-%016llx.mxr", *where == '/' ? "" : m->folder,
                 *where == '/' ? "" : "/", where, compiled_prefix, m->name, (unsigned)m->version,
                 target, device < 0 ? 0 : device, (unsigned long long)sum);
    if (size < 0 || (size_t)size >= room)
        return fail(TRITON_INVALID_ARGUMENT, "migraphx: model %s: cache_dir is too long", m->name);
    return NULL;
}
