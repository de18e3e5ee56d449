#!/bin/sh
# validate: shipped rows, rows of a folder, fits, pictures, and what is said of bad rows. The times
# are those that `plan` with the strategy manual predicts for the same configuration.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

# ---- the rows we ship ----------------------------------------------------------------------------
expect 'shipped rows' 0 validate --shipped
says 'every row is predicted' out '^rows ([0-9]+) of \1 predicted$'
says 'a row' out '^kor22-22B-full +1\.42 s +[0-9.]+ s +[+-][0-9.]+%'
says 'a group' out '^megatron_lm +A100-SXM-80GB +16 +dense +[0-9]+ +[0-9.]+%'
says 'Calculon beside it' out '^sc21-t1 .* 10\.2%$'
says 'a summary' out '^mean of group MAPEs: dense 16 bits [0-9.]+%, dense fp8 [0-9.]+%, '
says 'what it rests on' out '^predicted with the shipped calibration'
cp out first.out
expect 'same bytes' 0 validate --shipped
same 'same bytes' out first.out
expect 'as JSON' 0 validate --shipped --json --svg rows.svg
holds 'as JSON' is_json out
says 'JSON: rows' out '"id": "sc21-t1-1T"'
says 'JSON: summary' out '"dense_16_mape_frac": 0\.'
holds 'a picture' grep -q '^<svg ' rows.svg
holds 'nothing on standard error' [ ! -s err ]

# ---- rows of a folder: times as `plan` gives them ---------------------------------------------------
mkdir rows
cat >cluster.json <<'J'
{ "format": "hetviz.cluster/1", "name": "c", "nodes": [ { "name": "n", "count": 8, "device": "A100-SXM-80GB", "devices": 8,
  "intra": { "kind": "nvlink", "bandwidth_GBps": 300 }, "nic": { "bandwidth_GBps": 200, "count": 8 } } ] }
J
cat >model.json <<'J'
{ "format": "hetviz.model/1", "name": "m", "kind": "transformer", "layers": 30, "hidden": 4096, "heads": 32, "kv_heads": 32,
  "ffn": 16384, "ffn_kind": "gelu", "vocab": 51200, "tied_embeddings": true, "max_sequence": 2048 }
J
cat >job.json <<'J'
{ "format": "hetviz.job/1", "global_batch": 256, "sequence": 2048, "precision": "bf16" }
J
system='{"device": "A100-SXM-80GB", "n": 64, "per_node": 8, "intra": "NVLink3", "intra_gbps_uni": 300, "inter_gbit_per_gpu": 200}'
shape='{"layers": 30, "hidden": 4096, "heads": 32, "kv_heads": 32, "ffn": 16384, "gated": false, "vocab": 51200, "seq": 2048, "tied_embeddings": true}'
# row NAME PAR MBS RECOMPUTE ITER_S
row() {
    echo "{\"id\": \"$1\", \"model\": $shape, \"system\": $system, \"precision\": \"bf16\", \"par\": $2, \"mbs\": $3, \"gbs\": 256, \"recompute\": \"$4\", \"meas\": {\"iter_s\": $5}}"
}
# agrees NAME PAR MBS RECOMPUTE OPTION…: validate predicts what plan -s manual predicts
agrees() {
    _n=$1
    echo "{\"rows\": [$(row "$1" "$2" "$3" "$4" 2)]}" >rows/one.json
    expect "$_n: validate" 0 validate --data rows --shipped --json
    number out predicted_s >a.txt
    _m=$3 _r=$4
    shift 4
    expect "$_n: plan" 0 plan -c cluster.json -m model.json -j job.json -s manual \
        -o micro_batch="$_m" -o recompute="$_r" -o allow_oom=true "$@" --json
    number out iteration_s >b.txt
    holds "$_n: a time" [ -s a.txt ]
    same "$_n: the time of plan" a.txt b.txt
}
agrees tp8 '{"tp": 8, "pp": 1, "dp": 8, "sp": true}' 2 none -o tp=8 -o dp=8 -o sequence_parallel=true
agrees vpp '{"tp": 4, "pp": 2, "dp": 8, "vpp": 5}' 1 full -o tp=4 -o pp=2 -o dp=8 -o chunks=5
agrees ends '{"tp": 1, "pp": 8, "dp": 8, "vpp": 4}' 1 selective -o tp=1 -o pp=8 -o dp=8 -o chunks=4
agrees zero3 '{"tp": 1, "pp": 1, "dp": 64, "fsdp": 64}' 4 none -o tp=1 -o dp=64 -o zero=3
agrees cp '{"tp": 2, "pp": 1, "dp": 16, "cp": 2, "zero": 1}' 1 none -o tp=2 -o dp=16 -o cp=2 -o zero=1

