-- Whale (Jia et al., USENIX ATC 2022): load balance on mixed GPUs under memory limits. Section
-- 3.3.1: shares follow FLOP/s, then load moves from devices that run out of memory (peaks) to the
-- least busy ones (valleys): sequences where a part of the model is replicated, heads of every
-- layer where it is split. Section 3.3.2: pipeline stages in order of falling memory, layers in
-- proportion to FLOP/s, with the same shift.
local candidates = require "candidates"
local grids = require "grids"
local inventory = require "inventory"
local layer_split = require "layer_split"
local nested = require "nested"
local numbers = require "numbers"
local pipeline_stages = require "pipeline_stages"
local prices = require "prices"
local ranks = require "ranks"
local replication = require "replication"

local MOST_MICRO_BATCH = 32 -- largest micro-batch of a pipeline that is tried
local NESTED_SHARE = 0.6 -- of the time, until which nests are listed
local RECOMPUTES = { "none", "selective", "full" }

--- Does option micro_batches (the paper's annotation pipeline(n)) allow this number? 0 allows any.
local function is_allowed(ctx, micro_batches)
  return ctx.options.micro_batches == 0 or micro_batches == ctx.options.micro_batches
end

local function add_replicated(ctx, all, nodes)
  local layers = ctx.model:layers()
  local size = inventory.node_size(nodes)
  for _, tp in ipairs(numbers.powers(size)) do
    local list = {}
    if size % tp == 0 and grids.tp_fits(layers, tp) then
      list = ranks.of_nodes(nodes, tp)
    end
    for _, m in ipairs(numbers.divisors(ctx.job.global_batch)) do
      if #list > 0 and ctx.job.global_batch // m >= #list and is_allowed(ctx, m) then
        for _, recompute in ipairs(RECOMPUTES) do
          all.add(replication.candidate(ctx, {
            tp = tp, micro_batch = 1, micro_batches = m, recompute = recompute,
            zero = ctx.options.zero, sequence_parallel = tp > 1,
          }, list))
        end
      end
    end
  end
end

--- Numbers of micro-batches that leave every one of `groups` a sequence of each and that a plan can
-- hold.
local function micro_batches_for(ctx, groups)
  local list = {}
  for _, m in ipairs(numbers.divisors(ctx.job.global_batch)) do
    local step = ctx.job.global_batch // m
    if step >= groups and is_allowed(ctx, m) and candidates.sizes_fit(m, step) then
      list[#list + 1] = m
    end
  end
  return list
end

local function add_split(ctx, all, nodes)
  local layers = ctx.model:layers()
  local tried = 0
  for _, count in ipairs(layer_split.counts(nodes)) do
    local groups = layer_split.groups(nodes, count)
    local size = #groups[1]
    local micro_batches = {}
    if size > 1 and size <= ctx.options.tp and size <= layer_split.units(layers) then
      micro_batches = micro_batches_for(ctx, count)
    end
    for _, m in ipairs(micro_batches) do
      if tried > 0 and hv.stopping() then
        return
      end
      for _, recompute in ipairs(RECOMPUTES) do
        tried = tried + 1
        all.add(layer_split.candidate(ctx, { micro_batches = m, recompute = recompute,
          zero = ctx.options.zero,
          sequence_parallel = ctx.job.sequence % size == 0 }, groups))
      end
    end
  end
end

local function add_nested(ctx, all, nodes)
  local tried = 0
  nested.each(ctx, nodes, ctx.options.mode ~= "nest", function(teams)
    local groups = 0
    for _, team in ipairs(teams) do
      groups = groups + #team.groups
    end
    for _, m in ipairs(micro_batches_for(ctx, groups)) do
      for _, recompute in ipairs(RECOMPUTES) do
        tried = tried + 1
        if tried == 1 or not hv.stopping(NESTED_SHARE) then
          all.add(nested.candidate(ctx, { micro_batches = m, recompute = recompute,
            zero = ctx.options.zero }, teams))
        end
      end
    end
  end)
end

local function add_pipelined(ctx, all, nodes)
  local layers = ctx.model:layers()
  local runs = pipeline_stages.runs(nodes)
  local function add_with(copies, merge, tp)
    for _, micro_batch in ipairs(numbers.powers(MOST_MICRO_BATCH)) do
      local m = ctx.job.global_batch // (copies * micro_batch)
      if ctx.job.global_batch % (copies * micro_batch) == 0 and is_allowed(ctx, m) then
        for _, recompute in ipairs(RECOMPUTES) do
          all.add(pipeline_stages.candidate(ctx, {
            tp = tp, copies = copies, micro_batch = micro_batch, recompute = recompute,
            zero = ctx.options.zero, layers = layers, micro_batches = m,
          }, pipeline_stages.deal(runs, copies, merge)))
        end
      end
    end
  end
  for _, copies in ipairs(pipeline_stages.copies(runs)) do
    for _, merge in ipairs { false, true } do
      local n_stages = #pipeline_stages.deal(runs, copies, merge)
      if n_stages > 1 and n_stages <= #layers then
        for _, tp in ipairs(numbers.powers(ctx.options.tp)) do
          add_with(copies, merge, tp)
        end
      end
    end
  end
end

--- The reason where no candidate was even priced.
local function nothing_tried(ctx)
  if ctx.options.micro_batches == 0 then
    return "no division of the devices gives every stage a layer and a sequence"
  end
  return ("%d micro-batches do not divide the batch of %d so that every replica gets a sequence")
    :format(ctx.options.micro_batches, ctx.job.global_batch)
end

local function plan(ctx)
  local devices, why = inventory.priced(ctx)
  local nodes = inventory.nodes(devices)
  if #nodes == 0 then
    return nil, why
  end
  local all = candidates.new()
  local mode = ctx.options.mode
  if mode == "auto" or mode == "replicate" then
    add_replicated(ctx, all, nodes)
  end
  if mode == "auto" or mode == "split" then
    add_split(ctx, all, nodes)
  end
  if mode == "auto" or mode == "pipeline" then
    add_pipelined(ctx, all, nodes)
  end
  if mode == "auto" or mode == "nest" then
    add_nested(ctx, all, nodes)
  end
  return all.best(ctx.options.tries, nothing_tried(ctx))
end

--- Replicated, split or both nested: the slowest share of every step; pipeline: Eq-P; all with the
-- largest all-reduce.
local function claim(made, ctx)
  made = prices.table_of(made)
  local total_s, slowest_s, sync_s
  if #made.replicas > 1 then
    total_s, slowest_s, sync_s = nested.terms(ctx, made)
  else
    total_s, slowest_s, sync_s = prices.claim_terms(ctx, made)
  end
  local formula = "M x max r_i FLOP / DF_i + all-reduce (Whale, section 3.3.1)"
  if #made.replicas[1].stages > 1 then
    formula = "Eq-P over stages balanced by FLOP/s + all-reduce (Whale, section 3.3.2)"
  end
  return { iteration_s = total_s, terms = { slowest_s = slowest_s, all_reduce_s = sync_s },
    formula = formula,
    leaves_out = "transfers between stages, the optimizer's step, and the overlap of gradients "
      .. "with the backward pass" }
end

return {
  api = 1, id = "whale", title = "Whale", kind = "hetero",
  system = "Whale: Efficient Giant Model Training over Heterogeneous GPUs, USENIX ATC 2022",
  year = 2022,
  reference = "arXiv:2011.09208",
  summary = "Loads follow FLOP/s, then move from full memories to idle ones; large memory first.",
  needs = { model = "layers" },
  effort = "quick",
  options = {
    { key = "mode", type = "choice", choices = { "auto", "replicate", "split", "pipeline", "nest" },
      default = "auto",
      help = "replicate the model with unequal shares of the batch, split layers into unequal "
        .. "shards, pipeline, or nest: unequal groups of devices that split the layers are "
        .. "replicas with unequal shares of the batch; auto: all four" },
    { key = "tp", type = "integer", default = 8, min = 1, max = 64,
      help = "most devices that split a layer, of one node; with mode split of several nodes" },
    { key = "micro_batches", type = "integer", default = 0, min = 0, max = 1000000,
      help = "number of micro-batches of an iteration (pipeline annotation); 0: all that divide "
        .. "the batch are tried" },
    { key = "zero", type = "integer", default = 0, min = 0, max = 3,
      help = "ZeRO stage over replicas, 1: optimizer states, 2: and gradients, 3: and weights" },
    { key = "tries", type = "integer", default = 12, min = 1, max = 1000,
      help = "number of fitting plans that are simulated, in the order of the formula" },
  },
  plan = plan,
  claim = claim,
}
