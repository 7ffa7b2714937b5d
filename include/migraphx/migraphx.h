// SPDX-License-Identifier: MIT
// The C interface of the engine, compatible in source and binary with MIGraphX 2.16.
//
// How to read it: every function returns a status. What it makes comes back through its first
// parameter. A handle from a *_create, *_run, parse_*, load or module_add_* function is the
// caller's, who ends it with the type's *_destroy; what a *_get, *_shape, *_lengths, *_names or
// *_buffer function gives is borrowed from the handle it was asked of. Const handles are never
// written to.
//
// Holds: a NULL handle or a NULL place for a result gives migraphx_status_bad_param. Nothing prints
// (the functions named *_print excepted), aborts or exits. The text behind a failing status is kept
// per thread: migraphx_get_last_error in extensions.h. Handles are not locked; reading one handle
// from several threads is fine, and so is running one compiled program from several threads.
#ifndef MIGRAPHX_GUARD_MIGRAPHX_H
#define MIGRAPHX_GUARD_MIGRAPHX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <migraphx/api/export.h>

// m(name, C++ type) for every scalar type, in the order of the enumeration.
#define MIGRAPHX_SHAPE_VISIT_TYPES(m)                                                              \
    m(bool_type, bool) m(half_type, half) m(float_type, float) m(double_type, double)              \
        m(uint8_type, uint8_t) m(int8_type, int8_t) m(uint16_type, uint16_t)                       \
            m(int16_type, int16_t) m(int32_type, int32_t) m(int64_type, int64_t)                   \
                m(uint32_type, uint32_t) m(uint64_type, uint64_t)                                  \
                    m(fp8e4m3fnuz_type, migraphx::fp8::fp8e4m3fnuz)                                \
                        m(fp8e4m3fn_type, migraphx::fp8::fp8e4m3fn)                                \
                            m(fp8e5m2_type, migraphx::fp8::fp8e5m2) m(bf16_type, bf16)             \
                                m(fp8e5m2fnuz_type, migraphx::fp8::fp8e5m2fnuz)
#define MIGRAPHX_SHAPE_GENERATE_ENUM_TYPES(x, t) migraphx_shape_##x,

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    migraphx_status_success = 0,
    migraphx_status_bad_param = 1,
    migraphx_status_unknown_target = 3,
    migraphx_status_unknown_error = 4
} migraphx_status;

typedef enum {
    migraphx_shape_tuple_type,
    migraphx_shape_fp4x2_type,
    MIGRAPHX_SHAPE_VISIT_TYPES(MIGRAPHX_SHAPE_GENERATE_ENUM_TYPES)
} migraphx_shape_datatype_t;

// --- handles ---
typedef struct migraphx_optimals *migraphx_optimals_t;
typedef const struct migraphx_optimals *const_migraphx_optimals_t;
typedef struct migraphx_dynamic_dimension *migraphx_dynamic_dimension_t;
typedef const struct migraphx_dynamic_dimension *const_migraphx_dynamic_dimension_t;
typedef struct migraphx_dynamic_dimensions *migraphx_dynamic_dimensions_t;
typedef const struct migraphx_dynamic_dimensions *const_migraphx_dynamic_dimensions_t;
typedef struct migraphx_shape *migraphx_shape_t;
typedef const struct migraphx_shape *const_migraphx_shape_t;
typedef struct migraphx_argument *migraphx_argument_t;
typedef const struct migraphx_argument *const_migraphx_argument_t;
typedef struct migraphx_target *migraphx_target_t;
typedef const struct migraphx_target *const_migraphx_target_t;
typedef struct migraphx_program_parameter_shapes *migraphx_program_parameter_shapes_t;
typedef const struct migraphx_program_parameter_shapes *const_migraphx_program_parameter_shapes_t;
typedef struct migraphx_program_parameters *migraphx_program_parameters_t;
typedef const struct migraphx_program_parameters *const_migraphx_program_parameters_t;
typedef struct migraphx_arguments *migraphx_arguments_t;
typedef const struct migraphx_arguments *const_migraphx_arguments_t;
typedef struct migraphx_shapes *migraphx_shapes_t;
typedef const struct migraphx_shapes *const_migraphx_shapes_t;
typedef struct migraphx_instruction *migraphx_instruction_t;
typedef const struct migraphx_instruction *const_migraphx_instruction_t;
typedef struct migraphx_instructions *migraphx_instructions_t;
typedef const struct migraphx_instructions *const_migraphx_instructions_t;
typedef struct migraphx_modules *migraphx_modules_t;
typedef const struct migraphx_modules *const_migraphx_modules_t;
typedef struct migraphx_module *migraphx_module_t;
typedef const struct migraphx_module *const_migraphx_module_t;
typedef struct migraphx_trace_info *migraphx_trace_info_t;
typedef const struct migraphx_trace_info *const_migraphx_trace_info_t;
typedef struct migraphx_program *migraphx_program_t;
typedef const struct migraphx_program *const_migraphx_program_t;
typedef struct migraphx_operation *migraphx_operation_t;
typedef const struct migraphx_operation *const_migraphx_operation_t;
typedef struct migraphx_onnx_options *migraphx_onnx_options_t;
typedef const struct migraphx_onnx_options *const_migraphx_onnx_options_t;
typedef struct migraphx_file_options *migraphx_file_options_t;
typedef const struct migraphx_file_options *const_migraphx_file_options_t;
typedef struct migraphx_compile_options *migraphx_compile_options_t;
typedef const struct migraphx_compile_options *const_migraphx_compile_options_t;
typedef struct migraphx_tf_options *migraphx_tf_options_t;
typedef const struct migraphx_tf_options *const_migraphx_tf_options_t;
typedef struct migraphx_quantize_op_names *migraphx_quantize_op_names_t;
typedef const struct migraphx_quantize_op_names *const_migraphx_quantize_op_names_t;
typedef struct migraphx_quantize_int8_options *migraphx_quantize_int8_options_t;
typedef const struct migraphx_quantize_int8_options *const_migraphx_quantize_int8_options_t;
typedef struct migraphx_quantize_fp8_options *migraphx_quantize_fp8_options_t;
typedef const struct migraphx_quantize_fp8_options *const_migraphx_quantize_fp8_options_t;
typedef struct migraphx_context *migraphx_context_t;
typedef const struct migraphx_context *const_migraphx_context_t;
typedef struct migraphx_experimental_custom_op *migraphx_experimental_custom_op_t;
typedef const struct migraphx_experimental_custom_op *const_migraphx_experimental_custom_op_t;

