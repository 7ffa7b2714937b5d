// SPDX-License-Identifier: MIT
// Signals against their definitions, written out here: windows, transforms of whole signals and of
// frames, and the triangles of MelWeightMatrix.
#include "import.h"
#include "tiny.h"

enum { ROOM = 512 };

// The values of a model's result; how many, -1 if it fails.
static int64_t result_of(const char *line, const float *x, int count, double *out)
{
    struct mgx_diag diag;
    struct pb model = tiny_model(line);
    struct mgx_program *p = import_model(&model, NULL, &diag);
    const struct mgx_tensor arg = floats(x, 3, (int64_t[]){1, count, 1});
    const int64_t got = p ? run_model(p, &arg, x ? 1 : 0, NULL, out, ROOM) : -1;
    if (!p)
        printf("%s: %s\n", line, diag.text);
    mgx_program_destroy(p);
    return got;
}

static void check_window(const char *name, const double a[3], int size, bool periodic)
{
    char line[96];
    double got[ROOM];
    snprintf(line, sizeof line, "%sWindow(n:i=%d) periodic=%d output_datatype=11", name, size,
             periodic);
    CHECK_INT(result_of(line, NULL, 0, got), size);
    const int period = periodic ? size : size - 1;
    for (int i = 0; i < size; i++) {
        const double turn = period ? 2 * M_PI * i / period : 0;
        CHECK_NEAR(got[i], a[0] - a[1] * cos(turn) + a[2] * cos(2 * turn), 1e-15);
    }
}

CASE(windows_are_sums_of_cosines)
{
    static const struct {
        const char *name;
        double a[3];
    } windows[] = {{"Hann", {0.5, 0.5, 0}},
                   {"Hamming", {25.0 / 46, 1 - 25.0 / 46, 0}},
                   {"Blackman", {0.42, 0.5, 0.08}}};
    for (int i = 0; i < 3; i++)
        for (int size = 0; size < 9; size += size < 3 ? 1 : 5)
            for (int periodic = 0; periodic < 2; periodic++)
                check_window(windows[i].name, windows[i].a, size, periodic);
}

static const float signal[11] = {1, -2, 0.5f, 3, 0, -1.5f, 2, 4, -0.25f, 1, -3};

// Entry k of the transform of `count` values times a window (NULL: 1), zeros behind up to `length`.
static void transform(const float *x, const float *window, int count, int length, int k, int sign,
                      double out[2])
{
    out[0] = out[1] = 0;
    for (int i = 0; i < count && i < length; i++) {
        const double turn = sign * 2 * M_PI * k * i / length, v = x[i] * (window ? window[i] : 1);
        out[0] += v * cos(turn);
        out[1] += v * sin(turn);
    }
}

static void check_dft(const char *line, int length, int entries, bool inverse)
{
    double got[ROOM], want[2];
    CHECK_INT(result_of(line, signal, 11, got), 2 * entries);
    for (int k = 0; k < entries; k++) {
        transform(signal, NULL, 11, length, k, inverse ? 1 : -1, want);
        for (int part = 0; part < 2; part++)
            CHECK_NEAR(got[2 * k + part], want[part] / (inverse ? length : 1), 2e-5);
    }
}

CASE(transforms_are_sums_over_the_signal)
{
    check_dft("DFT(x:f[1,11,1]) @17", 11, 11, false);
    check_dft("DFT(x:f[1,11,1]) axis=1 inverse=1 @17", 11, 11, true);
    check_dft("DFT(x:f[1,11,1]) onesided=1 @17", 11, 6, false);
    check_dft("DFT(x:f[1,11,1], n:i=8) @17", 8, 8, false);
    check_dft("DFT(x:f[1,11,1], n:i=16) onesided=1 @17", 16, 9, false);
    check_dft("DFT(x:f[1,11,1]) @20", 11, 11, false);
    check_dft("DFT(x:f[1,11,1], -, a:i=1) @20", 11, 11, false);
    check_dft("DFT(x:f[1,11,1], n:i=7, a:i=-2) inverse=1 @20", 7, 7, true);
}

