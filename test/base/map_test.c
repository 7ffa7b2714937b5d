// SPDX-License-Identifier: MIT
#include "base/map.h"

#include "check.h"

CASE(finds_what_was_put_in_order)
{
    struct mgx_map map = {0};
    static char names[1000][8];
    for (int i = 0; i < 1000; i++) {
        snprintf(names[i], sizeof names[i], "k%d", i);
        CHECK(mgx_map_put(&map, names[i], names[i]));
    }
    for (int i = 0; i < 1000; i++) {
        CHECK(mgx_map_find(&map, names[i]) == names[i]);
        CHECK(map.entries[i].key == names[i]);
    }
    CHECK(!mgx_map_find(&map, "absent"));
    CHECK(mgx_map_put(&map, "k7", NULL));
    CHECK_INT(map.count, 1000);
    CHECK(mgx_map_find_entry(&map, "k7", 2) && !mgx_map_find(&map, "k7"));
    mgx_map_fini(&map);
}

CASE(pointer_keys_do_not_mix_with_strings)
{
    struct mgx_map map = {0};
    static const char key[] = "x";
    CHECK(mgx_map_put(&map, key, &map));
    CHECK(!mgx_map_find_pointer(&map, key));
    CHECK(mgx_map_put_pointer(&map, key, NULL));
    CHECK_INT(map.count, 2);
    mgx_map_fini(&map);
}

TEST_MAIN(ROW(finds_what_was_put_in_order) ROW(pointer_keys_do_not_mix_with_strings))