typedef migraphx_status (*migraphx_trace_callback_t)(migraphx_trace_info_t info, void *data);

// --- dynamic dimensions: a length that is a range, with sizes worth compiling for ---
// A batch of 1 to 8 images, of which 1 and 8 get plans of their own:
//
//     migraphx_optimals_create(&common, (size_t[]){1, 8}, 2);
//     migraphx_dynamic_dimension_create_min_max_optimals(&batch, 1, 8, common);
//     migraphx_onnx_options_set_default_dyn_dim_value(options, batch);

MIGRAPHX_C_EXPORT migraphx_status migraphx_optimals_destroy(migraphx_optimals_t optimals);
MIGRAPHX_C_EXPORT migraphx_status migraphx_optimals_assign_to(migraphx_optimals_t output,
                                                              const_migraphx_optimals_t input);
// Makes a list of sizes that are worth a plan of their own; `ptr` may be NULL when `size` is 0.
MIGRAPHX_C_EXPORT migraphx_status migraphx_optimals_create(migraphx_optimals_t *out,
                                                           const size_t *ptr, size_t size);

MIGRAPHX_C_EXPORT migraphx_status
migraphx_dynamic_dimension_destroy(migraphx_dynamic_dimension_t dynamic_dimension);
MIGRAPHX_C_EXPORT migraphx_status migraphx_dynamic_dimension_assign_to(
    migraphx_dynamic_dimension_t output, const_migraphx_dynamic_dimension_t input);
// Makes a length that may be anything from `min` to `max`, both included; equal numbers make it
// fixed.
MIGRAPHX_C_EXPORT migraphx_status migraphx_dynamic_dimension_create_min_max(
    migraphx_dynamic_dimension_t *out, size_t min, size_t max);
// The same with sizes that compiling makes plans for; the list is copied.
MIGRAPHX_C_EXPORT migraphx_status migraphx_dynamic_dimension_create_min_max_optimals(
    migraphx_dynamic_dimension_t *out, size_t min, size_t max, migraphx_optimals_t optimals);
// Writes whether only one length is possible.
MIGRAPHX_C_EXPORT migraphx_status migraphx_dynamic_dimension_is_fixed(
    bool *out, const_migraphx_dynamic_dimension_t dynamic_dimension);
// Writes whether ranges and optimal sizes are the same.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_dynamic_dimension_equal(bool *out, const_migraphx_dynamic_dimension_t dynamic_dimension,
                                 const_migraphx_dynamic_dimension_t x);

MIGRAPHX_C_EXPORT migraphx_status
migraphx_dynamic_dimensions_destroy(migraphx_dynamic_dimensions_t dynamic_dimensions);
MIGRAPHX_C_EXPORT migraphx_status migraphx_dynamic_dimensions_assign_to(
    migraphx_dynamic_dimensions_t output, const_migraphx_dynamic_dimensions_t input);
// Makes a list of `size` ranges, one for each axis of a shape, by copying them.
MIGRAPHX_C_EXPORT migraphx_status migraphx_dynamic_dimensions_create(
    migraphx_dynamic_dimensions_t *out, const const_migraphx_dynamic_dimension_t *ptr, size_t size);
// Writes how many ranges the list has.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_dynamic_dimensions_size(size_t *out, migraphx_dynamic_dimensions_t dynamic_dimensions);
// Gives range number `idx`, which is borrowed from the list.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_dynamic_dimensions_get(const_migraphx_dynamic_dimension_t *out,
                                migraphx_dynamic_dimensions_t dynamic_dimensions, size_t idx);

// --- shapes ---
// Two rows of three floats:
//
//     size_t lengths[] = {2, 3};
//     migraphx_shape_create(&shape, migraphx_shape_float_type, lengths, 2);

MIGRAPHX_C_EXPORT migraphx_status migraphx_shape_destroy(migraphx_shape_t shape);
MIGRAPHX_C_EXPORT migraphx_status migraphx_shape_assign_to(migraphx_shape_t output,
                                                           const_migraphx_shape_t input);
// Makes a shape that is packed and row-major; `lengths_size` 0 makes a scalar.
MIGRAPHX_C_EXPORT migraphx_status migraphx_shape_create(migraphx_shape_t *out,
                                                        migraphx_shape_datatype_t type,
                                                        size_t *lengths, size_t lengths_size);
// Makes a shape that lies in memory with these strides, which count elements, not bytes.
MIGRAPHX_C_EXPORT migraphx_status migraphx_shape_create_with_strides(
    migraphx_shape_t *out, migraphx_shape_datatype_t type, size_t *lengths, size_t lengths_size,
    size_t *strides, size_t strides_size);
