#!/bin/sh
# Strategies that decide per operator plan real graphs, and the judge simulates all of what they say.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

cat >four.json <<'END'
{"format": "hetviz.cluster/1", "name": "four",
 "nodes": [{"name": "a", "count": 1, "device": "A100-SXM-80GB", "devices": 4}]}
END
sed 's/four/eight/; s/"devices": 4/"devices": 8/' four.json >eight.json

# planned STRATEGY MODEL CLUSTER [OPTIONS…]
planned() {
    strategy=$1 model=$2 cluster=$3
    shift 3
    expect "$strategy plans $model" 0 plan -c $cluster -m "$model" -s "$strategy" "$@" --out p.json --json
    expect "$strategy plans $model once more" 0 plan -c $cluster -m "$model" -s "$strategy" "$@" --out again.json --json
    same "$strategy, $model: same bytes twice" p.json again.json
    expect "$strategy, $model: eval" 0 eval p.json --json
    holds "$strategy, $model: nothing is approximated" sh -c '! grep -q approximated out'
    holds "$strategy, $model: no rule is violated" grep -q '"violations": \[\]' out
    holds "$strategy, $model: layouts of operators" grep -q '"shard"' p.json
}

for strategy in optcnn tensoropt; do
    planned $strategy resnet-50 four.json -o axes=1
    planned $strategy dlrm eight.json
    planned $strategy gpt3-125m four.json -o graph=true -o axes=1
done
expect 'layers are no operators' 1 plan -c four.json -m gpt3-125m -s optcnn
holds 'layers are no operators: what to do' grep -q 'graph=true' err
expect 'a graph without operands' 1 plan -c four.json -m mlp-graph -s optcnn
holds 'a graph without operands: what to do' grep -q 'give its file .tensors., and every operator .in. and .out.' err
finish
