-- Metis (Um et al., USENIX ATC 2024): one pipeline over all GPUs of a mixed cluster, sections 4 and
-- 5. It tries every order of the device types; stages are groups of a power of two of GPUs, none
-- below a least size, in a limited number of orders; and every number of micro-batches. A stage
-- starts with data parallelism and gets tensor parallelism where memory is short. Layers follow
-- speed; a stage that mixes types divides its micro-batch unevenly.
-- T = (B - 1) longest stage + sum of stages + exchange + longest update + hops + B (loading +
-- synchronising); the last two are figures of its profiles (options, 0 where they were not
-- measured).
-- Faults of the released code (1b37058) that are not reproduced: it prices a plan for a second
-- order of types by its first stage alone, reads the bandwidth between nodes inside a node, takes
-- five times the memory of one type, treats times of zero as missing, drops the remainder of a
-- batch, and allows stages without layers. Here the division of layers and of micro-batches is
-- exact; the paper repairs and rounds it.
local candidates = require "candidates"
local claims = require "claims"
local inventory = require "inventory"
local prices = require "prices"
local problem = require "problem"
local reasons = require "reasons"
local stage_search = require "stage_search"

--- The plan of a solution of stage_search: one replica whose stages have data-parallel ranks.
local function plan_of(ctx, found, recompute)
  local stages = {}
  for s, stage in ipairs(found.stages) do
    local ids = {}
    for i = 1, stage.size do
      ids[i] = stage.order[stage.from + i].id
    end
    local is_even = true
    for _, share in ipairs(stage.shares) do
      is_even = is_even and share == stage.shares[1]
    end
    local keys = { tp = stage.tp, recompute = recompute, sequence_parallel = stage.tp > 1 }
    stages[s] = prices.stage_keys(keys, {
      devices = ctx.cluster:address(ids),
      layers = { found.ranges[s][1] - 1, found.ranges[s][2] },
      dp = stage.dp > 1 and stage.dp or nil,
      shares = not is_even and stage.shares or nil,
    })
  end
  return {
    micro_batch = found.sequences,
    replicas = { { micro_batches = found.micro_batches, stages = stages } },
    schedule = { name = "1f1b" },
  }
end

--- The solutions as candidates of candidates.best.
local function candidates_of(ctx, solutions, recompute)
  local list = {}
  for i, found in ipairs(solutions) do
    list[i] = { claim_s = found.claim_s, rank = i,
      build = function() return plan_of(ctx, found, recompute) end }
  end
  return list
end