// Makes the shape of one value, which shows itself as lengths {1} and strides {0}.
MIGRAPHX_C_EXPORT migraphx_status migraphx_shape_create_scalar(migraphx_shape_t *out,
                                                               migraphx_shape_datatype_t type);
// Makes a shape whose lengths are ranges; the list is copied.
MIGRAPHX_C_EXPORT migraphx_status migraphx_shape_create_dynamic(migraphx_shape_t *out,
                                                                migraphx_shape_datatype_t type,
                                                                migraphx_dynamic_dimensions_t dims);
// Gives the lengths, borrowed from the shape. Those of a dynamic shape are its upper bounds; where
// one has no end the call fails.
MIGRAPHX_C_EXPORT migraphx_status migraphx_shape_lengths(const size_t **out, size_t *out_size,
                                                         const_migraphx_shape_t shape);
// Gives the strides in elements, borrowed from the shape. A dynamic shape has none, and the call
// fails.
MIGRAPHX_C_EXPORT migraphx_status migraphx_shape_strides(const size_t **out, size_t *out_size,
                                                         const_migraphx_shape_t shape);
// Makes a list of the ranges; those of a static shape are fixed.
MIGRAPHX_C_EXPORT migraphx_status migraphx_shape_dyn_dims(migraphx_dynamic_dimensions_t *out,
                                                          const_migraphx_shape_t shape);
// Writes the type of the elements.
MIGRAPHX_C_EXPORT migraphx_status migraphx_shape_type(migraphx_shape_datatype_t *out,
                                                      const_migraphx_shape_t shape);
// Writes the number of elements; of a dynamic shape that of the largest tensor it allows.
MIGRAPHX_C_EXPORT migraphx_status migraphx_shape_elements(size_t *out,
                                                          const_migraphx_shape_t shape);
// Writes the number of bytes from the first element to the last, gaps between them included.
MIGRAPHX_C_EXPORT migraphx_status migraphx_shape_bytes(size_t *out, const_migraphx_shape_t shape);
// Writes the number of axes; 1 for a scalar.
MIGRAPHX_C_EXPORT migraphx_status migraphx_shape_ndim(size_t *out, const_migraphx_shape_t shape);
// Writes whether type, lengths and strides, or type and ranges, are the same.
MIGRAPHX_C_EXPORT migraphx_status migraphx_shape_equal(bool *out, const_migraphx_shape_t shape,
                                                       const_migraphx_shape_t x);
// Writes whether the elements lie packed and row-major.
MIGRAPHX_C_EXPORT migraphx_status migraphx_shape_standard(bool *out, const_migraphx_shape_t shape);
// Writes whether a length is a range.
MIGRAPHX_C_EXPORT migraphx_status migraphx_shape_dynamic(bool *out, const_migraphx_shape_t shape);
// Writes where element number `i` in row-major order lies, in elements from the first.
MIGRAPHX_C_EXPORT migraphx_status migraphx_shape_index(size_t *out, const_migraphx_shape_t shape,
                                                       size_t i);

// --- arguments: a shape and the bytes it describes ---
// Over memory of the caller's, without a copy:
//
//     float values[6] = {0};
//     migraphx_argument_create(&argument, shape, values);

MIGRAPHX_C_EXPORT migraphx_status migraphx_argument_destroy(migraphx_argument_t argument);
MIGRAPHX_C_EXPORT migraphx_status migraphx_argument_assign_to(migraphx_argument_t output,
                                                              const_migraphx_argument_t input);
// Makes an argument over a buffer of the caller's, which must outlive the argument and everything
// that shares its bytes.
MIGRAPHX_C_EXPORT migraphx_status migraphx_argument_create(migraphx_argument_t *out,
                                                           const_migraphx_shape_t shape,
                                                           void *buffer);
// Makes an argument with bytes of its own, all zero.
MIGRAPHX_C_EXPORT migraphx_status migraphx_argument_create_empty(migraphx_argument_t *out,
                                                                 const_migraphx_shape_t shape);
// Gives the shape, borrowed from the argument.
MIGRAPHX_C_EXPORT migraphx_status migraphx_argument_shape(const_migraphx_shape_t *out,
                                                          const_migraphx_argument_t argument);
// Gives the address of the first element, borrowed from the argument. It is an address of the card
// for results that stay there.
MIGRAPHX_C_EXPORT migraphx_status migraphx_argument_buffer(char **out,
                                                           const_migraphx_argument_t argument);
// Writes whether shapes and values are the same; floats may differ by a few units in the last
// place.
MIGRAPHX_C_EXPORT migraphx_status migraphx_argument_equal(bool *out,
                                                          const_migraphx_argument_t argument,
                                                          const_migraphx_argument_t x);
// Writes one argument into a file of its own, which migraphx_argument_load reads.
MIGRAPHX_C_EXPORT migraphx_status migraphx_argument_save(const_migraphx_argument_t a,
                                                         const char *filename);
// Reads an argument that migraphx_argument_save wrote.
MIGRAPHX_C_EXPORT migraphx_status migraphx_argument_load(migraphx_argument_t *out,
                                                         const char *filename);
// Makes pseudo-random values that depend on the seed alone: floats are multiples of 1/16 in [-1,
// 1).
MIGRAPHX_C_EXPORT migraphx_status migraphx_argument_generate(migraphx_argument_t *out,
                                                             const_migraphx_shape_t s, size_t seed);

// --- targets ---
MIGRAPHX_C_EXPORT migraphx_status migraphx_target_destroy(migraphx_target_t target);
MIGRAPHX_C_EXPORT migraphx_status migraphx_target_assign_to(migraphx_target_t output,
                                                            const_migraphx_target_t input);
