// SPDX-License-Identifier: MIT
// Kernels for AMD's cards on an ordinary processor, as a stand-in's kernels: the text that hiprtc
// would take is compiled by clang behind words.hpp, and its blocks run one after the other.
//
// The card is MGX_EMULATED_ARCH: gfx90a unless it says otherwise. Architectures from gfx10 on have
// waves of 32, others of 64. With MGX_EMULATED_RUN=0 nothing is compiled and no kernel runs: for those
// who want the texts alone.
//
// What it is strict about, as no card is: shared memory holds NaN when a block begins; between two
// barriers waves run in an order that changes, so that a barrier that lacks is felt; a word that the
// threads of a wave say together is said by all of them, the same one, or the process ends with a
// sentence.
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../standin.h"
#include "fibers.h"
#include "matrix.h"

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, COMPILATION = 6, NOT_FOUND = 500, MOST_OPERANDS = 256 };

extern char **environ;

struct machine { // words.hpp has the same
    const unsigned *thread, *block, *threads, *blocks;
    void (*barrier)(void);
    void (*meet)(const char *what, const void *in, unsigned bytes, void *out);
    void (*pause)(void);
};

struct entry { // words.hpp has the same
    void (*call)(void **params);
    int count;
    unsigned sizes[64];
};

struct module {
    void *library;
    char *shared, *shared_end;
};

struct kernel {
    const struct entry *entry;
    struct module *module;
};

static bool is_wide(const char *arch)
{
    return strncmp(arch, "gfx10", 5) != 0 && strncmp(arch, "gfx11", 5) != 0 &&
           strncmp(arch, "gfx12", 5) != 0;
}

static bool runs(void)
{
    const char *said = getenv("MGX_EMULATED_RUN");
    return !said || strcmp(said, "0") != 0;
}

const struct standin_card *standin_card(void)
{
    static struct standin_card card = {"gfx90a", 64, 8, (size_t)4 << 30};
    const char *named = getenv("MGX_EMULATED_ARCH");
    if (named && *named)
        card.arch = named;
    card.warp = is_wide(card.arch) ? 64 : 32;
    return &card;
}

// --- from text to a library ---

// The name of a kernel from the text that begins with its KERNEL void: the word before the first
// parenthesis that is not __launch_bounds__'s.
static const char *kernel_name(const char *text, int *length)
{
    static const char bounds[] = "__launch_bounds__";
    const char *open = strchr(text, '(');
    if (open && (size_t)(open - text) >= sizeof bounds - 1 &&
        memcmp(open - (sizeof bounds - 1), bounds, sizeof bounds - 1) == 0)
        open = strchr(open + 1, '(');
    const char *end = open;
    while (end && end > text && strchr(" \n", end[-1]))
        end--;
    const char *begin = end;
    while (begin && begin > text && !strchr(" \n)", begin[-1]))
        begin--;
    *length = begin ? (int)(end - begin) : 0;
    return begin;
}

static void write_unit(FILE *out, const char *text, const char *arch)
{
    fprintf(out, "#define __%.*s__ 1\n#include \"%s/words.hpp\"\n%s\n", (int)strcspn(arch, ":"),
            arch, EMULATED_FOLDER, text);
    for (const char *at = text; (at = strstr(at, "\nKERNEL void")); at++) {
        int length;
        const char *name = kernel_name(at + sizeof "\nKERNEL void", &length);
        fprintf(out, "EMULATED_ENTRY(%.*s)\n", length, name);
    }
}

