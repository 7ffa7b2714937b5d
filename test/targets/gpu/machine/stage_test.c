// SPDX-License-Identifier: MIT
// Copies by pieces, on a card that does nothing until somebody waits for it: whatever is read or
// written too early, or a place that is taken again too soon, shows in the bytes.
#include "targets/gpu/machine/stage.h"

#include <stdlib.h>

#include "check.h"

enum { MOST = 1024, LARGEST = 3 * GPU_STAGE_SLOTS * GPU_STAGE_PIECE / 2 + 77 };

static struct {
    struct {
        void *to; // NULL: an event's record
        const void *from;
        size_t bytes;
        int *event;
    } commands[MOST];
    int count, done; // given and executed
    int events, rooms;
    int fail; // the call with this number fails; -1: none
    const void *pinned;
} card;

static enum mgx_status may_fail(struct mgx_diag *diag)
{
    return card.fail-- == 0 ? mgx_fail(diag, MGX_DEVICE, "as the test wants it") : MGX_OK;
}

static void play_to(int end)
{
    for (; card.done < end; card.done++)
        if (card.commands[card.done].to)
            memcpy(card.commands[card.done].to, card.commands[card.done].from,
                   card.commands[card.done].bytes);
}

static enum mgx_status enqueue(void *to, const void *from, size_t bytes, struct mgx_diag *diag)
{
    TRY(may_fail(diag));
    if (card.count == MOST)
        return mgx_fail(diag, MGX_INVALID, "more than %d commands", MOST);
    card.commands[card.count].to = to;
    card.commands[card.count].from = from;
    card.commands[card.count++].bytes = bytes;
    return MGX_OK;
}

static enum mgx_status copy_in(struct gpu_device *d, void *stream, void *to, const void *host,
                               size_t bytes, struct mgx_diag *diag)
{
    (void)d, (void)stream;
    return enqueue(to, host, bytes, diag);
}

static enum mgx_status copy_out(struct gpu_device *d, void *stream, void *host, const void *from,
                                size_t bytes, struct mgx_diag *diag)
{
    (void)d, (void)stream;
    return enqueue(host, from, bytes, diag);
}

static enum mgx_status event_create(struct gpu_device *d, void **out, struct mgx_diag *diag)
{
    (void)d;
    TRY(may_fail(diag));
    *out = calloc(1, sizeof(int));
    card.events++;
    return MGX_OK;
}

static void event_destroy(struct gpu_device *d, void *event)
{
    (void)d;
    free(event);
    card.events--;
}

static enum mgx_status event_record(struct gpu_device *d, void *event, void *stream,
                                    struct mgx_diag *diag)
{
    (void)d, (void)stream;
    TRY(enqueue(NULL, NULL, 0, diag));
    *(int *)event = card.count; // behind it
    return MGX_OK;
}

static enum mgx_status event_wait(struct gpu_device *d, void *event, struct mgx_diag *diag)
{
    (void)d;
    TRY(may_fail(diag));
    play_to(*(int *)event);
    return MGX_OK;
}

static enum mgx_status alloc_host(struct gpu_device *d, size_t bytes, void **out,
                                  struct mgx_diag *diag)
{
    (void)d;
    *out = NULL;
    TRY(may_fail(diag));
    *out = malloc(bytes);
    card.rooms++;
    return MGX_OK;
}

static void free_host(struct gpu_device *d, void *host)
{
    (void)d;
    free(host);
    card.rooms--;
}

static bool pinned(struct gpu_device *d, const void *host)
{
    (void)d;
    return host == card.pinned;
}

static const struct gpu_api api = {.name = "late",
                                   .alloc_host = alloc_host,
                                   .free_host = free_host,
                                   .pinned = pinned,
                                   .event_create = event_create,
                                   .event_destroy = event_destroy,
                                   .event_record = event_record,
                                   .event_wait = event_wait,
                                   .copy_in = copy_in,
                                   .copy_out = copy_out};
static struct gpu_device device = {.api = &api};

static void spread(const void *who, int tasks, void (*fn)(void *user, int task, int thread),
                   void *user)
{
    (void)who;
    for (int i = tasks - 1; i >= 0; i--)
        fn(user, i, 0);
}

static void begin(struct gpu_stage *stage)
{
    memset(&card, 0, sizeof card);
    card.fail = -1;
    *stage = (struct gpu_stage){.help = {.spread = spread}};
}

