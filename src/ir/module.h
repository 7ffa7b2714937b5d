// SPDX-License-Identifier: MIT
// Instructions, modules, programs: building and editing them.
//
// A program owns modules, a module is a doubly linked list of instructions in an order that
// respects data flow, an instruction is an operator, its attributes, its inputs and its result's
// shape. All structs are visible so that a debugger prints them; all edits go through the functions
// below, which keep the lists of uses right.
//
// Holds: inputs come earlier in the same module, or from a module that (transitively) uses this one
// as a body.
// @param and @literal are inserted at the front of their module, as MIGraphX does, so they print in
// reverse order of creation. Everything lives in the program's arena: a removed instruction is
// unlinked, not freed. Builders are sticky: a NULL input gives a NULL result, and the first failure
// stays in program->diag, so code that builds reads as straight lines and checks mgx_program_status
// once. Cost: every edit O(number of inputs and uses touched).
#pragma once

#include "base/array.h"
#include "base/map.h"
#include "ir/op.h"

struct mgx_use { // one edge: `user->in[slot]` is the instruction that holds this use
    struct mgx_ins *user;
    int slot;
    struct mgx_use *prev, *next;
};

// What sweeps over a module read of every instruction comes first: large programs do not fit in the
// caches, and a line fetched from memory costs more than what is done with it.
struct mgx_ins {
    const struct mgx_op *op;
    struct mgx_ins *next, *prev;
    struct mgx_ins **in;
    struct mgx_module *owner;
    struct mgx_tensor *literal; // of @literal; in the arena, its storage shared
    int64_t mark;               // scratch for passes
    int index;                  // position after mgx_module_number; scratch for passes otherwise
    int in_count;
    struct mgx_use *uses;    // who reads this instruction
    struct mgx_use *in_uses; // in_count edges, its own, linked into the producers' lists
    void *attr;
    struct mgx_shape shape;
    bool stale; // an input was exchanged or changed its shape since `shape` was inferred
    struct mgx_module **mod; // bodies: if, loop, scan, pointwise, ...
    int mod_count;
    struct mgx_strings origin; // model nodes this came from ("conv1 (Conv)"), kept through rewrites
};

// A module stays where it is as long as its program lives; its content may be exchanged.
struct mgx_module {
    const char *name;
    struct mgx_program *program;
    struct mgx_ins *first, *last;
    int count;
    bool bypass;             // a body of a fused instruction: passes over user code skip it
    struct mgx_module *home; // of a copied one, while its content moves: where to
};

struct mgx_kept { // shares released with the program
    MGX_ARRAY(struct mgx_storage *);
};

struct mgx_carry;      // of a saved program, see ir/carry.h
struct mgx_executable; // a target's compiled form, see targets/target.h

struct mgx_hints { // parameter, text, parameter, text ...
    MGX_ARRAY(const char *);
};

struct mgx_program {
    struct mgx_arena arena;
    struct mgx_arena module_arena; // the modules, which outlive what they hold
    struct mgx_diag diag;          // first failure of a builder
    const struct mgx_op_set *ops;
    struct mgx_module **modules; // [0] is main
    int module_count;
    struct mgx_map module_names;     // name -> module
    struct mgx_map parameter_names;  // all that there ever were, in any module
    struct mgx_strings output_names; // as the model calls its results; empty if unknown
    struct mgx_hints hints;          // of parameters, why they have their sizes
    bool print_origins;              // text form ends in " # <origin>" (debug symbols)
    struct mgx_executable *executable;
    void (*destroy_executable)(struct mgx_executable *executable);
    struct mgx_carry *carry;   // what the file it was loaded from brought; NULL: nothing
    struct mgx_kept literals;  // storages of literals
    struct mgx_kept pinned;    // storages that no literal shows (a mapped file that is read later)
    int64_t parameter_count;   // ever created: gives mgx_param_attr.order
    struct mgx_module **homes; // of a backup: the modules it was made from
    unsigned generation;       // counts how often all instructions were exchanged
    bool by_hand;              // a caller of the API added instructions, which nobody verified
    _Atomic bool handed_out;   // somebody outside may still ask instructions that were removed
};

// --- programs and modules ---
enum mgx_status mgx_program_create(struct mgx_program **out, const struct mgx_op_set *ops,
                                   struct mgx_diag *diag) MGX_NODISCARD;
void mgx_program_destroy(struct mgx_program *p); // NULL is allowed, as in every destroy
enum mgx_status mgx_program_clone(struct mgx_program **out, const struct mgx_program *p,
                                  struct mgx_diag *diag)
    MGX_NODISCARD; // live instructions only, into a fresh arena; the executable is not copied
// A body as main of a program of its own, with the modules that it has. Literals of modules outside
// come with it, and single views of them; whatever else it reads of others becomes parameters
// behind its own, in the order of *outside, an array in `arena`.
enum mgx_status mgx_program_of_body(struct mgx_program **out, const struct mgx_module *body,
                                    struct mgx_arena *arena, const struct mgx_ins ***outside,
                                    int *count, struct mgx_diag *diag) MGX_NODISCARD;
