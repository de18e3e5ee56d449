-- HexGen (Jiang et al., ICML'24, arXiv 2311.11514): serves one model from many replicas on unequal,
-- scattered devices. Section 4: a genetic search divides the devices of each region into groups;
-- each group becomes a pipeline whose stages have tensor degrees of their own, inside machines, by
-- dynamic programming. The division whose replicas together serve most tokens wins, each replica
-- with the batch that suits it; by latency, a replica counts with the passes that it makes one
-- after the other, and requests stay in the replica that they enter. HexGen has no plans that
-- train: in mode train it gives the reason.
local genetic = require "genetic"
local inventory = require "inventory"
local prices = require "prices"
local replicas = require "replicas"
local serving = require "serving"
local zones = require "zones"

local BATCHES = { 1, 4, 16, 64, 128 } -- sequences of a pass that are simulated
local SEARCH_BATCH = 64 -- the one of the search for groups

--- Replica entries of all zones.
local function searched(ctx, devices)
  local list = {}
  for _, q in ipairs(zones.instances(ctx, devices, SEARCH_BATCH)) do
    local found = genetic.evolve(q, {
      generations = ctx.options.generations,
      seed = ctx.seed,
      least_latency = ctx.options.latency,
      worth = function(layout)
        local pass_s = ctx.options.latency and layout.latency_s or layout.slowest_s
        return SEARCH_BATCH * ctx.job.sequence / pass_s
      end,
      stopping = hv.stopping,
    })
    if found then
      local entries = replicas.entries(ctx, q, found.groups)
      table.move(entries, 1, #entries, #list + 1, list)
    end
  end
  return list
end

local function plan(ctx)
  if ctx.options.mode == "train" then
    return nil, "HexGen has plans that serve, none that train: set its option mode=serve"
  end
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local list = searched(ctx, devices)
  if #list == 0 then
    return nil, "no group of machines of one zone holds the model in half of its memory;"
      .. " the other half is for caches"
  end
  local kept, reason = replicas.with_batches(list, BATCHES)
  local made, why_not = replicas.plan(kept, reason)
  if made and ctx.options.latency then
    return replicas.apart(made, kept)
  end
  return made, why_not
end

--- Tokens per second of one replica by HexGen's estimate, its slowest stage sets the rate; and the
-- seconds of a pass through all its stages and hops.
local function replica_rate(ctx, replica, batch, device_of)
  local slowest_s, pass_s = 0, 0
  local before, before_bytes
  for _, stage in ipairs(replica.stages) do
    local device = device_of[ctx.cluster:ids(stage.devices)[1]]
    local stage_s, _, out_bytes = serving.range_s(ctx,
      { kind = device.kind, tp = stage.tp or 1, batch = batch },
      stage.layers[1] + 1, stage.layers[2])
    if before then
      pass_s = pass_s + zones.hop_s(ctx, before.id, device.id, before_bytes)
    end
    slowest_s = math.max(slowest_s, stage_s)
    pass_s = pass_s + stage_s
    before, before_bytes = device, out_bytes
  end
  return (replica.count or 1) * batch * ctx.job.sequence / slowest_s, pass_s
end

--- HexGen's estimate of a plan; latency_s is the mean over the requests of all replicas.
local function claim(made, ctx)
  made = prices.table_of(made)
  local device_of = {}
  for _, device in ipairs(ctx.cluster:devices()) do
    device_of[device.id] = device
  end
  local tokens_per_s, latency_sum = 0, 0
  for _, replica in ipairs(made.replicas) do
    local rate, pass_s = replica_rate(ctx, replica, replica.micro_batch or made.micro_batch,
      device_of)
    tokens_per_s = tokens_per_s + rate
    latency_sum = latency_sum + rate * pass_s
  end
  return { tokens_per_s = tokens_per_s, terms = { latency_s = latency_sum / tokens_per_s },
    formula = "sum over replicas of batch / slowest stage (HexGen, sections 3 and 4)",
    leaves_out = "memory slower than its data sheet, and the host's work for each pass" }
end

return {
  api = 1,
  id = "hexgen",
  title = "HexGen",
  kind = "hetero",
  system = "HexGen: Generative Inference of Large Language Model over Heterogeneous Environment,"
    .. " ICML 2024", year = 2024,
  reference = "arXiv:2311.11514",
  summary = "Serves: groups of unequal devices by genetic search, each an asymmetric pipeline.",
  needs = { model = "layers" },
  serves = true,
  options = {
    { key = "mode", type = "choice", choices = { "train", "serve" }, default = "train",
      help = "serve: a plan that serves requests; train: none, with the reason" },
    { key = "generations", type = "integer", default = 200, min = 1, max = 100000,
      help = "generations of the genetic search, ten children each" },
    { key = "latency", type = "boolean", default = false,
      help = "pipelines whose stages and hops add up to the least latency of a pass, as in the "
        .. "paper, with requests that stay in one pipeline; else pipelines of most tokens per "
        .. "second" },
  },
  plan = plan,
  claim = claim,
}
