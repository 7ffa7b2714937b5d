// SPDX-License-Identifier: MIT
// Lets a library that was linked on a new Linux run on every glibc from 2.17 on.
//
// The linker binds a call to the newest version of a function that the C library of this machine
// has, and the result then refuses to load where that version is missing. This file is linked into
// what is installed and defines, hidden, each function whose version is younger than 2.17; the
// definition calls the version that was there before. test/install/elf.py fails where a function is
// missing here.
//
// Holds: x86-64 alone, where the first versions are GLIBC_2.2.5. Costs: one jump a call; none of
// these functions is called by a kernel's inner loop.
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// `old_<name>` is the version of <name> that every glibc of x86-64 has.
#define OLD(name) __asm__(".symver old_" #name ", " #name "@GLIBC_2.2.5")

// --- libc: functions that were no dynamic symbols; programs call them too ---

int stat(const char *path, struct stat *out)
{
    return (int)syscall(SYS_stat, path, out);
}

int fstat(int fd, struct stat *out)
{
    return (int)syscall(SYS_fstat, fd, out);
}

int lstat(const char *path, struct stat *out)
{
    return (int)syscall(SYS_lstat, path, out);
}

int fstatat(int folder, const char *path, struct stat *out, int flags)
{
    return (int)syscall(SYS_newfstatat, folder, path, out, flags);
}

#ifdef MGX_OLD_START
// What the start file of a program calls; 2.34 gave it a version because `init` may be NULL since,
// which all older ones accept as well in a program without constructors.
typedef int main_function(int, char **, char **);
int old___libc_start_main(main_function *, int, char **, void (*)(void), void (*)(void),
                          void (*)(void), void *);
int __libc_start_main(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void),
                      void *);
OLD(__libc_start_main);
int __libc_start_main(main_function *entry, int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
    return old___libc_start_main(entry, argc, argv, init, fini, rtld_fini, stack_end);
}
#endif

// --- libm: 2.27 and 2.29 dropped the wrappers that report errors of the 1980s ---

#define OLD_1(type, name)                                                                          \
    type old_##name(type);                                                                         \
    OLD(name);                                                                                     \
    type name(type x)                                                                              \
    {                                                                                              \
        return old_##name(x);                                                                      \
    }
#define OLD_2(type, name)                                                                          \
    type old_##name(type, type);                                                                   \
    OLD(name);                                                                                     \
    type name(type x, type y)                                                                      \
    {                                                                                              \
        return old_##name(x, y);                                                                   \
    }
OLD_1(double, exp)
OLD_1(double, exp2)
OLD_1(double, log)
OLD_1(double, log2)
OLD_1(float, expf)
OLD_1(float, exp2f)
OLD_1(float, logf)
OLD_1(float, log2f)
OLD_2(double, pow)
OLD_2(float, powf)

// --- libpthread and libdl: 2.34 moved them into libc, with new versions ---

int old_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
OLD(pthread_create);
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
    return old_pthread_create(thread, attr, start, arg);
}

int old_pthread_join(pthread_t, void **);
OLD(pthread_join);
int pthread_join(pthread_t thread, void **result)
{
    return old_pthread_join(thread, result);
}

int old_pthread_detach(pthread_t);
OLD(pthread_detach);
int pthread_detach(pthread_t thread)
{
    return old_pthread_detach(thread);
}

int old_pthread_once(pthread_once_t *, void (*)(void));
OLD(pthread_once);
int pthread_once(pthread_once_t *once, void (*routine)(void))
{
    return old_pthread_once(once, routine);
}

int old_pthread_mutex_trylock(pthread_mutex_t *);
OLD(pthread_mutex_trylock);
int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    return old_pthread_mutex_trylock(mutex);
}

int old_pthread_sigmask(int, const sigset_t *, sigset_t *);
OLD(pthread_sigmask);
int pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
    return old_pthread_sigmask(how, set, before);
}

void *old_dlopen(const char *, int);
OLD(dlopen);
void *dlopen(const char *file, int mode)
{
    return old_dlopen(file, mode);
}

void *old_dlsym(void *, const char *);
OLD(dlsym);
void *dlsym(void *handle, const char *name)
{
    return old_dlsym(handle, name);
}

int old_dlclose(void *);
OLD(dlclose);
int dlclose(void *handle)
{
    return old_dlclose(handle);
}

char *old_dlerror(void);
OLD(dlerror);
char *dlerror(void)
{
    return old_dlerror();
}

int old_dladdr(const void *, Dl_info *);
OLD(dladdr);
int dladdr(const void *address, Dl_info *info)
{
    return old_dladdr(address, info);
}

// --- libc: functions that were not there at all ---

void *reallocarray(void *memory, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(memory, count * size);
}
