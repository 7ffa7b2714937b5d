// SPDX-License-Identifier: MIT
// How many CPUs this process may use: the affinity mask of the calling thread, cut down to the
// cgroup's CPU quota (v1 and v2, the tightest of the group and its parents).
#pragma once

// At least 1. A fraction of a CPU is rounded down: a thread for it would be throttled in the middle
// of a fork-join and hold up all others.
int mgx_cpus_usable(void);

// The quota alone, in CPUs; 0 when there is none. `cgroup_list` is a file as /proc/self/cgroup,
// `mount` where the hierarchies are mounted (/sys/fs/cgroup): parameters for the sake of tests.
int mgx_cpus_quota(const char *cgroup_list, const char *mount);
