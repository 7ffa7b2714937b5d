#!/bin/sh
# SPDX-License-Identifier: MIT
# usage: objects.sh OBJDUMP LIBRARY
# Disassembles the objects of the static library (x86-64) and fails where one holds instructions that its name does not
# state: only files named NAME__avx... may hold AVX (ymm registers, mnemonics with a v in front), only NAME__avx512... may
# hold AVX-512 (zmm, mask registers, registers from 16 on), only NAME__amx... both and the tiles of AMX. Any other object
# runs on machines without these sets, where such an instruction ends the process. It fails too where no object at all holds AVX: then it looked at the wrong thing.
# Costs some 3 s.
set -eu
objdump=$1 library=$2
"$objdump" -d --no-show-raw-insn "$library" | LC_ALL=C awk -F '\t' '
    function tell(what) {
        bad++
        if (bad <= 20) print "objects: " object ", " label ": " what " in an object that does not state it: " $2
    }
    /file format/ {
        object = $1
        sub(/:[ ]*file format.*/, "", object)
        count++
        amx = object ~ /__amx/
        avx512 = amx || object ~ /__avx512/
        avx = avx512 || object ~ /__avx/
        next
    }
    / <.*>:$/ { label = $0; sub(/^.* </, "", label); sub(/>:$/, "", label); next }
    NF < 2 { next }
    {
        code = $2 # mnemonic and operands, without the symbol that an address belongs to
        sub(/ *#.*/, "", code)
        sub(/ <[^>]*>/, "", code)
        if (code ~ /%tmm|tilerelease|tilecfg/) {
            tiles++
            if (!amx) tell("AMX")
        } else if (code ~ /%zmm|%k[0-7]|%[xy]mm(1[6-9]|2[0-9]|3[01])/) {
            wide++
            if (!avx512) tell("AVX-512")
        } else if (code ~ /%ymm/ || (code ~ /^v/ && code !~ /^v(err|erw|mcall|mlaunch|mresume|mxo)/)) {
            narrow++
            if (!avx) tell("AVX")
        }
    }
    END {
        printf "objects: %d objects, %d instructions of AVX, %d of AVX-512, %d of AMX, %d where they do not belong\n", count, narrow, wide, tiles, bad
        if (!narrow) print "objects: no AVX at all: is this the library?"
        exit bad > 0 || !narrow
    }'
