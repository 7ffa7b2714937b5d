// SPDX-License-Identifier: MIT
// Compiled programs in the host's models: nodes "EPContext", whose content is a program as
// migraphx_save_buffer writes it, inside the model or in a file beside it.
//
// A file beside the model is named by its model, so only a plain name is taken: no folder, nothing
// that leads out of the model's own. What is in it is hostile until it is read, as every file.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

enum { ROOM = 4096 };

// --- whose it is ---

// A text attribute; NULL where there is none. free() it.
static char *text_of(const struct host *h, const OrtNode *node, const char *name, size_t *size)
{
    const OrtOpAttr *attribute = NULL;
    OrtStatus *status = h->Node_GetAttributeByName(node, name, &attribute);
    void *data = NULL;
    if (!status && attribute)
        status = attribute_read(h, attribute, ORT_ATTR_STRING, &data, size);
    if (status) {
        h->ReleaseStatus(status);
        return NULL;
    }
    if (data)
        ((char *)data)[*size] = '\0';
    return data;
}

static int64_t number_of(const struct host *h, const OrtNode *node, const char *name,
                         int64_t fallback)
{
    const OrtOpAttr *attribute = NULL;
    void *data = NULL;
    size_t size = 0;
    OrtStatus *status = h->Node_GetAttributeByName(node, name, &attribute);
    if (!status && attribute)
        status = attribute_read(h, attribute, ORT_ATTR_INT, &data, &size);
    const int64_t value = !status && data && size >= sizeof value ? *(int64_t *)data : fallback;
    if (status)
        h->ReleaseStatus(status);
    free(data);
    return value;
}

bool context_is_own(const struct provider *ep, const OrtNode *node)
{
    const struct host *h = ep->host;
    const char *op = NULL;
    size_t size = 0;
    OrtStatus *status = h->Node_GetOperatorType(node, &op);
    if (status)
        h->ReleaseStatus(status);
    if (status || !op || strcmp(op, "EPContext") != 0)
        return false;
    char *source = text_of(h, node, "source", &size);
    bool own = false;
    for (size_t i = 0; source && provider_names[i]; i++)
        own |= strcmp(source, provider_names[i]) == 0;
    free(source);
    return own;
}

// --- reading ---

// A program of these bytes, or of the file of that name where there are none.
static migraphx_status load(migraphx_program_t *out, const char *bytes, size_t size,
                            const char *path)
{
    migraphx_file_options_t options = NULL;
    migraphx_status status = migraphx_file_options_create(&options);
    if (status == migraphx_status_success)
        status = bytes ? migraphx_load_buffer(out, bytes, size, options)
                       : migraphx_load(out, path, options);
    migraphx_file_options_destroy(options);
    return status;
}

static migraphx_status save(const_migraphx_program_t program, char **out, size_t *size)
{
    migraphx_file_options_t options = NULL;
    migraphx_status status = migraphx_file_options_create(&options);
    if (status == migraphx_status_success)
        status = migraphx_save_buffer(out, size, program, options);
    migraphx_file_options_destroy(options);
    return status;
}

static OrtStatus *load_beside(const struct provider *ep, const char *model, const char *name,
                              migraphx_program_t *out)
{
    char path[ROOM];
    const char *base = model && *model ? model : ep->options.context_path;
    const char *slash = strrchr(base, '/');
    const int folder = slash ? (int)(slash - base + 1) : 0;
    if (!*name || strchr(name, '/') || strcmp(name, "..") == 0)
        return host_fail(ep->host, ORT_INVALID_ARGUMENT,
                         "MIGraphX: \"%.200s\" is no file beside the model", name);
    if (snprintf(path, sizeof path, "%.*s%s", folder, base, name) >= (int)sizeof path)
        return host_fail(ep->host, ORT_FAIL, "MIGraphX: the path of %.200s is too long", name);
    ENGINE_TRY(ep->host, path, load(out, NULL, 0, path));
    return NULL;
}

OrtStatus *context_load(const struct provider *ep, const OrtGraph *graph, const OrtNode *node,
                        migraphx_program_t *out)
{
    const struct host *h = ep->host;
    const char *model = NULL;
    size_t size = 0;
    bool compiled = false;
    HOST_TRY(h->Graph_GetModelPath(graph, &model));
    char *content = text_of(h, node, "ep_cache_context", &size);
    if (!content)
        return host_fail(h, ORT_INVALID_ARGUMENT, "MIGraphX: a node EPContext has no content");
    OrtStatus *status = NULL;
    if (!number_of(h, node, "embed_mode", 1))
        status = load_beside(ep, model, content, out);
    else if (load(out, content, size, NULL))
        status = host_pass_on(h, "a node EPContext");
    free(content);
    if (!status && (migraphx_program_is_compiled(&compiled, *out) || !compiled))
        status = host_fail(h, ORT_FAIL,
                           "MIGraphX: a node EPContext has a program that is not "
                           "compiled");
    return status;
}