// Moves the live instructions into a fresh arena (after a pipeline); every struct mgx_ins * becomes
// invalid, modules stay.
enum mgx_status mgx_program_compact(struct mgx_program *p, struct mgx_diag *diag) MGX_NODISCARD;
// A copy to return to when a pipeline fails half-way. Restoring cannot fail and takes the backup;
// modules stay, instructions are new.
enum mgx_status mgx_program_backup(struct mgx_program **out, const struct mgx_program *p,
                                   struct mgx_diag *diag) MGX_NODISCARD;
void mgx_program_restore(struct mgx_program *p, struct mgx_program *backup);
// Says of a parameter why it has the sizes it has, for whoever gives another; lost when saved.
enum mgx_status mgx_program_hint(struct mgx_program *p, const char *parameter, const char *text,
                                 struct mgx_diag *diag) MGX_NODISCARD;
const char *mgx_program_find_hint(const struct mgx_program *p, const char *parameter); // or NULL
// MGX_OK, or what the first failing builder met (copied to diag).
enum mgx_status mgx_program_status(const struct mgx_program *p,
                                   struct mgx_diag *diag) MGX_NODISCARD;
struct mgx_module *mgx_program_main(const struct mgx_program *p);
struct mgx_module *mgx_program_add_module(struct mgx_program *p,
                                          const char *name); // name is made unique
struct mgx_module *mgx_program_find_module(const struct mgx_program *p, const char *name);
void mgx_program_remove_module(struct mgx_program *p, struct mgx_module *m); // must be unused
// Gives back the storages of literals that are in no module any more, unless instructions were
// handed out: those stay readable.
enum mgx_status mgx_program_drop_literals(struct mgx_program *p,
                                          struct mgx_diag *diag) MGX_NODISCARD;
// MGX_IO when a file that literals lie in was found shorter than it was when opened: what was read
// of them meanwhile was zeros. Dropping literals asks the same of those that go.
enum mgx_status mgx_program_check_files(const struct mgx_program *p,
                                        struct mgx_diag *diag) MGX_NODISCARD;
// Alive as long as the program, also through clones and compaction.
void mgx_program_pin(struct mgx_program *p, struct mgx_storage *retain);

// --- adding (append before nothing, i.e. at the end; `before` variants insert) ---
struct mgx_ins *mgx_add_parameter(struct mgx_module *m, const char *name,
                                  const struct mgx_shape *shape);
