// SPDX-License-Identifier: MIT
// CPython's stable ABI, as much of it as this module uses, declared here so that building it needs
// no Python headers: a bare Debian has python3 but not python3-dev.
//
// The stable ABI promises names, layouts and numbers to extensions of every CPython from 3.2 on;
// what is below is of version 3.9 (64-bit). Reference counts change through functions only, which
// holds whatever counting becomes. The buffer protocol entered the stable ABI in 3.11, but its
// struct, slots and functions are the same in 3.9 and 3.10. So it is with METH_FASTCALL and
// PyUnicode_AsUTF8AndSize, which entered in 3.10. Nothing here is linked against: the interpreter
// that loads the module has the symbols.
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

typedef ssize_t Py_ssize_t;
typedef Py_ssize_t Py_hash_t;

typedef struct py_object PyObject;
typedef struct py_type_object PyTypeObject; // opaque
struct py_object {
    Py_ssize_t ob_refcnt;
    PyTypeObject *ob_type;
};
#define PyObject_HEAD PyObject ob_base;

#define PyAPI_FUNC(type) extern __attribute__((visibility("default"))) type
#define PyAPI_DATA(type) extern __attribute__((visibility("default"))) type
#define PyMODINIT_FUNC __attribute__((visibility("default"))) PyObject *

// --- types, methods, modules ---

typedef PyObject *(*PyCFunction)(PyObject *, PyObject *);
typedef PyObject *(*getter)(PyObject *, void *);
typedef int (*setter)(PyObject *, PyObject *, void *);

typedef struct {
    const char *ml_name;
    PyCFunction ml_meth;
    int ml_flags;
    const char *ml_doc;
} PyMethodDef;

typedef struct {
    const char *name;
    getter get;
    setter set;
    const char *doc;
    void *closure;
} PyGetSetDef;

typedef struct {
    int slot;
    void *pfunc;
} PyType_Slot;

typedef struct {
    const char *name;
    int basicsize, itemsize;
    unsigned int flags;
    PyType_Slot *slots;
} PyType_Spec;

typedef struct {
    PyObject ob_base;
    PyObject *(*m_init)(void);
    Py_ssize_t m_index;
    PyObject *m_copy;
} PyModuleDef_Base;

typedef struct PyModuleDef {
    PyModuleDef_Base m_base;
    const char *m_name, *m_doc;
    Py_ssize_t m_size;
    PyMethodDef *m_methods;
    void *m_slots, *m_traverse, *m_clear, *m_free;
} PyModuleDef;

#define PyModuleDef_HEAD_INIT                                                                      \
    {                                                                                              \
        {1, NULL}, NULL, 0, NULL                                                                   \
    }

enum {
    METH_VARARGS = 1,
    METH_KEYWORDS = 2,
    METH_NOARGS = 4,
    METH_O = 8,
    METH_CLASS = 16,
    METH_STATIC = 32,
    METH_FASTCALL = 128
};
enum { Py_LT, Py_LE, Py_EQ, Py_NE, Py_GT, Py_GE };
enum {
    Py_bf_getbuffer = 1,
    Py_bf_releasebuffer = 2,
    Py_mp_length = 4,
    Py_mp_subscript = 5,
    Py_tp_call = 50,
    Py_tp_dealloc = 52,
    Py_tp_doc = 56,
    Py_tp_hash = 59,
    Py_tp_iter = 62,
    Py_tp_methods = 64,
    Py_tp_new = 65,
    Py_tp_repr = 66,
    Py_tp_richcompare = 67,
    Py_tp_str = 70,
    Py_tp_getset = 73
};
#define Py_TPFLAGS_DEFAULT (1u << 18)

