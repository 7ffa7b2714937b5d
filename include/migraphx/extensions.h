// SPDX-License-Identifier: MIT
// What this engine offers in C beyond MIGraphX: the text of the last error, walking a program, text
// in and out, profiling, and options that MIGraphX keeps to its Python module and its driver.
//
// The rules of migraphx.h hold here too. A `char **out` is the caller's: migraphx_string_destroy.
// A `const char **out` is borrowed. The driver and the Python module are written on these two
// headers alone.
#ifndef MIGRAPHX_GUARD_EXTENSIONS_H
#define MIGRAPHX_GUARD_EXTENSIONS_H

#include <migraphx/migraphx.h>

#ifdef __cplusplus
extern "C" {
#endif

// --- errors, version, text ---
// What went wrong, where, and which values disagree:
//
//     if (migraphx_parse_onnx(&program, path, options) != migraphx_status_success)
//         fprintf(stderr, "%s\n", migraphx_last_error());

// Gives the text of why the last failing call of this thread failed, "" if none has; it is borrowed
// until the next failure.
MIGRAPHX_C_EXPORT migraphx_status migraphx_get_last_error(const char **out);
// Returns the same text, for use in an expression:
//
//     fprintf(stderr, "%s\n", migraphx_last_error());
MIGRAPHX_C_EXPORT const char *migraphx_last_error(void);
// The system's error number (errno) behind it where a file could not be read or written, ENOENT for
// one that is not there; else 0.
MIGRAPHX_C_EXPORT migraphx_status migraphx_get_last_errno(int *out);
// Gives the version, "2.16.0.dev".
MIGRAPHX_C_EXPORT migraphx_status migraphx_get_version(const char **out);
// Ends a text that the caller was given through a `char **`.
MIGRAPHX_C_EXPORT migraphx_status migraphx_string_destroy(char *text);

// Does nothing: here no C++ exception ever passes through C. MIGraphX's own tests call it.
MIGRAPHX_C_EXPORT void migraphx_test_private_disable_exception_catch(bool value);

// --- types ---

// Gives the name of a type, such as "float_type".
MIGRAPHX_C_EXPORT migraphx_status migraphx_type_name(const char **out,
                                                     migraphx_shape_datatype_t type);
// Writes the number of bytes of one element.
MIGRAPHX_C_EXPORT migraphx_status migraphx_type_size(size_t *out, migraphx_shape_datatype_t type);
// Finds a type by any of its spellings: "float_type", "float", "int64_t", "half". Types beyond the
// enumeration (int4_type, string_type, ...) get numbers of their own.
MIGRAPHX_C_EXPORT migraphx_status migraphx_type_find(migraphx_shape_datatype_t *out,
                                                     const char *name);
// Writes the number that a type has in attributes (`target_type=2`), which is not the one of the
// enumeration.
MIGRAPHX_C_EXPORT migraphx_status migraphx_type_attribute_number(size_t *out,
                                                                 migraphx_shape_datatype_t type);

// --- shapes ---

// Writes the least and the largest length.
MIGRAPHX_C_EXPORT migraphx_status migraphx_dynamic_dimension_range(
    size_t *min, size_t *max, const_migraphx_dynamic_dimension_t dynamic_dimension);
// Gives the sizes that compiling makes plans for, borrowed.
MIGRAPHX_C_EXPORT migraphx_status migraphx_dynamic_dimension_optimals(
    const size_t **out, size_t *out_size, const_migraphx_dynamic_dimension_t dynamic_dimension);
// Gives the name of the dimension, as the model calls it, "" without one. Axes of one name have one
// length.
MIGRAPHX_C_EXPORT migraphx_status migraphx_dynamic_dimension_name(
    const char **out, const_migraphx_dynamic_dimension_t dynamic_dimension);
// Gives the dimension a name, which is copied.
MIGRAPHX_C_EXPORT migraphx_status migraphx_dynamic_dimension_set_name(
    migraphx_dynamic_dimension_t dynamic_dimension, const char *name);

// Makes the shape of a tuple, from those of its members.
MIGRAPHX_C_EXPORT migraphx_status migraphx_shape_create_tuple(migraphx_shape_t *out,
                                                              const const_migraphx_shape_t *ptr,
                                                              size_t size);
// Makes a list of the members of a tuple; it is empty for anything else.
MIGRAPHX_C_EXPORT migraphx_status migraphx_shape_sub_shapes(migraphx_shapes_t *out,
                                                            const_migraphx_shape_t shape);
// Writes the number of axes: 0 for a scalar, where migraphx_shape_ndim says 1.
MIGRAPHX_C_EXPORT migraphx_status migraphx_shape_rank(size_t *out, const_migraphx_shape_t shape);
// Writes whether the elements lie without gaps, in whatever order.
MIGRAPHX_C_EXPORT migraphx_status migraphx_shape_packed(bool *out, const_migraphx_shape_t shape);
// Writes whether the elements lie in another order than row-major.
MIGRAPHX_C_EXPORT migraphx_status migraphx_shape_transposed(bool *out,
                                                            const_migraphx_shape_t shape);
// Writes whether an axis repeats the same elements.
MIGRAPHX_C_EXPORT migraphx_status migraphx_shape_broadcasted(bool *out,
                                                             const_migraphx_shape_t shape);
// Writes whether all elements are one and the same.
MIGRAPHX_C_EXPORT migraphx_status migraphx_shape_scalar(bool *out, const_migraphx_shape_t shape);
// Makes the text of the shape, such as "float_type, {2, 3}, {3, 1}".
MIGRAPHX_C_EXPORT migraphx_status migraphx_shape_to_string(char **out,
                                                           const_migraphx_shape_t shape);

// --- arguments ---

// Takes the buffer over: `release(owner)` is called, from whatever thread, when nothing needs the
// bytes any more. When the call fails it is not called.
MIGRAPHX_C_EXPORT migraphx_status migraphx_argument_create_owned(migraphx_argument_t *out,
                                                                 const_migraphx_shape_t shape,
                                                                 void *buffer,
                                                                 void (*release)(void *owner),
                                                                 void *owner);
// From as many values as there are elements, row-major, converted to the type of the shape.
MIGRAPHX_C_EXPORT migraphx_status migraphx_argument_create_values(migraphx_argument_t *out,
                                                                  const_migraphx_shape_t shape,
                                                                  const double *values,
                                                                  size_t size);
// The same from integers, of which none is rounded.
MIGRAPHX_C_EXPORT migraphx_status migraphx_argument_create_integers(migraphx_argument_t *out,
                                                                    const_migraphx_shape_t shape,
                                                                    const int64_t *values,
                                                                    size_t size);
// A string tensor; text i has sizes[i] bytes, which are copied.
MIGRAPHX_C_EXPORT migraphx_status migraphx_argument_create_strings(migraphx_argument_t *out,
                                                                   const_migraphx_shape_t shape,
                                                                   const char *const *texts,
                                                                   const size_t *sizes,
                                                                   size_t size);
// A tuple (or, of members of one shape, a sequence) that shares its members.
MIGRAPHX_C_EXPORT migraphx_status migraphx_argument_create_group(
    migraphx_argument_t *out, const const_migraphx_argument_t *ptr, size_t size, bool sequence);
// Makes a second handle of the same bytes.
MIGRAPHX_C_EXPORT migraphx_status migraphx_argument_share(migraphx_argument_t *out,
                                                          const_migraphx_argument_t argument);
// Moves a result out of its list: *out is the caller's, and an argument without elements stays
// behind.
MIGRAPHX_C_EXPORT migraphx_status migraphx_arguments_take(migraphx_argument_t *out,
                                                          migraphx_arguments_t arguments,
                                                          size_t idx);
// Makes an argument whose elements are all `value`.
MIGRAPHX_C_EXPORT migraphx_status migraphx_argument_fill(migraphx_argument_t *out,
                                                         const_migraphx_shape_t shape,
                                                         double value);
// Writes all elements as doubles, row-major whatever the strides; `size` must be their number.
MIGRAPHX_C_EXPORT migraphx_status migraphx_argument_values(double *out, size_t size,
                                                           const_migraphx_argument_t argument);
// Writes all elements as integers, row-major whatever the strides; `size` must be their number.
MIGRAPHX_C_EXPORT migraphx_status migraphx_argument_integers(int64_t *out, size_t size,
                                                             const_migraphx_argument_t argument);
// Gives element `idx` of a string tensor and its length; no zero ends it.
MIGRAPHX_C_EXPORT migraphx_status migraphx_argument_string(const char **out, size_t *out_size,
                                                           const_migraphx_argument_t argument,
                                                           size_t idx);
// Writes the number of members of a tuple or sequence; 0 for anything else.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_argument_members_size(size_t *out, const_migraphx_argument_t argument);
// Gives member number `idx`, borrowed.
MIGRAPHX_C_EXPORT migraphx_status migraphx_argument_member(const_migraphx_argument_t *out,
                                                           const_migraphx_argument_t argument,
                                                           size_t idx);
// Makes the text of the elements, joined by ", ".
MIGRAPHX_C_EXPORT migraphx_status migraphx_argument_to_string(char **out,
                                                              const_migraphx_argument_t argument);

// As program_parameters_add of what argument_create_owned makes, without the argument between.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_parameters_add_owned(
    migraphx_program_parameters_t program_parameters, const char *name,
    const_migraphx_shape_t shape, void *buffer, void (*release)(void *owner), void *owner);
