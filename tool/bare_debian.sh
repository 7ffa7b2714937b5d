#!/bin/sh
# SPDX-License-Identifier: MIT
# bare_debian.sh [--first-day] [FOLDER]: in a Debian 12 that has nothing else, each way to install, and after each the
# clients of test/install and the three programs of examples/. --first-day: README's two commands instead, with what
# README names and nothing else, by a user and by root (WHO="root" for one of them). Needs root,
# debootstrap and Debian's mirror. FOLDER is kept and used again; without it the system is made below /tmp and removed.
# MIRROR names another mirror.
set -eu
first_day=
[ "${1:-}" != --first-day ] || { first_day=1; shift; }
cd "$(dirname "$0")/.."
command -v debootstrap > /dev/null || { echo "bare-debian: needs debootstrap (apt install debootstrap)"; exit 1; }
[ "$(id -u)" = 0 ] || { echo "bare-debian: needs root, for chroot"; exit 1; }
root=${1:-}
[ -n "$root" ] || { root=$(mktemp -d); trap 'rm -rf "$root"' EXIT; }
if [ ! -e "$root/etc/debian_version" ]; then
    echo "== a Debian 12 in $root"
    debootstrap --variant=minbase bookworm "$root" "${MIRROR:-http://deb.debian.org/debian}" > "$root.log" 2>&1 ||
        { tail -20 "$root.log"; exit 1; }
    rm -f "$root.log"
fi
mkdir -p "$root/dev/pts"
[ -e "$root/dev/urandom" ] || { echo "bare-debian: $root has no devices"; exit 1; }

inside() { # in the new system, with nothing set but what a login sets; /proc is there as long as the command runs
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive ${JOBS:+JOBS="$JOBS"} unshare --mount \
        sh -euc 'mount -t proc proc "$1/proc" && mount --bind /dev/pts "$1/dev/pts" && exec chroot "$1" sh -euc "$2"' - "$root" "$1"
}
fetch() {
    inside "apt-get update -qq && apt-get install -qq -y --no-install-recommends $* > /tmp/apt.log 2>&1 ||
        { cat /tmp/apt.log; exit 1; }"
}
cp /etc/resolv.conf "$root/etc/resolv.conf"
rm -rf "$root/src"
mkdir "$root/src"
git ls-files -z | tar --create --null --files-from=- | tar --extract -C "$root/src"

if [ "$first_day" ]; then
    echo "== what README names: a C compiler, make, cmake and python3 (with venv)"
    fetch gcc libc6-dev make cmake python3 python3-venv ca-certificates
    inside 'id newcomer > /dev/null 2>&1 || useradd --create-home newcomer'
    # where the package index is, and whom this network trusts, belongs to the network and not to the machine
    [ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/pip.conf"
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
    for user in ${WHO:-newcomer root}; do
        for command in "make demo" "make test"; do
            inside "home=\$(getent passwd $user | cut -d: -f6); [ '$command' = 'make test' ] || { rm -rf \$home/src; cp -r /src \$home/src; chown -R $user \$home/src; }
                start=\$(date +%s)
                su $user -s /bin/sh -c 'cd ~/src && $command${JOBS:+ JOBS=$JOBS}' > /tmp/first_day.log 2>&1 || { tail -40 /tmp/first_day.log; exit 1; }
                grep -E 'tests passed|passed, |skipped|Skipped|^== no' /tmp/first_day.log || :
                echo \"== $command, as $user: green in \$((\$(date +%s) - start)) s\""
        done
        inside "rm -rf \$(getent passwd $user | cut -d: -f6)/src"
    done
    exit 0
fi

echo "== what building needs, and the clients"
fetch gcc g++ libc6-dev make cmake pkg-config python3 python3-venv python3-numpy
programs='
    cd /src
    cc examples/hello.c $CFLAGS -lmigraphx_c -o /tmp/hello_c
    c++ examples/hello.cpp $CFLAGS -lmigraphx_c -o /tmp/hello_cpp
    for program in /tmp/hello_c /tmp/hello_cpp "$PYTHON examples/hello.py"; do
        $program examples/digits/digits.onnx > /tmp/answer || { cat /tmp/answer; echo "$program: failed"; exit 1; }
        grep -q 4 /tmp/answer || { cat /tmp/answer; echo "$program: does not see a four"; exit 1; }
        echo "$program: $(head -1 /tmp/answer)"
    done'
at() { # at P: how programs are built with the prefix P
    echo "CFLAGS='-I$1/include -L$1/lib -Wl,-rpath,$1/lib'"
}

echo "== make install"
inside 'cd /src && make install PREFIX=/opt/migraphx > /tmp/make.log 2>&1 || { tail -30 /tmp/make.log; exit 1; }
    tail -1 /tmp/make.log'
inside "sh /src/test/install/clients.sh /opt/migraphx /usr/bin/python3 /opt/migraphx/lib
    export PYTHONPATH=/opt/migraphx/lib PYTHON=python3 $(at /opt/migraphx)$programs"
echo "== make install, without a PREFIX"
inside 'cd /src && make install | tail -1'
inside "export PYTHONPATH=/usr/local/lib PYTHON=python3 CFLAGS=$programs"
inside 'xargs rm < /src/build/install_manifest.txt; ldconfig
    find /usr/local -depth -name "*migraphx*" -exec rm -r {} +'

echo "== make deb, apt install"
inside 'cd /src && make deb | tail -1 && apt-get install -qq -y --no-install-recommends /src/build/dist/*.deb > /dev/null 2>&1'
inside "sh /src/test/install/clients.sh /usr /usr/bin/python3
    export PYTHON=python3 CFLAGS=$programs"
inside 'apt-get purge -qq -y migraphx > /dev/null 2>&1 && ! find /usr -name "*migraphx*" | grep .'

echo "== make wheel, pip install, without the sources' build folder"
inside 'cd /src && make wheel | tail -1 && mv build/dist/*.whl /root/ && rm -rf build
    python3 -m venv --system-site-packages /root/venv && /root/venv/bin/pip install -q --no-index /root/*.whl'
prefix=$(inside '/root/venv/bin/python -m migraphx_prefix')
inside "sh /src/test/install/clients.sh $prefix /root/venv/bin/python
    export PYTHON=/root/venv/bin/python $(at "$prefix")$programs"
inside '/root/venv/bin/migraphx-driver perf --test -n 2 > /dev/null 2>&1 && rm -rf /root/venv'

echo "== pip install ."
inside 'python3 -m venv --system-site-packages /root/venv && /root/venv/bin/pip install -q --no-index /src'
inside "sh /src/test/install/clients.sh $prefix /root/venv/bin/python
    export PYTHON=/root/venv/bin/python $(at "$prefix")$programs"
inside 'rm -rf /root/venv /root/*.whl /src'
echo "bare-debian: every way works"
