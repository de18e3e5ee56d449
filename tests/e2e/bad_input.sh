#!/bin/sh
# Files that no one should have written: for every kind of input the program must say which file and
# where (file:line:col), exit 3, print nothing on standard output, and neither crash nor hang.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

# ---- one good file per kind: the format on the first line, an own key per line ----------------
cat >cluster.good <<'EOF'
{ "format": "hetviz.cluster/1",
  "name": "two",
  "nodes": [
    { "name": "a", "count": 2, "device": "A100-SXM-80GB", "devices": 8, "nic": { "bandwidth_GBps": 50, "latency_us": 5 } },
    { "name": "v", "count": 1, "device": "MyCard", "devices": 4 } ],
  "network": { "bandwidth_GBps": 12.5, "latency_us": 10 },
  "devices": { "MyCard": { "base": "V100-SXM2-32GB", "memory_GiB": 30 } } }
EOF
cat >model.good <<'EOF'
{ "format": "hetviz.model/1",
  "name": "small",
  "kind": "transformer",
  "layers": 12,
  "hidden": 768, "heads": 12, "kv_heads": 12, "ffn": 3072, "ffn_kind": "gelu",
  "vocab": 50304, "max_sequence": 2048 }
EOF
cat >graph.good <<'EOF'
{ "format": "hetviz.model/1",
  "name": "graph",
  "kind": "graph",
  "dims": { "batch": 64, "hidden": 1024 },
  "ops": [
    { "id": "in", "op": "input", "out": ["batch", "hidden"] },
    { "id": "one", "op": "matmul", "out": ["batch", "hidden"], "contract": ["hidden"], "parameter_bytes": 2097152 },
    { "id": "two", "op": "gelu", "out": ["batch", "hidden"] } ],
  "edges": [["in", "one"], ["one", "two"]] }
EOF
cat >job.good <<'EOF'
{ "format": "hetviz.job/1",
  "name": "short",
  "global_batch": 64,
  "sequence": 2048, "precision": "fp16", "optimizer": "adam" }
EOF
cat >plan.good <<'EOF'
{ "format": "hetviz.plan/1",
  "name": "two stages",
  "cluster": "two-generations", "model": "llama-3-8b", "job": "small",
  "micro_batch": 1,
  "replicas": [
    { "micro_batches": 128, "stages": [
      { "devices": "a[0].*", "layers": [0, 12], "tp": 8 },
      { "devices": "h[0].*", "layers": [12, 32], "tp": 8 } ] } ],
  "schedule": { "name": "1f1b" } }
EOF
cat >workspace.good <<'EOF'
{ "format": "hetviz.workspace/1",
  "name": "mine",
  "cluster": "two-generations",
  "model": "llama-3-8b", "job": "small",
  "strategies": ["uniform"], "plans": [] }
EOF
cat >chain.good <<'EOF'
{ "format": "hetviz.partition/1",
  "kind": "chain",
  "layers": 3,
  "stages": 2, "objective": "minmax",
  "time_ms": [[1, 2, 3], [2, 1, 1]],
  "memory_GiB": [[1, 1, 1], [1, 1, 1]], "capacity_GiB": [2, 2],
  "comm_ms": [[0.5, 0.5, 0]] }
EOF
cat >dag.good <<'EOF'
{ "format": "hetviz.partition/1",
  "kind": "dag",
  "accelerators": 2, "cpus": 1, "memory_bytes": 10, "objective": "max_load",
  "node_fields": ["id", "accel_latency", "cpu_latency", "size_bytes", "is_backward", "color_class", "supported_on_accel"],
  "nodes": [[1, 1, 2, 1, 0, 1, 1], [7, 1, 2, 1, 1, null, 1]],
  "edge_fields": ["src", "dst", "cost"], "edges": [[1, 7, 0.5]] }
EOF
cat >distribute.good <<'EOF'
{ "format": "hetviz.distribute/1",
  "total": 14,
  "replicas": [
    { "fixed_ms": 1, "per_microbatch_ms": 4, "size": 1, "max": 9 },
    { "fixed_ms": 0, "per_microbatch_ms": 3, "size": 2, "max": 8 } ] }
