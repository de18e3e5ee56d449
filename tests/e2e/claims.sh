#!/bin/sh
# What the formulas of strategies predict, on inputs small enough for a calculation by hand.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

# ---- gradients of a model -------------------------------------------------------------------------
# gpt3-350m has 355,919,872 parameters, its tied embedding counted once: 711,839,744 bytes of
# 16-bit gradients. Two ranks exchange 2 (n - 1) / n of them over 10 GB/s: 71.18 ms.
cat >two.json <<'END'
{"format": "hetviz.cluster/1", "name": "two",
 "nodes": [{"name": "a", "count": 2, "device": "A100-SXM-80GB", "devices": 1, "nic": {"bandwidth_GBps": 10}}],
 "network": {"bandwidth_GBps": 10, "latency_us": 5}}
END
for term in amp:all_reduce_s fireflyer:ring_s; do
    s=${term%%:*} key=${term#*:}
    expect "$s on two devices" 0 plan -c two.json -m gpt3-350m -j small -s "$s" --out "$s.json"
    holds "$s: bytes of the gradients over 10 GB/s" [ "$(number "$s.json" "$key")" = 0.0711839744 ]
done
# those that price the exchange as the simulator does, with what a ring reaches of the link
for s in sailor hethub whale varuna; do
    expect "$s on two devices" 0 plan -c two.json -m gpt3-350m -j small -s "$s" --out "$s.json"
    holds "$s: no more than 1.2 times that" least "$(number "$s.json" all_reduce_s)" 0.0854
done
finish
