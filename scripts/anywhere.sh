#!/usr/bin/env bash
# Runs the fast part of the suite under conditions that other machines, CIs and shells have, and prints a table of them. What fails is
# listed with where its output lies. Usage: scripts/anywhere.sh [-w] [-n TIMES] [CONDITION...]; -l lists the conditions. Without one all
# are run; umask-077+nohup is both at once, where none but the last starts the round by another program. -w is for the whole suite in
# place of its fast part: scripts/anywhere.sh -w -n 5 nohup load-20
#
# It is for root, as the suite is: mounts and capabilities are changed for the programs that it starts, nothing of the machine's.
# Packages with their tests are the fast part: what starts programs, reads processes, files and what tools print, in a minute or two.
set -uo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 REFRAME_TOOLS=1

fast='
test/livetest  TestPlainPrograms|TestThreads|TestClock|TestHostEndings|TestDumpIsRemoved|TestChildrenHaveAllSignals|TestBuildIsKeyedByContent|TestStandIns
ptrace             TestCaptureLeavesNoTrace|TestCaptureStopped|TestCaptureSignals|TestHeld|TestSurvey|TestPermission|TestTraced|TestCoreOfLli|TestWriteCoreIsWhole|TestModules|TestSessionLaunchedAsWithout|TestSessionLeavesStopped|TestSessionOfSleepers|TestSessionOfAStopped|TestSessionGuardKilled
deopt              TestDeoptimizeExit|TestPatchpoint|TestStatepoint|TestNamesOfPerfMap
internal/check/trace        TestTraceDeoptimize|TestTraceWhatIsRegisteredLater
internal/check/commit       TestCommitDeoptimize
internal/report/explain      TestExplainAgainstGDB
internal/llvm/ir           TestReadsBitcode|TestBitcodeByAnyDisassembler|TestReadsSharedPrograms
internal/machine/object       TestSymbols|TestCompressed|TestArchives
deopt/stackmap     TestReadobj|TestVersionFlag
deopt/unwind/cfi   TestExpressionTextAgainstReadelf|TestReadelf
replay             TestScripts|TestScriptLeavesNothing|TestOneStopsNoOther|TestJUnit|TestJournalOfOddNames
internal/demo               TestStart|TestKill|TestGDBSeesEveryFrame
cmd/reframe        TestDemo|TestHelp|TestColor|TestCompletion|TestWrongUsage|TestVersion
test/frames        TestMainJob|TestFramesWithoutIR|TestSameBytesSameOutput|TestNotPermitted|TestTracedAlready
test/maps          TestMapsOfFile|TestMapsHostileFileNames
test/replay        TestRecordProcess|TestRecordWithoutRoom|TestReplayDocument|TestReplayProgress|TestReplayInterrupted
test/resume        TestResumeCommit
test/trace         TestTraceCommand|TestTraceInterrupted|TestTraceUnderNohup|TestTraceFailedWrite|TestVerbsWithSignalsHeldOff
test/verify        TestVerifyInterrupted
'
# What a process without CAP_SYS_PTRACE may do where Yama is: look into what reframe itself starts.
launched='
internal/demo               TestStart
cmd/reframe        TestDemo|TestRun
test/maps          TestMapsOfFile
test/replay        TestRecordExit
test/trace         TestTraceCommand|TestTraceJSON
test/verify        TestVerifyCommand
ptrace             TestSessionLaunchedAsWithout|TestSessionHits
'

conditions='plain nohup signals-ignored signals-blocked no-terminal terminal stdin-closed stdout-pipe
tmp-tmpfs tmp-unset tmp-space home-unset home-missing umask-077 umask-000 locale-C locale-de_DE.UTF-8 locale-tr_TR.UTF-8 timezone
one-processor GOMAXPROCS-1 load-20 core-0 core-unlimited few-files NO_COLOR color-forced TERM-unset TERM-dumb narrow GOFLAGS nice-19
without-userfaultfd-kcmp no-ptrace-capability yama-1'

times=1 whole=
while getopts ln:w option; do
  case $option in
  l) printf '%s\n' $conditions; exit ;;
  n) times=$OPTARG ;;
  w) whole=1 ;;
  *) sed -n '2,8p' "$0" >&2; exit 64 ;;
  esac
