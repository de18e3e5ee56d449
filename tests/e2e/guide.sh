#!/bin/sh
# The guide to plugins: its files and commands run as printed, its first example has a valid plan on
# every sample cluster, and the balancer and the repair do what the text says.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
guide=$root/share/guide/plugins.md
HETVIZ_PLUGINS=$work/plugins
export HETVIZ_PLUGINS
mkdir -p "$HETVIZ_PLUGINS"
cd "$HETVIZ_PLUGINS" || exit 1
awk '/^```lua [a-z]+\.lua$/ { f = $2; next } /^```$/ { f = "" } f { print > f }' "$guide"
awk '/^```sh$/ { s = 1; next } /^```$/ { s = 0 } s' "$guide" >"$work/commands"
for name in first balancer eager nodes; do
    expect "$name: check" 0 check $name.lua
    expect "$name: selftest" 0 selftest $name.lua
done

# the program under test, by the name the guide uses
mkdir -p "$work/bin"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$HETVIZ" >"$work/bin/hetviz"
chmod +x "$work/bin/hetviz"
PATH=$work/bin:$PATH
holds 'the guide has commands' test "$(grep -c '^hetviz ' "$work/commands")" -ge 10
while read -r line; do
    timeout -k 2 "$HANG" sh -c "$line" >"$work/out" 2>"$work/err" </dev/null
    rc=$?
    if [ $rc -eq 0 ]; then ok; else no "$line" "exit $rc"; fi
done <"$work/commands"

# written by somebody who has read the guide and nothing else
cat >newcomer.lua <<'PLUGIN'
return {
  api = 1, id = "newcomer", title = "Newcomer", kind = "planner", summary = "A node of every group is a replica.",
  needs = { model = "layers" },
  plan = function(ctx)
    local replicas, time, sizes, micro_batches = {}, {}, {}, ctx.job.global_batch
    for _, g in ipairs(ctx.cluster:groups()) do
      local stage = { devices = g.name .. "[0].0-" .. g.devices - 1, layers = { 0, ctx.model.n_layers },
        tp = g.devices, recompute = "full" }
      local price = g.flops_per_s and g.class ~= "cpu" and hv.cost.stage(stage)
      if price and price.memory.fits and #replicas < micro_batches then
        replicas[#replicas + 1] = { stages = { stage } }
        time[#replicas], sizes[#replicas] = price.forward_s + price.backward_s, 1
      end
    end
    if #replicas == 0 then return nil, "no node holds the model" end
    local split, why = hv.opt.distribute { total = micro_batches, time = time, sizes = sizes }
    if not split then return nil, why end
    for i, r in ipairs(replicas) do r.micro_batches = split.counts[i] end
    return { micro_batch = 1, replicas = replicas }
  end,
}
PLUGIN
expect 'newcomer: check' 0 check newcomer.lua
for cluster in "$root"/samples/clusters/*.json; do
    name=$(basename "$cluster" .json)
    expect "newcomer on $name" 0 plan -c "$name" -m gpt3-1.3b -s newcomer --out "$work/newcomer.json"
    expect "newcomer on $name is valid" 0 eval "$work/newcomer.json"
    expect "first on $name" 0 plan -c "$name" -m gpt3-1.3b -s first --out "$work/first.json"
    expect "first on $name is a plan that eval takes" 0 eval "$work/first.json"
    expect "nodes on $name" 0 plan -c "$name" -m gpt3-1.3b -s nodes --json
done
set -- -c two-generations -m llama-3-8b -o pp=2 -o tp=8 -o recompute=full --json
expect 'what is balanced' 0 plan "$@" -s manual
cp "$work/out" "$work/before"
expect 'balanced' 0 plan "$@" -s manual+balancer
holds 'the balancer helps' least "$(number "$work/out" iteration_s)" "$(number "$work/before" iteration_s)"
expect 'an order in a plan' 0 plan "$@" -s manual+eager --out "$work/order.json"
says 'the order travels' out explicit
HETVIZ_PLUGINS= expect 'and needs no plugin any more' 0 eval "$work/order.json"
expect 'a schedule of a plugin' 0 schedule eager -p 2 -m 2 --json
says 'its order' out '"BW0.0"'
expect 'options of a schedule are checked' 2 schedule eager -p 2 -m 2 -o ahead=99
expect 'a schedule that says no' 1 schedule eager -p 2 -m 2 -v 2
says 'and why' err 'one chunk per rank only'

for folder in "$root"/plugins/*/; do
    holds "$(basename "$folder") has plugin.lua" test -f "$folder/plugin.lua"
done

if have_program luacheck 'style of the Lua files'; then
    style() { # style FOLDER [OPTION…]
        folder=$1
        shift
        luacheck -q --config "$root/.luacheckrc" --no-color "$@" "$folder" >"$work/out" 2>&1
        rc=$?
        if [ $rc -eq 0 ]; then ok; else no "luacheck $folder" "$(grep -m 3 : "$work/out")"; fi
    }
    style "$HETVIZ_PLUGINS" --max-line-length 120 # the examples of the guide
    for folder in "$root/share/lua" "$root/plugins" "$root/tests/lua"; do
        style "$folder"
    done
fi
finish
