#!/bin/sh
# `explain` says where a faster part of the cluster would make the very plan slower, in text and JSON:
# two copies of a pipeline, whose stages send over the same slow network.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

says() { # says NAME FILE PATTERN
    if grep -Eq "$3" "$2"; then ok; else no "$1" "no line like $3"; fi
}

cat >c.json <<'EOF'
{
  "format": "hetviz.cluster/1",
  "name": "sharing",
  "nodes": [
    {"name": "a", "count": 1, "device": "V100-SXM2-16GB", "devices": 4, "nic": {"bandwidth_GBps": 50, "latency_us": 12}},
    {"name": "b", "count": 1, "device": "V100-SXM2-32GB", "devices": 2, "nic": {"bandwidth_GBps": 400, "latency_us": 7}, "intra": {"kind": "nvswitch", "bandwidth_GBps": 300}},
    {"name": "c", "count": 2, "device": "A100-SXM-80GB", "devices": 4, "nic": {"bandwidth_GBps": 400, "latency_us": 13}} ],
  "network": {"bandwidth_GBps": 3, "latency_us": 5}
}
EOF
cat >m.json <<'EOF'
{
  "format": "hetviz.model/1",
  "name": "sharing",
  "kind": "transformer",
  "layers": 4,
  "hidden": 4096,
  "heads": 64,
  "kv_heads": 16,
  "ffn": 10922,
  "ffn_kind": "swiglu",
  "vocab": 32000,
  "max_sequence": 4096,
  "tied_embeddings": true
}
EOF
cat >j.json <<'EOF'
{
  "format": "hetviz.job/1",
  "global_batch": 128,
  "sequence": 2048,
  "precision": "fp16",
  "optimizer": "sgd",
  "memory_reserve_GiB": 9
}
EOF
cat >p.json <<'EOF'
{ "format": "hetviz.plan/1", "micro_batch": 1, "schedule": {"name": "1f1b-v"},
  "replicas": [ {"count": 2, "micro_batch": 16, "micro_batches": 4, "stages": [
    {"devices": "a[0].0,a[0].1,a[0].2,c[0].1,c[0].2,c[0].3", "layers": [[0, 2], [3, 4]], "dp": 3, "recompute": "none", "tp": 1, "cp": 1, "zero": 0, "shares": [6, 5, 5], "offload": [{"what": "optimizer"}]},
    {"devices": "a[0].3,b[0].0,b[0].1,c[0].0,c[1].0,c[1].1,c[1].2,c[1].3", "layers": [[2, 2.5], [2.5, 3]], "dp": 2, "recompute": "none", "tp": 2, "cp": 1, "zero": {"stage": 2, "reduce": "each", "prefetch": 0}, "sequence_parallel": true, "ep": 4, "offload": [{"what": "optimizer"}]} ] } ] }
EOF

row='list scheduling: with FLOP/s of A100-SXM-80GB 2 times as fast this plan takes [0-9.]+% longer'
expect 'explain: text' 0 explain p.json -c c.json -m m.json -j j.json
says 'explain: text' out "^6 $row \\([0-9.]+ s instead of [0-9.]+ s\\), since transfers"
expect 'explain: JSON' 0 explain p.json -c c.json -m m.json -j j.json --json
holds 'explain: JSON' is_json out
says 'explain: JSON' out "\"6 $row"
# on one node in a fixed order
cat >one.json <<'EOF'
{ "format": "hetviz.plan/1", "micro_batch": 1, "schedule": { "name": "1f1b" },
  "replicas": [ { "micro_batches": 128, "stages": [
    { "devices": "c[0].0-1", "layers": [0, 2], "tp": 2 }, { "devices": "c[0].2-3", "layers": [2, 4], "tp": 2 } ] } ] }
EOF
expect 'explain: nothing to tell' 0 explain one.json -c c.json -m m.json -j j.json
if grep -q 'list scheduling' out; then no 'explain: nothing to tell' 'it names a part'; else ok; fi
finish
