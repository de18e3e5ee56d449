#!/bin/sh
# Odd but valid clusters, models and jobs, each reduced from a fault that random ones found: every
# strategy answers with a plan that eval accepts or with a reason, never with an error of its own.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

run strategies
strategies=$(awk '{ print $1 }' out)

# answers NAME INPUT…: all strategies on these inputs
answers() {
    _case=$1
    shift
    for s in $strategies; do
        run plan "$@" -s "$s" --out p.json
        if [ "$rc" -eq 0 ]; then
            judged "$_case: $s" p.json
        else
            holds "$_case: $s says no" [ "$rc" -eq 1 ]
            says "$_case: $s says why" err "^hetviz: (does not apply: )?${s}[ :]"
        fi
    done
}
cluster() { echo "{ \"format\": \"hetviz.cluster/1\", \"nodes\": [ $1 ] }" >"$2"; }

# ---- layers without parameters, also in the middle of the model ----------------------------------
layer() { # NAME MS PARAMETERS
    echo "{ \"name\": \"$1\", \"forward_ms\": { \"A100-SXM-80GB\": $2 }, \"backward_ms\": { \"A100-SXM-80GB\": $2 },
      \"parameter_bytes\": $3, \"activation_bytes\": 1e8, \"output_bytes\": 1e6 }"
}
model() { # LAYERS FILE
    echo "{ \"format\": \"hetviz.model/1\", \"kind\": \"layers\", \"layers\": [ $1 ] }" >"$2"
}
cluster '{ "name": "a", "count": 2, "device": "A100-SXM-80GB", "devices": 4 }' a.json
model "$(layer a 3 8e8), $(layer b 1 8e8), $(layer pool 2 0), $(layer c 4 8e8), $(layer d 1 8e8)" pool.json
answers 'a layer without parameters' -c a.json -m pool.json -j small

# ---- layers that take no time, at the start where an encoder would be ----------------------------
model "$(layer a 0 1e6), $(layer b 0 0), $(layer c 2 8e8), $(layer d 2 8e8), $(layer e 2 0)" start.json
answers 'first layers that take no time' -c a.json -m start.json -j small

# ---- no work at all ------------------------------------------------------------------------------
model "$(layer a 0 1e8), $(layer b 0 0)" idle.json
answers 'a model without work' -c a.json -m idle.json -j small
run plan -c a.json -m idle.json -j small -s uniform
says 'a model without work: the reason' err 'no layer of the model takes any time'
expect 'a model without work: no bound' 1 bound -c a.json -m idle.json --json
says 'a model without work: no bound' out '"bound_s": null'

# ---- a kind whose times nobody measured, and a backward that is missing --------------------------
cluster '{ "name": "v", "device": "V100-SXM2-32GB", "devices": 4 }' v.json
answers 'nothing was measured' -c v.json -m pool.json -j small
run plan -c v.json -m pool.json -j small -s uniform
says 'nothing was measured: the reason' err 'layer 0 was measured neither on V100-SXM2-32GB'

# ---- more devices in a node than heads and layers divide -----------------------------------------
cluster '{ "name": "a", "count": 3, "device": "A10-24GB", "devices": [ { "count": 2 }, { "device": "L40-48GB", "count": 4 } ] },
  { "name": "b", "device": "H800-SXM-80GB", "devices": 16 }, { "name": "c", "device": "A10-24GB", "devices": 7 }' uneven.json
echo '{ "format": "hetviz.job/1", "global_batch": 13, "sequence": 128 }' >thirteen.json
answers 'nodes that no degree divides' -c uneven.json -m gpt3-125m -j thirteen.json

# ---- a batch of one sequence ---------------------------------------------------------------------
echo '{ "format": "hetviz.job/1", "global_batch": 1, "sequence": 512, "precision": "fp16" }' >one.json
answers 'one sequence' -c a.json -m gpt3-125m -j one.json

# ---- spare nodes are kept back -------------------------------------------------------------------
cluster '{ "name": "a", "device": "A100-SXM-80GB", "devices": 4 },
  { "name": "s", "device": "H100-SXM-80GB", "devices": 4, "state": "spare" }' spare.json
for s in $strategies; do
    run plan -c spare.json -m gpt3-125m -j small -s "$s" --json
    holds "spare: $s leaves them alone" [ "$(grep -c '"devices": .*"s\[' out)" -eq 0 ]
done
run plan -c spare.json -m gpt3-125m -j small -s uniform --out p.json
sed 's/"a\[0\]\./"s[0]./' p.json >on_spare.json
expect 'spare: a plan by hand on them' 0 eval on_spare.json --json
figures out >found.out
holds 'spare: the bound counts them' least "$(number found.out bound_s)" "$(number found.out iteration_s)"

# ---- what the program is asked for that cannot be ------------------------------------------------
cluster '{ "name": "t", "count": 2, "device": "T4-16GB", "devices": 4 }' t.json
expect 'no device computes in bf16' 1 bound -c t.json -m gpt3-125m -j pretrain
says 'no device computes in bf16' err 'no device of the cluster can run this job in bf16'
expect 'replan of a plan for another cluster' 3 plan -c t.json -m gpt3-125m -s oobleck --replan p.json
says 'replan of a plan for another cluster' err 'p.json:[0-9]*:[0-9]*: .*no node group "a"'
expect 'an option of no strategy' 2 compare -c a.json -m gpt3-125m -s uniform,manual -o tp=1 -o zz.k=1
says 'an option of no strategy' err 'none of the strategies has "zz.k=1"'

# ---- batches beyond what a plan can hold: a reason or a plan, no error of a plugin -----------------
for batch in 500000000 1000000000; do
    echo "{ \"format\": \"hetviz.job/1\", \"global_batch\": $batch, \"sequence\": 512, \"precision\": \"fp16\" }" >batch.json
    run compare -c a.json -m gpt3-125m -j batch.json -s galvatron,whale,manual,flashflex,crius,oobleck,disttrain,uniform --budget 20
    holds "a batch of $batch: no strategy fails" test "$(grep -c '\.lua:' out)" -eq 0
    run plan -c a.json -m gpt3-125m -j batch.json -s galvatron --budget 20
    holds "a batch of $batch: no traceback of galvatron" test "$(grep -c 'in function' err)" -eq 0
done

# ---- why the first is first ----------------------------------------------------------------------
cluster '{ "name": "a", "device": "A100-SXM-80GB", "devices": 4, "price_usd_per_hour": 16 }' priced.json
job() { echo "{ \"format\": \"hetviz.job/1\", \"global_batch\": 16, \"sequence\": 512, $1 }" >job.json; }
job '"objective": { "deadline_s": 0.001, "max_usd_per_hour": 1 }'
expect 'limits that none keeps' 0 compare -c priced.json -m gpt3-125m -j job.json -s uniform,crius
says 'limits that none keeps: by how much' out 'limits of the objective; (uniform|crius) is closest: iteration time .*, limit 1 ms, price 16.00 USD per hour, limit 1.00\.$'
job '"optimizer": "adamw"'
expect 'stale plans beside one' 0 compare -c priced.json -m gpt3-125m -j job.json -s uniform,hexgen
says 'stale plans beside one' out '^uniform ranks first: it is the only plan\.$'
cluster '{ "name": "t", "count": 2, "device": "TPU-v5e", "devices": 4 }' tpu.json
job '"objective": { "minimize": "energy" }'
expect 'power that is not known' 0 compare -c tpu.json -m gpt3-125m -j job.json -s uniform,dtfm
says 'power that is not known: by time' out '^uniform ranks first: .* ms, against .* of dtfm \(.* less\)\.'

finish
