#!/bin/sh
# Exports: what real programs accepted is written again byte by byte (tests/ecosystem); what a target
# cannot say is refused by stage and property; scripts are sound, and names stay data.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

# recorded exports: the plan, and the files that the real program read
for plan in "$root"/tests/ecosystem/recorded/*/*/plan.json; do
    from=${plan%/plan.json} target=${plan%/*/plan.json}
    target=${target##*/}
    name=$target/${from##*/}
    expect "$name exports" 0 export "$plan" --to "$target" --out "got/$name" -q
    for file in "$from"/*; do
        file=${file##*/}
        [ "$file" = plan.json ] || holds "$name: $file is as recorded" cmp -s "$from/$file" "got/$name/$file"
    done
done

# every sample plan and every target: an answer, 0 or 1, and sound scripts
expect 'help lists the targets' 0 help targets
expect 'completion lists them' 0 completion targets
targets=$(cat out)
holds 'there are twelve' [ "$(echo "$targets" | wc -w)" -eq 12 ]
for plan in "$root"/samples/plans/*.json; do
    sample=$(basename "$plan" .json)
    for t in $targets; do
        run export "$sample" --to "$t" --out "samples/$sample/$t"
        holds "$sample to $t: an answer" [ "$rc" -le 1 ]
        [ "$rc" -eq 0 ] || says "$sample to $t: a reason" err '(cannot say|cannot run)'
    done
done
for script in samples/*/*/launch.sh samples/*/*/job.sbatch; do
    holds "$script is a script" bash -n "$script"
    if command -v shellcheck >/dev/null; then
        holds "$script: shellcheck" shellcheck -s bash "$script"
    else
        skip "$script: shellcheck" 'not installed'
    fi
done

# the launcher starts each rank once, where ranks.csv has it
expect 'a plan for the launcher' 0 export uniform --to megatron --out run -q
# shellcheck disable=SC2013 # host names have no blanks
for host in $(awk -F, 'NR > 1 { print $2 }' run/ranks.csv | sort -u); do
    # shellcheck disable=SC2016 # expanded by the script that runs it
    HETVIZ_HOST=$host bash run/launch.sh sh -c 'echo "$RANK,'"$host"',$(echo "$CUDA_VISIBLE_DEVICES" | cut -d, -f$((LOCAL_RANK + 1)))"'
done | sort >started
tail -n +2 run/ranks.csv | cut -d, -f1-3 | sort >planned
holds 'the launcher starts the plan' cmp -s started planned
holds 'it knows no other host' [ "$(HETVIZ_HOST=nobody bash run/launch.sh true 2>/dev/null && echo started)" = '' ]

# refusals: one plan per property, the stage and the property in the message
world='"cluster": "two-generations", "model": "llama-3-8b", "job": { "global_batch": 64, "sequence": 2048, "precision": "bf16" }, "micro_batch": 2'
plan_with() { # plan_with STAGE0 STAGE1 [SCHEDULE]
    printf '{ "format": "hetviz.plan/1", %s, "replicas": [ { "micro_batches": 32, "stages": [ { "devices": "h[0].*", %s }, { "devices": "a[0].*", %s } ] } ], "schedule": { "name": "%s" } }\n' \
        "$world" "$1" "$2" "${3:-1f1b}" >plan.json
}
refused() { # refused NAME TARGET TEXT
    expect "$2 refuses $1" 1 export plan.json --to "$2"
    says "$2: $1 is named" err "$3"
}
plan_with '"layers": [0, 16], "tp": 4, "dp": 2' '"layers": [16, 32], "tp": 4, "dp": 2'
expect 'a plan that fits' 0 export plan.json --to megatron -q
says 'its degrees' out '^--tensor-model-parallel-size 4$'
says 'its layout' out '^--pipeline-model-parallel-layout Et\*16\|t\*16L$'
says 'sequences of a rank' out '^--micro-batch-size 1$'
plan_with '"layers": [0, 16], "tp": 4, "dp": 2' '"layers": [16, 32], "tp": 8'
refused 'another tp' megatron 'stage 1: tp 8 beside tp 4 of stage 0'
refused 'another dp' torchtitan 'stage 1: dp 1 beside dp 2 of stage 0'
expect 'FlagScale states degrees per mesh' 0 export plan.json --to flagscale -q
says 'its meshes' out 'hetero_process_meshes: \[4, 1, 1, 2, 1, 8, 1, 1, 1, 1\]'
plan_with '"layers": [0, 15.5], "tp": 4, "dp": 2' '"layers": [15.5, 32], "tp": 4, "dp": 2'
for t in megatron megatron-bridge flagscale torchtitan deepspeed; do
    refused 'a cut inside a layer' $t 'stage [01]: a cut inside a layer'