--- What limits of the search left out, in words with figures. `cut` as stage_search.search gives
-- it, best_s = the least time that the search found (nil: none).
local function warnings_of(ctx, cut, best_s)
  local o, texts = ctx.options, {}
  if cut.left_out > 0 then
    local text = "%d of %d combinations of order, groups and micro-batches were left out by the "
      .. "budget of %d or for want of time (option budget)"
    texts[1] = text:format(cut.left_out, cut.cases, o.budget)
    if best_s and cut.bound < best_s then
      texts[1] = ("%s: the best one takes %.4g s by the formula, one that was left out may take "
        .. "%.4g s"):format(texts[1], best_s, cut.bound)
    end
  end
  if cut.cut_numbers > 0 then
    texts[#texts + 1] = ("orders of groups beyond the first %d were left out for %d numbers of "
      .. "stages (option groups)"):format(o.groups, cut.cut_numbers)
  end
  if cut.late then
    texts[#texts + 1] = "some orders of types and groups were left out for want of time"
  end
  return texts
end

--- A plan with what the search for it left out, for its claim.
local function told(ctx, best, solutions, cut)
  best.claimed = {
    terms = { combinations = cut.cases, combinations_left_out = cut.left_out },
    warnings = warnings_of(ctx, cut, solutions[1].claim_s),
  }
  return best
end

local function plan(ctx)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local nodes = inventory.nodes(devices)
  local reason
  local left_out = {}
  for _, recompute in ipairs { "none", "full" } do -- Metis itself does not recompute
    local solutions, cut = stage_search.search(problem.of(ctx, nodes, recompute))
    if cut.runnable == 0 then
      local text = "all %d devices run one pipeline: no number of micro-batches that divides the "
        .. "batch of %d gives each replica of a stage 1 to %d sequences (option micro_batch)"
      return nil, text:format(#devices, ctx.job.global_batch, ctx.options.micro_batch)
    end
    local list = candidates_of(ctx, solutions, recompute)
    if #list > 0 then
      local best, why_not = candidates.best(list, ctx.options.tries)
      if best then
        return told(ctx, best, solutions, cut)
      end
      reason = why_not or reason
    end
    left_out = warnings_of(ctx, cut)
  end
  reason = reason or reasons.too_small(ctx, devices,
    "no pipeline of groups of a power of two of all devices")
  return nil, table.concat({ reason, table.unpack(left_out) }, "; ")
end

--- The equation on the figures of a plan.
local function claim(made, ctx)
  made = prices.table_of(made)
  local parts, exchange_s = claims.parts(ctx, made)
  local pipeline_s = claims.seconds(parts[1], 1)
  local update_s = 0
  for s in ipairs(made.replicas[1].stages) do
    update_s = math.max(update_s, prices.stage(ctx, made, 1, s).optimizer_s)
  end
  local micro_batches = parts[1].micro_batches
  local loading_s = micro_batches * ctx.options.batch_ms / 1000
  local synchronising_s = micro_batches * ctx.options.sync_ms / 1000
  local found = made.claimed or {}
  local counts = found.terms or {}
  return {
    warnings = found.warnings,
    iteration_s = pipeline_s + exchange_s + update_s + loading_s + synchronising_s,
    terms = {
      pipeline_s = pipeline_s, exchange_s = exchange_s, optimizer_s = update_s,
      loading_s = loading_s, synchronising_s = synchronising_s,
      combinations = counts.combinations,
      combinations_left_out = counts.combinations_left_out,
    },
    formula = "(B - 1) longest stage + sum of stages + exchange + longest update + hops "
      .. "+ B (loading + synchronising) (Metis, section 4)",
    leaves_out = "the overlap of gradients with the backward pass, and links that several stages "
      .. "or replicas share",
  }
end

return {
  api = 1, id = "metis", title = "Metis", kind = "hetero",
  system = "Metis: Fast Automatic Distributed Training on Heterogeneous GPUs, USENIX ATC 2024",
  year = 2024,
  reference = "https://www.usenix.org/conference/atc24/presentation/um",
  summary = "One pipeline over all types in every order; groups of a power of two, uneven shares "
    .. "where types mix.",
  needs = { model = "layers" },
  effort = "slow",
  options = {
    { key = "stages", type = "integer", default = 16, min = 1, max = 256,
      help = "largest number of stages" },
    { key = "variance", type = "number", default = 0.5, min = 0.01, max = 1,
      help = "least size of a group, as a share of the devices per stage" },
    { key = "permute", type = "integer", default = 4, min = 1, max = 8,
      help = "blocks of groups that are permuted; more groups are joined in pairs" },
    { key = "groups", type = "integer", default = 250, min = 1, max = 100000,
      help = "orders of groups that are tried per number of stages; the result says where there are"
        .. " more" },
    { key = "micro_batch", type = "integer", default = 16, min = 1, max = 1024,
      help = "largest number of sequences that a replica processes at once" },
    { key = "budget", type = "integer", default = 5000, min = 1, max = 1000000,
      help = "combinations of order, groups and micro-batches that are solved, least bound first;"
        .. " the result says how many are left out" },
    { key = "batch_ms", type = "number", default = 0, min = 0, max = 1e6,
      help = "time to load a micro-batch, measured in its profiles: used by the formula, not by "
        .. "the simulation" },
    { key = "sync_ms", type = "number", default = 0, min = 0, max = 1e6,
      help = "time to synchronise after the passes of a micro-batch: used by the formula, not by "
        .. "the simulation" },
    { key = "tries", type = "integer", default = 24, min = 1, max = 1000,
      help = "number of valid plans that are simulated, least claimed time first" },
  },
  plan = plan,
  claim = claim,
}
