#!/bin/sh
# From a strategy to a plan and back: plan, eval, gantt and compare agree; same input, same bytes;
# a strategy that cannot says why. Runs every strategy there is, of a family one, on every sample
# workspace; `compare` runs all of them on two clusters.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

run strategies
strategies=$(awk '{ print $1 }' out)
holds 'strategies: there are some' [ "$(echo "$strategies" | wc -w)" -ge 5 ]

# ---- every strategy, every sample workspace ------------------------------------------------------
word() { sed -n "s/.*\"$2\": *\"\\([^\"]*\\)\".*/\\1/p" "$1" | head -n 1; }
tried=$(strategies_once)
for folder in "$root"/samples/workspaces/*; do
    sample=$(basename "$folder")
    file=$folder/workspace.json
    cluster=$(word "$file" cluster) model=$(word "$file" model) job=$(word "$file" job)
    # shellcheck disable=SC2013,SC2016 # words without blanks; the inner shell expands
    for s in $(sed -n '/"strategies": \[/,/\]/s/^ *"\([a-z][a-z0-9-]*\)",*$/\1/p' "$file"); do
        holds "$sample names $s, which exists" sh -c 'echo "$1" | grep -qx "$2"' - "$strategies" "$s"
    done
    for s in $tried; do
        p=$sample-$s.json
        run plan -c "$cluster" -m "$model" -j "$job" -s "$s" --budget 150 --out "$p"
        if [ "$rc" -eq 0 ]; then
            ok
            judged "$sample $s" "$p"
        elif [ "$rc" -eq 1 ] && [ -e "$p" ]; then
            # a plan that keeps every rule and misses what the objective allows: by how much
            says "$sample $s: what it misses" err 'the objective allows .* too (much|long)$'
            expect "$sample $s: eval says so" 1 eval "$p" --json
            holds "$sample $s: nothing else" [ "$(grep -c '"code":' out)" -eq "$(grep -cE '"code": "(price|deadline)"' out)" ]
        elif [ "$rc" -eq 1 ]; then
            # no plan: a reason in words, and no file
            says "$sample $s: a reason" err '^hetviz: .{20,}'
            holds "$sample $s: no file without a plan" [ ! -e "$p" ]
            holds "$sample $s: silence on standard output" [ ! -s out ]
        else
            no "$sample $s" "exit $rc"
        fi
    done
done

inputs='-c two-generations -m llama-3-8b -j small'

# ---- the table of stages: what is equal is said once ----------------------------------------------
expect 'eval: a plan with equal stages' 0 eval "$root/samples/plans/zero-bubble.json"
says 'eval: equal stages share a line' out '^ +0/1-2 +16 A100-SXM-80GB +20 tp8 dp2 '
expect 'eval: a plan with three kinds' 0 eval "$root/samples/plans/three-generations.json"
for row in '0/0 +8 A100-SXM-80GB +16 tp4 dp2' '0/1 +16 V100-SXM2-32GB +14 tp4 dp4' '0/2 +8 T4-16GB +2 tp4 dp2'; do
    says "eval: stage $row" out "^ +$row "
done
expect 'eval: unequal replicas' 0 eval "$root/samples/plans/two-replicas.json"
says 'eval: a line each' out '^ +1/0 +8 H100-SXM-80GB '

# ---- shards by speed -------------------------------------------------------------------------------
expect 'whale splits layers over unequal devices' 0 plan -c desktop -m gpt3-1.3b -j small -s whale -o mode=split --out split.json
judged 'whale split' split.json
expect 'eval: unequal shards' 0 eval split.json
says 'eval: unequal shards are named' out ' 6 of 2 kinds +24 tp3 dp2 .* shards [0-9]+:[0-9]+:[0-9]+$'
expect 'a strategy that changes plans takes such a plan' 0 plan -c desktop -m gpt3-1.3b -j small -s whale+fireflyer -o mode=split

# ---- samples of unequal length ----------------------------------------------------------------------
for way in given dealt best; do
    expect "disttrain: samples $way" 0 plan -c two-generations -m two-towers -j finetune -s disttrain -o lengths=true -o reorder=$way --out $way.json
    expect "disttrain: samples $way: eval" 0 eval $way.json
    # 32 of 512 tokens, 22 of 2048, 10 of 4096: all of them, in every way
    tokens=$(sed -n 's/.*"sequences": [0-9]*, "tokens": \([0-9]*\).*/\1/p' $way.json | awk '{ sum += $1 } END { print sum }')
    holds "disttrain: $way has all tokens" [ "$tokens" -eq 102400 ]
    figures $way.json >$way.figures
