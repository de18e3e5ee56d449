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
claiming bad-terms '{ a = "many" }'
expect 'a claim that no plan file can hold' 5 plan -c two.json -m gpt3-350m -j small -s bad-terms
says 'names the key and the line' err 'bad-terms.lua:3: claim\(\) of bad-terms: claimed.terms.a: expected a number, found "many"'
finish
