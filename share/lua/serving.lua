-- Plans that serve: what servers, devices of a node with a tensor degree, pass, and their placement
-- by max flow (Helix, Mei et al., arXiv 2406.01566), simulated with several batches.
local grids = require "grids"
local inventory = require "inventory"
local links = require "links"
local numbers = require "numbers"
local token_flow = require "token_flow"

-- servers up to which the integer program is run: those of Helix's own cluster
local PROGRAM_MOST = 24
local BATCHES = { 1, 4, 16, 64, 128, 256 } -- sequences of a pass that are simulated
local SEARCH_BATCH = 8 -- sequences of a pass in the search for placements
local UNLIMITED = 1e15 -- tokens per second of a link that sets no limit

local serving = {}

local memory_rates = {} -- bytes per second of kinds, by their data sheets

local function memory_rate(ctx, kind)
  if not memory_rates[kind] then
    for _, device in ipairs(ctx.cluster:devices()) do
      memory_rates[device.kind] = device.memory_bytes_per_s or math.huge
    end
  end
  return memory_rates[kind]
end

--- Bytes of keys and values of one token, mean over the layers; two bytes each.
local function cache_bytes(ctx)
  local sum, layers = 0, ctx.model:layers()
  for _, layer in ipairs(layers) do
    local heads = layer.heads or 0
    if heads > 0 then
      sum = sum + 2 * (layer.kv_heads or heads) * ctx.model.hidden / heads * 2
    end
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
      tokens = tokens, recompute = "none" }
    return t:time(from, to, kind, "forward"), t
  end
  local prompt_s, t = forward(job.sequence - job.output_tokens)
  local weight_bytes = t:bytes(from, to, "parameters") * job.weight_bytes
  local bytes_per_s = memory_rate(ctx, kind)
  local token_s = 0
  if job.output_tokens > 0 then
    local cached_tokens = (job.sequence - job.output_tokens / 2) * (to - from + 1)
    token_s = math.max((forward(1)), weight_bytes / bytes_per_s)
      + batch * cached_tokens * cache_bytes(ctx) / stage.tp / bytes_per_s
  end
  return prompt_s + job.output_tokens * token_s, weight_bytes, t:bytes(1, 1, "output")
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
  local seconds, weight_bytes, out_bytes = serving.range_s(ctx,
    { kind = kind, tp = tp, batch = batch }, 1, n)
  local most = n
  if weight_bytes > 0 then
    most = math.floor(memory_bytes / 2 / (weight_bytes / n))
  end
  return batch * ctx.job.sequence * n / seconds, math.min(n, most), out_bytes
end

--- The link function of an instance: heads = first device of each server, token_bytes = bytes of
-- one token between them.
local function link_function(ctx, heads, token_bytes)
  return function(i, j)
    if i == 0 or j > #heads then
      return UNLIMITED
    end
    return links.bandwidth(ctx, heads[i], heads[j]) / math.max(1, token_bytes)
  end
end

