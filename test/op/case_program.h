// SPDX-License-Identifier: MIT
// An operator's case as a program of one instruction, for tests that compare targets: inputs that
// the shape rule knows are literals, the others parameters.
#pragma once

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "case_format.h"

static inline struct mgx_ins *case_add_input(struct mgx_module *m, const struct case_value *v,
                                             int i)
{
    char name[16];
    snprintf(name, sizeof name, "x%d", i);
    if (v->absent)
        return mgx_insert(m, NULL, &mgx_op_undefined, NULL, NULL, 0, NULL, 0);
    return v->known ? mgx_add_literal(m, &v->tensor) : mgx_add_parameter(m, name, &v->tensor.shape);
}

// NULL where the case says nothing of this kind: ranges, failures, no results.
static inline struct mgx_program *case_program(const struct op_case *c)
{
    const size_t n = strcspn(c->op, "[ \n");
    char name[64];
    struct mgx_diag diag = {0};
    struct mgx_program *p = NULL;
    struct mgx_ins *in[CASE_MAX_IN];
    void *attr = NULL;
    snprintf(name, sizeof name, "%.*s", (int)n, c->op);
    const char *text = c->op[n] == '[' ? c->op + n + 1 : "";
    const struct mgx_op *op = mgx_op_find(name);
    for (int i = 0; i < c->in_count; i++)
        if (!c->in[i].absent && !mgx_shape_is_static(&c->in[i].tensor.shape))
            return NULL;
    if (!op || mgx_program_create(&p, &mgx_ops, &diag) != MGX_OK)
        return NULL;
    struct mgx_module *m = mgx_program_main(p);
    for (int i = 0; i < c->in_count; i++)
        in[i] = case_add_input(m, &c->in[i], i);
    if (mgx_attr_parse(op, text, *text ? strlen(text) - 1 : 0, &p->arena, &attr, &diag) == MGX_OK) {
        struct mgx_ins *ins = mgx_insert(m, NULL, op, attr, in, c->in_count, NULL, 0);
        mgx_add_return(m, &ins, 1);
    }
    if (diag.status == MGX_OK && mgx_program_status(p, &diag) == MGX_OK)
        return p;
    mgx_program_destroy(p);
    return NULL;
}

// The values of its parameters in order; how many.
static inline int case_arguments(const struct op_case *c, struct mgx_tensor *args)
{
    int count = 0;
    for (int i = 0; i < c->in_count; i++)
        if (!c->in[i].absent && (!c->op || !c->in[i].known))
            args[count++] = c->in[i].tensor;
    return count;
}

// The case as a program, written out or of one instruction; NULL where it says no results.
static inline struct mgx_program *case_whole_program(const struct op_case *c)
{
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    if (c->fails || c->aborts || !c->out_count)
        return NULL;
    if (c->op)
        return case_program(c);
    return mgx_program_parse(&p, &mgx_ops, c->program, strlen(c->program), &diag) == MGX_OK ? p
                                                                                            : NULL;
}

// Equal in types and members; numbers that are floats as `elements` has it, others bit for bit.
static inline bool case_same(const struct mgx_tensor *a, const struct mgx_tensor *b,
                             bool (*elements)(const struct mgx_tensor *a,
                                              const struct mgx_tensor *b))
{
    if (a->sub_count != b->sub_count || a->shape.type != b->shape.type)
        return false;
    for (int i = 0; i < a->sub_count; i++)
        if (!case_same(&a->sub[i], &b->sub[i], elements))
            return false;
    if (a->sub || a->shape.type == MGX_TUPLE || a->shape.type == MGX_SEQUENCE)
        return true;
    return mgx_type_is_float(a->shape.type) ? elements(a, b) : mgx_tensor_equal(a, b, true);
}

// visit(case, program) for every case of test/op/cases/*.txt that has a program, in files whose path
// contains `wanted`; the program goes afterwards. `skip`, if any, leaves out what it is true of.
static inline void case_visit_all(const char *wanted, bool (*skip)(void),
                                  void (*visit)(const struct op_case *c, struct mgx_program *p))
{
    glob_t files;
    const bool found = glob("test/op/cases/*.txt", 0, NULL, &files) == 0;
    for (size_t i = 0; found && i < files.gl_pathc; i++) {
        if (!strstr(files.gl_pathv[i], wanted))
            continue;
        struct mgx_arena arena;
        mgx_arena_init(&arena);
        char *text = case_read_file(files.gl_pathv[i]);
        struct case_reader r = {.file = files.gl_pathv[i], .at = text, .arena = &arena};
        struct op_case c;
        while (text && case_next(&r, &c)) {
            const bool wants = !c.fails && !c.aborts && c.out_count && !(skip && skip());
            struct mgx_program *p = wants ? case_whole_program(&c) : NULL;
            if (p)
                visit(&c, p);
            mgx_program_destroy(p);
            case_free(&c);
        }
        if (!text || r.error[0])
            check_failures++;
        free(text);
        mgx_arena_fini(&arena);
    }
    if (found)
        globfree(&files);
}
