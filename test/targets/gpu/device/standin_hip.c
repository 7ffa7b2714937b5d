// SPDX-License-Identifier: MIT
// A HIP runtime without a card: the calls that hip.c makes, on the heap, in order, with errors on
// demand. The test device_hip loads it as libamdhip64.
//
// Work runs at once, so order among streams is trivially right; what the stand-in proves is that
// every call gets arguments of the right kind, that handles are used while they live, and that
// errors come back as statuses. hiprtc "compiles" text to itself; kernels are the few named below.
//
//     standin_fail(call, after)   the call named fails from its `after`-th use on, with status 2
//     standin_live()              handles and blocks of memory not given back
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NOT_FOUND = 500, COUNT = 2, MEMORY = 64 << 20 };

API void standin_fail(const char *call, int after);
API int standin_live(void);

static char failing[64];
static int fail_after, live, current;
static size_t used;

API void standin_fail(const char *call, int after)
{
    snprintf(failing, sizeof failing, "%s", call ? call : "");
    fail_after = after;
}

API int standin_live(void)
{
    return live;
}

static bool fails(const char *call)
{
    return strcmp(call, failing) == 0 && fail_after-- <= 0;
}

#define MAY_FAIL()                                                                                 \
    do {                                                                                           \
        if (fails(__func__))                                                                       \
            return NO_MEMORY;                                                                      \
    } while (0)

// What the structure of properties has held since ROCm 4, as far as it is read.
struct properties {
    char name[256];
    size_t memory, shared;
    int registers, warp, threads, block[3], grid[3], clock, memory_clock, bus;
    size_t constant;
    int major, minor, units, l2, unit_threads, mode, instruction_clock;
    unsigned features;
    int concurrent, pci[3];
    size_t unit_shared;
    int several, maps, number;
    char arch[256];
};
_Static_assert(offsetof(struct properties, arch) == 396, "gcnArchName of hipDeviceProp_t");

struct block {
    size_t bytes;
    unsigned magic;
};

enum { BLOCK = 0x600d, STREAM = 0x57, EVENT = 0xe7, MODULE = 0x30d, GRAPH = 0x96a };

struct handle {
    unsigned magic;
    int device;
    void *text;
    struct command *commands, **end;
    struct handle *capture;
};

struct command { // of a captured run: a fill
    struct command *next;
    void *to;
    unsigned char byte;
    size_t bytes;
};

API int hipInit(unsigned flags);
API int hipInit(unsigned flags)
{
    MAY_FAIL();
    return flags ? INVALID : OK;
}

API int hipGetDeviceCount(int *count);
API int hipGetDeviceCount(int *count)
{
    MAY_FAIL();
    *count = COUNT;
    return OK;
}

API int hipGetDeviceProperties(struct properties *p, int device);
API int hipGetDeviceProperties(struct properties *p, int device)
{
    MAY_FAIL();
    snprintf(p->name, sizeof p->name, "Stand-in %d", device);
    snprintf(p->arch, sizeof p->arch, "gfx90a:sramecc+:xnack-");
    p->memory = MEMORY;
    p->shared = 64 << 10;
    p->warp = 64;
    p->threads = 1024;
    p->units = 104;
    p->l2 = 8 << 20;
    return device < COUNT ? OK : INVALID;
}

API int hipGetDevice(int *device);
API int hipGetDevice(int *device)
{
    *device = current;
    return OK;
}

API int hipSetDevice(int device);
API int hipSetDevice(int device)
{
    MAY_FAIL();
    current = device;
    return device < COUNT ? OK : INVALID;
}

API const char *hipGetErrorString(int status);
API const char *hipGetErrorString(int status)
{
    return status == NO_MEMORY ? "out of memory" : status == INVALID ? "invalid argument" : "other";
}

// --- memory ---

API int hipMemGetInfo(size_t *free_bytes, size_t *total);
API int hipMemGetInfo(size_t *free_bytes, size_t *total)
{
    *free_bytes = MEMORY - used;
    *total = MEMORY;
    return OK;
}

API int hipMalloc(void **address, size_t bytes);
API int hipMalloc(void **address, size_t bytes)
{
    MAY_FAIL();
    if (bytes > MEMORY - used)
        return NO_MEMORY;
    struct block *b = malloc(sizeof *b + bytes);
    if (!b)
        return NO_MEMORY;
    *b = (struct block){bytes, BLOCK};
    memset(b + 1, 0xcd, bytes);
    used += bytes;
    live++;
    *address = b + 1;
    return OK;
}

API int hipFree(void *address);
API int hipFree(void *address)
{
    struct block *b = (struct block *)address - 1;
    if (b->magic != BLOCK)
        abort();
    b->magic = 0;
    used -= b->bytes;
    live--;
    free(b);
    return OK;
}

