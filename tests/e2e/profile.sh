#!/bin/sh
# profile: what is said without a GPU, how profiles are shown and checked, and that a user's own
# profile prices its kind.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

# ---- measuring -------------------------------------------------------------------------------------
# a machine with a GPU would be measured for minutes: only the number that no machine has is asked for
expect 'no such GPU' 1 profile --device 1000 --quick --out p.json
says 'why not' err '(no GPU can be used|there is no GPU 1000|built without the profiler)'
holds 'nothing is invented' [ ! -e p.json ]
expect 'show only' 2 profile --svg x.svg
says 'show only' err '--show'

# ---- showing ---------------------------------------------------------------------------------------
expect 'a shipped profile' 0 profile --show "$root/share/profiles/H100.json"
says 'whose it is' out '^H100-SXM-80GB: microsoft/vidur'
says 'its best product' out '^fp16 +744\.6 T +989\.0 T +75\.3% +8\.0%$'
cat >own.json <<'J'
{ "format": "hetviz.profile/1", "device": "V100-SXM2-16GB", "source": "measured by hand", "bandwidth_GBps": 900,
  "kernel_start_us": 3, "complete": false, "machine": { "card": "Tesla V100-SXM2-16GB", "driver": "535.1" },
  "gemm": [ { "precision": "fp16", "peak_TFLOPS": 125, "error_frac": 0.03, "log2_m": { "from": 8, "step": 8, "count": 2 },
    "log2_n": { "from": 8, "step": 8, "count": 2 }, "log2_k": { "from": 8, "step": 8, "count": 2 },
    "TFLOPS": [ [ [ 10, 40 ], [ 40, 80 ] ], [ [ 40, 80 ], [ 80, 90 ] ] ] } ],
  "attention": [ { "precision": "fp16", "pass": "forward", "log2_sequence": { "from": 10, "step": 5, "count": 2 }, "TFLOPS": [ 40, 60 ] } ],
  "samples": [ { "kind": "gemm", "variant": "forward", "precision": "fp16", "m": 4096, "n": 4096, "k": 4096, "median_us": 1600, "timings": 9 },
    { "kind": "copy", "variant": "host_to_device", "bytes": 268435456, "median_us": 22000 } ],
  "layers": [ { "hidden": 1600, "ffn": 6400, "heads": 25, "kv_heads": 25, "head_dim": 64, "sequence": 1024, "batch": 4, "pass": "backward",
    "precision": "fp16", "measured_us": 9000, "predicted_us": 9180 } ] }
J
expect 'a profile with samples' 0 profile --show own.json --svg roof.svg
says 'the card' out 'card Tesla V100-SXM2-16GB, driver 535.1$'
says 'a link' out '^copy +host_to_device +12\.2 GB/s with 256 MiB$'
says 'attention' out '^attention forward +fp16: 40 TFLOP/s over 1024 tokens, 60 over 32768$'
says 'a layer' out '^backward fp16 +1600 +6400 .* 9 ms +9\.18 ms +\+2\.0%$'
says 'cut short' out 'incomplete'
says 'a chart' out '^ *[0-9.]+ [TG] \|'
holds 'a picture' grep -q '^<svg ' roof.svg
expect 'as JSON' 0 profile --show own.json --json
holds 'as JSON' is_json out
says 'the best product' out '"best_TFLOPS": 90'
expect 'check' 0 check own.json
sed 's/"median_us": 1600/"median_us": -1/' own.json >bad.json
expect 'a bad sample' 3 check bad.json
says 'where' err 'bad.json:7:.*samples\[0\].median_us'
sed 's/"variant": "forward", "precision": "fp16", "m"/"variant": "sideways", "m"/' own.json >bad.json
expect 'a bad word' 3 profile --show bad.json
says 'the words there are' err 'samples\[0\].variant.*forward'

# ---- using -----------------------------------------------------------------------------------------
cat >cluster.json <<'J'
{ "format": "hetviz.cluster/1", "name": "c", "nodes": [ { "name": "n", "count": 1, "device": "V100-SXM2-16GB", "devices": 8,
  "intra": { "kind": "nvlink", "bandwidth_GBps": 150 } } ] }
J
echo '{ "format": "hetviz.job/1", "global_batch": 32, "sequence": 1024, "precision": "fp16" }' >job.json
expect 'a plan' 0 plan -c cluster.json -m gpt2-xl -j job.json -s uniform --json --out p.json
expect 'before' 0 explain p.json --stage 0
says 'a roofline' out 'roofline'
mkdir -p "$XDG_DATA_HOME/hetviz/profiles"
cp own.json "$XDG_DATA_HOME/hetviz/profiles/"
expect 'after' 0 explain p.json --stage 0
says 'the table' out 'table of V100-SXM2-16GB, measured by hand'
cp bad.json "$XDG_DATA_HOME/hetviz/profiles/bad.json"
echo '{' >"$XDG_DATA_HOME/hetviz/profiles/worse.json"
expect 'a broken profile' 3 explain p.json --stage 0
says 'which' err 'profiles/worse.json:'
finish
