// SPDX-License-Identifier: MIT
// Random calls in random order over pools of handles: every call answers, whatever came before.
// What they compute is judged elsewhere; here crashes, hangs and what the sanitizers see count.
//
//     random_test                 some seeds
//     random_test --seeds 0 9999  those
#include "api/support.h"

enum { QUICK = 60, STEPS = 200, POOL = 12, NODES = 40, MODULES = 4, NAMES = 4 };

struct node {
    migraphx_program_t p;
    migraphx_module_t modules[MODULES];
    int module_count;
    migraphx_instruction_t ins[NODES];
    int ins_count;
};

struct state {
    uint64_t random;
    migraphx_shape_t shapes[POOL];
    migraphx_argument_t arguments[POOL];
    struct node programs[3];
    migraphx_target_t targets[2];
    migraphx_compile_options_t options;
    migraphx_file_options_t file;
    size_t op_count, pass_count;
};

static unsigned below(struct state *s, unsigned bound)
{
    s->random = s->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(s->random >> 33) % bound;
}

static bool done(migraphx_status status)
{
    if (status != migraphx_status_success && !last_error()[0])
        check_failures++; // a failure without a text
    return status == migraphx_status_success;
}

static void take(char *text)
{
    migraphx_string_destroy(text);
}

// --- values ---

static void new_shape(struct state *s)
{
    size_t lens[4], strides[4];
    const size_t rank = below(s, 5);
    const migraphx_shape_datatype_t type =
        below(s, 2) ? migraphx_shape_float_type : (migraphx_shape_datatype_t)below(s, 30);
    migraphx_shape_t made;
    for (int i = 0; i < 4; i++) {
        lens[i] = below(s, 5) ? 1 + below(s, 3) : 0;
        strides[i] = below(s, 6);
    }
    const bool ok =
        below(s, 3)
            ? done(migraphx_shape_create(&made, type, lens, rank))
            : done(migraphx_shape_create_with_strides(&made, type, lens, rank, strides, rank));
    migraphx_shape_t *slot = &s->shapes[below(s, POOL)];
    if (!ok)
        return;
    migraphx_shape_destroy(*slot);
    *slot = made;
}

static void new_argument(struct state *s)
{
    migraphx_argument_t made = NULL;
    migraphx_argument_t *slot = &s->arguments[below(s, POOL)];
    const_migraphx_argument_t pair[] = {s->arguments[below(s, POOL)], s->arguments[below(s, POOL)]};
    const migraphx_shape_t shape = s->shapes[below(s, POOL)];
    const unsigned way = below(s, 4);
    const bool ok =
        way == 0   ? done(migraphx_argument_create_empty(&made, shape))
        : way == 1 ? done(migraphx_argument_generate(&made, shape, below(s, 99)))
        : way == 2 ? done(migraphx_argument_fill(&made, shape, below(s, 4)))
                   : done(migraphx_argument_create_group(&made, pair, below(s, 3), below(s, 2)));
    if (!ok)
        return;
    migraphx_argument_destroy(*slot);
    *slot = made;
}

static void ask_argument(struct state *s)
{
    const migraphx_argument_t a = s->arguments[below(s, POOL)], b = s->arguments[below(s, POOL)];
    double values[256];
    size_t count;
    bool equal;
    char *text;
    const_migraphx_shape_t shape;
    if (!done(migraphx_argument_shape(&shape, a)))
        return;
    if (done(migraphx_argument_to_string(&text, a)))
        take(text);
    if (done(migraphx_shape_elements(&count, shape)) && count <= 256)
        done(migraphx_argument_values(values, count, a));
    done(migraphx_argument_equal(&equal, a, b));
    if (b && below(s, 2))
        done(migraphx_argument_assign_to(a, b));
}

// --- programs ---

static void drop_handles(struct node *n)
{
    while (n->ins_count)
        migraphx_instruction_destroy(n->ins[--n->ins_count]);
    n->module_count = 0;
}

static void new_program(struct state *s)
{
    struct node *n = &s->programs[below(s, 3)];
    drop_handles(n);
    migraphx_program_destroy(n->p);
    must(migraphx_program_create(&n->p));
    must(migraphx_program_get_main_module(&n->modules[0], n->p));
    n->module_count = 1;
}

