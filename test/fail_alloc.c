// SPDX-License-Identifier: MIT
// A malloc to preload into any test program, whose n-th allocation under a call of the engine
// fails, and which judges what the program made of it: tool/fail_alloc.sh runs it.
//
//     FAIL_ALLOC=N            which one fails; 0 or absent: none, only count
//     FAIL_ALLOC_PERIOD=P     and then every P-th after it; 0 or absent: that one only
//     FAIL_ALLOC_REPORT=FILE  the count and every finding are appended here
//
// Found are: crashes (with the stack they happened on), writes past either end of a block, blocks
// freed twice or never allocated, and blocks that the failing call lost. Fresh and freed memory is
// filled with junk, so that reading it shows. A test whose check fails returns early and leaves its
// own objects behind; those are no leaks of the engine. What counts is narrower:
//
//     a call       the outermost frame with an engine's name (mgx_..., migraphx_...) on the stack
//                  of an allocation: its frame address and return address. As long as these stay
//                  the same from one allocation to the next, it is one call
//     it is over   at the thread's next allocation, release or message outside of it
//     lost         its blocks that are then live, and that no global, no word of the stack and no
//                  other block leads to
//
// Costs one unwinding of the stack an allocation: some microseconds. glibc and ELF only.
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unwind.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *block);

enum { FRAMES = 14, MAGIC = 0x5afeb10c, DEAD = 0x0ddba11, GUARD = 16, JUNK = 0xcd, FREED = 0xdb };

enum { TEST_GAVE_UP = 97, NO_VERDICT = 98, BLOCK_LOST = 99 }; // exit statuses

struct trace {
    uintptr_t frames[FRAMES]; // innermost first
    int count;
    uintptr_t entry_frame, entry_return; // the call of the engine; 0: not under one
    long call;                           // its number
    bool from_loader;                    // the loader's own, e.g. a thread's local storage
};

struct block { // sits right before what the program gets
    struct block *next, *prev;
    void *base; // what the C library gave
    size_t size;
    struct trace trace;
    bool reached;
    uint32_t magic;
};

struct range { // of code: one function of the engine, or one whole library of it
    uintptr_t start, end;
};

enum { MAX_FUNCTIONS = 1 << 15, MAX_ROOTS = 512 };

static struct {
    pthread_mutex_t lock;
    struct block live; // ring
    long fail_at, period, counted;
    bool ready;
    struct trace last;                     // allocation of any call
    struct trace failed;                   // the allocation that failed last ...
    bool pending;                          // ... and its call is not over
    bool corrupt;                          // memory is
    struct range functions[MAX_FUNCTIONS]; // sorted
    int function_count;
    struct range own, loader;
    struct range roots[MAX_ROOTS];
    int root_count;
    int report;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .live = {.next = &state.live, .prev = &state.live},
           .report = -1};

extern void *__libc_stack_end; // of the main thread

static bool on_main_thread(void)
{
    return getpid() == gettid();
}

static _Thread_local bool busy __attribute__((tls_model("initial-exec")));

// --- whose code is it ---

static bool inside(const struct range *r, uintptr_t at)
{
    return at >= r->start && at < r->end;
}

static bool is_engine(uintptr_t at)
{
    int low = 0, high = state.function_count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (state.functions[middle].end <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low < state.function_count && inside(&state.functions[low], at);
}

static void add_function(uintptr_t start, size_t size)
{
    if (state.function_count < MAX_FUNCTIONS)
        state.functions[state.function_count++] = (struct range){start, start + size};
}

static bool has_prefix(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

// The symbols of the program itself, from its file: static linking leaves no dynamic ones.
static void read_symbols(const char *image, uintptr_t base)
{
    const ElfW(Ehdr) *elf = (const void *)image;
    const ElfW(Shdr) *sections = (const void *)(image + elf->e_shoff);
    for (int i = 0; i < elf->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB)
            continue;
        const ElfW(Sym) *symbols = (const void *)(image + sections[i].sh_offset);
        const char *names = image + sections[sections[i].sh_link].sh_offset;
        for (size_t s = 0; s < sections[i].sh_size / sizeof *symbols; s++) {
            const char *name = names + symbols[s].st_name;
            if (ELF64_ST_TYPE(symbols[s].st_info) == STT_FUNC && symbols[s].st_size &&
                (has_prefix(name, "mgx_") || has_prefix(name, "migraphx_")))
                add_function(base + symbols[s].st_value, symbols[s].st_size);
        }
    }
}

static void read_program(uintptr_t base)
{
    struct stat s;
    const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &s) == 0) {
        char *image = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (image != MAP_FAILED) {
            read_symbols(image, base);
            munmap(image, (size_t)s.st_size);
        }
    }
    if (fd >= 0)
        close(fd);
}

