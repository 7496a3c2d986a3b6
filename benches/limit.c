/* What a native per-sample iterator could do at best on one thread: the measure for the product's read path.
 *
 * `scan(...)` walks rows in a given order over one mapped file. For each row it copies the payload into a new
 * bytes object and, when metadata is asked for, builds the dictionary of four fields and an instance of a
 * NamedTuple class around both. Since the order is known beforehand, the memory of coming rows is asked for
 * early: columns two look-ahead distances before their turn, payload lines one distance before.
 * It checks nothing: no bounds, no checksums, no types. Callers pass contiguous arrays of the right item size.
 *
 * `crc32c(bytes)` is the checksum for the plain file writer, with the processor's instruction.
 *
 * `read_all(...)` reads rows of a file by positioned reads of several threads, and keeps nothing: what a disk gives.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAP, STARTS, LENGTHS, LABEL, SCORE, SPLIT, FLAG, ORDER, BUFFERS };
enum { FIELDS = 4, LINE = 64, MOST_LINES = 32 };

typedef struct {
    PyObject_HEAD
    Py_buffer view[BUFFERS];
    PyObject *keys[FIELDS];
    PyObject *splits;    /* tuple of str, by code */
    PyTypeObject *shape; /* NamedTuple class of four, or NULL: payloads alone */
    int64_t next, rows;
    int64_t ahead; /* look-ahead distance in rows, 0 for none */
} Scan;

#define COLUMN(scan, which, type) ((const type *)(scan)->view[which].buf)

static inline int64_t row_at(const Scan *scan, int64_t position) {
    const int64_t *order = scan->view[ORDER].buf;
    return order ? order[position] : position;
}

static inline void ask_early(const Scan *scan) {
    /* To GCC a function of nothing but prefetches has no effect, and the call is dropped; this keeps it. */
    __asm__ volatile("");
    int64_t far = scan->next + 2 * scan->ahead;
    if (far < scan->rows) {
        int64_t row = row_at(scan, far);
        __builtin_prefetch(COLUMN(scan, STARTS, int64_t) + row);
        __builtin_prefetch(COLUMN(scan, LENGTHS, int64_t) + row);
        if (scan->shape) {
            __builtin_prefetch(COLUMN(scan, LABEL, int64_t) + row);
            __builtin_prefetch(COLUMN(scan, SCORE, double) + row);
            __builtin_prefetch(COLUMN(scan, SPLIT, uint8_t) + row);
            __builtin_prefetch(COLUMN(scan, FLAG, uint8_t) + row);
        }
    }
    int64_t near = scan->next + scan->ahead;
    if (near < scan->rows) {
        int64_t row = row_at(scan, near);
        const char *payload = (const char *)scan->view[MAP].buf + COLUMN(scan, STARTS, int64_t)[row];
        int64_t lines = (COLUMN(scan, LENGTHS, int64_t)[row] + LINE - 1) / LINE;
        /* The processor's own stream detection takes over in long payloads. */
        for (int64_t line = 0; line < lines && line < MOST_LINES; line++)
            __builtin_prefetch(payload + line * LINE);
    }
}

/* Takes over the reference to `value`. */
static inline int put(PyObject *fields, PyObject *key, PyObject *value) {
    if (!value)
        return -1;
    int status = PyDict_SetItem(fields, key, value);
    Py_DECREF(value);
    return status;
}

static PyObject *metadata_of(const Scan *scan, int64_t row) {
    PyObject *fields = PyDict_New();
    if (!fields)
        return NULL;
    PyObject *split = PyTuple_GET_ITEM(scan->splits, COLUMN(scan, SPLIT, uint8_t)[row]);
    PyObject *flag = COLUMN(scan, FLAG, uint8_t)[row] ? Py_True : Py_False;
    if (put(fields, scan->keys[0], PyLong_FromLongLong(COLUMN(scan, LABEL, int64_t)[row])) ||
        put(fields, scan->keys[1], PyFloat_FromDouble(COLUMN(scan, SCORE, double)[row])) ||
        PyDict_SetItem(fields, scan->keys[2], split) || PyDict_SetItem(fields, scan->keys[3], flag)) {
        Py_DECREF(fields);
        return NULL;
    }
    return fields;
}