static void keep(struct state *s, struct node *n, bool ok, migraphx_instruction_t ins)
{
    if (!ok)
        return;
    if (n->ins_count < NODES) {
        n->ins[n->ins_count++] = ins;
        return;
    }
    migraphx_instruction_t *slot = &n->ins[below(s, NODES)];
    migraphx_instruction_destroy(*slot);
    *slot = ins;
}

static const char *const names[NAMES] = {"a", "b", "c", "d"};

static void add_leaf(struct state *s, struct node *n, migraphx_module_t m)
{
    migraphx_instruction_t ins = NULL;
    const migraphx_argument_t a = s->arguments[below(s, POOL)];
    const_migraphx_shape_t shape = NULL;
    char *bytes = NULL;
    if (below(s, 2)) {
        const bool ok = done(migraphx_module_add_parameter(&ins, m, names[below(s, NAMES)],
                                                           s->shapes[below(s, POOL)]));
        keep(s, n, ok, ins);
    } else if (a && done(migraphx_argument_shape(&shape, a)) &&
               done(migraphx_argument_buffer(&bytes, a))) {
        const bool ok = done(migraphx_module_add_literal(&ins, m, shape, bytes));
        keep(s, n, ok, ins);
    }
}

// Some instructions of the program; rarely one of another.
static migraphx_instructions_t some(struct state *s, const struct node *n)
{
    const_migraphx_instruction_t list[4];
    migraphx_instructions_t made = NULL;
    size_t count = 0;
    if (n->ins_count && below(s, 4)) { // one, or one twice, fits many
        list[0] = list[1] = n->ins[below(s, (unsigned)n->ins_count)];
        count = 1 + below(s, 2);
    }
    for (unsigned left = count ? 0 : below(s, 4); left && n->ins_count; left--) {
        const struct node *from = below(s, 20) ? n : &s->programs[below(s, 3)];
        if (from->ins_count)
            list[count++] = from->ins[below(s, (unsigned)from->ins_count)];
    }
    return done(migraphx_instructions_create(&made, list, count)) ? made : NULL;
}

static migraphx_operation_t some_operation(struct state *s)
{
    static const char *const attributes[] = {NULL,
                                             NULL,
                                             NULL,
                                             "{axis: 1}",
                                             "{axes: [0]}",
                                             "{axes: [0, 1], starts: [0, 1], ends: [1, 2]}",
                                             "{dims: [-1]}",
                                             "{permutation: [1, 0]}",
                                             "{out_lens: [2, 3]}",
                                             "{index: 0}",
                                             "{target_type: 4}",
                                             "{padding: [1, 1]}"};
    static const char *const usual[] = {
        "add", "mul",     "neg",        "dot",    "transpose", "multibroadcast",
        "if",  "convert", "reduce_sum", "concat", "reshape"};
    migraphx_operation_t op = NULL;
    const char *name = usual[below(s, 11)];
    if (below(s, 2))
        must(migraphx_get_operator_name_at_index(&name, below(s, (unsigned)s->op_count)));
    return done(migraphx_operation_create_json(&op, name,
                                               attributes[below(s, 3) ? 0 : below(s, 12)]))
               ? op
               : NULL;
}

static void add_instruction(struct state *s, struct node *n, migraphx_module_t m)
{
    migraphx_operation_t op = some_operation(s);
    migraphx_instructions_t args = some(s, n);
    migraphx_modules_t bodies = NULL;
    migraphx_module_t list[2];
    migraphx_instruction_t ins = NULL;
    const size_t count = n->module_count == 1 || below(s, 3) ? 0 : 1 + below(s, 2);
    for (size_t i = 0; i < count; i++)
        list[i] = n->modules[below(s, (unsigned)n->module_count)];
    if (op && args && done(migraphx_modules_create(&bodies, list, count))) {
        const bool ok =
            done(migraphx_module_add_instruction_with_mod_args(&ins, m, op, args, bodies));
        keep(s, n, ok, ins);
    }
    migraphx_modules_destroy(bodies);
    migraphx_instructions_destroy(args);
    migraphx_operation_destroy(op);
}

