#!/bin/sh
# Every command that runs Lua runs it behind the walls of the kernel: a plugin that loops is looked
# at in /proc, where the process that computes must have a filter of system calls (Seccomp: 2) and
# no way to new privileges (NoNewPrivs: 1), also where the loop is in lp_solve or in a pattern.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
HETVIZ_PLUGINS=$work/plugins
export HETVIZ_PLUGINS
mkdir -p "$HETVIZ_PLUGINS"
cd "$work" || exit 1

if [ ! -r /proc/self/status ] || ! grep -q '^NoNewPrivs:' /proc/self/status; then
    skip 'the walls of all commands' 'the system has no /proc/PID/status with NoNewPrivs'
    finish
fi
seccomp=yes
if ! grep -q '^Seccomp:' /proc/self/status; then
    skip 'the filter of system calls' 'the kernel has no seccomp'
    seccomp=no
elif grep -aq __asan_init "$HETVIZ"; then
    skip 'the filter of system calls' 'this build has the address sanitizer, whose leak check starts a process'
    seccomp=no
fi

members() { # members ID: the first members of a plugin
    echo "api = 1, id = '$1', title = '$1', kind = 'test', system = 'none', reference = 'none', summary = 'loops',"
}
in_c='string.rep("a", 1 << 20):find((".-"):rep(30) .. "b")'
market='local lp, cost, seed = hv.opt.lp {}, {}, 7 for j = 1, 60 do cost[lp:var { upper = 1, integer = true }] = 1 end for _ = 1, 5 do local row, sum = {}, 0 for j = 1, 60 do seed = (seed * 16807) % 2147483647 row[j] = seed % 100 sum = sum + row[j] end lp:row(row, "=", sum // 2) end lp:objective(cost)'
plugin() { # plugin ID MEMBERS…
    _id=$1
    shift
    echo "return { $(members "$_id") $* }" >"$HETVIZ_PLUGINS/$_id.lua"
}
plan="plan = function() return hv.strategy('uniform') end,"
plugin loop 'plan = function() while true do end end'
plugin in-c "plan = function() return $in_c end"
plugin in-lp "plan = function() $market while true do lp:solve {} end end"
plugin in-claim "$plan claim = function() while true do end end"
plugin in-apply 'apply = function() while true do end end'
plugin in-replan "$plan replan = function() while true do end end"
plugin in-order 'order = function() while true do end end'
plugin in-selftest "$plan selftest = function() while true do end end"
plugin in-guest 'plan = function() return hv.strategy("loop") end'
"$HETVIZ" strategies >out 2>err # the plugins are in the cache: what loops from here on is meant

# computing PID: among a process and its descendants, the one with most CPU time, once that is more
# than a third of a second
computing() {
    cat /proc/[0-9]*/stat 2>/dev/null | awk -v root="$1" '
        { line = $0; pid = $1; sub(/.*\) /, "", line); split(line, f, " ")
          parent[pid] = f[2]; ticks[pid] = f[12] + f[13] }
        END {
            for (pid in parent) {
                for (p = pid; p in parent && p != root; p = parent[p]) continue
                if (p == root && ticks[pid] > most) { most = ticks[pid]; best = pid }
            }
            if (most > 33) print best
        }'
}
# walled NAME COMMAND…: runs it in the background and looks at the process that computes
walled() {
    _command=$1
    shift
    timeout -k 1 "$HANG" "$@" >out 2>err </dev/null &
    _top=$!
    _found=
    while [ -z "$_found" ] && kill -0 $_top 2>/dev/null; do
        sleep 0.05
        _found=$(computing $_top)
    done
    if [ -z "$_found" ] || ! cat "/proc/$_found/status" >status 2>/dev/null; then
        no "$_command" 'no process was seen that computes'
    else
        holds "$_command: no new privileges" grep -Eq '^NoNewPrivs:.1$' status
        [ $seccomp = no ] || holds "$_command: system calls are filtered" grep -Eq '^Seccomp:.2$' status
    fi
    kill -INT $_top 2>/dev/null
    wait $_top 2>/dev/null
}
set -- -c two-generations -m llama-3-8b
for id in loop in-c in-lp in-claim uniform+in-apply in-guest; do
    walled "plan -s $id" "$HETVIZ" plan "$@" -s "$id"
done
walled 'compare' "$HETVIZ" compare "$@" -s loop
walled 'selftest' "$HETVIZ" selftest in-selftest
walled 'selftest of a file' "$HETVIZ" selftest "$HETVIZ_PLUGINS/in-selftest.lua"
walled 'schedule' "$HETVIZ" schedule in-order -p 4 -m 8
walled 'schedule of a file' "$HETVIZ" schedule "$HETVIZ_PLUGINS/in-order.lua" -p 4 -m 8

run plan "$@" -s uniform --out uniform.json
for id in loop in-replan; do
    sed "s/\"name\": \"uniform\"/\"name\": \"$id\"/; s/\"options\": {[^}]*}/\"options\": {}/" uniform.json >plan.json
    walled "failures of a plan of $id" "$HETVIZ" failures plan.json --time-limit 100
    walled "plan --replan of $id" "$HETVIZ" plan "$@" -s "$id" --replan plan.json --lost 'a[0].0'
done

echo 'while true do end' >loop.lua
# shellcheck disable=SC2016
walled 'lua' sh -c '"$HETVIZ" lua <loop.lua'
echo "do $market while true do lp:solve {} end end" >loop.lua
# shellcheck disable=SC2016
walled 'lua in lp_solve' sh -c '"$HETVIZ" lua <loop.lua'
printf ':run loop\nwait no such text\n' >script
walled 'run of the front end' "$HETVIZ" "$root/samples/workspaces/two-regions" --script script --size 120x40
printf ':lua while true do end\nwait no such text\n' >script
walled 'console of the front end' "$HETVIZ" "$root/samples/workspaces/two-regions" --script script --size 120x40

# a declaration that is never done, read for the list of strategies
mkdir -p slow
echo "return { $(members slow) plan = $in_c }" >slow/slow.lua
walled 'check' "$HETVIZ" check slow/slow.lua
XDG_CACHE_HOME=$work/none HETVIZ_PLUGINS=$work/slow walled 'strategies' "$HETVIZ" strategies
XDG_CACHE_HOME=$work/none HETVIZ_PLUGINS=$work/slow walled 'plugins read by plan' "$HETVIZ" plan "$@" -s uniform
XDG_CACHE_HOME=$work/none HETVIZ_PLUGINS=$work/slow walled 'plugins read by the worker' sh -c \
    'echo "{\"kind\": \"lua\", \"cluster\": \"two-generations\", \"model\": \"llama-3-8b\"}" | "$HETVIZ" worker'
finish
