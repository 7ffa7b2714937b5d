// SPDX-License-Identifier: MIT
// Numbers are read and written with a point, also where the process writes a comma.
#include "base/number.h"

#include "base/str.h"
#include "check.h"
#include "test_locale.h"

static void check_all(void)
{
    char *end, text[64];
    CHECK_NEAR(mgx_number_read("-2.5e3 x", &end), -2500, 0);
    CHECK_TEXT(end, " x");
    CHECK_NEAR(mgx_number_read("1,5", &end), 1, 0);
    CHECK_TEXT(end, ",5");
    CHECK_INT(mgx_number_format(text, sizeof text, "%.3f %g %s", 1.5, 0.25, "a,b"), 14);
    CHECK_TEXT(text, "1.500 0.25 a,b");
    CHECK_INT(mgx_number_format(text, 4, "%.3f", 1.5), 5);
    CHECK_TEXT(text, "1.5");
    struct mgx_str s = {0};
    mgx_str_printf(&s, "%.17g", 0.1);
    CHECK_TEXT(mgx_str_text(&s), "0.10000000000000001");
    mgx_str_fini(&s);
    struct mgx_diag diag = {0};
    mgx_fail(&diag, MGX_INVALID, "%g", 1.25);
    mgx_where(&diag, "%g", 2.5);
    CHECK_TEXT(diag.text, "1.25\n  in 2.5");
}

CASE(a_point_is_a_point)
{
    check_all();
}

CASE(a_comma_locale_changes_nothing)
{
    char text[8];
    if (!test_locale_enter_comma()) {
        printf("skipped: no locale with a decimal comma, and none could be made\n");
        return;
    }
    check_all();
    snprintf(text, sizeof text, "%.1f", 1.5);
    CHECK_TEXT(text, "1,5"); // and the process keeps what it has set
}

TEST_MAIN(ROW(a_point_is_a_point) ROW(a_comma_locale_changes_nothing))
