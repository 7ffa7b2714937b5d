// SPDX-License-Identifier: MIT
// Ctrl-C while the engine works.
//
// Python runs signal handlers in its main thread alone, and only where that runs Python. So the
// main thread's long calls obey a cancellation whose callback, every few milliseconds, takes the
// interpreter lock and lets pending handlers run; one that raises ends the call. The exception
// stays set in the thread until the call is back. Short calls never come to the callback.
#include "pymgx.h"

static migraphx_cancellation_t cancellation; // of the main thread; NULL until its first call

static bool signal_raised(void *unused)
{
    (void)unused;
    const PyGILState_STATE state = PyGILState_Ensure();
    const bool raised = PyErr_CheckSignals() < 0;
    PyGILState_Release(state);
    return raised;
}

static bool is_main_thread(void)
{
    PyObject *threading = PyImport_ImportModule("threading");
    PyObject *main = threading ? PyObject_CallMethod(threading, "main_thread", NULL) : NULL;
    PyObject *ident = main ? PyObject_GetAttrString(main, "ident") : NULL;
    const bool yes = ident && PyLong_AsUnsignedLong(ident) == PyThread_get_thread_ident();
    Py_XDECREF(ident);
    Py_XDECREF(main);
    Py_XDECREF(threading);
    PyErr_Clear();
    return yes;
}

void py_watch_signals(void)
{
    static _Thread_local bool asked;
    if (asked)
        return;
    asked = true;
    if (cancellation || !is_main_thread())
        return;
    if (!OK(migraphx_cancellation_create(&cancellation)) ||
        !OK(migraphx_cancellation_set_callback(cancellation, signal_raised, NULL)) ||
        !OK(migraphx_cancellation_attach(cancellation))) {
        migraphx_cancellation_destroy(cancellation);
        cancellation = NULL; // Ctrl-C waits for the end of calls, then
    }
}

// A handler's exception wins over what the call gave, which may have been complete by then.
migraphx_status py_settle(migraphx_status status)
{
    if (!PyErr_Occurred())
        return status;
    migraphx_cancellation_reset(cancellation);
    return migraphx_status_cancelled;
}