static void build(struct state *s, struct node *n)
{
    const migraphx_module_t m = n->modules[below(s, (unsigned)n->module_count)];
    migraphx_instruction_t ins = NULL;
    migraphx_instructions_t args;
    switch (below(s, 8)) {
    case 0:
    case 1:
        add_leaf(s, n, m);
        break;
    case 2:
        args = some(s, n);
        if (args) {
            const bool ok = done(migraphx_module_add_return(&ins, m, args));
            keep(s, n, ok, ins);
        }
        migraphx_instructions_destroy(args);
        break;
    case 3:
        if (n->module_count < MODULES &&
            done(migraphx_program_create_module(&n->modules[n->module_count], n->p,
                                                names[below(s, NAMES)])))
            n->module_count++;
        break;
    default:
        add_instruction(s, n, m);
    }
}

static void rewrite(struct state *s, struct node *n)
{
    const char *pass;
    struct node *other = &s->programs[below(s, 3)];
    switch (below(s, 8)) {
    case 0:
        done(migraphx_program_optimize(n->p));
        break;
    case 1:
    case 2:
        must(migraphx_get_pass_name_at_index(&pass, below(s, (unsigned)s->pass_count)));
        done(migraphx_program_run_passes(n->p, &pass, 1));
        break;
    case 3:
        done(migraphx_program_sort(n->p));
        break;
    case 4:
        done(migraphx_program_trim(n->p, below(s, 3), below(s, 3)));
        break;
    case 5:
        done(migraphx_program_replace_literals(n->p));
        break;
    case 6:
        done(below(s, 2) ? migraphx_quantize_fp16(n->p) : migraphx_quantize_bf16(n->p));
        break;
    default:
        if (other != n) {
            drop_handles(other);
            done(migraphx_program_assign_to(other->p, n->p));
            must(migraphx_program_get_main_module(&other->modules[0], other->p));
            other->module_count = 1;
        }
    }
}

static void print(struct state *s, const struct node *n)
{
    static const char *const formats[] = {"text", "json",     "py",
                                          "cpp",  "graphviz", "graphviz-brief"};
    migraphx_program_t back;
    char *text;
    size_t size;
    done(migraphx_program_verify(n->p));
    if (done(migraphx_program_format(&text, n->p, formats[below(s, 6)])))
        take(text);
    if (done(migraphx_program_to_string(&text, n->p))) {
        if (done(migraphx_program_parse(&back, text, strlen(text))))
            migraphx_program_destroy(back);
        take(text);
    }
    if (done(migraphx_save_buffer(&text, &size, n->p, s->file))) {
        if (done(migraphx_load_buffer(&back, text, size, s->file)))
            migraphx_program_destroy(back);
        take(text);
    }
}

static void ask(struct state *s, const struct node *n)
{
    migraphx_instructions_t list;
    migraphx_modules_t modules;
    migraphx_shape_t shape;
    migraphx_argument_t literal;
    char *text;
    if (!n->ins_count)
        return;
    const migraphx_instruction_t ins = n->ins[below(s, (unsigned)n->ins_count)];
    if (done(migraphx_instruction_to_string(&text, ins)))
        take(text);
    if (done(migraphx_instruction_shape(&shape, ins)))
        migraphx_shape_destroy(shape);
    if (done(migraphx_instruction_inputs(&list, ins)))
        migraphx_instructions_destroy(list);
    if (done(migraphx_instruction_outputs(&list, ins)))
        migraphx_instructions_destroy(list);
    if (done(migraphx_instruction_modules(&modules, ins)))
        migraphx_modules_destroy(modules);
    if (done(migraphx_instruction_literal(&literal, ins)))
        migraphx_argument_destroy(literal);
}

// --- runs ---

// Every parameter gets an argument of its own shape, or any of the pool.
static void fill_parameters(struct state *s, struct node *n, migraphx_program_parameters_t params)
{
    migraphx_program_parameter_shapes_t shapes;
    const_migraphx_shape_t shape;
    const char *list[64];
    size_t count;
    must(migraphx_program_get_parameter_shapes(&shapes, n->p));
    must(migraphx_program_parameter_shapes_size(&count, shapes));
    if (count <= 64)
        must(migraphx_program_parameter_shapes_names(list, shapes));
    for (size_t i = 0; i < count && count <= 64; i++) {
        migraphx_argument_t own = NULL, any = s->arguments[below(s, POOL)];
        must(migraphx_program_parameter_shapes_get(&shape, shapes, list[i]));
        if (below(s, 10) && done(migraphx_argument_generate(&own, shape, i)))
            done(migraphx_program_parameters_add(params, list[i], own));
        else if (any)
            done(migraphx_program_parameters_add(params, list[i], any));
        migraphx_argument_destroy(own);
    }
    migraphx_program_parameter_shapes_destroy(shapes);
}

