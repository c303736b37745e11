/* Loaded before the C library (LD_PRELOAD): the n-th call of one kind of function fails.
 *
 * fault_arm(kind, n, error): from now on calls of this kind are counted, and the n-th fails with
 * `error`; 0 makes a read or write of one byte of it. fault_disarm() gives their number.
 * Pieces of memory of up to 1 MiB are always there. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

enum kind { NOTHING, MEMORY, THREAD, READ, WRITE, SYNC };

/* Pieces of memory up to this are always there. */
enum { ALWAYS = 1 << 20 };

static atomic_int armed;
static atomic_long calls, failing;
static atomic_int error;

void fault_arm(int kind, long n, int with)
{
    calls = 0;
    failing = n;
    error = with;
    armed = kind;
}

long fault_disarm(void)
{
    armed = NOTHING;
    return calls;
}

static int fails(enum kind kind)
{
    return armed == kind && atomic_fetch_add(&calls, 1) + 1 == failing;
}

static int no_memory(size_t size)
{
    if (size <= ALWAYS || !fails(MEMORY))
        return 0;
    errno = ENOMEM;
    return 1;
}

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

void *malloc(size_t size)
{
    return no_memory(size) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return no_memory(n * size) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    return no_memory(size) ? NULL : __libc_realloc(old, size);
}

int posix_memalign(void **to, size_t alignment, size_t size)
{
    if (no_memory(size))
        return ENOMEM;
    *to = __libc_memalign(alignment, size);
    return *to ? 0 : ENOMEM;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *argument)
{
    if (fails(THREAD))
        return EAGAIN;
    return REAL(pthread_create)(thread, attributes, start, argument);
}

ssize_t read(int file, void *buffer, size_t size)
{
    if (size && fails(READ)) {
        if (error) {
            errno = error;
            return -1;
        }
        size = 1;
    }
    return REAL(read)(file, buffer, size);
}

ssize_t write(int file, const void *buffer, size_t size)
{
    if (size && fails(WRITE)) {
        if (error) {
            errno = error;
            return -1;
        }
        size = 1;
    }
    return REAL(write)(file, buffer, size);
}

static int failed(enum kind kind)
{
    if (!fails(kind))
        return 0;
    errno = error;
    return 1;
}

int fsync(int file)
{
    return failed(SYNC) ? -1 : REAL(fsync)(file);
}
