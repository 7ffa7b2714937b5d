// SPDX-License-Identifier: MIT
// Programs and single arguments in MIGraphX's file format, as msgpack (.mxr) or JSON.
//
// A program that is not compiled is written as MIGraphX does. A compiled one is the graph that the
// target made of it and what goes with it (ir/carry.h); in place of msgpack it is written as a
// container (container.h, docs/mxr.md), in JSON without its packed constants. Who loads one
// compiles it again, which for such a graph means choosing kernels, and packing constants that the
// file did not bring. Weights of a mapped file are used in place.
#pragma once

#include "ir/carry.h"
#include "ir/module.h"

enum mgx_file_form {
    MGX_FORM_MSGPACK,
    MGX_FORM_JSON,
    MGX_FORM_NETRON, // written alone
};

enum {
    MGX_MXR_FORMS = 8,          // in one container
    MGX_MXR_VERSION = 8,        // written
    MGX_MXR_OLDEST_VERSION = 7, // read as well
};

// Several compiled forms of one program, and the program itself, in one container.
struct mgx_mxr_form {
    const struct mgx_program *p;
    const struct mgx_carry *carry;
};

struct mgx_mxr_forms {
    const struct mgx_program *portable; // not compiled; NULL: none
    const struct mgx_mxr_form *v;
    int count; // 1 to MGX_MXR_FORMS
};

// `carry` is of a program that is compiled, NULL if it is not.
enum mgx_status mgx_mxr_save(const struct mgx_program *p, const struct mgx_carry *carry,
                             const char *path, enum mgx_file_form form,
                             struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_mxr_save_buffer(const struct mgx_program *p, const struct mgx_carry *carry,
                                    enum mgx_file_form form, struct mgx_str *out,
                                    struct mgx_diag *diag) MGX_NODISCARD;
// The same of several forms, as a container.
enum mgx_status mgx_mxr_save_forms(const struct mgx_mxr_forms *what, const char *path,
                                   struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_mxr_save_forms_buffer(const struct mgx_mxr_forms *what, struct mgx_str *out,
                                          struct mgx_diag *diag) MGX_NODISCARD;
// The program has a carry if it was saved compiled. Large literals of a container are not checked
// yet: who does not compile it with its carry checks them (mgx_carry_mark_literals). Without a
// chooser the first form is read.
enum mgx_status mgx_mxr_load(struct mgx_program **out, const struct mgx_op_set *ops,
                             const char *path, enum mgx_file_form form,
                             const struct mgx_carry_chooser *chooser,
                             struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_mxr_load_buffer(struct mgx_program **out, const struct mgx_op_set *ops,
                                    const void *data, size_t size, enum mgx_file_form form,
                                    const struct mgx_carry_chooser *chooser,
                                    struct mgx_diag *diag) MGX_NODISCARD;

enum mgx_status mgx_tensor_save(const struct mgx_tensor *t, const char *path,
                                struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_tensor_load(struct mgx_tensor *out, const char *path,
                                struct mgx_diag *diag) MGX_NODISCARD;
