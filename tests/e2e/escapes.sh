#!/bin/sh
# Names and texts from files, plugins and the command line cannot steer the terminal: every command
# runs on hostile ones, and neither output holds a control, bidirectional or invisible character, a
# byte that is no UTF-8, or a line that a name made up.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
HETVIZ_PLUGINS=$work/plugins
export HETVIZ_PLUGINS
mkdir plugins

# ---- what may not come out -----------------------------------------------------------------------
# as bytes of UTF-8: C0 but line end and tab, DEL; C1; soft hyphen; Arabic letter mark; zero width and
# marks; line separators and embeddings; invisible operators and isolates; byte order mark; tags
printf '[\001-\010\013-\037\177]\n\302[\200-\237]\n\302\255\n\330\234\n\342\200[\213-\217]\n\342\200[\250-\256]\n\342\201[\240-\257]\n\357\273\277\n\363\240[\200-\201]\n' \
    >raw.patterns
clean() { # clean NAME: are both outputs of the last run safe?
    for _f in out err; do
        if LC_ALL=C grep -qf raw.patterns "$work/$_f"; then
            no "$1" "raw control characters in std$_f: $(LC_ALL=C grep -f raw.patterns "$work/$_f" | head -n 2 | cat -v | cut -c 1-200)"
        elif ! iconv -f UTF-8 -t UTF-8 "$work/$_f" >/dev/null 2>&1; then
            no "$1" "no UTF-8 in std$_f"
        elif grep -q '^FORGED' "$work/$_f"; then
            no "$1" "a name made a line of its own in std$_f"
        else
            ok
        fi
    done
}
have_program iconv 'hostile names' || finish
try() { # try ARG…: the program on hostile input; whatever it answers is clean
    LIMIT=120 run "$@"
    clean "hetviz $(echo "$*" | tr -d '\000-\037\177-\377' | cut -c 1-100)"
    holds "no crash: $1" test "$rc" -lt 99
}
# the check itself finds what it has to
for bad in '\033[2J' '\302\233' '\342\200\256' '\342\200\213' '\330\234' '\377' '\nFORGED' '\177' '\r'; do
    # shellcheck disable=SC2059
    printf "x$bad" >"$work/out"
    : >"$work/err"
    _failed=$failed _passed=$passed
    clean 'the check' >found.txt
    caught=$((failed - _failed))
    failed=$_failed passed=$_passed
    holds "the check finds $bad" test $caught -eq 1
done

# ---- hostile input -------------------------------------------------------------------------------
# in JSON: for names that may hold everything, and for those of nodes, which hold no blanks
any='\\u001b[31m\\u001b]0;t\\u0007\\u009b2J\\u007f\\u202e\\u2066\\u200f\\u061c\\u2028\\u200b\\u00ad\\ufeff\\udb40\\udc41\\nFORGED\\r\\tz'
one='\\u001bc\\u0007\\u009b2J\\u007f\\u202e\\u2066\\u200f\\u061c\\u200b\\u00adz'
# as bytes, with some that are no UTF-8
bytes=$(printf '\033[31m\033]0;t\007\302\2332J\177\342\200\256\342\201\246\330\234\342\200\250\342\200\213\377\233\nFORGED\r\tz')

# shellcheck disable=SC2317 # called by name
names() { sed "s/\"\\(name\\|title\\|note\\|source\\|formula\\|leaves_out\\|device\\)\": \"\\([^\"]*\\)\"/\"\\1\": \"\\2$any\"/g" "$1"; }
# shellcheck disable=SC2317
all() { sed "s/: \"\\([^\"]*\\)\"/: \"\\1$any\"/g; s/\\[\"\\([^\"]*\\)\"/[\"\\1$any\"/g" "$1"; }
# shellcheck disable=SC2317
keys() { sed "s/\"\\([a-z_]*\\)\":/\"\\1$any\":/3" "$1"; }
# nodes keep names that can be addressed
sed "s/\"name\": \"two-generations\"/\"name\": \"$any\"/; s/\"name\": \"\\([ah]\\)\"/\"name\": \"\\1$one\"/" \
    "$root/samples/clusters/two-generations.json" >c.json
