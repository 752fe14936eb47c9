#!/bin/bash
# Tries `reframe verify` on systems that compile through LLVM as they run, in code that prints, allocates and calls back, and prints of each how many
# exits (stack map records, where the system lets us have some) and entries (activations of functions whose IR there is) were verified: the
# same, different, not comparable and why.
#
# It is not part of the tests, as scripts/field.sh. Run it before a release. Anything different is a fault: of reframe as a rule. Below 95 % something that is
# frequent is not crossed.
#
# Usage: scripts/field-verify.sh [--installed] [--before BINARY] [SYSTEM…]
#
#   --installed       install nothing
#   --before BINARY   the same with an earlier reframe, before the one that is built; where it has no --entry it has no such row
#   SYSTEM            these alone, by their first words
set -u

packages="python3-numba python3-llvmlite postgresql-15 clang-tools-19 clang-19 llvm-19 python3-halide libstdc++-12-dev"
installed=
before=
while :; do
  case "${1-}" in
  --installed) installed=1 ;;
  --before) before=$2 && shift ;;
  *) break ;;
  esac
  shift
done
wanted="$*" width=28
. "$(dirname "$0")/field/common.sh"
install

CGO_ENABLED=0 go -C "$here/.." build -o "$work/now" ./cmd/reframe || exit 1
binaries=now
if test -n "$before"; then cp "$before" "$work/before" && binaries="before now" || exit 1; fi

# verify NAME BINARY ARGUMENT…: a row. Of a binary without --entry there is none for entries.
verify() {
  local name=$1 binary=$2
  shift 2
  case " $* " in *" --entry "*) "$work/$binary" verify --help | grep -q -- --entry || { printf '%-28s %-7s has no --entry\n' "$name" "$binary"; return; } ;; esac
  rm -f "$work/found"
  timeout -k 1 400 "$work/$binary" verify --json -o "$work/found" "$@" >"$work/out" 2>&1 </dev/null
  python3 "$here/field/verify/verdict.py" "$name" "$binary" "$work/found"
}

# start COMMAND…: runs it until it says that it is ready; it goes on with the line that go sends.
start() {
  rm -f "$work/in" && mkfifo "$work/in"
  setsid timeout -k 1 900 "$@" >"$work/out.started" 2>&1 <"$work/in" &
  group=$!
  exec {input}>"$work/in"
  for _ in $(seq 300); do
    grep -q '^ready' "$work/out.started" && return
    kill -0 "$group" 2>/dev/null || break
    sleep 0.2
  done
  ended
  return 1
}

ended() {
  exec {input}>&-
  stop
}

go_on() { # in two seconds, when breakpoints are set
  (sleep 2 && echo >&"$input") &
}

python() { # NAME IR MODE SCRIPT ARGUMENT…: a row for a process that waits for a line
  local name=$1 ir=$2 mode=$3 binary
  asked "$name" || return
  shift 3
  for binary in $binaries; do
    if start /usr/bin/python3 "$@"; then
      go_on
      # shellcheck disable=SC2086 # mode has several
      verify "$name" "$binary" -p "$(pgrep -P "$group" | head -1)" --ir "$ir" --for 380s $mode
    else
      failed "$name" "$(tail -1 "$work/out.started" | cut -c1-100)"
    fi
    test -z "$group" || ended
  done
}

compiled() { # NAME MODE COMMAND…: calls.cpp
  local name=$1 mode=$2 binary
  asked "$name" || return
  shift 2
  if ! clang++-19 -O1 -fno-discard-value-names -S -emit-llvm $defines -o "$work/calls.ll" "$here/field/verify/calls.cpp" 2>"$work/out"; then
    failed "$name" "$(grep -m1 error "$work/out" | cut -c1-100)"
    return
  fi
  for binary in $binaries; do
    # shellcheck disable=SC2086 # mode has several
    verify "$name" "$binary" --ir "$work/calls.ll" $mode -- "$@"
  done
}

