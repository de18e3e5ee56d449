#!/bin/sh
# Plugins that nobody should have written: each costs an exit code and a line that names its file,
# or one row of a table; nothing of theirs steers the terminal; no worker stays behind.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
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
# nothing to get hold of
plugin io-open 'io.open("/etc/passwd")'
plugin os-execute 'os.execute("touch owned")'
plugin load-text 'load("return 1")()'
plugin do-file 'dofile("/etc/passwd")'
plugin registry 'debug.getregistry()'
plugin require-path 'require("../../../etc/passwd")'
plugin require-absolute 'require("/etc/passwd")'
plugin dump 'string.dump(function() end)'
plugin collect 'collectgarbage("stop")'
plugin pointer 'return nil, ("%p"):format({})'
# metatables and handles
plugin finalizer 'setmetatable({}, { __gc = function() while true do end end })'
plugin weak 'setmetatable({}, { __mode = "k" })'
plugin api-metatable 'getmetatable(ctx.cluster).__index = nil'
plugin string-metatable 'getmetatable("").__index = nil'
plugin write-input 'ctx.cluster.name = "mine"'
plugin raw-write 'rawset(ctx.model, "n_layers", 1)'
plugin wrong-self 'ctx.cluster.devices(ctx.model)'
plugin forged-self 'ctx.cluster.devices(setmetatable({}, { __name = "hv.cluster" }))'
plugin not-a-plan 'return ctx.cluster'
plugin table-of-lies 'return setmetatable({}, { __index = function() return 1 end, __len = function() return 1e9 end })'
plugin index-loop 'local t = setmetatable({}, {}) getmetatable(t).__index = function(_, k) return t[k .. k] end return t.x'
plugin evil-tostring 'hv.log(setmetatable({}, { __tostring = function() return 1 end }))'
# running away
plugin handler 'local function f() while true do end end while true do xpcall(f, f) end'
plugin tostring-loop 'hv.log(setmetatable({}, { __tostring = function() while true do end end }))'
plugin sort-loop 'table.sort({ 3, 2, 1 }, function() while true do end end)'
plugin closing 'while true do local x <close> = setmetatable({}, { __close = function() while true do end end }) end'
plugin api-loop 'while true do pcall(hv.cost.layers, {}) end'
plugin coroutine-loop 'while true do pcall(coroutine.wrap(function() while true do end end)) end'
plugin coroutine-nest 'local function f() return coroutine.wrap(f)() end return f()'
plugin coroutine-flood 'local t = {} while true do t[#t + 1] = coroutine.create(function() end) end'
plugin plan-flood 'local p = hv.strategy("uniform"):table() while true do hv.plan.new(p) end'
plugin progress-flood 'while true do hv.progress(0.5, ("x"):rep(1 << 20)) end'
plugin lp-flood 'local lp = hv.opt.lp {} while true do lp:var {} end'
# a market-split program: lp_solve branches for years
market='local lp, cost, seed = hv.opt.lp {}, {}, 7 for j = 1, 60 do cost[lp:var { upper = 1, integer = true }] = 1 end for _ = 1, 5 do local row, sum = {}, 0 for j = 1, 60 do seed = (seed * 16807) % 2147483647 row[j] = seed % 100 sum = sum + row[j] end lp:row(row, "=", sum // 2) end lp:objective(cost)'
plugin lp-endless "$market while true do lp:solve {} end"
plugin lp-ranges 'local lp = hv.opt.lp {} for j = 1, 300 do lp:var {} end for _ = 1, 300 do lp:row({ [1] = 1, [300] = 1 }, ">=", 1) end lp:objective { [1] = 1, [300] = 1 } while true do lp:solve { ranges = true } end'
plugin combine-memory 'local t = {} hv.opt.partition { n = 20, parts = 8, load = function() return 1 end, combine = function() t[#t + 1] = ("x"):rep(1 << 22) .. #t return 1 end }'
plugin combine-loop 'hv.opt.partition { n = 2, parts = 2, load = { 1, 1 }, combine = function() while true do end end }'
plugin combine-number 'hv.opt.partition { n = 2, parts = 2, load = { 1, 1 }, combine = function() error(42) end }'
plugin combine-again 'local function f() return hv.opt.partition { n = 2, parts = 2, load = { 1, 1 }, combine = f }.value end return f()'
plugin curve-loop 'hv.opt.distribute { total = 1000, shares = 9, time = function() while true do end end }'
plugin self-call 'return hv.strategy("self-call")'
# bombs
plugin gsub-bomb 'return ("x"):rep(1 << 20):gsub("", ("y"):rep(1 << 20))'
plugin rep-bomb 'return ("x"):rep(1 << 40)'
plugin unpack-bomb 'return table.unpack({}, 1, 1e8)'
plugin format-bomb 'return ("%9999999d"):format(1)'
plugin sim-bomb 'hv.sim.schedule("1f1b", { ranks = 65536, micro_batches = 4194304 })'
plugin routing-bomb 'hv.routing { sources = 65536, experts = 65536 }'
plugin attention-bomb 'hv.attention_work { ranks = 2048, tokens = 1 << 40, tile = 1 }'
plugin partition-bomb 'hv.opt.partition { n = 1 << 40, parts = 2, load = {} }'
# plans that are none
plugin cycle 'local t = {} t.replicas = t return t'
plugin deep 'local t = {} for _ = 1, 1e5 do t = { t } end return { replicas = t }'
plugin huge 'local t = {} for i = 1, 1e6 do t[i] = { micro_batches = 1, stages = {} } end return { micro_batch = 1, replicas = t }'
plugin infinite 'return { micro_batch = 1 / 0, replicas = {} }'
plugin negative 'return { micro_batch = -1, replicas = {} }'
plugin nan-layers 'return { micro_batch = 1, replicas = { { micro_batches = 1, stages = { { devices = "a[0].*", layers = { 0, 0/0 } } } } } }'
plugin function-inside 'return { micro_batch = 1, replicas = { { stages = function() end } } }'
plugin not-utf8 'return nil, "\255\0\27[2J"'
plugin vandal 'string.format, _G.pairs, hv.plan.new = nil, nil, nil return nil, "done"'
echo 'return {{{' >"$HETVIZ_PLUGINS/syntax.lua"
echo 'while true do end' >"$HETVIZ_PLUGINS/at-load.lua"
printf '\033Lua' >"$HETVIZ_PLUGINS/binary.lua"
head='api = 1, title = "t", kind = "test", summary = "s", plan = function() end'
echo "return { id = 'path-name', options = 'x', $head }" >"$HETVIZ_PLUGINS/bad-options.lua"
echo "return { id = '../../path', $head }" >"$HETVIZ_PLUGINS/bad-id.lua"
echo "return { id = 'bad-size', system = ('x'):rep(1 << 24), $head }" >"$HETVIZ_PLUGINS/bad-size.lua"
echo "return { id = 'bad-claim', $head, claim = function() while true do end end }" |
    sed 's/plan = function() end/plan = function() return hv.strategy("uniform") end/' >"$HETVIZ_PLUGINS/bad-claim.lua"
