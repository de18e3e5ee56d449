-- Strategies of a layer (Galvatron, Miao et al., VLDB 2023, section 3): tp = tensor degree, sp =
-- Ulysses sequence-parallel degree (tp or sp is 1), dp = data degree, zero = ZeRO stage 0, 2 or 3
-- over the sp x dp ranks, full = recomputed.
local strategies = {}

--- Adds the strategies of two degrees: those that shard, each without and with recomputation. A
-- strategy and its recomputed twin follow each other in the list.
local function add(list, devices, micro_batch, tp, sp)
  local dp = devices // (tp * sp)
  if tp * sp * dp ~= devices or micro_batch % dp ~= 0 then
    return
  end
  for _, zero in ipairs(dp * sp > 1 and { 2, 3 } or { 0 }) do
    for _, full in ipairs { false, true } do
      list[#list + 1] = { tp = tp, sp = sp, dp = dp, zero = zero, full = full }
    end
  end
end

--- All strategies for a stage of `devices` devices, with degrees that are powers of two.
-- `micro_batch` is the number of sequences that enter the stage at once; `largest` holds the
-- largest degrees { tp, sp }.
function strategies.all(devices, micro_batch, largest)
  local list = {}
  local degree = 1
  while degree <= devices do
    if degree <= largest.tp then
      add(list, devices, micro_batch, degree, 1)
    end
    if degree > 1 and degree <= largest.sp then
      add(list, devices, micro_batch, 1, degree)
    end
    degree = 2 * degree
  end
  return list
end

--- Share of a layer's states that a rank holds under a ZeRO stage over so many ranks. With several
-- micro-batches gradients are accumulated in 32 bits beside the 16-bit copy, a quarter more; the
-- factors are those of the authors' code.
function strategies.state_share(zero, ranks, micro_batches)
  local accumulated = 1
  if micro_batches > 1 then
    accumulated = 5 / 4
  end
  local sharded = 1 / ranks + 0.003
  if zero == 3 then
    return sharded * accumulated
  elseif zero == 2 then
    return (7 / 8 * sharded + 1 / 8) * accumulated
  end
  return 1
end

return strategies