EOF
cat >replicas.good <<'EOF'
{ "format": "hetviz.partition/1",
  "kind": "replicas",
  "layers": 2, "devices": 2, "capacity_GiB": 4,
  "widths": [ { "width": 1, "sync_ms": [9, 9], "comm_ms": [1, 1], "options": [
    { "time_ms": [1, 1], "held_GiB": [3, 3] },
    { "time_ms": [2, 2], "held_GiB": [1, 1] } ] } ] }
EOF
cat >fold.good <<'EOF'
{ "format": "hetviz.partition/1",
  "kind": "chain", "layers": 2, "stages": 2,
  "ranks": 2, "rank": [0, 1],
  "time_ms": [[1, 2], [2, 1]] }
EOF
cat >curve.good <<'EOF'
{ "format": "hetviz.distribute/1",
  "objective": "sum", "total": 10,
  "replicas": [
    { "time_ms": [[0, 0], [4, 4], [8, 20]] },
    { "per_microbatch_ms": 3 } ] }
EOF
cat >joint.good <<'EOF'
{ "format": "hetviz.partition/1",
  "kind": "joint", "total": 12,
  "pipelines": [
    { "copies": 2, "layers": 2, "stages": 2, "time_ms": [[1, 2], [2, 1]] },
    { "layers": 2, "stages": 1, "max": 7, "time_ms": [[1, 2]] } ] }
EOF
kinds='cluster model graph job plan workspace chain fold dag replicas joint distribute curve'

# read_as KIND FILE: runs the command that reads such a file
read_as() {
    case $1 in
    cluster) run bound -c "$2" -m llama-3-8b -j small ;;
    model | graph) run bound -c two-generations -m "$2" -j small ;;
    job) run bound -c two-generations -m llama-3-8b -j "$2" ;;
    plan) run eval "$2" ;;
    workspace) run check "$2" ;;
    chain | fold | dag | replicas | joint | distribute | curve) run solve "$2" ;;
    esac
}
# refused NAME KIND FILE PATTERN: exit 3, silence on stdout, the file and the pattern on stderr
refused() {
    read_as "$2" "$3"
    if [ "$rc" -ne 3 ]; then
        no "$2: $1" "exit $rc, expected 3"
    elif [ -s out ]; then
        no "$2: $1" "standard output is not empty"
    elif ! grep -Fq -- "$3" err || ! grep -Eq -- "$4" err; then
        no "$2: $1" "no '$4' about $3"
    elif [ "$(wc -c <err)" -gt 2000 ] || LC_ALL=C grep -q '[[:cntrl:]]' err; then
        no "$2: $1" "the message is no clean line"
    else
        ok
    fi
}
at='bad\.json:[0-9]+:[0-9]+: '
# with KIND TEXT: bad.json = the good file with TEXT as its second line
with() {
    { head -n 1 "$1.good" && printf '%s\n' "$2" && tail -n +2 "$1.good"; } >bad.json
}
# edited KIND SED: bad.json = the good file changed by a sed command, which must change something
edited() {
    sed "$2" "$1.good" >bad.json
    if cmp -s bad.json "$1.good"; then no "$1: $2" 'the edit changes nothing'; fi
}
# long N: a line of N letters
long() { head -c "$1" /dev/zero | tr '\0' k; }
# nested N: N opening brackets
nested() { head -c "$1" /dev/zero | tr '\0' '['; }

