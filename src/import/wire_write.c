// SPDX-License-Identifier: MIT
// Writer of the protobuf wire format; see wire_write.h.
#include "import/wire_write.h"

#include <assert.h>
#include <string.h>

static void put_varint(struct mgx_str *s, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        mgx_str_putc(s, (char)(value | 0x80));
    mgx_str_putc(s, (char)value);
}

void mgx_wire_put_int(struct mgx_str *s, uint32_t field, int64_t value)
{
    assert(field > 0);
    put_varint(s, field << 3);
    put_varint(s, (uint64_t)value);
}

void mgx_wire_put_float(struct mgx_str *s, uint32_t field, float value)
{
    assert(field > 0);
    char bytes[4];
    memcpy(bytes, &value, sizeof bytes);
    put_varint(s, field << 3 | MGX_WIRE_32);
    mgx_str_putn(s, bytes, sizeof bytes);
}

void mgx_wire_put_bytes(struct mgx_str *s, uint32_t field, const void *data, size_t size)
{
    assert(field > 0 && (data || !size));
    put_varint(s, field << 3 | MGX_WIRE_BYTES);
    put_varint(s, size);
    mgx_str_putn(s, data, size);
}

void mgx_wire_put_slice(struct mgx_str *s, uint32_t field, struct mgx_slice text)
{
    mgx_wire_put_bytes(s, field, text.text, text.size);
}

void mgx_wire_put_text(struct mgx_str *s, uint32_t field, const char *text)
{
    mgx_wire_put_bytes(s, field, text, strlen(text));
}

void mgx_wire_put_message(struct mgx_str *s, uint32_t field, struct mgx_str *message)
{
    assert(s != message);
    mgx_wire_put_bytes(s, field, mgx_str_text(message), message->size);
    s->failed |= message->failed;
    mgx_str_fini(message);
}
