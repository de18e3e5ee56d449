-- Price of a stage on one kind of device, by Aceso's equations (Liu et al., EuroSys 2024, section
-- 3.3) with the figures of the run's cost model. A plan's layers are the operators.
local numbers = require "numbers"
local prices = require "prices"
local recomputation = require "recomputation"

local stage_price = {}

-- What a layer may recompute, from nothing to all.
local LEVELS = { "none", "selective", "core+act", "core+act+norm", "core+act+norm+out", "full" }

--- Bytes that layer l keeps by a chain's running sum.
local function kept_bytes(chain, l)
  return chain.saved[l] - chain.saved[l - 1]
end

--- Entries of recomputation.cheapest for layer l: the levels that save more than those before and
-- take no less time. chains[k] is the chain under level k.
local function front_of(chains, l)
  local base = chains[1]
  local front = { { time = 0, saved = 0, peak = 0, level = "none" } }
  for k, chain in ipairs(chains) do
    local entry = {
      level = LEVELS[k],
      time = chain.times[l] - base.times[l],
      saved = kept_bytes(base, l) - kept_bytes(chain, l),
      peak = math.max(0, chain.fixed - base.fixed),
    }
    local last = front[#front]
    if entry.saved > last.saved and entry.time >= last.time then
      front[#front + 1] = entry
    end
  end
  return front
end

--- The chain without recomputation and the fronts of its layers, remembered in `known`.
local function chain_and_fronts(ctx, known, kind, tp, rank_batch)
  local key = ("%s/%d/%d"):format(kind, tp, rank_batch)
  if not known[key] then
    local chains, fronts = {}, {}
    for k, level in ipairs(LEVELS) do
      chains[k] = prices.chain(ctx, kind, { tp = tp, micro_batch = rank_batch,
        sequence_parallel = tp > 1, recompute = level })
    end
    for l = 1, chains[1].n do
      fronts[l] = front_of(chains, l)
    end
    known[key] = { chain = chains[1], fronts = fronts }
  end
  return known[key].chain, known[key].fronts
end

--- The price of a stage as configuration.lua describes it, with `entries` = what each layer
-- recomputes and output_bytes. `known` is a table that keeps what stages share, `batch` = sequences
-- of an iteration; `reserve_bytes` of the device stay free.
function stage_price.of(ctx, known, kind, stage, batch, reserve_bytes)
  local from, to, rank_batch = stage.from, stage.to, stage.micro_batch // stage.dp
  local chain, fronts = chain_and_fronts(ctx, known, kind, stage.tp, rank_batch)
  local in_flight = math.min(stage.behind + 1, batch // stage.micro_batch)
  local bytes = prices.bytes(ctx, chain, from, to,
    { in_flight = in_flight, zero = ctx.options.zero, holders = stage.dp })
  local cap = prices.capacity(ctx, { kind = kind }) - reserve_bytes
  local again_s, saved, peak, entries = recomputation.cheapest(
    numbers.slice(fronts, from, to - from + 1), bytes - cap, in_flight)
  if again_s then
    bytes = bytes - saved * in_flight + peak
  end
  local single = prices.chain(ctx, kind, { tp = 1, micro_batch = 1 })
  local time_s = prices.time(chain, from, to)
  local ideal_s = prices.time(single, from, to) * stage.micro_batch / (stage.tp * stage.dp)
  return {
    time_s = time_s + (again_s or 0), ideal_s = math.min(ideal_s, time_s),
    recompute_s = again_s or 0, bytes = bytes, cap = cap, entries = entries,
    output_bytes = chain.output_bytes,
  }
end

return stage_price