set -- -c two-generations -m llama-3-8b
escapes() { LC_ALL=C grep -q "$(printf '[\001-\010\013-\037]')" "$1"; }

for one in loop:4 caught:4 memory:5 repeat-bomb:5 recursion:5 garbage:5 not-a-number:5 escape:5 \
    syntax:5 at-load:5 binary:5 \
    io-open:5 os-execute:5 load-text:5 do-file:5 registry:5 require-path:5 require-absolute:5 dump:5 collect:5 pointer:5 \
    finalizer:5 weak:5 api-metatable:5 string-metatable:5 write-input:5 raw-write:5 wrong-self:5 forged-self:5 \
    not-a-plan:5 table-of-lies:5 index-loop:5 evil-tostring:5 \
    handler:4 tostring-loop:4 sort-loop:4 closing:4 api-loop:4 coroutine-loop:4 coroutine-nest:5 coroutine-flood:5 \
    plan-flood:4 progress-flood:4 lp-flood:5 self-call:5 \
    lp-endless:4 lp-ranges:4 combine-memory:5 combine-loop:4 combine-number:5 combine-again:5 curve-loop:4 \
    gsub-bomb:5 rep-bomb:5 unpack-bomb:5 format-bomb:5 sim-bomb:5 routing-bomb:5 attention-bomb:5 partition-bomb:5 \
    cycle:5 deep:5 huge:5 infinite:5 negative:5 nan-layers:5 function-inside:5 \
    bad-options:5 bad-id:5 bad-size:5 bad-claim:4; do
    name=${one%:*}
    limit=300 # those that end by themselves
    [ "${one#*:}" -eq 4 ] && limit=0.5
    expect "$name" "${one#*:}" plan "$@" -s "$name" --time-limit $limit
    says "$name names its file" err "^hetviz: .*/$name\\.lua:"
    if escapes "$work/err" || escapes "$work/out"; then no "$name" "raw control characters"; else ok; fi