done
# of one layout, dealing by size gives the busiest replica no more tokens than dealing in turns
busiest() { # busiest PLAN: tokens of the replica with most of them
    awk '/"micro_batches"/ { sum = 0 }
        match($0, /"tokens": [0-9]+/) { sum += substr($0, RSTART + 10, RLENGTH - 10) + 0 }
        sum > most { most = sum }
        END { print most + 0 }' "$1"
}
for way in given dealt; do
    run plan -c two-generations -m two-towers -j finetune -s disttrain -o lengths=true -o tries=1 -o reorder=$way --out first-$way.json
    # another layout would have another claim, which knows no lengths
    number first-$way.json iteration_s >first-$way.claim
done
same 'disttrain: the first layout of both ways' first-given.claim first-dealt.claim
holds 'disttrain: the busiest replica has tokens' [ "$(busiest first-given.json)" -gt 25600 ]
holds 'disttrain: dealt by size loads the busiest replica no more' least "$(busiest first-dealt.json)" "$(busiest first-given.json)"
for way in given dealt; do
    holds "disttrain: the best way is no slower than $way" \
        least "$(number best.figures iteration_s)" "$(number $way.figures iteration_s)"
done

# ---- compare ------------------------------------------------------------------------------------
once=$(strategies_once | paste -sd, -)
for cluster in a100-v100-t4 two-generations; do
    expect "compare on $cluster" 0 compare -c $cluster -m llama-3-8b -j small -s all --budget 300
    for s in $strategies; do
        says "compare on $cluster: a row for $s, or why it does not apply" out "^ *[0-9-]+ +$s |^kind .* (not apply|find no plan): .*\\b$s(,| \\()"
    done
    says "compare on $cluster: none is better than auto" out '^ *1 +auto '
    says "compare on $cluster: why" out '^auto ranks first: .* less\)\.'
    expect "compare on $cluster: JSON" 0 compare -c $cluster -m llama-3-8b -j small -s "$once" --budget 300 --json
    holds "compare on $cluster: JSON" is_json out
    cp out first.out
    run compare -c $cluster -m llama-3-8b -j small -s "$once" --budget 300 --json --jobs 1
    same "compare on $cluster: same bytes with one worker" out first.out
    if have_program python3 "compare on $cluster: rows"; then
        python3 - first.out >rows.out 2>err <<'EOF'
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
good = [r for r in rows if r.get("simulated")]
order = [(not r["simulated"]["exact"], r["simulated"]["iteration_s"]) for r in good]
print("ranked", order == sorted(order))
print("plans", len(good) > 0 and all(r["plan"]["replicas"] for r in good))
print("bounds", all(r["simulated"]["bound_s"] <= r["simulated"]["iteration_s"] * (1 + 1e-9) for r in good))
print("reasons", all(r.get("reason") for r in rows if not r.get("simulated")))
batch = 128
print("batch", all(sum(e.get("count", 1) * (e["micro_batches"] * e.get("micro_batch", r["plan"]["micro_batch"])
      if isinstance(e["micro_batches"], int) else sum(m["sequences"] for m in e["micro_batches"]))
      for e in r["plan"]["replicas"]) == batch for r in good if r["simulated"]["exact"]))
EOF
        for what in ranked plans bounds reasons batch; do
            says "compare on $cluster: $what" rows.out "^$what True"
        done
    fi
