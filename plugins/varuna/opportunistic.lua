-- Pipelines played with times that are drawn anew for every pass and every hop: orders of a
-- schedule, where a rank whose recomputation still waits for its gradient takes the next forward
-- first (Varuna, EuroSys 2022, section 4). What an order is worth when links are slow and unsteady.
local events = require "events"

local opportunistic = {}

--- Passes of a rank from their tokens: {kind, micro-batch from 0}.
local function passes_of(tokens)
  local list = {}
  for i, token in ipairs(tokens) do
    local kind, micro_batch = token:match "^(%u+)%d+%.(%d+)$"
    list[i] = { kind = kind, micro_batch = tonumber(micro_batch) }
  end
  return list
end

--- Brings the next forward before the recomputation at whose turn it is, if one is left.
local function forward_first(rank)
  local list, at = rank.passes, rank.at
  for i = at + 1, #list do
    if list[i].kind == "F" then
      local forward = list[i]
      table.move(list, at, i - 1, at + 1)
      list[at] = forward
      return
    end
  end
end

--- Seconds until the last pass of an order ends.
-- @function opportunistic.play
-- @tparam table order list per rank of tokens (F, R and BW of one chunk), as hv.sim.schedule gives
-- it
-- @tparam table q {time = function(kind, rank, micro_batch) giving the time of a pass, hop =
-- function(from, to, micro_batch) giving the time of a message, keep = true: ranks wait for their
-- turn}; called once per pass and message, so they may draw
-- @treturn number the makespan
-- @units any unit of time, the caller's; ranks from 1, micro-batches from 0
-- @raise an order that cannot end, as it waits for itself
-- @usage local order = hv.sim.schedule("varuna", { ranks = 2, micro_batches = 4 }).order
-- print(require("opportunistic").play(order, { time = function(kind) return kind == "BW" and 2 or 1 end,
--   hop = function() return 0 end }))
function opportunistic.play(order, q)
  local queue, ranks, left, last = events.queue(), {}, 0, #order
  for r, tokens in ipairs(order) do
    ranks[r] = { passes = passes_of(tokens), at = 1, inputs = {}, gradients = 0, used = 0 }
    left = left + #tokens
  end

  local function is_ready(r, rank, pass)
    if pass.kind == "F" then
      return r == 1 or rank.inputs[pass.micro_batch]
    end
    return r == last or pass.kind == "BW" and rank.again == pass.micro_batch
      or rank.gradients > rank.used
  end

  local function serve(r, now)
    local rank = ranks[r]
    local pass = not rank.busy and rank.passes[rank.at]
    if pass and pass.kind == "R" and not q.keep and rank.gradients <= rank.used then
      forward_first(rank)
      pass = rank.passes[rank.at]
    end
    if pass and is_ready(r, rank, pass) then
      rank.busy, rank.at = pass, rank.at + 1
      if pass.kind == "R" or pass.kind == "BW" and rank.again ~= pass.micro_batch then
        rank.used = rank.used + 1
      end
      queue:push(now + q.time(pass.kind, r, pass.micro_batch), { rank = r, ended = pass })
    end
  end

  local function handle(now, event)
    local r, pass = event.rank, event.ended
    local rank = ranks[r]
    if not pass then
      if event.input then
        rank.inputs[event.input] = true else
        rank.gradients = rank.gradients + 1
      end
    else
      rank.busy, left = nil, left - 1
      if pass.kind == "R" then
        rank.again = pass.micro_batch
      end
      if pass.kind == "F" and r < last then
        queue:push(now + q.hop(r, r + 1, pass.micro_batch),
          { rank = r + 1, input = pass.micro_batch })
      elseif pass.kind == "BW" and r > 1 then
        queue:push(now + q.hop(r, r - 1, pass.micro_batch), { rank = r - 1 })
      end
    end
    serve(r, now)
  end

  serve(1, 0)
  local makespan = events.run(queue, handle)
  if left > 0 then
    error("opportunistic.play: the order waits for itself", 2)
  end
  return makespan
end

--- A normal draw from two uniform ones (Box and Muller).
-- @function opportunistic.normal
-- @tparam function uniform function() giving a number from 0 up to, but not, 1
-- @treturn number drawn with mean 0 and deviation 1
-- @units none
-- @raise none
-- @usage print(require("opportunistic").normal(hv.random))
function opportunistic.normal(uniform)
  return math.sqrt(-2 * math.log(1 - uniform())) * math.cos(2 * math.pi * uniform())
end

--- A normal draw that is drawn anew while it is below a limit.
-- @function opportunistic.drawn
-- @tparam number mean of the draws, limit aside
-- @tparam number deviation of them
-- @tparam number least the limit
-- @treturn number the draw
-- @units any
-- @raise none
-- @usage assert(require("opportunistic").drawn(10, 2, 0) >= 0)
function opportunistic.drawn(mean, deviation, least)
  local x
  repeat
    x = mean + deviation * opportunistic.normal(hv.random)
  until x >= least
  return x
end

--- Mean makespan over plays whose hops deviate, later only, and whose passes deviate by a fifth of
-- that.
-- @function opportunistic.mean
-- @tparam table order list per rank of tokens, as opportunistic.play takes it
-- @tparam table times {f, b = list per rank, hop = list per pair of neighbours}
-- @tparam number jitter deviation of a hop
-- @tparam integer plays how many
-- @treturn number the mean
-- @units any unit of time, the caller's
-- @raise as opportunistic.play
-- @usage local order = hv.sim.schedule("varuna", { ranks = 1, micro_batches = 4 }).order
-- assert(require("opportunistic").mean(order, { f = { 1 }, b = { 2 }, hop = {} }, 0, 1) == 12)
function opportunistic.mean(order, times, jitter, plays)
  local sum = 0
  for _ = 1, plays do
    sum = sum + opportunistic.play(order, {
      time = function(kind, r)
        return math.max(0, (kind == "BW" and times.b or times.f)[r]
            + jitter / 5 * opportunistic.normal(hv.random))
      end,
      hop = function(from, to)
        return times.hop[math.min(from, to)] + math.abs(jitter * opportunistic.normal(hv.random))
      end })
  end
  return sum / plays
end

return opportunistic