API int hipHostMalloc(void **host, size_t bytes, unsigned flags);
API int hipHostMalloc(void **host, size_t bytes, unsigned flags)
{
    (void)flags;
    MAY_FAIL();
    return hipMalloc(host, bytes);
}

API int hipHostFree(void *host);
API int hipHostFree(void *host)
{
    return hipFree(host);
}

static bool is(const void *handle, unsigned magic)
{
    const struct handle *h = handle;
    if (!h || h->magic != magic)
        abort(); // what a driver would answer by chance
    return true;
}

static int move(void *to, const void *from, size_t bytes, void *stream)
{
    if (is(stream, STREAM) && ((struct handle *)stream)->device != current)
        return INVALID;
    memcpy(to, from, bytes);
    return OK;
}

#define COPY(name)                                                                                 \
    API int name(void *to, const void *from, size_t bytes, void *stream);                          \
    API int name(void *to, const void *from, size_t bytes, void *stream)                           \
    {                                                                                              \
        MAY_FAIL();                                                                                \
        return move(to, from, bytes, stream);                                                      \
    }
COPY(hipMemcpyHtoDAsync)
COPY(hipMemcpyDtoHAsync)
COPY(hipMemcpyDtoDAsync)

API int hipMemsetD8Async(void *to, unsigned char byte, size_t bytes, void *stream);
API int hipMemsetD8Async(void *to, unsigned char byte, size_t bytes, void *stream)
{
    MAY_FAIL();
    struct handle *graph = is(stream, STREAM) ? ((struct handle *)stream)->capture : NULL;
    if (!graph) {
        memset(to, byte, bytes);
        return OK;
    }
    struct command *c = calloc(1, sizeof *c);
    if (!c)
        return NO_MEMORY;
    *c = (struct command){NULL, to, byte, bytes};
    *graph->end = c;
    graph->end = &c->next;
    return OK;
}

// --- streams, events, graphs: handles with a magic number ---

static int make(void **out, unsigned magic)
{
    struct handle *h = calloc(1, sizeof *h);
    if (!h)
        return NO_MEMORY;
    h->magic = magic;
    h->device = current;
    h->end = &h->commands;
    live++;
    *out = h;
    return OK;
}

static int unmake(void *handle, unsigned magic)
{
    struct handle *h = handle;
    is(h, magic);
    while (h->commands) {
        struct command *next = h->commands->next;
        free(h->commands);
        h->commands = next;
    }
    if (h->capture) // a stream that goes while it captures
        unmake(h->capture, GRAPH);
    h->magic = 0;
    live--;
    free(h->text);
    free(h);
    return OK;
}

#define MAKER(create, destroy, magic)                                                              \
    API int create(void **out, unsigned flags);                                                    \
    API int create(void **out, unsigned flags)                                                     \
    {                                                                                              \
        (void)flags;                                                                               \
        MAY_FAIL();                                                                                \
        return make(out, magic);                                                                   \
    }                                                                                              \
    API int destroy(void *handle);                                                                 \
    API int destroy(void *handle)                                                                  \
    {                                                                                              \
        return unmake(handle, magic);                                                              \
    }
MAKER(hipStreamCreateWithFlags, hipStreamDestroy, STREAM)
MAKER(hipEventCreateWithFlags, hipEventDestroy, EVENT)

#define USER(name, ...)                                                                            \
    API int name(__VA_ARGS__);                                                                     \
    API int name(__VA_ARGS__)
API int hipDeviceSynchronize(void);
API int hipDeviceSynchronize(void)
{
    MAY_FAIL();
    return OK;
}

API int hipMemGetAddressRange(void **base, size_t *bytes, void *address);
API int hipMemGetAddressRange(void **base, size_t *bytes, void *address)
{
    MAY_FAIL();
    struct block *b = (struct block *)address - 1; // begins only
    *base = address;
    *bytes = b->bytes;
    return b->magic == BLOCK ? OK : INVALID;
}

USER(hipStreamSynchronize, void *stream)
{
    MAY_FAIL();
    return is(stream, STREAM) ? OK : INVALID;
}

USER(hipStreamWaitEvent, void *stream, void *event, unsigned flags)
{
    MAY_FAIL();
    return is(stream, STREAM) && is(event, EVENT) && !flags ? OK : INVALID;
}

USER(hipEventRecord, void *event, void *stream)
{
    MAY_FAIL();
    return is(stream, STREAM) && is(event, EVENT) ? OK : INVALID;
}

USER(hipEventSynchronize, void *event)
{
    return is(event, EVENT) ? OK : INVALID;
}

USER(hipEventElapsedTime, float *ms, void *from, void *to)
{
    *ms = 0.5f;
    return is(from, EVENT) && is(to, EVENT) ? OK : INVALID;
}

USER(hipStreamBeginCapture, void *stream, int mode)
{
    MAY_FAIL();
    is(stream, STREAM);
    return mode == 1 ? make((void **)&((struct handle *)stream)->capture, GRAPH) : INVALID;
}