// Empties a list of parameters, which keeps its room for the next run's.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_program_parameters_clear(migraphx_program_parameters_t program_parameters);

// --- operators and targets ---

// Writes how many operators of the IR there are.
MIGRAPHX_C_EXPORT migraphx_status migraphx_get_operators_size(size_t *out);
// Gives the name of an operator, in alphabetical order.
MIGRAPHX_C_EXPORT migraphx_status migraphx_get_operator_name_at_index(const char **out,
                                                                      size_t index);
// Writes how many targets this machine can use.
MIGRAPHX_C_EXPORT migraphx_status migraphx_get_targets_size(size_t *out);
// Gives the name of a target.
MIGRAPHX_C_EXPORT migraphx_status migraphx_get_target_name_at_index(const char **out, size_t index);
// Writes how many TensorFlow operators import knows.
MIGRAPHX_C_EXPORT migraphx_status migraphx_get_tf_operators_size(size_t *out);
// Gives the name of a TensorFlow operator, in alphabetical order.
MIGRAPHX_C_EXPORT migraphx_status migraphx_get_tf_operator_name_at_index(const char **out,
                                                                         size_t index);
// Writes how many passes there are.
MIGRAPHX_C_EXPORT migraphx_status migraphx_get_passes_size(size_t *out);
// Gives the name of a pass, in alphabetical order.
MIGRAPHX_C_EXPORT migraphx_status migraphx_get_pass_name_at_index(const char **out, size_t index);
// Gives the stages of passes that the target of that name runs, in order: a line for each, with tabs
// between its name, what of the program or the machine it asks for (empty: it runs always), and the
// names of its passes. No line: its passes are no table. No machine of that kind is needed.
// migraphx_string_destroy frees the text.
MIGRAPHX_C_EXPORT migraphx_status migraphx_get_target_stages(char **out, const char *name);
// Gives the name of a target, borrowed.
MIGRAPHX_C_EXPORT migraphx_status migraphx_target_name(const char **out,
                                                       const_migraphx_target_t target);
// As operation_create, with the attributes as they are.
MIGRAPHX_C_EXPORT migraphx_status migraphx_operation_create_json(migraphx_operation_t *out,
                                                                 const char *name,
                                                                 const char *attributes);
// Makes one JSON object of all attributes, "{}" where there are none.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_operation_attributes(char **out, const_migraphx_operation_t operation);
// Makes the text of an operator with its attributes, such as "concat[axis=1]".
MIGRAPHX_C_EXPORT migraphx_status
migraphx_operation_to_string(char **out, const_migraphx_operation_t operation);

// --- macros: names that stand for several instructions (gemm, batchnorm, einsum, ...) ---

typedef struct migraphx_macro *migraphx_macro_t;
typedef const struct migraphx_macro *const_migraphx_macro_t;

// `options` as operation_create_json's attributes, NULL for the defaults. A name that no macro has
// is an operator's.
MIGRAPHX_C_EXPORT migraphx_status migraphx_macro_create(migraphx_macro_t *out, const char *name,
                                                        const char *options);
