// SPDX-License-Identifier: MIT
// Members of sequences and optionals, where they are known.
//
//     sequence_at(sequence_construct(a, b), 1)            =>  b
//     sequence_at(sequence_insert(s, x, 0), 0)            =>  x
//     sequence_at(split_to_sequence[axis](x, sizes), i)   =>  slice(x)
//     sequence_length(sequence_erase(s))                  =>  literal
//     concat_from_sequence[axis](sequence_construct(..))  =>  concat(..), of unsqueezes where it stacks
//     optional_get_element(optional_construct(x))         =>  x
//     optional_has_element(optional_construct(x))         =>  literal
//
// A sequence is a list on the side: which instructions, or which parts of one. Holds: positions and
// sizes are literals within their sequence, the axis that is split has a length that is known, and
// what is joined goes together; all else stays and fails, or not, when it runs. Each that reads
// costs O(members and edits).
#pragma once

#include "pass/engine/pass.h"

// What an instruction that reads a sequence or an optional gives, emitted before it where it is
// new; NULL where that is not known, or when out of memory, which the program or scratch notes.
struct mgx_ins *mgx_known_member(struct mgx_ins *read, struct mgx_arena *scratch);