// --- writing ---

struct content { // of the attribute
    char *bytes; // of the program
    size_t size;
    char name[ROOM]; // of the file beside; "" when it is inside
};

// The file beside the host's own: "<its name>_<node>.mxr".
static OrtStatus *write_beside(const struct provider *ep, const char *model, const char *node,
                               struct content *c)
{
    char path[ROOM];
    const char *base = *ep->options.context_path ? ep->options.context_path : model;
    if (!base || !*base)
        return NULL; // the host keeps the model in memory: inside
    const char *slash = strrchr(base, '/'), *stem = slash ? slash + 1 : base;
    const char *dot = strrchr(stem, '.');
    const int folder = (int)(stem - base), size = dot ? (int)(dot - stem) : (int)strlen(stem);
    snprintf(c->name, sizeof c->name, "%.*s_%.200s.mxr", size, stem, node);
    if (snprintf(path, sizeof path, "%.*s%s", folder, base, c->name) >= (int)sizeof path)
        return host_fail(ep->host, ORT_FAIL, "MIGraphX: the path of %.200s is too long", c->name);
    FILE *file = fopen(path, "wb");
    const bool good = file && fwrite(c->bytes, 1, c->size, file) == c->size;
    if (file && (fclose(file) != 0 || !good))
        file = NULL;
    return file ? NULL : host_fail(ep->host, ORT_FAIL, "MIGraphX: %s cannot be written", path);
}

static OrtStatus *make_attributes(const struct provider *ep, const char *name,
                                  const struct content *c, OrtOpAttr **out)
{
    const struct host *h = ep->host;
    const int64_t yes = 1, inside = !*c->name;
    const char *text = inside ? c->bytes : c->name;
    const int size = inside ? (int)c->size : (int)strlen(c->name);
    static const char version[] = MGX_ORT_VERSION;
    HOST_TRY(h->CreateOpAttr("main_context", &yes, 1, ORT_ATTR_INT, &out[0]));
    HOST_TRY(h->CreateOpAttr("embed_mode", &inside, 1, ORT_ATTR_INT, &out[1]));
    HOST_TRY(h->CreateOpAttr("ep_cache_context", text, size, ORT_ATTR_STRING, &out[2]));
    HOST_TRY(h->CreateOpAttr("source", ep->name, (int)strlen(ep->name), ORT_ATTR_STRING, &out[3]));
    HOST_TRY(
        h->CreateOpAttr("ep_sdk_version", version, (int)strlen(version), ORT_ATTR_STRING, &out[4]));
    return h->CreateOpAttr("partition_name", name, (int)strlen(name), ORT_ATTR_STRING, &out[5]);
}

static OrtStatus *make_node(const struct provider *ep, const char *name, const struct content *c,
                            const char **in, size_t ins, const char **out, size_t outs,
                            OrtNode **node)
{
    enum { COUNT = 6 };
    const struct host *h = ep->host;
    OrtOpAttr *attributes[COUNT] = {NULL};
    OrtStatus *status = make_attributes(ep, name, c, attributes);
    if (!status)
        status = h->CreateNode("EPContext", "com.microsoft", name, in, ins, out, outs, attributes,
                               COUNT, node);
    for (int i = 0; i < COUNT; i++)
        if (attributes[i])
            h->ReleaseOpAttr(attributes[i]);
    return status;
}

OrtStatus *context_make(const struct provider *ep, const OrtGraph *graph, const char *name,
                        const_migraphx_program_t program, const char **in, size_t ins,
                        const char **out, size_t outs, OrtNode **node)
{
    const char *model = NULL;
    struct content c = {.name = ""};
    HOST_TRY(ep->host->Graph_GetModelPath(graph, &model));
    if (save(program, &c.bytes, &c.size))
        return host_pass_on(ep->host, name);
    OrtStatus *status = ep->options.context_inside ? NULL : write_beside(ep, model, name, &c);
    if (!status && !*c.name && c.size > INT32_MAX)
        status = host_fail(ep->host, ORT_FAIL,
                           "MIGraphX: %zu bytes are too many for a node; keep them beside the "
                           "model (ep.context_embed_mode 0)",
                           c.size);
    if (!status)
        status = make_node(ep, name, &c, in, ins, out, outs, node);
    migraphx_string_destroy(c.bytes);
    return status;
}