PyAPI_FUNC(PyObject *) PyType_FromSpec(PyType_Spec *spec);
PyAPI_FUNC(PyObject *) PyType_GenericAlloc(PyTypeObject *type, Py_ssize_t items);
PyAPI_FUNC(PyObject *) PyDescr_NewMethod(PyTypeObject *type, PyMethodDef *method);
PyAPI_FUNC(unsigned long) PyType_GetFlags(PyTypeObject *type);
PyAPI_FUNC(int) PyType_IsSubtype(PyTypeObject *a, PyTypeObject *b);
PyAPI_FUNC(PyObject *) PyModule_Create2(PyModuleDef *def, int api_version);
PyAPI_FUNC(int) PyModule_AddObject(PyObject *module, const char *name, PyObject *value);
PyAPI_FUNC(int) PyModule_AddStringConstant(PyObject *module, const char *name, const char *value);
PyAPI_FUNC(int) PyModule_AddFunctions(PyObject *module, PyMethodDef *functions);
PyAPI_FUNC(PyObject *) PyImport_ImportModule(const char *name);
#define PyModule_Create(def) PyModule_Create2((def), 3) // the version of the stable ABI

// --- objects ---

PyAPI_FUNC(void) Py_IncRef(PyObject *o);
PyAPI_FUNC(void) Py_DecRef(PyObject *o);
PyAPI_FUNC(int) Py_IsInitialized(void);
PyAPI_DATA(PyObject) _Py_NoneStruct;
PyAPI_DATA(PyObject) _Py_TrueStruct;
PyAPI_DATA(PyObject) _Py_FalseStruct;
PyAPI_DATA(PyObject) _Py_NotImplementedStruct;
PyAPI_DATA(PyTypeObject) PyType_Type;
PyAPI_DATA(PyTypeObject) PyBool_Type;
PyAPI_DATA(PyTypeObject) PyFloat_Type;
PyAPI_DATA(PyTypeObject) PyList_Type;
PyAPI_DATA(PyTypeObject) PyTuple_Type;
PyAPI_DATA(PyTypeObject) PyDict_Type;

#define Py_None (&_Py_NoneStruct)
#define Py_True (&_Py_TrueStruct)
#define Py_False (&_Py_FalseStruct)
#define Py_NotImplemented (&_Py_NotImplementedStruct)
#define Py_INCREF(o) Py_IncRef((PyObject *)(o))
#define Py_DECREF(o) Py_DecRef((PyObject *)(o))
#define Py_XINCREF(o) Py_IncRef((PyObject *)(o)) // both take NULL
#define Py_XDECREF(o) Py_DecRef((PyObject *)(o))
#define Py_CLEAR(o)                                                                                \
    do {                                                                                           \
        PyObject *const gone_ = (PyObject *)(o);                                                   \
        (o) = NULL;                                                                                \
        Py_DecRef(gone_);                                                                          \
    } while (0)
#define Py_TYPE(o) (((PyObject *)(o))->ob_type)
#define Py_RETURN_NONE return Py_INCREF(Py_None), Py_None
#define Py_RETURN_TRUE return Py_INCREF(Py_True), Py_True
#define Py_RETURN_FALSE return Py_INCREF(Py_False), Py_False
#define Py_RETURN_NOTIMPLEMENTED return Py_INCREF(Py_NotImplemented), Py_NotImplemented

PyAPI_FUNC(PyObject *) PyObject_Call(PyObject *f, PyObject *args, PyObject *keywords);
PyAPI_FUNC(PyObject *) PyObject_CallFunctionObjArgs(PyObject *f, ...);
PyAPI_FUNC(PyObject *) _PyObject_CallFunction_SizeT(PyObject *f, const char *format, ...);
PyAPI_FUNC(PyObject *)
    _PyObject_CallMethod_SizeT(PyObject *o, const char *name, const char *format, ...);
