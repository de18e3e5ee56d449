-- The micro-batches of a batch of samples with unequal lengths (section 5).
local micro_batch_order = require "micro_batch_order"
local sample_groups = require "sample_groups"
local search = require "search"

local micro_batches = {}

--- Tokens of `count` samples in proportion to the lengths = list of {tokens, frac}, in a drawn
-- order.
local function drawn_samples(lengths, count, seed)
  local fracs, tokens = {}, {}
  for i, row in ipairs(lengths) do
    fracs[i] = row.frac
  end
  local r = hv.opt.distribute { total = count, time = fracs, objective = "ratio" }
  for i, n in ipairs(r.counts) do
    for _ = 1, n do
      tokens[#tokens + 1] = lengths[i].tokens
    end
  end
  local random = search.generator(seed)
  for i = #tokens, 2, -1 do
    local j = random(i)
    tokens[i], tokens[j] = tokens[j], tokens[i]
  end
  return tokens
end

--- Micro-batches of m samples of a group = list of positions: as they come or, with `alike`, those
-- of like size together. m divides the group. A list of {sequences, tokens = of all of them}.
local function packed(tokens, group, m, alike)
  local own = {}
  for k, i in ipairs(group) do
    own[k] = tokens[i]
  end
  if alike then
    table.sort(own)
  end
  local list = {}
  for from = 1, #own, m do
    local sum = 0
    for k = from, from + m - 1 do
      sum = sum + own[k]
    end
    list[#list + 1] = { sequences = m, tokens = sum }
  end
  return list
end

--- The micro-batches of a group in the order of section 5.2, where that ends no later than as they
-- come: their encoder times are taken in proportion to their tokens.
local function reordered(list, q)
  local times, mean = {}, 0
  for i, micro_batch in ipairs(list) do
    times[i] = micro_batch.tokens
    mean = mean + micro_batch.tokens / #list
  end
  local out = {}
  for k, i in ipairs(micro_batch_order.kept(times, mean * q.interval, q.depth)) do
    out[k] = list[i]
  end
  return out
end

--- Does the way keep all groups together, in common micro-batches?
function micro_batches.together(way)
  return way:find "alike" ~= nil
end

--- The micro-batches of a batch by data-parallel group, in one of the ways of section 5: "alike":
-- all groups together in micro-batches of like length; "given": samples as they come, dealt to the
-- groups in turns; "dealt": to the least loaded group (5.1); "ordered": of like size together, in
-- the order of section 5.2; "alike ordered": that order of "alike". q = {lengths = list of {tokens,
-- frac}, batch, dp = groups, m = samples of a micro-batch and group, seed, interval = time of the
-- backbone over that of the encoder (nil: no order), depth = stages of the backbone}. A list, one
-- for each group or one for all, of lists of {sequences, tokens}.
function micro_batches.lists(way, q)
  local tokens, all = drawn_samples(q.lengths, q.batch, q.seed), {}
  for i in ipairs(tokens) do
    all[i] = i
  end
  local together = micro_batches.together(way)
  local groups
  if together then
    groups = { all }
  elseif way == "given" then
    groups = sample_groups.in_turns(#tokens, q.dp)
  else
    groups = sample_groups.by_size(tokens, q.dp)
  end
  local m = together and q.dp * q.m or q.m
  local lists = {}
  for g, group in ipairs(groups) do
    local list = packed(tokens, group, m, together or way == "ordered")
    if way:find "ordered" and q.interval then
      list = reordered(list, q)
    end
    lists[g] = list
  end
  return lists
end

return micro_batches