MIGRAPHX_C_EXPORT migraphx_status migraphx_macro_destroy(migraphx_macro_t macro);
// Gives the name of a macro, borrowed.
MIGRAPHX_C_EXPORT migraphx_status migraphx_macro_name(const char **out,
                                                      const_migraphx_macro_t macro);
// Makes one JSON object of all options.
MIGRAPHX_C_EXPORT migraphx_status migraphx_macro_options(char **out, const_migraphx_macro_t macro);
// Writes how many macros there are.
MIGRAPHX_C_EXPORT migraphx_status migraphx_get_macros_size(size_t *out);
// Gives the name of a macro, in alphabetical order.
MIGRAPHX_C_EXPORT migraphx_status migraphx_get_macro_name_at_index(const char **out, size_t index);
// Adds what a macro stands for at the end of a module; *out are its results. `module_refs` may be
// NULL. A call that fails leaves the module as it was.
MIGRAPHX_C_EXPORT migraphx_status migraphx_module_add_macro(migraphx_instructions_t *out,
                                                            migraphx_module_t module,
                                                            const_migraphx_macro_t macro,
                                                            migraphx_instructions_t args,
                                                            migraphx_modules_t module_refs);
// Adds what a macro stands for in front of an instruction.
MIGRAPHX_C_EXPORT migraphx_status migraphx_module_insert_macro(
    migraphx_instructions_t *out, migraphx_module_t module, const_migraphx_instruction_t before,
    const_migraphx_macro_t macro, migraphx_instructions_t args, migraphx_modules_t module_refs);

// --- walking a program; instructions and modules die with it, and may die when it is compiled ---
// Every instruction of the main module, as it prints:
//
//     migraphx_program_get_main_module(&m, program);
//     migraphx_module_instructions(&list, m);
//     migraphx_instructions_size(&size, list);
//     for (size_t i = 0; i < size; i++) {
//         migraphx_instructions_get(&instruction, list, i);
//         migraphx_instruction_to_string(&text, instruction);
//         puts(text);
//         migraphx_string_destroy(text);
//         migraphx_instruction_destroy(instruction);
//     }

// Makes a list of the program's modules, the main one first.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_modules(migraphx_modules_t *out,
                                                           const_migraphx_program_t program);
// Writes how many modules the list has.
MIGRAPHX_C_EXPORT migraphx_status migraphx_modules_size(size_t *out,
                                                        const_migraphx_modules_t modules);
// Gives module number `idx`, borrowed from its program.
MIGRAPHX_C_EXPORT migraphx_status migraphx_modules_get(migraphx_module_t *out,
                                                       const_migraphx_modules_t modules,
                                                       size_t idx);
// Ends a module of migraphx_module_create; refused for modules of a program.
MIGRAPHX_C_EXPORT migraphx_status migraphx_module_destroy(migraphx_module_t module);
// Gives the name of a module, borrowed.
MIGRAPHX_C_EXPORT migraphx_status migraphx_module_name(const char **out,
                                                       const_migraphx_module_t module);
// Makes the text of a module, as it prints.
MIGRAPHX_C_EXPORT migraphx_status migraphx_module_to_string(char **out,
                                                            const_migraphx_module_t module);
// Makes a list of the module's instructions, in order.
MIGRAPHX_C_EXPORT migraphx_status migraphx_module_instructions(migraphx_instructions_t *out,
                                                               const_migraphx_module_t module);
// Writes how many instructions the list has.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_instructions_size(size_t *out, const_migraphx_instructions_t instructions);
// Makes a handle of instruction number `idx`, which is the caller's.
MIGRAPHX_C_EXPORT migraphx_status migraphx_instructions_get(
    migraphx_instruction_t *out, const_migraphx_instructions_t instructions, size_t idx);
// Gives the name of the instruction's operator, borrowed.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_instruction_name(const char **out, const_migraphx_instruction_t instruction);
// Makes the shape of the instruction's value.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_instruction_shape(migraphx_shape_t *out, const_migraphx_instruction_t instruction);
// Makes the operator of the instruction, with its attributes.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_instruction_operation(migraphx_operation_t *out, const_migraphx_instruction_t instruction);
// Makes a list of the instructions that this one reads.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_instruction_inputs(migraphx_instructions_t *out, const_migraphx_instruction_t instruction);
// Makes a list of the instructions that read this one, each once, in program order where they are
// in its module.
MIGRAPHX_C_EXPORT migraphx_status migraphx_instruction_outputs(
    migraphx_instructions_t *out, const_migraphx_instruction_t instruction);
// Makes a list of the bodies of the instruction.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_instruction_modules(migraphx_modules_t *out, const_migraphx_instruction_t instruction);
// Adds a constant of the argument's value. It is the only way for texts, whose bytes are not the
// caller's.
MIGRAPHX_C_EXPORT migraphx_status migraphx_module_add_literal_argument(
    migraphx_instruction_t *out, migraphx_module_t module, const_migraphx_argument_t value);
// Makes an argument of the value of a @literal; anything else has none, and the call fails.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_instruction_literal(migraphx_argument_t *out, const_migraphx_instruction_t instruction);
// Makes the text of the instruction, its line in the printed program.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_instruction_to_string(char **out, const_migraphx_instruction_t instruction);
// Makes the text of the nodes of the model that the instruction came from, with "; " between them;
// it is empty if none is known.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_instruction_nodes(char **out, const_migraphx_instruction_t instruction);
// Writes whether both handles are of one instruction.
MIGRAPHX_C_EXPORT migraphx_status migraphx_instruction_equal(
    bool *out, const_migraphx_instruction_t instruction, const_migraphx_instruction_t x);
// Writes a number that is the same for every handle of one instruction.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_instruction_hash(size_t *out, const_migraphx_instruction_t instruction);

// --- programs ---

// Writes whether the program is compiled.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_is_compiled(bool *out,
                                                               const_migraphx_program_t program);
// Writes whether the program takes its parameters in the memory of a device: it is compiled for one,
// without offload_copy.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_program_takes_device_data(bool *out, const_migraphx_program_t program);
// Makes the text that migraphx_program_print prints.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_to_string(char **out,
                                                             const_migraphx_program_t program);
// Makes a program from that text.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_parse(migraphx_program_t *out, const char *text,
                                                         size_t size);