static void add_root(uintptr_t start, size_t size)
{
    if (state.root_count < MAX_ROOTS)
        state.roots[state.root_count++] = (struct range){start, start + size};
}

static void add_segment(const struct dl_phdr_info *info, const ElfW(Phdr) * segment, bool engine)
{
    const struct range r = {info->dlpi_addr + segment->p_vaddr,
                            info->dlpi_addr + segment->p_vaddr + segment->p_memsz};
    const bool own = inside(&r, (uintptr_t)&add_segment);
    if (segment->p_flags & PF_X) {
        if (own)
            state.own = r;
        else if (engine)
            add_function(r.start, r.end - r.start);
        else if (strstr(info->dlpi_name, "ld-linux") || strstr(info->dlpi_name, "/ld-"))
            state.loader = r;
    }
    if ((segment->p_flags & PF_W) && !inside(&r, (uintptr_t)&state))
        add_root(r.start, r.end - r.start);
}

// Notes code and data of every object; the first is the program.
static int see_object(struct dl_phdr_info *info, size_t size, void *is_first)
{
    (void)size;
    bool *first = is_first;
    if (*first)
        read_program(info->dlpi_addr);
    *first = false;
    const bool engine = strstr(info->dlpi_name, "libmigraphx_c") != NULL;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD)
            add_segment(info, segment, engine);
        else if (segment->p_type == PT_TLS && info->dlpi_tls_data)
            add_root((uintptr_t)info->dlpi_tls_data, segment->p_memsz);
    }
    return 0;
}

static int by_start(const void *a, const void *b)
{
    const uintptr_t x = ((const struct range *)a)->start, y = ((const struct range *)b)->start;
    return (x > y) - (x < y);
}

// --- stacks ---

struct walk {
    struct trace *trace;
    bool was_entry; // the frame before this one was the outermost of the engine so far
};

static _Unwind_Reason_Code see_frame(struct _Unwind_Context *context, void *user)
{
    struct walk *w = user;
    struct trace *t = w->trace;
    const uintptr_t at = _Unwind_GetIP(context) - 1;
    if (at == UINTPTR_MAX || inside(&state.own, at))
        return _URC_NO_REASON;
    if (t->count == 0)
        t->from_loader = inside(&state.loader, at);
    if (t->count < FRAMES)
        t->frames[t->count++] = at;
    if (w->was_entry)
        t->entry_return = at;
    w->was_entry = is_engine(at);
    if (w->was_entry)
        t->entry_frame = _Unwind_GetCFA(context);
    return _URC_NO_REASON;
}

static void trace_stack(struct trace *t)
{
    struct walk w = {.trace = t};
    *t = (struct trace){.count = 0};
    if (!state.ready || busy)
        return;
    busy = true;
    _Unwind_Backtrace(see_frame, &w);
    busy = false;
}

static void report_text(const char *text)
{
    if (write(state.report >= 0 ? state.report : STDERR_FILENO, text, strlen(text)) < 0)
        _exit(NO_VERDICT);
}

static void report_trace(const char *title, const struct trace *t)
{
    char line[256];
    report_text(title);
    for (int i = 0; i < t->count; i++) {
        Dl_info info = {0};
        dladdr((void *)t->frames[i], &info); // NOLINT: addresses are what the stack holds
        const uintptr_t base = (uintptr_t)info.dli_fbase;
        snprintf(line, sizeof line, "  at %s +0x%lx\n", info.dli_fname ? info.dli_fname : "?",
                 (unsigned long)(t->frames[i] - base));
        report_text(line);
    }
}

// --- blocks ---

static void *guard_of(const struct block *b)
{
    return (char *)(b + 1) + b->size;
}

static void die(const char *what, const struct block *b)
{
    state.corrupt = true;
    report_text(what);
    if (b)
        report_trace("the block came from\n", &b->trace);
    abort(); // tells the rest
}

// --- what a failed call lost ---

enum { MAX_SUSPECTS = 1 << 14 };

static struct {
    struct block *blocks[MAX_SUSPECTS]; // by address
    long count;
    uintptr_t low, high;
    struct block *reached[MAX_SUSPECTS]; // those still to be looked through
    long depth;
} suspects;

static int by_address(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t) * (struct block *const *)a;
    const uintptr_t y = (uintptr_t) * (struct block *const *)b;
    return (x > y) - (x < y);
}