# ---- what is the same for every kind ----------------------------------------------------------
for kind in $kinds; do
    cp "$kind.good" fine.json
    read_as "$kind" fine.json
    if [ "$rc" -le 1 ]; then ok; else no "$kind: the good file" "exit $rc"; fi

    refused 'missing file' "$kind" ./nowhere/bad.json 'No such file|cannot'
    mkdir -p folder/bad.json
    refused 'a folder' "$kind" folder/bad.json 'directory|folder|workspace\.json'
    ln -sf loop.json loop.json
    refused 'a link to itself' "$kind" ./loop.json 'symbolic|link|loop'
    if [ "$(id -u)" -ne 0 ]; then
        cp "$kind.good" secret.json && chmod 000 secret.json
        refused 'no permission' "$kind" ./secret.json 'ermission'
        chmod 600 secret.json
    fi

    : >bad.json
    refused 'empty file' "$kind" bad.json "$at"
    printf '   \n\n' >bad.json
    refused 'only blanks' "$kind" bad.json "$at"
    size=$(wc -c <"$kind.good")
    for part in 1 10 $((size / 3)) $((size / 2)) $((size - 40)) $((size - 2)); do
        head -c "$part" "$kind.good" >bad.json
        refused "truncated after $part bytes" "$kind" bad.json "$at"
    done
    for text in '[]' '17' '"text"' 'null' 'true' '{}' '{ "name": "x" }'; do
        printf '%s\n' "$text" >bad.json
        refused "the whole file is $text" "$kind" bad.json "$at"
    done
    sed '1s|hetviz\.[a-z]*/1|hetviz.other/1|' "$kind.good" >bad.json
    refused 'another format' "$kind" bad.json "$at.*format"
    sed '1s|/1"|/9"|' "$kind.good" >bad.json
    refused 'a later version' "$kind" bad.json "$at.*format"

    with "$kind" '"no_such_key": 1,'
    refused 'unknown key' "$kind" bad.json 'bad\.json:2:[0-9]+: .*no_such_key'
    with "$kind" '"format": "again",'
    refused 'duplicate key' "$kind" bad.json "$at.*(duplicate|twice)"
    with "$kind" '"x-a": 1, "x-a": 2,'
    refused 'duplicate key among those not looked at' "$kind" bad.json 'bad\.json:2:[0-9]+: '
    with "$kind" '"x-nan": NaN,'
    refused 'NaN' "$kind" bad.json 'bad\.json:2:[0-9]+: '
    with "$kind" '"x-infinite": -Infinity,'
    refused 'Infinity' "$kind" bad.json 'bad\.json:2:[0-9]+: '
    with "$kind" '"x-large": 1e999,'
    refused '1e999' "$kind" bad.json 'bad\.json:2:[0-9]+: '
    with "$kind" '"x-large": 99999999999999999999999999,'
    refused 'a whole number beyond 64 bits' "$kind" bad.json 'bad\.json:2:[0-9]+: '
    with "$kind" '"x-octal": 017,'
    refused 'a leading zero' "$kind" bad.json 'bad\.json:2:[0-9]+: '
    with "$kind" '"x-nul": "a\u0000b",'
    refused 'escaped NUL in a text' "$kind" bad.json 'bad\.json:2:[0-9]+: '
    with "$kind" '"x-\u0000": 1,'
    refused 'escaped NUL in a key' "$kind" bad.json 'bad\.json:2:[0-9]+: '
    with "$kind" '"x-half": "\ud800",'
    refused 'half a surrogate pair' "$kind" bad.json 'bad\.json:2:[0-9]+: '
    with "$kind" '"x-escape": "\q",'
    refused 'unknown escape' "$kind" bad.json 'bad\.json:2:[0-9]+: '
    with "$kind" '// no comments,'
    refused 'comment' "$kind" bad.json 'bad\.json:2:[0-9]+: '
    with "$kind" "$(printf '"x-raw": "a\001b",')"
    refused 'raw control character' "$kind" bad.json 'bad\.json:2:[0-9]+: '
    with "$kind" "$(printf '"x-bytes": "\377\376",')"
    refused 'no UTF-8' "$kind" bad.json 'bad\.json:2:[0-9]+: '
    { printf '\377\376' && cat "$kind.good"; } >bad.json
    refused 'UTF-16 mark' "$kind" bad.json "$at"
    { head -n 1 "$kind.good" && printf '\000\n' && tail -n +2 "$kind.good"; } >bad.json
    refused 'NUL byte' "$kind" bad.json 'bad\.json:2:[0-9]+: '
    { cat "$kind.good" && echo 'x'; } >bad.json
    refused 'trailing bytes' "$kind" bad.json "$at"
    cat "$kind.good" "$kind.good" >bad.json
    refused 'the file twice' "$kind" bad.json "$at"

    nested 100000 >bad.json
    refused '100,000 brackets' "$kind" bad.json "$at"
    { head -n 1 "$kind.good" && printf '"x-deep": ' && nested 3000 &&
        nested 3000 | tr '[' ']' && printf ',\n' && tail -n +2 "$kind.good"; } >bad.json
    refused '3,000 levels' "$kind" bad.json 'bad\.json:2:[0-9]+: '
    { head -n 1 "$kind.good" && printf '"' && long 1048576 && printf '": 1,\n' &&
        tail -n +2 "$kind.good"; } >bad.json
    refused 'a key of 1 MiB' "$kind" bad.json 'bad\.json:2:[0-9]+: '
    case $kind in
    chain | fold | dag | replicas | joint | distribute | curve) ;;
    *)
        { sed '/"name":/,$d' "$kind.good" && printf '"name": "' && long 1048576 && printf '",\n' &&
            sed '1,/"name":/d' "$kind.good"; } >bad.json
        refused 'a name of 1 MiB' "$kind" bad.json 'bad\.json:2:[0-9]+: .*name'
        ;;
    esac
