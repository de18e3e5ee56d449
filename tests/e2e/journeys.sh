#!/bin/sh
# A newcomer brings a cluster of one's own: 3 x 8 A100 80 GB and 5 x 4 V100 32 GB on 25 GbE, with a config.json, and
# goes from the Welcome screen to a Gantt chart and a file of the plan. By hand in at most 35 keys, by import of what
# `scontrol show node` prints in at most 12. The keys are counted in the scripts that are run.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
mkdir -p "$work/desk"
cd "$work/desk" || exit 1

cat >config.json <<'END'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048, "intermediate_size": 5632,
 "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4, "vocab_size": 32000,
 "max_position_embeddings": 2048, "rms_norm_eps": 1e-05, "tie_word_embeddings": false}
END
cat >scontrol.txt <<'END'
NodeName=a1 Gres=gpu:a100-sxm-80gb:8 ActiveFeatures=25gbe
NodeName=a2 Gres=gpu:a100-sxm-80gb:8 ActiveFeatures=25gbe
NodeName=a3 Gres=gpu:a100-sxm-80gb:8 ActiveFeatures=25gbe
NodeName=v[1-5] Gres=gpu:v100-sxm2-32gb:4 ActiveFeatures=25gbe
END
cat >hand.script <<'END'
:screen welcome
wait Which plan
keys 1
wait 5 nodes
keys Gd
wait 3 nodes
keys e<Enter>5x4<Enter>
wait 5 x 4
keys <Esc>ke<Enter>3<Enter>
wait 3 x 8
keys L<Enter>25GbE<Enter>
wait 8 nodes, 44 GPUs
keys 2ic<Tab><Enter><Enter>
wait u undoes the import
keys 3<Enter>
settle
keys 4E
wait auto-1.json
keys <Enter>
wait plan written to auto-1.json
keys 5
wait critical
END
cat >import.script <<'END'
:screen welcome
wait i       your cluster
keys is<Tab><Space>c<Tab><Enter>
wait network of 25 Gb/s, by a feature
keys <Enter>
wait 44 GPUs of 2 kinds
keys <Enter>
settle
keys E<Enter>
wait plan written to auto-1.json
keys <Enter>
wait critical
END

# keys_of SCRIPT: a name in angle brackets is one key
keys_of() {
    sed -n 's/^keys //p' "$1" | sed 's/<[A-Za-z-]*>/K/g' | tr -d '\n' | wc -c
}
# journey NAME SCRIPT MOST: the keys, the chart at the end, and what the file says
journey() {
    _n=$(keys_of "$2")
    holds "$1: $_n keys, at most $3" [ "$_n" -le "$3" ]
    rm -f auto-1.json
    expect "$1" 0 --script "$2" --size 80x24
    holds "$1: the file of the plan" [ -s auto-1.json ]
    expect "$1: the plan can be judged" 0 eval auto-1.json
    holds "$1: the own model" grep -q "\"hidden\": 2048" auto-1.json
    holds "$1: 3 nodes of 8 A100 80 GB" grep -q '"device": "A100-SXM-80GB"' auto-1.json
    holds "$1: nodes of 4 V100 32 GB" grep -q '"device": "V100-SXM2-32GB"' auto-1.json
    holds "$1: 25 Gb/s" grep -q '"bandwidth_GBps": 3.125' auto-1.json
}
journey 'by hand' hand.script 35
journey 'by import' import.script 12
finish
