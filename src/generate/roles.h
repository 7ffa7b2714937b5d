// SPDX-License-Identifier: MIT
// What the inputs and results of a decoder are for, found out before it is compiled.
//
//     tokens                the new tokens of each text                     {texts, tokens}
//     mask                  1 for every token that a text has with them     {texts, longest}
//     positions             where the new ones stand                        {texts, tokens}
//     lengths               tokens of each text with them, less one         {texts}
//     total                 tokens of the longest text with them            {} or {1}
//     carried states        what a run gives and the next one takes
//     given                 what an encoder made of what the text is about
//     logits                scores of the token that follows each new one   {texts, tokens, words}
//
// Names are the caller's, or guessed: those of ONNX Runtime GenAI, Optimum and the like. A carried
// state is of one of three kinds:
//
//     with room     a cache of cache_append (GroupQueryAttention): rows behind the text's are free
//     growing       a cache that a run makes longer by the tokens it takes (concat)
//     fixed         of recurrent layers, convolutions, linear attention: the same lengths for ever
//
// Growing ones may be held (hold.h): the program has been rewritten, they have room, and the new
// tokens stand behind it in the mask.
//
// Holds: names and shapes lie in the caller's arena. Cost: O(parameters x results).
#pragma once

#include "ir/module.h"

struct mgx_lengths; // lengths.h

struct mgx_state_names { // of results and the parameters they are handed on to; %d: the layer
    const char *past, *present;
};

// Names that are known already; NULL and 0 where they are to be guessed.
struct mgx_role_names {
    const char *tokens, *mask, *positions, *lengths, *total, *logits;
    const struct mgx_state_names *states;
    int state_count;
    const char *const *given; // inputs that an encoder gives (encoder.h)
    int given_count;
};

enum mgx_carried_kind { MGX_CARRIED_ROOM, MGX_CARRIED_GROWING, MGX_CARRIED_FIXED };

struct mgx_carried {
    const char *past;
    int result;
    enum mgx_carried_kind kind;
    struct mgx_shape shape; // of the parameter
    int axis;               // of tokens, but in fixed ones
};

struct mgx_role { // an input of integers; name NULL: the model has none
    const char *name;
    enum mgx_type type;
    int rank;
};

struct mgx_roles {
    struct mgx_role tokens, mask, positions, lengths, total, branch;
    struct mgx_carried *carried;
    int carried_count, result_count;
    const char *const *given; // inputs that stay the same for a text
    const struct mgx_shape *given_shapes;
    int given_count;
    const char *const *said; // inputs that follow from the lengths of caches (lengths.h)
    int said_count;
    struct mgx_lengths *of_lengths; // which says them; NULL: nothing is said
    int logits;                     // number of that result
    int logits_rank;                // 2: of the last token alone
    int64_t words;                  // tokens that there are; 0: the model does not say
    int64_t most;                   // tokens that one run takes; 0: any
    bool has_kind[3];               // by mgx_carried_kind
    bool takes_many;                // texts in one run, each with a length of its own
    bool chooses;                   // the last result is the next token of each text (choice.h)
    bool held;          // caches that grew have room; `lengths` counts the new tokens too
    int64_t first_room; // rows for tokens that a cache with room begins with
    size_t weights;     // bytes of literals
};

// MGX_INVALID where an input has no role, or a state no result that goes on with it.
enum mgx_status mgx_roles_find(struct mgx_roles *out, const struct mgx_program *p,
                               const struct mgx_role_names *names, struct mgx_arena *arena,
                               struct mgx_diag *diag) MGX_NODISCARD;
// Does a name come from a template, and for which layer? -1: the template has no "%d".
bool mgx_is_of_template(const char *name, const char *pattern, int *layer);
// Bytes of the literals of a program.
size_t mgx_roles_weights(const struct mgx_program *p);
