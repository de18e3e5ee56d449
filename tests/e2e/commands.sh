#!/bin/sh
# Every command of the table: help, wrong usage, exit codes, results against closed forms, output
# files, full disks and closed pipes. Plans of strategies are in plans.sh.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

# ---- help -------------------------------------------------------------------------------------
expect 'help' 0 help
cp out list.out
commands=$(sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p' list.out)
holds 'help lists commands' [ "$(echo "$commands" | wc -w)" -ge 14 ]
for c in plan compare eval gantt schedule solve bound explain strategies selftest validate check new-plugin \
    completion help; do
    holds "help lists $c" grep -q "^  $c  *[a-z]" list.out
    expect "help $c" 0 help "$c"
    cp out help.out
    expect "$c --help" 0 "$c" --help
    same "$c --help is help $c" out help.out
    says "$c: usage" out "^usage: hetviz $c"
    says "$c: an example" out "^Example: "
    says "$c: options" out '^ *-h, --help '
    expect "$c --hepl" 2 "$c" --hepl
    says "$c: suggests --help" err "$c: unknown option --hepl, did you mean --help\?"
    holds "$c: wrong usage prints no result" [ ! -s out ]
    expect "$c -Z" 2 "$c" -Z
done
for c in $commands; do
    expect "$c --help, as listed" 0 "$c" --help
done
expect '--help' 0 --help
expect '-h' 0 -h
expect 'help of no command' 2 help evl
expect 'help of schedules' 0 help schedules
says 'help of schedules: one row each' out '^zb-h1 '
expect 'help schedules NAME' 0 help schedules zb-h1
says 'help schedules NAME: options' out '^  -o group=0 '
expect 'help schedules of none' 2 help schedules zb-h9
expect 'help of a schedule' 0 help zb-h1
says 'help of a schedule: its source' out 'ICLR 2024'
expect '--version' 0 --version
says '--version' out '^hetviz [0-9]+\.[0-9]+\.[0-9]+$'
expect 'unknown command' 2 evl
says 'unknown command: suggestion' err 'did you mean "eval"'
expect 'nothing like a command' 2 frobnicate
says 'nothing like a command: where to look' err 'hetviz help'

expect 'help api' 0 help api
says 'help api counts' out '^[0-9]+ functions, [0-9]+ of share/lua;'
holds 'help api lists every function it counts' \
    test "$(grep -c '^[a-z_]*[.:]' out)" -eq "$(awk '/ functions, / { print $1 + $3 }' out)"
expect 'help api NAME' 0 help api hv.cost.stage
says 'help api NAME has units' out '^  units$'
expect 'help api: unknown' 2 help api hv.cost.stagee
says 'help api: the nearest' err 'hv.cost.stage'
expect 'help man plugin' 0 help man plugin
same 'the shipped hetviz-plugin(7) is that of this program' out "$root/share/man/hetviz-plugin.7"
printf 'x = 2\nfor i = 1, 2 do\n  x = x + i\nend\nx, { a = #ctx.cluster:devices() }\n' >lines.lua
"$HETVIZ" lua -c two-generations <lines.lua >out 2>err
rc=$?
holds 'lua: exit' test $rc -eq 0
says 'lua: values' out '^5 \{"a":32\}$'
printf 'nil + 1\nio\nhv.incumbent(hv.strategy("uniform"))\nwhile true do\n' | "$HETVIZ" lua >out 2>err
rc=$?
holds 'lua: errors' test $rc -eq 5
says 'lua: says where' err '^console:1: attempt to perform arithmetic'
says 'lua: goes on' out '^true$'
says 'lua: an end is missing' err 'incomplete'
expect 'help man' 0 help man
same 'the shipped hetviz(1) is that of this program' out "$root/share/man/hetviz.1"
says 'manual: title' out '^\.TH HETVIZ 1'
for section in NAME SYNOPSIS DESCRIPTION COMMANDS FILES ENVIRONMENT 'EXIT STATUS'; do
    says "manual: $section" out "^\.SH $section\$"
done
# every variable that the program reads is described
(cd "$root" && grep -rhoE 'getenv\("[A-Z_]+"\)' --include='*.c' solver scripting ui |
    sed 's/.*"\(.*\)".*/\1/' | sort -u) >variables
for v in $(cat variables) VISUAL EDITOR; do
    holds "manual: $v" grep -q "^\.B $v\$" out
done
for c in $commands; do
    holds "manual: $c" grep -q "^\.SS hetviz $(echo "$c" | sed 's/-/\\\\-/')" out
done
for shell in bash zsh fish; do
    expect "completion $shell" 0 completion $shell
    holds "completion $shell: knows a command" grep -q schedule out
    if have_program $shell "completion of $shell"; then
        holds "completion $shell: parses" $shell -n out
    fi
done
if have_program bash 'what bash completes'; then
    "$HETVIZ" completion bash >completion.bash
    bash -c '. ./completion.bash; COMP_WORDS=(hetviz sch); COMP_CWORD=1; _hetviz
        echo "${COMPREPLY[@]}"' >out 2>err
    says 'completion bash: a command' out '^schedule$'
    bash -c '. ./completion.bash; COMP_WORDS=(hetviz gantt --sv); COMP_CWORD=2; _hetviz
        echo "${COMPREPLY[@]}"' >out 2>err
    says 'completion bash: an option' out '^--svg$'
    H=$HETVIZ bash -c '. ./completion.bash; COMP_WORDS=("$H" schedule v-m); COMP_CWORD=2; _hetviz
        echo "${COMPREPLY[@]}"' >out 2>err
    says 'completion bash: a schedule' out '^v-min$'
    H=$HETVIZ bash -c '. ./completion.bash; COMP_WORDS=("$H" schedule dapple -o early = pb); COMP_CWORD=6
        _hetviz; echo "${COMPREPLY[@]}"' >out 2>err
    says 'completion bash: the value of its option' out '^pb$'
    # completes WORDS…: what bash offers for the last word; the program is the one under test
    completes() {
        H=$HETVIZ bash -c '. ./completion.bash; COMP_WORDS=("$H" "$@"); COMP_CWORD=$#
            _hetviz; echo "${COMPREPLY[@]}"' bash "$@" >out 2>err
    }
    completes --
    says 'completion bash: options without a command' out '^--ascii .*--version$'
    completes --vers
    says 'completion bash: --version' out '^--version$'
    completes --plain --no
    says 'completion bash: a second one' out '^--no-mouse$'
    completes plan -c two-
    says 'completion bash: -c' out 'two-generations two-regions'
    completes plan --cluster = two-g
    says 'completion bash: --cluster=' out '^two-generations$'
    completes plan -m llama-3-8
    says 'completion bash: -m' out '^llama-3-8b$'
    completes plan -j pretr
    says 'completion bash: -j' out '^pretrain$'
    completes plan -s met
    says 'completion bash: -s' out '^metis$'
    completes compare -s amp,met
    says 'completion bash: -s with several' out '^amp,metis$'
    completes plan -s amp -o sea
    says 'completion bash: -o' out '^search=bound search=anneal$'
    completes plan -s amp -o search = an
    says 'completion bash: -o KEY=' out '^anneal$'
    completes compare -o amp.bud
    says 'completion bash: -o NAME.KEY=' out '^amp\.budget=$'
    completes sweep show store --columns strategy,ite
    says 'completion bash: columns of a sweep' out '^strategy,iteration_s$'
    completes sweep show store --columns met
    holds 'completion bash: no strategies among columns' [ "$(cat out)" = '' ]
    completes sweep show store --pareto st
    holds 'completion bash: only figures have a front' [ "$(cat out)" = '' ]
    completes sweep show store --pareto usd_per_M
    says 'completion bash: figures of a front' out '^usd_per_Mtoken$'
    completes eval zero-
    says 'completion bash: PLAN' out '^zero-bubble$'
    completes import nodes.txt --device a100 = A100-SXM-8
    says 'completion bash: --device' out '^A100-SXM-80GB$'
fi
if have_program fish 'what fish completes'; then
    "$HETVIZ" completion fish >completion.fish
    mkdir -p bin
    ln -sf "$(command -v "$HETVIZ")" bin/hetviz
    for row in 'plan -c two-g|two-generations' 'plan -m llama-3-8|llama-3-8b' 'plan -j pretr|pretrain' \
        'plan -s met|metis' 'compare -s amp,met|amp,metis' 'plan -s amp -o sea|search=bound' \
        'eval zero-|zero-bubble' 'import x --device a100=A100-SXM-8|a100=A100-SXM-80GB'; do
        PATH=$PWD/bin:$PATH fish -c ". ./completion.fish; complete -C 'hetviz ${row%%|*}'" >out 2>err
        says "completion fish: ${row%%|*}" out "^${row#*|}"
    done
fi
if have_program zsh 'what zsh completes'; then
    "$HETVIZ" completion zsh >completion.zsh
    for row in 'plan -c ""|two-generations' 'plan -m ""|llama-3-8b' 'plan -j ""|pretrain' 'plan -s ""|metis' \
        'compare -s ""|metis' 'plan -s amp -o ""|search=bound' 'eval ""|zero-bubble' \
        'import x --device ""|A100-SXM-80GB'; do
        # the shell's own functions are replaced by ones that print what is offered
        H=$HETVIZ zsh -c "compdef() { :; }; compadd() { print -l -- \$@; }; _files() { :; }
            compset() { :; }; . ./completion.zsh; words=(\$H ${row%%|*}); CURRENT=\${#words}
            _hetviz" >out 2>err
        says "completion zsh: ${row%%|*}" out "^${row#*|}\$"
    done
fi
for words in clusters models jobs plans instances devices strategies options 'options amp' schedules; do
    # shellcheck disable=SC2086
    expect "completion $words" 0 completion $words
    holds "completion $words: words" test -s out
done
expect 'completion of another shell' 2 completion ksh

# ---- wrong usage ------------------------------------------------------------------------------
usage() { # usage PATTERN ARG…: exit 2, the pattern on standard error, nothing on standard output
    pattern=$1
    shift
    expect "$*" 2 "$@"
    says "$*" err "$pattern"
    holds "$*: prints no result" [ ! -s out ]
}
usage 'expected PLAN' eval
usage "unexpected argument 'b'" eval a b
usage 'cluster' bound -m llama-3-8b
usage 'model' bound -c desktop
usage 'strategy' plan -c desktop -m llama-3-8b
usage '0 is out of range' schedule 1f1b -p 0 -m 3
usage 'whole number' schedule 1f1b -p 4 -m x
usage 'whole number' schedule 1f1b -p 4 -m 8.5
usage 'out of range' schedule 1f1b -p 4 -m 99999999999999999999
usage 'KEY=VALUE' schedule interleaved -p 4 -m 8 -o group
usage 'no options|unknown option' schedule 1f1b -p 4 -m 8 -o x=1
usage 'four numbers' schedule 1f1b -p 4 -m 8 --times 1,2
usage 'number' schedule 1f1b -p 4 -m 8 --times 1,2,nan,0
usage '-1|range' schedule 1f1b -p 4 -m 8 --times 1,2,-1,0
usage 'did you mean "1f1b"' schedule 1f2b -p 4 -m 8
usage 'even' schedule dualpipe -p 3 -m 8
usage 'width' gantt uniform --width 20
usage 'takes no value' eval uniform --json=5
usage 'seed' eval uniform --seed many
usage 'time-limit' solve x.json --time-limit -5
usage 'unknown strategy' strategies no-such-strategy
usage 'out' eval uniform --out

# ---- schedules against closed forms (schedule papers; f = b = w = 1, no hops) ------------------
schedule() { # schedule NAME P M V MAKESPAN PEAKS: peaks as printed in JSON
    run schedule "$1" -p "$2" -m "$3" -v "$4" --json
    holds "schedule $1 $2 $3 $4: exit 0" [ "$rc" -eq 0 ]
    holds "schedule $1 $2 $3 $4: JSON" is_json out
    holds "schedule $1 $2 $3 $4: makespan $5, not $(number out makespan)" \
        [ "$(number out makespan)" = "$5" ]
    holds "schedule $1 $2 $3 $4: peaks [$6]" grep -Fq "\"peak_inflight\": [$6]" out
}
# (m + p - 1)(f + b + w): GPipe (NeurIPS'19) and 1F1B (PipeDream-Flush)
schedule gpipe 4 8 1 33 '8, 8, 8, 8'
schedule 1f1b 4 8 1 33 '4, 3, 2, 1'
schedule 1f1b 1 5 1 15 1
schedule 1f1b 8 4 1 33 '4, 4, 4, 4, 4, 3, 2, 1'
# m·v·3 + (p - 1)·3, times per chunk: interleaved 1F1B (Megatron-LM, SC'21)
schedule interleaved 4 8 2 57 '11, 9, 7, 5'
# m(f + b + w) + (p - 1) max(f, b, f + b - w): ZB-H1 (ICLR'24), memory of p micro-batches
schedule zb-h1 4 8 1 27 '4, 4, 4, 4'
# the same wall time for f = b = w, and no rank idle inside its span: ZB-H2
schedule zb-h2 4 8 1 27 '7, 7, 7, 7'
holds 'zb-h2: the longest span has no bubble' [ "$(number out longest_span)" = 24 ]
run schedule 1f1b -p 4 -m 8 --json
holds '1f1b: bubble (p-1)/(m+p-1)' [ "$(number out bubble | cut -c 1-8)" = 0.272727 ]
# a steady state of f + b + w, so that any number of micro-batches is m + p - 1 of them
run schedule 1f1b -p 4 -m 1000000000 --json
holds '1f1b: a thousand million micro-batches' [ "$(number out makespan)" = 3000000009 ]
says '1f1b: the steady state' out '"per_micro_batch": 3,'
run schedule 1f1b -p 4 -m 8 --times 1,1,1,1 --json
says 'schedule: idle time by cause' out '"hop": \['
run schedule gpipe -p 4 -m 8 --cap 4
holds 'schedule --cap: no' [ "$rc" -ne 0 ]
says 'schedule --cap: names the blocked heads' err 'F0\.4 on rank 0 waits for 1 of memory 0'
run schedule 1f1b -p 4 -m 8 --jitter 0.2 --gantt
says 'schedule --gantt: both makespans' out 'makespan [0-9.]* \(wall\), longest span of a rank'
cat >own-order.lua <<'LUA'
return { api = 1, id = "mine", title = "Mine", kind = "schedule", system = "s", reference = "r",
  summary = "GPipe in Lua", order = function(p)
    local ranks = {}
    for r = 1, p.ranks do
      local o = {}
      for i = 0, p.micro_batches - 1 do o[#o + 1] = ("F%d.%d"):format(r - 1, i) end
      for i = p.micro_batches - 1, 0, -1 do o[#o + 1] = ("BW%d.%d"):format(r - 1, i) end
      ranks[r] = o
    end
    return ranks
  end }
LUA
mkdir -p own && cp own-order.lua own/
HETVIZ_PLUGINS=$PWD/own "$HETVIZ" help schedules >out 2>err
says 'a schedule in Lua: in the list' out '^mine  *GPipe in Lua'
HETVIZ_PLUGINS=$PWD/own "$HETVIZ" help schedules mine >out 2>err
says 'a schedule in Lua: explained' out '^source  r$'
HETVIZ_PLUGINS=$PWD/own "$HETVIZ" completion schedules >out 2>err
says 'a schedule in Lua: completed' out '^mine$'
HETVIZ_PLUGINS=$PWD/own "$HETVIZ" schedule mine -p 2 -m 2 --gantt >out 2>err
says 'a schedule in Lua: drawn' out '^    0  01\.\.\.bbaa$'
run schedule own-order.lua -p 4 -m 8 --json
holds 'a schedule in Lua: as gpipe' [ "$(number out makespan)" = 33 ]
run schedule 1f1b -p 2 -m 2 --json
says '1f1b: order of rank 0' out '"F0\.0", "F0\.1", "BW0\.0", "BW0\.1"'
says '1f1b: order of rank 1' out '"F1\.0", "BW1\.0", "F1\.1", "BW1\.1"'
run schedule 1f1b -p 4 -m 8 --times 2,2,2,0 --json
holds 'schedule: twice the times, twice the makespan' [ "$(number out makespan)" = 66 ]
run schedule 1f1b -p 4 -m 8 --json
cp out first.out
run schedule 1f1b -p 4 -m 8 --json
same 'schedule: same bytes twice' out first.out
expect 'schedule: text' 0 schedule 1f1b -p 4 -m 8
says 'schedule: text tells the makespan' out 'makespan 33'
expect 'schedule: drawing' 0 schedule 1f1b -p 4 -m 8 --gantt --ascii --width 60
says 'schedule: rows' out '0123'
run schedule 1f1b -p 2 -m 12 --scale 1,3 --hops 0.5
says 'schedule --scale: the slow stage sets the pace' out 'steady state 9 per micro-batch, limited by rank 1'
run schedule zb-1p -p 4 -m 8 --limits 2,3,2,1
says 'schedule --limits: kept' out '^    0          2 '
expect 'schedule --limits: not by this one' 1 schedule distmm -p 2 -m 4 --limits 4,3
says 'schedule --limits: by how much' err 'needs the forwards of 4 micro-batches .* stage 1 may hold 3; allow 4'
usage 'one for each stage' schedule 1f1b -p 2 -m 4 --scale 1
run schedule zb-h1 -p 2 -m 4096 --gantt --width 60
says 'schedule --gantt: columns of several kinds' out '^    0  [F#]*$'
expect 'schedule: PNG' 0 schedule dualpipe -p 4 -m 8 --png s.png
expect 'schedule: SVG' 0 schedule 1f1b -p 4 -m 8 --svg s.svg
holds 'schedule: SVG begins' grep -q '^<svg ' s.svg
holds 'schedule: SVG ends' grep -q '</svg>' s.svg
expect 'schedule: too large' 3 schedule 1f1b -p 65536 -m 4194304
says 'schedule: too large says the limit' err 'limit'

# ---- solve ------------------------------------------------------------------------------------
cat >chain.json <<'EOF'
{ "format": "hetviz.partition/1", "kind": "chain", "layers": 3, "stages": 2, "min_layers": 1,
  "objective": "minmax", "time_ms": [[1, 2, 3], [2, 1, 1]], "memory_GiB": [[1, 1, 1], [1, 1, 1]],
  "capacity_GiB": [2, 2], "comm_ms": [[0.5, 0.5, 0]] }
EOF
cat >distribute.json <<'EOF'
{ "format": "hetviz.distribute/1", "total": 14, "replicas": [
  { "fixed_ms": 1, "per_microbatch_ms": 4, "size": 1, "max": 9 },
  { "fixed_ms": 0, "per_microbatch_ms": 3, "size": 2, "max": 8 } ] }
EOF
expect 'solve: chain' 0 solve chain.json --json
holds 'solve: chain is JSON' is_json out
# a cut after layer 1: stages of 1 + 0.5 and 0.5 + 1 + 1 ms; after layer 2 the first needs 3.5 ms
holds 'solve: chain optimum' [ "$(number out objective)" = 2.5 ]
holds 'solve: chain bound' [ "$(number out bound)" = 2.5 ]
says 'solve: chain is proven' out '"optimal": true'
# n1 + 2·n2 = 14: (4, 5) costs max(1 + 4·4, 3·5) = 17, (2, 6) costs 18
expect 'solve: distribution' 0 solve distribute.json --json
holds 'solve: distribution optimum' [ "$(number out objective)" = 17 ]
says 'solve: distribution counts' out '\[4, 5\]'
expect 'solve: text' 0 solve chain.json
says 'solve: text tells the optimum' out '^objective +2\.5'
expect 'solve: proved again by lp_solve' 0 solve chain.json --certify
expect 'solve: integer program' 0 solve chain.json --write-lp chain.lp
holds 'solve: integer program is written' grep -qi 'min' chain.lp
sed 's/"capacity_GiB": \[2, 2\]/"capacity_GiB": [1, 1]/' chain.json >tight.json
expect 'solve: no solution' 1 solve tight.json
sed 's/"total": 14/"total": 99/' distribute.json >tight.json
expect 'solve: not enough room' 1 solve tight.json
expect 'solve: chain again' 0 solve chain.json --json
says 'solve: a chain comes with a second opinion' out 'lp_solve'
# a V of two ranks, the second three times slower: 6 + 2 of 8 layers, 6 ms each
cat >fold.json <<'EOF'
{ "format": "hetviz.partition/1", "kind": "chain", "layers": 8, "stages": 4, "ranks": 2,
  "placement": "fold", "time_ms": [[1,1,1,1,1,1,1,1],[3,3,3,3,3,3,3,3],[3,3,3,3,3,3,3,3],
  [1,1,1,1,1,1,1,1]] }
EOF
expect 'solve: several stages per rank' 0 solve fold.json --json
holds 'solve: chunks optimum' [ "$(number out objective)" = 6 ]
says 'solve: chunks ranks' out '"rank": \[0, 1, 1, 0\]'
expect 'solve: chunks text' 0 solve fold.json
says 'solve: chunks text tells the ranks' out '^rank +ms$'
cat >copies.json <<'EOF'
{ "format": "hetviz.partition/1", "kind": "replicas", "layers": 2, "devices": 2, "capacity_GiB": 4,
  "widths": [ { "width": 1, "sync_ms": [9, 9], "options": [
    { "name": "keep", "time_ms": [1, 1], "held_GiB": [3, 3] },
    { "name": "recompute", "time_ms": [2, 2], "held_GiB": [1, 1] } ] } ] }
EOF
expect 'solve: copies' 0 solve copies.json --json
says 'solve: copies recompute where two samples are held' out '"option": \[1, 0\]'
expect 'solve: copies text' 0 solve copies.json
says 'solve: copies text has a row per stage' out '^1 +1 +1 +1 +1 +1$'
expect 'solve: copies have no integer program' 2 solve copies.json --write-lp x.lp
cat >curve.json <<'EOF'
{ "format": "hetviz.distribute/1", "objective": "sum", "total": 10, "replicas": [
  { "time_ms": [[0, 0], [4, 4], [8, 20]] }, { "per_microbatch_ms": 3 } ] }
EOF
expect 'solve: convex times' 0 solve curve.json --json
says 'solve: cheapest first' out '\[4, 6\]'
sed 's/"sum"/"minmax"/' curve.json >minmax.json
expect 'solve: curve, least maximum' 0 solve minmax.json --json
holds 'solve: curve optimum' [ "$(number out objective)" = 12 ]
echo '{ "format": "hetviz.distribute/1", "objective": "lpt", "items_ms": [5, 4, 3, 3, 3],
  "slots": 2 }' >items.json
expect 'solve: longest first' 0 solve items.json --json
holds 'solve: longest first bound' [ "$(number out bound)" = 9 ]
# times of nothing: 0 is the optimum, and nobody finds less
sed 's/\[\[1, 2, 3\], \[2, 1, 1\]\]/[[0, 0, 0], [0, 0, 0]]/; s/"comm_ms".*/"name": "z" }/' chain.json >zero.json
expect 'solve: times of 0' 0 solve zero.json --json
says 'solve: times of 0 are proven' out '"optimal": true'
for file in "$root"/samples/instances/*.json; do
    name=$(basename "$file" .json)
    expect "solve $name" 0 solve "$file" --json
    holds "solve $name: JSON" is_json out
    expect "solve $name: text, by name" 0 solve "$name"
    says "solve $name: text has a table" out '^(0|accel 0) '
done
timeout "$HANG" "$HETVIZ" solve - --json <chain.json >out 2>err
holds 'solve: standard input' [ $? -eq 0 ]

# ---- eval, bound, explain ---------------------------------------------------------------------
explains() { # explains NAME PLAN: a plan of one training job is explained whole and by stage
    expect "explain $1" 0 explain "$2"
    says "explain $1" out '^2 stage [0-9]+ of replica'
    expect "explain $1: JSON" 0 explain "$2" --json
    holds "explain $1: JSON" is_json out
    expect "explain $1: a stage" 0 explain "$2" --stage 0
    says "explain $1: a stage" out '^one micro-batch, chunk 1 of [0-9]+: forward'
    says "explain $1: a stage" out '^ +weights +[0-9.]+ [GM]iB  '
    expect "explain $1: a stage as JSON" 0 explain "$2" --stage 0 --json
    holds "explain $1: a stage as JSON" is_json out
    expect "explain $1: no such stage" 1 explain "$2" --stage 100000
    says "explain $1: no such stage" err 'the plan has no stage 100000 of replica 0'
}
for plan in "$root"/samples/plans/*.json; do
    name=$(basename "$plan" .json)
    expect "eval $name" 0 eval "$plan" --json
    holds "eval $name: JSON" is_json out
    says "eval $name: no violations" out '"violations": \[\]'
    cp out first.out
    run eval "$plan" --json
    same "eval $name: same bytes twice" out first.out
    run eval "$name" --json
    same "eval $name: by name" out first.out
    # what eval prints is a plan: judged again it says the same
    run eval first.out --json
    same "eval $name: again from its own output" out first.out
    timeout "$HANG" "$HETVIZ" eval - --json <"$plan" >out 2>err
    same "eval $name: from standard input" out first.out
    expect "eval $name: text" 0 eval "$plan"
    # a flow of requests and a queue of jobs have no iteration
    if grep -q '"mode": "serve"\|"jobs": \[' "$plan"; then
        says "eval $name: text" out '^tokens/s +[0-9]'
        continue
    fi
    says "eval $name: text" out '^iteration +[0-9]'
    holds "eval $name: bound below iteration" \
        least "$(number first.out bound_s)" "$(number first.out iteration_s)"
    explains "$name" "$plan"
done
cat >good.json <<'EOF'
{ "format": "hetviz.plan/1", "cluster": "two-generations", "model": "llama-3-8b",
  "job": { "global_batch": 128, "sequence": 2048, "precision": "bf16", "optimizer": "adam" },
  "micro_batch": 1,
  "replicas": [ { "micro_batches": 128, "stages": [
    { "devices": "a[0].*", "layers": [0, 12], "tp": 8 },
    { "devices": "h[0].*", "layers": [12, 32], "tp": 8 } ] } ],
  "schedule": { "name": "1f1b" } }
EOF
expect 'eval: the good plan' 0 eval good.json
violation() { # violation CODE SED: the changed plan exits 1 and names the code, figures and all
    sed "$2" good.json >changed.json
    expect "eval: $1" 1 eval changed.json --json
    says "eval: $1" out "\"code\": \"$1\""
    holds "eval: $1: JSON" is_json out
    holds "eval: $1: says why" [ -s err ]
    expect "eval: $1 as text" 1 eval changed.json
    says "eval: $1 as text" out "$1"
}
violation batch_sum 's/"micro_batches": 128/"micro_batches": 127/'
violation layers_missing 's/\[12, 32\]/[13, 32]/'
violation layers_twice 's/\[12, 32\]/[11, 32]/'
violation degree_product 's/"layers": \[0, 12\], "tp": 8/"layers": [0, 12], "tp": 4/'
violation devices_overlap 's/h\[0\]/a[0]/'
violation memory 's/llama-3-8b/gpt3-175b/;s/\[12, 32\]/[12, 96]/'
violation schedule_needs 's/1f1b/1f2b/'
says 'eval: unknown schedule: suggestion' err 'did you mean "1f1b"'
run eval good.json -c homogeneous
holds 'eval: another cluster is looked at' [ "$rc" -eq 3 ]

expect 'bound' 0 bound -c a100-v100-t4 -m llama-3-8b
says 'bound: why' out 'lower bound of all plans .*: .*devices'
expect 'bound: two regions' 0 bound -c two-regions -m gpt3-1.3b -j small
says 'bound: what a slow network adds is of most plans' out '^lower bound of most plans .* because of the link between east and west'
expect 'bound: even plans' 0 bound -c thousand -m llama-2-13b -j small
says 'bound: even plans' out '^lower bound of plans with equal pipelines .* because no backward pass starts before'
expect 'bound: JSON' 0 bound -c a100-v100-t4 -m llama-3-8b -j small --json
holds 'bound: JSON' is_json out
for cluster in "$root"/samples/clusters/*.json; do
    expect "check $(basename "$cluster")" 0 check "$cluster"
done
for what in models jobs plans; do
    for file in "$root/samples/$what"/*.json; do
        expect "check $(basename "$file")" 0 check "$file"
    done
done
for file in "$root"/samples/rivals/*/*.json; do
    expect "check ${file#"$root"/samples/}" 0 check "$file"
done
for folder in "$root"/samples/workspaces/*; do
    expect "check $(basename "$folder")" 0 check "$folder"
done
for file in "$root"/share/models/*.json; do
    expect "check $(basename "$file")" 0 check "$file"
done
expect 'check instances' 0 check chain.json distribute.json
says 'check: says what it is' out 'chain\.json: instance, ok'

# ---- gantt ------------------------------------------------------------------------------------
# shellcheck disable=SC2317 # called through holds
is_text_of() { # is_text_of WIDTH FILE: no line is longer, no escape sequence
    awk -v w="$1" 'length($0) > w { bad = 1 } END { exit bad }' "$2" &&
        ! grep -q "$(printf '\033')" "$2"
}
expect 'gantt' 0 gantt uniform
holds 'gantt: no escapes into a file' is_text_of 4000 out
for width in 30 40 80 200; do
    expect "gantt --ascii --width $width" 0 gantt uniform --ascii --width $width
    # the first two lines are a title
    tail -n +3 out >body.out
    holds "gantt: fits $width columns" is_text_of $width body.out
    holds "gantt: ASCII only" sh -c '! LC_ALL=C grep -q "[^ -~]" body.out'
done
expect 'gantt: SVG' 0 gantt uniform --svg g.svg
holds 'gantt: SVG begins' grep -q '^<svg ' g.svg
holds 'gantt: SVG ends' grep -q '</svg>' g.svg
holds 'gantt: SVG has bars' [ "$(grep -c '<rect' g.svg)" -gt 20 ]
if have_program python3 'gantt: SVG is XML'; then
    holds 'gantt: SVG is XML' python3 -c 'import xml.dom.minidom; xml.dom.minidom.parse("g.svg")'
fi
holds 'gantt: files print nothing' [ ! -s out ]
expect 'gantt: PNG' 0 gantt uniform --png g.png
holds 'gantt: PNG begins' [ "$(head -c 4 g.png | tail -c 3)" = PNG ]
expect 'gantt: trace' 0 gantt uniform --trace g.json
holds 'gantt: trace is JSON' is_json g.json
holds 'gantt: trace has events' [ "$(grep -o '"ph"' g.json | wc -l)" -gt 10 ]
expect 'gantt: all files at once' 0 gantt uniform --svg a.svg --png a.png --trace a.json
same 'gantt: SVG, same bytes twice' a.svg g.svg
same 'gantt: PNG, same bytes twice' a.png g.png
same 'gantt: trace, same bytes twice' a.json g.json
expect 'gantt: SVG to standard output' 0 gantt uniform --svg -
same 'gantt: SVG to standard output' out g.svg
sed 's/"micro_batches": 128/"micro_batches": 127/' good.json >changed.json
run gantt changed.json
holds 'gantt: a plan with violations is drawn, or not with a reason' [ "$rc" -le 1 ]

# ---- full disks, closed pipes, files that must survive -------------------------------------------
if [ -e /dev/full ]; then
    for args in 'eval uniform' 'gantt uniform --ascii' 'help' '--version' 'help man' \
        'schedule 1f1b -p 4 -m 8 --json' 'solve chain.json' 'check chain.json'; do
        # shellcheck disable=SC2086 # a list of words
        timeout "$HANG" "$HETVIZ" $args >/dev/full 2>err
        rc=$?
        holds "full disk: $args: exit 3" [ $rc -eq 3 ]
        says "full disk: $args" err 'No space left'
    done
    for option in svg png trace; do
        expect "full disk: gantt --$option" 3 gantt uniform --$option /dev/full
        says "full disk: gantt --$option" err '/dev/full.*No space left'
    done
fi
for args in 'eval uniform' 'help' '--version'; do
    # shellcheck disable=SC2086 # a list of words
    timeout "$HANG" "$HETVIZ" $args >&- 2>err
    rc=$?
    holds "closed output: $args: exit 3" [ $rc -eq 3 ]
    says "closed output: $args" err 'cannot write'
done
{ timeout "$HANG" "$HETVIZ" schedule gpipe -p 64 -m 4000 --json; echo $? >rc.out; } 2>err | head -n 1 >out
rc=$(cat rc.out)
holds "a pipe that closes: exit $rc" [ "$rc" -eq 3 -o "$rc" -eq 141 ]
expect 'a folder that is not there' 3 gantt uniform --svg nowhere/g.svg
says 'a folder that is not there' err 'nowhere/g\.svg'
mkdir -p taken
expect 'a folder instead of a file' 3 gantt uniform --svg taken
echo keep >kept.svg
if [ "$(id -u)" -ne 0 ]; then
    chmod 444 kept.svg
    expect 'a protected file' 3 gantt uniform --svg kept.svg
    holds 'a protected file is kept' grep -q keep kept.svg
fi
(
    ulimit -f 1 2>/dev/null
    trap '' XFSZ
    timeout "$HANG" "$HETVIZ" gantt uniform --svg g.svg >out 2>err
    echo $? >rc.out
)
holds 'a file that may not grow: exit 3' [ "$(cat rc.out)" -eq 3 ]
same 'a file that may not grow: the old one is kept' g.svg a.svg
holds 'no temporary files are left' [ -z "$(find . -name '.*.??????')" ]

# ---- plugins ------------------------------------------------------------------------------------
expect 'strategies' 0 strategies
holds 'strategies: manual is there' grep -q '^manual ' out
holds 'strategies: none is broken' sh -c '! grep -q " broken " out'
holds 'strategies: by kind' sh -c "awk '{ print \$2 }' out | uniq | sort | uniq -d | grep -c . | grep -qx 0"
expect 'strategies --kind' 0 strategies --kind pipeline
holds 'strategies --kind: only that one' sh -c '! grep -v pipeline out'
expect 'strategies --kind: an unknown one' 2 strategies --kind piplines
holds 'strategies --kind: what there is' grep -q pipeline err
expect 'new-plugin: a family' 0 new-plugin kin --family
expect 'new-plugin: the family checks' 0 check kin
expect 'new-plugin: its tests pass' 0 selftest ./kin
holds 'new-plugin: those of both rows' grep -q '^4 passed, 0 failed' out
expect 'new-plugin: a family is a folder' 2 new-plugin kin2.lua --family
expect 'compare: a kind' 0 compare -c homogeneous -m gpt3-1.3b -s data,zero1,uniform
holds 'compare: each row once' [ "$(grep -c ' zero1 ' out)" -eq 1 ]
holds 'compare: all rows of the kind' [ "$(grep -c ' data  ' out)" -eq 8 ]
holds 'compare: kind and trust' grep -q 'kind  *trust$' out
expect 'compare: rows as JSON' 0 compare -c homogeneous -m gpt3-1.3b -s zero1,zero2 --json
holds 'compare: rows as JSON have kind and trust' grep -q '"trust": "whole"' out
expect 'compare: a queue' 0 compare -c two-generations -m gpt3-1.3b -j queue -s data,crius
holds 'compare: one line for what does not apply' \
    grep -q '^kind data, 8 do not apply: ddp, .* zero3 (plans one job; .*)$' out
expect 'strategies --json' 0 strategies --json
holds 'strategies --json: citations and knobs' grep -q '"citation": "Li et al\|"zero.stage": 2' out
holds 'strategies --json' is_json out
expect 'strategies manual' 0 strategies manual
says 'strategies manual: options' out '-o tp='
expect 'new-plugin: a file' 0 new-plugin mine.lua
holds 'new-plugin: the file is there' [ -s mine.lua ]
expect 'new-plugin: the file checks' 0 check mine.lua
expect 'new-plugin: does not overwrite a file' 2 new-plugin mine.lua
expect 'new-plugin: a folder' 0 new-plugin mine
holds 'new-plugin: the folder is there' [ -s mine/plugin.lua ]
expect 'new-plugin: the folder checks' 0 check mine
expect 'new-plugin: its tests pass' 0 selftest ./mine
says 'new-plugin: two of them' out '^2 passed, 0 failed'
expect 'new-plugin: does not overwrite a folder' 2 new-plugin mine
expect 'new-plugin: --out with .lua is a file' 0 new-plugin mine --out other.lua
holds 'new-plugin: that file is there' [ -s other.lua ]
expect 'new-plugin: a bad name' 2 new-plugin 'no such name!'
finish