// Finds a target by its name: "ref", "cpu" or "gpu". One that is not built in gives
// migraphx_status_unknown_target, and so does "gpu" on a machine without a card; the error's text
// then says what each driver lacks.
MIGRAPHX_C_EXPORT migraphx_status migraphx_target_create(migraphx_target_t *out, const char *name);

// --- what goes into and comes out of a program ---
// Inputs go in by name, results come out by position:
//
//     migraphx_program_parameters_create(&parameters);
//     migraphx_program_parameters_add(parameters, "x", argument);
//     migraphx_program_run(&results, program, parameters);
//     migraphx_arguments_get(&first, results, 0);

MIGRAPHX_C_EXPORT migraphx_status migraphx_program_parameter_shapes_destroy(
    migraphx_program_parameter_shapes_t program_parameter_shapes);
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_parameter_shapes_assign_to(
    migraphx_program_parameter_shapes_t output, const_migraphx_program_parameter_shapes_t input);
// Writes how many parameters there are.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_parameter_shapes_size(
    size_t *out, migraphx_program_parameter_shapes_t program_parameter_shapes);
// Gives the shape of the parameter of this name, borrowed from the list.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_parameter_shapes_get(
    const_migraphx_shape_t *out, migraphx_program_parameter_shapes_t program_parameter_shapes,
    const char *name);
// Writes the names, as many as there are parameters, into an array of the caller's, in the order of
// the model; they are borrowed.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_parameter_shapes_names(
    const char **out, migraphx_program_parameter_shapes_t program_parameter_shapes);

MIGRAPHX_C_EXPORT migraphx_status
migraphx_program_parameters_destroy(migraphx_program_parameters_t program_parameters);
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_parameters_assign_to(
    migraphx_program_parameters_t output, const_migraphx_program_parameters_t input);
// Makes an empty list of parameters for a run.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_program_parameters_create(migraphx_program_parameters_t *out);
// Adds a value under a name, sharing the argument's bytes; a name that is given twice keeps the
// later value.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_program_parameters_add(migraphx_program_parameters_t program_parameters, const char *name,
                                const_migraphx_argument_t argument);

MIGRAPHX_C_EXPORT migraphx_status migraphx_arguments_destroy(migraphx_arguments_t arguments);
MIGRAPHX_C_EXPORT migraphx_status migraphx_arguments_assign_to(migraphx_arguments_t output,
                                                               const_migraphx_arguments_t input);
// Writes how many results there are.
MIGRAPHX_C_EXPORT migraphx_status migraphx_arguments_size(size_t *out,
                                                          migraphx_arguments_t arguments);
// Gives result number `idx`, borrowed from the list.
MIGRAPHX_C_EXPORT migraphx_status migraphx_arguments_get(const_migraphx_argument_t *out,
                                                         migraphx_arguments_t arguments,
                                                         size_t idx);

MIGRAPHX_C_EXPORT migraphx_status migraphx_shapes_destroy(migraphx_shapes_t shapes);
MIGRAPHX_C_EXPORT migraphx_status migraphx_shapes_assign_to(migraphx_shapes_t output,
                                                            const_migraphx_shapes_t input);
// Writes how many shapes there are.
MIGRAPHX_C_EXPORT migraphx_status migraphx_shapes_size(size_t *out, migraphx_shapes_t shapes);
// Gives shape number `idx`, borrowed from the list.
MIGRAPHX_C_EXPORT migraphx_status migraphx_shapes_get(const_migraphx_shape_t *out,
                                                      migraphx_shapes_t shapes, size_t idx);

// --- building modules ---
// A program that gives relu(x):
//
//     migraphx_program_create(&program);
//     migraphx_program_get_main_module(&m, program);
//     migraphx_module_add_parameter(&x, m, "x", shape);
//     migraphx_operation_create(&relu, "relu", NULL);
//     migraphx_instructions_create(&inputs, (const_migraphx_instruction_t[]){x}, 1);
//     migraphx_module_add_instruction(&y, m, relu, inputs);
//     migraphx_instructions_create(&outputs, (const_migraphx_instruction_t[]){y}, 1);
//     migraphx_module_add_return(&ret, m, outputs);

MIGRAPHX_C_EXPORT migraphx_status migraphx_instruction_destroy(migraphx_instruction_t instruction);
MIGRAPHX_C_EXPORT migraphx_status
migraphx_instruction_assign_to(migraphx_instruction_t output, const_migraphx_instruction_t input);
MIGRAPHX_C_EXPORT migraphx_status
migraphx_instructions_destroy(migraphx_instructions_t instructions);
MIGRAPHX_C_EXPORT migraphx_status migraphx_instructions_assign_to(
    migraphx_instructions_t output, const_migraphx_instructions_t input);
// Makes a list of instructions, the inputs of another one.
MIGRAPHX_C_EXPORT migraphx_status migraphx_instructions_create(
    migraphx_instructions_t *out, const const_migraphx_instruction_t *ptr, size_t size);
MIGRAPHX_C_EXPORT migraphx_status migraphx_modules_destroy(migraphx_modules_t modules);
MIGRAPHX_C_EXPORT migraphx_status migraphx_modules_assign_to(migraphx_modules_t output,
                                                             const_migraphx_modules_t input);
// Makes a list of modules, the bodies of an instruction such as `if`.
MIGRAPHX_C_EXPORT migraphx_status migraphx_modules_create(migraphx_modules_t *out,
                                                          migraphx_module_t *ptr, size_t size);