// Makes the text of the program in another language: "text", "json", "py", "cpp", "graphviz",
// "graphviz-brief" or "netron".
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_format(char **out,
                                                          const_migraphx_program_t program,
                                                          const char *name);
// --- one file for several machines ---
//
// A file may hold the program as it is, not compiled, and beside it forms of it that were compiled
// for several sets of instructions or targets. Loading takes the form that is best on the machine it
// happens on, and compiles the portable program anew where none is for it
// (migraphx_program_explain says which).

// Has migraphx_save and migraphx_save_buffer write this form too, eight at most: `program` is
// compiled, lives until then, and was compiled from a copy of the program that is saved.
MIGRAPHX_C_EXPORT migraphx_status migraphx_file_options_add_form(
    migraphx_file_options_t file_options, const_migraphx_program_t program);
// Loading takes a form for this target, or compiles for it; NULL: the best of gpu, cpu and ref.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_file_options_set_target(migraphx_file_options_t file_options, const char *name);
// Loading gives the program that is not compiled, where a file has it.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_file_options_set_portable(migraphx_file_options_t file_options, bool value);
// Loading hands kernels that the file brings in compiled form to the card's driver: only for files
// whose writer is trusted as a program's is. Without it they are compiled from the engine's own
// sources, and nothing of a file is ever executed.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_file_options_set_trusted(migraphx_file_options_t file_options, bool value);
// Reads a program from memory; `options` NULL means the defaults, as in the next call.
MIGRAPHX_C_EXPORT migraphx_status migraphx_load_buffer(migraphx_program_t *out, const void *data,
                                                       size_t size,
                                                       migraphx_file_options_t options);
// Writes a program into memory, whose bytes are the caller's (migraphx_string_destroy).
MIGRAPHX_C_EXPORT migraphx_status migraphx_save_buffer(char **out, size_t *out_size,
                                                       const_migraphx_program_t program,
                                                       migraphx_file_options_t options);
// Writes how many names the model gives its results; 0 when it has none.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_program_output_names_size(size_t *out, const_migraphx_program_t program);
// Gives the name of result number `idx`, borrowed.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_output_name(const char **out,
                                                               const_migraphx_program_t program,
                                                               size_t idx);
// Checks every rule that a program must obey.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_verify(const_migraphx_program_t program);
// Runs the named passes in this order, with removal of dead code after each.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_run_passes(migraphx_program_t program,
                                                              const char *const *names,
                                                              size_t size);
// Runs the simplifications that every target runs first.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_optimize(migraphx_program_t program);
// Drops the last `drop` instructions of the main module and returns what is last then; with `keep`
// above 0, of the rest only the last `keep`, whose other inputs become parameters x0, x1, ...
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_trim(migraphx_program_t program, size_t drop,
                                                        size_t keep);
// Keeps the first `keep` computing instructions of the main module and returns every value of them
// that none of them reads.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_keep_first(migraphx_program_t program,
                                                              size_t keep);
// Makes every literal of the main module a parameter literal:0, literal:1, ... of its shape.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_replace_literals(migraphx_program_t program);
// Every later run of this program gives random operators that have no seed of their own the same
// numbers, which this seed stands for. Without it they differ from run to run.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_set_seed(migraphx_program_t program,
                                                            uint64_t seed);
// No later run of this program holds more than so many bytes of the host's memory at a time, for its
// values, results and scratch; one that would fails instead. 0, the default, sets no limit. What
// compiling holds, packed weights above all, and what the caller gives are not counted.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_set_run_memory(migraphx_program_t program,
                                                                  size_t bytes);
// As program_run; microseconds[i] is what instruction i of the main module took, 0 for those that
// compute nothing.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_run_profile(migraphx_arguments_t *out,
                                                               migraphx_program_t program,
                                                               migraphx_program_parameters_t params,
                                                               double *microseconds, size_t size);
// Told that a thread was at an instruction of the main module, from when to when: microseconds since
// the run began. Thread 0 is the calling one, whose time with an instruction is all of it, waiting
// for the others included; higher numbers are those that helped it, each for a part of that time.
typedef void (*migraphx_span_callback_t)(void *data, size_t instruction, size_t thread,
                                         double begin, double end);
// As program_run, and tells after every instruction which threads were at it and when. Nothing is
// told where a card computes, whose threads are not the host's. The callback is of the calling
// thread, between two instructions.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_run_spans(migraphx_arguments_t *out,
                                                             migraphx_program_t program,
                                                             migraphx_program_parameters_t params,
                                                             migraphx_span_callback_t callback,
                                                             void *data);
// Makes a text that says for every instruction of a compiled program which kernel, layout and
// threads it has, and why no faster kernel took it.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_explain(char **out,
                                                           const_migraphx_program_t program);
// The same for programs to read: a line for every step in the order of the run, its fields
// separated by tabs:
//
//     instruction of main, operator, kernel, detail, where it runs, type of the result, where that
//     lies, offset there, bytes, first step that needs it, last one, floating-point operations (of
//     products; else 0), bytes read and written, why no earlier kernel, nodes of the model,
//     narrowest type that is read
//
// Fields may be empty. Nodes are separated by "; ". Targets without a plan give no lines.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_plan(char **out,
                                                        const_migraphx_program_t program);

// --- memory of a card ---

// What target "gpu" compiled without offload_copy is given and gives: addresses that the host must
// not touch (migraphx_argument_buffer shows them, for libraries of the caller's own). A card has the
// name that MIGRAPHX_GPU_DEVICE knows it by, "cuda:1" or "opencl"; ":1" is number 1 of the driver
// that is found, NULL the card that target "gpu" takes, "host" the host.

// Makes an argument in a card's memory, uninitialised; on the host, of zeros.
MIGRAPHX_C_EXPORT migraphx_status migraphx_device_allocate(migraphx_argument_t *out,
                                                           const_migraphx_shape_t shape,
                                                           const char *device);
// Makes an argument over memory of the card at `address`, as migraphx_argument_create_owned does
// over the host's; `release` may be NULL.
MIGRAPHX_C_EXPORT migraphx_status migraphx_device_argument(migraphx_argument_t *out,
                                                           const_migraphx_shape_t shape,
                                                           void *address, const char *device,
                                                           void (*release)(void *owner),
                                                           void *owner);
