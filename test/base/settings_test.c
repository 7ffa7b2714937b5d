// SPDX-License-Identifier: MIT
#include "base/settings.h"

#include "check.h"

CASE(are_set_replaced_and_taken_away)
{
    struct mgx_arena arena;
    struct mgx_settings s = {NULL, 0};
    mgx_arena_init(&arena);
    char name[] = "isa";
    CHECK(!mgx_setting(&s, "isa"));
    CHECK(mgx_settings_put(&s, &arena, name, "avx2"));
    CHECK(mgx_settings_put(&s, &arena, "device_id", "3"));
    name[0] = 'x'; // it has its own
    CHECK_TEXT(mgx_setting(&s, "isa"), "avx2");
    CHECK_INT(mgx_setting_int(&s, "device_id"), 3);
    CHECK(mgx_settings_put(&s, &arena, "isa", "generic"));
    CHECK_TEXT(mgx_setting(&s, "isa"), "generic");
    CHECK(mgx_settings_put(&s, &arena, "isa", NULL));
    CHECK(!mgx_setting(&s, "isa"));
    CHECK_INT(s.count, 1);
    mgx_arena_fini(&arena);
}

CASE(a_copy_lives_by_itself)
{
    struct mgx_arena arena;
    struct mgx_settings copy;
    mgx_arena_init(&arena);
    char value[] = "1";
    const struct mgx_settings list = MGX_SETTINGS({"tf32", value}, {"device", NULL});
    CHECK(mgx_settings_copy(&copy, &arena, &list));
    value[0] = '0';
    CHECK(!mgx_setting_is_on(&list, "tf32"));
    CHECK(mgx_setting_is_on(&copy, "tf32"));
    CHECK(!mgx_setting(&copy, "device"));
    mgx_arena_fini(&arena);
}

TEST_MAIN(ROW(are_set_replaced_and_taken_away) ROW(a_copy_lives_by_itself))