static bool is_suspect(const struct block *b)
{
    return b->trace.entry_frame && b->trace.call == state.failed.call && !b->trace.from_loader;
}

static void gather_suspects(void)
{
    suspects.count = suspects.depth = 0;
    for (struct block *b = state.live.next; b != &state.live; b = b->next)
        if (is_suspect(b) && suspects.count < MAX_SUSPECTS) {
            b->reached = false;
            suspects.blocks[suspects.count++] = b;
        }
    if (suspects.count == 0)
        return;
    qsort(suspects.blocks, (size_t)suspects.count, sizeof *suspects.blocks, by_address);
    suspects.low = (uintptr_t)suspects.blocks[0];
    suspects.high = (uintptr_t)guard_of(suspects.blocks[suspects.count - 1]);
}

static void reach(uintptr_t at)
{
    if (at < suspects.low || at > suspects.high)
        return;
    long low = 0, high = suspects.count;
    while (low < high) {
        const long middle = (low + high) / 2;
        if ((uintptr_t)(suspects.blocks[middle] + 1) <= at)
            low = middle + 1;
        else
            high = middle;
    }
    struct block *b = low > 0 ? suspects.blocks[low - 1] : NULL;
    if (b && at <= (uintptr_t)guard_of(b) && !b->reached) {
        b->reached = true;
        suspects.reached[suspects.depth++] = b;
    }
}

static void reach_from(struct range r)
{
    for (uintptr_t at = (r.start + 7) & ~(uintptr_t)7; at + 8 <= r.end; at += 8) {
        uintptr_t word;
        memcpy(&word, (const void *)at, sizeof word); // NOLINT
        reach(word);
    }
}

static struct range data_of(const struct block *b)
{
    return (struct range){(uintptr_t)(b + 1), (uintptr_t)guard_of(b)};
}

// The failed call is over: what of it lives on must be owned. `given` is held by the caller too.
static void judge(const void *given)
{
    jmp_buf registers;
    state.pending = false;
    gather_suspects();
    if (suspects.count == 0)
        return;
    busy = true;
    setjmp(registers); // NOLINT: spills what only registers hold
    reach((uintptr_t)given);
    reach_from((struct range){(uintptr_t)&registers, (uintptr_t)__libc_stack_end});
    for (int i = 0; i < state.root_count; i++)
        reach_from(state.roots[i]);
    for (struct block *b = state.live.next; b != &state.live; b = b->next)
        if (!is_suspect(b))
            reach_from(data_of(b));
    while (suspects.depth > 0)
        reach_from(data_of(suspects.reached[--suspects.depth]));
    for (long i = 0; i < suspects.count; i++)
        if (!suspects.blocks[i]->reached) {
            report_trace("lost: a block from\n", &suspects.blocks[i]->trace);
            report_trace("when this failed\n", &state.failed);
            _exit(BLOCK_LOST);
        }
    busy = false;
}

// Called with whatever happens next: does it lie outside of the call that failed?
static void judge_if_over(const struct trace *t, const void *given)
{
    pthread_mutex_lock(&state.lock);
    if (state.pending && on_main_thread() &&
        (t->entry_frame != state.failed.entry_frame ||
         t->entry_return != state.failed.entry_return))
        judge(given);
    pthread_mutex_unlock(&state.lock);
}

// Numbers the call of an allocation, and says whether this is the one to fail.
static bool must_fail(struct trace *t)
{
    const struct trace *last = &state.last;
    const bool same = t->entry_frame == last->entry_frame && t->entry_return == last->entry_return;
    t->call = last->call + !same;
    state.last = *t;
    if (!t->entry_frame || ++state.counted != state.fail_at)
        return false;
    state.failed = *t;
    state.pending = on_main_thread();
    if (state.period)
        state.fail_at += state.period;
    return true;
}

static void *allocate(size_t alignment, size_t size)
{
    struct trace t;
    trace_stack(&t);
    if (state.pending)
        judge_if_over(&t, NULL);
    pthread_mutex_lock(&state.lock);
    const bool fails = must_fail(&t);
    pthread_mutex_unlock(&state.lock);
    if (alignment < 64)
        alignment = 64;
    const size_t head = (sizeof(struct block) + alignment - 1) / alignment * alignment;
    size_t total;
    char *base = NULL;
    if (!fails && !__builtin_add_overflow(size, head + GUARD, &total))
        base = __libc_memalign(alignment, total);
    if (!base) {
        errno = ENOMEM;
        return NULL;
    }
    struct block *b = (struct block *)(void *)(base + head) - 1;
    *b = (struct block){.base = base, .size = size, .trace = t, .magic = MAGIC};
    memset(b + 1, JUNK, size < 4096 ? size : 4096);
    memset(guard_of(b), JUNK, GUARD);
    pthread_mutex_lock(&state.lock);
    b->next = &state.live;
    b->prev = state.live.prev;
    b->prev->next = b->next->prev = b;
    pthread_mutex_unlock(&state.lock);
    return b + 1;
}

