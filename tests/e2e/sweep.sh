#!/bin/sh
# Sweeps: the guide runs as printed; stopping, killing and dividing loses nothing and makes nothing twice.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
guide=$root/share/guide/sweeps.md
mkdir -p "$work/guide" "$work/bin"
cd "$work/guide" || exit 1
awk '/^```json [a-z]+\.json$/ { f = $2; next } /^```$/ { f = "" } f { print > f }' "$guide"
awk '/^```sh$/ { s = 1; next } /^```$/ { s = 0 } s' "$guide" >"$work/commands"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$HETVIZ" >"$work/bin/hetviz"
chmod +x "$work/bin/hetviz"
PATH=$work/bin:$PATH
holds 'the guide has commands' test "$(grep -c '^hetviz ' "$work/commands")" -ge 11
while read -r line; do
    timeout -k 2 "$HANG" sh -c "$line" >"$work/out" 2>"$work/err" </dev/null
    rc=$?
    if [ $rc -eq 0 ]; then ok; else no "$line" "exit $rc"; fi
done <"$work/commands"
holds 'the map is an SVG picture' grep -q '</svg>' map.svg
# nodes 1, 2, 4 and batches 64 to 512 with batch >= 64 nodes: 4 + 3 + 2 points, two strategies
holds 'a header and 18 rows' test "$(wc -l <results.csv)" -eq 19
if command -v shellcheck >/dev/null 2>&1; then
    holds 'the script for Slurm is clean' shellcheck results/sweep.sbatch
fi
holds 'the script for Slurm is a shell script' sh -n results/sweep.sbatch

# one program and three give the same results; a torn line and a second run change nothing
"$HETVIZ" sweep run batch.json --out whole --quiet 2>/dev/null
sort whole/*.jsonl >one
for k in 1 2 3; do "$HETVIZ" sweep run batch.json --out parts --shard $k/3 --quiet 2>/dev/null; done
sort parts/*.jsonl >three
same 'three shards have the results of one' one three
printf '{"id": "torn' >>parts/shard-2-of-3.jsonl
expect 'a torn line is cut off' 0 sweep run --out parts --shard 2/3
sort parts/*.jsonl >three
same 'nothing is made twice' one three

# killed in the middle, with what was there kept
cat >many.json <<'X'
{ "format": "hetviz.sweep/1", "cluster": "homogeneous", "model": "gpt3-125m",
  "axes": [ { "name": "batch", "at": "job.global_batch", "from": 8, "to": 480, "step": 8 } ],
  "strategies": ["manual"] }
X
"$HETVIZ" sweep run many.json --out killed --jobs 2 >/dev/null 2>&1 &
pid=$!
tries=0
while [ "$(cat killed/*.jsonl 2>/dev/null | wc -l)" -lt 5 ] && [ $tries -lt 3000 ]; do
    sleep 0.02
    tries=$((tries + 1))
done
kill -9 $pid 2>/dev/null
wait $pid 2>/dev/null
cp killed/shard-1-of-1.jsonl before
expect 'it goes on' 0 sweep run many.json --out killed
says 'it says what it did' out '^killed: shard 1 of 1: [0-9]+ cells run now, 0 failed$'
holds 'what was there stays' cmp -s -n "$(wc -c <before)" before killed/shard-1-of-1.jsonl
holds 'every cell once' test "$(sed 's/.*"id": *"\([0-9a-f]*\)".*/\1/' killed/*.jsonl | sort -u | wc -l)" -eq 60
holds 'no cell twice' test "$(wc -l <killed/shard-1-of-1.jsonl)" -eq 60
expect 'stopped by its time limit' 4 sweep run many.json --out late --time-limit 1ms
says 'it says how many are left' err '^hetviz: sweep: [0-9]+ cells? left; the same command goes on'
expect 'a store of what there is' 1 sweep merge late
says 'and what is missing' out '60 cells, [0-9]+ done, 0 failed, [1-9][0-9]* missing'

# what is wrong is told
expect 'no such action' 2 sweep plam many.json
says 'the nearest one' err 'did you mean plan'
expect 'an option of another action' 2 sweep plan many.json --csv
expect 'a shard that is none' 2 sweep run many.json --out late --shard 4/3
expect 'no folder' 2 sweep run many.json
expect 'no store' 3 sweep show late2
sed 's/job.global_batch/options.no_such/' many.json >bad.json
expect 'an option that the strategy lacks' 2 sweep plan bad.json
says 'names it' err 'no_such'
sed 's/job.global_batch/cluster.nodes[5].count/' many.json >bad.json
expect 'a place that is not there' 3 sweep plan bad.json
says 'names the file and the cell' err '^hetviz: bad.json: batch=8: '
expect 'a condition that is none' 2 sweep show results --where 'nodes >'
expect 'a column that is none' 2 sweep show results --sort iteration
says 'the nearest column' err 'iteration_s'
expect 'a name with a formula in CSV' 0 sweep show results --csv --columns strategy
# every word that completion offers is a column of the store
expect 'columns that completion offers' 0 completion columns
columns=$(tr '\n' ',' <"$work/out")
expect 'all of them' 0 sweep show results --csv --columns "${columns%,}"
says 'their heading' out '^id,strategy,state,.*,iteration_s,'
expect 'figures that completion offers' 0 completion figures
figures=$(tr '\n' ',' <"$work/out")
expect 'all of them have a front' 0 sweep show results --pareto "${figures%,}"
expect 'JSON' 0 sweep show results --json
holds 'is one value' is_json "$work/out"
finish
