// SPDX-License-Identifier: MIT
// Usable CPUs; see cpus.h. A quota is looked for in the process's own group and every group above
// it, since any of them throttles. In a container the listed path may not exist under the mount;
// the walk upwards then ends at the mount itself, which is the container's group.
#include "targets/cpu/machine/cpus.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 1024 };

// Reads the first line of mount/hierarchy/group/file into `text`.
static int read_line(const char *mount, const char *hierarchy, const char *group, const char *file,
                     char *text, int size)
{
    char path[PATH_SIZE * 2];
    const int length = snprintf(path, sizeof path, "%s%s%s/%s", mount, hierarchy, group, file);
    if (length < 0 || length >= (int)sizeof path)
        return 0;
    FILE *stream = fopen(path, "re");
    if (!stream)
        return 0;
    const int ok = fgets(text, size, stream) != NULL;
    fclose(stream);
    return ok;
}

static int whole_cpus(long long quota, long long period)
{
    if (quota <= 0 || period <= 0)
        return 0;
    const long long cpus = quota / period;
    return cpus < 1 ? 1 : cpus > INT_MAX ? INT_MAX : (int)cpus;
}

// The quota of one group: "max 100000" or "150000 100000" (v2), two files (v1).
static int group_quota(const char *mount, const char *hierarchy, const char *group)
{
    char text[64], period[64];
    if (!*hierarchy) {
        long long q = 0, p = 0;
        if (!read_line(mount, hierarchy, group, "cpu.max", text, sizeof text) ||
            sscanf(text, "%lld %lld", &q, &p) != 2)
            return 0;
        return whole_cpus(q, p);
    }
    if (!read_line(mount, hierarchy, group, "cpu.cfs_quota_us", text, sizeof text) ||
        !read_line(mount, hierarchy, group, "cpu.cfs_period_us", period, sizeof period))
        return 0;
    return whole_cpus(strtoll(text, NULL, 10), strtoll(period, NULL, 10));
}

// The least quota of `group` and its parents. Shortens `group` while walking.
static int path_quota(const char *mount, const char *hierarchy, char *group)
{
    int least = 0;
    for (;;) {
        const int quota = group_quota(mount, hierarchy, group);
        if (quota && (!least || quota < least))
            least = quota;
        char *slash = strrchr(group, '/');
        if (!slash)
            return least;
        *slash = '\0';
    }
}

// True if the comma-separated controller list names "cpu".
static int has_cpu(const char *list)
{
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, "cpu", 3) == 0 && (at[3] == ',' || at[3] == '\0'))
            return 1;
    return 0;
}

// One line "id:controllers:/group"; no controllers means the v2 hierarchy.
static int line_quota(char *line, const char *mount)
{
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return 0;
    *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    controllers++;
    if (!*controllers)
        return path_quota(mount, "", group);
    return has_cpu(controllers) ? path_quota(mount, "/cpu", group) : 0;
}

int mgx_cpus_quota(const char *cgroup_list, const char *mount)
{
    FILE *stream = fopen(cgroup_list, "re");
    if (!stream)
        return 0;
    int least = 0;
    char line[PATH_SIZE];
    while (fgets(line, sizeof line, stream)) {
        const int quota = line_quota(line, mount);
        if (quota && (!least || quota < least))
            least = quota;
    }
    fclose(stream);
    return least;
}

// The mask is grown until the kernel accepts it: machines with over 1024 CPUs exist.
static int affinity_cpus(void)
{
    for (int cpus = 1024; cpus <= 1 << 16; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC(cpus);
        if (!set)
            break;
        const size_t size = CPU_ALLOC_SIZE(cpus);
        const int count = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (count > 0)
            return count;
    }
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

int mgx_cpus_usable(void)
{
    const int cpus = affinity_cpus();
    const int quota = mgx_cpus_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    return quota && quota < cpus ? quota : cpus;
}