done
expect 'compare: two of them' 0 compare -c two-generations -m llama-3-8b -j small -s uniform,manual
holds 'compare: two rows' [ "$(grep -c -E '^ *[0-9-]+ +(uniform|manual) ' out)" -eq 2 ]
expect 'compare: unknown strategy' 2 compare -c two-generations -m llama-3-8b -s uniform,unifrom
says 'compare: suggestion' err "did you mean 'uniform'"
expect 'compare: nothing fits' 1 compare -c desktop -m gpt3-175b -j small
says 'compare: says what is missing' out 'GiB'

# ---- the answer is no, and wrong usage ------------------------------------------------------------
expect 'plan: does not fit' 1 plan -c desktop -m gpt3-175b -j small -s uniform --out none.json
says 'plan: does not fit by so much' err '[0-9.]+ GiB too much'
holds 'plan: does not fit, no file' [ ! -e none.json ]
expect 'plan: unknown strategy' 2 plan -c desktop -m llama-3-8b -s nosuch
expect 'plan: unknown strategy, nearly' 2 plan -c desktop -m llama-3-8b -s unifrom
says 'plan: suggestion' err "did you mean 'uniform'"
expect 'plan: unknown option' 2 plan -c two-generations -m llama-3-8b -s uniform -o nokey=1
expect 'plan: an option that is no number' 2 plan -c two-generations -m llama-3-8b -s manual -o tp=many
expect 'plan: bad cluster' 3 plan -c nowhere.json -m llama-3-8b -s uniform
expect 'plan: bad output' 3 plan -c two-generations -m llama-3-8b -s uniform --out nowhere/p.json
if [ -e /dev/full ]; then
    expect 'plan: full disk' 3 plan -c two-generations -m llama-3-8b -s uniform --out /dev/full
fi
expect 'plan: options are kept' 0 plan -c homogeneous -m llama-3-8b -j small -s manual \
    -o tp=4 -o pp=2 -o dp=8 --json
says 'plan: tp as asked' out '"tp": 4'
expect 'plan: micro-batches as annotated' 0 plan -c homogeneous -m llama-3-8b -s whale \
    -o micro_batches=16 --json
says 'plan: micro-batches as annotated' out '"micro_batches": 16'
expect 'plan: crius, a queue by completion times' 0 plan -c two-generations -m gpt3-1.3b -j queue \
    -s crius -o objective=jct
says 'plan: crius, a queue by completion times' out '^mean completion '
for search in reinforce enumerate greedy genetic single; do
    expect "plan: heterps, $search" 0 plan -c two-generations -m llama-3-8b -j small -s heterps \
        -o search=$search
done

# ---- limits of time and effort -------------------------------------------------------------------
expect 'plan: a long limit changes nothing' 0 plan -c two-generations -m llama-3-8b -j small \
    -s uniform --time-limit 1h --out limited.json
# shellcheck disable=SC2086 # a list of words
run plan $inputs -s uniform --out one.json
same 'plan: a long limit changes nothing' limited.json one.json
run plan -c thousand -m gpt3-175b -s oobleck --time-limit 50ms --json
case $rc in
0 | 4) ok ;;
*) no 'plan: a short limit' "exit $rc" ;;
esac
# shellcheck disable=SC2086
run plan $inputs -s uniform --budget 3 --json
cp out first.out
# shellcheck disable=SC2086
run plan $inputs -s uniform --budget 3 --json
same 'plan: same bytes with a budget' out first.out
# shellcheck disable=SC2086
run plan $inputs -s auto --budget 30 --json
cp out first.out
# shellcheck disable=SC2086
run plan $inputs -s auto --budget 30 --json
same 'plan: auto, same bytes with a budget' out first.out
run plan -c thousand -m gpt3-175b -s auto --time-limit 200ms --out soon.json
case $rc in
0 | 4) ok ;;
*) no 'plan: auto within a short limit' "exit $rc" ;;
esac
expect 'plan: auto within a price' 0 plan -c two-generations -m llama-3-8b -j cheap -s auto --out priced.json
holds 'plan: auto within a price' least "$(number priced.json usd_per_hour)" 80
finish