done
plan_with '"layers": [0, 14], "tp": 4, "dp": 2' '"layers": [14, 32], "tp": 4, "dp": 2'
refused 'unequal layers' deepspeed 'stage 1: 18 layers beside 14 of stage 0'
expect 'Megatron-LM says them' 0 export plan.json --to megatron -q
plan_with '"layers": [0, 16], "tp": 4, "dp": 2' '"layers": [16, 32], "tp": 4, "dp": 2' zb-h1
for t in megatron megatron-bridge flagscale deepspeed; do
    refused 'a schedule' $t 'schedule zb-h1'
done
expect 'torchtitan takes it as CSV' 0 export plan.json --to torchtitan -q
says 'its order' out '^0F0,0F1,0I0,0W0'
plan_with '"layers": [0, 16], "tp": 4, "dp": 2, "recompute": "full"' '"layers": [16, 32], "tp": 4, "dp": 2'
refused 'recompute of one stage' megatron 'stage 1: recomputation that differs between stages'
expect 'FlagScale says it per stage' 0 export plan.json --to flagscale -q
plan_with '"layers": [0, 16], "tp": 4, "dp": 2, "zero": 2' '"layers": [16, 32], "tp": 4, "dp": 2, "zero": 2'
for t in megatron deepspeed torchtitan; do
    refused 'ZeRO 2 beside stages' $t 'stage 0: ZeRO 2 beside pipeline stages'
done
plan_with '"layers": [0, 16], "tp": 4, "dp": 2, "offload": [ { "what": "activations" } ]' '"layers": [16, 32], "tp": 4, "dp": 2'
for t in megatron torchtitan deepspeed flagscale; do
    refused 'offloaded activations' $t 'stage 0: activations in the host'
done
plan_with '"layers": [0, 16], "tp": 4, "dp": 2' '"layers": [16, 32], "tp": 4, "dp": 2'
refused 'stages' accelerate 'stage 1: pipeline stages'
expect 'a target that does not exist' 2 export plan.json --to fancy

# the nearest plan: written with its price, and the target can say it
plan_with '"layers": [0, 15.5], "tp": 4, "dp": 2' '"layers": [15.5, 32], "tp": 8'
expect 'the nearest plan' 0 export plan.json --to megatron --nearest --out near --budget 300
says 'its price' err 'the nearest plan that it can say takes .* instead of .*%'
expect 'it can be said' 0 export near/plan.json --to megatron -q
# shellcheck disable=SC2086 # several words
{
    expect 'a search within a target' 0 plan -c two-generations -m llama-3-8b -s auto -o target=deepspeed --budget 300 --out ds.json
    expect 'its plan is said' 0 export ds.json --to deepspeed -q
    expect 'no such target' 2 plan -c two-generations -m llama-3-8b -s auto -o target=fancy
    says 'the error lists where they are' err 'help targets.*fancy'
}
expect 'eval names what the target cannot say' 1 eval plan.json -j "$root/tests/ecosystem/megatron-job.json"
says 'as a violation' out 'Megatron-LM cannot say tp 8 beside tp 4'

# hostile names: data, never words of a script
mkdir evil
cat >evil/plan.json <<'JSON'
{ "format": "hetviz.plan/1", "name": "x\n$(touch evil/ran); `touch evil/ran` \"'--help</script><b>",
  "cluster": { "format": "hetviz.cluster/1", "name": "=1+1\ntouch evil/ran",
    "nodes": [ { "name": "n$(touch${IFS}evil/ran)", "count": 1, "device": "H100-SXM-80GB", "devices": 8 } ] },
  "model": "llama-3-8b", "job": { "global_batch": 8, "sequence": 2048, "precision": "bf16" }, "micro_batch": 1,
  "replicas": [ { "micro_batches": 8, "stages": [ { "devices": "*", "layers": [0, 32], "tp": 8, "sequence_parallel": true, "recompute": "full" } ] } ],
  "schedule": { "name": "1f1b" } }
JSON
for t in $targets; do
    run export evil/plan.json --to "$t" --out "evil/$t"
    holds "hostile names to $t: an answer" [ "$rc" -le 1 ]
done
for script in evil/*/launch.sh; do
    HETVIZ_HOST=$(sed -n 2p evil/hostfile/ranks.csv | cut -d, -f2) bash "$script" true >/dev/null 2>&1
    holds "$script runs no name" [ ! -e evil/ran ]
done
holds 'a page holds no markup from names' [ "$(grep -c '<b>' evil/report/report.html)" -eq 0 ]
sed 's/"count": 1,/"count": 1, "x-nodes": "a;touch evil\/ran",/' evil/plan.json >evil/hosts.json
expect 'a host name with a command' 3 export evil/hosts.json --to hostfile
says 'is refused by name' err 'x-nodes: expected host names'
expect '- is standard output' 0 export uniform --to csv --out -
says '- is standard output' out 'stages.csv'
holds 'no folder of that name' test ! -e -
finish