static void end(struct gpu_stage *stage)
{
    play_to(card.count);
    gpu_stage_fini(stage, &device);
    CHECK_INT(card.events, 0);
    CHECK_INT(card.rooms, 0);
}

static void fill(unsigned char *bytes, size_t count, unsigned seed)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)((i * 2654435761u + seed) >> 13);
}

// To the card and back, one after the other on one ring; the source is gone as soon as it may be.
static enum mgx_status there_and_back(struct gpu_stage *stage, size_t bytes, bool *same,
                                      struct mgx_diag *diag)
{
    static unsigned char host[LARGEST], on_card[LARGEST], back[LARGEST], want[LARGEST];
    fill(want, bytes, (unsigned)bytes);
    memcpy(host, want, bytes);
    memset(on_card, 1, sizeof on_card);
    memset(back, 2, sizeof back);
    enum mgx_status status = gpu_stage_in(stage, &device, NULL, on_card, host, bytes, diag);
    memset(host, 3, bytes);
    if (status == MGX_OK)
        status = gpu_stage_out(stage, &device, NULL, back, on_card, bytes, diag);
    if (status == MGX_OK)
        status = gpu_stage_settle(stage, &device, diag);
    *same = memcmp(back, want, bytes) == 0 && (bytes == LARGEST || back[bytes] == 2);
    play_to(card.count); // as a queue waits after all of it
    return status;
}

CASE(bytes_of_any_size_arrive)
{
    static const size_t sizes[] = {GPU_STAGE_LEAST,
                                   GPU_STAGE_LEAST + 1,
                                   (256 << 10) + 1,
                                   GPU_STAGE_PIECE - 1,
                                   GPU_STAGE_PIECE,
                                   GPU_STAGE_PIECE + 1,
                                   GPU_STAGE_SLOTS * GPU_STAGE_PIECE + 5,
                                   LARGEST};
    struct mgx_diag diag = {.status = MGX_OK};
    struct gpu_stage stage;
    begin(&stage);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bool same = false;
        CHECK(gpu_stage_takes(&stage, &device, &diag, sizes[i]));
        CHECK_OK(there_and_back(&stage, sizes[i], &same, &diag), diag);
        CHECK(same);
    }
    CHECK_INT(card.rooms, 1);
    end(&stage);
}

CASE(what_gains_nothing_goes_the_drivers_way)
{
    struct gpu_stage stage;
    int here;
    begin(&stage);
    CHECK(!gpu_stage_takes(&stage, &device, &here, GPU_STAGE_LEAST - 1));
    card.pinned = &here;
    CHECK(!gpu_stage_takes(&stage, &device, &here, LARGEST));
    card.pinned = NULL;
    stage.help.spread = NULL;
    CHECK(!gpu_stage_takes(&stage, &device, &here, LARGEST));
    CHECK_INT(card.rooms, 0);
    stage.help.spread = spread;
    card.fail = 0; // no memory can be pinned, which is asked once
    CHECK(!gpu_stage_takes(&stage, &device, &here, LARGEST));
    CHECK(!gpu_stage_takes(&stage, &device, &here, LARGEST));
    end(&stage);
}

CASE(a_copy_that_fails_leaves_the_ring_whole)
{
    enum { BYTES = GPU_STAGE_SLOTS * GPU_STAGE_PIECE + 5, CALLS = 80 };
    int failed = 0;
    for (int i = 0; i < CALLS; i += 7) {
        struct mgx_diag diag = {.status = MGX_OK}, after = {.status = MGX_OK};
        struct gpu_stage stage;
        bool same = false;
        begin(&stage);
        CHECK(gpu_stage_takes(&stage, &device, &diag, BYTES));
        card.fail = i;
        if (there_and_back(&stage, BYTES, &same, &diag) != MGX_OK) {
            struct mgx_diag quiet = {.status = MGX_OK};
            failed++;
            CHECK_TEXT(diag.text, "as the test wants it");
            (void)!gpu_stage_settle(&stage, &device, &quiet);
        } else
            CHECK(same);
        card.fail = -1;
        CHECK_OK(there_and_back(&stage, BYTES, &same, &after), after);
        CHECK(same);
        end(&stage);
    }
    CHECK(failed > GPU_STAGE_SLOTS / 2 && failed < CALLS / 7);
}

TEST_MAIN(ROW(bytes_of_any_size_arrive) ROW(what_gains_nothing_goes_the_drivers_way)
              ROW(a_copy_that_fails_leaves_the_ring_whole))
