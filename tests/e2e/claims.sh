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
    seconds=$(number "$s.json" all_reduce_s)
    holds "$s: no less than the bytes take" least 0.0711839744 "$seconds"
    holds "$s: no more than 1.2 times that" least "$seconds" 0.0854
done

# ---- what formulas leave out --------------------------------------------------------------------------
# A strategy that predicts a time says which parts of the time its formula does not count.
expect 'strategies are listed' 0 strategies --json
ids=$(sed -n 's/^ *"id": "\(.*\)",*$/\1/p' out)
claims=0
for s in $ids; do
    run plan -c two-generations -m gpt3-350m -j small -s "$s" --out "$s.plan"
    if [ "$rc" = 0 ] && grep -q '"claimed"' "$s.plan"; then
        claims=$((claims + 1))
        holds "$s: the claim says what it leaves out" grep -q '"leaves_out": "[a-z]' "$s.plan"
    fi
done
holds 'there are many claims' least 15 "$claims"

# ---- memory of formulas --------------------------------------------------------------------------------
# Both refused for some ten MiB by formulas that left out the buffers and communicators of pipelines,
# although shallower plans fit.
for s in hetpipe preduce; do
    expect "$s holds 6.7 billion parameters on spot-mix" 0 plan -c spot-mix -m gpt3-6.7b -j small -s "$s" --out "$s.json"
    holds "$s: at least as fast as the plan known by hand" least "$(number "$s.json" iteration_s)" \
        "$([ $s = hetpipe ] && echo 9.38 || echo 12.95)"
done

# ---- HeterPS: money for a rate -------------------------------------------------------------------------
# The learned types never cost more than one type for all layers, which learning starts from.
for s in reinforce single; do
    expect "heterps, 10 sequences per second, $s" 0 plan -c two-generations -m gpt3-1.3b -j small -s heterps -o rate=10 -o search=$s --out "rate-$s.json"
done
holds 'learned types cost no more than one type' least "$(number rate-reinforce.json cost_usd)" "$(number rate-single.json cost_usd)"
holds 'nor more than the cheapest of all' least "$(number rate-reinforce.json cost_usd)" "$(number rate-reinforce.json cheapest_usd)"
# The formula counts no waiting: where the simulated rate is lower than the one that was asked for, it is said.
expect 'heterps misses a rate' 0 plan -c a100-v100-t4 -m gpt3-1.3b -j small -s heterps -o rate=30
says 'the missed rate with figures' out '^warning +the plan misses the rate: 30 sequences per second were asked for, the simulation gives 29\.'
# A kind without a price is not compared with dollars.
cat >unpriced.json <<'END'
{"format": "hetviz.cluster/1", "name": "unpriced",
 "nodes": [{"name": "a", "count": 1, "device": "A100-SXM-80GB", "devices": 4, "price_usd_per_hour": 8},
           {"name": "m", "count": 1, "device": "Mine", "devices": 4}],
 "devices": {"Mine": {"memory_GiB": 40, "dense_TFLOPS": {"fp16": 200}, "bandwidth_GBps": 1500}}}
END
expect 'heterps with a kind without a price' 0 plan -c unpriced.json -m gpt3-350m -j small -s heterps -o rate=5 --out mixed.json
says 'warns that prices are unknown' out '^warning +Mine without a price: types of device are compared by FLOP/s, not in USD'
holds 'claims no least cost' [ -z "$(number mixed.json cheapest_usd)" ]

# ---- nested task graphs ---------------------------------------------------------------------------
# Whole models on single V100s, or on groups as large as those of the A100s, do not fit: replicas of
# unequal groups do.
cat >nest.json <<'END'
{"format": "hetviz.cluster/1", "name": "nest",
 "nodes": [{"name": "a", "count": 1, "device": "A100-SXM-80GB", "devices": 2, "nic": {"bandwidth_GBps": 10}},
           {"name": "v", "count": 2, "device": "V100-SXM2-16GB", "devices": 4, "nic": {"bandwidth_GBps": 10}}],
 "network": {"bandwidth_GBps": 10, "latency_us": 5}}
