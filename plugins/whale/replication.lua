-- The whole model on every rank, unequal shares of the batch (Whale, section 3.3.1: the replicate
-- annotation).
local deal = require "deal"
local prices = require "prices"
local ranks = require "ranks"

local replication = {}

--- Load items of the ranks: a unit is a sequence, the states of all layers are fixed memory. `c` is
-- { tp, micro_batch, recompute, sequence_parallel, zero }.
function replication.items(ctx, c, list)
  local items = {}
  for i, rank in ipairs(list) do
    local chain = prices.chain(ctx, rank.kind, c)
    items[i] = {
      speed = rank.flops_per_s, cap = prices.capacity(ctx, rank),
      fixed = prices.state_bytes(ctx, chain, 1, chain.n, { zero = c.zero, holders = #list }),
      unit = prices.saved_bytes(chain, 1, chain.n),
    }
  end
  return items
end

--- Seconds of the slowest rank for its share of one step.
local function slowest_s(ctx, c, list, items)
  local slowest = 0
  for i, rank in ipairs(list) do
    local chain = prices.chain(ctx, rank.kind, c)
    slowest = math.max(slowest, items[i].n * prices.time(chain, 1, chain.n))
  end
  return slowest
end

--- The candidate { claim_s, build } that replicates the model over `list` (of ranks.of_nodes); or
-- nil, the reason, and the factor by which memory is short. `c` is { tp, micro_batch = 1,
-- micro_batches, recompute, zero, sequence_parallel }.
function replication.candidate(ctx, c, list)
  local chain = prices.chain(ctx, list[1].kind, c)
  local items = replication.items(ctx, c, list)
  local per_step = ctx.job.global_batch // c.micro_batches
  local ok, short = deal.deal(items, per_step, 1)
  if not ok then
    return nil, ranks.shortage(ctx, 1, short and items[short], list[short])
  end
  local slowest = slowest_s(ctx, c, list, items)
  local ids = ranks.join(list)
  return {
    claim_s = c.micro_batches * slowest
      + prices.sync(ctx, chain, 1, chain.n, ranks.heads(ids, c.tp)),
    build = function()
      local stage = prices.stage_keys(c, { devices = ctx.cluster:address(ids),
        layers = { 0, chain.n }, dp = #list, shares = deal.counts(items) })
      return { micro_batch = per_step, schedule = { name = "1f1b" },
        replicas = { { micro_batches = c.micro_batches, stages = { stage } } } }
    end,
  }
end

return replication