postgresql() {
  local name="PostgreSQL 15"
  asked "$name" && serve "$name" -c shared_buffers=2MB -c jit_dump_bitcode=on -c jit_debugging_support=on || return
  psql >>"$work/out" 2>&1 <<'SQL'
create table t as select i, i::text||'x' as s, (i%7)::numeric as n, i*1.5::float8 as f from generate_series(1,300000) i;
create function twice(i int) returns int language plpgsql as $$ begin return i*2+1; end $$;
create function says(i int) returns int language plpgsql as $$ begin if i%2=0 then raise log 'says %', i; end if; return i; end $$;
analyze t;
SQL
  query arithmetic "select sum(sqrt(i)*(i%7)) from t, generate_series(1,100000) g where i % 3 <> 1"
  query text "select count(*), max(upper(s)||'y') from t, generate_series(1,100000) g where s like '%3%x' and substr(s,2,3)<>'12' and length(s)>g%3"
  query numeric "select sum(n*1.5+g), avg(f::numeric) from t, generate_series(1,100000) g where n/2 < 5"
  query "calls back" "select sum(twice(i)) from t, generate_series(1,100000) g where twice(g)>3"
  query prints "select sum(says(i)) from t, generate_series(1,100000) g"
  served
}

query() { # WHAT SQL
  local what="PostgreSQL 15, $1" pid file binary
  for binary in $binaries; do
    rm -f "$work"/pg/data/*.bc
    PGAPPNAME=field psql -c "$2" >>"$work/out" 2>&1 </dev/null &
    sleep 4
    pid=$(psql -c "select pid from pg_stat_activity where state='active' and application_name='field'" 2>>"$work/out" | head -1)
    local irs=()
    for file in "$work"/pg/data/"$pid".*.optimized.bc; do irs+=(--ir "$file"); done # what code was made of
    if test -n "$pid"; then verify "$what" "$binary" "$pid" "${irs[@]}" --entry '/^(evalexpr|deform)_/' --limit 40 --for 120s; else failed "$what" "$(tail -1 "$work/out" | cut -c1-100)"; fi
    psql -c "select pg_terminate_backend(pid) from pg_stat_activity where application_name='field'" >/dev/null 2>&1
  done
}

printf '%-28s %-7s %7s %7s %9s %14s\n' "system" "" "number" "same" "different" "not comparable"
postgresql
mkdir "$work/numba"
# Each seventh exit of all blocks and calls: a part of them, of every function.
PATH="$work:$PATH" && ln -s now "$work/reframe"
python "numba, exits of all" "$work/sites" "--every 7" "$here/../examples/numba_sites.py" "$work/sites" "$here/field/verify/numba_calls.py"
python "numba, exits" "$work/numba" "" "$here/field/verify/numba_calls.py" "$work/numba"
python "numba, entries" "$work/numba" "--entry /^_ZN8__main__/" "$here/field/verify/numba_calls.py" "$work/numba"
python "Halide 14, entries" "$work/halide.ll" "--entry /^field/" "$here/field/verify/halide_calls.py" "$work/halide.ll"
functions='/^(printing|allocating|sorting|back|structures|objects|containers|by_last_digit)$/'
defines=
repl() { printf '#include "%s"\nprogram(4);\n' "$here/field/verify/calls.cpp" >"$work/repl.in"; }
repl
compiled "clang-repl 19, exits" "" sh -c "exec clang-repl-19 -Xcc=-O1 <'$work/repl.in'"
compiled "clang-repl 19, entries" "--entry $functions" sh -c "exec clang-repl-19 -Xcc=-O1 <'$work/repl.in'"
defines=-DMAIN
compiled "lli 19, ORC, exits" "" lli-19 -jit-kind=orc "$work/calls.ll"
compiled "lli 19, ORC, entries" "--entry $functions" lli-19 -jit-kind=orc "$work/calls.ll"
