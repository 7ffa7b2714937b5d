// SPDX-License-Identifier: MIT
// The one place of the library that writes to a stream: stdout, for the functions whose purpose is
// to print and for the traces that the environment asks for.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/api.h"

void mgx_api_print(const char *text)
{
    assert(text);
    fputs(text, stdout);
    fflush(stdout);
}

void mgx_api_print_program(const struct mgx_program *p)
{
    assert(p);
    struct mgx_str text = {0};
    if (p->executable && p->executable->target->print)
        p->executable->target->print(p, &text);
    else
        mgx_program_print(&text, p);
    mgx_str_putc(&text, '\n');
    mgx_api_print(mgx_str_text(&text));
    mgx_str_fini(&text);
}

migraphx_status migraphx_program_print(const_migraphx_program_t program)
{
    API_NEED(program);
    mgx_api_print_program(program->p);
    return migraphx_status_success;
}

migraphx_status migraphx_module_print(const_migraphx_module_t module)
{
    API_NEED(module);
    struct mgx_str text = {0};
    mgx_module_print(&text, mgx_api_module(module));
    mgx_api_print(mgx_str_text(&text));
    mgx_str_fini(&text);
    return migraphx_status_success;
}
