-- HexGen (Jiang et al., ICML'24): serves one model from many replicas on unequal, scattered
-- devices. Section 4: the devices of each region are divided into groups by a genetic search (a
-- device moves, two change places, a group is cut or two are joined); each group becomes a pipeline
-- whose stages have tensor degrees of their own, inside machines, by dynamic programming; the
-- division whose replicas together serve most tokens wins, each with the batch that suits it. It
-- serves only: asked to train, which is the default, it says so.
local genetic = require "genetic"
local grids = require "grids"
local inventory = require "inventory"
local links = require "links"
local numbers = require "numbers"
local prices = require "prices"
local serving = require "serving"

-- sequences of a pass that are judged; the search takes the fourth
local BATCHES = { 1, 4, 16, 64, 128 }

--- The instances of the regions: machines of one zone with what a layer costs on each.
local function regions(ctx, devices, batch)
  local list, by_zone, zones, known, rows = {}, {}, {}, {}, ctx.model:layers()
  for _, d in ipairs(devices) do
    zones[d.id] = d.zone or ""
  end
  local function layer(machine, tp)
    local key = machine.class .. "/" .. tp
    if not known[key] then
      local rate, most, bytes = serving.pace(ctx, machine.kind, machine.memory, tp, batch)
      known[key] = { seconds = batch * ctx.job.sequence / rate, most = most, bytes = bytes }
    end
    return known[key]
  end
  for _, node in ipairs(inventory.nodes(devices)) do
    local zone = zones[node.ids[1]]
    local q = by_zone[zone]
    if not q then
      q = { layers = ctx.model.n_layers, machines = {}, degrees = {}, least = math.huge }
      by_zone[zone], list[#list + 1] = q, q
      for _, tp in ipairs { 1, 2, 3, 4, 6, 8 } do
        q.degrees[#q.degrees + 1] = grids.tp_fits(rows, tp) and tp or nil
      end
      function q.seconds(m, tp)
        return layer(q.machines[m], tp).seconds
      end
      function q.cap(m, tp)
        return layer(q.machines[m], tp).most
      end
      function q.hop(a, b)
        if a == b then
          return 0
        end
        return links.seconds(ctx, q.machines[a].ids[1], q.machines[b].ids[1],
          layer(q.machines[a], 1).bytes)
      end
    end
    local machine = { size = #node.ids, memory = node.memory_bytes, class = node.kind,
      kind = node.kind,
      ids = node.ids }
    table.insert(q.machines, machine)
    q.least = math.min(q.least, q.layers * node.memory_bytes / (layer(machine, 1).most + 1))
  end
  return list
end

--- Device numbers of every stage of a group; takes them from `next_id`, by machine.
local function ids_of(q, group, next_id)
  local stages, place = {}, {}
  for i, m in ipairs(group.like) do
    place[m] = group.order[i]
  end
  for s, stage in ipairs(group.layout.stages) do
    local m = place[stage.machine]
    local at = next_id[m] or 1
    stages[s], next_id[m] = numbers.slice(q.machines[m].ids, at, stage.tp), at + stage.tp
  end
  return stages
end

--- Replica entries of a division: equal groups share one.
local function entries(ctx, q, groups, list)
  local by_layout, next_id = {}, {}
  for _, group in ipairs(groups) do
    local entry = by_layout[group.layout]
    if not entry then
      entry = { count = 0, ids = {}, layout = group.layout }
      by_layout[group.layout], list[#list + 1] = entry, entry
    end
    entry.count = entry.count + 1
    for s, ids in ipairs(ids_of(q, group, next_id)) do
      entry.ids[s] = table.move(ids, 1, #ids, #(entry.ids[s] or {}) + 1, entry.ids[s] or {})
    end
  end
  for _, entry in ipairs(list) do
    local at = 0
    entry.stages = entry.stages or {}
    for s, stage in ipairs(#entry.stages == 0 and entry.layout.stages or {}) do
      entry.stages[s] = { devices = ctx.cluster:address(entry.ids[s]),
        layers = { at, at + stage.layers },
        tp = stage.tp > 1 and stage.tp or nil }
      at = at + stage.layers
    end
  end
end

--- The plan of entries, each with its batch, with the flow as the judge finds it, and its tokens
-- per second; nil, why not, and where.
local function judged(list)
  local made = { mode = "serve", micro_batch = list[1].batch, replicas = {} }
  for r, entry in ipairs(list) do
    made.replicas[r] = { count = entry.count > 1 and entry.count or nil, stages = entry.stages,
      micro_batch = entry.batch ~= made.micro_batch and entry.batch or nil }
  end
  local verdict, why = hv.plan.new(made):eval()
  if not verdict then
    return nil, why
  end
  if #verdict.violations > 0 then
    return nil, verdict.violations[1].text, verdict.violations[1].where
  end
  made.flow = verdict.flow
  return made, verdict.tokens_per_s
end

--- The entries that serve at all, each with the batch under which it serves most; and a reason
-- where one does not.
local function batched(list)
  local kept, reason = {}, nil
  for i, entry in ipairs(list) do
    local most, batch = 0, nil
    for _, b in ipairs(BATCHES) do
      entry.batch = b
      local made, rate = judged { entry }
      if made and rate > most then
        most, batch = rate, b
      end
      reason = not made and rate or reason
    end
    entry.batch = batch
    kept[#kept + 1] = batch and entry or nil
    hv.progress(i / #list, ("%d of %d kinds of replica"):format(i, #list))
  end
  return kept, reason
end

local function plan(ctx)
  if ctx.options.mode == "train" then
    return nil, "HexGen places models that serve, it does not train: ask for that with its option mode=serve"
  end
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local list, batch = {}, BATCHES[4]
  for _, q in ipairs(regions(ctx, devices, batch)) do
    local found = genetic.evolve(q, { generations = ctx.options.generations, seed = ctx.seed,
      quick = ctx.options.latency,
      worth = function(l) return batch * ctx.job.sequence / l.slowest_s end,
      stopping = hv.stopping })
    if found then
      entries(ctx, q, found.groups, list)
    end
  end
  if #list == 0 then
    return nil, "no group of machines of one zone holds the model in half of its memory; the rest is for caches"
  end
  local kept, reason = batched(list)
  -- requests in flight of all together may need more memory than each alone
  for _ = 1, #kept > 0 and 4 * #kept or 0 do
    local made, text, place = judged(kept)
    if made then
      return made
    end
    reason = text
    local entry = place and kept[tonumber(place:match "replicas%[(%d+)%]") + 1]
    if not entry or entry.batch == 1 then
      break
    end
    entry.batch = entry.batch // 2
  end
  return nil, reason
end

--- HexGen's estimate of the plan: the pace of each replica is its slowest stage's.
local function claim(made, ctx)
  made = prices.table_of(made)
  local of, sum = {}, 0
  for _, d in ipairs(ctx.cluster:devices()) do
    of[d.id] = d
  end
  for _, replica in ipairs(made.replicas) do
    local slowest, batch = 0, replica.micro_batch or made.micro_batch
    for _, stage in ipairs(replica.stages) do
      local d = of[ctx.cluster:ids(stage.devices)[1]]
      local seconds = serving.range_s(ctx, { kind = d.kind, tp = stage.tp or 1, batch = batch },
        stage.layers[1] + 1,
        stage.layers[2])
      slowest = math.max(slowest, seconds)
    end
    sum = sum + (replica.count or 1) * batch * ctx.job.sequence / slowest
  end
  return { tokens_per_s = sum,
    formula = "sum over replicas of batch / slowest stage (HexGen, sections 3 and 4)",
    leaves_out = "what memory does not reach of its data sheet's rate, the host's work for every pass" }
end

local function selftest(t)
  local src, total, regions_of = "HexGen 949414d~1, experimental/optimizer", 0,
    require "data.regions"
  for i, q in ipairs(regions_of()) do
    local found = genetic.evolve(q, { generations = 400, seed = 1, quick = true })
    -- 120.3 GiB hold the model once: with devices of 24 and 48 GiB that takes 144
    t.equal(("shipped case, region %d: replicas, no more fit"):format(i), #found.groups,
      q.most_groups, src)
    total = total + #found.groups
  end
  t.ok(("shipped case, 7 machines of 3 tiers: %d replicas, theirs 11 in 4.4 s of CPU"):format(
    total), total >= 11, src)
  local one = genetic.layout(regions_of()[1], { 8 }, true)
  t.near("8 of 48 GB: one stage over all, seconds", one.latency_s,
    80 * ((33 + 192) * 12 * 8192 ^ 2 * 2 / 8e12
        + 28 * (1e-6 * 97 + (32 + 96) * 8192 * 2 / 8e11)), 1e-9, "its equations by hand")
end

return {
  api = 1, id = "hexgen", title = "HexGen", kind = "hetero",
  system = "HexGen: Generative Inference of Large Language Model over Heterogeneous Environment, ICML 2024",
  reference = "arXiv:2311.11514",
  summary = "Serves: groups of unequal devices by genetic search, each an asymmetric pipeline.",
  needs = { model = "layers" },
  serves = true,
  options = {
    { key = "mode", type = "choice", choices = { "train", "serve" }, default = "train",
      help = "serve: a plan that serves requests; train: none, with the reason" },
    { key = "generations", type = "integer", default = 200, min = 1, max = 100000,
      help = "of ten children each" },
    { key = "latency", type = "boolean", default = false,
      help = "pipelines of least latency, as in the paper; else of most tokens per second" },
  },
  plan = plan,
  claim = claim,
  selftest = selftest,
}
