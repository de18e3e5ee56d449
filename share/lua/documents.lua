-- Documents of unequal length on the ranks of a context-parallel group.
-- Library: for the systems that pack documents before they share their attention (packed batches,
-- hybrid context parallelism, the judge's lists of documents).
local rings = require "document_rings"

local M = {}

--- The least number of ranks that a document needs.
local function least(length, per_rank)
  return math.max(1, (length + per_rank - 1) // per_rank)
end

--- One round under a limit on the work of a rank: groups of ranks with their documents; documents
-- that find no place stay in `left`. `how.open`: groups are opened before others of the same size
-- get a second document.
local function round(docs, ranks, limit, how)
  local groups, left, free = {}, {}, ranks
  for _, d in ipairs(docs) do
    local best
    for _, g in ipairs(groups) do
      local load = g.work + d.pairs / g.size
      local wide = g.size >= d.least and g.size <= math.max(d.least, how.widest * d.least)
      if wide and load <= limit * (1 + 1e-12) then
        local sooner = best and (g.size < best.size or (g.size == best.size and g.work < best.work))
        best = (sooner or not best) and g or best
      end
    end
    local opens = free >= d.least and (not best or best.size > d.least or how.open)
    if opens then
      best = { size = d.least, work = 0 }
      groups[#groups + 1] = best
      free = free - d.least
    end
    if best then
      best.work = best.work + d.pairs / best.size
      best[#best + 1] = d
    else
      left[#left + 1] = d
    end
  end
  return groups, left, free
end

--- Gives ranks without work to the busiest groups, as far as that shortens the round.
local function widen(groups, free)
  local best, sizes = math.huge, {}
  for used = 0, free do
    local top = groups[1]
    for _, g in ipairs(groups) do
      top = g.work > top.work and g or top
    end
    if top.work < best * (1 - 1e-9) then
      best = top.work
      for i, g in ipairs(groups) do
        sizes[i] = g.size
      end
    end
    if used < free then
      top.work, top.size = top.work * top.size / (top.size + 1), top.size + 1
    end
  end
  for i, g in ipairs(groups) do
    g.work, g.size = g.work * g.size / sizes[i], sizes[i]
  end
end

local function work_of(groups)
  local most = 0
  for _, g in ipairs(groups) do
    most = math.max(most, g.work)
  end
  return most
end

--- More ranks first, then longer documents.
local function by_ranks(a, b)
  if a.least ~= b.least then
    return a.least > b.least
  end
  return a.length ~= b.length and a.length > b.length or (a.length == b.length and a.at < b.at)
end

--- Ranks of a document: as few as it fits, or a power of two, or so many that none has more work
-- than `most` for it.
local function ranks_for(d, ranks, how, most)
  local n = math.max(d.least, most < math.huge and math.ceil(d.pairs / most - 1e-9) or 1)
  n = math.min(n, ranks)
  if how.powers and n > 1 then
    local p = 1
    while p < n do
      p = 2 * p
    end
    n = p <= ranks and p or n
  end
  return n
end

--- Rounds until all documents have a place; total work and tokens passed on.
local function deal_all(given, ranks, how)
  local rounds, work, passed, left = {}, 0, 0, {}
  local whole = 0
  for _, d in ipairs(given) do
    whole = whole + d.pairs
  end
  for i, d in ipairs(given) do
    left[i] = { at = d.at, length = d.length, pairs = d.pairs, least = ranks_for(d, ranks, how,
      how.spread * whole / ranks) }
  end
  table.sort(left, by_ranks)
  while #left > 0 do
    local all, most = 0, 0
    for _, d in ipairs(left) do
      all = all + d.pairs
      most = math.max(most, d.pairs / d.least)
    end
    local groups, rest, free = round(left, ranks, math.max(most, how.share * all / ranks), how)
    widen(groups, math.floor(free * how.widen))
    for _, g in ipairs(groups) do
      for _, d in ipairs(g) do
        passed = passed + d.length * (g.size - 1)
      end
    end
    work = work + work_of(groups)
    rounds[#rounds + 1], left = groups, rest
  end
  return { rounds = rounds, work = work, passed = passed }
end

--- True where `x` is to be taken instead of `y`: within the budget, then less work, then fewer
-- tokens passed on.
local function better(x, y, most)
  local fits, fitted = x.passed <= most, y.passed <= most
  if fits ~= fitted then
    return fits
  end
  local same = math.abs(x.work - y.work) <= 1e-9 * y.work
  return same and x.passed < y.passed or not same and x.work < y.work
end

--- All ways that are tried.
local function ways()
  local out = {}
  for _, spread in ipairs { math.huge, 2, 1.3, 1 } do
    for _, powers in ipairs { false, true } do
      for _, share in ipairs { 0, 0.6, 0.9, 1.05, 1.25 } do
        for k = 0, 7 do
          out[#out + 1] = { share = share, open = k % 2 == 0, widen = k // 2 / 3,
            widest = k >= 2 and 2 or 1, powers = powers, spread = spread }
        end
      end
    end
  end
  return out
end

--- Documents in rounds: in a round every rank is in one group, and a group shares each of its
-- documents evenly; a rank has at most `tokens_per_rank` of one document. Work is the tokens² of
-- the busiest rank, summed over the rounds. Rings pass the fewest tokens on where a document is on
-- as few ranks as it fits. Several limits on the work of a round are tried, and several on how much
-- of a rank one document may take; the least work is taken that passes on no more tokens than rings
-- of powers of two of ranks (document_rings), which are one of the choices.
-- deal{lengths, ranks, tokens_per_rank} -> rounds: a list per rank of documents from 1. O(tries ·
-- documents · groups). The task is that of Megatron-LM's hybrid context parallelism.
function M.deal(q)
  local docs = {}
  for i, length in ipairs(q.lengths) do
    docs[i] = { at = i, length = length, pairs = length ^ 2,
      least = least(length, q.tokens_per_rank) }
    if docs[i].least > q.ranks then
      return nil, ("document %d: %d tokens need more than %d ranks"):format(i, length, q.ranks)
    end
  end
  table.sort(docs, by_ranks)
  local best = rings.deal(docs, q.ranks)
  local most = best.passed
  for _, how in ipairs(ways()) do
    local x = deal_all(docs, q.ranks, how)
    best = better(x, best, most) and x or best
  end
  local out = {}
  for r, groups in ipairs(best.rounds) do
    local rank = 0
    out[r] = {}
    for _, g in ipairs(groups) do
      for _ = 1, g.size do
        rank = rank + 1
        out[r][rank] = {}
        for k, d in ipairs(g) do
          out[r][rank][k] = d.at
        end
      end
    end
    for k = rank + 1, q.ranks do
      out[r][k] = {}
    end
  end
  return out
end

return M