// Frames of `length` every `step` values, of which `taken` are read.
static void check_stft(const char *line, const float *window, int taken, int length, int step,
                       int entries)
{
    double got[ROOM], want[2];
    const int frames = (11 - length) / step + 1;
    CHECK_INT(result_of(line, signal, 11, got), 2 * frames * entries);
    for (int f = 0; f < frames; f++)
        for (int k = 0; k < entries; k++) {
            transform(signal + f * step, window, taken, length, k, -1, want);
            for (int part = 0; part < 2; part++)
                CHECK_NEAR(got[2 * (f * entries + k) + part], want[part], 2e-5);
        }
}

CASE(frames_are_transformed_one_by_one)
{
    static const float window[5] = {0.5f, 1, 2, -1, 0.25f};
    check_stft("STFT(x:f[1,11,1], s:i=3, -, n:i=4)", NULL, 4, 4, 3, 3);
    check_stft("STFT(x:f[1,11,1], s:i=2, -, n:i=11)", NULL, 11, 11, 2, 6);
    check_stft("STFT(x:f[1,11,1], s:i=3, w:f{0.5,1.0,2.0,-1.0,0.25})", window, 5, 5, 3, 3);
    check_stft("STFT(x:f[1,11,1], s:i=2, w:f{0.5,1.0,2.0,-1.0,0.25}, n:i=5) onesided=0", window, 5,
               5, 2, 5);
}

// As the standard's own text has it: corners as far apart in mel, rounded down to bins.
static void mel_weights(int mels, int length, int rate, double low, double high, double *out)
{
    const int rows = length / 2 + 1;
    int corner[16];
    const double first = 2595 * log10(1 + low / 700), last = 2595 * log10(1 + high / 700);
    for (int i = 0; i < mels + 2; i++) {
        const double hertz = 700 * (pow(10, (first + i * (last - first) / (mels + 2)) / 2595) - 1);
        corner[i] = (int)floor((length + 1) * hertz / rate);
    }
    memset(out, 0, (size_t)(rows * mels) * sizeof *out);
    for (int i = 0; i < mels; i++) {
        const int up = corner[i + 1] - corner[i], down = corner[i + 2] - corner[i + 1];
        if (up == 0)
            out[corner[i + 1] * mels + i] = 1;
        for (int j = 0; j <= up && up; j++)
            out[(corner[i] + j) * mels + i] = (double)j / up;
        for (int j = 0; j < down; j++)
            out[(corner[i + 1] + j) * mels + i] = (double)(down - j) / down;
    }
}

CASE(mel_weights_are_triangles)
{
    static const struct {
        int mels, length, rate;
        double low, high;
    } ask[] = {{4, 32, 8000, 0, 4000}, {8, 16, 8192, 100, 4096}, {1, 8, 100, 10, 40}};
    for (int i = 0; i < 3; i++) {
        char line[128];
        double got[ROOM], want[ROOM];
        const int count = ask[i].mels * (ask[i].length / 2 + 1);
        mel_weights(ask[i].mels, ask[i].length, ask[i].rate, ask[i].low, ask[i].high, want);
        snprintf(line, sizeof line,
                 "MelWeightMatrix(a:i=%d, b:i=%d, c:i=%d, d:f=%g, e:f=%g) output_datatype=11",
                 ask[i].mels, ask[i].length, ask[i].rate, ask[i].low, ask[i].high);
        CHECK_INT(result_of(line, NULL, 0, got), count);
        for (int k = 0; k < count; k++)
            CHECK_NEAR(got[k], want[k], 1e-15);
    }
}

TEST_MAIN(ROW(windows_are_sums_of_cosines) ROW(transforms_are_sums_over_the_signal)
              ROW(frames_are_transformed_one_by_one) ROW(mel_weights_are_triangles))
