/*
 * Makes system calls fail as a test asks: preloaded into a Python process, steered by faults_set().
 *
 * Rules are "call errno below suffix from count", one a line: from its call number `from` (counted from 0) on, `count`
 * calls of `call` on paths that begin with `below` and end with `suffix` ("*": any) fail with `errno`. The errno "short"
 * makes a read or write take part of its bytes, half of them and at least one. The environment's FAULTS holds rules from
 * the start.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAX_RULES 16
#define SHORT (-1)

struct rule {
    char call[16];
    int action;
    char below[512];
    char suffix[128];
    long from, count;
    atomic_long seen, fired;
};

static struct rule rules[MAX_RULES];
static atomic_int rule_count;

/* Replaces all rules; only while no other thread touches files. Returns how many there are now. */
int faults_set(const char *text) {
    atomic_store(&rule_count, 0);
    int count = 0;
    while (text && *text && count < MAX_RULES) {
        struct rule *rule = &rules[count];
        char action[16];
        memset(rule, 0, sizeof *rule);
        if (sscanf(text, "%15s %15s %511s %127s %ld %ld", rule->call, action, rule->below, rule->suffix,
                   &rule->from, &rule->count) != 6)
            return -1;
        rule->action = strcmp(action, "short") == 0 ? SHORT : atoi(action);
        count++;
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    atomic_store(&rule_count, count);
    return count;
}

/* How many calls were made to fail since the rules were set. */
long faults_fired(void) {
    long fired = 0;
    for (int i = 0; i < atomic_load(&rule_count); i++)
        fired += atomic_load(&rules[i].fired);
    return fired;
}

/* How many calls matched the rules. */
long faults_seen(void) {
    long seen = 0;
    for (int i = 0; i < atomic_load(&rule_count); i++)
        seen += atomic_load(&rules[i].seen);
    return seen;
}

__attribute__((constructor)) static void from_environment(void) {
    faults_set(getenv("FAULTS"));
}

static int is_asked(const char *call) {
    for (int i = 0; i < atomic_load(&rule_count); i++)
        if (strcmp(rules[i].call, call) == 0)
            return 1;
    return 0;
}

/* 0: go on. SHORT or an errno: what the first rule that is due says. */
static int verdict(const char *call, const char *path) {
    size_t length = strlen(path);
    for (int i = 0; i < atomic_load(&rule_count); i++) {
        struct rule *rule = &rules[i];
        if (strcmp(rule->call, call) != 0 || strncmp(path, rule->below, strlen(rule->below)) != 0)
            continue;
        size_t tail = strlen(rule->suffix);
        if (strcmp(rule->suffix, "*") != 0 && (tail > length || strcmp(path + length - tail, rule->suffix) != 0))
            continue;
        long number = atomic_fetch_add(&rule->seen, 1);
        if (number >= rule->from && number - rule->from < rule->count) {
            atomic_fetch_add(&rule->fired, 1);
            return rule->action;
        }
    }
    return 0;
}

static int of_fd(const char *call, int fd) {
    if (!is_asked(call) || fd < 0)
        return 0;
    int saved = errno;
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    errno = saved;
    if (length <= 0)
        return 0;
    path[length] = 0;
    return verdict(call, path);
}

static int of_path(const char *call, int folder, const char *name) {
    if (!is_asked(call) || name == NULL)
        return 0;
    char path[2 * PATH_MAX];
    if (name[0] == '/') {
        snprintf(path, sizeof path, "%s", name);
    } else {
        int saved = errno;
        char link[64], from[PATH_MAX];
        if (folder == AT_FDCWD)
            snprintf(link, sizeof link, "/proc/self/cwd");
        else
            snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t length = readlink(link, from, sizeof from - 1);
        errno = saved;
        if (length <= 0)
            return 0;
        from[length] = 0;
        snprintf(path, sizeof path, "%s/%s", from, name);
    }
    return verdict(call, path);
}

#define REAL(type, name, ...)                                                                                        \
    static type (*real)(__VA_ARGS__);                                                                                \
    if (!real)                                                                                                       \
    real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define FAIL(answer, value)                                                                                          \
    do {                                                                                                             \
        int due = (answer);                                                                                          \
        if (due > 0) {                                                                                               \
            errno = due;                                                                                             \
            return value;                                                                                            \
        }                                                                                                            \
    } while (0)

/* Opens for writing are "create", the others "open". */
#define OPEN(name)                                                                                                   \
    int name(const char *path, int flags, ...) {                                                                     \
        REAL(int, #name, const char *, int, ...);                                                                    \
        va_list rest;                                                                                                \
        va_start(rest, flags);                                                                                       \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;                                      \
        va_end(rest);                                                                                                \
        FAIL(of_path(flags & O_CREAT ? "create" : "open", AT_FDCWD, path), -1);                                      \
        return real(path, flags, mode);                                                                              \
    }

#define OPENAT(name)                                                                                                 \
    int name(int folder, const char *path, int flags, ...) {                                                         \
        REAL(int, #name, int, const char *, int, ...);                                                               \
        va_list rest;                                                                                                \
        va_start(rest, flags);                                                                                       \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;                                      \
        va_end(rest);                                                                                                \
        FAIL(of_path(flags & O_CREAT ? "create" : "open", folder, path), -1);                                        \
        return real(folder, path, flags, mode);                                                                      \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

static size_t part(int answer, size_t count) {
    return answer == SHORT && count > 1 ? count / 2 : count;
}

ssize_t read(int fd, void *bytes, size_t count) {
    REAL(ssize_t, "read", int, void *, size_t);
    int answer = of_fd("read", fd);
    FAIL(answer, -1);
    return real(fd, bytes, part(answer, count));
}

#define PREAD(name)                                                                                                  \
    ssize_t name(int fd, void *bytes, size_t count, off_t offset) {                                                  \
        REAL(ssize_t, #name, int, void *, size_t, off_t);                                                            \
        int answer = of_fd("pread", fd);                                                                             \
        FAIL(answer, -1);                                                                                            \
        return real(fd, bytes, part(answer, count), offset);                                                         \
    }

PREAD(pread)
PREAD(pread64)

#define PREADV2(name)                                                                                                \
    ssize_t name(int fd, const struct iovec *vector, int count, off_t offset, int flags) {                           \
        REAL(ssize_t, #name, int, const struct iovec *, int, off_t, int);                                            \
        FAIL(of_fd("preadv2", fd), -1);                                                                              \
        return real(fd, vector, count, offset, flags);                                                               \
    }

PREADV2(preadv2)
PREADV2(preadv64v2)

ssize_t write(int fd, const void *bytes, size_t count) {
    REAL(ssize_t, "write", int, const void *, size_t);
    int answer = of_fd("write", fd);
    FAIL(answer, -1);
    return real(fd, bytes, part(answer, count));
}

#define PWRITE(name)                                                                                                 \
    ssize_t name(int fd, const void *bytes, size_t count, off_t offset) {                                            \
        REAL(ssize_t, #name, int, const void *, size_t, off_t);                                                      \
        int answer = of_fd("write", fd);                                                                             \
        FAIL(answer, -1);                                                                                            \
        return real(fd, bytes, part(answer, count), offset);                                                         \
    }

PWRITE(pwrite)
PWRITE(pwrite64)

int fsync(int fd) {
    REAL(int, "fsync", int);
    FAIL(of_fd("fsync", fd), -1);
    return real(fd);
}

int fdatasync(int fd) {
    REAL(int, "fdatasync", int);
    FAIL(of_fd("fsync", fd), -1);
    return real(fd);
}

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    FAIL(of_path("rename", AT_FDCWD, to), -1);
    return real(from, to);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    REAL(int, "renameat2", int, const char *, int, const char *, unsigned);
    FAIL(of_path("renameat2", to_folder, to), -1);
    return real(from_folder, from, to_folder, to, flags);
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    FAIL(of_path("mkdir", AT_FDCWD, path), -1);
    return real(path, mode);
}

int unlinkat(int folder, const char *path, int flags) {
    REAL(int, "unlinkat", int, const char *, int);
    FAIL(of_path("unlinkat", folder, path), -1);
    return real(folder, path, flags);
}

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    FAIL(of_path("unlink", AT_FDCWD, path), -1);
    return real(path);
}

int rmdir(const char *path) {
    REAL(int, "rmdir", const char *);
    FAIL(of_path("rmdir", AT_FDCWD, path), -1);
    return real(path);
}

int flock(int fd, int operation) {
    REAL(int, "flock", int, int);
    FAIL(of_fd("flock", fd), -1);
    return real(fd, operation);
}

#define MMAP(name)                                                                                                   \
    void *name(void *address, size_t length, int protection, int flags, int fd, off_t offset) {                      \
        REAL(void *, #name, void *, size_t, int, int, int, off_t);                                                   \
        FAIL(of_fd("mmap", fd), MAP_FAILED);                                                                         \
        return real(address, length, protection, flags, fd, offset);                                                 \
    }

MMAP(mmap)
MMAP(mmap64)