done
shift $((OPTIND - 1))
[ "$(id -u)" = 0 ] || { echo "anywhere: as root" >&2; exit 2; }
[ $# -gt 0 ] || set -- $conditions

work=$(mktemp -d)
chmod 755 "$work"
spinning=()
trap 'rm -rf "$work"' EXIT # of what the last round left; logs of failures are kept elsewhere
trap 'exit 130' INT TERM
keep=${ANYWHERE_LOGS:-${TMPDIR:-/tmp}/reframe-anywhere} # logs of what failed
rm -rf "$keep"

# The environment that each condition changes.
home=${HOME:-$(getent passwd 0 | cut -d: -f6)}
export HOME=$home XDG_CACHE_HOME=${XDG_CACHE_HOME:-$home/.cache} GOCACHE GOMODCACHE GOPATH
GOCACHE=$(go env GOCACHE) GOMODCACHE=$(go env GOMODCACHE) GOPATH=$(go env GOPATH)
unset JITDUMPDIR NO_COLOR CLICOLOR_FORCE GOFLAGS LC_ALL LANG LANGUAGE

echo "anywhere: building" >&2
for source in without yama; do
  gcc -O1 -o "$work/$source" "testdata/standins/$source.c" || exit 2
done
mkdir "$work/locale"
for name in de_DE tr_TR; do
  localedef -i $name -f UTF-8 "$work/locale/$name.UTF-8" || exit 2
done
while read -r package _; do
  [ -z "$package" ] || go test -c -trimpath -o "$work/bin/${package//\//-}" "./$package" || exit 2
done <<<"$fast"

# The round: one package per line of a list, each in its folder, some at the same time. A log of each is what tells.
cat >"$work/one" <<'END'
#!/usr/bin/env bash
# one PACKAGE TESTS ROOT WORK LOGS: the streams are those that STREAMS names.
cd "$3/$1" || exit 2
log=$5/${1//\//-}
set -- "$4/bin/${1//\//-}" -test.v -test.timeout 10m -test.run "^($2)\$"
case ${STREAMS-} in
closed) exec "$@" >"$log" 2>&1 <&- ;;
pipe) "$@" </dev/null 2>&1 | cat >"$log" ;;
terminal) script -qec "$(printf '%q ' "$@")" "$log.raw" </dev/null >/dev/null; sed '1d; /^Script done/d; s/\r$//' "$log.raw" | sed '${/^$/d}' >"$log"; rm "$log.raw" ;;
*) exec "$@" >"$log" 2>&1 ;;
esac
END
cat >"$work/round" <<'END'
#!/usr/bin/env bash
# round LIST ROOT WORK LOGS
if [ "$1" = whole ]; then
  cd "$2" || exit 2
  exec go test -count 1 -timeout 10h -v ./... >"$4/suite" 2>&1 # a load makes it ten times as long
fi
while read -r package tests; do
  [ -z "$package" ] || printf '%s\0%s\0%s\0%s\0%s\0' "$package" "$tests" "$2" "$3" "$4"
done <<<"$1" | xargs -0 -n 5 -P "$(nproc)" "$3/one"
END
chmod +x "$work/one" "$work/round"

