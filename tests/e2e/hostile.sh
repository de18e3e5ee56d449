#!/bin/sh
# Plugins that nobody should have written: each costs an exit code and a line that names its file,
# or one row of a table; nothing of theirs steers the terminal; no worker stays behind.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
LIMIT=20
HETVIZ_PLUGINS=$work/plugins
export HETVIZ_PLUGINS
mkdir -p "$HETVIZ_PLUGINS"
cd "$work" || exit 1

plugin() { # plugin ID BODY…: a strategy whose plan function is the body
    _id=$1
    shift
    cat >"$HETVIZ_PLUGINS/$_id.lua" <<PLUGIN
return { api = 1, id = "$_id", title = "$_id", kind = "test", system = "none", reference = "none",
  summary = "hostile", plan = function(ctx)
    $*
  end }
PLUGIN
}
plugin loop 'while true do end'
plugin caught 'while true do pcall(function() while true do end end) end'
plugin memory 'local t = {} while true do t[#t + 1] = { 1 } end'
plugin repeat-bomb 'local s = "x" while true do s = s .. s end'
plugin recursion 'local function f(n) return 1 + f(n + 1) end return f(1)'
plugin garbage 'return 42'
plugin not-a-number 'return { micro_batch = 0/0, replicas = {} }'
plugin escape 'error("\27[2J\27]0;owned\7 \u{202e}back")'
plugin talkative 'return nil, string.rep("r\n", 100000)'
plugin in-c 'return string.rep("a", 1 << 20):find((".-"):rep(30) .. "b")'
echo 'return {{{' >"$HETVIZ_PLUGINS/syntax.lua"
echo 'while true do end' >"$HETVIZ_PLUGINS/at-load.lua"
printf '\033Lua' >"$HETVIZ_PLUGINS/binary.lua"
set -- -c two-generations -m llama-3-8b
escapes() { LC_ALL=C grep -q "$(printf '[\001-\010\013-\037]')" "$1"; }

for one in loop:4 caught:4 memory:5 repeat-bomb:5 recursion:5 garbage:5 not-a-number:5 escape:5 \
    syntax:5 at-load:5 binary:5; do
    name=${one%:*}
    limit=15 # those that end by themselves, also under the sanitizers
    [ "${one#*:}" -eq 4 ] && limit=1
    expect "$name" "${one#*:}" plan "$@" -s "$name" --time-limit $limit
    says "$name names its file" err "^hetviz: .*/$name\\.lua:"
    holds "$name prints no control characters" test ! -s "$work/out"
    if escapes "$work/err"; then no "$name" "raw control characters"; else ok; fi
done
expect 'one call of C that is never done' 4 plan "$@" -s in-c --time-limit 1
says 'one call of C that is never done' err 'one long call'
LIMIT=1 run plan "$@" -s in-c
holds 'a signal ends such a call' test "$rc" -ne 137

expect 'all of them beside good ones' 0 compare "$@" -s all --time-limit 1
for name in loop caught memory recursion garbage escape talkative in-c; do
    holds "$name is one row" test "$(grep -c "^ -  $name " "$work/out")" -eq 1
done
says 'the good ones are ranked' out '^ 1  '
holds 'rows stay short' test "$(wc -c <"$work/out")" -lt 10000
if escapes "$work/out"; then no 'compare' 'raw control characters'; else ok; fi

# Ctrl-C: what has ended is shown, exit 4, nothing stays behind
timeout -k 5 --preserve-status -s INT 3 "$HETVIZ" compare "$@" -s uniform,loop --json \
    >"$work/out" 2>"$work/err"
rc=$?
holds 'an interrupted comparison exits 4' test "$rc" -eq 4
says 'an interrupted comparison says so' out '"stopped": true'
holds 'and shows what had ended' grep -q '"iteration_s"' "$work/out"
holds 'and is JSON' is_json "$work/out"

# a comparison that is killed takes its workers along, also one inside a call of C
"$HETVIZ" compare "$@" -s in-c >/dev/null 2>&1 &
parent=$!
if [ -r "/proc/$parent/task/$parent/children" ]; then
    worker= tries=0
    while [ -z "$worker" ] && [ $tries -lt 100 ]; do
        read -r worker _ <"/proc/$parent/task/$parent/children"
        tries=$((tries + 1))
        sleep 0.1
    done
    holds 'a worker runs' test -n "$worker"
    sleep 0.5
    kill -KILL $parent
    wait $parent 2>/dev/null
    tries=0
    while [ -d "/proc/$worker" ] && [ $tries -lt 50 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    holds 'the worker is gone with its parent' test ! -d "/proc/$worker"
else
    kill $parent
fi
finish
