# What scripts/field.sh and scripts/field-verify.sh have in common. Whoever reads it in has set packages, which are installed unless installed is
# set, wanted, the systems that are asked for, and width, that of their names.

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
chmod 755 "$work" # PostgreSQL runs as another user
group=
server=
trap 'stop; test -z "$server" || kill "$server"; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

install() {
  test -z "$installed" || return 0
  # shellcheck disable=SC2086 # they are words
  apt-get install -y --no-install-recommends $packages >"$work/apt" 2>&1 || { tail -3 "$work/apt" >&2; echo "$0: going on with what is there" >&2; }
}

stop() { # what start has started
  test -z "$group" || { kill -KILL -- "-$group" && wait "$group"; } 2>/dev/null
  group=
}

asked() { # NAME: is it to be run?
  test -z "$wanted" && return
  local word
  for word in $wanted; do case $1 in "$word"*) return ;; esac; done
  return 1
}

failed() { printf "%-${width}s %s\n" "$1" "did not start: $2"; } # NAME WHY

psql() { command psql -X -q -A -t -h "$work/pg" -U postgres "$@"; }

serve() { # NAME OPTION…: starts PostgreSQL 15, which compiles whatever it can
  local name=$1 bin=/usr/lib/postgresql/15/bin as="setpriv --reuid=postgres --regid=postgres --clear-groups"
  shift
  test -x $bin/initdb || { failed "$name" "no $bin/initdb"; return 1; }
  mkdir "$work/pg" && chown postgres "$work/pg"
  (
    cd "$work/pg" || exit
    $as $bin/initdb -A trust -D "$work/pg/data" >"$work/out" 2>&1 || exit
    exec $as $bin/postgres -D "$work/pg/data" -k "$work/pg" -c listen_addresses= -c jit_above_cost=0 -c jit_inline_above_cost=0 -c jit_optimize_above_cost=0 \
      -c max_parallel_workers_per_gather=0 "$@"
  ) >>"$work/out" 2>&1 &
  server=$!
  for _ in $(seq 100); do test -S "$work/pg/.s.PGSQL.5432" && break; sleep 0.2; done
  sleep 2
}

served() { # ends it
  kill -INT "$server" 2>/dev/null
  wait "$server" 2>/dev/null
  server=
}