static struct block *require(void *p)
{
    struct block *b = (struct block *)p - 1;
    if (b->magic != MAGIC)
        die(b->magic == DEAD ? "freed twice\n" : "freed, but never allocated or written before\n",
            NULL);
    const unsigned char *guard = guard_of(b);
    for (int i = 0; i < GUARD; i++)
        if (guard[i] != JUNK)
            die("written past its end\n", b);
    return b;
}

void free(void *p)
{
    const int error = errno;
    if (!p)
        return;
    if (state.pending) {
        struct trace t;
        trace_stack(&t);
        judge_if_over(&t, p);
    }
    struct block *b = require(p);
    pthread_mutex_lock(&state.lock);
    b->prev->next = b->next;
    b->next->prev = b->prev;
    pthread_mutex_unlock(&state.lock);
    b->magic = DEAD;
    memset(p, FREED, b->size < 4096 ? b->size : 4096);
    __libc_free(b->base);
    errno = error;
}

void *malloc(size_t size)
{
    return allocate(alignof(max_align_t), size);
}

void *calloc(size_t count, size_t size)
{
    size_t bytes;
    void *p = NULL;
    if (!__builtin_mul_overflow(count, size, &bytes))
        p = allocate(alignof(max_align_t), bytes);
    return p ? memset(p, 0, bytes) : NULL;
}

void *realloc(void *p, size_t size)
{
    void *fresh = allocate(alignof(max_align_t), size);
    if (fresh && p) {
        const size_t old = require(p)->size;
        memcpy(fresh, p, old < size ? old : size);
        free(p);
    }
    return fresh;
}

void *reallocarray(void *p, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(p, bytes);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return allocate(alignment, size);
}

void *memalign(size_t alignment, size_t size);
void *memalign(size_t alignment, size_t size)
{
    return allocate(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    *out = allocate(alignment, size);
    return *out ? 0 : ENOMEM;
}

size_t malloc_usable_size(void *p);
size_t malloc_usable_size(void *p)
{
    return p ? require(p)->size : 0;
}

// What the tests say when a check has failed, before they give their objects up.
int printf(const char *format, ...)
{
    va_list args;
    if (state.pending) {
        struct trace t;
        trace_stack(&t);
        judge_if_over(&t, NULL);
    }
    va_start(args, format);
    const int n = vprintf(format, args);
    va_end(args);
    return n;
}

// --- begin and end ---

// A test that gives up, or reads through a NULL it was given, outside of the engine, ends with a
// status of its own: the failure reached it as it should.
static void crash(int number, siginfo_t *info, void *context)
{
    struct trace t;
    (void)context;
    trace_stack(&t);
    const bool is_null = number == SIGSEGV && (uintptr_t)info->si_addr < 65536;
    if ((is_null || number == SIGABRT) && !t.entry_frame && state.failed.count && !state.corrupt)
        _exit(TEST_GAVE_UP);
    report_trace(number == SIGABRT ? "aborted\n" : "crashed\n", &t);
    if (state.failed.count)
        report_trace("the allocation that failed last\n", &state.failed);
    signal(number, SIG_DFL);
    raise(number);
}

__attribute__((constructor)) static void begin(void)
{
    const char *n = getenv("FAIL_ALLOC"), *period = getenv("FAIL_ALLOC_PERIOD");
    const char *report = getenv("FAIL_ALLOC_REPORT");
    state.fail_at = n ? atol(n) : 0;
    state.period = period ? atol(period) : 0;
    if (report)
        state.report = open(report, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    bool first = true;
    dl_iterate_phdr(see_object, &first);
    qsort(state.functions, (size_t)state.function_count, sizeof *state.functions, by_start);
    state.ready = true;
    const struct sigaction action = {.sa_sigaction = crash, .sa_flags = SA_SIGINFO};
    const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

__attribute__((destructor)) static void end(void)
{
    char line[64];
    state.ready = false;
    snprintf(line, sizeof line, "counted %ld\n", state.counted);
    report_text(line);
}
