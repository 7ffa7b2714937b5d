// SPDX-License-Identifier: MIT
// The registry of targets, and what is common to compiling for and running on any of them.
//
// A run is checked here once: every parameter is there, has the right type and lengths (or lengths
// within its ranges, equal for axes of one name) and the strides the program was built for; other
// strides are packed into a copy. Targets therefore see parameters in order of creation, complete
// and in layout. Cost of the checks: O(parameters + instructions), no allocation but three small
// arrays.
#include "target/target.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/size.h"

static const struct mgx_target *const targets[] = {
#define TARGET(name) &mgx_target_##name,
#include "target_list.inc"
#undef TARGET
    NULL};

const struct mgx_target *mgx_target_find(const char *name)
{
    for (int i = 0; targets[i]; i++)
        if (strcmp(targets[i]->name, name) == 0)
            return targets[i];
    return NULL;
}

const struct mgx_target *const *mgx_target_all(int *count)
{
    *count = MGX_COUNT(targets) - 1;
    return targets;
}

enum mgx_status mgx_program_compile(struct mgx_program *p, const struct mgx_target *target,
                                    const struct mgx_compile_options *options,
                                    struct mgx_diag *diag)
{
    static const struct mgx_compile_options plain = {.fast_math = true, .pass.fast_math = true};
    TRY(mgx_program_status(p, diag));
    if (p->executable)
        return mgx_fail(diag, MGX_INVALID, "the program is compiled already, for target \"%s\"",
                        p->executable->target->name);
    struct mgx_program *backup;
    TRY(mgx_program_backup(&backup, p, diag));
    enum mgx_status status = target->compile(p, options ? options : &plain, diag);
    if (status == MGX_OK)
        status = mgx_program_status(p, diag);
    if (status != MGX_OK) {
        mgx_where(diag, "compiling for target \"%s\"", target->name);
        if (p->executable)
            target->destroy(p->executable);
        p->executable = NULL;
        p->destroy_executable = NULL;
        mgx_program_restore(p, backup);
        return status;
    }
    mgx_program_destroy(backup);
    p->destroy_executable = target->destroy;
    return MGX_OK;
}

// --- parameters of a run ---

// Sizes that axes of one name turned out to have.
struct named_sizes {
    const char *name[MGX_MAX_RANK];
    int64_t size[MGX_MAX_RANK];
    int count;
};

static enum mgx_status mismatch(const char *name, const struct mgx_shape *got,
                                const struct mgx_shape *want, struct mgx_diag *diag)
{
    struct mgx_str text = {0};
    mgx_str_put(&text, "Incorrect shape {");
    mgx_shape_print(&text, got);
    mgx_str_printf(&text, "} for parameter: %s should be: ", name);
    mgx_shape_print(&text, want);
    mgx_fail(diag, MGX_INVALID, "%s", mgx_str_text(&text));
    mgx_str_fini(&text);
    return MGX_INVALID;
}

// A named dimension has one size in the whole run. Beyond MGX_MAX_RANK names nothing is checked.
static bool name_agrees(struct named_sizes *sizes, const char *name, int64_t size)
{
    for (int i = 0; i < sizes->count; i++)
        if (strcmp(sizes->name[i], name) == 0)
            return sizes->size[i] == size;
    if (sizes->count < MGX_MAX_RANK) {
        sizes->name[sizes->count] = name;
        sizes->size[sizes->count++] = size;
    }
    return true;
}

static bool lens_fit(const struct mgx_shape *got, const struct mgx_shape *want)
{
    if (got->type != want->type)
        return false;
    if (want->unranked)
        return true;
    if (mgx_shape_is_static(want))
        return mgx_shape_same_lens(got, want);
    if (got->rank != want->rank)
        return false;
    for (int axis = 0; axis < want->rank; axis++) {
        const struct mgx_dim range = mgx_shape_dim(want, axis);
        if (got->lens[axis] < range.min || got->lens[axis] > range.max)
            return false;
    }
    return true;
}

// Every member of a sequence fits its element shape; a tuple's members fit one by one, and an
// absent optional is a tuple without members. Recursion follows the nesting of the declared type.
static bool fits(const struct mgx_tensor *got, const struct mgx_shape *want)
{
    const bool sequence = want->type == MGX_SEQUENCE;
    if (!sequence && want->type != MGX_TUPLE)
        return lens_fit(&got->shape, want);
    if (got->shape.type != want->type || !want->sub_count)
        return got->shape.type == want->type;
    if (!sequence && got->sub_count && got->sub_count != want->sub_count)
        return false;
    for (int i = 0; i < got->sub_count; i++)
        if (!fits(&got->sub[i], &want->sub[sequence ? 0 : i]))
            return false;
    return true;
}

static enum mgx_status check_names(const struct mgx_ins *param, const struct mgx_shape *got,
                                   struct named_sizes *sizes, struct mgx_diag *diag)
{
    const struct mgx_shape *want = &param->shape;
    if (want->unranked || !want->dims)
        return MGX_OK;
    for (int axis = 0; axis < want->rank; axis++) {
        const char *name = mgx_shape_dim(want, axis).name;
        if (name && !name_agrees(sizes, name, got->lens[axis]))
            return mgx_fail(diag, MGX_INVALID,
                            "axis %d of parameter %s has length %lld, but dimension \"%s\" has "
                            "another length in an earlier parameter",
                            axis, mgx_parameter_name(param), (long long)got->lens[axis], name);
    }
    return MGX_OK;
}

// Strides of axes of length 1 mean nothing.
static bool same_layout(const struct mgx_shape *got, const struct mgx_shape *want)
{
    if (got->rank != want->rank)
        return got->rank + want->rank == 1; // rank 0 and {1}
    for (int axis = 0; axis < got->rank; axis++)
        if (got->lens[axis] != 1 && got->strides[axis] != want->strides[axis])
            return false;
    return true;
}

