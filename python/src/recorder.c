/* SPDX-License-Identifier: Apache-2.0 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030a0000
#include "recorder.h"

#include <stddef.h>
#include <structmember.h>

#define X(name, value, word, category, meaning) PHASE_NUMBER_##name = value,
enum {
#include "model/phases.def"
};
#undef X
#define NO_PHASE (-1) /* of a span that records nothing */
#define ARGUMENTS_MAX 3

struct recorder {
    PyObject_HEAD PyObject *capsule; /* owned; NULL = nothing is recorded */
    struct journal_writer *w;        /* inside it */
    struct span *spare;              /* memory of a span that ended, or NULL */
    char is_profiling;               /* steps tell the package when they begin and end */
};

struct span {
    PyObject_HEAD struct recorder *run; /* owned */
    PyObject *type;                     /* owned; NULL = none */
    PyObject *annotation;               /* owned; of the profiler, while the step runs */
    str type_text;                      /* inside type */
    int64_t step;
    int phase; /* or NO_PHASE */
};

static PyTypeObject *span_type;

/* Hands the exception that is set to _complain(). False, with it set, when it is none of ours to
 * keep: KeyboardInterrupt and its like. */
static bool complain(PyObject *run)
{
    PyObject *kind, *value, *trace;
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return false;
    PyErr_Fetch(&kind, &value, &trace);
    PyErr_NormalizeException(&kind, &value, &trace);
    PyObject *said = PyObject_CallMethod(run, "_complain", "O", value);
    Py_XDECREF(kind);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    if (said == NULL && !PyErr_ExceptionMatches(PyExc_Exception))
        return false;
    PyErr_Clear();
    Py_XDECREF(said);
    return true;
}

struct call { /* arguments as the interpreter hands them over */
    const char *name;
    const char *names[ARGUMENTS_MAX]; /* the first is required */
    PyObject *const *args;
    PyObject *keywords; /* tuple of names, or NULL */
    Py_ssize_t n;
};

static bool take_keyword(const struct call *c, Py_ssize_t at, PyObject **out)
{
    PyObject *name = PyTuple_GetItem(c->keywords, at);
    for (int i = 0; i < ARGUMENTS_MAX && c->names[i] != NULL; i++) {
        if (PyUnicode_CompareWithASCIIString(name, c->names[i]) != 0)
            continue;
        if (out[i] != NULL) {
            PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'", c->name,
                         name);
            return false;
        }
        out[i] = c->args[c->n + at];
        return true;
    }
    PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", c->name, name);
    return false;
}

/* The arguments in the order of their names, borrowed; NULL = not given. */
static bool take_arguments(const struct call *c, PyObject *out[ARGUMENTS_MAX])
{
    int most = 0;
    while (most < ARGUMENTS_MAX && c->names[most] != NULL)
        most++;
    for (int i = 0; i < ARGUMENTS_MAX; i++)
        out[i] = i < c->n && i < most ? c->args[i] : NULL;
    if (c->n > most) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %d arguments (%zd given)", c->name, most,
                     c->n);
        return false;
    }
    const Py_ssize_t n_keywords = c->keywords != NULL ? PyTuple_Size(c->keywords) : 0;
    for (Py_ssize_t i = 0; i < n_keywords; i++)
        if (!take_keyword(c, i, out))
            return false;
    if (out[0] == NULL)
        PyErr_Format(PyExc_TypeError, "%s() misses its argument '%s'", c->name, c->names[0]);
    return out[0] != NULL;
}

static bool take_i64(PyObject *o, int64_t *out)
{
    if (o != NULL && o != Py_None)
        *out = PyLong_AsLongLong(o);
    return *out != -1 || !PyErr_Occurred();
}

static struct span *new_span(struct recorder *run)
{
    struct span *s = run->spare;
    if (s != NULL) {
        run->spare = NULL;
        (void)PyObject_Init((PyObject *)s, span_type);
    } else {
        s = PyObject_New(struct span, span_type);
        if (s == NULL)
            return NULL;
    }
    Py_INCREF(run);
    s->run = run;
    s->type = s->annotation = NULL;
    s->type_text = (str){0};
    s->step = -1;
    s->phase = NO_PHASE;
    return s;
}

static bool fill_span(struct span *s, PyObject *const given[ARGUMENTS_MAX])
{
    const long phase = PyLong_AsLong(given[0]);
    if ((phase == -1 && PyErr_Occurred()) || !take_i64(given[1], &s->step))
        return false;
    if (given[2] != NULL && given[2] != Py_None) {
        if (!take_str(given[2], &s->type_text))
            return false;
        Py_INCREF(given[2]);
        s->type = given[2];
    }
    if (phase < 0 || phase > UINT8_MAX) {
        PyErr_Format(PyExc_ValueError, "no event has the number %ld", phase);
        return false;
    }
    s->phase = (int)phase;
    return true;
}

