/* Loaded before libc (LD_PRELOAD): counts the calls that change files below one folder, and lets the n-th of them fail.
 *
 * The state is a mapped file, so that all processes of a sweep count together. Heartbeats are not counted: when they
 * beat depends on the clock, and nothing rests on them. numpy writes by fwrite, whose own calls of write cannot be
 * replaced from outside: fwrite counts in their place. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { KILL = -1, HALF_AND_KILL = -2, SHORT = -3, FULL = -4, READ_ONLY = -5 }; /* else the number of an error */
enum { WRITE, RENAME, LINK, FSYNC, TRUNCATE, UNLINK, CREATE, KINDS };

struct state {
    atomic_long count;
    long at; /* the call that fails, from 1; 0: none */
    int how;
    int fired; /* kind of the call that failed, from 1 */
    atomic_long kinds[KINDS];
    char folder[PATH_MAX];
};

static struct state *state;

__attribute__((constructor)) static void map(void) {
    const char *path = getenv("FAULTS_STATE");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *at = mmap(NULL, sizeof(struct state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED) state = at;
    close(fd);
}

static int counts(const char *path) {
    size_t length = state ? strlen(state->folder) : 0;
    return length && path && !strncmp(path, state->folder, length) && !strstr(path, ".pulse");
}

static int counts_fd(int fd) {
    char link[64], path[PATH_MAX];
    if (!state || !state->folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return counts(path);
}

static int takes_room(int kind) { return kind == WRITE || kind == LINK || kind == FSYNC || kind == CREATE; }

/* Returns whether this call is the one that fails; a kill does not return, unless half of a write is to come first. */
static int fails(int kind) {
    atomic_fetch_add(&state->kinds[kind], 1);
    long number = atomic_fetch_add(&state->count, 1) + 1;
    if (state->at && number > state->at) { /* a disk stays full, and read-only */
        if (state->how == FULL && takes_room(kind)) return errno = ENOSPC, 1;
        if (state->how == READ_ONLY) return errno = EROFS, 1;
    }
    if (number != state->at) return 0;
    state->fired = kind + 1;
    if (state->how == FULL && !takes_room(kind)) return 0;
    if (state->how == KILL || (state->how == HALF_AND_KILL && kind != WRITE)) raise(SIGKILL);
    if (state->how == SHORT && kind != WRITE) return 0;
    errno = state->how == FULL ? ENOSPC : state->how == READ_ONLY ? EROFS : state->how;
    return 1;
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *data, size_t size) {
    REAL(write);
    if (counts_fd(fd) && fails(WRITE)) {
        if (state->how != HALF_AND_KILL && state->how != SHORT) return -1;
        ssize_t written = real(fd, data, size > 1 ? size / 2 : size);
        if (state->how == HALF_AND_KILL) raise(SIGKILL);
        return written;
    }
    return real(fd, data, size);
}

ssize_t writev(int fd, const struct iovec *parts, int number) {
    REAL(writev);
    if (counts_fd(fd) && fails(WRITE)) {
        if (state->how != HALF_AND_KILL && state->how != SHORT) return -1;
        ssize_t written = real(fd, parts, 1);
        if (state->how == HALF_AND_KILL) raise(SIGKILL);
        return written;
    }
    return real(fd, parts, number);
}

size_t fwrite(const void *data, size_t size, size_t number, FILE *file) {
    REAL(fwrite);
    if (counts_fd(fileno(file)) && fails(WRITE) && state->how != SHORT) { /* the library itself goes on after these */
        if (state->how != HALF_AND_KILL) return 0;
        real(data, size, number / 2, file);
        fflush(file);
        raise(SIGKILL);
    }
    return real(data, size, number, file);
}

#define SIMPLE(name, kind, test, parameters, arguments) \
    int name parameters { \
        REAL(name); \
        if ((test) && fails(kind)) return -1; \
        return real arguments; \
    }

SIMPLE(rename, RENAME, counts(to), (const char *from, const char *to), (from, to))
SIMPLE(renameat, RENAME, counts(to), (int a, const char *from, int b, const char *to), (a, from, b, to))
SIMPLE(link, LINK, counts(to), (const char *from, const char *to), (from, to))
SIMPLE(linkat, LINK, counts(to), (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags))
SIMPLE(symlink, LINK, counts(to), (const char *from, const char *to), (from, to))
SIMPLE(unlink, UNLINK, counts(path), (const char *path), (path))
SIMPLE(unlinkat, UNLINK, counts(path), (int fd, const char *path, int flags), (fd, path, flags))
SIMPLE(fsync, FSYNC, counts_fd(fd), (int fd), (fd))
SIMPLE(fdatasync, FSYNC, counts_fd(fd), (int fd), (fd))
SIMPLE(ftruncate, TRUNCATE, counts_fd(fd), (int fd, off_t size), (fd, size))
SIMPLE(ftruncate64, TRUNCATE, counts_fd(fd), (int fd, off64_t size), (fd, size))
SIMPLE(truncate, TRUNCATE, counts(path), (const char *path, off_t size), (path, size))
SIMPLE(mkdir, CREATE, counts(path), (const char *path, mode_t mode), (path, mode))

#define OPEN(name, before, arguments) \
    int name(before const char *path, int flags, ...) { \
        REAL(name); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        if ((flags & O_CREAT) && counts(path) && fails(CREATE)) return -1; \
        return real arguments; \
    }
#define NOTHING
#define AT int fd,

OPEN(open, NOTHING, (path, flags, mode))
OPEN(open64, NOTHING, (path, flags, mode))
OPEN(openat, AT, (fd, path, flags, mode))
OPEN(openat64, AT, (fd, path, flags, mode))
