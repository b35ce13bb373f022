/* SPDX-License-Identifier: Apache-2.0 */
/* tachograph._native.Recorder: what a training loop calls, record(), log() and heartbeat(), in C. The base
 * class of tachograph.Run; _journal.Recorder is its twin in Python.
 *
 * A call makes one record, or one a metric, without a frame of Python code; a span that has ended
 * gives its memory to the next one. Failures (wrong types too) go to the method _complain(failure)
 * and never to the caller. Thread: the interpreter's lock is held all the time. */
#ifndef TACHO_PYTHON_RECORDER_H
#define TACHO_PYTHON_RECORDER_H

#include <Python.h>

#include "base/str.h"
#include "journal/writer.h"

#define WRITER_CAPSULE "tachograph._native.writer"

/* The bytes of a str (as UTF-8), of bytes, or none for None; they live as long as o. False with an
 * exception set. */
bool take_str(PyObject *o, str *out);
/* Adds the class Recorder. False with an exception set. */
bool recorder_add(PyObject *module);

#endif