PyAPI_FUNC(PyObject *) PyObject_GetAttr(PyObject *o, PyObject *name);
PyAPI_FUNC(int) PyObject_SetAttr(PyObject *o, PyObject *name, PyObject *value);
PyAPI_FUNC(int) PyObject_HasAttrString(PyObject *o, const char *name);
PyAPI_FUNC(PyObject *) PyObject_GetItem(PyObject *o, PyObject *key);
PyAPI_FUNC(Py_hash_t) PyObject_Hash(PyObject *o);
PyAPI_FUNC(void) PyObject_Free(void *o);
PyAPI_FUNC(PyObject *) PyObject_GetAttrString(PyObject *o, const char *name);
PyAPI_FUNC(int) PyObject_SetAttrString(PyObject *o, const char *name, PyObject *value);
PyAPI_FUNC(PyObject *) PyObject_GetIter(PyObject *o);
PyAPI_FUNC(int) PyObject_IsInstance(PyObject *o, PyObject *type);
PyAPI_FUNC(PyObject *) PyObject_Str(PyObject *o);
PyAPI_FUNC(PyObject *) PyObject_Repr(PyObject *o);
PyAPI_FUNC(int) PyObject_IsTrue(PyObject *o);
#define PyObject_CallFunction _PyObject_CallFunction_SizeT
#define PyObject_CallMethod _PyObject_CallMethod_SizeT

// Kinds by flag of the type, as the ABI has them.
static inline int py_is(PyObject *o, int bit)
{
    return (PyType_GetFlags(Py_TYPE(o)) & (1ul << bit)) != 0;
}
#define PyLong_Check(o) py_is((PyObject *)(o), 24)
#define PyList_Check(o) py_is((PyObject *)(o), 25)
#define PyTuple_Check(o) py_is((PyObject *)(o), 26)
#define PyBytes_Check(o) py_is((PyObject *)(o), 27)
#define PyUnicode_Check(o) py_is((PyObject *)(o), 28)
#define PyDict_Check(o) py_is((PyObject *)(o), 29)
#define PyBool_Check(o) (Py_TYPE(o) == &PyBool_Type)
#define PyFloat_Check(o) PyType_IsSubtype(Py_TYPE(o), &PyFloat_Type)

// --- numbers, text, containers ---

PyAPI_FUNC(int) PyIndex_Check(PyObject *o);
PyAPI_FUNC(PyObject *) PyNumber_Index(PyObject *o);
PyAPI_FUNC(PyObject *) PyBool_FromLong(long v);
PyAPI_FUNC(PyObject *) PyLong_FromLong(long v);
PyAPI_FUNC(PyObject *) PyLong_FromLongLong(long long v);
PyAPI_FUNC(PyObject *) PyLong_FromUnsignedLongLong(unsigned long long v);
PyAPI_FUNC(PyObject *) PyLong_FromSize_t(size_t v);
PyAPI_FUNC(PyObject *) PyLong_FromVoidPtr(void *p);
PyAPI_FUNC(long) PyLong_AsLong(PyObject *o);
PyAPI_FUNC(long long) PyLong_AsLongLong(PyObject *o);
PyAPI_FUNC(unsigned long) PyLong_AsUnsignedLong(PyObject *o);
PyAPI_FUNC(unsigned long long) PyLong_AsUnsignedLongLong(PyObject *o);
PyAPI_FUNC(size_t) PyLong_AsSize_t(PyObject *o);
PyAPI_FUNC(void *) PyLong_AsVoidPtr(PyObject *o);
PyAPI_FUNC(PyObject *) PyFloat_FromDouble(double v);
PyAPI_FUNC(double) PyFloat_AsDouble(PyObject *o);

PyAPI_FUNC(PyObject *) PyUnicode_FromString(const char *text);
PyAPI_FUNC(PyObject *) PyUnicode_FromStringAndSize(const char *text, Py_ssize_t size);
PyAPI_FUNC(PyObject *) PyUnicode_FromFormat(const char *format, ...);
PyAPI_FUNC(PyObject *) PyUnicode_FromFormatV(const char *format, va_list args);
PyAPI_FUNC(PyObject *) PyUnicode_DecodeFSDefault(const char *text);
PyAPI_FUNC(PyObject *) PyUnicode_AsUTF8String(PyObject *o);
PyAPI_FUNC(PyObject *) PyUnicode_DecodeUTF8(const char *text, Py_ssize_t size, const char *errors);
PyAPI_FUNC(const char *) PyUnicode_AsUTF8AndSize(PyObject *o, Py_ssize_t *size);
PyAPI_FUNC(PyObject *) PyUnicode_InternFromString(const char *text);
PyAPI_FUNC(int) PyUnicode_CompareWithASCIIString(PyObject *o, const char *text);
PyAPI_FUNC(PyObject *) PyUnicode_Join(PyObject *separator, PyObject *list);
PyAPI_FUNC(Py_ssize_t) PyUnicode_GetLength(PyObject *o);
PyAPI_FUNC(int) PyUnicode_FSConverter(PyObject *o, void *out);
PyAPI_FUNC(PyObject *) PyBytes_FromStringAndSize(const char *bytes, Py_ssize_t size);
PyAPI_FUNC(PyObject *) PyBytes_FromObject(PyObject *o);
PyAPI_FUNC(char *) PyBytes_AsString(PyObject *o);
PyAPI_FUNC(int) PyBytes_AsStringAndSize(PyObject *o, char **bytes, Py_ssize_t *size);
PyAPI_FUNC(Py_ssize_t) PyBytes_Size(PyObject *o);