static PyObject *record(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    const struct call c = {"record", {"event", "step", "type"}, args, keywords, n};
    struct recorder *run = (struct recorder *)self;
    PyObject *given[ARGUMENTS_MAX];
    if (!take_arguments(&c, given))
        return NULL;
    struct span *s = new_span(run);
    if (s == NULL || run->w == NULL || fill_span(s, given) || complain(self))
        return (PyObject *)s;
    Py_DECREF(s);
    return NULL;
}

/* Tells the package that a step begins while a profile runs. */
static bool enter_profile(struct span *s)
{
    Py_CLEAR(s->annotation);
    s->annotation = PyObject_CallMethod((PyObject *)s->run, "_enter_step", "L", (long long)s->step);
    return s->annotation != NULL || complain((PyObject *)s->run);
}

/* A profile that began inside the step has no annotation of it. */
static bool leave_profile(struct span *s)
{
    if (s->annotation == NULL)
        return true;
    PyObject *done = PyObject_CallMethod((PyObject *)s->run, "_leave_step", "OL", s->annotation,
                                         (long long)s->step);
    Py_CLEAR(s->annotation);
    Py_XDECREF(done);
    return done != NULL || complain((PyObject *)s->run);
}

static PyObject *span_enter(PyObject *self, PyObject *ignored)
{
    struct span *s = (struct span *)self;
    if (s->run->w != NULL && s->phase != NO_PHASE) {
        if (s->run->is_profiling && s->phase == PHASE_NUMBER_STEP && !enter_profile(s))
            return NULL;
        (void)journal_write_phase(s->run->w, JOURNAL_BEGIN, (uint8_t)s->phase, s->step,
                                  s->type_text);
    }
    Py_INCREF(self);
    return self;
}

static PyObject *span_exit(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct span *s = (struct span *)self;
    if (s->run->w != NULL && s->phase != NO_PHASE) {
        (void)journal_write_phase(s->run->w, JOURNAL_END, (uint8_t)s->phase, s->step, s->type_text);
        if (!leave_profile(s))
            return NULL;
    }
    Py_RETURN_FALSE;
}

static void span_free(PyObject *self)
{
    struct span *s = (struct span *)self;
    struct recorder *run = s->run;
    PyTypeObject *type = Py_TYPE(self);
    Py_CLEAR(s->type);
    Py_CLEAR(s->annotation);
    if (run->spare == NULL)
        run->spare = s;
    else
        PyObject_Free(s);
    Py_DECREF(run);
    Py_DECREF(type);
}

/* One metric; a value may be anything that float() takes, a name anything that str() takes. */
static bool log_metric(struct recorder *run, int64_t step, PyObject *name, PyObject *value)
{
    str text;
    PyObject *number = PyFloat_CheckExact(value) ? value : PyNumber_Float(value);
    PyObject *word = PyUnicode_CheckExact(name) ? name : PyObject_Str(name);
    const bool good = number != NULL && word != NULL && take_str(word, &text);
    if (good && run->w != NULL)
        (void)journal_write_metric(run->w, JOURNAL_METRICS, step, text, PyFloat_AsDouble(number));
    if (number != value)
        Py_XDECREF(number);
    if (word != name)
        Py_XDECREF(word);
    return good;
}

static bool log_dict(struct recorder *run, int64_t step, PyObject *metrics)
{
    const Py_ssize_t n = PyDict_Size(metrics);
    PyObject *name, *value;
    bool good = true;
    for (Py_ssize_t at = 0; good && PyDict_Next(metrics, &at, &name, &value);) {
        Py_INCREF(name); /* float() of a value may run code that changes the dict */
        Py_INCREF(value);
        good = log_metric(run, step, name, value);
        Py_DECREF(name);
        Py_DECREF(value);
        if (good && PyDict_Size(metrics) != n) {
            PyErr_SetString(PyExc_RuntimeError, "dictionary changed size during iteration");
            good = false;
        }
    }
    return good;
}

static bool log_items(struct recorder *run, int64_t step, PyObject *metrics)
{
    PyObject *items = PyMapping_Items(metrics);
    bool good = items != NULL;
    for (Py_ssize_t i = 0; good && i < PyList_Size(items); i++) {
        PyObject *pair = PySequence_Tuple(PyList_GetItem(items, i));
        if (pair != NULL && PyTuple_Size(pair) != 2)
            PyErr_SetString(PyExc_ValueError, "a metric is a name and a value");
        good = pair != NULL && PyTuple_Size(pair) == 2 &&
               log_metric(run, step, PyTuple_GetItem(pair, 0), PyTuple_GetItem(pair, 1));
        Py_XDECREF(pair);
    }
    Py_XDECREF(items);
    return good;
}

