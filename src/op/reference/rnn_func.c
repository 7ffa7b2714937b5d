// SPDX-License-Identifier: MIT
// Activations of recurrent cells, by name. Case and underscores do not matter: "leaky_relu",
// "LeakyRelu" and "leakyrelu" are the same.
#include "op/reference/rnn_func.h"

#include <ctype.h>
#include <math.h>

static double relu(double x, double alpha, double beta)
{
    (void)alpha, (void)beta;
    return x > 0 ? x : isnan(x) ? x : 0;
}

static double tanh_(double x, double alpha, double beta)
{
    (void)alpha, (void)beta;
    return tanh(x);
}

static double sigmoid(double x, double alpha, double beta)
{
    (void)alpha, (void)beta;
    return 1 / (1 + exp(-x));
}

static double affine(double x, double alpha, double beta)
{
    return alpha * x + beta;
}

static double leaky_relu(double x, double alpha, double beta)
{
    (void)beta;
    return x < 0 ? alpha * x : x;
}

static double thresholded_relu(double x, double alpha, double beta)
{
    (void)beta;
    return x > alpha || isnan(x) ? x : 0;
}

static double scaled_tanh(double x, double alpha, double beta)
{
    return alpha * tanh(beta * x);
}

static double hard_sigmoid(double x, double alpha, double beta)
{
    const double y = alpha * x + beta;
    return y < 0 ? 0 : y > 1 ? 1 : y;
}

static double elu(double x, double alpha, double beta)
{
    (void)beta;
    return x < 0 ? alpha * expm1(x) : x;
}

static double softsign(double x, double alpha, double beta)
{
    (void)alpha, (void)beta;
    return x / (1 + fabs(x));
}

static double softplus(double x, double alpha, double beta)
{
    (void)alpha, (void)beta;
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double identity(double x, double alpha, double beta)
{
    (void)alpha, (void)beta;
    return x;
}

static const struct {
    const char *name;
    struct mgx_rnn_func func; // with the defaults of its parameters
    bool takes_alpha, takes_beta;
} table[] = {
    {"relu", {relu, 0, 0}, false, false},
    {"tanh", {tanh_, 0, 0}, false, false},
    {"sigmoid", {sigmoid, 0, 0}, false, false},
    {"affine", {affine, 1, 0}, true, true},
    {"leakyrelu", {leaky_relu, 0.01, 0}, true, false},
    {"thresholdedrelu", {thresholded_relu, 1, 0}, true, false},
    {"scaledtanh", {scaled_tanh, 1, 1}, true, true},
    {"hardsigmoid", {hard_sigmoid, 0.2, 0.5}, true, true},
    {"elu", {elu, 1, 0}, true, false},
    {"softsign", {softsign, 0, 0}, false, false},
    {"softplus", {softplus, 0, 0}, false, false},
    {"identity", {identity, 0, 0}, false, false},
};

static bool same_name(const char *plain, const char *given)
{
    for (;; plain++, given++) {
        while (*given == '_')
            given++;
        if (*plain != tolower((unsigned char)*given))
            return false;
        if (!*plain)
            return true;
    }
}

bool mgx_rnn_func_find(const char *name, struct mgx_doubles *alphas, struct mgx_doubles *betas,
                       struct mgx_rnn_func *out)
{
    for (int i = 0; i < MGX_COUNT(table); i++) {
        if (!same_name(table[i].name, name))
            continue;
        *out = table[i].func;
        if (table[i].takes_alpha && alphas->count > 0) {
            out->alpha = *alphas->v++;
            alphas->count--;
        }
        if (table[i].takes_beta && betas->count > 0) {
            out->beta = *betas->v++;
            betas->count--;
        }
        return true;
    }
    return false;
}