END
expect "whale: replicas of equal groups do not fit" 1 plan -c nest.json -m gpt3-1.3b -j small -s whale -o mode=replicate
expect "whale: split inside replica does" 0 plan -c nest.json -m gpt3-1.3b -j small -s whale -o mode=nest --out nested.json
says "whale: the V100s split the layers" nested.json '"tp": 4'
says "whale: its replicas are unequal groups" nested.json '"devices": "a\[0\].\*", .*"tp": 1, "dp": 2'
expect "whale: the nest keeps every rule" 0 check nested.json
steps=$(sed -n 's/^ *"micro_batches": \([0-9]*\),/\1/p' nested.json | head -n 1)
holds "whale: M x the slowest share + all-reduce" awk -v t="$(number nested.json iteration_s)" \
    -v m="$steps" -v s="$(number nested.json slowest_s)" \
    -v r="$(number nested.json all_reduce_s)" 'BEGIN { d = t - (m * s + r); exit !(d * d < 1e-18) }'

# A V100 with 16 GB holds no model of its own: it splits the layers with the A100 of 40 GB, in heads
# as 312 to 125 TFLOP/s, beside a replica of two larger A100.
cat >mix.json <<'END'
{"format": "hetviz.cluster/1", "name": "mix",
 "nodes": [{"name": "a", "count": 1, "device": "A100-SXM-40GB", "devices": 1, "nic": {"bandwidth_GBps": 50}},
           {"name": "v", "count": 1, "device": "V100-SXM2-16GB", "devices": 1, "nic": {"bandwidth_GBps": 50}},
           {"name": "c", "count": 1, "device": "A100-SXM-80GB", "devices": 2, "nic": {"bandwidth_GBps": 50}}],
 "network": {"bandwidth_GBps": 50, "latency_us": 5}}
END
expect "whale: unequal shards inside unequal replicas" 0 plan -c mix.json -m gpt3-1.3b -j small -s whale -o mode=nest --out mixed.json
says "whale: 11 heads on the A100, 5 on the V100" mixed.json '"shares": \[11, 5\]'
says "whale: 5 of 8 sequences of a step on the larger replica" mixed.json '"micro_batch": 5,'
expect "whale: that nest keeps every rule" 0 check mixed.json

# ---- claims of plugins ------------------------------------------------------------------------------
HETVIZ_PLUGINS=$work/plugins
export HETVIZ_PLUGINS
mkdir "$HETVIZ_PLUGINS"
claiming() { # claiming ID TERMS: a plugin whose claim has these terms
    cat >"$HETVIZ_PLUGINS/$1.lua" <<END
return { api = 1, id = "$1", title = "Claims", kind = "planner", summary = "claims",
  plan = function() return hv.strategy("uniform") end,
  claim = function()
    return { iteration_s = 1.5, formula = "f", terms = $2 }
  end }
END
}
claiming no-terms '{}'
expect 'a claim without terms' 0 plan -c two.json -m gpt3-350m -j small -s no-terms --out no-terms.json
holds 'a claim without terms is kept' [ "$(sed -n '/"claimed"/,$p' no-terms.json | sed -n 's/.*"iteration_s": \([0-9.]*\).*/\1/p' | head -n 1)" = 1.5 ]
expect 'a composition whose first strategy claims' 0 plan -c two.json -m gpt3-350m -j small -s no-terms+zero3
says 'whose claim it is' out 'claimed +1.5 s by f \(the formula of no-terms for the plan as changed by zero3\)'
claiming bad-terms '{ a = "many" }'
expect 'a claim that no plan file can hold' 5 plan -c two.json -m gpt3-350m -j small -s bad-terms
says 'names the key and the line' err 'bad-terms.lua:3: claim\(\) of bad-terms: claimed.terms.a: expected a number, found "many"'
finish
