/* Loaded before libc (LD_PRELOAD): counts the calls that change files below one folder, and lets the n-th of them fail.
 *
 * The state is a mapped file, so that all processes of a sweep count together. Heartbeats are not counted: when they
 * beat depends on the clock, and nothing rests on them. numpy writes by fwrite, whose own calls of write cannot be
 * replaced from outside: fwrite counts in their place.
 *
 * Where a journal is asked for, it gets a line for each call that makes, renames or removes a name, and for each sync,
 * with a copy of the content that was synced: all that is needed to tell what a loss of power leaves (power.py). */
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
#include <sys/stat.h>
#include <sys/syscall.h>
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
    atomic_long copies;
    char folder[PATH_MAX];
    char journal[PATH_MAX]; /* a folder for what a disk would have to keep; empty: none is asked for */
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

/* The journal is written by system calls: nothing of it counts. Lines of one process come in their order. */
static void note(const char *what, const char *one, const char *other) {
    char path[PATH_MAX + 8], line[2 * PATH_MAX + 32];
    if (!state || !state->journal[0]) return;
    snprintf(path, sizeof path, "%s/log", state->journal);
    int size = snprintf(line, sizeof line, "%s\t%s\t%s\n", what, one, other);
    int fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) abort();
    if (syscall(SYS_write, fd, line, size) != size) abort();
    syscall(SYS_close, fd);
}

static int concerns(const char *path) { /* the folder itself too */
    size_t length = state && state->journal[0] ? strlen(state->folder) : 0;
    return length && path && (counts(path) || (strlen(path) == length - 1 && !strncmp(path, state->folder, length - 1)));
}

/* The path of what a descriptor, or a name in a folder that is open, stands for. */
static const char *whole(int fd, const char *name, char *path) {
    char link[64];
    if (name && (name[0] == '/' || fd == AT_FDCWD)) return name;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return "";
    path[length] = 0;
    if (name) snprintf(path + length, PATH_MAX - length, "/%s", name);
    return path;
}

static int exists(const char *path) {
    struct stat found;
    return !lstat(path, &found);
}

static void note_sync(int fd) {
    char path[PATH_MAX], copy[PATH_MAX + 32], number[24], block[1 << 16];
    struct stat found;
    if (!state || !state->journal[0] || !concerns(whole(fd, NULL, path)) || fstat(fd, &found)) return;
    if (S_ISDIR(found.st_mode)) return note("names", path, "");
    snprintf(number, sizeof number, "%ld", atomic_fetch_add(&state->copies, 1));
    snprintf(copy, sizeof copy, "%s/%s", state->journal, number);
    int from = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (from < 0) return; /* it has no name any more */
    int to = syscall(SYS_openat, AT_FDCWD, copy, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    for (ssize_t size; (size = syscall(SYS_read, from, block, sizeof block)) > 0;)
        if (syscall(SYS_write, to, block, size) != size) abort();
    syscall(SYS_close, from);
    syscall(SYS_close, to);
    note("content", path, number);
}

static void note_said(int fd, const char *data, size_t size) {
    char line[PATH_MAX];
    if (fd != 1 || !state || !state->journal[0]) return;
    size = size < sizeof line - 1 ? size : sizeof line - 1;
    for (size_t at = 0; at < size; at++) line[at] = data[at] == '\n' || data[at] == '\t' ? ' ' : data[at];
    line[size] = 0;
    note("said", line, "");
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
    note_said(fd, data, size);
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

#define SIMPLE(name, kind, test, parameters, arguments, told) \
    int name parameters { \
        REAL(name); \
        char one[PATH_MAX], other[PATH_MAX]; \
        (void)one, (void)other; \
        if ((test) && fails(kind)) return -1; \
        int answer = real arguments; \
        if (!answer) told; \
        return answer; \
    }
#define NOTE(what, path) (concerns(path) ? note(what, path, "") : (void)0)
#define NOTE_TWO(what, from, to) (concerns(from) || concerns(to) ? note(what, from, to) : (void)0)

SIMPLE(rename, RENAME, counts(to), (const char *from, const char *to), (from, to), NOTE_TWO("rename", from, to))
SIMPLE(renameat, RENAME, counts(to), (int a, const char *from, int b, const char *to), (a, from, b, to),
       NOTE_TWO("rename", whole(a, from, one), whole(b, to, other)))
SIMPLE(link, LINK, counts(to), (const char *from, const char *to), (from, to), NOTE_TWO("link", from, to))
SIMPLE(linkat, LINK, counts(to), (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags),
       NOTE_TWO("link", whole(a, from, one), whole(b, to, other)))
SIMPLE(symlink, LINK, counts(to), (const char *from, const char *to), (from, to), NOTE_TWO("symlink", from, to))
SIMPLE(unlink, UNLINK, counts(path), (const char *path), (path), NOTE("remove", path))
SIMPLE(rmdir, UNLINK, 0, (const char *path), (path), NOTE("remove", path))
SIMPLE(unlinkat, UNLINK, counts(path), (int fd, const char *path, int flags), (fd, path, flags),
       NOTE("remove", whole(fd, path, one)))
SIMPLE(fsync, FSYNC, counts_fd(fd), (int fd), (fd), note_sync(fd))
SIMPLE(fdatasync, FSYNC, counts_fd(fd), (int fd), (fd), note_sync(fd))
SIMPLE(ftruncate, TRUNCATE, counts_fd(fd), (int fd, off_t size), (fd, size), (void)0)
SIMPLE(ftruncate64, TRUNCATE, counts_fd(fd), (int fd, off64_t size), (fd, size), (void)0)
SIMPLE(truncate, TRUNCATE, counts(path), (const char *path, off_t size), (path, size), (void)0)
SIMPLE(mkdir, CREATE, counts(path), (const char *path, mode_t mode), (path, mode), NOTE("folder", path))

#define OPEN(name, before, fd, arguments) \
    int name(before const char *path, int flags, ...) { \
        REAL(name); \
        char place[PATH_MAX]; \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        if ((flags & O_CREAT) && counts(path) && fails(CREATE)) return -1; \
        const char *told = flags & O_CREAT ? whole(fd, path, place) : NULL; \
        int made = told && concerns(told) && !exists(told); \
        int answer = real arguments; \
        if (made && answer >= 0) note("file", told, ""); \
        return answer; \
    }
#define NOTHING
#define AT int fd,

OPEN(open, NOTHING, AT_FDCWD, (path, flags, mode))
OPEN(open64, NOTHING, AT_FDCWD, (path, flags, mode))
OPEN(openat, AT, fd, (fd, path, flags, mode))
OPEN(openat64, AT, fd, (fd, path, flags, mode))
