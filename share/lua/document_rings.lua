-- Documents on rings of powers of two of ranks, round by round, as Megatron-LM's scheduler of
-- hybrid context parallelism deals them: the longest first, each to the least loaded ring of its
-- size or a new one; a round ends when its ranks are even; rings are doubled while ranks have
-- nothing to do.
-- Library: for `documents`, which does no worse than this.
local rings = {}

local EVEN = 0.05   -- a round is even when its ranks differ by no more of the busiest
local BUCKET = 1.1  -- work of a bucket over its even share

--- The least power of two of ranks with room for a document; all ranks where that is more.
local function ranks_of(document, ranks)
  local n = 1
  while n < document.least do
    n = 2 * n
  end
  return math.min(n, ranks)
end

--- Documents in lists of about equal work, as many as there are sizes of rings; the longest first.
local function buckets_of(documents)
  local sizes, k, all = {}, 0, 0
  for _, d in ipairs(documents) do
    k = k + (sizes[d.ring] and 0 or 1)
    sizes[d.ring], all = true, all + d.pairs / d.ring
  end
  local list, last, work = {}, nil, 0
  for i, d in ipairs(documents) do
    local own = d.pairs / d.ring
    local rest = #documents - i + 1 <= k - #list
    if last and (work + own > BUCKET * all / k or rest) then
      list[#list + 1], last, work = last, nil, 0
    end
    last = last or {}
    last[#last + 1], work = d, work + own
  end
  list[#list + 1] = last
  return list
end

--- The least loaded ring of a size; nil where there is none.
local function lightest(round, size)
  local best
  for _, ring in ipairs(round) do
    best = ring.size == size and (not best or ring.work < best.work) and ring or best
  end
  return best
end

--- Work of the busiest and of the idlest rank.
local function extremes(round)
  local most, least = 0, round.free > 0 and 0 or math.huge
  for _, ring in ipairs(round) do
    most, least = math.max(most, ring.work), math.min(least, ring.work)
  end
  return most, least
end

--- Puts the next document that finds a place into the round; returns it, or nil.
local function place_next(round, buckets)
  for b, bucket in ipairs(buckets) do
    local d = bucket[1]
    local ring = lightest(round, d.ring)
    if ring or round.free >= d.ring then
      if round.free >= d.ring and not (ring and ring.work <= 0) then
        ring = { size = d.ring, work = 0 } -- ranks without work are the least loaded ones
        round[#round + 1], round.free = ring, round.free - d.ring
      end
      ring[#ring + 1], ring.work = d, ring.work + d.pairs / d.ring
      table.remove(bucket, 1)
      if #bucket == 0 then
        table.remove(buckets, b)
      end
      return d
    end
  end
end

--- Takes the last document of the busiest ring out again, as long as ranks get more even by that.
local function trim(round, left)
  while round.free == 0 do
    local most, least = extremes(round)
    local top
    for _, ring in ipairs(round) do
      top = top or ring.work == most and ring
    end
    if most - least <= EVEN * most or #top < 2 then
      return
    end
    local last = top[#top]
    top.work = top.work - last.pairs / top.size
    local after_most, after_least = extremes(round)
    if after_most - after_least >= most - least then
      top.work = top.work + last.pairs / top.size
      return
    end
    left[#left + 1], top[#top] = last, nil
  end
end

--- Doubles the first of the smallest rings while ranks have nothing to do.
local function double(round)
  while round.free > 0 do
    local smallest
    for _, ring in ipairs(round) do
      smallest = (not smallest or ring.size < smallest.size) and ring or smallest
    end
    local more = math.min(smallest.size, round.free)
    smallest.work = smallest.work * smallest.size / (smallest.size + more)
    smallest.size, round.free = smallest.size + more, round.free - more
  end
end

--- One round: its rings, and the documents that are left.
local function round_of(documents, ranks)
  local round, buckets, left = { free = ranks }, buckets_of(documents), {}
  local first
  while #buckets > 0 do
    local d = place_next(round, buckets)
    if not d then
      break
    end
    first = first or d.ring
    local most, least = extremes(round)
    if first > d.ring then
      round.shorter = true
    end
    if round.shorter and #buckets > 0 and most - least <= EVEN * most then
      break
    end
  end
  for _, bucket in ipairs(buckets) do
    table.move(bucket, 1, #bucket, #left + 1, left)
  end
  trim(round, left)
  double(round)
  return round, left
end

--- Rounds of rings until every document has a place. deal(documents, ranks), documents = list of
-- {at = number, length, pairs = work of the whole, least = ranks that it fits on, no more than
-- there are} -> {rounds = lists of rings {size, work = of a rank, documents}, work = the busiest
-- rank's, over all rounds, passed = tokens that rings pass on}. O(documents² · rings).
function rings.deal(documents, ranks)
  local left, out = {}, { rounds = {}, work = 0, passed = 0 }
  for i, d in ipairs(documents) do
    left[i] = { at = d.at, length = d.length, pairs = d.pairs, least = d.least }
    left[i].ring = ranks_of(d, ranks)
  end
  local function longest(a, b)
    return a.length ~= b.length and a.length > b.length or a.length == b.length and a.at < b.at
  end
  table.sort(left, longest)
  while #left > 0 do
    local round
    round, left = round_of(left, ranks)
    local most = 0
    for _, ring in ipairs(round) do
      most = math.max(most, ring.work)
      for _, d in ipairs(ring) do
        out.passed = out.passed + d.length * (ring.size - 1)
      end
    end
    out.work, out.rounds[#out.rounds + 1] = out.work + most, round
  end
  return out
end

return rings
