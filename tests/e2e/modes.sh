#!/bin/sh
# Plans that are not one training job on one model: modules, serving, many jobs; and stale ones,
# whose agreement shows.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

# has NAME TEXT: the last output holds the text
has() {
    if grep -qF -- "$2" out; then ok; else no "$1" "no \"$2\" in the output"; fi
}

# ---- modules -------------------------------------------------------------------------------------
expect "multimodal plan" 0 eval multimodal
expect "gantt of modules" 0 gantt multimodal --ascii --width 100
has "gantt of modules: encoder" "s0 vision"
has "gantt of modules: backbone" "s1 llm"
expect "modules: no rule broken, nothing approximated" 0 eval multimodal --json
holds "modules: JSON" is_json out
if grep -q '"approximated"' out; then no "modules" "something is approximated"; else ok; fi
expect "disttrain plans a model of modules" 0 plan -c two-generations \
    -m "$HETVIZ_ROOT/samples/models/two-towers.json" -j small -s disttrain --out modules.json
expect "its plan is valid" 0 eval modules.json
has "disttrain: sync" "iteration"

# ---- operator graphs -----------------------------------------------------------------------------
# on_graph KEYS: graph.json, a plan of the sample graph on one device; KEYS of its stage in line 3
on_graph() {
    printf '%s\n' '{"format":"hetviz.plan/1","cluster":"homogeneous","model":"mlp-graph",' \
        '"job":{"global_batch":8,"sequence":1},"replicas":[{"micro_batches":8,"stages":[{"devices":"a[0].0",' \
        "$1}]}]}" >graph.json
}
on_graph '"layers":[0,4]'
expect "a chain of operators" 0 eval graph.json --json
has "operators without bytes are told" '"model.ops.bytes: 4 operators'
on_graph '"layers":[0,4],"mesh":{"x":1},"shard":{"up":{"x":"fnn"}}'
expect "check: unknown dimension" 3 check graph.json
says "unknown dimension: place and nearest" err '^hetviz: graph.json:3:[0-9]+: .*shard.up.x: .*"fnn"; did you mean "ffn"'
expect "eval: unknown dimension" 3 eval graph.json
on_graph '"ops":["input","upp","act","down"]'
expect "check: unknown operator" 3 check graph.json
says "unknown operator: place and nearest" err '^hetviz: graph.json:3:[0-9]+: .*ops\[1\]: .*"upp"; did you mean "up"'
on_graph '"layers":[0,4],"place":{"u*":"a[0].0"}'
expect "check: names that exist" 0 check graph.json
for command in eval explain gantt; do
    expect "$command: placed operators" 1 "$command" graph.json
    says "$command: placed operators are refused by name" err 'not simulated yet: replicas\[0\].stages\[0\].place'
done

# ---- serving -------------------------------------------------------------------------------------
expect "serving plan" 0 eval serving
has "serving: flow" "max flow of the placement"
has "serving: first token" "first token"
expect "serving plan as JSON" 0 eval serving --json
has "serving: no iteration" '"iteration_s": null'
has "serving: requests wait" '"mean_wait_s"'
has "serving: which is estimated" '"estimated": true'
echo '{"format":"hetviz.job/1","sequence":4096,"precision":"fp16","output_tokens":200,"requests_per_s":2,
    "sequence_lengths":[{"tokens":512,"frac":0.5},{"tokens":4096,"frac":0.5}]}' >requests.json
expect "requests of two lengths" 0 eval serving -j requests.json
says "serving: what 99 of 100 see" out "first token .*median .*, 99th percentile "
sed 's/"requests_per_s":2/"requests_per_s":2000/' requests.json >flood.json
expect "more than it serves" 0 eval serving -j flood.json
has "serving: the queue grows" "unbounded"
expect "no gantt of a flow" 1 gantt serving
expect "helix serves" 0 plan -c a100-v100-t4 -m llama-3-8b -j small -s helix -o mode=serve --out s.json
expect "the flow it gives holds" 0 eval s.json
expect "hexgen does not train" 1 plan -c a100-v100-t4 -m llama-3-8b -j small -s hexgen
expect "hexgen serves" 0 plan -c a100-v100-t4 -m llama-3-8b -j small -s hexgen -o mode=serve --out h.json
expect "hexgen, the same bytes" 0 plan -c a100-v100-t4 -m llama-3-8b -j small -s hexgen -o mode=serve --out h2.json
if cmp -s h.json h2.json; then ok; else no "hexgen, the same bytes" "they differ"; fi
expect "its flow holds" 0 eval h.json
expect "hexgen by latency" 0 plan -c spot-mix -m llama-2-13b -j small -s hexgen -o mode=serve \
    -o latency=true --out l.json