done

# ---- what each kind can get wrong by itself ----------------------------------------------------
# each row: a sed command on the good file, then what the message must hold
rows() { # rows KIND: reads "SED -> PATTERN" lines from standard input
    while IFS= read -r row; do
        edited "$1" "${row%% -> *}"
        refused "${row%% -> *}" "$1" bad.json "${row#* -> }"
    done
}
rows cluster <<'EOF'
s/"count": 2/"cuont": 2/ -> bad\.json:4:[0-9]+: .*cuont.*count
s/"count": 2/"count": -2/ -> bad\.json:4:[0-9]+: nodes\[0\]\.count.*-2
s/"count": 2/"count": 2.5/ -> bad\.json:4:[0-9]+: nodes\[0\]\.count
s/"count": 2/"count": "2"/ -> bad\.json:4:[0-9]+: nodes\[0\]\.count
s/"count": 2/"count": 1000000000/ -> bad\.json:.*(4|count|million|devices)
s/"devices": 8/"devices": 1000000000/ -> bad\.json:4:[0-9]+: nodes\[0\]\.devices
s/"devices": 8/"devices": []/ -> bad\.json:4:[0-9]+: nodes\[0\]\.devices
s/"bandwidth_GBps": 50/"bandwidth_GBps": -50/ -> bad\.json:4:[0-9]+: nodes\[0\]\.nic\.bandwidth_GBps
s/"bandwidth_GBps": 50/"bandwidth_GBps": 0/ -> bad\.json:4:[0-9]+: nodes\[0\]\.nic\.bandwidth_GBps
s/A100-SXM-80GB/A100-SXM-80GX/ -> bad\.json:4:[0-9]+: nodes\[0\]\.device.*A100-SXM-80GB
s/"name": "v"/"name": "a"/ -> bad\.json:5:[0-9]+: nodes\[1\]\.name
s/"base": "V100-SXM2-32GB"/"base": "MyCard"/ -> bad\.json:7:[0-9]+: .*MyCard
s/"base": "V100-SXM2-32GB"/"base": "Other"/ -> bad\.json:7:[0-9]+: .*Other
s/"devices": { "MyCard"/"devices": { "B": { "base": "MyCard" }, "MyCard"/;s/"V100-SXM2-32GB"/"B"/ -> bad\.json:7:[0-9]+: .*(circle|cycle|itself)
s/"memory_GiB": 30/"memory_GiB": -30/ -> bad\.json:7:[0-9]+: devices\.MyCard\.memory_GiB
s/"network": {/"network": { "links": [ { "between": ["a", "q"], "bandwidth_GBps": 1 } ],/ -> bad\.json:6:[0-9]+: network\.links\[0\]\.between.*q
s/"network": {/"network": { "matrix_latency_us": [[0]],/ -> bad\.json:6:[0-9]+: network\.matrix_latency_us
/"nodes"/,/4 }/c"nodes": [], -> bad\.json:3:[0-9]+: nodes
/"nodes"/,/4 }/c"nodes": {}, -> bad\.json:3:[0-9]+: nodes
/"nodes"/,/4 }/d -> bad\.json:1:[0-9]+: .*nodes
EOF
rows model <<'EOF'
s/"layers": 12/"layers": 1000000000/ -> bad\.json:4:[0-9]+: layers.*1000000000
s/"layers": 12/"layers": 0/ -> bad\.json:4:[0-9]+: layers
s/"layers": 12/"layers": -12/ -> bad\.json:4:[0-9]+: layers.*-12
s/"layers": 12/"layers": [12]/ -> bad\.json:4:[0-9]+: layers
s/"layers": 12/"layers": null/ -> bad\.json:4:[0-9]+: .*layers
s/"layers": 12/"layer": 12/ -> bad\.json:4:[0-9]+: .*layer.*layers
s/"hidden": 768/"hidden": 1e300/ -> bad\.json:5:[0-9]+: hidden
s/"heads": 12/"heads": 7/ -> bad\.json:5:[0-9]+: .*heads
s/"ffn_kind": "gelu"/"ffn_kind": "gleu"/ -> bad\.json:5:[0-9]+: ffn_kind.*gelu
s/"transformer"/"transfromer"/ -> bad\.json:3:[0-9]+: kind.*transformer
s/"name": "small"/"name": 5/ -> bad\.json:2:[0-9]+: name
s/"name": "small"/"name": ""/ -> bad\.json:2:[0-9]+: name
s/"vocab"/"moe": { "experts": 8, "top_k": 9 }, "vocab"/ -> bad\.json:6:[0-9]+: moe
EOF
rows graph <<'EOF'
s/\["one", "two"\]/["one", "two"], ["two", "one"]/ -> bad\.json:9:[0-9]+: .*(cycle|circle)
s/\["one", "two"\]/["one", "one"]/ -> bad\.json:9:[0-9]+: .*
s/\["one", "two"\]/["one", "tow"]/ -> bad\.json:9:[0-9]+: .*tow
s/"id": "two"/"id": "one"/ -> bad\.json:8:[0-9]+: .*one
s/"contract": \["hidden"\]/"contract": ["hiden"]/ -> bad\.json:7:[0-9]+: .*hiden
s/"batch": 64/"batch": -64/ -> bad\.json:4:[0-9]+: dims\.batch
s/2097152/-1/ -> bad\.json:7:[0-9]+: ops\[1\]\.parameter_bytes
EOF
rows job <<'EOF'
s/64/0/ -> bad\.json:3:[0-9]+: global_batch
s/64/-64/ -> bad\.json:3:[0-9]+: global_batch.*-64
s/64/1e18/ -> bad\.json:3:[0-9]+: global_batch
s/64/"64"/ -> bad\.json:3:[0-9]+: global_batch
s/fp16/fp61/ -> bad\.json:4:[0-9]+: precision.*fp16
s/adam/adma/ -> bad\.json:4:[0-9]+: optimizer.*adam
s/global_batch/globalbatch/ -> bad\.json:3:[0-9]+: .*globalbatch.*global_batch
EOF
rows plan <<'EOF'
s/a\[0\]/a[7]/ -> bad\.json:7:[0-9]+: replicas\[0\]\.stages\[0\]\.devices
s/a\[0\]/z[0]/ -> bad\.json:7:[0-9]+: replicas\[0\]\.stages\[0\]\.devices.*z
s/a\[0\]\.\*/a[/ -> bad\.json:7:[0-9]+: replicas\[0\]\.stages\[0\]\.devices
s/"tp": 8 },/"tp": -8 },/ -> bad\.json:7:[0-9]+: replicas\[0\]\.stages\[0\]\.tp.*-8
s/"tp": 8 },/"pt": 8 },/ -> bad\.json:7:[0-9]+: .*pt.*tp
s/"tp": 8 },/"zero": 4 },/ -> bad\.json:7:[0-9]+: replicas\[0\]\.stages\[0\]\.zero
s/\[0, 12\]/[12, 0]/ -> bad\.json:7:[0-9]+: replicas\[0\]\.stages\[0\]\.layers
s/\[0, 12\]/[0, 1000000000]/ -> bad\.json:7:[0-9]+: replicas\[0\]\.stages\[0\]\.layers
s/"micro_batches": 128/"micro_batches": 1000000000/ -> bad\.json:6:[0-9]+: replicas\[0\]\.micro_batches
s/"micro_batches": 128/"micro_batches": 0/ -> bad\.json:6:[0-9]+: replicas\[0\]\.micro_batches
s/"micro_batch": 1/"micro_batch": 0/ -> bad\.json:4:[0-9]+: micro_batch
s/"two-generations"/"two-generation"/ -> bad\.json:3:[0-9]+: cluster: .*two-generations
s/"two-generations"/{ "nodes": 5 }/ -> bad\.json:3:[0-9]+: cluster: 
s/"llama-3-8b"/"llama-3-8"/ -> bad\.json:3:[0-9]+: model: .*llama-3-8b
s/"small"/"smal"/ -> bad\.json:3:[0-9]+: job: .*small
s/"small"/5/ -> bad\.json:3:[0-9]+: job
EOF
rows workspace <<'EOF'
s/"two-generations"/"two-generation"/ -> bad\.json:3:[0-9]+: cluster: .*two-generations
s/"two-generations"/{ "format": "hetviz.cluster\/1" }/ -> bad\.json:3:[0-9]+: cluster: .*nodes
s/"small"/"smal"/ -> bad\.json:4:[0-9]+: job: .*small
s/\["uniform"\]/[7]/ -> bad\.json:5:[0-9]+: strategies
s/"plans": \[\]/"plans": 3/ -> bad\.json:5:[0-9]+: plans
s/"strategies"/"strategy"/ -> bad\.json:5:[0-9]+: .*strategy.*strategies
EOF
rows chain <<'EOF'
s/"layers": 3/"layers": 1000000000/ -> bad\.json:.*
s/"layers": 3/"layers": -3/ -> bad\.json:3:[0-9]+: layers
s/"layers": 3/"layers": 4/ -> bad\.json:5:[0-9]+: time_ms
s/"stages": 2/"stages": 0/ -> bad\.json:4:[0-9]+: stages
s/"minmax"/"minimax"/ -> bad\.json:4:[0-9]+: objective.*minmax
s/\[1, 2, 3\]/[1, -2, 3]/ -> bad\.json:5:[0-9]+: time_ms\[0\]\[1\].*-2
s/\[1, 2, 3\]/[1, "2", 3]/ -> bad\.json:5:[0-9]+: time_ms\[0\]\[1\]
s/\[1, 2, 3\]/[1, 2]/ -> bad\.json:5:[0-9]+: time_ms\[0\]
s/"chain"/"chian"/ -> bad\.json:2:[0-9]+: kind.*chain
EOF
rows dag <<'EOF'
s/\[1, 7, 0.5\]/[1, 9, 0.5]/ -> bad\.json:6:[0-9]+: edges\[0\]
s/\[1, 7, 0.5\]/[1, 7, 0.5], [7, 1, 0.5]/ -> bad\.json:6:[0-9]+: .*(cycle|circle)
s/\[7, 1, 2/[1, 1, 2/ -> bad\.json:5:[0-9]+: nodes\[1\]
s/\[7, 1, 2/[7, -1, 2/ -> bad\.json:5:[0-9]+: nodes\[1\]
s/"accelerators": 2/"accelerators": 1000000000/ -> bad\.json:3:[0-9]+: accelerators
EOF
rows distribute <<'EOF'
s/"total": 14/"total": -14/ -> bad\.json:2:[0-9]+: total
s/"total": 14/"total": 1e30/ -> bad\.json:2:[0-9]+: total
s/"size": 2/"size": 0/ -> bad\.json:5:[0-9]+: replicas\[1\]\.size
s/"per_microbatch_ms": 4/"per_microbatch_ms": -4/ -> bad\.json:4:[0-9]+: replicas\[0\]\.per_microbatch_ms
s/"per_microbatch_ms": 4/"per_microbatch": 4/ -> bad\.json:4:[0-9]+: .*per_microbatch_ms
EOF
rows fold <<'EOF'
s/"ranks": 2/"ranks": 3/ -> bad\.json:3:[0-9]+: ranks
s/"rank": \[0, 1\]/"rank": [0, 2]/ -> bad\.json:3:[0-9]+: rank\[1\].*2
s/"rank": \[0, 1\]/"rank": [0]/ -> bad\.json:3:[0-9]+: rank: .*one per stage
s/"rank": \[0, 1\]/"placement": "vee"/ -> bad\.json:3:[0-9]+: placement.*fold
s/"ranks": 2, // -> bad\.json:.*ranks
EOF
rows replicas <<'EOF'
s/"devices": 2/"devices": 0/ -> bad\.json:3:[0-9]+: devices
s/"sync_ms": \[9, 9\]/"sync_ms": [9]/ -> bad\.json:4:[0-9]+: widths\[0\]\.sync_ms.*one per layer
s/"width": 1/"width": -1/ -> bad\.json:4:[0-9]+: widths\[0\]\.width
s/"time_ms": \[2, 2\]/"time_ms": [2, -2]/ -> bad\.json:6:[0-9]+: widths\[0\]\.options\[1\]\.time_ms\[1\]
s/"time_ms": \[2, 2\]/"times_ms": [2, 2]/ -> bad\.json:6:[0-9]+: .*time_ms
EOF
rows joint <<'EOF'
s/"total": 12/"total": -1/ -> bad\.json:2:[0-9]+: total
s/"copies": 2/"copies": 1000000/ -> bad\.json:4:[0-9]+: pipelines\[0\]\.copies
s/\[2, 1\]/[2]/ -> bad\.json:4:[0-9]+: pipelines\[0\]\.time_ms\[1\]
s/"max": 7/"most": 7/ -> bad\.json:5:[0-9]+: .*most.*max
EOF
rows curve <<'EOF'
s/\[8, 20\]/[8, 5]/ -> bad\.json:4:[0-9]+: replicas\[0\]\.time_ms\[1\]: .*convex
s/\[8, 20\]/[8, 3]/ -> bad\.json:4:[0-9]+: replicas\[0\]\.time_ms\[2\]\[1\]: .*fall
s/\[8, 20\]/[4, 20]/ -> bad\.json:4:[0-9]+: replicas\[0\]\.time_ms\[2\]\[0\]: .*above 4
s/"sum"/"least"/ -> bad\.json:2:[0-9]+: objective.*minvar
EOF

# ---- standard input, and a bad file among good ones --------------------------------------------
timeout -k 2 "$HANG" "$HETVIZ" solve - <plan.good >out 2>err
rc=$?
holds 'standard input is checked alike' [ "$rc" -eq 3 ]
cp cluster.good good.json
printf '{' >bad.json
run check good.json bad.json
holds 'check: a bad file after a good one' [ "$rc" -eq 3 ]
says 'check: names the bad one' err 'bad\.json:[0-9]+:[0-9]+: '
run check bad.unknown
holds 'check: a file that is not there' [ "$rc" -eq 3 ]
printf 'return {' >bad.lua
run check bad.lua
holds 'check: a plugin that does not parse' [ "$rc" -eq 5 ]
says 'check: names its line' err 'bad\.lua:1:'
# a stage that asks for layers the model does not have: a finding, not a crash
run plan -c two-generations -m llama-3-8b -s uniform --out "$work/good.json"
sed 's/"layers": \[0, [0-9]*\]/"layers": [0, 99]/' "$work/good.json" >"$work/far.json"
holds 'layers beyond the model: the plan was changed' sh -c '! cmp -s "$1" "$2"' - "$work/good.json" "$work/far.json"
expect 'layers beyond the model' 1 eval "$work/far.json"
says 'layers beyond the model: how many there are' err 'the model has only 32'
finish
