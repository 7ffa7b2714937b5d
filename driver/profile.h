// SPDX-License-Identifier: MIT
// What perf measured, and the forms it is shown in.
#pragma once

#include "driver.h"

// That a thread was at an instruction, in microseconds since the run began; thread 0 is the calling
// one.
struct span {
    size_t instruction, thread;
    double begin, end;
};

// Those of one run, in the order of its instructions; none where a card computes.
struct timeline {
    struct span *spans;
    size_t count, room;
    bool failed; // for want of memory
};

struct measurement {
    double *total;        // milliseconds of each timed run, sorted
    double *profiled;     // of each profiled run less its instructions
    double *instructions; // [instruction][run]
    double *average;      // of each instruction
    int runs;             // that were asked for
    int timed, profiles;  // that were done
    double processor;     // milliseconds that the calling thread had a processor in the timed ones
    int batch;
    size_t count;             // instructions of the main module
    double sum;               // of the averages
    struct timeline timeline; // with --trace
    struct cards cards;       // with --cards
};

struct report {
    const struct options *o;
    const struct measurement *m;
    migraphx_instructions_t list;
    struct plan plan;
    struct limits limits;
};

// An instruction in the order of time, with the step that took most of it.
struct hot {
    int instruction;
    double ms, flops, moved;
    struct load load;
    const struct plan_row *row;
};

// Of sorted values: the mean without the lowest and the highest quarter; a percentile.
double middle_mean(const double *values, int count);
double percentile(const double *values, int count, double p);
double mean(const double *values, int count);
// Of the time of the timed runs, the share in which the calling thread had a processor.
double busy_share(const struct measurement *m);
// The group of an instruction: its operator or what was fused, with --detailed also what goes in
// and out. To be freed.
char *group_name(const_migraphx_instruction_t ins, bool detailed);
// Instructions with a plan, slowest first; to be freed.
struct hot *find_hot(const struct report *r, int *count);

// Runs a few times with an eye on the threads and keeps the fastest run; false if one failed.
bool take_timeline(migraphx_program_t program, migraphx_program_parameters_t params, int runs,
                   struct timeline *out);
void free_timeline(struct timeline *t);

const char *report_model(const struct report *r);
// "run": machine, target, version, command, date, precision, threads, instruction set.
void put_conditions(FILE *file, const struct report *r);
void put_plan_row(FILE *file, const struct plan_row *row); // as JSON
bool print_report(const struct report *r);                 // perf's own form
bool print_json_report(const struct report *r);            // --json
bool write_trace(const struct report *r, const char *path);
bool write_page(const struct report *r, const char *path);