struct mgx_ins *mgx_add_literal(struct mgx_module *m, const struct mgx_tensor *share);
// The literal's bytes move to where its type wants them, if they do not lie there (see tensor.h).
enum mgx_status mgx_literal_align(struct mgx_ins *literal, struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_program_align(struct mgx_program *p, struct mgx_diag *diag) MGX_NODISCARD;
struct mgx_ins *mgx_add_return(struct mgx_module *m, struct mgx_ins *const *in,
                               int count); // replaces an old one
// General form: `attr` is an attribute struct in the program's arena (mgx_attr_make), kept.
// `before` NULL = at the end (before @return if there is one).
struct mgx_ins *mgx_insert(struct mgx_module *m, struct mgx_ins *before, const struct mgx_op *op,
                           void *keep_attr, struct mgx_ins *const *in, int in_count,
                           struct mgx_module *const *mod, int mod_count);
// The everyday form: attributes as MGX_ATTRS(...) or NULL, inputs as MGX_IN(a, b).
struct mgx_ins_list {
    struct mgx_ins *const *v;
    int count;
};
#define MGX_IN(...)                                                                                \
    ((struct mgx_ins_list){                                                                        \
        (struct mgx_ins *const[]){__VA_ARGS__},                                                    \
        (int)(sizeof((struct mgx_ins *const[]){__VA_ARGS__}) / sizeof(struct mgx_ins *))})
struct mgx_ins *mgx_emit(struct mgx_module *m, const struct mgx_op *op,
                         const struct mgx_attr *attrs, struct mgx_ins_list in);
struct mgx_ins *mgx_emit_before(struct mgx_ins *before, const struct mgx_op *op,
                                const struct mgx_attr *attrs, struct mgx_ins_list in);
// Scalar and small literals at the front of m.
struct mgx_ins *mgx_literal_double(struct mgx_module *m, enum mgx_type type,
                                   double value); // rank 0
struct mgx_ins *mgx_literal_ints(struct mgx_module *m, const int64_t *values,
                                 int count); // int64 vector

// --- editing ---
// Every use of `old` reads `by` instead (not uses inside `by` itself); `by` takes over old's
// origin.
void mgx_replace_uses(struct mgx_ins *old, struct mgx_ins *by);
void mgx_set_input(struct mgx_ins *ins, int slot, struct mgx_ins *by);
// Another operator in place: same instruction, same uses, new op/attr/inputs; the shape is
// recomputed.
enum mgx_status mgx_rewrite(struct mgx_ins *ins, const struct mgx_op *op, void *keep_attr,
                            struct mgx_ins *const *in, int in_count,
                            struct mgx_diag *diag) MGX_NODISCARD;
void mgx_remove(struct mgx_ins *ins); // must have no uses
void mgx_move_before(struct mgx_ins *ins, struct mgx_ins *where);
// Infers the shape anew. Who reads a shape that changed is stale; whoever writes a shape by hand
// updates its readers, as the passes do that change types.
enum mgx_status mgx_update_shape(struct mgx_ins *ins, struct mgx_diag *diag) MGX_NODISCARD;
void mgx_add_origin(struct mgx_ins *ins, const char *name); // no duplicates
void mgx_copy_origin(struct mgx_ins *to, const struct mgx_ins *from);

// Drops the last `drop` computing instructions of main, then all but the last `keep` (0: keeps
// all); what is read from those cut away becomes parameters.
enum mgx_status mgx_program_trim(struct mgx_program *p, int drop, int keep,
                                 struct mgx_diag *diag) MGX_NODISCARD;
// Keeps the first computing instructions of main and returns what none of them reads.
enum mgx_status mgx_program_keep_first(struct mgx_program *p, int keep,
                                       struct mgx_diag *diag) MGX_NODISCARD;
// Literals of main become parameters literal:0, literal:1, ...
enum mgx_status mgx_program_replace_literals(struct mgx_program *p,
                                             struct mgx_diag *diag) MGX_NODISCARD;

// --- asking ---
#define MGX_EACH(ins, module)                                                                      \
    for (struct mgx_ins *ins = (module)->first, *next_##ins = ins ? ins->next : NULL; ins;         \
         ins = next_##ins, next_##ins = ins ? ins->next : NULL) // the body may remove `ins`
bool mgx_is(const struct mgx_ins *ins, const struct mgx_op *op);
static inline bool mgx_is_product(const struct mgx_ins *ins)
{
    return ins->op->flags & MGX_OP_PRODUCT;
}
static inline bool mgx_is_of_matrices(const struct mgx_ins *ins) // a product of matrices
{
    return ins->op->flags & MGX_OP_MATRICES;
}
int mgx_use_count(const struct mgx_ins *ins);
bool mgx_used_once(const struct mgx_ins *ins);
struct mgx_ins *mgx_module_return(const struct mgx_module *m); // NULL if there is none
// Results: the inputs of @return, or the last instruction of a module without one.
int mgx_module_result_count(const struct mgx_module *m);
struct mgx_ins *mgx_module_result(const struct mgx_module *m, int i);
struct mgx_ins *mgx_find_parameter(const struct mgx_module *m, const char *name);
// Parameters in order of creation; returns how many there are, writes at most `capacity`.
int mgx_module_parameters(const struct mgx_module *m, struct mgx_ins **out, int capacity);
// All of them, and how many; NULL when out of memory.
struct mgx_ins **mgx_module_parameter_list(const struct mgx_module *m, struct mgx_arena *arena,
                                           int *count);
// The place of a parameter among those of its module; -1 for any other instruction.
int mgx_parameter_index(const struct mgx_ins *ins);
const char *mgx_parameter_name(const struct mgx_ins *param);
void mgx_module_number(struct mgx_module *m); // sets index = 0, 1, 2, ... in order
// Shorthands over mgx_attr_*.
int64_t mgx_ins_int(const struct mgx_ins *ins, const char *name);
double mgx_ins_real(const struct mgx_ins *ins, const char *name);
struct mgx_ints mgx_ins_ints(const struct mgx_ins *ins, const char *name);

// --- text (docs/ir.md is the specification) ---
void mgx_program_print(struct mgx_str *out, const struct mgx_program *p);
void mgx_module_print(struct mgx_str *out,
                      const struct mgx_module *m);                  // the lines alone, no header
void mgx_ins_print(struct mgx_str *out, const struct mgx_ins *ins); // one line without newline
// Adds to a failure where it was: "main:@8 = conv", and the model's node if it is known.
void mgx_ins_blame(const struct mgx_ins *ins, struct mgx_diag *diag);
void mgx_ins_print_name(struct mgx_str *out,
                        const struct mgx_ins *ins); // "main:@3", or the parameter's name
enum mgx_status mgx_program_parse(struct mgx_program **out, const struct mgx_op_set *ops,
                                  const char *text, size_t size,
                                  struct mgx_diag *diag) MGX_NODISCARD;
bool mgx_program_equal(const struct mgx_program *a,
                       const struct mgx_program *b); // of the printed text
void mgx_module_sort(struct mgx_module *m); // a canonical order that depends on structure alone

// --- checking ---
// Every rule of docs/ir.md "What must hold"; names the instruction and the rule.
enum mgx_status mgx_program_verify(const struct mgx_program *p,
                                   struct mgx_diag *diag) MGX_NODISCARD;
