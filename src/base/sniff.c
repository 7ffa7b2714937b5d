// SPDX-License-Identifier: MIT
// What a file is, told by its first bytes; see sniff.h.
#include "base/sniff.h"

#include <stdint.h>
#include <string.h>

#include "base/size.h"

#define KERAS "(Keras' model.export(folder) writes what is read here)"
#define TORCH "(torch.onnx.export writes a model that is read here)"

static const struct {
    const char *begin, *what;
} rows[] = {
    {"version https://git-lfs", "a pointer to it (fetch the file: git lfs pull)"},
    {"<?xml", "XML; of OpenVINO's, read the model that it was made of"},
    {"<", "a web page or XML"},
    {"\x1F\x8B", "a gzip file (unpack it first)"},
    {"BZh", "a bzip2 file (unpack it first)"},
    {"\xFD"
     "7zXZ",
     "an xz file (unpack it first)"},
    {"\x28\xB5\x2F\xFD", "a zstd file (unpack it first)"},
    {"\x89HDF", "an HDF5 file, as older Keras writes them " KERAS},
    {"\x93NUMPY", "a NumPy array, which is an input and no model"},
    {"GGUF", "weights in GGUF, without the model that they belong to"},
    {"node {", "a TensorFlow graph as text (write it with as_text=False)"},
    {"\xFF\xD8\xFF", "a JPEG image, which is an input and no model"},
    {"\x89PNG", "a PNG image, which is an input and no model"},
    {"GIF8", "a GIF image, which is an input and no model"},
    {"RIFF", "a WebP image or a sound, which is an input and no model"},
    {"%PDF", "a PDF document"},
    {"\x7F"
     "ELF",
     "a program or a library"},
    {"module: \"", "a program as text (the driver reads it with --migraphx-text)"},
    {"#!", "a script"},
    {"import ", "a Python script (the driver runs those that end in .py)"},
};

static bool contains(const char *data, size_t size, const char *text)
{
    const size_t length = strlen(text);
    for (size_t i = 0; i + length <= size; i++)
        if (memcmp(data + i, text, length) == 0)
            return true;
    return false;
}

// ir_version first, then a string or a message: how every exporter begins.
static bool is_onnx(const uint8_t *p, size_t size)
{
    return size > 3 && p[0] == 0x08 && p[1] > 0 && p[1] < 0x40 && (p[2] & 7) == 2 && p[2] <= 0x42;
}

// A zip archive tells by the names of its entries, the first of which comes first.
static const char *zip_kind(const char *text, size_t size)
{
    enum { HEAD = 4096 };
    const size_t head = size < HEAD ? size : HEAD;
    if (contains(text, head, "data.pkl") || contains(text, head, "constants.pkl"))
        return "a PyTorch file " TORCH;
    if (contains(text, head, "metadata.json") || contains(text, head, "config.json"))
        return "a Keras model " KERAS;
    if (contains(text, head, ".npy"))
        return "an archive of NumPy arrays, which are inputs and no model";
    return "a zip archive, as PyTorch and Keras write them " TORCH ", " KERAS;
}

// Files without a mark in front: weights, archives, pickles.
static const char *plain_kind(const uint8_t *p, size_t size)
{
    enum { TAR = 257 };
    const char *text = (const char *)p;
    if (size > 9 && text[8] == '{' && text[9] == '"' && p[6] == 0 && p[7] == 0)
        return "weights in safetensors, without the model that they belong to";
    if (size > TAR + 5 && memcmp(text + TAR, "ustar", 5) == 0)
        return "a tar archive (unpack it first)";
    if (size > 2 && p[0] == 0x80 && p[1] >= 2 && p[1] <= 5)
        return "a Python pickle, as older PyTorch writes them " TORCH;
    if (size > 6 && memcmp(p, "BM", 2) == 0 && p[6] == 0)
        return "a BMP image, which is an input and no model";
    return NULL;
}

static bool is_text(const uint8_t *p, size_t size)
{
    enum { HEAD = 64 };
    for (size_t i = 0; i < size && i < HEAD; i++)
        if ((p[i] < ' ' && p[i] != '\n' && p[i] != '\t' && p[i] != '\r') || p[i] == 0x7F)
            return false;
    return size > 4;
}

static bool names_version(const char *text, size_t size)
{
    enum { HEAD = 4096 }; // the key may stand anywhere, behind the modules too
    return contains(text, size < HEAD ? size : HEAD, "version");
}

bool mgx_sniff_is_saved(const void *data, size_t size)
{
    const uint8_t first = size ? *(const uint8_t *)data : 0;
    return ((first & 0xf0) == 0x80 || first == 0xde) && names_version(data, size);
}

const char *mgx_sniff(const void *data, size_t size)
{
    const char *text = data;
    if (!size)
        return "an empty file";
    for (int i = 0; i < MGX_COUNT(rows); i++) {
        const size_t length = strlen(rows[i].begin);
        if (size >= length && memcmp(text, rows[i].begin, length) == 0)
            return rows[i].what;
    }
    if (size >= 4 && memcmp(text, "PK\x03\x04", 4) == 0)
        return zip_kind(text, size);
    if (size >= 8 && memcmp(text + 4, "TFL3", 4) == 0) // behind the place of its root table
        return "a TensorFlow Lite model (read the SavedModel that it was made of)";
    if (text[0] == '{')
        return names_version(text, size) ? "a saved program in JSON (load reads those)"
                                         : "JSON text";
    if (mgx_sniff_is_saved(data, size))
        return "a saved program (load reads those)";
    if (is_onnx(data, size))
        return "an ONNX model (parse_onnx reads those, the driver with --onnx)";
    const char *plain = plain_kind(data, size);
    return plain ? plain : is_text(data, size) ? "text" : NULL;
}
