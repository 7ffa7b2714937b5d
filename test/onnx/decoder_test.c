// SPDX-License-Identifier: MIT
// What operators of com.microsoft for decoders refuse, and with which words: the two numbers that
// disagree. What they compute is judged by the cases of make_contrib.py.
#include "import.h"
#include "tiny.h"

static const struct {
    const char *line, *says;
} refuses[] = {
    {"SwiGLU(x:f[2,7])", "7 numbers do not make a gate and as many others"},
    {"GatedRMSNorm(x:f[2,6], s:f[4], g:f[2,6])", "do not fit an input of"},
    {"GatedRMSNorm(x:f[2,6], s:f[2,3], g:f[2,6])", "do not fit an input of"},
    {"GatedRMSNorm(x:f[2,6], s:f[3], g:f[2,6]) activation='relu'",
     "activation \"relu\" is not one of silu, swish, sigmoid"},
    {"LinearAttentionGate(x:f[2,3], b:f[3], s:f[3]) ->2", "beta is asked for, and b is missing"},
    {"GemmaRotaryEmbedding(e:f[5,8], q:f[5,8], r:f[5,8], k:f[5,8], l:f[5,8]) ->2",
     "emb has rank 2, not 3"},
    {"MRotaryEmbedding(x:f[1,5,16], p:i[3,1,5], c:f[9,4], s:f[9,4]) mrope_section=[2,3,1]",
     "3 mrope_sections of 6 pairs, not 3 of 4"},
    {"MRotaryEmbedding(x:f[1,5,16], p:i[3,1,5], c:f[9,4], s:f[9,4]) mrope_section=[2,2]",
     "2 mrope_sections of 4 pairs, not 3 of 4"},
    {"MRotaryEmbedding(x:f[1,5,16], p:i[3,1,5], c:f[9,4], s:f[9,4]) mrope_section=[5,-1,0]",
     "mrope_section 0 is 5 of 4 pairs"},
    {"MRotaryEmbedding(x:f[1,5,16], p:i[3,1,5], c:f[9,4], s:f[9,4]) mrope_section=[1,-1,4]",
     "mrope_section 1 is -1 of 4 pairs"},
    {"MRotaryEmbedding(x:f[1,5,16], p:i[2,1,5], c:f[9,4], s:f[9,4]) mrope_section=[2,1,1]",
     "do not fit an input of"},
    {"MRotaryEmbedding(x:f[1,5,16], p:i[3,1,5], c:f[9,4], s:f[8,4]) mrope_section=[2,1,1]",
     "do not fit an input of"},
    {"MRotaryEmbedding(x:f[5,16], p:i[3,1,5], c:f[9,4], s:f[9,4]) mrope_section=[2,1,1]",
     "do not fit an input of"},
    {"MRotaryEmbedding(x:f[1,5,16], p:i[3,1,5], c:f[9,4], s:f[9,4]) mrope_section=[2,1,1] "
     "num_heads=3",
     "16 channels do not make 3 heads"},
    {"MRotaryEmbedding(x:f[1,5,16], p:i[3,1,5], c:f[9,4], s:f[9,4]) mrope_section=[2,1,1] "
     "num_heads=4",
     "4 pairs of a head cannot be turned"},
    {"LinearAttention(q:f[1,2,8], k:f[1,2,6], v:f[1,2,8]) q_num_heads=2 kv_num_heads=2 "
     "update_rule='linear'",
     "2 heads of queries, 1 of keys and 2 of values"},
    {"LinearAttention(q:f[1,2,8], k:f[1,2,12], v:f[1,2,8]) q_num_heads=2 kv_num_heads=2 "
     "update_rule='linear'",
     "2 heads of queries, 3 of keys and 2 of values"},
};

CASE(operators_of_decoders_say_what_does_not_fit)
{
    for (int i = 0; i < (int)(sizeof refuses / sizeof *refuses); i++) {
        char line[256];
        snprintf(line, sizeof line, "com.microsoft.%s", refuses[i].line);
        struct pb m = tiny_model(line);
        CHECK(refused(&m, MGX_INVALID, refuses[i].says));
    }
}

TEST_MAIN(ROW(operators_of_decoders_say_what_does_not_fit))
