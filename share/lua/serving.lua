-- Plans that serve: what servers, devices of a node with a tensor degree, pass, and their placement
-- by max flow (Helix, Mei et al., arXiv 2406.01566), judged with several batches.
local grids = require "grids"
local inventory = require "inventory"
local links = require "links"
local numbers = require "numbers"
local token_flow = require "token_flow"

-- servers up to which the integer program is asked: those of Helix's own cluster
local PROGRAM_MOST = 24
local BATCHES = { 1, 4, 16, 64, 128, 256 } -- sequences of a pass that are judged

local serving = {}

local memory_rates = {} -- bytes per second of kinds, by their data sheets

local function memory_rate(ctx, kind)
  for _, d in ipairs(memory_rates[kind] and {} or ctx.cluster:devices()) do
    memory_rates[d.kind] = d.memory_bytes_per_s or math.huge
  end
  return memory_rates[kind]
end

--- Bytes of keys and values of one token, mean over the layers.
local function cache_bytes(ctx)
  local sum, layers = 0, ctx.model:layers()
  for _, l in ipairs(layers) do
    sum = sum + ((l.heads or 0) > 0 and 2 * (l.kv_heads or l.heads) * ctx.model.hidden / l.heads * 2
        or 0)
  end
  return sum / #layers
end

--- Seconds that layers of a stage of tp devices of a kind take for a batch: its prompts and one
-- more token of each sequence, in turn, for which weights and caches pass the memory once, at the
-- data sheet's rate. The model's head is with its last layer.
-- @function serving.range_s
-- @tparam table ctx {cluster, model, job, …} of plan(ctx)
-- @tparam table stage {kind, tp, batch = sequences of a pass}
-- @tparam integer from first layer
-- @tparam integer to last layer
-- @treturn number seconds, then bytes of the layers' weights, then bytes that leave a layer for all
-- prompts
-- @units seconds, bytes
-- @raise a kind that the cluster has not
-- @usage local stage = { kind = ctx.cluster:devices()[1].kind, tp = 1, batch = 4 }
-- print(require("serving").range_s(ctx, stage, 1, ctx.model.n_layers))
function serving.range_s(ctx, stage, from, to)
  local job, kind, batch = ctx.job, stage.kind, stage.batch
  local function forward(tokens)
    local t = hv.cost.layers { kinds = { kind }, tp = stage.tp, micro_batch = batch,
      tokens = tokens,
      recompute = "none" }
    return t:time(from, to, kind, "forward"), t
  end
  local prompt_s, t = forward(job.sequence - job.output_tokens)
  local bytes, token_s, rate = t:bytes(from, to, "parameters") * job.weight_bytes, 0,
    memory_rate(ctx, kind)
  if job.output_tokens > 0 then
    local seen = (job.sequence - job.output_tokens / 2) * (to - from + 1)
    token_s = math.max((forward(1)), bytes / rate)
      + batch * seen * cache_bytes(ctx) / stage.tp / rate
  end
  return prompt_s + job.output_tokens * token_s, bytes, t:bytes(1, 1, "output")
end

--- What a stage of tp devices of a kind does with one layer, in the mean over the model; and the
-- most layers it holds, with half of its memory for the weights (the other half for caches).
-- @function serving.pace
-- @tparam table ctx {cluster, model, job, …} of plan(ctx)
-- @tparam string kind of device
-- @tparam number memory_bytes of one device
-- @tparam integer tp tensor degree
-- @tparam integer batch sequences of a pass
-- @treturn number tokens per second, then layers, then bytes that leave it for all prompts
-- @units tokens per second, bytes
-- @raise a kind that the cluster has not
-- @usage local d = ctx.cluster:devices()[1]
-- print(require("serving").pace(ctx, d.kind, d.memory_bytes, 1, 4))
function serving.pace(ctx, kind, memory_bytes, tp, batch)
  local n = ctx.model.n_layers
  local seconds, bytes, out = serving.range_s(ctx, { kind = kind, tp = tp, batch = batch }, 1, n)
  local most = bytes > 0 and math.floor(memory_bytes / 2 / (bytes / n)) or n
  return batch * ctx.job.sequence * n / seconds, math.min(n, most), out
