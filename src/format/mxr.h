// SPDX-License-Identifier: MIT
// Programs and single arguments in MIGraphX's file format, as msgpack (.mxr) or JSON.
//
// A compiled program is saved as the graph that the target made of it, with the name of the target;
// who loads it compiles it again, which for such a graph means choosing kernels and packing
// constants. Weights of a msgpack file are used in place, as long as the file is mapped.
#pragma once

#include "ir/module.h"

enum mgx_file_form { MGX_FORM_MSGPACK, MGX_FORM_JSON };

enum {
    MGX_MXR_VERSION = 8,        // written
    MGX_MXR_OLDEST_VERSION = 7, // read as well
};

// `target` is the name of the target the program is compiled for, NULL if it is not.
enum mgx_status mgx_mxr_save(const struct mgx_program *p, const char *target, const char *path,
                             enum mgx_file_form form, struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_mxr_save_buffer(const struct mgx_program *p, const char *target,
                                    enum mgx_file_form form, struct mgx_str *out,
                                    struct mgx_diag *diag) MGX_NODISCARD;
// *target (empty: not compiled) is a buffer of MGX_TARGET_NAME bytes.
enum { MGX_TARGET_NAME = 64 };
enum mgx_status mgx_mxr_load(struct mgx_program **out, const struct mgx_op_set *ops,
                             const char *path, enum mgx_file_form form, char *target,
                             struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_mxr_load_buffer(struct mgx_program **out, const struct mgx_op_set *ops,
                                    const void *data, size_t size, enum mgx_file_form form,
                                    char *target, struct mgx_diag *diag) MGX_NODISCARD;

enum mgx_status mgx_tensor_save(const struct mgx_tensor *t, const char *path,
                                struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_tensor_load(struct mgx_tensor *out, const char *path,
                                struct mgx_diag *diag) MGX_NODISCARD;