/* As int() has it: 3.0 is a step too. */
static bool take_step(PyObject *o, int64_t *out)
{
    if (o == NULL || o == Py_None || PyLong_CheckExact(o))
        return take_i64(o, out);
    PyObject *number = PyNumber_Long(o);
    const bool good = number != NULL && take_i64(number, out);
    Py_XDECREF(number);
    return good;
}

static PyObject *log_metrics(PyObject *self, PyObject *const *args, Py_ssize_t n,
                             PyObject *keywords)
{
    const struct call c = {"log", {"metrics", "step"}, args, keywords, n};
    struct recorder *run = (struct recorder *)self;
    PyObject *given[ARGUMENTS_MAX];
    int64_t step = -1;
    if (!take_arguments(&c, given))
        return NULL;
    if (run->w != NULL) {
        const bool good = take_step(given[1], &step) &&
                          (PyDict_CheckExact(given[0]) ? log_dict(run, step, given[0])
                                                       : log_items(run, step, given[0]));
        if (!good && !complain(self))
            return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *heartbeat(PyObject *self, PyObject *ignored)
{
    struct recorder *run = (struct recorder *)self;
    if (run->w != NULL)
        (void)journal_write(run->w, JOURNAL_HEARTBEAT, (str){0}, (str){0});
    Py_RETURN_NONE;
}

static PyObject *get_writer(PyObject *self, void *ignored)
{
    PyObject *capsule = ((struct recorder *)self)->capsule;
    capsule = capsule != NULL ? capsule : Py_None;
    Py_INCREF(capsule);
    return capsule;
}

static int set_writer(PyObject *self, PyObject *value, void *ignored)
{
    struct recorder *run = (struct recorder *)self;
    struct journal_writer *w = NULL;
    if (value == Py_None)
        value = NULL;
    if (value != NULL && (w = PyCapsule_GetPointer(value, WRITER_CAPSULE)) == NULL)
        return -1;
    PyObject *before = run->capsule;
    Py_XINCREF(value);
    run->capsule = value;
    run->w = w;
    Py_XDECREF(before);
    return 0;
}

static void recorder_free(PyObject *self)
{
    struct recorder *run = (struct recorder *)self;
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    Py_CLEAR(run->capsule);
    PyObject_Free(run->spare);
    release(self);
    Py_DECREF(type);
}

#define CALL(f) ((PyCFunction)(void (*)(void))(f))
static PyMethodDef span_methods[] = {{"__enter__", span_enter, METH_NOARGS, NULL},
                                     {"__exit__", CALL(span_exit), METH_FASTCALL, NULL},
                                     {NULL, NULL, 0, NULL}};

static PyType_Slot span_slots[] = {{Py_tp_methods, span_methods},
                                   {Py_tp_dealloc, span_free},
                                   {Py_tp_doc, "The context of one event."},
                                   {0, NULL}};

static PyType_Spec span_spec = {"tachograph._native.Span", sizeof(struct span), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, span_slots};

static PyMethodDef recorder_methods[] = {
    {"record", CALL(record), METH_FASTCALL | METH_KEYWORDS,
     "record(event, step=-1, type=None): a context manager; the event begins and ends with the "
     "block."},
    {"log", CALL(log_metrics), METH_FASTCALL | METH_KEYWORDS,
     "log(metrics, step=-1): numbers of this step, {\"loss\": 0.3}. Arrays of one element count as "
     "numbers."},
    {"heartbeat", heartbeat, METH_NOARGS, "heartbeat(): \"I am alive\"."},
    {NULL, NULL, 0, NULL}};

static PyMemberDef recorder_members[] = {
    {"_profiling", T_BOOL, offsetof(struct recorder, is_profiling), 0, NULL},
    {NULL, 0, 0, 0, NULL}};

static PyGetSetDef recorder_getset[] = {{"_writer", get_writer, set_writer, NULL, NULL},
                                        {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot recorder_slots[] = {
    {Py_tp_new, PyType_GenericNew},    {Py_tp_methods, recorder_methods},
    {Py_tp_members, recorder_members}, {Py_tp_getset, recorder_getset},
    {Py_tp_dealloc, recorder_free},    {0, NULL}};

static PyType_Spec recorder_spec = {"tachograph._native.Recorder", sizeof(struct recorder), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, recorder_slots};

bool recorder_add(PyObject *module)
{
    span_type = (PyTypeObject *)PyType_FromSpec(&span_spec);
    PyObject *made = span_type != NULL ? PyType_FromSpec(&recorder_spec) : NULL;
    if (made == NULL)
        return false;
    const bool added = PyModule_AddObjectRef(module, "Recorder", made) == 0;
    Py_DECREF(made);
    return added;
}
