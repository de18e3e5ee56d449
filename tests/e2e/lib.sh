# shellcheck shell=sh
# Shared by the end-to-end scripts (sourced, not run): a scratch folder, counting, running the
# program. A script ends with `finish`, which prints "N passed, M failed", and how many were skipped.
set -u
LC_ALL=C
export LC_ALL
root=$(cd "$(dirname "$0")/../.." && pwd)
HETVIZ=${HETVIZ:-$root/build/hetviz}
HETVIZ_ROOT=${HETVIZ_ROOT:-$root}
work=$(mktemp -d) || exit 1
trap 'chmod -R u+rwx "$work" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
# nothing of the user's: no settings, no cache, no workspace
HOME=$work/home XDG_STATE_HOME=$work/state XDG_DATA_HOME=$work/data XDG_CACHE_HOME=$work/cache
mkdir -p "$HOME"
export HETVIZ HETVIZ_ROOT HOME XDG_STATE_HOME XDG_DATA_HOME XDG_CACHE_HOME
unset NO_COLOR HETVIZ_TRACE HETVIZ_THEME COLORFGBG
# a finding of a sanitizer must not look like the answer no (1)
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}exitcode=99
UBSAN_OPTIONS=${UBSAN_OPTIONS:+$UBSAN_OPTIONS:}exitcode=99
LSAN_OPTIONS=suppressions=$root/tests/lsan.supp:print_suppressions=0:exitcode=99
export ASAN_OPTIONS UBSAN_OPTIONS LSAN_OPTIONS
passed=0 failed=0 skipped=0
# seconds after which a program hangs: no test depends on how fast a machine is
HANG=${HANG:-600}

ok() { passed=$((passed + 1)); }
no() { # no NAME REASON: counts a failure and shows what the last run said
    failed=$((failed + 1))
    echo "FAILED $1: $2"
    if [ -s "$work/err" ]; then
        echo "  stderr: $(head -n 3 "$work/err" | cut -c 1-300)"
    fi
}
# run ARG…: the program, ended when it hangs; $rc, $work/out and $work/err hold what came of it
run() {
    timeout -k 2 "${LIMIT:-$HANG}" "$HETVIZ" "$@" >"$work/out" 2>"$work/err" </dev/null
    rc=$?
}
# expect NAME CODE ARG…: runs the program and compares its exit code
expect() {
    _name=$1 _code=$2
    shift 2
    run "$@"
    if [ "$rc" -eq "$_code" ]; then
        ok
    else
        no "$_name" "exit $rc, expected $_code: hetviz $(echo "$*" | cut -c 1-200)"
    fi
}
# says NAME FILE PATTERN: does the last run's out or err hold a line like the (extended) pattern?
says() {
    if grep -Eq -- "$3" "$work/$2"; then ok; else no "$1" "no line like '$3' in std$2"; fi
}
# same NAME FILE FILE: are the files equal?
same() {
    if cmp -s "$2" "$3"; then ok; else no "$1" "$2 and $3 differ"; fi
}
# holds NAME TEST…: does the command succeed?
holds() {
    _name=$1
    shift
    if "$@"; then ok; else no "$_name" "not so: $*"; fi
}
# number FILE KEY: the number behind the first "KEY": in a JSON file that hetviz wrote
number() { sed -n "s/.*\"$2\": *\\([-+.eE0-9]*\\).*/\\1/p" "$1" | head -n 1; }
# least X Y: is X at most Y, but for rounding?
least() { awk -v x="$1" -v y="$2" 'BEGIN { exit !(x != "" && y != "" && x <= y * (1 + 1e-9)) }'; }
# is_json FILE: one JSON value and nothing else?
is_json() {
    if command -v python3 >/dev/null 2>&1; then
        python3 -m json.tool "$1" >/dev/null 2>&1
    else
        head -c 1 "$1" | grep -q '[[{]' && tail -n 1 "$1" | grep -q '[]}]$'
    fi
}
# figures FILE: the numbers that eval writes into a plan, without the list of violations
figures() { sed -n '/"simulated": {/,/^  }/p' "$1" | sed 's/^  },$/  }/'; }

# judged NAME PLAN: eval agrees with what the plan says of itself, and finds nothing
judged() {
    run eval "$2" --json
    holds "$1: eval finds no violation" [ "$rc" -eq 0 ]
    says "$1: eval finds no violation" out '"violations": \[\]'
    figures "$2" >said.out
    figures out >found.out
    holds "$1: has figures" [ "$(wc -l <said.out)" -gt 10 ]
    same "$1: eval gives the same figures" said.out found.out
    holds "$1: the bound is below" least "$(number said.out bound_s)" "$(number said.out iteration_s)"
}
# strategies_once: all strategies, of a family of several over one engine the first one only
strategies_once() {
    "$HETVIZ" strategies --json | awk -F'"' '
        $2 == "id" { id = $4 }
        $2 == "family" { family = $4 }
        /^  [}]/ { if (family == "" || !seen[family]++) print id; family = "" }'
}
# skip NAME WHY: counts what cannot be tested on this machine
skip() {
    skipped=$((skipped + 1))
    echo "skipped $1: $2"
}
# have_program PROGRAM NAME: is it installed? Else what it is needed for is skipped.
have_program() {
    command -v "$1" >/dev/null 2>&1 && return
    skip "$2" "$1 is not installed"
    return 1
}
finish() {
    if [ "$skipped" -gt 0 ]; then
        echo "$passed passed, $failed failed, $skipped skipped"
    else
        echo "$passed passed, $failed failed"
    fi
    [ "$failed" -eq 0 ]
    exit
}
