// SPDX-License-Identifier: MIT
// What is built in, by index: operators, targets, passes, ONNX operators.
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <assert.h>
#include <pthread.h>

#include "api/api.h"
#include "onnx/onnx.h"
#include "op/op.h"
#include "targets/stages.h"
#include "tf/tf.h"

static const struct mgx_op *find_op(const struct mgx_op_set *set, const char *name, size_t size)
{
    (void)set;
    const struct mgx_op *custom = mgx_api_custom_find(name, size);
    return custom ? custom : mgx_onnx_ops.find(&mgx_onnx_ops, name, size);
}

const struct mgx_op_set mgx_api_ops = {.find = find_op};

// Defines the pair <size_function> and <name_function> over a table of `count` rows.
enum { API_TARGETS = 16 };

// Targets that this machine can run; found out once.
static const struct mgx_target *usable[API_TARGETS];
static int usable_count;
static pthread_once_t usable_once = PTHREAD_ONCE_INIT;

static enum mgx_status is_usable(const struct mgx_target *t, struct mgx_diag *diag)
{
    return t->usable ? t->usable(mgx_api_environment()->gpu_device, diag) : MGX_OK;
}

static void find_usable(void)
{
    int count;
    const struct mgx_target *const *all = mgx_target_all(&count);
    assert(count <= API_TARGETS);
    for (int i = 0; i < count; i++) {
        struct mgx_diag quiet = {.status = MGX_OK};
        if (is_usable(all[i], &quiet) == MGX_OK)
            usable[usable_count++] = all[i];
    }
}

static const struct mgx_target *const *usable_targets(int *count)
{
    pthread_once(&usable_once, find_usable);
    *count = usable_count;
    return usable;
}

#define LISTING(size_function, name_function, what, table_type, table)                             \
    migraphx_status size_function(size_t *out)                                                     \
    {                                                                                              \
        API_NEED(out);                                                                             \
        int count;                                                                                 \
        table(&count);                                                                             \
        *out = (size_t)count;                                                                      \
        return migraphx_status_success;                                                            \
    }                                                                                              \
    migraphx_status name_function(const char **out, size_t index)                                  \
    {                                                                                              \
        API_NEED(out);                                                                             \
        int count;                                                                                 \
        const table_type *const *rows = table(&count);                                             \
        if (index >= (size_t)count)                                                                \
            return mgx_api_bad("%s: index %zu, but there are %d " what, __func__, index, count);   \
        *out = rows[index]->name;                                                                  \
        return migraphx_status_success;                                                            \
    }

LISTING(migraphx_get_operators_size, migraphx_get_operator_name_at_index, "operators",
        struct mgx_op, mgx_op_all)
LISTING(migraphx_get_targets_size, migraphx_get_target_name_at_index, "targets", struct mgx_target,
        usable_targets)
LISTING(migraphx_get_passes_size, migraphx_get_pass_name_at_index, "passes", struct mgx_pass,
        mgx_pass_all)

migraphx_status migraphx_get_target_stages(char **out, const char *name)
{
    API_NEED(out);
    API_NEED(name);
    API_DIAG(diag);
    const struct mgx_target *target = mgx_target_find(name);
    struct mgx_str text = {0};
    if (!target)
        return mgx_api_bad("%s: there is no target \"%s\"", __func__, name);
    mgx_stages_print(&text, target->stages);
    return mgx_api_leave(mgx_api_take_text(&text, out, &diag), &diag);
}

migraphx_status migraphx_get_onnx_operators_size(size_t *out)
{
    API_NEED(out);
    *out = (size_t)mgx_onnx_operator_count();
    return migraphx_status_success;
}

migraphx_status migraphx_get_onnx_operator_name_at_index(char **out, size_t index)
{
    API_NEED(out);
    if (index >= (size_t)mgx_onnx_operator_count())
        return mgx_api_bad("%s: index %zu, but there are %d operators", __func__, index,
                           mgx_onnx_operator_count());
    *out = (char *)mgx_onnx_operator_name((int)index); // the type is MIGraphX's; the text constant
    return migraphx_status_success;
}

migraphx_status migraphx_get_tf_operators_size(size_t *out)
{
    API_NEED(out);
    *out = (size_t)mgx_tf_operator_count();
    return migraphx_status_success;
}

migraphx_status migraphx_get_tf_operator_name_at_index(const char **out, size_t index)
{
    API_NEED(out);
    if (index >= (size_t)mgx_tf_operator_count())
        return mgx_api_bad("%s: index %zu, but there are %d operators", __func__, index,
                           mgx_tf_operator_count());
    *out = mgx_tf_operator_name((int)index);
    return migraphx_status_success;
}

// --- targets ---

static void target_fini(struct migraphx_target *t)
{
    (void)t;
}

static enum mgx_status target_copy(struct migraphx_target *out, const struct migraphx_target *in,
                                   struct mgx_diag *diag)
{
    (void)diag;
    *out = *in;
    return MGX_OK;
}

API_HANDLE(target)

// The target that is meant by a name in other letters, or by that of what it is for; or NULL.
static const char *meant_target(const char *name)
{
    static const char *const words[][2] = {
        {"cuda", "gpu"}, {"nvidia", "gpu"},   {"hip", "gpu"}, {"rocm", "gpu"},
        {"amd", "gpu"},  {"opencl", "gpu"},   {"dcu", "gpu"}, {"host", "cpu"},
        {"x86", "cpu"},  {"reference", "ref"}};
    const size_t letters = strcspn(name, ":"); // "cuda:0"
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (int k = 0; k < 2; k++)
            if (strlen(words[i][k]) == letters && strncasecmp(name, words[i][k], letters) == 0)
                return strcmp(name, words[i][1]) == 0 ? NULL : words[i][1];
    return strcasecmp(name, "ref") == 0 && strcmp(name, "ref") != 0 ? "ref" : NULL;
}

// `why` there is none, or "".
static migraphx_status unknown_target(const char *name, const char *why)
{
    const char *meant = meant_target(name);
    struct mgx_str text = {0};
    int count;
    const struct mgx_target *const *all = usable_targets(&count);
    mgx_str_printf(&text, "Requested target '%s' is not loaded or not supported; there are:", name);
    for (int i = 0; i < count; i++)
        mgx_str_printf(&text, " %s", all[i]->name);
    if (meant)
        mgx_str_printf(&text, "; did you mean '%s'?", meant);
    mgx_str_printf(&text, "%s%s", *why ? "\n  " : "", why);
    mgx_api_keep_error(mgx_str_text(&text));
    mgx_str_fini(&text);
    return migraphx_status_unknown_target;
}

migraphx_status migraphx_target_create(migraphx_target_t *out, const char *name)
{
    API_NEED(out);
    API_NEED(name);
    const struct mgx_target *target = mgx_target_find(name);
    API_DIAG(diag);
    if (!target || is_usable(target, &diag) != MGX_OK)
        return unknown_target(name, diag.text);
    struct migraphx_target *handle = API_NEW(struct migraphx_target);
    if (!handle)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    handle->target = target;
    *out = handle;
    return migraphx_status_success;
}

migraphx_status migraphx_target_name(const char **out, const_migraphx_target_t target)
{
    API_NEED(out);
    API_NEED(target);
    *out = target->target->name;
    return migraphx_status_success;
}
