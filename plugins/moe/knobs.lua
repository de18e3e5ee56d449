-- What each system of the family fixes and searches. A row: moe(world, stage, micro_batch, knob) =
-- `moe` of a stage; knobs(world, point) = values that are tried with every point; ep(world) =
-- degrees of its experts (above 1 else), `shards` = ranks that an expert may be cut over; refine =
-- as degrees.search takes it; fits(world, point) and stage_fits(world, point, stage, micro_batch) =
-- whether it has a point; plan(world, plan) = what else it sets; usual = the knobs as a part of
-- another's plan, alone = there it is of use also where every rank has all experts.
-- world = {ctx, layers = of mixture.layers, options}.
local formulas = require "formulas"
local links = require "links"
local mixture = require "mixture"
local numbers = require "numbers"
local target = require "target"

local MOST_CHUNKS = 1024    -- of a plan
local MIB = 2 ^ 20

local knobs = {}

--- The fits of the first layer with experts of a stage; layers of one model are alike or nearly so.
local function fits_of(world, stage, micro_batch)
  return mixture.fits(world.ctx, stage, micro_batch, world.layers[1])
end

--- Rows of `moe` by layer where layers differ, else the one table.
local function by_layers(world, stage, of)
  local from, to = 0, math.huge
  if type(stage.layers[1]) == "number" then
    from, to = stage.layers[1], stage.layers[2]
  end
  local inside = {}
  for _, layer in ipairs(world.layers) do
    if layer.block >= from and layer.block < to then
      inside[#inside + 1] = layer
    end
  end
  local keys, tables = {}, {}
  for i, layer in ipairs(inside) do
    tables[i], keys[i] = of(layer)
  end
  local runs = mixture.runs(inside, function(_, i) return keys[i] end)
  if #runs <= 1 then
    return tables[1] or {}
  end
  local list = {}
  for i, run in ipairs(runs) do
    for k, layer in ipairs(inside) do
      list[i] = layer == run.layer and tables[k] or list[i]
    end
    list[i].layers = { run.from, run.to }
  end
  return list
end

knobs.fastmoe = {
  moe = function()
    return { all_to_all = "flat", kernel = "grouped", capacity_factor = 0 }
  end,
}

--- Batched products with places for every expert, over flat exchanges.
local function padded(world, least)
  return { all_to_all = "flat", kernel = "padded", min_capacity = least,
    capacity_factor = world.options.capacity }
end

knobs.gshard = {
  alone = true,
  moe = function(world)
    local set = padded(world, 4)
    set.dispatch = world.ctx.model.kind == "transformer" and "one_hot" or nil -- measured: within it
    return set
  end,
}

knobs.switch = {
  alone = true,
  moe = function(world)
    return padded(world)
  end,
}

knobs.tutel = {
  shards = 8, usual = { degree = 1, all_to_all = "2dh" },
  knobs = function()
    return { { degree = 1, all_to_all = "flat" }, { move = "experts" } }
  end,
  refine = {
    { knob = "all_to_all", values = { "2dh" } },
    { knob = "degree", values = { 2, 4, 8 } },
    { knob = "all_to_all", values = { "flat", "2dh" } },
  },
  fits = function(world, point)
    local most = world.layers[1].experts
    return point.ep <= most or point.ep % most == 0
  end,
  moe = function(world, stage, _, knob)
    local experts = world.layers[1].experts
    local moe = padded(world)
    if knob.move then -- r = 0: every rank gathers all experts
      return { move = "experts", kernel = "padded", capacity_factor = moe.capacity_factor }
    end
    moe.all_to_all, moe.degree = knob.all_to_all, knob.degree
    moe.expert_shards = stage.ep > experts and stage.ep // experts or nil
    return moe
  end,
}

knobs.dsmoe = {
  usual = { all_to_all = "hierarchical" },
  ep = function(world)
    local most = 1
    for _, layer in ipairs(world.layers) do
      most = math.max(most, layer.experts)
    end
    return numbers.divisors(most)
  end,
  fits = function(world, point)
    local most = 1
    for _, layer in ipairs(world.layers) do
      most = math.max(most, (formulas.expert_ranks(layer.experts, point.dp)))
    end
    return most > 1 and point.ep == most
  end,
  knobs = function(_, point)
    return point.tp > 1 and { { all_to_all = "tp_coordinated" }, { all_to_all = "hierarchical" } }
      or { { all_to_all = "hierarchical" } }
  end,
  moe = function(world, stage, _, knob)
    return by_layers(world, stage, function(layer)
      local moe = padded(world, 4)
      local ep = formulas.expert_ranks(layer.experts, stage.dp)
      moe.all_to_all = knob.all_to_all
      moe.ep = ep ~= stage.ep and ep or nil
      return moe, ep
    end)
  end,
}

knobs.scattermoe = {
  alone = true,
  ep = function()
    return { 1 }
  end,
  knobs = function()
    return { { zero = 1 }, { zero = 3 } }
  end,
  moe = function()
    return { kernel = "scatter" }
  end,
}

knobs.megablocks = {
  shards = 8, alone = true,
  fits = knobs.tutel.fits,
  moe = function(world, stage)
    local experts = world.layers[1].experts
    return { all_to_all = "flat", kernel = "block", capacity_factor = 0,
      expert_shards = (stage.ep or 1) > experts and stage.ep // experts or nil }
  end,
}

knobs.pipemoe = {
  moe = function(world, stage, micro_batch)
    local fit = fits_of(world, stage, micro_batch)
    if not fit.chunks then -- backward experts have two products for one
      local twice = { alpha_s = 2 * fit.expert.alpha_s, beta_s = 2 * fit.expert.beta_s }
      fit.chunks = { (formulas.chunks(fit.exchange, fit.expert, MOST_CHUNKS)),
        (formulas.chunks(fit.exchange, twice, MOST_CHUNKS)) }
    end
    return { all_to_all = "flat", kernel = "grouped", degree = fit.chunks }
  end,
}

knobs.schemoe = {
  usual = { degree = 2 },
  knobs = function(world)
    local list = {}
    for _, degree in ipairs { 1, 2, 4, 8 } do
      list[#list + 1] = { degree = degree }
      if world.options.ratio > 1 then
        list[#list + 1] = { degree = degree, ratio = world.options.ratio }
      end
    end
    return list
  end,
  moe = function(world, _, _, knob)
    local moe = { all_to_all = "pipe", degree = knob.degree }
    if knob.ratio then
      moe.compress = { ratio = knob.ratio, GBps = world.options.GBps }
      moe.order = knob.degree > 1 and "optsche" or nil
    end
    return moe
  end,
}

--- Experts of a device by Lina's packing controller for a point: a power of two.
local function packed(world, stage, micro_batch, devices)
  local experts = world.layers[1].experts
  return formulas.packed(experts, function(n)
    local ep = math.max(1, experts // n)
    if ep < 2 or devices % ep ~= 0 then
      return 0, ep < 2 and 0 or 1
    end
    local fit = fits_of(world, { devices = stage.devices, tp = stage.tp, dp = stage.dp, ep = ep },
      micro_batch)
    return fit.expert.alpha_s + fit.expert.beta_s, fit.exchange.alpha_s + fit.exchange.beta_s
  end)
end

--- Chunks of an exchange of micro-operations of `chunk` MB.
local function micro_operations(world, stage, micro_batch)
  local tokens = mixture.tokens(world.ctx, stage, micro_batch)
  local bytes = mixture.bytes(world.ctx, world.layers[1], tokens)
  return math.max(1, math.min(MOST_CHUNKS, math.ceil(bytes / (world.options.chunk_MB * 1e6))))
end

knobs.lina = {
  -- no more experts on a device than the controller packs; fewer where they do not fit
  stage_fits = function(world, point, stage, micro_batch)
    local most = packed(world, stage, micro_batch, point.dp)
    return world.layers[1].experts // point.ep <= most
  end,
  moe = function(world, stage, micro_batch)
    return { all_to_all = "flat", degree = micro_operations(world, stage, micro_batch) }
  end,
  plan = function(world, plan)
    plan.sync = plan.sync or { kind = "allreduce" }
    plan.sync.priority = "after_all_to_all"
    plan.sync.chunk_MiB = world.options.chunk_MB * 1e6 / MIB
  end,
}

--- Janus's R of a layer of a stage.
local function ratio_of(world, stage, micro_batch, layer)
  local group = mixture.group(world.ctx, stage)
  return formulas.ratio { tokens = mixture.tokens(world.ctx, stage, micro_batch),
    top_k = layer.top_k, hidden = world.ctx.model.hidden, parameters = layer.parameters,
    machines = mixture.nodes(world.ctx, group), experts_per_rank = layer.experts / #group }
end

knobs.janus = {
  ratio = ratio_of, usual = { prefetch = 1 },
  knobs = function()
    return { { prefetch = 1 }, { prefetch = 0 }, { prefetch = 2 } }
  end,
  moe = function(world, stage, micro_batch, knob)
    return by_layers(world, stage, function(layer)
      if ratio_of(world, stage, micro_batch, layer) > 1 then
        return { move = "experts", prefetch = knob.prefetch }, "experts"
      end
      return { all_to_all = "flat" }, "tokens"
    end)
  end,
}

--- Seconds of a byte between the ranks of a group; inside a rank as over its fastest link.
local function betas(world, group)
  local beta, least = {}, math.huge
  for i, a in ipairs(group) do
    beta[i] = {}
    for j, b in ipairs(group) do
      beta[i][j] = i ~= j and 1 / links.bandwidth(world.ctx, a, b) or 0
      least = i ~= j and math.min(least, beta[i][j]) or least
    end
  end
  for i = 1, #group do
    beta[i][i] = least
  end
  return beta
end

--- Target shares of a stage's group, kept for groups of equal links.
local function shares_of(world, stage)
  world.targets = world.targets or {}
  local group = mixture.group(world.ctx, stage)
  local key = world.ctx.cluster:address(group)
  if not world.targets[key] then
    local layer = world.layers[1]
    local most = layer.experts / #group / layer.top_k -- no expert gets a token twice
    world.targets[key] = table.pack(target.shares(betas(world, group), most))
  end
  return world.targets[key][1], world.targets[key][2], group
end

--- Share of tokens that leave the node of their rank under a target.
local function off_node(world, shares, group)
  local sum = 0
  for i, row in ipairs(shares) do
    for j, share in ipairs(row) do
      sum = sum + (mixture.nodes(world.ctx, { group[i], group[j] }) > 1 and share or 0)
    end
  end
  return sum / #group
end

knobs.tamoe = {
  shares = shares_of, betas = betas,
  stage_fits = function(world, _, stage)
    local shares, why = shares_of(world, stage)
    return shares ~= nil, why
  end,
  -- the job's routing says which experts tokens want: then the gate limits what leaves a node
  moe = function(world, stage)
    local shares, _, group = shares_of(world, stage)
    local moe = { all_to_all = "flat" }
    if not world.ctx.job.routing then
      moe.target = shares
    elseif mixture.nodes(world.ctx, group) > 1 then
      moe.off_node_frac = world.options.off_node < 0 and off_node(world, shares, group)
        or world.options.off_node
    end
    return moe
  end,
}

return knobs