PyAPI_FUNC(PyObject *) PyList_New(Py_ssize_t size);
PyAPI_FUNC(Py_ssize_t) PyList_Size(PyObject *o);
PyAPI_FUNC(PyObject *) PyList_GetItem(PyObject *o, Py_ssize_t i);
PyAPI_FUNC(int) PyList_SetItem(PyObject *o, Py_ssize_t i, PyObject *take_value);
PyAPI_FUNC(int) PyList_Append(PyObject *o, PyObject *value);
PyAPI_FUNC(PyObject *) PyTuple_New(Py_ssize_t size);
PyAPI_FUNC(Py_ssize_t) PyTuple_Size(PyObject *o);
PyAPI_FUNC(PyObject *) PyTuple_GetItem(PyObject *o, Py_ssize_t i);
PyAPI_FUNC(int) PyTuple_SetItem(PyObject *o, Py_ssize_t i, PyObject *take_value);
PyAPI_FUNC(PyObject *) PyDict_New(void);
PyAPI_FUNC(Py_ssize_t) PyDict_Size(PyObject *o);
PyAPI_FUNC(int) PyDict_Next(PyObject *o, Py_ssize_t *at, PyObject **key, PyObject **value);
PyAPI_FUNC(PyObject *) PyDict_GetItemString(PyObject *o, const char *key);
PyAPI_FUNC(PyObject *) PyDict_GetItemWithError(PyObject *o, PyObject *key);
PyAPI_FUNC(int) PyDict_SetItemString(PyObject *o, const char *key, PyObject *value);
PyAPI_FUNC(int) PyDict_SetItem(PyObject *o, PyObject *key, PyObject *value);
PyAPI_FUNC(PyObject *) PyMemoryView_FromObject(PyObject *o);
PyAPI_FUNC(PyObject *) PySet_New(PyObject *iterable);
PyAPI_FUNC(Py_ssize_t) PySet_Size(PyObject *o);
PyAPI_FUNC(int) PySequence_Check(PyObject *o);
PyAPI_FUNC(Py_ssize_t) PySequence_Size(PyObject *o);
PyAPI_FUNC(PyObject *) PySequence_GetItem(PyObject *o, Py_ssize_t i);
PyAPI_FUNC(int) PySequence_DelItem(PyObject *o, Py_ssize_t i);
PyAPI_FUNC(PyObject *) PySequence_List(PyObject *o);
PyAPI_FUNC(PyObject *) PySequence_Tuple(PyObject *o);
PyAPI_FUNC(int) PySequence_Contains(PyObject *o, PyObject *value);

// --- arguments and results (the forms whose "#" is a Py_ssize_t) ---

PyAPI_FUNC(int) _PyArg_ParseTuple_SizeT(PyObject *args, const char *format, ...);
PyAPI_FUNC(int) _PyArg_ParseTupleAndKeywords_SizeT(PyObject *args, PyObject *keywords,
                                                   const char *format, char **names, ...);
PyAPI_FUNC(PyObject *) _Py_BuildValue_SizeT(const char *format, ...);
#define PyArg_ParseTuple _PyArg_ParseTuple_SizeT
#define PyArg_ParseTupleAndKeywords _PyArg_ParseTupleAndKeywords_SizeT
#define Py_BuildValue _Py_BuildValue_SizeT