// `got` seen with exactly the shape the program declares; a copy where the layout differs.
static enum mgx_status lay_out(const struct mgx_tensor *got, const struct mgx_shape *want,
                               struct mgx_tensor *out, struct mgx_diag *diag)
{
    if (got->shape.type == MGX_TUPLE || got->shape.type == MGX_SEQUENCE) {
        *out = mgx_tensor_share(got);
        return MGX_OK;
    }
    if (want->unranked || !mgx_shape_is_static(want))
        return mgx_tensor_pack(out, got, diag);
    if (same_layout(&got->shape, want) || mgx_shape_elements(want) == 0) {
        *out = mgx_tensor_view(got, want, 0);
        return MGX_OK;
    }
    struct mgx_tensor same_rank = *got; // rank 0 copies as {1} and the other way round
    if (same_rank.shape.rank != want->rank)
        same_rank.shape = *want;
    TRY(mgx_tensor_create(out, want, diag));
    mgx_tensor_copy(&same_rank, out);
    return MGX_OK;
}

enum { FEW = 8 }; // inputs that need no memory of the heap: a steady run allocates nothing

// Empty when they are few. Of two tensors of one name the first counts.
static bool hash_names(const struct mgx_run *run, struct mgx_map *names)
{
    bool good = true;
    for (int i = run->param_count - 1; run->param_count > FEW && i >= 0 && good; i--)
        good = mgx_map_put(names, run->params[i].name, (void *)&run->params[i].tensor);
    return good;
}

static const struct mgx_tensor *find(const struct mgx_run *run, const struct mgx_map *names,
                                     const char *name)
{
    if (names->count)
        return mgx_map_find(names, name);
    for (int i = 0; i < run->param_count; i++)
        if (strcmp(run->params[i].name, name) == 0)
            return &run->params[i].tensor;
    return NULL;
}

static enum mgx_status take(const struct mgx_tensor *got, const struct mgx_ins *param,
                            struct named_sizes *sizes, struct mgx_named_tensor *out,
                            struct mgx_diag *diag)
{
    const char *name = mgx_parameter_name(param);
    if (!got)
        return mgx_fail(diag, MGX_NOT_FOUND, "Parameter not found: %s", name);
    if (!fits(got, &param->shape))
        return mismatch(name, &got->shape, &param->shape, diag);
    TRY(check_names(param, &got->shape, sizes, diag));
    out->name = name;
    struct mgx_tensor aligned; // callers' bytes may lie anywhere
    TRY(mgx_tensor_align(&aligned, got, diag));
    const enum mgx_status status = lay_out(&aligned, &param->shape, &out->tensor, diag);
    mgx_tensor_release(&aligned);
    return status;
}

static enum mgx_status run_checked(const struct mgx_program *p, struct mgx_run *run,
                                   struct mgx_ins **params, struct mgx_named_tensor *tensors,
                                   int count, struct mgx_diag *diag)
{
    struct named_sizes sizes = {.count = 0};
    struct mgx_map names = {0};
    mgx_module_parameters(mgx_program_main(p), params, count);
    enum mgx_status status = hash_names(run, &names) ? MGX_OK : mgx_fail_memory(diag);
    for (int i = 0; i < count && status == MGX_OK; i++) {
        const struct mgx_tensor *got = find(run, &names, mgx_parameter_name(params[i]));
        status = take(got, params[i], &sizes, &tensors[i], diag);
    }
    mgx_map_fini(&names);
    TRY(status);
    struct mgx_run checked = *run;
    checked.params = tensors;
    checked.param_count = count;
    return p->executable->target->run(p, &checked, diag);
}

// Weights may lie in a mapped model file. If that was truncated meanwhile, the run read zeros where
// it ended, and its results are void. While no file of the process was ever lost this is one load.
static enum mgx_status check_files(const struct mgx_program *p, struct mgx_run *run,
                                   struct mgx_diag *diag)
{
    bool lost = false;
    for (size_t i = 0; mgx_file_any_lost() && i < p->literals.count; i++)
        lost |= mgx_file_lost_at(p->literals.v[i]->data);
    if (!lost)
        return MGX_OK;
    for (int i = 0; i < run->result_count; i++)
        mgx_tensor_release(&run->results[i]);
    return mgx_fail(diag, MGX_IO, "a file with weights became shorter while in use");
}

enum mgx_status mgx_program_run(const struct mgx_program *p, struct mgx_run *run,
                                struct mgx_diag *diag)
{
    const struct mgx_module *main = mgx_program_main(p);
    if (!p->executable)
        return mgx_fail(diag, MGX_INVALID, "the program is not compiled");
    if (run->result_count != mgx_module_result_count(main))
        return mgx_fail(diag, MGX_INVALID, "room for %d results, but the program has %d",
                        run->result_count, mgx_module_result_count(main));
    struct mgx_ins *few_params[FEW] = {NULL}, **params = few_params;
    struct mgx_named_tensor few_tensors[FEW] = {{.name = NULL}}, *tensors = few_tensors;
    const int count = mgx_module_parameters(main, NULL, 0);
    if (count > FEW) {
        params = calloc((size_t)count, sizeof *params);
        tensors = calloc((size_t)count, sizeof *tensors);
    }
    enum mgx_status status = params && tensors ? run_checked(p, run, params, tensors, count, diag)
                                               : mgx_fail_memory(diag);
    if (status == MGX_OK)
        status = check_files(p, run, diag);
    for (int i = 0; tensors && i < count; i++)
        mgx_tensor_release(&tensors[i].tensor);
    if (count > FEW) {
        free(tensors);
        free(params);
    }
    return status;
}