--- Bytes of one token between servers, of the bytes that leave a layer for all prompts of a batch.
local function token_bytes_of(ctx, out_bytes, batch)
  return out_bytes / (batch * (ctx.job.sequence - ctx.job.output_tokens))
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
  local q = { layers = ctx.model.n_layers, rates = {} }
  local servers, heads, rates_of, token_bytes = {}, {}, {}, 1
  for _, node in ipairs(inventory.nodes(devices)) do
    if not rates_of[node.kind] then
      local rate, most, out_bytes = serving.pace(ctx, node.kind, node.memory_bytes, tp, batch)
      local rates = {}
      for k = 1, most do
        rates[k] = rate / k
      end
      rates_of[node.kind] = rates
      token_bytes = token_bytes_of(ctx, out_bytes, batch)
    end
    if #rates_of[node.kind] > 0 then
      for at = 1, #node.ids - tp + 1, tp do
        local ids = numbers.slice(node.ids, at, tp)
        servers[#servers + 1] = ids
        heads[#heads + 1] = ids[1]
        q.rates[#q.rates + 1] = rates_of[node.kind]
      end
    end
  end
  q.link = link_function(ctx, heads, token_bytes)
  return q, servers
end

--- The max flow of a plan's own placement by the formulas of placement; the simulated rate is
-- another one.
-- @function serving.claim
-- @tparam table ctx {cluster, model, job, …} of plan(ctx)
-- @tparam table made {micro_batch, replicas = list of one {stages}}: a plan of mode serve
-- @treturn number tokens per second, then the bound of its servers
-- @units tokens per second
-- @raise none
-- @usage local o = { budget = 20, seed = 1 }
-- local made = require("serving").plan(ctx, ctx.cluster:devices(), o)
-- assert(made == nil or require("serving").claim(ctx, made) > 0)
function serving.claim(ctx, made)
  local q = { layers = ctx.model.n_layers, rates = {}, strict = made.partial_inference == false }
  local batch = made.micro_batch
  local device_of = {}
  for _, device in ipairs(ctx.cluster:devices()) do
    device_of[device.id] = device
  end
  local runs, heads, token_bytes = {}, {}, 1
  for s, stage in ipairs(made.replicas[1].stages) do
    local device = device_of[ctx.cluster:ids(stage.devices)[1]]
    local tp = stage.tp or 1
    local first, last = stage.layers[1] + 1, stage.layers[2]
    local rate, _, out_bytes = serving.pace(ctx, device.kind, device.memory_bytes, tp, batch)
    local rates = {}
    for k = 1, q.layers do
      rates[k] = rate / k
    end
    local own_s = serving.range_s(ctx, { kind = device.kind, tp = tp, batch = batch }, first, last)
    rates[last - first + 1] = batch * ctx.job.sequence / own_s
    q.rates[s] = rates
    runs[s] = stage.layers
    heads[s] = device.id
    token_bytes = token_bytes_of(ctx, out_bytes, batch)
  end
  q.link = link_function(ctx, heads, token_bytes)
  return (token_flow.flow(q, runs)), token_flow.bound(q)
end

--- A plan of the servers that are `used`, one stage each, without its flow; and the server of each
-- stage.
local function plan_of(ctx, servers, runs, used, c)
  local stages, server_of = {}, {}
  for i, ids in ipairs(servers) do
    if used[i] then
      stages[#stages + 1] = { devices = ctx.cluster:address(ids), layers = runs[i],
        tp = c.tp > 1 and c.tp or nil }
      server_of[#stages] = i
    end
  end
  local made = { mode = "serve", micro_batch = c.batch, replicas = { { stages = stages } },
    cache_mark_frac = c.mark }
  if c.strict then
    made.partial_inference = false
  end
  return made, server_of
end

--- Does any of the flow {from, to, tokens per second} pass stage s, counted from 0?
local function passes(flow, s)
  for _, edge in ipairs(flow) do
    if edge[1] == s or edge[2] == s then
      return true
    end
  end
  return false
end

--- The plan of a placement: a stage per server that holds layers and sees flow, with the flow that
-- the simulator finds; and its tokens per second. nil and the reason where there is none.
-- c = {tp, batch, mark, strict}.
local function placed(ctx, servers, runs, c)
  local used = {}
  for i in ipairs(servers) do
    used[i] = runs[i] and true or false
  end
  for _ = 1, 2 do -- the second time without those that no token passes
    local made, server_of = plan_of(ctx, servers, runs, used, c)
    if #server_of == 0 then
      return nil, "no token passes any placement"
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
    for s, i in ipairs(server_of) do
      used[i] = passes(verdict.flow, s - 1)
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
  local runs, flow = token_flow.place(q, { budget = o.budget, seed = o.seed, enough = o.enough,
    stopping = function() return hv.stopping(0.5) end })
  local limit_s = 0
  if #q.rates <= PROGRAM_MOST then
    limit_s = o.program_s or 0
  end
  if limit_s > 0 and flow < token_flow.bound(q) * (o.enough or 1) * (1 - 1e-9) then
    local _, found = token_flow.program(q, { time_limit_s = limit_s, neighbours = o.neighbours,
      above = flow, enough = o.enough })
    if found and token_flow.flow(q, found) > flow then
      return found
    end
  end
  return runs
end

--- Layers that all servers of an instance hold together.
local function layers_held(q)
  local held = 0
  for _, rates in ipairs(q.rates) do
    held = held + #rates
  end
  return held
end

--- Offers the plans of one placement with all batches: best = {made, rate, tp, reason} is updated.
local function offer_batches(ctx, servers, runs, tp, o, best)
  for _, batch in ipairs(BATCHES) do
    local made, rate_or_reason = placed(ctx, servers, runs,
      { tp = tp, batch = batch, mark = o.mark, strict = o.strict })
    if not made then
      best.reason = rate_or_reason
    elseif rate_or_reason > best.rate or rate_or_reason == best.rate and tp < best.tp then
      best.made = made
      best.rate = rate_or_reason
      best.tp = tp
      hv.incumbent(made)
    end
  end
end

--- Why no plan was found. most_held = layers that all servers together hold.
local function reason_of(ctx, reason, most_held)
  if most_held > 0 and most_held < ctx.model.n_layers then
    return ("all devices together hold %d of the %d layers in half of their memory,"
      .. " the other half is for caches"):format(most_held, ctx.model.n_layers)
  end
  return reason or "no server of this cluster holds a layer of the model"
end

--- The plan that serves most tokens per second, over degrees and batches: placements for one batch,
-- simulated with all of them.
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
-- @usage local o = { budget = 20, seed = 1 }
-- local made = require("serving").plan(ctx, ctx.cluster:devices(), o)
-- assert(made == nil or made.mode == "serve")
function serving.plan(ctx, devices, o)
  local best, most_held = { rate = 0, tp = 0 }, 0
  local node_size = inventory.node_size(inventory.nodes(devices))
  local degrees = numbers.powers(node_size)
  for k = #degrees, 1, -1 do -- the fewest servers first: their search is the shortest
    local tp = degrees[k]
    if node_size % tp == 0 and grids.tp_fits(ctx.model:layers(), tp) then
      local q, servers = serving.instance(ctx, devices, tp, SEARCH_BATCH)
      q.strict = o.strict
      local held = layers_held(q)
      most_held = math.max(most_held, held)
      if held >= q.layers and not hv.stopping(0.6) then
        offer_batches(ctx, servers, searched(q, o), tp, o, best)
      end
    end
  end
  if best.made then
    return best.made
  end
  return nil, reason_of(ctx, best.reason, most_held)
end

return serving