// Makes a module that belongs to no program; migraphx_module_destroy of extensions.h ends it.
MIGRAPHX_C_EXPORT migraphx_status migraphx_module_create(migraphx_module_t *out, char *name);
// Writes the lines of the module to stdout.
MIGRAPHX_C_EXPORT migraphx_status migraphx_module_print(const_migraphx_module_t module);
// Adds an instruction at the end of the module. Its shape follows from the operator and its inputs,
// so inputs that do not fit are refused here.
MIGRAPHX_C_EXPORT migraphx_status migraphx_module_add_instruction(migraphx_instruction_t *out,
                                                                  migraphx_module_t module,
                                                                  migraphx_operation_t op,
                                                                  migraphx_instructions_t args);
// The same for operators with bodies: `if`, `loop`, `scan`.
MIGRAPHX_C_EXPORT migraphx_status migraphx_module_add_instruction_with_mod_args(
    migraphx_instruction_t *out, migraphx_module_t module, migraphx_operation_t op,
    migraphx_instructions_t args, migraphx_modules_t module_refs);
// Adds a constant, copying as many bytes as the shape has.
MIGRAPHX_C_EXPORT migraphx_status migraphx_module_add_literal(migraphx_instruction_t *out,
                                                              migraphx_module_t module,
                                                              const_migraphx_shape_t shape,
                                                              const char *buffer);
// Adds a parameter, which every run gives a value by this name.
MIGRAPHX_C_EXPORT migraphx_status migraphx_module_add_parameter(migraphx_instruction_t *out,
                                                                migraphx_module_t module,
                                                                const char *name,
                                                                const_migraphx_shape_t shape);
// Makes these values the results of the module, instead of those of a return that is there already.
MIGRAPHX_C_EXPORT migraphx_status migraphx_module_add_return(migraphx_instruction_t *out,
                                                             migraphx_module_t module,
                                                             migraphx_instructions_t args);
// Adds memory for a result, as a custom operator takes it for its last input.
MIGRAPHX_C_EXPORT migraphx_status migraphx_module_add_allocation(migraphx_instruction_t *out,
                                                                 migraphx_module_t module,
                                                                 const_migraphx_shape_t s);

MIGRAPHX_C_EXPORT migraphx_status migraphx_operation_destroy(migraphx_operation_t operation);
MIGRAPHX_C_EXPORT migraphx_status migraphx_operation_assign_to(migraphx_operation_t output,
                                                               const_migraphx_operation_t input);
// Makes an operator. `attributes` is a printf format whose result is relaxed JSON, such as "{axis:
// 1, padding: [%i, %i]}"; NULL means the defaults. `migraphx-driver op NAME` lists an operator's
// attributes.
MIGRAPHX_C_EXPORT migraphx_status migraphx_operation_create(migraphx_operation_t *out,
                                                            const char *name,
                                                            const char *attributes, ...);
// Writes the name, cut to `out_size` bytes with the zero that ends it.
MIGRAPHX_C_EXPORT migraphx_status migraphx_operation_name(char *out, size_t out_size,
                                                          migraphx_operation_t operation);

// --- programs ---
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_destroy(migraphx_program_t program);
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_assign_to(migraphx_program_t output,
                                                             const_migraphx_program_t input);
// Makes an empty program.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_create(migraphx_program_t *out);
// Gives the module that runs, borrowed from the program.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_get_main_module(migraphx_module_t *out,
                                                                   migraphx_program_t program);
// Makes a further module, a body for `if` or `loop`, borrowed from the program.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_create_module(migraphx_module_t *out,
                                                                 migraphx_program_t program,
                                                                 const char *name);
// Compiles the program for a target, once. `options` NULL means the defaults. A compiled program
// may be run by any number of threads at once. When it fails the program is as it was.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_compile(migraphx_program_t program,
                                                           migraphx_target_t target,
                                                           migraphx_compile_options_t options);
// Makes a list of names and shapes of the parameters.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_get_parameter_shapes(
    migraphx_program_parameter_shapes_t *out, migraphx_program_t program);
// Makes a list of the shapes of the results, in their order.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_get_output_shapes(migraphx_shapes_t *out,
                                                                     migraphx_program_t program);
// Writes the text of the program to stdout.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_print(const_migraphx_program_t program);
// Puts the instructions into a canonical order that depends on structure alone.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_sort(migraphx_program_t program);
// Runs the program. Every parameter needs a value of its type, within its sizes; names that the
// program does not know are ignored. The results are the caller's and outlive the program.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_run(migraphx_arguments_t *out,
                                                       migraphx_program_t program,
                                                       migraphx_program_parameters_t params);
// Runs the program in order with a queue of the device: `s` is the queue, `name` its C type. Where
// nothing of the program runs on the host the call returns before the work is done; on host targets
// it returns when all is done.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_run_async(migraphx_arguments_t *out,
                                                             migraphx_program_t program,
                                                             migraphx_program_parameters_t params,
                                                             void *s, const char *name);
// Runs the program and calls back after every instruction of the main module that computes
// something; a status other than success ends the run with that status.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_run_trace(migraphx_arguments_t *out,
                                                             migraphx_program_t program,
                                                             migraphx_program_parameters_t params,
                                                             migraphx_trace_callback_t callback,
                                                             void *data);
// Writes whether both programs print the same text; large literals are not compared.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_equal(bool *out,
                                                         const_migraphx_program_t program,
                                                         const_migraphx_program_t x);
// Gives the context of a compiled program, borrowed from it.
MIGRAPHX_C_EXPORT migraphx_status migraphx_program_experimental_get_context(
    migraphx_context_t *out, const_migraphx_program_t program);

