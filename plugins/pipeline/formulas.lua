-- Closed forms of pipeline schedules, as their publications state them. p stages, m micro-batches,
-- v chunks per rank; f, b, w = seconds of forward pass, input gradient and weight gradient of a
-- stage.
local formulas = {}

--- GPipe (Huang et al. 2019, section 2.3): makespan and idle share of p equal stages.
function formulas.gpipe(p, m, pass_s)
  return (m + p - 1) * pass_s, (p - 1) / (m + p - 1)
end

--- Idle time over work of p ranks with v chunks each, interleaved or breadth-first (Narayanan et
-- al. 2021, section 2.2; Lamy-Poirier 2023, section 4).
function formulas.interleaved(p, m, v)
  return (p - 1) / (v * m)
end

--- Parameters of a GPT of L layers of width h with vocabulary V and sequences of s (equation 2).
function formulas.parameters(L, h, V, s)
  return 12 * L * h ^ 2 * (1 + 13 / (12 * h) + (V + s) / (12 * L * h))
end

--- FLOP of an iteration of B sequences with recomputation (equation 3).
function formulas.flops(B, L, h, V, s)
  return 96 * B * s * L * h ^ 2 * (1 + s / (6 * h) + V / (16 * L * h))
end

--- Days for T tokens with P parameters on n devices of X FLOP per second each (equation 4).
function formulas.days(T, P, n, X)
  return 8 * T * P / (n * X) / 86400
end

--- Idle seconds of zero-bubble schedules in the longest span of a rank (Qi et al. 2024, table 1,
-- for unlike times by the longest way through the order).
function formulas.zero_bubble(variant, p, f, b, w)
  if variant == "1f1b" then
    return (p - 1) * (f + b + w)
  elseif variant == "zb-h1" or variant == "zb-1p" then
    return (p - 1) * math.max(b, f + b - w)
  elseif variant == "zb-h2" or variant == "zb-2p" then
    return (p - 1) * math.max(0, b - f, f + b - 2 * w)
  end
  return 0 -- zb-v
end

--- Idle share of Chimera with as many micro-batches as stages, forward and backward pass alike (Li
-- and Hoefler 2021, table 2).
function formulas.chimera(D)
  return (D - 2) / (3 * D - 2)
end

--- Idle share of Hanayo with W waves, as recalled of the publication (Liu et al. 2023): unverified,
-- and not what the order has.
function formulas.hanayo(p, W)
  return (2 * p - 2) / (3 * p * W + p - 1)
end

--- Least makespan of Hanayo's order with `pass_s` of work per rank and micro-batch, two thirds of
-- it backwards, m micro-batches.
function formulas.hanayo_bound(p, m, W, pass_s)
  return m * pass_s + pass_s / 2 * (p - 1) / W
end

--- Idle share of schedules with controllable memory and their activations over 1F1B's (Qi et al.
-- 2024, table of the released code, f = b = w).
function formulas.controllable(variant, p, m)
  local whole = (p - 1) / (m + p - 1)
  if variant == "v-min" then
    return 2 / 3 * whole, 1 / 3
  elseif variant == "v-half" then
    return whole / 2, 1 / 2
  end
  return 0, 1
end

--- Micro-batches that BPipe keeps on each of p stages: a pair shares its p + 1 (Kim et al. 2023).
function formulas.paired(p)
  local kept = {}
  for s = 1, p do
    local bound = (p + 3) // 2 -- the larger half of p + 2
    kept[s] = s <= p // 2 and math.min(bound, p + 1 - s) or math.max(p + 1 - s, p + 1 - bound)
  end
  return kept
end

--- Lengths of k slices of s tokens with equal work, from the last to the first one: x tokens at the
-- end of `pre` take lin · x + quad · (pre · x - x² / 2). Rounded down to multiples, the rest goes
-- to the first slice; 0 keeps fractions (Sun et al. 2024, and its code).
function formulas.slices(s, k, lin, quad, multiple)
  local share = (lin * s + quad * s * s / 2) / k
  local lengths, pre = {}, s
  for i = k, 2, -1 do
    local slope = lin + quad * pre
    local x = quad == 0 and share / lin or (slope - math.sqrt(slope ^ 2 - 2 * quad * share)) / quad
    if multiple > 0 then
      x = x // multiple * multiple
    end
    lengths[i] = x
    pre = pre - x
  end
  lengths[1] = pre
  return lengths
end

--- Whole lengths as integers, as plans have them.
function formulas.whole(lengths)
  local list = {}
  for i, length in ipairs(lengths) do
    list[i] = math.tointeger(length)
  end
  return list
end

return formulas