static void compile_and_run(struct state *s, struct node *n)
{
    migraphx_program_parameters_t params;
    migraphx_arguments_t results;
    char *text;
    done(migraphx_program_compile(n->p, s->targets[below(s, 2)], s->options));
    must(migraphx_program_parameters_create(&params));
    fill_parameters(s, n, params);
    if (done(migraphx_program_run(&results, n->p, params))) {
        if (below(s, 2))
            new_program(s); // perhaps this one: results stay
        size_t count;
        const_migraphx_argument_t result;
        must(migraphx_arguments_size(&count, results));
        for (size_t i = 0; i < count; i++) {
            must(migraphx_arguments_get(&result, results, i));
            if (done(migraphx_argument_to_string(&text, result)))
                take(text);
        }
        migraphx_arguments_destroy(results);
    }
    migraphx_program_parameters_destroy(params);
    if (done(migraphx_program_explain(&text, n->p)))
        take(text);
    if (below(s, 2))
        new_program(s); // a compiled one cannot change
}

// --- all of it ---

static void step(struct state *s)
{
    struct node *n = &s->programs[below(s, 3)];
    const unsigned what = below(s, 100);
    if (what < 10)
        new_shape(s);
    else if (what < 18)
        new_argument(s);
    else if (what < 22)
        ask_argument(s);
    else if (what < 24)
        new_program(s);
    else if (what < 76)
        build(s, n);
    else if (what < 86)
        rewrite(s, n);
    else if (what < 90)
        print(s, n);
    else if (what < 94)
        ask(s, n);
    else
        compile_and_run(s, n);
}

static void start(struct state *s, uint64_t seed)
{
    *s = (struct state){.random = seed * 0x9E3779B97F4A7C15u + 1};
    must(migraphx_target_create(&s->targets[0], "ref"));
    must(migraphx_target_create(&s->targets[1], "cpu"));
    must(migraphx_compile_options_create(&s->options));
    must(migraphx_compile_options_set_threads(s->options, 2));
    must(migraphx_file_options_create(&s->file));
    must(migraphx_get_operators_size(&s->op_count));
    must(migraphx_get_passes_size(&s->pass_count));
    for (int i = 0; i < 3; i++) {
        must(migraphx_program_create(&s->programs[i].p));
        must(migraphx_program_get_main_module(&s->programs[i].modules[0], s->programs[i].p));
        s->programs[i].module_count = 1;
    }
    for (int i = 0; i < 3 * POOL; i++)
        i < 2 * POOL ? new_shape(s) : new_argument(s);
}

static void end(struct state *s)
{
    for (int i = 0; i < POOL; i++) {
        migraphx_shape_destroy(s->shapes[i]);
        migraphx_argument_destroy(s->arguments[i]);
    }
    for (int i = 0; i < 3; i++) {
        drop_handles(&s->programs[i]);
        migraphx_program_destroy(s->programs[i].p);
    }
    migraphx_target_destroy(s->targets[0]);
    migraphx_target_destroy(s->targets[1]);
    migraphx_compile_options_destroy(s->options);
    migraphx_file_options_destroy(s->file);
}

int main(int argc, char **argv)
{
    uint64_t first = 0, last = QUICK - 1;
    if (argc == 4 && strcmp(argv[1], "--seeds") == 0) {
        first = strtoull(argv[2], NULL, 10);
        last = strtoull(argv[3], NULL, 10);
    }
    for (uint64_t seed = first; seed <= last; seed++) {
        struct state s;
        if (argc == 4) {
            printf("seed %llu\r", (unsigned long long)seed);
            fflush(stdout);
        }
        start(&s, seed);
        for (int i = 0; i < STEPS; i++)
            step(&s);
        end(&s);
    }
    printf("%d failures without a text\n", check_failures);
    return check_failures != 0;
}
