/* A disk that hangs: loaded before the C library, these calls wait for as long as a file stands.
 *
 * STALL_READ, STALL_SYNC: paths of such files. DELAY_READ: milliseconds that each read takes.
 * The calls go to the kernel directly, so that no other library has to be looked up. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static void stall(const char *variable)
{
    const char *path = getenv(variable);
    while (path != NULL && syscall(SYS_faccessat, -100, path, F_OK) == 0)
        usleep(5000);
}

static ssize_t slow_read(int file, void *to, size_t count, off_t offset)
{
    const char *delay = getenv("DELAY_READ");
    stall("STALL_READ");
    if (delay != NULL)
        usleep((useconds_t)atoi(delay) * 1000);
    return syscall(SYS_pread64, file, to, count, offset);
}

ssize_t pread(int file, void *to, size_t count, off_t offset)
{
    return slow_read(file, to, count, offset);
}

ssize_t pread64(int file, void *to, size_t count, off_t offset)
{
    return slow_read(file, to, count, offset);
}

int fsync(int file)
{
    stall("STALL_SYNC");
    return (int)syscall(SYS_fsync, file);
}

int fdatasync(int file)
{
    stall("STALL_SYNC");
    return (int)syscall(SYS_fdatasync, file);
}
