// SPDX-License-Identifier: MIT
// The texts themselves; tool/embed.sh writes the list.
#include "targets/gpu/kernel/text.h"

#include <assert.h>
#include <string.h>

// C promises 4,095 characters in a string, gcc and clang take any number.
#pragma GCC diagnostic ignored "-Woverlength-strings"

#define TEXT(name, wants, text)                                                                    \
    const char gpu_text_##name[] = text;                                                           \
    const char gpu_wants_##name[] = wants;
#include "gpu_text.inc"
#undef TEXT

// Does the text have the word? For assertions.
__attribute__((unused)) static bool has_word(const char *text, const char *word, size_t length)
{
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        if ((at == text || !mgx_is_word_byte(at[-1])) && !mgx_is_word_byte(at[length]))
            return true;
    return false;
}

// Every name of `wants` is a word of the text.
__attribute__((unused)) static bool defines(const char *text, const char *wants)
{
    char word[64];
    for (const char *at = wants + strspn(wants, " "); *at; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");
        if (length >= sizeof word)
            return false;
        memcpy(word, at, length);
        word[length] = 0;
        if (!has_word(text, word, length))
            return false;
        at += length;
    }
    return true;
}

void gpu_put_text(struct mgx_str *out, const char *text, const char *wants)
{
    assert(out->failed || defines(mgx_str_text(out), wants));
    (void)wants;
    mgx_str_put(out, text);
}