end

--- Servers of tp devices each, inside nodes, as an instance for placement.
-- @function serving.instance
-- @tparam table ctx {cluster, model, job, …} of plan(ctx)
-- @tparam table devices list of rows of cluster:devices()
-- @tparam integer tp devices of a server
-- @tparam integer batch sequences of a pass
-- @treturn table {layers, rates, …} the instance, then the list of each server's device numbers
-- @units tokens per second
-- @raise none
-- @usage local q, ids = require("serving").instance(ctx, ctx.cluster:devices(), 1, 4)
-- assert(#q.rates == #ids)
function serving.instance(ctx, devices, tp, batch)
  local q, servers, prices, out_bytes = { layers = ctx.model.n_layers, rates = {} }, {}, {}, 1
  for _, node in ipairs(inventory.nodes(devices)) do
    if not prices[node.kind] then
      local rate, most, bytes = serving.pace(ctx, node.kind, node.memory_bytes, tp, batch)
      local rates = {}
      for k = 1, most do
        rates[k] = rate / k
      end
      prices[node.kind], out_bytes = rates, bytes / (
        batch * (ctx.job.sequence - ctx.job.output_tokens))
    end
    for at = 1, #node.ids - tp + 1, tp do
      if #prices[node.kind] > 0 then
        servers[#servers + 1], q.rates[#q.rates + 1] = numbers.slice(node.ids, at, tp),
          prices[node.kind]
      end
    end
  end
  function q.link(i, j)
    if i == 0 or j > #servers then
      return 1e15
    end
    return links.bandwidth(ctx, servers[i][1], servers[j][1]) / math.max(1, out_bytes)
  end
  return q, servers
end

--- The max flow of a plan's own placement by the formulas of placement, whatever the judge says of
-- it.
-- @function serving.claim
-- @tparam table ctx {cluster, model, job, …} of plan(ctx)
-- @tparam table made {micro_batch, replicas = list of one {stages}}: a plan of mode serve
-- @treturn number tokens per second, then the bound of its servers
-- @units tokens per second
-- @raise none
-- @usage local made = require("serving").plan(ctx, ctx.cluster:devices(), { budget = 20, seed = 1 })
-- assert(made == nil or require("serving").claim(ctx, made) > 0)
function serving.claim(ctx, made)
  local of, runs, heads, out_bytes = {}, {}, {}, 1
  local q = { layers = ctx.model.n_layers, rates = {}, strict = made.partial_inference == false }
  for _, d in ipairs(ctx.cluster:devices()) do
    of[d.id] = d
  end
  for s, stage in ipairs(made.replicas[1].stages) do
    local d = of[ctx.cluster:ids(stage.devices)[1]]
    local rate, _, bytes = serving.pace(ctx, d.kind, d.memory_bytes, stage.tp or 1,
      made.micro_batch)
    q.rates[s], runs[s], heads[s] = {}, stage.layers, d.id
    for k = 1, q.layers do
      q.rates[s][k] = rate / k
    end
    local own = serving.range_s(ctx, { kind = d.kind, tp = stage.tp or 1,
      batch = made.micro_batch }, runs[s][1] + 1,
      runs[s][2])
    q.rates[s][runs[s][2] - runs[s][1]] = made.micro_batch * ctx.job.sequence / own
    out_bytes = bytes / (made.micro_batch * (ctx.job.sequence - ctx.job.output_tokens))
  end
  function q.link(i, j)
    return (i == 0 or j > #heads) and 1e15 or links.bandwidth(ctx, heads[i], heads[j]) / math.max(1,
      out_bytes)
  end
  return (token_flow.flow(q, runs)), token_flow.bound(q)
end

--- The plan of a placement: a stage per server that holds layers and sees flow, with the flow as
-- the judge finds it.
local function placed(ctx, servers, runs, tp, batch, o)
  local used = {}
  for i in ipairs(servers) do
    used[i] = runs[i] and true or false
  end
  for _ = 1, 2 do -- the second time without those that no token passes
    local stages, at = {}, {}
    for i, ids in ipairs(servers) do
      if used[i] then
        stages[#stages + 1], at[#at + 1] =
          { devices = ctx.cluster:address(ids), layers = runs[i], tp = tp > 1 and tp or nil }, i
      end
    end
    if #stages == 0 then
      return nil, "no token passes any placement"
    end
    local made = { mode = "serve", micro_batch = batch, replicas = { { stages = stages } },
      cache_mark_frac = o.mark }
    if o.strict then
      made.partial_inference = false
    end
    local verdict, why = hv.plan.new(made):eval()
    if not verdict then
      return nil, why
    end
    if #verdict.violations > 0 then
      return nil, verdict.violations[1].text
    end
    made.flow = verdict.flow
    local idle = false
    for s, i in ipairs(at) do
      used[i] = false
      for _, f in ipairs(verdict.flow) do
        used[i] = used[i] or f[1] == s - 1 or f[2] == s - 1
      end
      idle = idle or not used[i]
    end
    if not idle then
      return made, verdict.tokens_per_s
    end
  end
  return nil, "no token passes some stages of every placement"
end

--- A placement of an instance by local search, or by the integer program where that is asked for
-- and finds more.
local function searched(q, o)
  local runs, most = token_flow.place(q, { budget = o.budget, seed = o.seed, enough = o.enough,
    stopping = function() return hv.stopping(0.5) end })
  local limit_s = #q.rates <= PROGRAM_MOST and o.program_s or 0
  if limit_s > 0 and most < token_flow.bound(q) * (o.enough or 1) * (1 - 1e-9) then
    local _, found = token_flow.program(q, { time_limit_s = limit_s, neighbours = o.neighbours,
      above = most,
      enough = o.enough })
    runs = found and token_flow.flow(q, found) > most and found or runs
  end
  return runs
end

--- The plan that serves most tokens per second, over degrees and batches: placements for one batch,
-- judged with all of them.
-- @function serving.plan
-- @tparam table ctx {cluster, model, job, …} of plan(ctx)
-- @tparam table devices list of rows of cluster:devices()
-- @tparam table o {budget = flows per placement, seed, enough = 1: share of the bound at which the
-- search ends, program_s = 0: seconds of the integer program for 24 servers or fewer, neighbours =
-- links out of a server in it, strict = tokens enter a server only where its run begins, mark =
-- share of the room for caches that requests may fill}
-- @treturn table plan, with the keys of a plan file; nil and the reason when no placement holds the
-- model
-- @units tokens per second
-- @raise none
-- @usage local made = require("serving").plan(ctx, ctx.cluster:devices(), { budget = 20, seed = 1 })
-- assert(made == nil or made.mode == "serve")
function serving.plan(ctx, devices, o)
  local best, most, best_tp, reason, most_held = nil, 0, 0, nil, 0
  local degrees = numbers.powers(inventory.node_size(inventory.nodes(devices)))
  for k = #degrees, 1, -1 do -- the fewest servers first: they are searched soonest
    local tp = degrees[k]
    local whole = inventory.node_size(inventory.nodes(devices)) % tp == 0
      and grids.tp_fits(ctx.model:layers(), tp)
    local q, servers = serving.instance(ctx, devices, tp, 8)
    q.strict = o.strict
    local held = 0
    for _, rates in ipairs(q.rates) do
      held = held + #rates
    end
    most_held, whole = whole and math.max(most_held, held) or most_held, whole and held >= q.layers
    local runs = whole and #servers > 0 and not hv.stopping(0.6) and searched(q, o)
    for _, batch in ipairs(runs and BATCHES or {}) do
      local made, rate = placed(ctx, servers, runs, tp, batch, o)
      if made and (rate > most or rate == most and tp < best_tp) then
        best, most, best_tp = made, rate, tp
        hv.incumbent(made)
      end
      reason = not made and rate or reason
    end
  end
  return best, not best and most_held > 0 and most_held < ctx.model.n_layers
    and ("all devices together hold %d of the %d layers in half of their memory, the other half is for caches"):format(
      most_held, ctx.model.n_layers) or reason
    or "no server of this cluster holds a layer of the model"
end

return serving