// Makes a copy of an argument there, when the card has done what it was given before.
MIGRAPHX_C_EXPORT migraphx_status migraphx_device_copy(migraphx_argument_t *out,
                                                       const_migraphx_argument_t argument,
                                                       const char *device);
// Copies the bytes of `from` into those of `to`, of one shape, wherever either lies.
MIGRAPHX_C_EXPORT migraphx_status migraphx_device_copy_into(migraphx_argument_t to,
                                                            const_migraphx_argument_t from);
// Gives the place of the bytes: "host", "cuda:0", ...; "host" for bytes that the caller lent
// without saying more (migraphx_argument_create). *out lasts as long as the process.
MIGRAPHX_C_EXPORT migraphx_status migraphx_argument_device(const char **out,
                                                           const_migraphx_argument_t argument);
// Gives the whole name of a card, if there is one.
MIGRAPHX_C_EXPORT migraphx_status migraphx_device_find(const char **out, const char *device);
// Waits until the card has done all that it was given.
MIGRAPHX_C_EXPORT migraphx_status migraphx_device_wait(const char *device);
// Chooses the card of target "gpu" by its number; 0 is the first.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_compile_options_set_device_id(migraphx_compile_options_t compile_options, size_t value);

// --- ending calls before they are done ---

// Parsing, compiling, tuning, passes and runs of a thread that obeys a cancellation end within
// milliseconds once it is requested, with migraphx_status_cancelled. Nothing is lost by it: a
// program that was to be compiled is as before, one that was run can be run again, what tuning has
// measured so far is in its cache. All later calls of the thread end at once, too, until the
// request is taken back:
//
//     migraphx_cancellation_create(&c);
//     migraphx_cancellation_attach(c);
//     status = migraphx_program_run(&results, p, params);    elsewhere:
//     migraphx_cancellation_request(c) if (status == migraphx_status_cancelled)
//         migraphx_cancellation_reset(c);
//
// One cancellation may serve several threads; a thread obeys one at a time.
#define migraphx_status_cancelled ((migraphx_status)5)
typedef struct migraphx_cancellation *migraphx_cancellation_t;
typedef const struct migraphx_cancellation *const_migraphx_cancellation_t;
// Called by a thread while one of its calls is at work, every two milliseconds or so; true is a
// request. It may take locks and call this interface, but not change this cancellation.
typedef bool (*migraphx_cancellation_callback_t)(void *data);
// Makes a cancellation that is not requested.
MIGRAPHX_C_EXPORT migraphx_status migraphx_cancellation_create(migraphx_cancellation_t *out);
// Detaches it from this thread; refused while another one obeys it.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_cancellation_destroy(migraphx_cancellation_t cancellation);
// Sets a callback, before the cancellation is attached.
MIGRAPHX_C_EXPORT migraphx_status migraphx_cancellation_set_callback(
    migraphx_cancellation_t cancellation, migraphx_cancellation_callback_t callback, void *data);
// Requests that calls end; any thread may do it, and so may a signal handler.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_cancellation_request(migraphx_cancellation_t cancellation);
// Writes whether it is requested.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_cancellation_requested(bool *out, const_migraphx_cancellation_t cancellation);
// Takes the request back; refused while a call that obeys it is at work.
MIGRAPHX_C_EXPORT migraphx_status migraphx_cancellation_reset(migraphx_cancellation_t cancellation);
// The calling thread obeys this one from now on, instead of another one.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_cancellation_attach(migraphx_cancellation_t cancellation);
// The calling thread obeys none from now on.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_cancellation_detach(migraphx_cancellation_t cancellation);

// --- quantization by calibration ---
// 8 bits where the results stay within a hundredth:
//
//     migraphx_quantize_options_create(&options);
//     migraphx_quantize_options_add_calibration_data(options, parameters);
//     migraphx_quantize_options_set_budget(options, "relative", 0.01);
//     migraphx_quantize(NULL, program, target, options);

// quantize_int8 and quantize_fp8 with everything that can be chosen, before compilation. Programs
// run on the samples on the target; docs/precision.md says what the choices mean.
typedef struct migraphx_quantize_options *migraphx_quantize_options_t;
typedef const struct migraphx_quantize_options *const_migraphx_quantize_options_t;
// Makes the default options: int8, the largest value seen, a scale for each channel of weights.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_quantize_options_create(migraphx_quantize_options_t *out);
MIGRAPHX_C_EXPORT migraphx_status
migraphx_quantize_options_destroy(migraphx_quantize_options_t quantize_options);
MIGRAPHX_C_EXPORT migraphx_status migraphx_quantize_options_assign_to(
    migraphx_quantize_options_t output, const_migraphx_quantize_options_t input);
// Chooses int8, the default, or an fp8 type.
MIGRAPHX_C_EXPORT migraphx_status migraphx_quantize_options_set_type(
    migraphx_quantize_options_t quantize_options, migraphx_shape_datatype_t type);
// Chooses how ranges follow from what was seen: "max", the default, "percentile", "entropy" or
// "error".
MIGRAPHX_C_EXPORT migraphx_status migraphx_quantize_options_set_method(
    migraphx_quantize_options_t quantize_options, const char *name);
// Sets how many of a hundred values lie within the range of method "percentile"; 99.99 is the
// default.
MIGRAPHX_C_EXPORT migraphx_status migraphx_quantize_options_set_percentile(
    migraphx_quantize_options_t quantize_options, double value);
// Makes activations uint8 with a zero point instead of int8.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_quantize_options_set_asymmetric(migraphx_quantize_options_t quantize_options, bool value);
// Has one scale for all weights of a product instead of one per channel of its result.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_quantize_options_set_per_tensor(migraphx_quantize_options_t quantize_options, bool value);
// Has the mean error of rounded weights taken off the results.
MIGRAPHX_C_EXPORT migraphx_status migraphx_quantize_options_set_correct_bias(
    migraphx_quantize_options_t quantize_options, bool value);
// Moves outliers of activations into the weights where that leaves less noise.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_quantize_options_set_smooth(migraphx_quantize_options_t quantize_options, bool value);
// Adds "dot" or "convolution"; without a name both are quantized.
MIGRAPHX_C_EXPORT migraphx_status migraphx_quantize_options_add_op_name(
    migraphx_quantize_options_t quantize_options, const char *name);
