/* SPDX-License-Identifier: Apache-2.0 */
/* tachograph._native: the journal writer for Python, on the limited API of 3.10. Same functions as the
 * pure-Python _journal; built from the same objects as libtachograph. Functions answer False
 * instead of raising; only wrong argument types raise, and the package above catches those. The calls
 * of a training loop are methods of Recorder (recorder.h). */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030a0000
#include "recorder.h"

#include "journal/run_identity.h"

static void free_writer(PyObject *capsule)
{
    struct journal_writer *w = PyCapsule_GetPointer(capsule, WRITER_CAPSULE);
    if (w != NULL) {
        journal_writer_close(w);
        PyMem_Free(w);
    }
}

static struct journal_writer *writer_of(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, WRITER_CAPSULE);
}

bool take_str(PyObject *o, str *out)
{
    *out = (str){0};
    if (o == Py_None)
        return true;
    Py_ssize_t n = 0;
    if (PyBytes_Check(o)) {
        char *p = NULL;
        if (PyBytes_AsStringAndSize(o, &p, &n) != 0)
            return false;
        *out = (str){p, (size_t)n};
        return true;
    }
    const char *p = PyUnicode_AsUTF8AndSize(o, &n);
    *out = (str){p, (size_t)n};
    return p != NULL;
}

static PyObject *open_writer(PyObject *self, PyObject *args)
{
    const char *data_dir, *run, *host, *version;
    int rank;
    unsigned world_size, restart_count;
    if (!PyArg_ParseTuple(args, "sssiIIs", &data_dir, &run, &host, &rank, &world_size,
                          &restart_count, &version))
        return NULL;
    struct journal_writer *w = PyMem_Calloc(1, sizeof *w);
    if (w == NULL)
        return PyErr_NoMemory();
    const struct journal_writer_opts o = {.data_dir = data_dir,
                                          .run = run,
                                          .host = host,
                                          .writer = version,
                                          .rank = rank,
                                          .world_size = world_size,
                                          .restart_count = restart_count};
    const int error = journal_writer_open(w, &o);
    if (error != 0) {
        PyMem_Free(w);
        return PyLong_FromLong(error);
    }
    return PyCapsule_New(w, WRITER_CAPSULE, free_writer);
}

static PyObject *close_writer(PyObject *self, PyObject *capsule)
{
    struct journal_writer *w = writer_of(capsule);
    if (w == NULL)
        return NULL;
    journal_writer_close(w);
    Py_RETURN_NONE;
}

static PyObject *get_path(PyObject *self, PyObject *capsule)
{
    const struct journal_writer *w = writer_of(capsule);
    return w == NULL ? NULL : PyUnicode_DecodeFSDefault(w->path);
}

static PyObject *get_dropped(PyObject *self, PyObject *capsule)
{
    const struct journal_writer *w = writer_of(capsule);
    return w == NULL ? NULL : PyLong_FromUnsignedLongLong(atomic_load(&w->n_dropped_total));
}

/* write(writer, type, payload) */
static PyObject *write_record(PyObject *self, PyObject *const *args, Py_ssize_t n_args)
{
    str payload;
    if (n_args != 3) {
        PyErr_SetString(PyExc_TypeError, "write takes a writer, a type and a payload");
        return NULL;
    }
    struct journal_writer *w = writer_of(args[0]);
    const long type = PyLong_AsLong(args[1]);
    if (w == NULL || PyErr_Occurred() || !take_str(args[2], &payload))
        return NULL;
    return PyBool_FromLong(journal_write(w, (enum journal_type)type, (str){0}, payload));
}

/* (run id, source, host, launcher, rank, local rank, world size, restart count, alone) */
static PyObject *identity(PyObject *self, PyObject *ignored)
{
    struct run_identity id;
    run_identity_find(&id);
    return Py_BuildValue("(sissiiIIz)", id.run, (int)id.source, id.host, id.launcher, id.rank,
                         id.local_rank, id.world_size, id.restart_count, id.alone);
}

#define FAST(f) ((PyCFunction)(void (*)(void))(f))
static PyMethodDef methods[] = {
    {"open", open_writer, METH_VARARGS,
     "open(data_dir, run, host, rank, world_size, restart_count, "
     "version): a writer, or an errno number"},
    {"close", close_writer, METH_O, "close(writer)"},
    {"path", get_path, METH_O, "path(writer)"},
    {"dropped", get_dropped, METH_O, "dropped(writer): records that could not be written"},
    {"write", FAST(write_record), METH_FASTCALL, "write(writer, type, payload): True when written"},
    {"identity", identity, METH_NOARGS, "which run, rank and host this process is"},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT,
                                    "_native",
                                    "Tachograph's journal writer",
                                    -1, /* one state a process: Recorder's classes */
                                    methods,
                                    NULL,
                                    NULL,
                                    NULL,
                                    NULL};

PyMODINIT_FUNC PyInit__native(void);
PyMODINIT_FUNC PyInit__native(void)
{
    PyObject *made = PyModule_Create(&module);
    if (made != NULL && !recorder_add(made)) {
        Py_DECREF(made);
        return NULL;
    }
    return made;
}
