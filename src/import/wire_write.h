// SPDX-License-Identifier: MIT
// Writer of the protobuf wire format into a string: the counterpart of wire.h. Field numbers are
// the caller's; what has no memory left shows in the string's `failed`.
#pragma once

#include "base/str.h"
#include "import/wire.h"

void mgx_wire_put_int(struct mgx_str *s, uint32_t field, int64_t value);
void mgx_wire_put_float(struct mgx_str *s, uint32_t field, float value);
void mgx_wire_put_bytes(struct mgx_str *s, uint32_t field, const void *data, size_t size);
void mgx_wire_put_slice(struct mgx_str *s, uint32_t field, struct mgx_slice text);
void mgx_wire_put_text(struct mgx_str *s, uint32_t field, const char *text);
// A finished message as a field of another; empties it.
void mgx_wire_put_message(struct mgx_str *s, uint32_t field, struct mgx_str *message);