MIGRAPHX_C_EXPORT migraphx_status migraphx_trace_info_destroy(migraphx_trace_info_t trace_info);
MIGRAPHX_C_EXPORT migraphx_status migraphx_trace_info_assign_to(migraphx_trace_info_t output,
                                                                const_migraphx_trace_info_t input);
// Makes an empty handle, which migraphx_trace_info_assign_to fills in a callback that wants to keep
// what it is told.
MIGRAPHX_C_EXPORT migraphx_status migraphx_trace_info_create(migraphx_trace_info_t *out);
// Writes the number of the instruction in the main module.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_trace_info_get_index(size_t *out, const_migraphx_trace_info_t trace_info);
// Gives the operator as it prints, borrowed.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_trace_info_get_name(const char **out, const_migraphx_trace_info_t trace_info);
// Gives a copy of the instruction's value on the host, borrowed.
MIGRAPHX_C_EXPORT migraphx_status migraphx_trace_info_get_result(
    const_migraphx_argument_t *out, const_migraphx_trace_info_t trace_info);

// --- files ---
// A program that was compiled once is loaded without being compiled again on a machine of its kind:
//
//     migraphx_save(program, "model.mxr", NULL);
//     migraphx_load(&program, "model.mxr", NULL);

MIGRAPHX_C_EXPORT migraphx_status
migraphx_file_options_destroy(migraphx_file_options_t file_options);
MIGRAPHX_C_EXPORT migraphx_status migraphx_file_options_assign_to(
    migraphx_file_options_t output, const_migraphx_file_options_t input);
// Makes the default options of files.
MIGRAPHX_C_EXPORT migraphx_status migraphx_file_options_create(migraphx_file_options_t *out);
// Chooses "msgpack", the default, or "json".
MIGRAPHX_C_EXPORT migraphx_status
migraphx_file_options_set_file_format(migraphx_file_options_t file_options, const char *format);
// Reads a program that migraphx_save wrote; `options` NULL means the defaults.
MIGRAPHX_C_EXPORT migraphx_status migraphx_load(migraphx_program_t *out, const char *name,
                                                migraphx_file_options_t options);
// Writes a program into a file, which takes its place whole or not at all; `options` NULL means the
// defaults. A compiled program keeps its packed weights and what tuning found.
MIGRAPHX_C_EXPORT migraphx_status migraphx_save(migraphx_program_t p, const char *name,
                                                migraphx_file_options_t options);

// --- ONNX ---
// A model whose input is given another size than the file says:
//
//     size_t lengths[] = {4, 3, 224, 224};
//     migraphx_onnx_options_create(&options);
//     migraphx_onnx_options_set_input_parameter_shape(options, "input", lengths, 4);
//     migraphx_parse_onnx(&program, "model.onnx", options);

MIGRAPHX_C_EXPORT migraphx_status
migraphx_onnx_options_destroy(migraphx_onnx_options_t onnx_options);
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_options_assign_to(
    migraphx_onnx_options_t output, const_migraphx_onnx_options_t input);
// Makes the default options of ONNX import.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_options_create(migraphx_onnx_options_t *out);
// Gives an input these lengths, whatever the model says; `dims_size` 0 makes it a scalar.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_options_set_input_parameter_shape(
    migraphx_onnx_options_t onnx_options, const char *name, size_t *dims, size_t dims_size);
// Gives an input these ranges.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_options_set_dyn_input_parameter_shape(
    migraphx_onnx_options_t onnx_options, const char *name, migraphx_dynamic_dimensions_t dims);
// Sets the size of dimensions that the model leaves open; 0, the default, sets none, and they
// become 1.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_onnx_options_set_default_dim_value(migraphx_onnx_options_t onnx_options, size_t value);
// Sets the range of dimensions that the model leaves open; {1, 1}, the default, sets none.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_options_set_default_dyn_dim_value(
    migraphx_onnx_options_t onnx_options, const_migraphx_dynamic_dimension_t dd);
// Sets how many rounds a loop has whose trip count is not in the model; 10, the default, leaves
// that to the model.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_options_set_default_loop_iterations(
    migraphx_onnx_options_t onnx_options, int64_t value);
// Sets the most rounds that any loop may have; the default, 65535, holds for loops without a trip
// count alone.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_options_set_limit_loop_iterations(
    migraphx_onnx_options_t onnx_options, int64_t value);
// Names the directory of external data; without it that is the directory of the model file.
MIGRAPHX_C_EXPORT migraphx_status migraphx_onnx_options_set_external_data_path(
    migraphx_onnx_options_t onnx_options, const char *external_data_path);
// Keeps the names of the model's nodes on the instructions, which print them after " # ".
MIGRAPHX_C_EXPORT migraphx_status
migraphx_onnx_options_set_use_debug_symbols(migraphx_onnx_options_t onnx_options, bool value);
// Reads an ONNX model from a file, which stays mapped while the program uses its weights. `options`
// NULL means the defaults.
MIGRAPHX_C_EXPORT migraphx_status migraphx_parse_onnx(migraphx_program_t *out, const char *name,
                                                      migraphx_onnx_options_t options);
// Reads an ONNX model from memory, copying what it needs of the bytes.
MIGRAPHX_C_EXPORT migraphx_status migraphx_parse_onnx_buffer(migraphx_program_t *out,
                                                             const void *data, size_t size,
                                                             migraphx_onnx_options_t options);
// Gives the name of an operator that import knows, in alphabetical order; it is a constant.
MIGRAPHX_C_EXPORT migraphx_status migraphx_get_onnx_operator_name_at_index(char **out,
                                                                           size_t index);