// Adds a sample, a value of every parameter, kept by reference as with int8 options.
MIGRAPHX_C_EXPORT migraphx_status migraphx_quantize_options_add_calibration_data(
    migraphx_quantize_options_t quantize_options, migraphx_program_parameters_t data);
// The error one accepts on the samples, and of what kind: "relative" (norm of the difference of a
// result by its norm) or "top" (how many rows have their largest element elsewhere). What does not
// fit stays wide. A negative value is no budget.
MIGRAPHX_C_EXPORT migraphx_status migraphx_quantize_options_set_budget(
    migraphx_quantize_options_t quantize_options, const char *metric, double value);
// Budgets reckon the time of products from their multiplications instead of measuring it here, and
// no card of this machine is asked which of them 8 bits do not pay for: for programs that another
// machine will run.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_quantize_options_set_reckon_time(migraphx_quantize_options_t quantize_options, bool value);
// Ranges that were found before, as text (size 0: none). Nothing is calibrated then; the settings
// of type, activations and weights are those of the text.
MIGRAPHX_C_EXPORT migraphx_status migraphx_quantize_options_set_ranges(
    migraphx_quantize_options_t quantize_options, const char *text, size_t size);
// Told what is being done and how far it is.
typedef void (*migraphx_quantize_callback_t)(void *data, const char *what, size_t done,
                                             size_t total);
// Sets what is told how far the work is, with the caller's `data`.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_quantize_options_set_progress(migraphx_quantize_options_t quantize_options,
                                       migraphx_quantize_callback_t callback, void *data);
// Quantizes the program. Products that 8 bits would not be faster for stay in 16 on cards whose time
// there is a model of, and wide within a budget. *ranges, which may be NULL, gets what was done as text that set_ranges
// takes; the program keeps it too, as comments.
MIGRAPHX_C_EXPORT migraphx_status migraphx_quantize(char **ranges, migraphx_program_t program,
                                                    migraphx_target_t target,
                                                    const_migraphx_quantize_options_t options);
// Makes the text of the ranges that a program keeps.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_quantization(char **out,
                                                                const_migraphx_program_t program);
// Makes a table of ranges for people: what each product costs and gains, and why it stayed wide.
MIGRAPHX_C_EXPORT migraphx_status migraphx_quantization_table(char **out, const char *ranges,
                                                              size_t size);
// How far the results of two programs, neither compiled, lie apart on the samples of the options:
// both kinds of error of set_budget.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_quantization_error(double *relative, double *top, const_migraphx_program_t program,
                            const_migraphx_program_t quantized, migraphx_target_t target,
                            const_migraphx_quantize_options_t options);
// The weights of dot and convolution in 4 bits, with a scale per `block` of them along what is
// summed (0: one per channel of the result) and, unless `symmetric`, a zero point.
MIGRAPHX_C_EXPORT migraphx_status migraphx_quantize_int4_weights(migraphx_program_t program,
                                                                 size_t block, bool symmetric);
// An input of floats comes as bytes from now on, and the program makes floats of them: scale x +
// offset, `size` of each, one for all or one for each channel (axis 1); NULL: 1 and 0. With
// `channels_last` bytes come as {n, ..., c}, where the model has {n, c, ...}. Before quantize and
// compile.
MIGRAPHX_C_EXPORT migraphx_status migraphx_take_bytes(migraphx_program_t program,
                                                      const char *parameter, const double *scale,
                                                      const double *offset, size_t size,
                                                      bool channels_last);

// --- generating text ---
// A model that continues a text, token by token. Its caches stay between calls, so a second turn
// costs its own tokens alone:
//
//     migraphx_generator_load(&generator, "folder", NULL);
//     migraphx_generator_add(&text, generator);
//     migraphx_generator_append(generator, text, prompt, prompt_size);
//     do {
//         migraphx_generator_next(&token, generator, &text, 1);
//         migraphx_generator_is_end(&ends, generator, token);
//     } while (!ends);
//
// Tokens are numbers; text is the caller's (Python's migraphx.generate has tokenizers). Calls on one
// generator take turns, from whatever threads; migraphx_generator_share makes one for each thread.
// A call that fails or is cancelled (migraphx_cancellation) leaves the tokens of every text as they
// were, and can be made again. docs/generation.md says what models and folders it takes.

// What a generator is made with.
typedef struct migraphx_generator_options *migraphx_generator_options_t;
typedef const struct migraphx_generator_options *const_migraphx_generator_options_t;
// Makes the default options: target "cpu", names guessed.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_generator_options_create(migraphx_generator_options_t *out);
MIGRAPHX_C_EXPORT migraphx_status
migraphx_generator_options_destroy(migraphx_generator_options_t generator_options);
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_options_assign_to(
    migraphx_generator_options_t output, const_migraphx_generator_options_t input);
// Chooses the target by its name; "cpu" is the default.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_options_set_target(
    migraphx_generator_options_t generator_options, const char *name);
// Sets how the model is compiled; the options are copied, NULL stands for the defaults.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_generator_options_set_compile_options(migraphx_generator_options_t generator_options,
                                               const_migraphx_compile_options_t compile_options);
// Sets the most tokens that a text may have; 0, the default, stands for what the folder says, and no
// limit where it says nothing.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_options_set_context(
    migraphx_generator_options_t generator_options, size_t value);
// Sets the most tokens of a prompt that run at once; 0 stands for 512. Fewer take less memory, 1 what
// a model needs that takes no more.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_generator_options_set_piece(migraphx_generator_options_t generator_options, size_t value);
// Sets the cards, by number, that compute the model together: each has its part of the weights and
// caches, and they add what they have of every product. Of target "gpu", up to 8, whose links let
// each reach the others' memory. None, or one: that card alone.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_options_set_cards(
    migraphx_generator_options_t generator_options, const size_t *cards, size_t size);
// Names the input or result of a role: "tokens", "mask", "positions", "lengths", "total", "logits".
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_options_set_name(
    migraphx_generator_options_t generator_options, const char *role, const char *name);
// Names an input that takes what a run gave as that result; "%d" in both stands for every layer.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_options_add_state(
    migraphx_generator_options_t generator_options, const char *past, const char *present);
// Adds a token that ends an answer.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_generator_options_add_end(migraphx_generator_options_t generator_options, int64_t token);

