/* Stands between a program and the C library, and refuses system calls as some file systems do.

   SHIM_<CALL>=<errno> in the environment refuses every call; SHIM_<CALL>_TIMES=<n> the first n of them only. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static int refused(const char *call, atomic_int *calls) {
    char name[64];
    const char *code, *times;
    snprintf(name, sizeof name, "SHIM_%s", call);
    code = getenv(name);
    if (code == NULL)
        return 0;
    snprintf(name, sizeof name, "SHIM_%s_TIMES", call);
    times = getenv(name);
    if (times != NULL && atomic_fetch_add(calls, 1) >= atoi(times))
        return 0;
    errno = atoi(code);
    return 1;
}

#define REFUSABLE(CALL, name, parameters, arguments)                    \
    int name parameters {                                               \
        static atomic_int calls;                                        \
        static int(*real) parameters;                                   \
        if (refused(CALL, &calls))                                      \
            return -1;                                                  \
        if (real == NULL)                                               \
            real = (int(*) parameters)dlsym(RTLD_NEXT, #name);          \
        return real arguments;                                          \
    }

REFUSABLE("FLOCK", flock, (int fd, int operation), (fd, operation))
REFUSABLE("RENAMEAT2", renameat2,
          (int from, const char *old, int to, const char *new, unsigned int flags),
          (from, old, to, new, flags))
REFUSABLE("RENAME", rename, (const char *old, const char *new), (old, new))
REFUSABLE("LINK", link, (const char *old, const char *new), (old, new))
REFUSABLE("LINK", linkat, (int from, const char *old, int to, const char *new, int flags),
          (from, old, to, new, flags))
REFUSABLE("FSYNC", fsync, (int fd), (fd))