// Writes how many ONNX operators import knows.
MIGRAPHX_C_EXPORT migraphx_status migraphx_get_onnx_operators_size(size_t *out);

// --- TensorFlow ---
MIGRAPHX_C_EXPORT migraphx_status migraphx_tf_options_destroy(migraphx_tf_options_t tf_options);
MIGRAPHX_C_EXPORT migraphx_status migraphx_tf_options_assign_to(migraphx_tf_options_t output,
                                                                const_migraphx_tf_options_t input);
// Makes the default options of TensorFlow import.
MIGRAPHX_C_EXPORT migraphx_status migraphx_tf_options_create(migraphx_tf_options_t *out);
// Says whether the graph's images have their channels last; false is the default. Then inputs and
// results of rank 4 are parameters and results of the program in the order N, C, H, W.
MIGRAPHX_C_EXPORT migraphx_status migraphx_tf_options_set_nhwc(migraphx_tf_options_t tf_options,
                                                               bool is_nhwc);
// Gives a placeholder these lengths.
MIGRAPHX_C_EXPORT migraphx_status migraphx_tf_options_set_input_parameter_shape(
    migraphx_tf_options_t tf_options, const char *name, size_t *dims, size_t dims_size);
// Sets the size of dimensions that the graph leaves open, the batch above all.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_tf_options_set_default_dim_value(migraphx_tf_options_t tf_options, size_t value);
// Names the nodes whose values are the results; without names those are the nodes that no other
// reads.
MIGRAPHX_C_EXPORT migraphx_status migraphx_tf_options_set_output_names(
    migraphx_tf_options_t tf_options, const char **names, size_t names_size);
// Reads a frozen graph, or the folder of a SavedModel.
MIGRAPHX_C_EXPORT migraphx_status migraphx_parse_tf(migraphx_program_t *out, const char *name,
                                                    migraphx_tf_options_t options);
// Reads a frozen graph from memory.
MIGRAPHX_C_EXPORT migraphx_status migraphx_parse_tf_buffer(migraphx_program_t *out,
                                                           const void *data, size_t size,
                                                           migraphx_tf_options_t options);

// --- options of compilation ---
// Compiling with every kernel measured:
//
//     migraphx_compile_options_create(&options);
//     migraphx_compile_options_set_exhaustive_tune_flag(options, true);
//     migraphx_program_compile(program, target, options);

MIGRAPHX_C_EXPORT migraphx_status
migraphx_compile_options_destroy(migraphx_compile_options_t compile_options);
MIGRAPHX_C_EXPORT migraphx_status migraphx_compile_options_assign_to(
    migraphx_compile_options_t output, const_migraphx_compile_options_t input);
// Makes the default options of compilation.
MIGRAPHX_C_EXPORT migraphx_status migraphx_compile_options_create(migraphx_compile_options_t *out);
// Has every run copy inputs to the device and results back; false is the default.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_compile_options_set_offload_copy(migraphx_compile_options_t compile_options, bool value);
// Allows what may change infinities, NaN and the last digits, as docs/api.md lists it; true is the
// default.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_compile_options_set_fast_math(migraphx_compile_options_t compile_options, bool value);
// Measures the kernels that there are for every instruction instead of estimating them; false is
// the default.
MIGRAPHX_C_EXPORT migraphx_status migraphx_compile_options_set_exhaustive_tune_flag(
    migraphx_compile_options_t compile_options, bool value);

// --- quantization, before compilation ---
// Products and convolutions in 8 bits, by one sample:
//
//     migraphx_quantize_int8_options_create(&options);
//     migraphx_quantize_int8_options_add_calibration_data(options, parameters);
//     migraphx_quantize_int8(program, target, options);

MIGRAPHX_C_EXPORT migraphx_status
migraphx_quantize_op_names_destroy(migraphx_quantize_op_names_t quantize_op_names);
MIGRAPHX_C_EXPORT migraphx_status migraphx_quantize_op_names_assign_to(
    migraphx_quantize_op_names_t output, const_migraphx_quantize_op_names_t input);
// Makes an empty list of operators to quantize; an empty list means all.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_quantize_op_names_create(migraphx_quantize_op_names_t *out);
// Adds the name of an operator, such as "dot".
MIGRAPHX_C_EXPORT migraphx_status
migraphx_quantize_op_names_add(migraphx_quantize_op_names_t quantize_op_names, const char *name);
// Has the operators of these names compute in half precision.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_quantize_fp16_with_op_names(migraphx_program_t prog, migraphx_quantize_op_names_t name);
// Has the whole program compute in half precision; parameters and results keep their types.
MIGRAPHX_C_EXPORT migraphx_status migraphx_quantize_fp16(migraphx_program_t prog);
// Has the operators of these names compute in bfloat16.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_quantize_bf16_with_op_names(migraphx_program_t prog, migraphx_quantize_op_names_t name);
// Has the whole program compute in bfloat16; parameters and results keep their types.
MIGRAPHX_C_EXPORT migraphx_status migraphx_quantize_bf16(migraphx_program_t prog);

MIGRAPHX_C_EXPORT migraphx_status
migraphx_quantize_int8_options_destroy(migraphx_quantize_int8_options_t quantize_int8_options);
MIGRAPHX_C_EXPORT migraphx_status migraphx_quantize_int8_options_assign_to(
    migraphx_quantize_int8_options_t output, const_migraphx_quantize_int8_options_t input);
// Makes options without samples, for products and convolutions.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_quantize_int8_options_create(migraphx_quantize_int8_options_t *out);
// Adds "dot" or "convolution"; without a name both are quantized.
MIGRAPHX_C_EXPORT migraphx_status migraphx_quantize_int8_options_add_op_name(
    migraphx_quantize_int8_options_t quantize_int8_options, const char *name);
