#!/bin/sh
# The order in which a cluster file lists its nodes changes no strategy's plan, and no plan but that
# of auto depends on whether equal nodes form one group or several: the simulated time is the same to
# the last digit.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

a() { # a NAME COUNT: nodes of four A100
    echo "{\"name\": \"$1\", \"count\": $2, \"device\": \"A100-SXM-40GB\", \"devices\": 4, \"zone\": \"east\", \"nic\": {\"bandwidth_GBps\": 25}}"
}
v() {
    echo "{\"name\": \"$1\", \"count\": $2, \"device\": \"V100-SXM2-16GB\", \"devices\": 4, \"zone\": \"east\", \"nic\": {\"bandwidth_GBps\": 12.5}}"
}
g() {
    echo "{\"name\": \"$1\", \"count\": $2, \"device\": \"A10G-24GB\", \"devices\": 4, \"zone\": \"west\", \"nic\": {\"bandwidth_GBps\": 5}}"
}
cluster() { # cluster FILE NODES...: a cluster of these groups
    file=$1
    shift
    {
        echo '{"format": "hetviz.cluster/1", "name": "mixed", "nodes": ['
        comma=
        for nodes in "$@"; do
            echo "$comma$nodes"
            comma=,
        done
        echo '], "network": {"bandwidth_GBps": 25, "latency_us": 5,'
        echo ' "links": [{"between": ["east", "west"], "bandwidth_GBps": 5, "latency_us": 1000}]}}'
    } >"$file"
}
cluster written.json "$(a a 1)" "$(v v 2)" "$(g g 2)"
cluster reversed.json "$(g g 2)" "$(v v 2)" "$(a a 1)"
cluster turns.json "$(g g1 1)" "$(v v1 1)" "$(a a 1)" "$(v v2 1)" "$(g g2 1)"
expect 'the cluster can be read' 0 check written.json
expect 'strategies are listed' 0 strategies --json
ids=$(sed -n 's/^ *"id": "\(.*\)",*$/\1/p' out)
holds 'there are many strategies' least 20 "$(echo "$ids" | wc -l)"

for s in $ids; do
    [ "$s" = manual ] && continue # it takes the groups in the order of the file: a layout as given
    for order in written reversed turns; do
        # a plan, or the refusal, which names no address
        "$HETVIZ" plan -c $order.json -m gpt3-1.3b -j small -s "$s" --out "$s-$order.plan" >/dev/null 2>"$s-$order.err" || :
        if [ -e "$s-$order.plan" ]; then
            number "$s-$order.plan" iteration_s >"$s-$order.answer"
        else
            cp "$s-$order.err" "$s-$order.answer"
        fi
    done
    holds "$s: groups in reversed order" cmp -s "$s-written.answer" "$s-reversed.answer"
    [ "$s" = auto ] && continue # its local search takes other steps where a group is split
    holds "$s: nodes in turns" cmp -s "$s-written.answer" "$s-turns.answer"
done
finish