sed "s/\"name\": \"llama-3-8b\"/\"name\": \"$any\"/" "$root/share/models/llama-3-8b.json" >m.json
echo "{ \"format\": \"hetviz.job/1\", \"name\": \"$any\", \"global_batch\": 64 }" | sed 's/\\\\/\\/g' >j.json
expect 'the cluster is read' 0 check c.json m.json j.json

plugin() { # plugin ID BODY: a strategy with hostile texts whose plan function is the body
    cat >"plugins/$1.lua" <<PLUGIN
local bad = "\27[2J\27]0;t\7\u{9b}2J\127\u{202e}\u{200b}\u{2028}\nFORGED\r\t"
local worse = bad .. "\255"
return { api = 1, id = "$1", title = "t" .. bad, kind = "k" .. bad, system = "s" .. bad,
  reference = "r" .. bad, summary = "y" .. bad,
  options = { { key = "size", type = "integer", default = 1, min = 1, max = 4, help = "h" .. bad },
    { key = "way", type = "choice", choices = { "a", "b" .. bad }, default = "a", help = "w" .. bad } },
  plan = function(ctx) $2 end,
  claim = function(ctx, plan) return { iteration_s = 1, formula = "f" .. bad, leaves_out = "l" .. bad } end,
  selftest = function(t) t.ok("n" .. bad, true, "from" .. bad) t.equal("n" .. bad, "g" .. bad, "w" .. bad) end }
PLUGIN
}
plugin reason 'return nil, "no" .. worse'
plugin fails 'error("e" .. worse)'
plugin raises 'error({ bad })'
plugin talks 'hv.log("l" .. worse) hv.progress(0.5, "p" .. bad) return hv.strategy("uniform")'
plugin claims 'return hv.strategy("uniform")'
printf '%s\n' 'return { id = "broken\27[2J' >plugins/broken.lua
printf 'return { api = 1, id = "key", title = "t", kind = "k", summary = "s", plan = function() end, ["\\27[2J\\nFORGED"] = 1 }' \
    >plugins/key.lua
mkdir "plugins/$bytes"
cp plugins/fails.lua "plugins/$bytes/plugin.lua"

# a plan of them, with hostile texts of its own
run plan -c c.json -m m.json -j j.json -s claims --out p.json
holds 'a plan of hostile inputs' test -s p.json
clean 'plan --out'