// Adds a sample: a value of every parameter, whose bytes must last until the program is quantized.
MIGRAPHX_C_EXPORT migraphx_status migraphx_quantize_int8_options_add_calibration_data(
    migraphx_quantize_int8_options_t quantize_int8_options, migraphx_program_parameters_t data);
// Quantizes products and convolutions to 8-bit integers, by the ranges that the samples show on the
// target.
MIGRAPHX_C_EXPORT migraphx_status migraphx_quantize_int8(migraphx_program_t prog,
                                                         migraphx_target_t target,
                                                         migraphx_quantize_int8_options_t options);

MIGRAPHX_C_EXPORT migraphx_status
migraphx_quantize_fp8_options_destroy(migraphx_quantize_fp8_options_t quantize_fp8_options);
MIGRAPHX_C_EXPORT migraphx_status migraphx_quantize_fp8_options_assign_to(
    migraphx_quantize_fp8_options_t output, const_migraphx_quantize_fp8_options_t input);
// Makes options without samples.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_quantize_fp8_options_create(migraphx_quantize_fp8_options_t *out);
// Adds a sample, as for int8.
MIGRAPHX_C_EXPORT migraphx_status migraphx_quantize_fp8_options_add_calibration_data(
    migraphx_quantize_fp8_options_t quantize_fp8_options, migraphx_program_parameters_t data);
// Quantizes products and convolutions to 8-bit floats, by the ranges that the samples show on the
// target.
MIGRAPHX_C_EXPORT migraphx_status migraphx_quantize_fp8(migraphx_program_t prog,
                                                        migraphx_target_t target,
                                                        migraphx_quantize_fp8_options_t options);

// --- the context of a compiled program ---
// Waits for everything that the context has started.
MIGRAPHX_C_EXPORT migraphx_status migraphx_context_finish(const_migraphx_context_t context);
// Gives the raw queue of the device; NULL on host targets.
MIGRAPHX_C_EXPORT migraphx_status migraphx_context_get_queue(void **out,
                                                             migraphx_context_t context);

// --- custom operators ---
// A callback that fails writes a reason into `exception_msg`; the caller of the engine sees it as
// "Error in compute of: <type name>: <reason>". `compute` finds the memory for its result in its
// last input and sets `out` with migraphx_argument_assign_to.
typedef migraphx_status (*migraphx_experimental_custom_op_compute)(
    migraphx_argument_t out, void *obj, char *exception_msg, size_t exception_msg_size,
    migraphx_context_t ctx, migraphx_shape_t output, migraphx_arguments_t inputs);
typedef migraphx_status (*migraphx_experimental_custom_op_compute_shape)(migraphx_shape_t out,
                                                                         void *obj,
                                                                         char *exception_msg,
                                                                         size_t exception_msg_size,
                                                                         migraphx_shapes_t inputs);
typedef migraphx_status (*migraphx_experimental_custom_op_output_alias)(size_t *out,
                                                                        size_t *out_size, void *obj,
                                                                        char *exception_msg,
                                                                        size_t exception_msg_size,
                                                                        migraphx_shapes_t inputs);
typedef migraphx_status (*migraphx_experimental_custom_op_runs_on_offload_target)(
    bool *out, void *obj, char *exception_msg, size_t exception_msg_size);
typedef migraphx_status (*migraphx_experimental_custom_op_copy)(void **out, void *input);
typedef migraphx_status (*migraphx_experimental_custom_op_delete)(void *input);

MIGRAPHX_C_EXPORT migraphx_status
migraphx_experimental_custom_op_destroy(migraphx_experimental_custom_op_t experimental_custom_op);
MIGRAPHX_C_EXPORT migraphx_status migraphx_experimental_custom_op_assign_to(
    migraphx_experimental_custom_op_t output, const_migraphx_experimental_custom_op_t input);
// Keeps a copy of `obj`, made by `c` and deleted by `d`.
MIGRAPHX_C_EXPORT migraphx_status migraphx_experimental_custom_op_create(
    migraphx_experimental_custom_op_t *out, void *obj, migraphx_experimental_custom_op_copy c,
    migraphx_experimental_custom_op_delete d, const char *obj_typename, const char *name);
// Sets what computes the operator's result.
MIGRAPHX_C_EXPORT migraphx_status migraphx_experimental_custom_op_set_compute(
    migraphx_experimental_custom_op_t obj, migraphx_experimental_custom_op_compute input);
// Sets what finds the shape of the result from those of the inputs.
MIGRAPHX_C_EXPORT migraphx_status migraphx_experimental_custom_op_set_compute_shape(
    migraphx_experimental_custom_op_t obj, migraphx_experimental_custom_op_compute_shape input);
// Which inputs the result shares memory with; without it, none.
MIGRAPHX_C_EXPORT migraphx_status migraphx_experimental_custom_op_set_output_alias(
    migraphx_experimental_custom_op_t obj, migraphx_experimental_custom_op_output_alias input);
// Sets what says whether the operator works on the device's memory.
MIGRAPHX_C_EXPORT migraphx_status migraphx_experimental_custom_op_set_runs_on_offload_target(
    migraphx_experimental_custom_op_t obj,
    migraphx_experimental_custom_op_runs_on_offload_target input);
// From now on operation_create knows the name; a second registration of a name wins.
MIGRAPHX_C_EXPORT migraphx_status
migraphx_experimental_custom_op_register(migraphx_experimental_custom_op_t experimental_custom_op);

#ifdef __cplusplus
}
#endif

#endif
