-- Settings of pipelines: micro-batch and recomputation, with the least number of nodes n0 that
-- holds the model. A setting is { micro_batch, recompute, faults, most_sizes, reserve = bytes of
-- every device that are left unused, layers, total = micro-batches of all pipelines, memo = its
-- templates, rule, deal = options coefficient and deal; least = n0, estimate_s and rank from
-- settings.ordered }.
local gpu_split = require "gpu_split"
local numbers = require "numbers"
local prices = require "prices"
local templates = require "templates"

local settings = {}

--- A setting without templates.
function settings.new(ctx, micro_batch, recompute, reserve)
  local options = ctx.options
  return { micro_batch = micro_batch, recompute = recompute, faults = options.faults,
    most_sizes = options.sizes, reserve = reserve,
    layers = ctx.model:layers(), total = ctx.job.global_batch // micro_batch, memo = {},
    rule = options.coefficient, deal = options.deal }
end

--- n0: the least number of consecutive nodes whose memory holds the model (section 4.1.1); nil
-- where all together do not.
local function least_nodes(ctx, sequence, c)
  for n = 1, #sequence do
    for from = 1, #sequence - n + 1 do
      if templates.of(ctx, numbers.slice(sequence, from, n), c) then
        return n
      end
    end
  end
end

--- Micro-batches per second of a node as part of an ever full pipeline; 0 where it fits none.
local function node_rate(ctx, node, c)
  for _, parts in ipairs(numbers.powers(2 * #node.ids - 1)) do
    local stages = gpu_split.stages({ node }, gpu_split.even({ node }, parts), c.layers)
    if stages then
      return 1 / templates.lower_bound(ctx, { stages[1] }, c)
    end
  end
  return 0
end

--- Seconds of an iteration when every node works all the time and every pipeline has n0 nodes that
-- fill once: settings are ranked by it.
local function estimate_s(ctx, sequence, c)
  local rate = 0
  local known = {}
  for _, node in ipairs(sequence) do
    local key = templates.signature { node }
    known[key] = known[key] or node_rate(ctx, node, c)
    rate = rate + known[key]
  end
  return (c.total + #sequence * (c.least - 1) / c.least) / rate
end

--- Settings under which some nodes hold the model, the least estimated time first.
function settings.ordered(ctx, sequence, reserve)
  local list = {}
  for _, micro_batch in ipairs(numbers.powers(ctx.options.micro_batch)) do
    for _, recompute in ipairs { "none", "selective", "full" } do
      local c = settings.new(ctx, micro_batch, recompute, reserve)
      c.least = ctx.job.global_batch % micro_batch == 0 and least_nodes(ctx, sequence, c)
      if c.least then
        c.estimate_s = estimate_s(ctx, sequence, c)
        c.rank = #list + 1
        list[c.rank] = c
      end
    end
  end
  table.sort(list, function(a, b)
    if a.estimate_s ~= b.estimate_s then
      return a.estimate_s < b.estimate_s
    end
    return a.rank < b.rank
  end)
  return list
end

local function nodes_text(n)
  return ("%d node%s"):format(n, n == 1 and "" or "s")
end

--- The reason why no plan survives `faults` node failures; `c` is the setting whose
-- n0 is named, nil where the model does not fit at all.
function settings.shortage(ctx, sequence, faults, c)
  local have_bytes = 0
  for _, node in ipairs(sequence) do
    have_bytes = have_bytes + #node.ids * prices.capacity(ctx, node)
  end
  local chain = prices.chain(ctx, sequence[1].kind, { tp = 1, micro_batch = 1, recompute = "full" })
  local need_bytes = prices.bytes(ctx, chain, 1, chain.n, { in_flight = 1 })
  local need_nodes = "more than all nodes"
  if c then
    need_nodes = "at least " .. nodes_text(c.least)
  end
  return ("to survive %d node failure%s takes %d pipelines; one needs %s and %.1f GiB, the "
      .. "cluster has %s with %.1f GiB"):format(faults, faults == 1 and "" or "s", faults + 1,
        need_nodes, need_bytes / 2 ^ 30, nodes_text(#sequence), have_bytes / 2 ^ 30)
end

return settings
