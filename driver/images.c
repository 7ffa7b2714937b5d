// SPDX-License-Identifier: MIT
// Images as calibration samples: .jpg, .png and what else Pillow reads.
//
//     value = (pixel * scale - mean) / deviation
//
// python3 with Pillow decodes each image and resizes the whole of it to the input's height and
// width; the pixels come through a pipe, one image after the other. What the input looks like says
// the rest: {N, C, H, W} or {N, H, W, C} with one, three or four channels, of floats (scale 1/255) or
// of bytes (scale 1). A batch holds the same image N times. No image outlives its turn.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "samples.h"

extern char **environ;

static const char script[] =
    "import sys\n"
    "sys.path = [p for p in sys.path if p]\n" // nothing out of the current folder
    "try:\n"
    "    from PIL import Image, ImageOps\n"
    "except ImportError as e:\n"
    "    sys.exit('images are read by Pillow, and %s has none (%s): pip install pillow, or give '\n"
    "             'arrays (.npz, .npy)' % (sys.executable, e))\n"
    "mode, width, height = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])\n"
    "for name in sys.stdin.buffer.read().split(b'\\0')[:-1]:\n"
    "    try:\n"
    "        with Image.open(name.decode(errors='surrogateescape')) as image:\n"
    "            image = ImageOps.exif_transpose(image).convert(mode)\n"
    "            pixels = image.resize((width, height), Image.BILINEAR).tobytes()\n"
    "    except Exception as e:\n"
    "        sys.exit('%s: no image that Pillow reads: %s' % (name.decode(errors='replace'), e))\n"
    "    sys.stdout.buffer.write(pixels)\n";

bool is_image(const char *path)
{
    static const char *const ends[] = {".jpg",  ".jpeg", ".png",  ".bmp", ".gif",
                                       ".webp", ".tif",  ".tiff", ".ppm", ".pgm"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof ends / sizeof *ends; i++)
        if (strcasecmp(dot, ends[i]) == 0)
            return true;
    return false;
}

// --- what the input looks like ---

struct layout {
    const char *name; // of the input
    const_migraphx_shape_t shape;
    size_t batch, channels, height, width;
    bool channels_last;
    double scale, mean[4], deviation[4];
};

static bool are_channels(size_t length)
{
    return length == 1 || length == 3 || length == 4;
}

static bool find_lengths(struct layout *l)
{
    const size_t *lens;
    size_t rank = 0, shown;
    bool dynamic = true;
    if (!OK(migraphx_shape_dynamic(&dynamic, l->shape)) ||
        !OK(migraphx_shape_rank(&rank, l->shape)))
        return false;
    if (dynamic) {
        log_error("images for '%s': its lengths are open; --input-dim gives them", l->name);
        return false;
    }
    if (!OK(migraphx_shape_lengths(&lens, &shown, l->shape)))
        return false;
    l->channels_last = rank == 4 && !are_channels(lens[1]);
    if (rank != 4 || !are_channels(lens[l->channels_last ? 3 : 1])) {
        log_error("images are samples of an input {N, C, H, W} or {N, H, W, C} of 1, 3 or 4 "
                  "channels, and '%s' is none: give arrays (.npz, .npy)",
                  l->name);
        return false;
    }
    l->batch = lens[0];
    l->channels = lens[l->channels_last ? 3 : 1];
    l->height = lens[l->channels_last ? 1 : 2];
    l->width = lens[l->channels_last ? 2 : 3];
    return l->height < 65536 && l->width < 65536;
}

// One number for all channels, or one for each.
static bool read_channels(const char *flag, const struct words *words, size_t channels,
                          double least, double *out)
{
    const size_t count = (size_t)words->count;
    if (count > 1 && count != channels) {
        log_error("%s needs one number or %zu, for the channels; it has %zu", flag, channels,
                  count);
        return false;
    }
    for (size_t i = 0; count && i < channels; i++) {
        const char *word = words->items[count == 1 ? 0 : i];
        char *end;
        out[i] = strtod(word, &end);
        if (!*word || *end || !(out[i] > least)) {
            log_error("%s needs numbers%s, not '%s'", flag, least >= 0 ? " above 0" : "", word);
            return false;
        }
    }
    return true;
}

static bool find_layout(const struct reader *r, struct layout *l)
{
    migraphx_shape_datatype_t type;
    *l = (struct layout){.deviation = {1, 1, 1, 1}};
    if (r->count != 1) {
        log_error("images are samples of a model with one input, and this has %zu: give arrays "
                  "(.npz)",
                  r->count);
        return false;
    }
    l->name = r->names[0];
    if (!OK(migraphx_program_parameter_shapes_get(&l->shape, r->shapes, l->name)) ||
        !OK(migraphx_shape_type(&type, l->shape)) || !find_lengths(l))
        return false;
    l->scale = type == migraphx_shape_uint8_type ? 1 : 1.0 / 255;
    if (r->o->image_scale)
        l->scale = strtod(r->o->image_scale, NULL);
    return read_channels("--image-mean", &r->o->image_mean, l->channels, -1e300, l->mean) &&
           read_channels("--image-std", &r->o->image_std, l->channels, 0, l->deviation);
}

