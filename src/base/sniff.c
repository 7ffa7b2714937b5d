// SPDX-License-Identifier: MIT
// What a file is, told by its first bytes; see sniff.h.
#include "base/sniff.h"

#include <stdint.h>
#include <string.h>

#include "base/size.h"

static const struct {
    const char *begin, *what;
} rows[] = {
    {"version https://git-lfs", "a pointer to it (fetch the file: git lfs pull)"},
    {"<", "a web page or XML"},
    {"PK\x03\x04", "a zip archive, as PyTorch and Keras write them (model.export(folder) in Keras "
                   "writes what is read here)"},
    {"\x1F\x8B", "a gzip file (unpack it first)"},
    {"\x89HDF", "an HDF5 file, as older Keras writes them (model.export(folder) in Keras writes "
                "what is read here)"},
    {"\x93NUMPY", "a NumPy array, which is an input and no model"},
    {"GGUF", "weights in GGUF, without the model that they belong to"},
    {"node {", "a TensorFlow graph as text (write it with as_text=False)"},
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
    if (size >= 8 && memcmp(text + 4, "TFL3", 4) == 0) // behind the place of its root table
        return "a TensorFlow Lite model (read the SavedModel that it was made of)";
    if (text[0] == '{')
        return names_version(text, size) ? "a saved program in JSON (load reads those)"
                                         : "JSON text";
    return mgx_sniff_is_saved(data, size) ? "a saved program (load reads those)"
           : is_onnx(data, size)          ? "an ONNX model (parse_onnx reads those)"
                                          : NULL;
}
