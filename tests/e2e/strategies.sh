#!/bin/sh
# What strategies answer: that the order of a cluster file decides nothing, and plans against others
# that are known.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

# simulated FILE: the simulated seconds of an iteration of a plan file
simulated() {
    figures "$1" >figures.out
    number figures.out iteration_s
}

# ---- the order of node groups -------------------------------------------------------------------------
# Three files of one cluster of three kinds in two zones: groups in an order, the same backwards with
# other names, and each node a group of its own, in turns.
nodes() { # nodes FILE GROUP…: a cluster of these groups, NAME:KIND:COUNT:DEVICES:NIC:ZONE
    _file=$1 _sep=
    shift
    {
        echo '{"format": "hetviz.cluster/1", "name": "mixed", "nodes": ['
        for _group; do
            echo "$_sep$(echo "$_group" | awk -F: '{ printf "{\"name\": \"%s\", \"device\": \"%s\", \"count\": %d, \"devices\": %d, \"nic\": {\"bandwidth_GBps\": %s, \"latency_us\": 10}, \"zone\": \"%s\"}", $1, $2, $3, $4, $5, $6 }')"
            _sep=,
        done
        echo '], "network": {"bandwidth_GBps": 12.5, "latency_us": 20, "links": [{"between": ["east", "west"], "bandwidth_GBps": 1.25, "latency_us": 600}]}}'
    } >"$_file"
}
nodes order1.json a:A100-SXM-40GB:2:4:50:east g:A10G-24GB:2:4:5:east v:V100-SXM2-32GB:1:4:3.125:west w:A100-SXM-40GB:1:4:50:west
nodes order2.json m:A100-SXM-40GB:1:4:50:west n:V100-SXM2-32GB:1:4:3.125:west o:A10G-24GB:2:4:5:east p:A100-SXM-40GB:2:4:50:east
nodes order3.json g:A10G-24GB:1:4:5:east w:A100-SXM-40GB:1:4:50:west a:A100-SXM-40GB:1:4:50:east v:V100-SXM2-32GB:1:4:3.125:west h:A10G-24GB:1:4:5:east b:A100-SXM-40GB:1:4:50:east
for s in heterps disttrain helix metis; do
    for k in 1 2 3; do
        expect "$s, order $k of the node groups" 0 plan -c "order$k.json" -m gpt3-350m -j small -s "$s" --out "$s-$k.json"
    done
    first=$(simulated "$s-1.json")
    for k in 2 3; do
        holds "$s: order $k gives the plan of order 1" [ "$(simulated "$s-$k.json")" = "$first" ]
    done
done

# ---- DistTrain: the depth of the backbone -------------------------------------------------------------
# By hand: 8 GPUs for the encoder and 56 for a backbone of 7 stages take 6.60 s.
expect 'disttrain on a model of two modules' 0 plan -c homogeneous -m two-towers -s disttrain --out towers.json
holds 'disttrain: no slower than a split by hand' least "$(simulated towers.json)" 6.60

# ---- Helix: zones and the exchange of gradients -------------------------------------------------------
# No stage has nodes of both regions, which takes 8.74 s with two stages.
expect 'helix on two regions' 0 plan -c two-regions -m gpt3-13b -j small -s helix --out regions.json
holds 'helix: no slower than a stage in each region' least "$(simulated regions.json)" 8.74

# ---- Metis: its budget --------------------------------------------------------------------------------
expect 'metis' 0 plan -c a100-v100-t4 -m gpt3-1.3b -j small -s metis --out budget.json
expect 'metis with a large budget' 0 plan -c a100-v100-t4 -m gpt3-1.3b -j small -s metis -o budget=1000000 --out large.json
holds 'metis: the default budget loses nothing' least "$(number budget.json pipeline_s)" "$(number large.json pipeline_s)"
expect 'metis with a small budget' 0 plan -c a100-v100-t4 -m gpt3-1.3b -j small -s metis -o budget=1 --out one.json
says 'what the budget leaves out' out '^warning +[0-9]+ of [0-9]+ combinations of order, groups and micro-batches were left out by the budget of 1 '
holds 'and as a term' least 1000 "$(number one.json combinations_left_out)"
finish