static PyObject *scan_next(PyObject *self) {
    Scan *scan = (Scan *)self;
    if (scan->next >= scan->rows)
        return NULL;
    if (scan->ahead)
        ask_early(scan);
    int64_t row = row_at(scan, scan->next++);
    PyObject *data = PyBytes_FromStringAndSize((const char *)scan->view[MAP].buf + COLUMN(scan, STARTS, int64_t)[row],
                                               COLUMN(scan, LENGTHS, int64_t)[row]);
    if (!data || !scan->shape)
        return data;
    PyObject *fields = metadata_of(scan, row);
    PyObject *cache_id = PyLong_FromLong(0);
    PyObject *sample_id = PyLong_FromLongLong(row);
    /* A NamedTuple class adds no storage to tuple, so its items are set as those of a plain tuple. */
    PyObject *sample = fields && cache_id && sample_id ? scan->shape->tp_alloc(scan->shape, 4) : NULL;
    if (!sample) {
        Py_DECREF(data);
        Py_XDECREF(fields);
        Py_XDECREF(cache_id);
        Py_XDECREF(sample_id);
        return NULL;
    }
    PyTuple_SET_ITEM(sample, 0, data);
    PyTuple_SET_ITEM(sample, 1, fields);
    PyTuple_SET_ITEM(sample, 2, cache_id);
    PyTuple_SET_ITEM(sample, 3, sample_id);
    return sample;
}

static void scan_dealloc(PyObject *self) {
    Scan *scan = (Scan *)self;
    PyTypeObject *type = Py_TYPE(self);
    for (int i = 0; i < BUFFERS; i++)
        if (scan->view[i].obj)
            PyBuffer_Release(&scan->view[i]);
    for (int i = 0; i < FIELDS; i++)
        Py_XDECREF(scan->keys[i]);
    Py_XDECREF(scan->splits);
    Py_XDECREF(scan->shape);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyType_Slot scan_slots[] = {
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, scan_next},
    {Py_tp_dealloc, scan_dealloc},
    {0, NULL},
};

static PyType_Spec scan_spec = {
    .name = "limit.Scan",
    .basicsize = sizeof(Scan),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = scan_slots,
};

static PyTypeObject *scan_type;

/* scan(map, starts, lengths, label, score, split, flag, order or None, names, splits, class or None, ahead) */
static PyObject *scan(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *sources[BUFFERS], *names, *splits, *shape;
    long long ahead;
    if (!PyArg_ParseTuple(args, "OOOOOOOOO!O!OL", &sources[MAP], &sources[STARTS], &sources[LENGTHS], &sources[LABEL],
                          &sources[SCORE], &sources[SPLIT], &sources[FLAG], &sources[ORDER], &PyTuple_Type, &names,
                          &PyTuple_Type, &splits, &shape, &ahead))
        return NULL;
    if (PyTuple_GET_SIZE(names) != FIELDS) {
        PyErr_SetString(PyExc_ValueError, "four field names expected");
        return NULL;
    }
    Scan *self = (Scan *)scan_type->tp_alloc(scan_type, 0); /* zeroed: dealloc can tell what was set */
    if (!self)
        return NULL;
    for (int i = 0; i < BUFFERS; i++) {
        if (sources[i] == Py_None && i == ORDER)
            continue;
        if (PyObject_GetBuffer(sources[i], &self->view[i], PyBUF_SIMPLE)) {
            Py_DECREF(self);
            return NULL;
        }
    }
    for (int i = 0; i < FIELDS; i++) {
        PyObject *key = PyTuple_GET_ITEM(names, i);
        Py_INCREF(key);
        PyUnicode_InternInPlace(&key);
        self->keys[i] = key;
    }
    Py_INCREF(splits);
    self->splits = splits;
    if (shape != Py_None) {
        Py_INCREF(shape);
        self->shape = (PyTypeObject *)shape;
    }
    self->rows = self->view[sources[ORDER] == Py_None ? STARTS : ORDER].len / (Py_ssize_t)sizeof(int64_t);
    self->ahead = ahead;
    return (PyObject *)self;
}

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_CRC32C 1
#include <nmmintrin.h>
__attribute__((target("sse4.2"))) static uint32_t crc32c_of(const uint8_t *bytes, Py_ssize_t size) {
    uint64_t sum = 0xffffffffu;
    for (; size >= 8; bytes += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        sum = _mm_crc32_u64(sum, word);
    }
    uint32_t last = (uint32_t)sum;
    for (; size > 0; bytes++, size--)
        last = _mm_crc32_u8(last, *bytes);
    return ~last;
}

