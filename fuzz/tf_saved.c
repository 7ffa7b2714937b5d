// SPDX-License-Identifier: MIT
// SavedModels, mutated as messages. An input is one message:
//
//     1: {1: name, 2: BundleEntryProto}     variables, in the table's order
//     2: a SavedModel
//     3: bytes of the block of variables, instead of what 1 makes
//     4: bytes of the block that says where that block lies
//
// It is written as a folder, the table with checksums that are right, so that a change reaches what
// lies behind them. What imports also runs.
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"
#include "tf/tf.h"
#include "tf_schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

// --- the folder ---

static char folder[] = "/tmp/mgx-fuzz-XXXXXX";

static const char *path_of(const char *name)
{
    static char path[sizeof folder + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const void *data, size_t size)
{
    FILE *file = fopen(path_of(name), "wb");
    require(file && (!size || fwrite(data, 1, size, file) == size));
    fclose(file);
}

static void remove_folder(void)
{
    unlink(path_of("variables/variables.index"));
    unlink(path_of("variables/variables.data-00000-of-00001"));
    unlink(path_of("saved_model.pb"));
    rmdir(path_of("variables"));
    rmdir(folder);
}

static void make_folder(void)
{
    static uint8_t numbers[4096];
    static bool made;
    if (made)
        return;
    made = true;
    require(mkdtemp(folder) != NULL && mkdir(path_of("variables"), 0700) == 0);
    for (size_t i = 0; i < sizeof numbers; i++)
        numbers[i] = (uint8_t)(i * 7);
    write_file("variables/variables.data-00000-of-00001", numbers, sizeof numbers);
    atexit(remove_folder);
}

// --- the table ---

enum { ROOM = 1 << 20 };

static uint32_t masked_checksum(const uint8_t *p, size_t size)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < size; i++) {
        crc ^= p[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (0x82F63B78u & (0u - (crc & 1)));
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

// An entry that shares nothing with the one before.
static void put_entry(struct out *o, struct mgx_slice key, const void *value, size_t size)
{
    put_varint(o, 0);
    put_varint(o, key.size);
    put_varint(o, size);
    put(o, key.text, key.size);
    put(o, value, size);
}

// The block's trailer: not compressed, and the checksum.
static void put_trailer(struct out *o, size_t from)
{
    const uint8_t kind = 0;
    put(o, &kind, 1);
    const uint32_t sum = masked_checksum(o->data + from, o->size - from);
    put(o, &sum, 4);
}

static void put_variables(struct out *o, struct mgx_wire input, struct mgx_slice raw)
{
    const uint32_t no_restarts = 0;
    struct mgx_wire_field f, part;
    if (raw.text) {
        put(o, raw.text, raw.size);
        return;
    }
    while (mgx_wire_next(&input, &f)) {
        struct mgx_slice key = {"", 0}, value = {"", 0};
        struct mgx_wire w;
        if (f.number != 1 || !mgx_wire_message(&input, &f, &w))
            continue;
        while (mgx_wire_next(&w, &part))
            if (part.type == MGX_WIRE_BYTES && (part.number == 1 || part.number == 2))
                *(part.number == 1 ? &key : &value) =
                    (struct mgx_slice){(const char *)part.data, part.size};
        put_entry(o, key, value.text, value.size);
    }
    put(o, &no_restarts, 4);
}

static void put_index(struct out *o, size_t block_size, struct mgx_slice raw)
{
    const uint32_t no_restarts = 0;
    uint8_t handle[20];
    struct out h = {handle, 0, sizeof handle, false};
    if (raw.text) {
        put(o, raw.text, raw.size);
        return;
    }
    put_varint(&h, 0);
    put_varint(&h, block_size);
    put_entry(o, (struct mgx_slice){"", 0}, handle, h.size);
    put(o, &no_restarts, 4);
}

static bool write_table(struct mgx_wire input, struct mgx_slice block, struct mgx_slice index)
{
    static const uint8_t padding[40], magic[8] = {0x57, 0xFB, 0x80, 0x8B, 0x24, 0x75, 0x47, 0xDB};
    static uint8_t room[ROOM];
    struct out o = {room, 0, sizeof room, false};
    put_variables(&o, input, block);
    const size_t block_size = o.size;
    put_trailer(&o, 0);
    const size_t index_at = o.size;
    put_index(&o, block_size, index);
    const size_t index_size = o.size - index_at, footer = o.size + 5;
    put_trailer(&o, index_at);
    put_varint(&o, 0); // where no meta block lies
    put_varint(&o, 0);
    put_varint(&o, index_at);
    put_varint(&o, index_size);
    put(&o, padding, sizeof padding - (o.size - footer));
    put(&o, magic, sizeof magic);
    if (!o.full)
        write_file("variables/variables.index", room, o.size);
    return !o.full;
}

// --- one input ---

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct mgx_tf_options options = {
        .nhwc = size & 1,
        .batch = size & 2 ? 3 : 1,
        .skip_unknown_operators = size & 4,
        .limit_bytes = BYTES,
        .limit_nodes = 5000,
        .limit_depth = 16,
        .limit_seconds = 5,
        .limit_loop_iterations = 20,
    };
    struct mgx_slice model = {"", 0}, block = {NULL, 0}, index = {NULL, 0};
    struct mgx_wire w = mgx_wire_of(data, size);
    struct mgx_wire_field f;
    while (mgx_wire_next(&w, &f))
        if (f.type == MGX_WIRE_BYTES && f.number >= 2 && f.number <= 4)
            *(f.number == 2   ? &model
              : f.number == 3 ? &block
                              : &index) = (struct mgx_slice){(const char *)f.data, f.size};
    make_folder();
    if (!write_table(mgx_wire_of(data, size), block, index))
        return 0;
    write_file("saved_model.pb", model.text, model.size);
    struct mgx_program *p = NULL;
    struct mgx_diag diag;
    mgx_diag_clear(&diag);
    const enum mgx_status status = mgx_tf_import_file(&p, folder, &options, &diag);
    require_outcome(status, p, &diag);
    if (p)
        exercise(p, (uint8_t)size);
    return 0;
}

// --- mutating ---

static const struct schema schema = {tf_rows, sizeof tf_rows / sizeof *tf_rows, tf_words,
                                     sizeof tf_words / sizeof *tf_words, INPUT};

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate(data, size, max_size, seed);
}
