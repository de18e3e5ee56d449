#!/bin/sh
# The guide to families: its files and commands run as printed, and its rows are strategies.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
guide=$root/share/guide/families.md
HETVIZ_PLUGINS=$work/plugins
export HETVIZ_PLUGINS
mkdir -p "$HETVIZ_PLUGINS"
cd "$HETVIZ_PLUGINS" || exit 1
awk '/^```lua [a-z]+\.lua$/ { f = $2; next } /^```$/ { f = "" } f { print > f }' "$guide"
awk '/^```sh$/ { s = 1; next } /^```$/ { s = 0 } s' "$guide" >"$work/commands"
mkdir -p "$work/bin"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$HETVIZ" >"$work/bin/hetviz"
chmod +x "$work/bin/hetviz"
PATH=$work/bin:$PATH
holds 'the guide has commands' test "$(grep -c '^hetviz ' "$work/commands")" -ge 9
while read -r line; do
    timeout -k 2 "$HANG" sh -c "$line" >"$work/out" 2>"$work/err" </dev/null
    rc=$?
    if [ $rc -eq 0 ]; then ok; else no "$line" "exit $rc: $(cat "$work/err")"; fi
done <"$work/commands"
for id in whole-states sharded-states best-buckets mine-1f1b mine-gpipe; do
    "$HETVIZ" strategies --json >"$work/rows" 2>"$work/err"
    holds "$id is a strategy" grep -q "\"id\": \"$id\"" "$work/rows"
    "$HETVIZ" strategies --kind yours >"$work/yours" 2>"$work/err"
    holds "$id is of the kind yours" grep -q "$id" "$work/yours"
done
expect 'sharded states on a100-v100-t4' 0 plan -c a100-v100-t4 -m gpt3-1.3b -j small -s sharded-states --out "$work/plan.json"
expect 'its plan is valid' 0 eval "$work/plan.json"
holds 'its states are sharded' grep -q '"zero"' "$work/plan.json"
# knobs that a strategy fixes, of rows of families and of others
"$HETVIZ" strategies --json >"$work/rows" 2>"$work/err"
fixes() { # fixes ID KNOB VALUE
    sed -n "/\"id\": \"$1\"/,/\"searches\"/p" "$work/rows" >"$work/row"
    holds "$1 fixes $2" grep -q "\"$2\": $3" "$work/row"
}
fixes dsp cp.scheme '"dsp"'
fixes pipedream schedule.name '"pipedream"'
fixes varuna schedule.name '"varuna"'
fixes mcap tp 1
fixes zero2 zero.stage 2
# rows of a family run in one process and share its prices: each gets the plan that it has alone
plan_of() { sed -n '/^      "plan": {$/,/^      }/p' "$1"; }
"$HETVIZ" compare -c a100-v100-t4 -m gpt3-1.3b -s ddp,zero3,fsdp --json >"$work/together" 2>"$work/err"
for id in ddp zero3 fsdp; do
    "$HETVIZ" compare -c a100-v100-t4 -m gpt3-1.3b -s $id --json >"$work/alone" 2>"$work/err"
    plan_of "$work/alone" >>"$work/alone-plans"
done
holds 'three plans' [ "$(grep -c '"plan": {' "$work/together")" -eq 3 ]
sort "$work/alone-plans" >"$work/a"
plan_of "$work/together" | sort >"$work/b"
holds 'plans are the same in one process and in three' cmp -s "$work/a" "$work/b"
finish