USER(hipStreamEndCapture, void *stream, void **graph)
{
    struct handle *s = stream;
    *graph = s->capture;
    s->capture = NULL;
    return *graph ? OK : INVALID;
}

static int copy_commands(struct handle *to, const struct handle *from)
{
    for (const struct command *c = from->commands; c; c = c->next) {
        struct command *own = calloc(1, sizeof *own);
        if (!own)
            return NO_MEMORY;
        *own = *c;
        own->next = NULL;
        *to->end = own;
        to->end = &own->next;
    }
    return OK;
}

USER(hipGraphInstantiateWithFlags, void **executable, void *graph, unsigned long long flags)
{
    MAY_FAIL();
    const int status = flags ? INVALID : make(executable, GRAPH);
    return status != OK ? status : copy_commands(*executable, graph);
}

USER(hipGraphExecUpdate, void *executable, void *graph, void **node, int *result)
{
    struct handle *e = executable;
    is(e, GRAPH);
    while (e->commands) {
        struct command *next = e->commands->next;
        free(e->commands);
        e->commands = next;
    }
    e->end = &e->commands;
    *node = NULL;
    *result = 0;
    return copy_commands(e, graph);
}

USER(hipGraphLaunch, void *executable, void *stream)
{
    MAY_FAIL();
    is(stream, STREAM);
    is(executable, GRAPH);
    for (const struct command *c = ((struct handle *)executable)->commands; c; c = c->next)
        memset(c->to, c->byte, c->bytes);
    return OK;
}

USER(hipGraphDestroy, void *graph)
{
    return unmake(graph, GRAPH);
}

USER(hipGraphExecDestroy, void *executable)
{
    return unmake(executable, GRAPH);
}

// --- modules: text, and the kernels named here ---

USER(hipModuleLoadData, void **module, const void *image)
{
    MAY_FAIL();
    const int status = make(module, MODULE);
    if (status == OK)
        ((struct handle *)*module)->text = strdup(image);
    return status;
}

USER(hipModuleUnload, void *module)
{
    return unmake(module, MODULE);
}

static void axpy(void **p, unsigned threads)
{
    float *y = *(float **)p[0];
    const float *x = *(const float **)p[1], a = *(const float *)p[2];
    const int count = *(const int *)p[3];
    for (int i = 0; i < count && i < (int)threads; i++)
        y[i] = a * x[i] + y[i];
}

USER(hipModuleGetFunction, void **function, void *module, const char *name)
{
    MAY_FAIL();
    is(module, MODULE);
    *function = (void *)axpy;
    return strcmp(name, "axpy") == 0 && strstr(((struct handle *)module)->text, name) ? OK
                                                                                      : NOT_FOUND;
}

USER(hipModuleLaunchKernel, void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
     unsigned by, unsigned bz, unsigned shared, void *stream, void **params, void **extra)
{
    MAY_FAIL();
    is(stream, STREAM);
    if (function != (void *)axpy || gy * gz * by * bz != 1 || shared || extra)
        return INVALID;
    axpy(params, gx * bx);
    return OK;
}

// --- hiprtc ---

USER(hiprtcCreateProgram, void **program, const char *text, const char *name, int count,
     const char *const *headers, const char *const *names)
{
    (void)name, (void)headers, (void)names;
    MAY_FAIL();
    const int status = count ? INVALID : make(program, MODULE);
    if (status == OK)
        ((struct handle *)*program)->text = strdup(text);
    return status;
}

static bool has_error(const struct handle *program)
{
    return strstr(program->text, "\n#error") || strncmp(program->text, "#error", 6) == 0;
}

USER(hiprtcCompileProgram, void *program, int count, const char *const *options)
{
    MAY_FAIL();
    const bool arch = count && strcmp(options[0], "--offload-arch=gfx90a:sramecc+:xnack-") == 0;
    return arch && !has_error(program) ? OK : 6;
}

USER(hiprtcGetProgramLogSize, void *program, size_t *size)
{
    *size = has_error(program) ? strlen(((struct handle *)program)->text) + 1 : 0;
    return OK;
}

USER(hiprtcGetProgramLog, void *program, char *text)
{
    strcpy(text, ((struct handle *)program)->text);
    return OK;
}

USER(hiprtcGetCodeSize, void *program, size_t *size)
{
    *size = strlen(((struct handle *)program)->text) + 1;
    return OK;
}

USER(hiprtcGetCode, void *program, char *code)
{
    strcpy(code, ((struct handle *)program)->text);
    return OK;
}

USER(hiprtcDestroyProgram, void **program)
{
    return unmake(*program, MODULE);
}

API const char *hiprtcGetErrorString(int status);
API const char *hiprtcGetErrorString(int status)
{
    return status == 6 ? "HIPRTC_ERROR_COMPILATION" : "HIPRTC_ERROR";
}
