#!/bin/sh
# Every strategy (of a family one) twice on one sample: the same bytes whatever the folder, a plan
# that eval, gantt, explain and check accept. (plans.sh runs them on all samples.)
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

strategies=$(strategies_once)

# ---- same bytes, whatever the folder, twice ------------------------------------------------------
inputs='-c two-generations -m llama-3-8b -j small'
"$HETVIZ" strategies --kind experts --json >experts.json
"$HETVIZ" strategies --json | awk -F'"' '$2 == "id" { id = $4 } $2 == "needs_model" && $4 == "graph" { print id }' >of_graphs
for s in $strategies; do
    [ "$s" != hexgen ] || continue # it only serves: modes.sh
    if [ "$s" = distmm ] || grep -q "\"id\": \"$s\"" experts.json; then
        # the model has no towers and no experts
        # shellcheck disable=SC2086
        run plan $inputs -s "$s" --out none.json
        holds "plan $s: exit 1" [ "$rc" -eq 1 ]
        holds "plan $s: no file without a plan" [ ! -e none.json ]
        says "plan $s: the reason" err 'no layers with experts|needs a model of kind modules'
        continue
    fi
    if grep -qx "$s" of_graphs; then # graph_strategies.sh has their plans
        # shellcheck disable=SC2086
        run plan $inputs -s "$s" --out none.json
        holds "plan $s: exit 1" [ "$rc" -eq 1 ]
        says "plan $s: what to do" err 'graph=true'
        continue
    fi
    # shellcheck disable=SC2086 # a list of words
    run plan $inputs -s "$s" --out one.json
    holds "plan $s: exit 0" [ "$rc" -eq 0 ]
    # shellcheck disable=SC2086
    run plan $inputs -s "$s" --out two.json --seed 1
    same "plan $s: same bytes twice, and with the default seed" one.json two.json
    # shellcheck disable=SC2086
    run plan $inputs -s "$s" --json
    same "plan $s: --json prints what --out writes" one.json out
    judged "plan $s" one.json
    # sequences add up to the batch of the job
    run gantt one.json --ascii --width 100
    holds "gantt of $s: exit 0" [ "$rc" -eq 0 ]
    expect "gantt of $s: trace" 0 gantt one.json --trace g.json
    holds "gantt of $s: trace is JSON" is_json g.json
    expect "explain $s" 0 explain one.json
    expect "check $s" 0 check one.json
    # from another folder, the plan still finds what it names
    mkdir -p elsewhere && cp one.json elsewhere/
    (cd elsewhere && timeout "$HANG" "$HETVIZ" eval one.json --json) >moved.out 2>err
    run eval one.json --json
    same "eval of $s from another folder" out moved.out
done
finish
