-- The problem that stage_search.search solves, with the options of a run and the prices of its
-- cluster.
local grids = require "grids"
local inventory = require "inventory"
local links = require "links"
local numbers = require "numbers"
local prices = require "prices"

-- Share of the memory that the last round of recomputation may fill.
local FILLED_FRAC = 0.97

local problem = {}

--- Sequences of every replica: the same number on equal replicas, by speed on unequal ones, at
-- least one each.
local function shares(sequences, sequence_times, same_kind)
  if same_kind then
    return numbers.even(sequences, #sequence_times)
  end
  local least = {}
  for r = 1, #sequence_times do
    least[r] = 1
  end
  return hv.opt.distribute { total = sequences, time = sequence_times, min = least }.counts
end

--- Seconds per byte of the ring through the first device of every tensor-parallel group.
local function ring_s_per_byte(ctx, stage)
  local heads = {}
  for r = 1, stage.dp do
    heads[r] = stage.order[stage.from + (r - 1) * stage.tp + 1].id
  end
  return links.ring(ctx, heads, 1)
end

--- The problem on these nodes with "none" or "full" recomputation; times in seconds.
function problem.of(ctx, nodes, recompute)
  local options = ctx.options
  local outputs_bytes = hv.cost.layers { kinds = { nodes[1].kind }, micro_batch = 1 }:sizes "output"
  local p = {
    layers = ctx.model.n_layers, batch = ctx.job.global_batch,
    orders = inventory.orders(nodes),
    micro_batch_counts = numbers.divisors(ctx.job.global_batch),
    max_stages = options.stages,
    max_tp = grids.largest_tp(ctx.model:layers(), inventory.node_size(nodes), 64),
    variance = options.variance, max_blocks = options.permute, max_orders = options.groups,
    budget = options.budget, keep = options.tries + 4,
    per_micro_batch = (options.batch_ms + options.sync_ms) / 1000,
    shares = shares, stopping = hv.stopping,
  }
  local function chain(kind, tp, share)
    return prices.chain(ctx, kind, { tp = tp, micro_batch = share, recompute = recompute,
      sequence_parallel = tp > 1 })
  end
  function p.sequence_time(kind, tp)
    return prices.time(chain(kind, tp, 1), 1, p.layers)
  end
  function p.layer_times(kind, tp, share)
    if share > options.micro_batch then
      return nil
    end
    return chain(kind, tp, share).times
  end
  function p.memory(kind, tp, share, in_flight)
    local own = chain(kind, tp, share)
    local filled_frac = recompute == "none" and 1 or FILLED_FRAC
    local room_bytes = filled_frac * prices.capacity(ctx, { kind = kind })
      - prices.overhead_bytes(ctx, own)
    return prices.layer_bytes(ctx, own, { in_flight = in_flight }), room_bytes
  end
  function p.exchange(stage, first, last)
    stage.ring_s_per_byte = stage.ring_s_per_byte or ring_s_per_byte(ctx, stage)
    local own = chain(stage.kinds[1].kind, stage.tp, 1)
    return stage.ring_s_per_byte * prices.gradient_bytes(ctx, own, first, last)
  end
  function p.hop(stage, next_stage, layer)
    local from = stage.order[stage.from + stage.size].id
    local to = next_stage.order[next_stage.from + 1].id
    return links.seconds(ctx, from, to, outputs_bytes[layer] * stage.kinds[1].share)
  end
  function p.update(stage, first, last)
    local longest = 0
    for _, row in ipairs(stage.kinds) do
      longest = math.max(longest,
        prices.update(ctx, chain(row.kind, stage.tp, 1), first, last))
    end
    return longest
  end
  return p
end

return problem
