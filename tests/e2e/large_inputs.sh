#!/bin/sh
# Inputs of the largest accepted sizes are answered, or refused with the limit in words: many node
# groups, stages, replica entries, unlike layers, devices. Commands that may take long end at
# --time-limit.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

# nodes COUNT: so many node groups of one node, with NICs of four rates
nodes() {
    awk -v n="$1" 'BEGIN {
        printf "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":["
        for (i = 0; i < n; i++) {
            printf "%s{\"name\":\"g%d\",\"device\":\"A100-SXM-80GB\",\"devices\":8,", i ? "," : "", i
            printf "\"nic\":{\"bandwidth_GBps\":%d}}", 25 * (i % 4 + 1)
        }
        printf "]}\n"
    }'
}
# group COUNT: one node group of so many nodes
group() {
    printf '{"format":"hetviz.cluster/1","name":"c","nodes":[{"name":"a","count":%d,"device":' "$1"
    printf '"A100-SXM-80GB","devices":8,"nic":{"bandwidth_GBps":100}}]}\n'
}
# job BATCH
job() {
    printf '{"format":"hetviz.job/1","global_batch":%d,"sequence":512,"precision":"fp16",' "$1"
    printf '"optimizer":"adam"}\n'
}
# layers COUNT: so many layers, each with another width
layers() {
    awk -v n="$1" 'BEGIN {
        printf "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"transformer\",\"layers\":%d,", n
        printf "\"hidden\":512,\"heads\":8,\"kv_heads\":8,\"ffn\":2048,\"ffn_kind\":\"gelu\","
        printf "\"vocab\":32000,\"max_sequence\":2048,\"layer_list\":["
        for (i = 0; i < n; i++) {
            printf "%s{\"ffn\":%d}", i ? "," : "", 1024 + i
        }
        printf "]}\n"
    }'
}
# plan STAGES ENTRIES: so many replica entries of so many stages of one layer and one device each
plan() {
    awk -v s="$1" -v r="$2" 'BEGIN {
        printf "{\"format\":\"hetviz.plan/1\",\"micro_batch\":1,\"replicas\":["
        for (i = 0; i < r; i++) {
            printf "%s{\"micro_batches\":8,\"stages\":[", i ? "," : ""
            for (k = 0; k < s; k++) {
                d = i * s + k
                printf "%s{\"devices\":\"a[%d].%d\",\"layers\":[%d,%d]}", k ? "," : "", int(d / 8), d % 8, k, k + 1
            }
            printf "]}"
        }
        printf "],\"schedule\":{\"name\":\"1f1b\"}}\n"
    }'
}

# ---- node groups
nodes 100000 >groups.json
job 64 >job.json
layers 4 >model.json
expect '100,000 node groups' 0 bound -c groups.json -m model.json -j job.json --json
says '100,000 node groups: all devices count' out '800000 usable devices \(1 kind\)'
nodes 100001 >more.json
expect 'more node groups are refused' 3 bound -c more.json -m model.json
says 'more node groups: limit and number' err 'expected 1 to 100000 node groups, found 100001'
sed 's/"name":"g99999"/"name":"g500"/' groups.json >twice.json
expect 'two groups of one name are refused' 3 bound -c twice.json -m model.json
says 'two groups of one name: which' err 'the name "g500" is taken by nodes\[500\] already'
sed 's/\]}$/],"network":{"links":[{"between":["g7[1]","g8"],"bandwidth_GBps":1}]}}/' groups.json >end.json
expect 'a link to a node that is not there is refused' 3 bound -c end.json -m model.json
says 'a link to a node that is not there: what' err 'expected a node group, a zone or a node .* found "g7\[1\]"'

# ---- stages and replica entries
layers 4000 >deep.json
group 500 >cluster.json
plan 4000 1 >stages.json
sed 's/"global_batch":64/"global_batch":8/' job.json >eight.json
expect '4,000 stages of unlike layers' 0 eval stages.json -c cluster.json -m deep.json -j eight.json --json
holds '4,000 stages of unlike layers: JSON' is_json out
layers 1 >flat.json
group 12500 >cluster.json
job 800000 >job.json
plan 1 100000 >entries.json
expect '100,000 replica entries' 0 eval entries.json -c cluster.json -m flat.json -j job.json --json
holds '100,000 replica entries: the bound is below' least "$(number out bound_s)" "$(number out iteration_s)"

# limited KIB ARG…: the program with so much address space
limited() {
    _kib=$1
    shift
    (
        # shellcheck disable=SC3045
        ulimit -v "$_kib" || exit 125
        exec "$HETVIZ" "$@"
    ) >"$work/out" 2>"$work/err" </dev/null
}
if grep -aq __asan_init "$HETVIZ"; then
    skip '500,000 replica entries in 2 GB' 'the address sanitizer reserves more address space'
else
    group 62500 >half.json
    job 4000000 >half_job.json
    plan 1 500000 >half_plan.json
    holds '500,000 replica entries in 2 GB' limited 2000000 eval half_plan.json -c half.json -m flat.json -j half_job.json
    says '500,000 replica entries: figures' out '^iteration'
    holds '500,000 replica entries in 2 GB: JSON' \
        limited 2000000 eval half_plan.json -c half.json -m flat.json -j half_job.json --json
    holds '500,000 replica entries: the bound is below' \
        least "$(number out bound_s)" "$(number out iteration_s)"
    rm -f half_plan.json
fi

# ---- the largest batch: the judge does not lay out five million micro-batches with recomputation
job 500000000 >huge.json
expect 'varuna with 500,000,000 sequences' 0 plan -s varuna -c a100-v100-t4 -m gpt3-1.3b -j huge.json
says 'varuna with 500,000,000 sequences: figures' out '^iteration'

# ---- devices
group 500000 >cluster.json
expect 'four million devices are more than a plugin can list' 5 plan -c cluster.json -m model.json -s uniform
says 'four million devices: the limit' err '256 MiB of memory'
says 'four million devices: what was found and what to do' err \
    'the cluster has 4000000 devices: plan for fewer of them'
expect 'four million devices have a bound' 0 bound -c cluster.json -m model.json
group 500001 >cluster.json
expect 'more devices are refused' 3 bound -c cluster.json -m model.json
says 'more devices: the limit' err 'more than 4000000 devices'

# ---- the time limit
group 12500 >cluster.json
for command in eval explain; do
    expect "$command ends at the time limit" 4 $command entries.json -c cluster.json -m flat.json -j job.json \
        --time-limit 1ms
    says "$command: no result" err 'no result'
    holds "$command: nothing is printed" [ ! -s out ]
done
expect 'bound ends at the time limit' 4 bound -c groups.json -m deep.json --time-limit 1ms
says 'bound: no result' err 'no result'
expect 'eval within its time limit' 0 eval "$root/samples/plans/uniform.json" --time-limit 1h
says 'eval within its time limit: figures' out '^iteration'
expect 'explain within its time limit' 0 explain "$root/samples/plans/uniform.json" --time-limit 1h
expect 'bound within its time limit' 0 bound -c homogeneous -m gpt3-1.3b --time-limit 1h
expect 'a time limit is a duration' 2 eval "$root/samples/plans/uniform.json" --time-limit 3parsecs
finish
