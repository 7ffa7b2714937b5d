// SPDX-License-Identifier: MIT
// The Python module migraphx: its description, and its beginning.
#include "pymgx.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char description[] =
    "Compiles and runs neural networks.\n"
    "\n"
    "A model is read into a program, compiled for a target and run as often as one likes:\n"
    "\n"
    "    import migraphx\n"
    "    import numpy as np\n"
    "\n"
    "    p = migraphx.program()             # or migraphx.parse_onnx(\"model.onnx\")\n"
    "    m = p.get_main_module()\n"
    "    x = m.add_parameter(\"x\", migraphx.shape(type=\"float_type\", lens=[2, 3]))\n"
    "    w = m.add_literal(np.full((3, 4), 0.5, np.float32))\n"
    "    y = m.add_instruction(migraphx.op(\"dot\"), [x, w])\n"
    "    m.add_return([m.add_instruction(migraphx.op(\"relu\"), [y])])\n"
    "    print(p)                           # the graph as text\n"
    "\n"
    "    p.compile(\"cpu\")\n"
    "    results = p.run({\"x\": np.ones((2, 3), np.float32)})\n"
    "    print(np.asarray(results[0]))      # every number is 1.5\n"
    "\n"
    "p.get_parameter_shapes() says what a program wants, p.get_output_names() how it calls its\n"
    "results: results[\"logits\"] is results[0] by name. save and load keep a program, compiled "
    "or\n"
    "not; quantize_fp16 and its kin change its precision before compile. parse_onnx(...,\n"
    "dynamic_dims=True) keeps the sizes open that a model leaves open.\n"
    "\n"
    "What fails raises RuntimeError with the place and the values that disagree; a file that "
    "cannot\n"
    "be opened raises an OSError of the fitting kind, which is a RuntimeError too. numpy is used\n"
    "where it is installed and not needed otherwise.";

static int add_types(PyObject *module)
{
    PyObject *json = PyImport_ImportModule("json");
    py.loads = json ? PyObject_GetAttrString(json, "loads") : NULL;
    Py_XDECREF(json);
    return py.loads && (py.failures = PyDict_New()) &&
                   (py.results = py_make_results_type(module)) &&
                   (py.dim = py_make_dim_type(module)) && (py.shape = py_make_shape_type(module)) &&
                   (py.argument = py_make_argument_type(module)) &&
                   (py.target = py_make_target_type(module)) && (py.op = py_make_op_type(module)) &&
                   (py.macro = py_make_macro_type(module)) &&
                   (py.program = py_make_program_type(module)) &&
                   (py.module = py_make_module_type(module)) &&
                   (py.ins = py_make_ins_type(module)) &&
                   (py.generator = py_make_generator_type(module))
               ? 0
               : -1;
}

static int add_functions(PyObject *module)
{
    PyMethodDef *const lists[] = {py_parse_functions,    py_file_functions,     py_target_functions,
                                  py_argument_functions, py_quantize_functions, py_device_functions,
                                  py_macro_functions};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (PyModule_AddFunctions(module, lists[i]) < 0)
            return -1;
    return 0;
}

// Modules written in Python (migraphx.generate) lie in a folder beside this one, which so is a package.
static int add_path(PyObject *module)
{
    Dl_info own;
    if (!dladdr(description, &own) || !own.dli_fname)
        return 0; // nobody knows where: there are none then
    const char *slash = strrchr(own.dli_fname, '/');
    const int size = slash ? (int)(slash + 1 - own.dli_fname) : 0;
    char *folder = NULL;
    if (asprintf(&folder, "%.*smigraphx_modules", size, own.dli_fname) < 0)
        return PyErr_NoMemory() ? 0 : -1;
    PyObject *path = PyUnicode_DecodeFSDefault(folder), *list = path ? PyList_New(0) : NULL;
    free(folder);
    int status = list ? PyList_Append(list, path) : -1;
    Py_XDECREF(path);
    if (status == 0 && (status = PyModule_AddObject(module, "__path__", list)) == 0)
        return 0;
    Py_XDECREF(list);
    return -1;
}

PyMODINIT_FUNC PyInit_migraphx(void); // called by name

PyMODINIT_FUNC PyInit_migraphx(void)
{
    static struct PyModuleDef definition = {
        PyModuleDef_HEAD_INIT, "migraphx", description, -1, NULL, NULL, NULL, NULL, NULL};
    const char *version = "";
    PyObject *module = PyModule_Create(&definition);
    migraphx_get_version(&version);
    if (module && add_types(module) == 0 && add_functions(module) == 0 && add_path(module) == 0 &&
        PyModule_AddStringConstant(module, "__version__", version) == 0)
        return module;
    Py_XDECREF(module);
    return NULL;
}
