-- AMP (Li et al., NeurIPS'22): 3D degrees, placement, layers per stage and micro-batch for clusters
-- whose links or layers differ. Section 3.3: T = Σ e + (gas − 1) · max stage + Σ cuts + T_dp; 3.4:
-- order of the ranks on the devices; 3.5: the cut by dynamic programming over "maximum paid"; 3.6:
-- pipelines of unequal speed get their mini-batches statically. The equations, not the released
-- code, whose stored value forgets the cut's transfer and whose all-reduce sees only the last pair
-- of replicas.
local candidates = require "candidates"
local claims = require "claims"
local grids = require "grids"
local inventory = require "inventory"
local links = require "links"
local numbers = require "numbers"
local oracle = require "testing.oracle"
local pipeline = require "pipeline"
local prices = require "prices"
local reasons = require "reasons"
local search = require "search"

--- Pipelines of a choice. "stages": a stage of all pipelines lies together (one row, with dp ranks
-- in each stage); "pipelines": a pipeline lies together. The same for all micro-batches.
local function pipelines_of(c, order)
  local rows, together = {}, c.together == "stages"
  local size = together and c.tp * c.dp or c.tp
  for r = 1, #order // (size * c.pp) do
    rows[r] = {}
    for s = 1, c.pp do
      rows[r][s] = { devices = numbers.slice(order, ((r - 1) * c.pp + s - 1) * size + 1, size),
        tp = c.tp,
        dp = together and c.dp or 1, zero = c.zero, holders = c.dp }
    end
  end
  return pipeline.joined(rows), #rows
end

--- All choices of degrees, placement and micro-batch that divide the devices and the batch.
local function choices_of(ctx, nodes)
  local layers, list, n, global, tps = ctx.model:layers(), {}, 0, ctx.job.global_batch, {}
  for _, node in ipairs(nodes) do
    n = n + #node.ids
  end
  for _, tp in ipairs(numbers.divisors(inventory.node_size(nodes))) do
    if grids.tp_fits(layers, tp) then
      tps[#tps + 1] = tp
    end
  end
  local orders, at, lists = inventory.orders(nodes), {}, {}
  for i, order in ipairs(orders) do
    at[order] = i
  end
  local outputs = hv.cost.layers { kinds = { nodes[1].kind }, micro_batch = 1 }:sizes "output"
  local sizes = numbers.powers(ctx.options.micro_batch)
  for v in candidates.in_time(search.product { tps, numbers.divisors(n), sizes, orders,
    { "stages", "pipelines" } }) do
    local c = { tp = v[1], dp = v[2], pp = n // (v[1] * v[2]), micro_batch = v[3], order = v[4],
      together = v[5], zero = ctx.options.zero, at = v }
    if c.tp * c.dp * c.pp == n and c.pp <= #layers and global % (c.dp * c.micro_batch) == 0
        and (c.dp > 1 or c.together == "stages") then
      c.total = global // (c.together == "stages" and c.dp * c.micro_batch or c.micro_batch)
      local key = ("%d/%d/%s/%s"):format(c.tp, c.dp, c.together, at[c.order])
      lists[key] = lists[key] or { pipelines_of(c, c.order) }
      c.outputs, c.list, c.pipelines = outputs, lists[key][1], lists[key][2]
      c.entering = c.together == "stages" and c.micro_batch * c.dp or c.micro_batch
      pipeline.set(c.list, c.micro_batch, "none")
      c.bound = pipeline.bound(ctx, c.list, c.total)
      list[#list + 1], c.rank = c, #list + 1
    end
  end
  return list
end

--- Choices that differ from this one in one thing.
local function neighbours(list, c)
  local near = {}
  for _, other in ipairs(list) do
    local same = 0
    for i, v in ipairs(c.at) do
      same = same + (other.at[i] == v and 1 or 0)
    end
    if same == #c.at - 1 then
      near[#near + 1] = other
    end
  end
  return near
end

local function plan(ctx)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local list, fitting = choices_of(ctx, inventory.nodes(devices)), {}
  if #list == 0 then
    return nil, "no degrees divide both the devices and the global batch"
  end
  if ctx.options.search == "anneal" then
    local hot = list[1].bound
    search.anneal { state = list[1], budget = ctx.options.budget, seed = ctx.seed, hot = hot,
      cold = hot / 1000,
      moves = function(c) return neighbours(list, c) end,
      cost = function(c)
        local done = c.done
        if pipeline.evaluate(ctx, c) and not done then
          fitting[#fitting + 1] = c
        end
        return c.claim_s
      end }
  else
    fitting = pipeline.within_bound(list, ctx.options.tries,
      function(c) return pipeline.evaluate(ctx, c) end)
  end
  if #fitting == 0 then
    return nil, reasons.too_small(ctx, list[1].order, "no choice of degrees")
  end
  return candidates.best(fitting, ctx.options.tries)
end

--- The equation on the plan's own figures: hops once, the all-reduce over the slowest link.
local function claim(made, ctx)
  made = prices.table_of(made)
  local parts, worst, sync_s, kinds, heads = claims.parts(ctx, made), 0, 0, prices.kinds(ctx), {}
  for r, replica in ipairs(made.replicas) do
    worst = math.max(worst, claims.seconds(parts[r], 1))
    for s, stage in ipairs(replica.stages) do
      local ids = ctx.cluster:ids(stage.devices)
      local own = prices.chain(ctx, kinds[ids[1]], { tp = stage.tp, micro_batch = 1 })
      heads[s] = heads[s] or { bytes = 0 }
      for i = 1, #ids, stage.tp do
        table.insert(heads[s], ids[i])
      end
      heads[s].bytes = math.max(heads[s].bytes,
        prices.gradient_bytes(ctx, own, stage.layers[1] + 1, stage.layers[2]))
    end
  end
  for _, group in ipairs(heads) do
    sync_s = math.max(sync_s, links.ring(ctx, group, group.bytes))
  end
  return {
    iteration_s = worst + sync_s, terms = { pipeline_s = worst, all_reduce_s = sync_s },
    formula = "sum e + (gas - 1) max stage + cuts + T_dp (AMP, section 3.3)",
  }
end

--- Cut of a homogeneous chain, as text and value.
local function cut_text(e, parts, max, tolls)
  local r, text = hv.opt.partition { n = #e, parts = parts, load = e, sum = 1, max = max,
    toll = tolls }, {}
  for s, range in ipairs(r.stages) do
    text[s] = range[2] - range[1] + 1
  end
  return table.concat(text, "|"), r.value
end

local function selftest(t)
  local src, text, value = "catalogue: amp", cut_text({ 1, 2, 3, 4 }, 2, 3)
  t.equal("e = 1 2 3 4, gas 4, free cuts", text, "3|1", src)
  t.near("its time", value, 28, 1e-9, src)
  text, value = cut_text({ 1, 2, 3, 4 }, 2, 3, { 0, 0, 5 })
  t.equal("with a cut of 5 behind layer 3", text, "2|2", src)
  t.near("its time", value, 31, 1e-9, src)
  local times = { {}, {} }
  for cut = 1, 3 do
    for k, toll in ipairs { { 0, 0, 0 }, { 0, 0, 5 } } do
      times[k][cut] = 10 + toll[cut] + 3 * math.max(cut * (cut + 1) // 2, 10 - cut * (cut + 1) // 2)
    end
  end
  t.equal("all cuts, free and with that one: the best are unique", table.concat(times[1], " ")
      .. "; "
      .. table.concat(times[2], " "), "37 31 28; 37 31 33", src)
  local random, equal = search.generator(7), true
  for _ = 1, 60 do
    local e, tolls, gas, parts = {}, {}, random(12), 1 + random(3)
    for l = 1, 4 + random(5) do
      e[l], tolls[l - 1] = random(9), random(12) - 1
    end
    local best, cuts = math.huge, oracle.cuts(#e, parts)
    for _, ends in ipairs(cuts) do
      local sum, most, from = 0, 0, 0
      for s, to in ipairs(ends) do
        local stage = 0
        for l = from + 1, to do
          stage = stage + e[l]
        end
        sum, most, from = sum + stage + (s < parts and tolls[to] or 0), math.max(most, stage), to
      end
      best = math.min(best, sum + (gas - 1) * most)
    end
    equal = equal and math.abs(best - select(2, cut_text(e, parts, gas - 1, tolls))) < 1e-9
  end
  t.ok("60 random chains: equal to the enumeration of all cuts", equal, src .. ", oracle")
  local list = { { cut = { sum = 4, max = 1 }, copies = { 1 } },
    { cut = { sum = 3, max = 2 }, copies = { 1 } } }
  t.near("mini-batches dealt statically: 9 over 3 + x and 1 + 2 y", pipeline.deal(list, 9), 9, 0,
    "section 3.6, 8 splits by hand")
end

return {
  api = 1, id = "amp", title = "AMP", kind = "hetero",
  system = "AMP: Automatically Finding Model Parallel Strategies with Heterogeneity Awareness, NeurIPS 2022",
  reference = "arXiv:2210.07297",
  summary = "Degrees, placement of the ranks and uneven layers by one equation with the links' speeds.",
  needs = { model = "layers" },
  effort = "quick",
  options = {
    { key = "search", type = "choice", choices = { "bound", "anneal" }, default = "bound",
      help = "all choices in order of a lower bound until none can win, or simulated annealing" },
    { key = "budget", type = "integer", default = 300, min = 10, max = 100000,
      help = "choices that annealing looks at" },
    { key = "micro_batch", type = "integer", default = 16, min = 1, max = 4096,
      help = "most sequences on a rank, in powers of two" },
    { key = "zero", type = "integer", default = 0, min = 0, max = 3,
      help = "optimizer states sharded over replicas: 1; gradients too: 2; weights too: 3" },
    { key = "tries", type = "integer", default = 12, min = 1, max = 1000,
      help = "how many plans that fit are simulated, best formula first" },
  },
  plan = plan,
  claim = claim,
  selftest = selftest,
}
