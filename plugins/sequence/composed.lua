-- Sequence parallelism on somebody else's plan: data-parallel ranks of a stage become ranks of one
-- sequence, with so many more micro-batches; all numbers of ranks and layouts are simulated.
local composition = require "composition"
local layouts = require "layouts"
local numbers = require "numbers"
local prices = require "prices"

local composed = {}

--- Why the plan cannot be changed, or nil.
local function clash(id, made)
  for r, replica in ipairs(made.replicas) do
    for s, stage in ipairs(replica.stages) do
      local cp = stage.cp
      local cut = type(cp) == "table" and (cp.degree or 1) > 1 or type(cp) == "number" and cp > 1
      for _, key in ipairs { "shares", "deal", "degrees", cut and "cp" or nil } do
        if stage[key] then
          return ("%s and the plan both decide replicas[%d].stages[%d].%s; leave one of them out")
            :format(id, r - 1, s - 1, key)
        end
      end
    end
  end
end

--- The largest number of ranks that all stages can give a sequence.
local function most_ranks(made)
  local most = 0
  for _, replica in ipairs(made.replicas) do
    for _, stage in ipairs(replica.stages) do
      most = numbers.gcd(most, stage.dp or 1)
    end
  end
  return most
end

--- The plan with n data-parallel ranks as those of a sequence; nil where lists of micro-batches or
-- sizes do not divide.
local function cut(made, n, set)
  local plan = composition.start(made)
  local size = plan.micro_batch or 1
  if size % n ~= 0 then
    return nil
  end
  plan.micro_batch = size // n
  for _, replica in ipairs(plan.replicas) do
    if type(replica.micro_batches) ~= "number" or replica.micro_batch then
      return nil
    end
    replica.micro_batches = replica.micro_batches * n
    for _, stage in ipairs(replica.stages) do
      stage.dp = (stage.dp or 1) // n
      set(stage)
    end
  end
  return plan
end

--- Simulates a plan: its seconds, or nil and what is wrong.
local function seconds_of(plan)
  if not plan then
    return nil, "the sequences of a micro-batch do not divide by the ranks"
  end
  local verdict, why = hv.plan.new(plan):eval()
  if verdict and #verdict.violations > 0 then
    return nil, verdict.violations[1].text
  end
  return verdict and verdict.iteration_s, why
end

--- Tries all layouts over n ranks; found = { plan, seconds, reason } so far.
local function try(made, ctx, n, set, found)
  local list, refused = layouts.all(ctx, { cp = n,
    tp = prices.degree(made.replicas[1].stages[1]) })
  found.reason = found.reason or refused
  for _, cp in ipairs(list) do
    local plan = cut(made, n, function(stage)
      set(stage, composition.copy(cp))
    end)
    local seconds, why = seconds_of(plan)
    found.reason = found.reason or why
    if seconds and (not found.plan or seconds < found.seconds) then
      found.plan, found.seconds = plan, seconds
    end
  end
end

--- The fastest plan with 2 or more ranks for a sequence, or nil and why there is none; set(stage,
-- cp) = how the system sets a layout in a stage.
function composed.apply(made, ctx, set)
  made = prices.table_of(made)
  local why = composition.clash(ctx) or clash(ctx.system.id, made)
  if why then
    return nil, why
  end
  local found = {}
  for _, n in ipairs(numbers.divisors(most_ranks(made))) do
    if n > 1 and ctx.job.sequence % n == 0 then
      try(made, ctx, n, set, found)
    end
  end
  return found.plan, not found.plan and (found.reason or "the plan has no data-parallel ranks that "
    .. "could share a sequence") or nil
end

--- Norms and dropout of tensor-parallel stages split, the attention core computed again.
function composed.split_norms(made, ctx)
  local why = composition.clash(ctx)
  if why then
    return nil, why
  end
  made = composition.start(made)
  local any = false
  for _, replica in ipairs(made.replicas) do
    for _, stage in ipairs(replica.stages) do
      if prices.degree(stage) > 1 then
        any = true
        stage.sequence_parallel, stage.recompute = true, "selective"
      end
    end
  end
  return any and made or nil, not any and "the plan has no tensor-parallel ranks" or nil
end

return composed
