#!/bin/sh
# `hetviz import`: documents on standard output or in a file, the report on standard error, exit
# codes, and that the documents are ones that the other commands take.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
seeds=$HETVIZ_ROOT/tests/fuzz/corpus/import

# every seed that is whole comes to a document that `check` takes
for f in "$seeds"/*; do
    case ${f##*/} in
    nasty-* | onnx) continue ;;
    esac
    expect "import ${f##*/}" 0 import auto "$f" --out doc.json
    says "report of ${f##*/}" err '^understood$'
    expect "check ${f##*/}" 0 check doc.json
done
for f in "$seeds"/nasty-* "$seeds/onnx"; do
    run import auto "$f"
    holds "${f##*/} is refused or read" test "$rc" -eq 0 -o "$rc" -eq 1 -o "$rc" -eq 3
    holds "${f##*/} says why" test -s err
done

expect 'the format may be named' 0 import nvidia-smi-topo "$seeds/nvidia_smi_topo" --out a.json
expect 'and found out' 0 import auto "$seeds/nvidia_smi_topo" --out b.json
same 'the same comes of both' a.json b.json
expect 'a document on standard output' 0 import auto "$seeds/nvidia_smi_topo"
holds 'is JSON' is_json out
expect 'the report may be left out' 0 import auto "$seeds/nvidia_smi_topo" --quiet --out a.json
holds 'the report is left out' test ! -s err
expect 'the report as JSON' 0 import auto "$seeds/hf_config" --json --out c.json
holds 'is JSON' is_json out
says 'the report as JSON' out '"parameters": [0-9]'
says 'the report as JSON' out '"understood"'
says 'the report as JSON' out '"guessed"'
says 'the report as JSON' out '"ignored"'
expect 'the document beside it' 0 check c.json
expect 'without a model' 0 import auto "$seeds/deepspeed" --json
says 'without a model' out '"parameters": null'
expect 'report and document on one output' 2 import auto "$seeds/hf_config" --json --out -
timeout "$HANG" "$HETVIZ" import auto - <"$seeds/slurm-sinfo" >out 2>err
holds 'from standard input' test $? -eq 0
says 'hosts' out '"name": "a001"'

expect 'unknown format' 2 import nvidia_smi_xlm "$seeds/nvidia_smi_topo"
says 'unknown format' err 'did you mean "nvidia_smi_xml"'
expect 'no file' 2 import auto
expect 'no such file' 3 import auto nowhere.txt
expect 'of no format' 3 import auto "$HETVIZ_ROOT/Makefile"
says 'of no format' err 'help import'
expect 'our own file' 3 import auto "$HETVIZ_ROOT/samples/clusters/desktop.json"
says 'our own file' err "hetviz's own"
echo 'bash: nvidia-smi: command not found' >failed.txt
expect 'a program that failed' 1 import auto failed.txt
says 'a program that failed' err 'command not found'

# a trace of more than 64 MiB is read piece by piece, packed or not
awk 'BEGIN { print "{\"traceEvents\":["
    for (i = 0; i < 460000; i++)
        printf "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm_%d\",\"pid\":0,\"tid\":%d,\"ts\":%d.5,\"dur\":8,\"args\":{\"External id\":%d,\"grid\":[1,2,3],\"block\":[256,1,1],\"stream\":7}},\n", i % 50, i % 4, i * 10, i
    print "{\"ph\":\"i\",\"ts\":1}],\"distributedInfo\":{\"rank\":3,\"world_size\":8}}" }' >big.json
holds 'the trace is large' test "$(wc -c <big.json)" -gt 67108864
expect 'a large trace' 0 import big.json --out big1.json
says 'a large trace' big1.json '"events": 460000'
says 'a large trace: its end' big1.json '"rank": 3'
gzip -1 big.json
expect 'a large trace, packed' 0 import big.json.gz --out big2.json
sed 's/"big.json.gz"/"big.json"/' big2.json >big3.json
same 'the same comes of it packed' big1.json big3.json
rm -f big.json.gz

# cards whose name does not tell the kind, and files of two machines
printf 'NodeName=n1 Gres=gpu:a100:4\n' >nodes.txt
expect 'a guessed card' 0 import nodes.txt --out a.json
says 'a guessed card' err '"a100" may be A100-SXM-40GB'
expect 'a card that the user knows' 0 import nodes.txt --device a100=A100-PCIe-80GB --out a.json
says 'a card that the user knows' a.json 'A100-PCIe-80GB'
expect 'a kind that is none' 2 import nodes.txt --device a100=A100 --out a.json
says 'a kind that is none' err 'no device "A100"'
expect 'a card that is not there' 2 import nodes.txt --device t4=T4-16GB --out a.json
says 'a card that is not there' err 'no card is named "t4"'
printf 'GPU 0: Tesla V100-SXM2-32GB (UUID: GPU-1)\n' >v.txt
expect 'two machines' 0 import nodes.txt v.txt "$seeds/nvidia_smi_L" --out a.json
says 'two machines' a.json 'V100-SXM2-32GB'
says 'two machines' err 'another machine than that of v.txt'

# a launch script becomes a workspace that the planner's own row can judge
expect 'a launch script' 0 import auto "$seeds/megatron_args" --out ws.json
sed -n 's/.*"tp": \([0-9]*\).*/\1/p' ws.json >tp
holds 'with its layout' test "$(cat tp)" = 4
# a schedule becomes a plan that can be timed
expect 'a schedule' 0 import auto "$seeds/pipelining_csv" --out plan.json
expect 'is drawn' 0 gantt plan.json --ascii
expect 'help lists the formats' 0 help import
says 'help lists the formats' out 'nvidia_smi_xml'
finish