static int run_compiler(const char *source, const char *library, const char *errors)
{
    const char *const argv[] = {EMULATED_COMPILER,
                                "-x",
                                "c++",
                                "-std=c++17",
                                "-nostdinc++",
                                "-O1",
                                "-march=native",
                                "-w",
                                "-shared",
                                "-fPIC",
                                "-fno-math-errno",
                                source,
                                "-o",
                                library,
                                "-lm",
                                NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, errors, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t child;
    int status = posix_spawnp(&child, argv[0], &actions, NULL, (char **)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (status == 0 && waitpid(child, &status, 0) != child)
        status = 1;
    return status;
}

static char *read_all(const char *path, size_t *size)
{
    FILE *in = fopen(path, "rb");
    char *text = NULL;
    *size = 0;
    if (!in)
        return NULL;
    if (fseek(in, 0, SEEK_END) == 0) {
        *size = (size_t)ftell(in);
        rewind(in);
        text = calloc(1, *size + 1);
        if (text && fread(text, 1, *size, in) != *size)
            *size = 0;
    }
    fclose(in);
    return text;
}

static bool write_source(const char *path, const char *text, const char *arch)
{
    FILE *out = fopen(path, "w");
    if (!out)
        return false;
    write_unit(out, text, arch);
    return fclose(out) == 0;
}

// The code is its size, in eight bytes, and a library.
static char *read_code(const char *path, size_t *size)
{
    char *library = read_all(path, size), *code = library ? malloc(*size + sizeof *size) : NULL;
    if (code) {
        memcpy(code, size, sizeof *size);
        memcpy(code + sizeof *size, library, *size);
        *size += sizeof *size;
    }
    free(library);
    return code;
}

int standin_compile(const char *text, const char *arch, char **code, size_t *size, char **log)
{
    char folder[] = "/tmp/emulated-XXXXXX", path[3][64];
    static const char *const names[] = {"kernel.cpp", "kernel.so", "errors"};
    *code = *log = NULL;
    if (!runs()) {
        *code = calloc(1, *size = sizeof *size);
        return *code ? OK : NO_MEMORY;
    }
    if (!mkdtemp(folder))
        return NO_MEMORY;
    for (int i = 0; i < 3; i++)
        snprintf(path[i], sizeof path[i], "%s/%s", folder, names[i]);
    int status = COMPILATION;
    if (write_source(path[0], text, arch) && run_compiler(path[0], path[1], path[2]) == 0 &&
        (*code = read_code(path[1], size)))
        status = OK;
    size_t ignored;
    if (status != OK)
        *log = read_all(path[2], &ignored);
    for (int i = 0; i < 3; i++)
        unlink(path[i]);
    rmdir(folder);
    return status;
}

// A file of its own for every load: a library of a name that is loaded is not loaded again.
int standin_load(const void *code, void **module)
{
    char path[] = "/tmp/emulated-XXXXXX";
    size_t size;
    memcpy(&size, code, sizeof size);
    struct module *m = calloc(1, sizeof *m);
    if (m && !runs()) {
        *module = m;
        return OK;
    }
    const int file = mkstemp(path);
    if (m && file >= 0 && write(file, (const char *)code + sizeof size, size) == (ssize_t)size)
        m->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (file >= 0) {
        close(file);
        unlink(path);
    }
    if (!m || !m->library) {
        free(m);
        return NO_MEMORY;
    }
    memcpy(&m->shared, dlsym(m->library, "emulated_shared"), 2 * sizeof m->shared);
    *module = m;
    return OK;
}

void standin_unload(void *module)
{
    struct module *m = module;
    if (m->library)
        dlclose(m->library);
    free(m);
}

// Kernels live as long as the process; there are few.
int standin_find(void *module, const char *name, void **kernel)
{
    char symbol[128];
    struct module *m = module;
    snprintf(symbol, sizeof symbol, "emulated_%s", name);
    static const struct entry none;
    const struct entry *entry = m->library ? dlsym(m->library, symbol) : &none;
    struct kernel *k = entry ? malloc(sizeof *k) : NULL;
    if (k)
        *k = (struct kernel){entry, m};
    *kernel = k;
    return k ? OK : NOT_FOUND;
}

void **standin_keep(void *kernel, void **params)
{
    const struct entry *e = ((const struct kernel *)kernel)->entry;
    size_t bytes = (size_t)e->count * sizeof(void *);
    for (int i = 0; i < e->count; i++)
        bytes += (e->sizes[i] + 15) / 16 * 16;
    void **kept = malloc(bytes);
    char *at = kept ? (char *)(kept + e->count) : NULL;
    for (int i = 0; kept && i < e->count; i++) {
        kept[i] = memcpy(at, params[i], e->sizes[i]);
        at += (e->sizes[i] + 15) / 16 * 16;
    }
    return kept;
}

// --- a block ---

enum state { RUNS, AT_BARRIER, AT_MEETING };

// Of a launch; two cards' may be under way, each in a thread of its own.
static _Thread_local struct thread {
    unsigned at[3];
    enum state state;
    const char *what;
    const void *in;
    unsigned bytes;
    void *out;
} threads[FIBERS_MOST];

static _Thread_local struct {
    const struct kernel *kernel;
    const struct entry *entry;
    void **params;
    const struct standin_dims *dims;
    unsigned block[3];
    int count, wave;
} now;

static _Thread_local struct machine machine;

static _Noreturn void give_up(const char *what, int thread)
{
    fprintf(stderr, "emulated: %s (thread %d of block %u, %u, %u)\n", what, thread, now.block[0],
            now.block[1], now.block[2]);
    abort();
}

static void run_thread(void)
{
    now.entry->call(now.params);
}

static void barrier(void)
{
    threads[fibers_current()].state = AT_BARRIER;
    fibers_pause();
}

static void meet(const char *what, const void *in, unsigned bytes, void *out)
{
    struct thread *t = &threads[fibers_current()];
    t->state = AT_MEETING;
    t->what = what;
    t->in = in;
    t->bytes = bytes;
    t->out = out;
    fibers_pause();
}

static void use_machine(void)
{
    *(const struct machine **)dlsym(now.kernel->module->library, "emulated") = &machine;
}

// The other card's kernels run meanwhile, of this one's none that shares its memory.
static void wait_a_little(void)
{
    standin_pause();
    use_machine();
}

static void shuffle(const struct thread *lanes, int first, int count, unsigned size)
{
    for (int i = 0; i < count; i++) {
        int mask;
        memcpy(&mask, (const char *)lanes[i].in + size, sizeof mask);
        if ((i ^ mask) >= count)
            give_up("a value from a thread that there is not", first + i);
        memcpy(lanes[i].out, lanes[i ^ mask].in, size);
    }
}

static void multiply(const struct thread *lanes, int first)
{
    struct matrix_lane operands[MATRIX_LANES];
    const struct matrix_instruction *in = matrix_find(lanes[0].what);
    if (!in || in->wave != now.wave)
        give_up("an instruction that this card has not", first);
    const unsigned bytes = (unsigned)matrix_operand_bytes(in);
    const unsigned sums = (unsigned)matrix_sums(in) * sizeof(float);
    for (int i = 0; i < in->wave; i++) {
        const char *from = lanes[i].in;
        operands[i] =
            (struct matrix_lane){from, from + bytes, from + lanes[i].bytes - sums, lanes[i].out};
    }
    if (!matrix_multiply(in, operands))
        give_up("lanes that must hold the same do not", first);
}

// All threads of a wave are at a meeting, the same one. The last wave of a block may have few threads,
// and they may exchange values; to multiply takes a whole one.
static void hold_meeting(int first, int count)
{
    struct thread *lanes = &threads[first];
    for (int i = 1; i < count; i++)
        if (lanes[i].state != AT_MEETING || fibers_ended(first + i) ||
            strcmp(lanes[i].what, lanes[0].what) != 0)
            give_up("a wave of which not all threads say the same", first + i);
    if (strncmp(lanes[0].what, "shuffle ", 8) == 0)
        shuffle(lanes, first, count, (unsigned)atoi(lanes[0].what + 8));
    else if (count == now.wave)
        multiply(lanes, first);
    else
        give_up("a product by a part of a wave", first);
    for (int i = 0; i < count; i++)
        lanes[i].state = RUNS;
}

// Until its threads have ended or wait for the block.
static void run_wave(int first)
{
    const int end = first + now.wave < now.count ? first + now.wave : now.count;
    for (;;) {
        int meeting = -1;
        for (int i = first; i < end; i++) {
            if (threads[i].state == RUNS && !fibers_ended(i)) {
                machine.thread = threads[i].at;
                fibers_resume(i);
            }
            if (threads[i].state == AT_MEETING)
                meeting = i;
        }
        if (meeting < 0)
            return;
        if (threads[first].state != AT_MEETING)
            give_up("a wave of which not all threads say the same", meeting);
        hold_meeting(first, end - first);
    }
}

static void run_block(const struct kernel *k)
{
    const int waves = (now.count + now.wave - 1) / now.wave;
    memset(k->module->shared, 0xff, (size_t)(k->module->shared_end - k->module->shared));
    for (int i = 0; i < now.count; i++)
        threads[i].state = RUNS;
    if (!fibers_begin(now.count, run_thread))
        give_up("no memory for stacks", 0);
    for (int round = 0, left = now.count; left > 0; round++) {
        for (int w = 0; w < waves; w++)
            run_wave((round % 2 ? waves - 1 - w : (w + round) % waves) * now.wave);
        left = 0;
        for (int i = 0; i < now.count; i++) {
            left += !fibers_ended(i);
            threads[i].state = RUNS;
        }
    }
}

static void number_threads(const unsigned *block)
{
    for (int i = 0; i < now.count; i++) {
        threads[i].at[0] = (unsigned)i % block[0];
        threads[i].at[1] = (unsigned)i / block[0] % block[1];
        threads[i].at[2] = (unsigned)i / block[0] / block[1];
    }
}

int standin_launch(void *kernel, const struct standin_dims *dims, void **params)
{
    const struct kernel *k = kernel;
    if (!k->module->library)
        return OK;
    const unsigned count = dims->block[0] * dims->block[1] * dims->block[2];
    if (!count || count > FIBERS_MOST || dims->shared ||
        k->module->shared_end - k->module->shared > 64 << 10)
        return INVALID;
    machine =
        (struct machine){NULL, now.block, dims->block, dims->grid, barrier, meet, wait_a_little};
    now.kernel = k;
    now.entry = k->entry;
    use_machine();
    now.params = params;
    now.dims = dims;
    now.count = (int)count;
    now.wave = standin_card()->warp;
    number_threads(dims->block);
    for (now.block[2] = 0; now.block[2] < dims->grid[2]; now.block[2]++)
        for (now.block[1] = 0; now.block[1] < dims->grid[1]; now.block[1]++)
            for (now.block[0] = 0; now.block[0] < dims->grid[0]; now.block[0]++)
                run_block(k);
    return OK;
}
