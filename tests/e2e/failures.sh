#!/bin/sh
# What failing and preempted nodes leave of a plan: the judge's figures, the plans for what is left,
# and what users say about failures in the job.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

for s in oobleck uniform; do
    expect "$s on spot nodes" 0 plan -c spot-mix -m llama-3-8b -s "$s" --out "$s.json"
done
expect 'failures of a plan' 0 failures oobleck.json --lost 2
says 'what a failure costs: detection' out '^    detection  '
says 'what a failure costs: rollback' out '^    rollback  '
says 'what a failure costs: reinstantiation' out '^    reinstantiation  .*peers'
says 'a row without losses' out '^   0  none '
says 'a row with one node away' out '^   1  [a-z]+\[[0-9]\] .*repaired by its strategy$'
says 'a row with two' out '^   2  '
says 'and the rest' out '^more '
expect 'failures of a plan that starts again' 0 failures uniform.json --lost 1
says 'checkpoints' out '^  checkpoints .* every '
says 'a new plan' out 'new plan$'

# ---- auto does without what is gone, in its incumbents, too ----------------------------------------
expect 'auto without a node' 0 plan -c spot-mix -m llama-3-8b -s auto --lost 'a[1]' --budget 60 --json
says 'a node that is left' out '"devices": .*a\[0\]'
holds 'auto leaves out the lost node' test "$(grep -Ec '"devices": .*a(\[1\]|\[0-1\]|\[\*\]|\.)' out)" -eq 0

# ---- templates are instantiated again whatever the batch divides into ------------------------------
for c in homogeneous two-regions two-generations; do
    expect "oobleck on $c" 0 plan -c "$c" -m gpt3-1.3b -s oobleck --out again.json
    expect "and after two failures" 0 failures again.json --lost 2
    says "$c: one node away" out '^   1 .*repaired by its strategy$'
    says "$c: two nodes away" out '^   2 .*repaired by its strategy$'
done

# ---- one GPU of a node: the node is left out, or goes on with the rest -------------------------------
expect 'oobleck on equal nodes' 0 plan -c homogeneous -m gpt3-1.3b -s oobleck --out whole.json
for rule in leave use; do
    expect "one GPU lost: $rule" 0 plan -c homogeneous -m gpt3-1.3b -s oobleck -o damaged=$rule \
        --replan whole.json --lost 'a[0].0' --time-limit 20
    cp out $rule.out
done
says 'the node is left out' leave.out '^devices used *56$'
says 'the rest of it is used' use.out '^devices used *63$'

# ---- JSON: shares add up, more failures leave less ------------------------------------------------
expect 'failures --json' 0 failures uniform.json --lost 1 --json
cp out uniform.out
number() { sed -n "s/^ *\"$2\": *\\([-0-9.e+]*\\),*\$/\\1/p" "$1" | head -n 1; }
sum=$(awk '/"share": / { on = 1 } /}/ { on = 0 } on && / [0-9]/ { sub(",", ""); s += $2 } END { printf "%.9f", s }' uniform.out)
holds "shares of the time add up to 1, not $sum" [ "$sum" = 1.000000000 ]
sum=$(awk '/"time_share"/ { sub(",", ""); s += $2 } END { print (s <= 1 && s > 0.9) }' uniform.out)
holds 'shares of the rows are shares' [ "$sum" = 1 ]
expect 'eval says it too' 0 eval uniform.json --json
cp out eval.out
holds 'eval and failures agree' grep -q "\"tokens_per_s\": $(number uniform.out tokens_per_s)" eval.out
base=$(number eval.out failures_per_hour)
printf '{"format": "hetviz.job/1", "failures": {"per_device_hour": 0.01, "checkpoint_interval_s": 600}}' >often.json
expect 'a job that fails often' 0 eval uniform.json -j often.json --json
holds 'more failures an hour' awk "BEGIN { exit !($(number out failures_per_hour) > $base) }"
holds 'the interval asked for' [ "$(number out interval_s)" = 600 ]
printf '{"format": "hetviz.job/1", "failures": {"detect_s": -1}}' >bad.json
expect 'a time below zero' 3 eval uniform.json -j bad.json
says 'a time below zero: where' err 'bad.json:1:[0-9]+: failures.detect_s'
printf '{"format": "hetviz.job/1", "failures": {"detects": 1}}' >bad.json
expect 'an unknown member' 3 eval uniform.json -j bad.json
says 'an unknown member: the nearest' err 'detect_s'

# ---- rates and times of the command line ------------------------------------------------------------
expect 'more preemptions' 0 failures uniform.json --lost 0 --preempted all=5 --json
holds 'leave less' awk "BEGIN { exit !($(number out tokens_per_s) < $(number uniform.out tokens_per_s)) }"
expect 'an interval' 0 failures uniform.json --lost 0 --checkpoint 120 --json
holds 'is the one counted with' [ "$(number out interval_s)" = 120 ]
expect 'a long restart' 0 failures uniform.json --lost 0 --restart 5000 --json
holds 'costs' awk "BEGIN { exit !($(number out tokens_per_s) < $(number uniform.out tokens_per_s)) }"
expect 'a group that is not there' 2 failures uniform.json --lost 0 --preempted zz=1
expect 'a rate that is none' 2 failures uniform.json --lost 0 --preempted g=often

# ---- plans that nobody can mend, or that say nothing ----------------------------------------------
expect 'nobody speaks of failures' 0 plan -c two-generations -m llama-3-8b -s uniform --out quiet.json
expect 'eval of a quiet plan' 0 eval quiet.json --json
holds 'a quiet plan has no expectations' sh -c '! grep -q "\"failures\"" out'
expect 'asked, hardware fails too' 0 failures quiet.json --lost 0
says 'rates of hardware' out 'a failure every +[0-9.]+ d'
finish