# under CONDITION COMMAND...: the command as that condition has it. It runs in a subshell.
under() {
  local condition=$1
  shift
  case $condition in
  *+*) under "${condition%%+*}" under "${condition#*+}" "$@" ;;
  plain) "$@" ;;
  nohup) nohup "$@" >/dev/null 2>&1 </dev/null ;;
  signals-ignored) env --ignore-signal=INT,QUIT,PIPE,CHLD,HUP,TSTP,TTIN,TTOU,USR1,USR2,ALRM "$@" ;;
  signals-blocked) env --block-signal "$@" ;;
  no-terminal) setsid -w "$@" </dev/null >/dev/null 2>&1 ;;
  terminal | stdin-closed | stdout-pipe) STREAMS=${condition#std*-} "$@" ;;
  tmp-tmpfs)
    # Where mounts cannot be made private (chroot(1)), they are nobody else's.
    local own=(unshare -m)
    "${own[@]}" true 2>/dev/null || own+=(--propagation unchanged)
    "${own[@]}" sh -c 'mount -t tmpfs -o mode=1777 tmpfs "$TMPDIR" && "$@"; s=$?; ls -A "$TMPDIR" >"$TMPDIR/../left-inside"; umount "$TMPDIR"; exit $s' sh "$@"
    ;;
  tmp-unset) env -u TMPDIR "$@" ;;
  tmp-space)
    local place="$TMPDIR/a b"$'\xc3\xbc' # and a letter that is not ASCII
    mkdir -m 1777 "$place" && TMPDIR=$place "$@"
    local status=$?
    rmdir "$place"
    return $status
    ;;
  home-unset) env -u HOME "$@" ;;
  home-missing) HOME=/no/such/home "$@" ;;
  umask-*) (umask "${condition#umask-}" && "$@") ;;
  locale-*) LOCPATH=$work/locale LANG=${condition#locale-} LC_ALL=${condition#locale-} "$@" ;;
  timezone) TZ=NPT-5:45 "$@" ;;
  one-processor) taskset -c "$(taskset -cp $$ | sed 's/.*: *//; s/[,-].*//')" "$@" ;;
  GOMAXPROCS-1) GOMAXPROCS=1 "$@" ;;
  load-20)
    for _ in {1..20}; do
      sh -c 'while :; do :; done' &
      spinning+=($!)
    done
    "$@"
    local status=$?
    kill "${spinning[@]}"
    wait "${spinning[@]}" 2>/dev/null
    spinning=()
    return $status
    ;;
  core-*) prlimit --core="${condition#core-}" "$@" ;;
  few-files) prlimit --nofile=256:256 "$@" ;;
  NO_COLOR) NO_COLOR=1 "$@" ;;
  color-forced) CLICOLOR_FORCE=1 FORCE_COLOR=1 COLORTERM=truecolor "$@" ;;
  TERM-unset) env -u TERM "$@" ;;
  TERM-dumb) TERM=dumb "$@" ;;
  narrow) COLUMNS=20 LINES=5 "$@" ;;
  GOFLAGS) GOFLAGS='-v -trimpath' "$@" ;;
  nice-19) nice -n 19 "$@" ;;
  without-userfaultfd-kcmp) "$work/without" userfaultfd kcmp -- "$@" ;;
  no-ptrace-capability) setpriv --bounding-set -sys_ptrace "$@" ;;
  yama-1) setpriv --bounding-set -sys_ptrace "$work/yama" "$@" ;;
  *) echo "anywhere: no condition $condition (-l lists them)" >&2; exit 64 ;;
  esac
}

failed=0
printf '%-26s %7s %7s %8s\n' condition passed failed seconds
for condition; do
  for _ in $(seq "$times"); do
    place=$work/at
    rm -rf "$place"
    mkdir -p "$place/logs"
    mkdir -m 1777 "$place/tmp"
    list=${whole:+whole}
    list=${list:-$fast}
    [ "$condition" != yama-1 ] || [ -n "$whole" ] || list=$launched
    begin=$SECONDS
    (export TMPDIR=$place/tmp; under "$condition" "$work/round" "$list" "$PWD" "$work" "$place/logs") 2>"$place/words"
    status=$?
    [ $status != 64 ] || { cat "$place/words"; exit 64; }
    passed=$(cat "$place"/logs/* | grep -c '^--- PASS')
    bad=$(grep -H '^--- \(FAIL\|SKIP\)' "$place"/logs/* | sed "s|^$place/logs/||; s|:--- |: |; s| (.*||")
    # A package that ended without a word at its end, or with a race or a panic.
    for log in "$place"/logs/*; do
      tail -n 1 "$log" | grep -qE '^(PASS|FAIL|ok|\?) *' || bad+=$'\n'"${log##*/}: ended early: $(grep -m1 -E '^(panic|fatal|livetest):' "$log" || tail -n 1 "$log")"
    done
    [ -n "$whole" ] && bad+=$'\n'$(grep '^FAIL.' "$place/logs/suite")
    [ "$(grep -c . <<<"$list")" = "$(find "$place/logs" -type f | wc -l)" ] || bad+=$'\n'"not all packages were run: $(tail -n 1 "$place/words")"
    left=$(cat "$place/left-inside" 2>/dev/null; find "$place/tmp" -mindepth 1 -maxdepth 1 -printf '%f\n')
    [ -z "$left" ] || bad+=$'\n'"left in the temporary directory: $(echo $left)"
    bad=$(grep . <<<"$bad")
    count=$([ -z "$bad" ] && echo 0 || wc -l <<<"$bad")
    printf '%-26s %7d %7d %8d\n' "$condition" "$passed" "$count" $((SECONDS - begin))
    if [ -n "$bad" ]; then
      failed=1
      mkdir -p "$keep"
      cp -r "$place/logs" "$keep/$condition"
      sed 's/^/    /' <<<"$bad"
    fi
  done
done
[ $failed = 0 ] || echo "logs: $keep"
exit $failed