// --- errors ---

PyAPI_DATA(PyObject *) PyExc_AttributeError;
PyAPI_DATA(PyObject *) PyExc_BufferError;
PyAPI_DATA(PyObject *) PyExc_IndexError;
PyAPI_DATA(PyObject *) PyExc_KeyError;
PyAPI_DATA(PyObject *) PyExc_MemoryError;
PyAPI_DATA(PyObject *) PyExc_ImportError;
PyAPI_DATA(PyObject *) PyExc_OSError;
PyAPI_DATA(PyObject *) PyExc_OverflowError;
PyAPI_DATA(PyObject *) PyExc_RuntimeError;
PyAPI_DATA(PyObject *) PyExc_TypeError;
PyAPI_DATA(PyObject *) PyExc_ValueError;
PyAPI_DATA(PyObject *) PyExc_UserWarning;
PyAPI_FUNC(void) PyErr_SetString(PyObject *type, const char *text);
PyAPI_FUNC(PyObject *) PyErr_Format(PyObject *type, const char *format, ...);
PyAPI_FUNC(int)
    PyErr_WarnFormat(PyObject *category, Py_ssize_t stack_level, const char *format, ...);
PyAPI_FUNC(PyObject *) PyErr_NoMemory(void);
PyAPI_FUNC(PyObject *) PyErr_Occurred(void);
PyAPI_FUNC(int) PyErr_ExceptionMatches(PyObject *type);
PyAPI_FUNC(int) PyErr_GivenExceptionMatches(PyObject *given, PyObject *type);
PyAPI_FUNC(void) PyErr_SetObject(PyObject *type, PyObject *value);
PyAPI_FUNC(void) PyErr_NormalizeException(PyObject **type, PyObject **value, PyObject **traceback);
PyAPI_FUNC(int) PyErr_CheckSignals(void);
PyAPI_FUNC(void) PyErr_Clear(void);
PyAPI_FUNC(void) PyErr_Fetch(PyObject **type, PyObject **value, PyObject **traceback);
PyAPI_FUNC(void) PyErr_Restore(PyObject *take_type, PyObject *take_value, PyObject *take_traceback);

// --- threads ---

typedef struct py_thread_state PyThreadState;
typedef enum { PyGILState_LOCKED, PyGILState_UNLOCKED } PyGILState_STATE;
PyAPI_FUNC(PyThreadState *) PyEval_SaveThread(void);
PyAPI_FUNC(void) PyEval_RestoreThread(PyThreadState *state);
PyAPI_FUNC(PyGILState_STATE) PyGILState_Ensure(void);
PyAPI_FUNC(void) PyGILState_Release(PyGILState_STATE state);
PyAPI_FUNC(unsigned long) PyThread_get_thread_ident(void);

// --- capsules ---

typedef void (*PyCapsule_Destructor)(PyObject *);
PyAPI_FUNC(PyObject *)
    PyCapsule_New(void *pointer, const char *name, PyCapsule_Destructor destructor);
PyAPI_FUNC(int) PyCapsule_IsValid(PyObject *capsule, const char *name);
PyAPI_FUNC(void *) PyCapsule_GetPointer(PyObject *capsule, const char *name);
PyAPI_FUNC(int) PyCapsule_SetName(PyObject *capsule, const char *name);

// --- the buffer protocol ---

typedef struct {
    void *buf;
    PyObject *obj;
    Py_ssize_t len, itemsize;
    int readonly, ndim;
    char *format;
    Py_ssize_t *shape, *strides, *suboffsets;
    void *internal;
} Py_buffer;

enum {
    PyBUF_WRITABLE = 0x0001,
    PyBUF_FORMAT = 0x0004,
    PyBUF_ND = 0x0008,
    PyBUF_STRIDES = 0x0010 | PyBUF_ND,
    PyBUF_RECORDS_RO = PyBUF_STRIDES | PyBUF_FORMAT
};
PyAPI_FUNC(int) PyObject_GetBuffer(PyObject *exporter, Py_buffer *view, int flags);
PyAPI_FUNC(void) PyBuffer_Release(Py_buffer *view);