// How the next token is chosen; docs/generation.md defines it step by step.
typedef struct migraphx_sampling *migraphx_sampling_t;
typedef const struct migraphx_sampling *const_migraphx_sampling_t;
// Makes the plainest way: always the token with the highest score.
MIGRAPHX_C_EXPORT migraphx_status migraphx_sampling_create(migraphx_sampling_t *out);
MIGRAPHX_C_EXPORT migraphx_status migraphx_sampling_destroy(migraphx_sampling_t sampling);
MIGRAPHX_C_EXPORT migraphx_status migraphx_sampling_assign_to(migraphx_sampling_t output,
                                                              const_migraphx_sampling_t input);
// Sets what scores are divided by before one is drawn; 0, the default, takes the highest.
MIGRAPHX_C_EXPORT migraphx_status migraphx_sampling_set_temperature(migraphx_sampling_t sampling,
                                                                    double value);
// Leaves only so many tokens with the highest scores; 0, the default, leaves all.
MIGRAPHX_C_EXPORT migraphx_status migraphx_sampling_set_top_k(migraphx_sampling_t sampling,
                                                              size_t value);
// Leaves the fewest tokens that have this probability together; 1, the default, leaves all.
MIGRAPHX_C_EXPORT migraphx_status migraphx_sampling_set_top_p(migraphx_sampling_t sampling,
                                                              double value);
// Leaves tokens that have this share of the likeliest one's probability; 0, the default, leaves all.
MIGRAPHX_C_EXPORT migraphx_status migraphx_sampling_set_min_p(migraphx_sampling_t sampling,
                                                              double value);
// Makes tokens that the text has already less likely by this factor; 1, the default, does not.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_sampling_set_repetition_penalty(migraphx_sampling_t sampling, double value);
// Sets what chance follows from: the same seed and text give the same token. 0 is the default.
MIGRAPHX_C_EXPORT migraphx_status migraphx_sampling_set_seed(migraphx_sampling_t sampling,
                                                             uint64_t value);

// A model and texts that it continues.
typedef struct migraphx_generator *migraphx_generator_t;
typedef const struct migraphx_generator *const_migraphx_generator_t;
// Makes one from a program that was read with sizes left open and is not compiled; it stays the
// caller's, as it was. `options` may be NULL.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_generator_create(migraphx_generator_t *out, const_migraphx_program_t program,
                          const_migraphx_generator_options_t options);
// Makes one from a folder as ONNX Runtime GenAI, Optimum and mobius write it. What it says yields to
// `options`, which may be NULL.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_load(
    migraphx_generator_t *out, const char *folder, const_migraphx_generator_options_t options);
// Makes another one of the same model, for another thread: weights are shared, texts are its own.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_share(migraphx_generator_t *out,
                                                           const_migraphx_generator_t generator);
// Ends it with all its texts.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_destroy(migraphx_generator_t generator);
// Writes how many tokens the model knows.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_generator_vocabulary(size_t *out, const_migraphx_generator_t generator);
// Writes the most tokens that a text may have; 0: no limit is known.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_context(size_t *out,
                                                             const_migraphx_generator_t generator);
// Writes whether a token ends an answer.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_is_end(bool *out,
                                                            const_migraphx_generator_t generator,
                                                            int64_t token);
// Makes a copy of how new texts choose their tokens, as the folder says.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_sampling(migraphx_sampling_t *out,
                                                              const_migraphx_generator_t generator);

// Writes the token that a text of a model with an encoder begins with; -1: the folder does not say.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_start(int64_t *out,
                                                           const_migraphx_generator_t generator);
// Makes the shapes of the inputs of the model's encoder, by name; none where it has no encoder.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_source_shapes(
    migraphx_program_parameter_shapes_t *out, const_migraphx_generator_t generator);

// Says what a text is about, for a model with an encoder (speech, a picture, a text to translate):
// runs the encoder on these inputs. Comes before the text's first token runs; a later one begins
// its tokens anew with what it says. "attention_mask" may be left out: nothing is hidden then.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_set_source(
    migraphx_generator_t generator, size_t text, const_migraphx_program_parameters_t inputs);
// Begins a text without tokens; *text is its number until it is removed.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_add(size_t *text,
                                                         migraphx_generator_t generator);
// Begins a text with the first `size` tokens of another one, whose cache it shares.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_fork(size_t *text,
                                                          migraphx_generator_t generator,
                                                          size_t from, size_t size);
// Ends a text.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_remove(migraphx_generator_t generator,
                                                            size_t text);
// Appends tokens; they are run when the next token or the scores are asked for.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_append(migraphx_generator_t generator,
                                                            size_t text, const int64_t *tokens,
                                                            size_t size);
// Takes tokens back: the first `size` stay. What follows is as if the others had never been.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_rewind(migraphx_generator_t generator,
                                                            size_t text, size_t size);
// Writes how many tokens the text has.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_size(size_t *out,
                                                          migraphx_generator_t generator,
                                                          size_t text);
// Writes its first `size` tokens.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_tokens(int64_t *out,
                                                            migraphx_generator_t generator,
                                                            size_t text, size_t size);
// Sets how its next tokens are chosen; the settings are copied.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_set_sampling(
    migraphx_generator_t generator, size_t text, const_migraphx_sampling_t sampling);
// Sets what is added to the scores of its next tokens, a value for every token of the vocabulary,
// copied; minus infinity forbids one. NULL: nothing is added.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_set_bias(migraphx_generator_t generator,
                                                              size_t text, const float *values,
                                                              size_t size);
// Lets runs of the text take up to `most` tokens more (15) that are guessed: what followed its last
// ones where it had them before, or what the draft says. Those that the text would have had anyway
// are kept for later calls; nothing but time changes. 0, the default, guesses none.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_set_guesses(migraphx_generator_t generator,
                                                                 size_t text, size_t most);
// Has a smaller model of the same tokens guess for all texts; NULL: none. Its weights are shared.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_set_draft(migraphx_generator_t generator,
                                                               const_migraphx_generator_t draft);
// Chooses the next token of each of these texts and appends it: tokens[i] is that of texts[i]. They
// run together where the model can; either all get a token or none.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_next(int64_t *tokens,
                                                          migraphx_generator_t generator,
                                                          const size_t *texts, size_t size);