done
expect 'one call of C that is never done' 4 plan "$@" -s in-c --time-limit 1
says 'one call of C that is never done' err 'a long operation'
timeout -k "$HANG" --preserve-status 1 "$HETVIZ" plan "$@" -s in-c >"$work/out" 2>"$work/err"
rc=$?
holds 'a signal ends such a call' test "$rc" -eq 4
says 'a signal ends such a call' err 'a long operation'
plugin found-then-in-c 'hv.incumbent(hv.strategy("uniform")) return string.rep("a", 1 << 20):find((".-"):rep(30) .. "b")'
expect 'a call of C after a plan was found' 4 plan "$@" -s found-then-in-c --time-limit 1 --json
says 'the plan so far is shown' out '"stopped": true'
says 'it has its strategy' out '"name": "found-then-in-c"'
says 'and the last word says so' err '^hetviz: found-then-in-c: the time limit is reached; this is the best plan so far$'
rm "$HETVIZ_PLUGINS/found-then-in-c.lua"

expect 'all of them beside good ones' 0 compare "$@" -s all --time-limit 0.5
for name in loop caught memory recursion garbage escape talkative in-c; do
    holds "$name is one row" test "$(grep -c "^ -  $name " "$work/out")" -eq 1
done
says 'the good ones are ranked' out '^ 1  '
holds 'rows stay short' test "$(awk '{ if (length > n) n = length } END { print n }' "$work/out")" -lt 1000
holds 'no plugin wrote a file' test ! -e "$work/owned"
if escapes "$work/out"; then no 'compare' 'raw control characters'; else ok; fi

# a solver that does not come back: the prompt and `solve` end on a signal
echo "do $market print(lp:solve {}.status) end" >market.lua
timeout -k 5 --preserve-status -s INT 1 "$HETVIZ" lua <market.lua >"$work/out" 2>"$work/err"
rc=$?
holds 'an interrupted prompt exits 4' test "$rc" -eq 4
echo "do $market print(lp:solve { time_limit_s = 0.2 }.status) end" >market.lua
timeout -k 5 "$HANG" "$HETVIZ" lua <market.lua >"$work/out" 2>"$work/err"
holds 'a program obeys its time limit' grep -q stopped "$work/out"

# Ctrl-C: what has ended is shown, exit 4, nothing stays behind. The signal comes later and later,
# until the good one has ended on this machine.
for wait_s in 3 10 30 100; do
    timeout -k 5 --preserve-status -s INT $wait_s "$HETVIZ" compare "$@" -s uniform,loop --json \
        >"$work/out" 2>"$work/err"
    rc=$?
    grep -q '"iteration_s"' "$work/out" && break
done
holds 'an interrupted comparison exits 4' test "$rc" -eq 4
says 'an interrupted comparison says so' out '"stopped": true'
holds 'and shows what had ended' grep -q '"iteration_s"' "$work/out"
holds 'and is JSON' is_json "$work/out"

# the same for one plan: the best so far, in a sentence and without the plugin's line
for wait_s in 1 3 10 30; do
    timeout -k 5 --preserve-status -s INT $wait_s "$HETVIZ" plan -c thousand -m gpt3-175b -s auto --json \
        >"$work/out" 2>"$work/err"
    rc=$?
    grep -q '"stopped": true' "$work/out" && break
done
holds 'an interrupted search exits 4' test "$rc" -eq 4
says 'its plan says so' out '"stopped": true'
says 'and its last word is a sentence' err '^hetviz: auto: interrupted; this is the best plan so far$'
timeout -k 5 "$HANG" "$HETVIZ" plan -c thousand -m gpt3-175b -s auto --time-limit 1 --json \
    >"$work/out" 2>"$work/err"
rc=$?
holds 'a search that its time limit ends exits 4' test "$rc" -eq 4
says 'and says so' err 'auto: the time limit is reached'

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