expect "hexgen by throughput" 0 plan -c spot-mix -m llama-2-13b -j small -s hexgen -o mode=serve \
    --out t.json
holds "requests are soonest by latency" least "$(number l.json request_s)" "$(number t.json request_s)"
says "it claims that latency" l.json '"latency_s": '
expect "its stages are explained" 0 explain h.json
expect "compare lists it apart" 0 compare -c a100-v100-t4 -m llama-3-8b -j small -s crius,helix \
    -o mode=serve
has "compare says why" "a token rate and no iteration"
expect "compare ranks those that serve" 0 compare -c two-generations -m llama-3-8b -s hexgen,helix \
    -o mode=serve
says "the first of them is named" out "^(helix|hexgen) ranks first of the serving plans: .*% more\\). It has .* stages"
first=$(sed -n 's/^\([a-z]*\) ranks first of the.*/\1/p' out)
holds "and listed first" test "$(sed -n 's/^ ·  \([a-z]*\) .*/\1/p' out | head -n 1)" = "$first"
expect "an early mark holds fewer requests" 0 plan -c desktop -m llama-3-8b -s helix -o mode=serve \
    -o high_water=0.2 --json
says "the mark is in the plan" out '"cache_mark_frac": 0.2'
sed 's/"source", 0, [0-9.]*/"source", 0, 99999999/' s.json >over.json
expect "a flow above capacity" 1 eval over.json
has "it says where" "violation capacity"

# ---- many jobs -----------------------------------------------------------------------------------
expect "plan of two jobs" 0 eval two-jobs
has "jobs: each has a line" "finetune"
expect "gantt of two jobs" 0 gantt two-jobs --ascii --width 100
has "gantt of jobs: rows by job" "pretrain s0"
sed 's/"h\[0\]\.\*"/"a[0].*"/' "$HETVIZ_ROOT/samples/plans/two-jobs.json" >overlap.json
expect "jobs on the same devices" 1 eval overlap.json -c two-generations
has "jobs: overlap is found" "devices_overlap"
sed 's/"start_s": 300/"start_s": 3/' "$HETVIZ_ROOT/samples/plans/two-jobs.json" >early.json
expect "a start before the arrival" 3 eval early.json
if grep -q "early.json:[0-9]*:[0-9]*: jobs\[1\].start_s" err; then ok; else no "early" "no place"; fi

# ---- a queue of jobs -----------------------------------------------------------------------------
expect "crius schedules a queue" 0 plan -c two-generations -m gpt3-1.3b -j queue -s crius --out q.json
has "a job changes its cell and goes on" "pretrain, part 2"
expect "the judge finds no overlap" 0 eval q.json
has "with the model of each" "ablation"
expect "other strategies do not apply" 0 compare -c two-generations -m gpt3-1.3b -j queue -s crius,uniform
has "and say why" "holds a queue of 4"
echo '{"format":"hetviz.job/1","jobs":[{"name":"x","model":"gpt3-125m"},{"name":"x"}]}' >twice.json
expect "two jobs of one name" 3 plan -c two-generations -m gpt3-1.3b -j twice.json -s crius
echo '{"format":"hetviz.job/1","jobs":[{"name":"x","model":"gpt3-125m","devices":32},{"name":"y"}]}' >endless.json
expect "jobs without end, side by side" 0 plan -c two-generations -m gpt3-1.3b -j endless.json -s crius
echo '{"format":"hetviz.job/1","jobs":[{"name":"x","modle":"gpt3-125m"}]}' >typo.json
expect "an unknown key in a queue" 3 check typo.json

# ---- stale plans ---------------------------------------------------------------------------------
for s in hetpipe preduce; do
    expect "plan $s" 0 plan -c two-generations -m llama-3-8b -j small -s "$s" --out "$s.json"
    expect "eval $s" 0 eval "$s.json"
    has "eval $s: how its workers agree" "workers"
    [ "$s" = hetpipe ] && has "eval $s: what its formula does not count" "leaves out   pushes"
    expect "gantt $s" 0 gantt "$s.json" --ascii --width 100
    has "gantt $s: exchanges have lines" "sync"
done
expect "eval preduce as JSON" 0 eval preduce.json --json
has "preduce: spectral gap" '"spectral_gap"'
expect "preduce without joining components" 0 plan -c two-generations -m llama-3-8b -j small -s preduce \
    -o avoid_freezing=false --json
has "preduce: the option reaches the plan" '"connect": false'
finish