# ---- fits -------------------------------------------------------------------------------------------
one=$(row a '{"tp": 8, "pp": 1, "dp": 8}' 2 none 4) two=$(row b '{"tp": 4, "pp": 2, "dp": 8}' 1 none 4.4)
echo "{\"rows\": [$one]}" >rows/one.json
echo "{\"rows\": [$two]}" >rows/two.json
expect 'fit' 0 validate --data rows --fit fitted.json
says 'fit: says what it did' out 'predicted by a fit without its source'
says 'fit: the class' out '^A100 +2 +2 '
expect 'fit: what it wrote is a calibration' 0 check fitted.json
holds 'fit: names its rows' grep -q '2 rows of one, two' fitted.json
expect 'one source' 0 validate --data rows/one.json
says 'one source: flagged' out 'one source only'

# ---- bad rows -----------------------------------------------------------------------------------------
mkdir bad
echo '{"rows": [{"id": "x", "model": 3, "system": {}, "par": {}}]}' >bad/a.json
expect 'a model that is none' 3 validate --data bad
says 'a model that is none: place' err 'a.json:1:[0-9]+: rows\[0\]\.model'
printf '{"format": "hetviz.validation/1", "rows": [{"id": "x", "model": {},\n "system": {}, "par": {}, "mbss": 1}]}' >bad/a.json
expect 'a wrong key' 3 validate --data bad
says 'a wrong key: nearest' err 'a.json:2:[0-9]+: .*mbs'
echo '{"rows": [' >bad/a.json
expect 'half a file' 3 validate --data bad/a.json
expect 'no folder' 3 validate --data nowhere
expect 'no rows in it' 3 validate --data "$HOME"
echo "{\"rows\": [$(row a '{"tp": 64, "pp": 64, "dp": 8}' 2 none 4)]}" >bad/a.json
expect 'more ranks than devices' 0 validate --data bad --shipped
says 'more ranks than devices: counted' out 'left out: 1 the printed degrees need more devices'
expect 'an argument' 2 validate rows
expect 'full disk' 3 validate --shipped --svg no/such/folder/x.svg

# ---- mixed GPUs ---------------------------------------------------------------------------------------
# AMP's 12 V100 and 4 T4: of 53 grids that ran or failed there tp 1, dp 2, pp 8 was the fastest (1.28 s), the one
# that AMP's own equation prefers, tp 1, dp 4, pp 4, took 1.47 s.
mixed=$HETVIZ_ROOT/samples/rivals/amp
grid() { # grid TP DP PP MICRO_BATCH: seconds of an iteration, before its name
    "$HETVIZ" plan -c "$mixed/cluster.json" -m "$mixed/model.json" -j "$mixed/job.json" -s manual -o tp="$1" \
        -o dp="$2" -o pp="$3" -o micro_batch="$4" -o allow_oom=true --json 2>/dev/null |
        sed -n 's/.*"iteration_s": \([0-9.]*\).*/\1/p' | head -n 1 | sed "s/\$/ $1-$2-$3-$4/"
}
for micro_batch in 1 2 4; do
    for degrees in '1 16 1' '1 8 2' '1 4 4' '1 2 8' '1 1 16' '2 8 1' '2 4 2' '2 2 4' '2 1 8' '4 4 1' '4 2 2' '4 1 4'; do
        # shellcheck disable=SC2086 # degrees are three words
        grid $degrees $micro_batch
    done
done >grids
holds 'all grids that divide the batch have a time' test "$(wc -l <grids)" -eq 35
holds 'the fastest on mixed GPUs' test "$(sort -n grids | awk 'NR == 1 { print $2 }')" = 1-2-8-1
holds 'the one that AMP prefers takes 1.15 times as long, within 10 %' awk '
    $2 == "1-2-8-1" { best = $1 } $2 == "1-4-4-1" { amp = $1 / 1.148 }
    END { exit !(amp > 0.9 * best && amp < 1.1 * best) }' grids
holds 'no two are equal' test "$(awk '{ print $1 }' grids | sort -u | wc -l)" -eq 35
finish