// Writes the scores of what may follow the text, as the model gives them, `size` of them: as many as
// the vocabulary.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_logits(float *out,
                                                            migraphx_generator_t generator,
                                                            size_t text, size_t size);
// Writes a number by its name: "prompt_tokens", "prompt_seconds", "answer_tokens",
// "answer_seconds", "guessed_tokens", "right_tokens" (of these) and "runs" of what was done so far,
// "weight_bytes" and "state_bytes" of what is held.
MIGRAPHX_C_EXPORT migraphx_status migraphx_generator_statistic(double *out,
                                                               migraphx_generator_t generator,
                                                               const char *name);

// --- options ---

// Sets how many threads a run uses; 0, the default, stands for as many as the process may use.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_compile_options_set_threads(migraphx_compile_options_t compile_options, size_t value);
// Chooses an instruction set of the CPU target, "generic", "avx2", "avx512" and others; NULL, the
// default, stands for the best of the machine.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_compile_options_set_isa(migraphx_compile_options_t compile_options, const char *name);
// Names the file that keeps what tuning measured; NULL, the default, keeps nothing.
MIGRAPHX_C_EXPORT migraphx_status migraphx_compile_options_set_tuning_cache(
    migraphx_compile_options_t compile_options, const char *filename);
// Compiling fails where the cache does not know the fastest kernel; nothing is measured.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_compile_options_set_tuning_strict(migraphx_compile_options_t compile_options, bool value);
// Has measuring end after so many seconds, the cost model choosing the rest; 0, the default,
// measures all.
MIGRAPHX_C_EXPORT migraphx_status migraphx_compile_options_set_tuning_seconds(
    migraphx_compile_options_t compile_options, double seconds);
// Called by the thread that compiles after every problem measured: which one that was, how many
// they are, for how many seconds in all, and which share of the program is done, from 0 to 1.
typedef void (*migraphx_tuning_callback_t)(void *data, const char *problem, size_t measured,
                                           double seconds, double share);
// Has a function told how far tuning is; NULL, the default, tells nobody.
MIGRAPHX_C_EXPORT migraphx_status migraphx_compile_options_set_tuning_progress(
    migraphx_compile_options_t compile_options, migraphx_tuning_callback_t callback, void *data);
// A size that the model leaves open and that was met before gets a plan of its own; where that is
// made. Results do not depend on it.
typedef enum {
    migraphx_specialise_auto,       // background with several threads, else in_call
    migraphx_specialise_never,      // but for sizes named as optimal, whose plans compiling makes
    migraphx_specialise_in_call,    // by the run that meets the size again
    migraphx_specialise_background, // by a thread of the program's own, while runs go on
} migraphx_specialise_t;
// Chooses where plans for sizes met at run time are made; migraphx_specialise_auto is the default.
MIGRAPHX_C_EXPORT migraphx_status migraphx_compile_options_set_specialise(
    migraphx_compile_options_t compile_options, migraphx_specialise_t mode);
// Sets the most bytes that such plans take together; beyond it the least recently used go. 0 stands
// for 256 MiB.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_compile_options_set_plan_bytes(migraphx_compile_options_t compile_options, size_t value);
// From a program that is compiled with sizes left open (and as it was compiled): one for these
// lengths of its inputs, which shares its weights and lives by itself. `lens` has the lengths of all
// the inputs named, one after the other, `ranks` how many each has; open axes of one name have one
// length. What is not in its range is refused.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_specialise(migraphx_program_t *out,
                                                              const_migraphx_program_t program,
                                                              const char *const *names,
                                                              const size_t *lens,
                                                              const size_t *ranks, size_t count);
// Of target "gpu": lets products, convolutions and attention of floats round what they multiply to
// 10 bits behind the point (TF32), where the card is faster with it.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_compile_options_set_tf32(migraphx_compile_options_t compile_options, bool value);
// The same for convolutions alone, as PyTorch has it unless it is told otherwise.
MIGRAPHX_C_EXPORT migraphx_status migraphx_compile_options_set_tf32_convolutions(
    migraphx_compile_options_t compile_options, bool value);
// Of target "gpu": who computes products and convolutions. "own": the engine's kernels alone;
// "cublaslt", "hipblaslt", "rocblas", "cudnn" or "miopen": that library where it can; "auto" and NULL:
// such libraries are candidates where kernels are measured, and otherwise not opened.
MIGRAPHX_C_EXPORT migraphx_status migraphx_compile_options_set_gemm_provider(
    migraphx_compile_options_t compile_options, const char *name);
// Has the reference target compute floats as doubles.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_compile_options_set_compute_double(migraphx_compile_options_t compile_options, bool value);
// Leaves out a pass of the target; a name that no pass has is an error.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_compile_options_disable_pass(migraphx_compile_options_t compile_options, const char *name);
// Called after every pass with its name, its time and whether it changed anything; the program may
// be printed but not kept.
typedef void (*migraphx_pass_callback_t)(void *data, const char *pass,
                                         const_migraphx_program_t program, bool changed,
                                         double microseconds);
// Sets what is called after every pass, with the caller's `data`; NULL calls nothing.
MIGRAPHX_C_EXPORT migraphx_status migraphx_compile_options_set_trace(
    migraphx_compile_options_t compile_options, migraphx_pass_callback_t callback, void *data);

// Has operators that the engine does not know become `unknown:<name>` instructions instead of an
// error.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_onnx_options_set_skip_unknown_operators(migraphx_onnx_options_t onnx_options, bool value);
// Sets the size or range of a dimension that the model has this name for.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_options_set_dim_param(
    migraphx_onnx_options_t onnx_options, const char *name, const_migraphx_dynamic_dimension_t dd);
// Keeps dimensions that the model leaves open as ranges instead of making them 1.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_onnx_options_set_dynamic_dims(migraphx_onnx_options_t onnx_options, bool value);
// Sets the most bytes that one tensor of a model may take; 0 keeps the default, 4 GiB.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_onnx_options_set_limit_bytes(migraphx_onnx_options_t onnx_options, size_t value);
// Sets the most seconds that import may take; 0 keeps the default, 60.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_onnx_options_set_limit_seconds(migraphx_onnx_options_t onnx_options, double value);

#ifdef __cplusplus
}
#endif

#include <migraphx/host.h>

#endif
