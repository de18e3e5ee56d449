#!/bin/sh
# compare --target: a plan is marked yes where export writes it, else with the reason for which export
# refuses it.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
inputs='-c two-generations -m llama-3-8b'
limits='--budget 60'

# cell STRATEGY: its cell in the column of the target, which begins below the target's name
cell() {
    # bytes are columns in this locale, once the dashes of missing figures are one byte
    sed 's/–/-/g' out | awk -v name="$1" -v target="$target" '
        !from && index($0, "strategy") { from = index($0, target); next }
        $2 == name { print substr($0, from) }'
}
# ---- the table says what export does --------------------------------------------------------------
for strategy in uniform whale metis; do
    # shellcheck disable=SC2086 # several words
    expect "$strategy has a plan" 0 plan $inputs $limits -s "$strategy" --out "$strategy.json"
done
for target in megatron flagscale deepspeed accelerate; do
    # shellcheck disable=SC2086
    expect "compare for $target" 0 compare $inputs $limits -s uniform,whale,metis --target "$target"
    cp out table
    says "$target: the column is explained" out "^$target: whether it can launch the plan"
    for strategy in uniform whale metis; do
        cp table out
        said=$(cell "$strategy")
        run export "$strategy.json" --to "$target"
        case $said in
        yes) holds "$target: the plan of $strategy is exported" [ "$rc" -eq 0 ] ;;
        *)
            holds "$target: the plan of $strategy is refused" [ "$rc" -eq 1 ]
            holds "$target, $strategy: for the reason '$said'" grep -qF "cannot say this plan: $said" err
            ;;
        esac
    done
done
# deepspeed pipelines have equal stages with 1f1b: uniform alone; accelerate has no stages
target=deepspeed
# shellcheck disable=SC2086
expect 'some can, some cannot' 0 compare $inputs $limits -s uniform,whale --target deepspeed
holds 'uniform can' [ "$(cell uniform)" = yes ]
holds 'whale cannot' [ "$(cell whale)" = 'stage 0: unequal shares of a micro-batch' ]

# ---- the same in JSON -----------------------------------------------------------------------------
# shellcheck disable=SC2086
expect 'as JSON' 0 compare $inputs $limits -s uniform,whale --target deepspeed --json
holds 'is JSON' is_json out
tr -d ' \n' <out >line
holds 'JSON: can' grep -qF '"launch":{"target":"deepspeed","can":true}' line
holds 'JSON: cannot, with the reason' grep -qF \
    '"launch":{"target":"deepspeed","can":false,"reason":"stage0:unequalsharesofamicro-batch"}' line
# without the option nothing of it is there
# shellcheck disable=SC2086
expect 'without a target' 0 compare $inputs $limits -s uniform,whale --json
holds 'JSON: no member without a target' [ "$(grep -c '"launch"' out)" -eq 0 ]

# ---- plans that no target launches ----------------------------------------------------------------
# every device holds the whole model and its states: 8 billion parameters, 16 bytes each or more
oom='-s manual -o tp=1 -o pp=1 -o allow_oom=true'
target=megatron
# shellcheck disable=SC2086
run compare $inputs $oom --target megatron
holds 'a plan beyond memory is not launched' [ "$(cell manual | cut -c 1-17)" = 'it breaks a rule:' ]
# shellcheck disable=SC2086
{
    run plan $inputs $oom --out oom.json
    expect 'export refuses it too' 1 export oom.json --to megatron
    says 'for the rule' err 'the plan cannot run'
    target=report
    run compare $inputs $oom --target report
    holds 'a report of it can be written' [ "$(cell manual)" = yes ]
    expect 'as export does' 0 export oom.json --to report -q
}
# the price of the objective is no rule: the plan is launched, with its mark
cat >cheap.json <<'JSON'
{ "format": "hetviz.job/1", "global_batch": 256, "objective": { "max_usd_per_hour": 1 } }
JSON
target=megatron
# shellcheck disable=SC2086
run compare $inputs $limits -j cheap.json -s uniform --target megatron
says 'the plan is over the price' out 'uniform .* over '
holds 'and can be launched' [ "$(cell uniform)" = yes ]
# shellcheck disable=SC2086
run compare $inputs $limits -s hexgen -o mode=serve --target megatron
says 'a serving plan names its reason' out 'hexgen .*; megatron: a plan that serves'

# ---- the option -----------------------------------------------------------------------------------
# shellcheck disable=SC2086
expect 'no such target' 2 compare $inputs -s uniform --target fancy
says 'the error lists targets' err 'megatron'
# shellcheck disable=SC2086
expect 'any is no program' 2 compare $inputs -s uniform --target any
finish
