#!/bin/sh
# A plan that writes out what each device runs, on stages that share devices: Tessel's blocks on
# several devices (HPCA 2024), period 6. How 6 m + 9 follows is in tests/unit/test_eval_explicit.c.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
cat >c.json <<'END'
{"format": "hetviz.cluster/1", "name": "four",
 "nodes": [{"name": "a", "count": 4, "device": "P", "devices": 1,
            "nic": {"bandwidth_GBps": 1000000, "latency_us": 0, "curve": "plain"}}],
 "network": {"bandwidth_GBps": 1000000, "latency_us": 0, "curve": "plain"},
 "devices": {"P": {"memory_GiB": 80, "bandwidth_GBps": 1000, "dense_TFLOPS": {"fp32": 100},
                   "rates": "plain"}}}
END
cat >layers.awk <<'END'
function layer(f, b) {
    return "{\"forward_ms\":{\"P\":" f "},\"backward_ms\":{\"P\":" b "},\"parameter_bytes\":0," \
        "\"activation_bytes\":1e6,\"output_bytes\":0}"
}
BEGIN {
    print "{\"format\":\"hetviz.model/1\",\"name\":\"blocks\",\"kind\":\"layers\",\"layers\":[" layer(1, 0)
    for (d = 0; d < 4; d++) print "," layer(0.25, 0.5)
    print "," layer(0, 2) "]}"
}
END
awk -f layers.awk >m.json
# plan M: in period t the embedding of micro-batch t, the head of t - 4, on device d the forward of
# t - d and the backward of t - 7 + d
cat >plan.awk <<'END'
function add(kind, stage, mb) {
    if (mb >= 0 && mb < m) list = list (list == "" ? "" : ",") "\"" kind stage "." mb "\""
}
BEGIN {
    print "{\"format\":\"hetviz.plan/1\",\"cluster\":\"c.json\",\"model\":\"m.json\",\"job\":{\"global_batch\":" 4 * m \
        ",\"sequence\":1,\"precision\":\"fp32\",\"optimizer\":\"none\"},\"micro_batch\":4,"
    print "\"replicas\":[{\"micro_batches\":" m ",\"stages\":["
    print "{\"devices\":\"a[0-3].0\",\"layers\":[0,1],\"dp\":4},"
    for (d = 0; d < 4; d++) print "{\"devices\":\"a[" d "].0\",\"layers\":[" d + 1 "," d + 2 "]},"
    print "{\"devices\":\"a[0-3].0\",\"layers\":[5,6],\"dp\":4}]}],"
    print "\"schedule\":{\"name\":\"explicit\",\"order\":["
    for (d = 0; d < 4; d++) {
        list = ""
        for (t = 0; t <= m + 8; t++) {
            add("BW", 0, t - 8); add("F", 0, t); add("F", 5, t - 4); add("BW", 5, t - 4)
            add("F", d + 1, t - d); add("BW", d + 1, t - 7 + d)
        }
        print (d > 0 ? "," : "") "[" list "]"
    }
    print "]}}"
}
END
for m in 8 16 64; do
    awk -v m=$m -f plan.awk >p$m.json
    expect "the judge plays $m micro-batches" 0 eval p$m.json --json
    cp out again$m.json
    iteration=$(number out iteration_s)
    holds "6 m + 9 ms for m = $m" least "$iteration" "$(awk -v m=$m 'BEGIN { print (6 * m + 9) / 1000 }')"
    holds "and not less for m = $m" least "$(awk -v m=$m 'BEGIN { print (6 * m + 9) / 1000 }')" "$iteration"
    judged "what eval wrote ($m)" again$m.json
done
expect 'the chart' 0 gantt p8.json --width 100 --ascii
says 'a row per stage' out 's5 a\[0-3\]\.0'
expect 'explain' 0 explain p8.json
says 'explain' out '^iteration 57 ms'
expect 'check' 0 check p8.json

# the second device runs the head of micro-batch 1 before that of 0: no device can go on
sed 's/"F5\.0","BW5\.0"/"F5.9","BW5.9"/; s/"F5\.1","BW5\.1"/"F5.0","BW5.0"/; s/"F5\.9","BW5\.9"/"F5.1","BW5.1"/' \
    p8.json >all.json
awk 'FNR == NR { swapped[FNR] = $0; next } { print(/^,\["F0/ && !done++ ? swapped[FNR] : $0) }' \
    all.json p8.json >bad.json
expect 'lists that do not agree' 1 eval bad.json
says 'lists that do not agree' out 'schedule.order.*order\[[0-9]\]\[[0-9]+\], .*lists 0 and 1 do not agree from here on'

# two stages on the same two devices: as many lists per stage as per device, told apart by content
two() {
    printf '%s' '{"format":"hetviz.plan/1","cluster":"homogeneous","model":"llama-3-8b","job":{"format":"hetviz.job/1",' \
        '"global_batch":8,"sequence":2048},"micro_batch":2,"replicas":[{"micro_batches":4,"stages":[' \
        '{"devices":"a[0].[0-1]","layers":[0,16],"tp":2,"zero":0,"recompute":"full"},' \
        '{"devices":"a[0].[0-1]","layers":[16,32],"tp":2,"zero":0,"recompute":"full"}]}],' \
        '"schedule":{"name":"explicit","order":' "$1" '}}'
}
of_stage() { # of_stage STAGE: forward and backward of each micro-batch in turn
    printf '["F%s.0","BW%s.0","F%s.1","BW%s.1","F%s.2","BW%s.2","F%s.3","BW%s.3"]' "$1" "$1" "$1" "$1" "$1" "$1" "$1" "$1"
}
list='["F0.0","F1.0","BW1.0","BW0.0","F0.1","F1.1","BW1.1","BW0.1","F0.2","F1.2","BW1.2","BW0.2","F0.3","F1.3","BW1.3","BW0.3"]'
two "[$list,$list]" >devices.json
two "[$(of_stage 0),$(of_stage 1)]" >stages.json
run eval devices.json --json
by_device=$(number out iteration_s)
run eval stages.json --json
by_stage=$(number out iteration_s)
holds 'lists per device have a time' test -n "$by_device"
holds 'lists per stage have the same' test "$by_stage" = "$by_device"

# places of experts that a plan records are checked where the first blocks have no experts too
records() { # records OWNERS
    printf '%s' '{"format":"hetviz.plan/1","cluster":"thousand","model":"deepseek-v3","job":{"format":"hetviz.job/1",' \
        '"global_batch":128,"sequence":4096,"routing":{"format":"hetviz.routing/1","kind":"zipf","skew":1,"iterations":4}},' \
        '"micro_batch":128,"replicas":[{"micro_batches":1,"stages":[{"devices":"a[0-15].*","layers":[0,61],' \
        '"dp":128,"ep":64,"zero":3,"recompute":"full","moe":{"adapt":{"policy":"record","placements":[{"iteration":1,' \
        '"owners":' "$1" '}]}}}]}]}'
}
records "[$(awk 'BEGIN { for (i = 0; i < 261; i++) printf "%s%d", (i > 0 ? "," : ""), i % 64 }')]" >owners.json
expect 'recorded owners of too many experts' 1 eval owners.json
says 'recorded owners of too many experts' out 'owners has 261 entries, the block has 256 experts'
records "[$(awk 'BEGIN { for (i = 0; i < 256; i++) printf "%s%d", (i > 0 ? "," : ""), i == 7 ? 999 : i % 64 }')]" >owners.json
expect 'recorded owners on ranks that are not there' 1 eval owners.json
says 'recorded owners on ranks that are not there' out 'expert 7 is on rank 999, there are 64'
finish