# ---- every command -------------------------------------------------------------------------------
in='-c c.json -m m.json -j j.json'
one_command() {
    # shellcheck disable=SC2086
    case $1 in
    plan)
        for s in reason fails raises talks claims broken key "$bytes" "uniform+$bytes"; do
            try plan $in -s "$s"
            try plan $in -s "$s" --json
        done
        try plan $in -s uniform -o "$bytes=1"
        try plan $in -s claims -o "way=$bytes"
        try plan $in -s uniform --lost "$bytes"
        try plan -c "$bytes" -m m.json -s uniform
        try plan $in -s uniform --replan "$bytes"
        try plan $in -s uniform --out -
        ;;
    compare)
        try compare $in -s reason,fails,raises,talks,claims,broken,uniform,whale
        try compare $in -s reason,fails,talks,claims,uniform --json
        try compare $in -s "$bytes"
        try compare $in -s uniform -o "$bytes=1"
        ;;
    eval | explain | check)
        try "$1" p.json
        for f in "$root"/samples/plans/*.json; do
            for how in names all keys; do
                $how "$f" >hostile.json
                try "$1" hostile.json
            done
        done
        if [ "$1" != check ]; then
            try "$1" p.json --json
            names "$root/samples/plans/two-replicas.json" >hostile.json
            try "$1" hostile.json --json
        else
            for f in "$root"/samples/clusters/d*.json "$root"/samples/models/*.json "$root"/samples/jobs/*.json \
                "$root"/samples/instances/*.json "$root"/samples/workspaces/m*/workspace.json; do
                for how in names all keys; do
                    $how "$f" >hostile.json
                    try check hostile.json
                done
            done
            try check "$bytes" plugins/fails.lua "plugins/$bytes" plugins/broken.lua
        fi
        [ "$1" != explain ] || try explain p.json --stage 0
        ;;
    gantt)
        try gantt p.json
        try gantt p.json --links --ascii
        try gantt p.json --svg -
        try gantt p.json --trace -
        try gantt "$bytes"
        for f in serving two-jobs multimodal; do
            names "$root/samples/plans/$f.json" >hostile.json
            try gantt hostile.json
            try gantt hostile.json --svg -
        done
        ;;
    schedule)
        try schedule "$bytes" -p 2 -m 2
        try schedule fails -p 2 -m 2
        try schedule 1f1b -p 2 -m 2 -o "$bytes=1"
        try schedule "plugins/$bytes" -p 2 -m 2
        ;;
    solve)
        for f in "$root"/samples/instances/*.json; do
            for how in names all keys; do
                $how "$f" >hostile.json
                try solve hostile.json --budget 10
            done
        done
        names "$root/samples/instances/chain.json" >hostile.json
        try solve hostile.json --json
        try solve "$bytes"
        ;;
    bound)
        try bound $in
        try bound $in --json
        try bound -c "$bytes" -m "$bytes"
        ;;
    failures)
        try failures p.json --lost 1 --budget 10
        try failures p.json --lost 1 --budget 10 --json
        try failures p.json --lost 0 --preempted "$bytes=1"
        ;;
    strategies)
        try strategies
        try strategies --json
        for s in reason broken key "$bytes"; do
            try strategies "$s"
            try strategies "$s" --json
        done
        ;;
    selftest) for s in fails broken "$bytes" plugins/broken.lua "plugins/$bytes"; do try selftest "$s"; done ;;
    validate)
        mkdir -p data
        f=$(find "$root/share/validation" -name '*.json' | sort | head -n 1)
        for how in names all keys; do
            $how "$f" >data/rows.json
            try validate --data data
        done
        try validate --data data --json
        try validate --data "$bytes"
        ;;
    profile)
        f=$(find "$root/share/profiles" -name '*.json' | sort | head -n 1)
        for how in names all keys; do
            $how "$f" >hostile.json
            try profile --show hostile.json
            try profile --show hostile.json --json
        done
        try profile --show "$bytes"
        ;;
    import)
        for f in "$root"/tests/fuzz/corpus/import/*; do
            # the first byte of some seeds is the number of a format
            LC_ALL=C sed "s/[a-z_-]*[a-z]/&$(printf '\033[31m\302\233\342\200\256')/3; s/\"\\([^\"]*\\)\"/\"\\1$one\"/2" "$f" >seed
            try import auto seed
        done
        try import "$bytes" seed
        try import auto "$bytes"
        ;;
    shard)
        for f in "$root"/tests/golden/shard/*.json; do
            for how in names all keys; do
                $how "$f" >hostile.json
                try shard hostile.json
                try shard hostile.json --json
            done
            try shard "$f" --mesh "$bytes=2"
            try shard "$f" --split "$bytes.d=x"
        done
        try shard "$bytes"
        ;;
    export)
        for to in megatron torchtitan deepspeed accelerate slurm report csv dot; do
            for how in names all; do
                $how p.json >hostile.json
                try export hostile.json --to $to
                try export hostile.json --to $to --out "out$bytes"
            done
        done
        try export "$bytes" --to csv
        try export p.json --to "$bytes"
        ;;
    sweep)
        cat >sweep.json <<X
{ "format": "hetviz.sweep/1", "cluster": "homogeneous", "model": "gpt3-125m",
  "axes": [ { "name": "batch", "at": "job.global_batch", "values": [64, 128] } ],
  "where": ["batch > 64"], "strategies": ["uniform"] }
X
        for how in names all keys; do
            $how sweep.json >hostile.json
            try sweep plan hostile.json
            try sweep run hostile.json --out swept
        done
        "$HETVIZ" sweep run sweep.json --out swept >/dev/null 2>&1
        try sweep merge swept
        try sweep show swept --where "$bytes"
        try sweep show swept --sort "$bytes"
        try sweep show "$bytes"
        try sweep "$bytes" sweep.json
        try sweep run --out swept --shard "$bytes"
        ;;
    new-plugin)
        try new-plugin "$bytes"
        try new-plugin good --out "plugins/$bytes"
        ;;
    lua)
        printf 'print("\\27[2J\\u{202e}\\255")\nerror("\\27[2J\\nFORGED")\nx = \033[2J\nhv.log("\\27c")\n' >in.lua
        timeout -k 2 "$HANG" "$HETVIZ" lua $in <in.lua >"$work/out" 2>"$work/err"
        clean 'lua'
        ;;
    completion) try completion "$bytes" ;;
    calibrate)
        printf 'elapsed time per iteration (ms): 2000.0 | %s\n' "$bytes" "$bytes" >"$bytes.log"
        try calibrate "$bytes.log" --plan p.json --out "$bytes.json"
        try calibrate "$bytes.log" --plan p.json --out out.json --json
        try calibrate p.json "$bytes" --plan p.json
        ;;
    help)
        try help "$bytes"
        try help man
        try help strategies
        try help schedules "$bytes"
        try help import
        ;;
    *) no "$1" 'this command has no hostile input in this test' ;;
    esac
}
run help
commands=$(sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p' "$work/out" | sort -u)
holds 'the table of commands is read' test "$(echo "$commands" | wc -l)" -gt 15
for command in $commands; do
    one_command "$command"
    try "$command" "--$bytes"
done
try "$bytes"

# ---- what is told and not lost -------------------------------------------------------------------
run gantt p.json
says 'a name is shown with visible escapes' out '<U\+001B>\[31m.*<U\+202E>'
run compare -c c.json -m m.json -s uniform --json
holds 'JSON is JSON' is_json "$work/out"
if have_program python3 'JSON gives the names back'; then
    # the layout by hand takes every device
    run plan -c c.json -m m.json -j j.json -s manual -o tp=8 -o pp=2 --out every.json
    run explain every.json --json
    holds 'JSON gives the names back' python3 - "$work/out" c.json <<'PYTHON'
import json, sys
plan, cluster = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))
addresses = json.dumps([s["devices"] for r in plan["replicas"] for s in r["stages"]])
sys.exit(0 if all(json.dumps(n["name"])[1:-1] in addresses for n in cluster["nodes"]) else 1)
PYTHON
fi

# ---- the front end -------------------------------------------------------------------------------
mkdir ws
cp c.json ws/cluster.json
cp m.json ws/model.json
mkdir ws/plans
cp p.json "ws/plans/hostile.json"
names "$root/samples/plans/uniform.json" >ws/plans/second.json
printf '{ "format": "hetviz.workspace/1", "name": "%s", "cluster": "cluster.json", "model": "model.json",
  "plans": ["plans/hostile.json", "plans/second.json"], "strategies": ["claims", "fails", "uniform"] }' "$any" |
    sed 's/\\\\/\\/g' >ws/workspace.json
for screen in cluster model strategies plans gantt explain what-if console; do
    try ws --dump $screen --size 120x40
    try ws --dump $screen --plain
done
try ws --dump gantt --out "$bytes.svg"
try "$bytes" --dump cluster
printf ':%s\n:set cluster.name %s\nkeys 5\n:run fails\n' x y >s.script
try ws --script s.script
finish
