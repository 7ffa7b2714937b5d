// SPDX-License-Identifier: MIT
// The variables of a SavedModel: a table of names (variables.index) and the shards that hold their
// bytes (variables.data-00000-of-00001).
//
// The index is a sorted table in blocks with checksums, whose keys share prefixes; a value says
// type, shape, shard, offset and size. It is read once into a map; shards are mapped when a
// variable in them is asked for.
//
// Holds: every length is checked against the bytes that there are, checksums of blocks are
// compared. Cost: one pass over the index, and at most 64 times its size for whole keys.
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "import/source.h"
#include "tf/proto.h"

struct mgx_tf_bundle {
    bool open;
    int64_t shards;
    struct mgx_map entries; // name -> struct mgx_wire *, the message about it
};

// The source is that of saved_model.pb, beside which the variables lie; names go to the arena.
enum mgx_status mgx_tf_bundle_open(struct mgx_tf_bundle *b, struct mgx_source *source,
                                   struct mgx_arena *arena, struct mgx_diag *diag) MGX_NODISCARD;
void mgx_tf_bundle_fini(struct mgx_tf_bundle *b);
// Type, shape and bytes of a variable; MGX_INVALID if there is none of that name.
enum mgx_status mgx_tf_bundle_find(const struct mgx_tf_bundle *b, struct mgx_slice name,
                                   struct mgx_source *source, struct mgx_arena *arena,
                                   struct mgx_shape *shape, struct mgx_region *out,
                                   struct mgx_diag *diag) MGX_NODISCARD;