static PyObject *crc32c(PyObject *module, PyObject *payload) {
    (void)module;
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(payload, &bytes, &size))
        return NULL;
    return PyLong_FromUnsignedLong(crc32c_of((const uint8_t *)bytes, size));
}
#endif

enum { MOST_THREADS = 64 };

typedef struct {
    int fd;
    const int64_t *starts, *lengths, *order;
    int64_t rows, longest;
    int64_t next;  /* shared: the row that is taken next */
    int64_t total; /* shared: bytes read */
    int failed;    /* shared */
} Readers;

static void *reader(void *argument) {
    Readers *all = argument;
    char *buffer = malloc((size_t)all->longest + 1);
    int64_t total = 0, place;
    if (!buffer)
        __atomic_store_n(&all->failed, 1, __ATOMIC_RELAXED);
    while (buffer && (place = __atomic_fetch_add(&all->next, 1, __ATOMIC_RELAXED)) < all->rows) {
        int64_t row = all->order[place];
        ssize_t got = pread(all->fd, buffer, (size_t)all->lengths[row], all->starts[row]);
        if (got != all->lengths[row])
            __atomic_store_n(&all->failed, 1, __ATOMIC_RELAXED);
        total += got > 0 ? got : 0;
    }
    free(buffer);
    __atomic_fetch_add(&all->total, total, __ATOMIC_RELAXED);
    return NULL;
}

static PyObject *read_all(PyObject *module, PyObject *args) {
    (void)module;
    Py_buffer starts, lengths, order;
    Readers all = {0};
    int threads;
    if (!PyArg_ParseTuple(args, "iy*y*y*i", &all.fd, &starts, &lengths, &order, &threads))
        return NULL;
    all.starts = starts.buf, all.lengths = lengths.buf, all.order = order.buf;
    all.rows = order.len / (Py_ssize_t)sizeof(int64_t);
    for (int64_t row = 0; row < lengths.len / (Py_ssize_t)sizeof(int64_t); row++)
        all.longest = all.lengths[row] > all.longest ? all.lengths[row] : all.longest;
    pthread_t running[MOST_THREADS];
    int started = 0;
    Py_BEGIN_ALLOW_THREADS
    while (started < threads && started < MOST_THREADS && !pthread_create(&running[started], NULL, reader, &all))
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(running[i], NULL);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&starts);
    PyBuffer_Release(&lengths);
    PyBuffer_Release(&order);
    if (all.failed || started < threads) {
        PyErr_SetString(PyExc_OSError, all.failed ? "a read came short" : "a thread did not start");
        return NULL;
    }
    return PyLong_FromLongLong(all.total);
}

static PyMethodDef functions[] = {
    {"read_all", read_all, METH_VARARGS, "Read rows of a file with threads; the number of bytes."},
    {"scan", scan, METH_VARARGS, "Iterate rows of a mapped file, unchecked."},
#ifdef HAS_CRC32C
    {"crc32c", crc32c, METH_O, "CRC32C of a bytes object."},
#endif
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "limit", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit_limit(void) {
#ifdef HAS_CRC32C
    if (!__builtin_cpu_supports("sse4.2")) {
        PyErr_SetString(PyExc_ImportError, "this processor has no CRC32C instruction");
        return NULL;
    }
#endif
    scan_type = (PyTypeObject *)PyType_FromSpec(&scan_spec);
    return scan_type ? PyModule_Create(&definition) : NULL;
}