// --- pixels ---

static void place(const struct layout *l, bool bgr, const unsigned char *pixels, double *out)
{
    const size_t area = l->height * l->width, all = area * l->channels;
    for (size_t i = 0; i < area; i++)
        for (size_t c = 0; c < l->channels; c++) {
            const size_t from = bgr && l->channels >= 3 && c < 3 ? 2 - c : c;
            out[l->channels_last ? i * l->channels + c : c * area + i] =
                (pixels[i * l->channels + from] * l->scale - l->mean[c]) / l->deviation[c];
        }
    for (size_t n = 1; n < l->batch; n++)
        memcpy(out + n * all, out, all * sizeof *out);
}

static bool add_image(struct reader *r, const struct layout *l, const unsigned char *pixels,
                      double *values)
{
    migraphx_argument_t argument = NULL;
    size_t elements = 0;
    place(l, r->o->image_bgr, pixels, values);
    const bool good = OK(migraphx_shape_elements(&elements, l->shape)) &&
                      OK(migraphx_argument_create_values(&argument, l->shape, values, elements)) &&
                      OK(migraphx_program_parameters_create(&r->sample)) &&
                      OK(migraphx_program_parameters_add(r->sample, l->name, argument)) &&
                      r->add(r->data, r->sample);
    migraphx_program_parameters_destroy(r->sample);
    r->sample = NULL;
    migraphx_argument_destroy(argument);
    return good;
}

// --- the other process ---

static bool start_python(const struct layout *l, pid_t *child, FILE **names, FILE **pixels)
{
    static const char *const modes[] = {NULL, "L", NULL, "RGB", "RGBA"};
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    char width[16], height[16];
    posix_spawn_file_actions_t actions;
    snprintf(width, sizeof width, "%zu", l->width);
    snprintf(height, sizeof height, "%zu", l->height);
    char *const words[] = {(char *)"python3",
                           (char *)"-c",
                           (char *)script,
                           (char *)modes[l->channels],
                           width,
                           height,
                           NULL};
    bool good = pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 &&
                posix_spawn_file_actions_init(&actions) == 0;
    if (good) {
        good = posix_spawn_file_actions_adddup2(&actions, in[0], 0) == 0 &&
               posix_spawn_file_actions_adddup2(&actions, out[1], 1) == 0 &&
               posix_spawnp(child, words[0], &actions, NULL, words, environ) == 0;
        posix_spawn_file_actions_destroy(&actions);
    }
    if (!good)
        log_error("images are read by python3 with Pillow, and there is no python3");
    close(in[0]);
    close(out[1]);
    *names = good ? fdopen(in[1], "wb") : NULL;
    *pixels = good ? fdopen(out[0], "rb") : NULL;
    return *names && *pixels;
}

static void send_names(const struct words *images, FILE *names)
{
    void (*const before)(int) = signal(SIGPIPE, SIG_IGN); // it may have ended: its text says why
    for (int i = 0; i < images->count; i++)
        fwrite(images->items[i], 1, strlen(images->items[i]) + 1, names);
    fclose(names);
    signal(SIGPIPE, before);
}

static bool receive(struct reader *r, const struct layout *l, int count, FILE *from)
{
    const size_t size = l->height * l->width * l->channels;
    unsigned char *pixels = malloc(size + 1);
    double *values = calloc(size * l->batch + 1, sizeof *values);
    bool good = pixels && values;
    if (!good)
        log_error("out of memory");
    for (int i = 0; good && i < count; i++)
        good = fread(pixels, 1, size, from) == size && add_image(r, l, pixels, values);
    free(values);
    free(pixels);
    return good;
}

bool add_images(struct reader *r)
{
    struct layout l;
    FILE *names = NULL, *pixels = NULL;
    pid_t child;
    int status = 0;
    if (!r->images.count)
        return true;
    if (!find_layout(r, &l) || !start_python(&l, &child, &names, &pixels))
        return false;
    send_names(&r->images, names);
    bool good = receive(r, &l, r->images.count, pixels);
    fclose(pixels);
    while (waitpid(child, &status, 0) < 0 && !work_stopped())
        ;
    good = good && status == 0;
    if (!good)
        log_error("--calibration: images of %s could not be read", r->o->calibration.items[0]);
    return good;
}
