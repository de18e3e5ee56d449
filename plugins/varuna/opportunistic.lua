-- Execution of a schedule with opportunistic order (Varuna, section 4): a rank whose recomputation
-- still waits for its gradient runs the next forward pass first. Times may be drawn anew for every
-- pass and message, which shows how an order stands slow and unsteady links.
local events = require "events"

local opportunistic = {}

--- Passes of a rank from the tokens of a schedule: { kind = "F", "R" or "BW", micro_batch from 0 }.
local function passes_of(tokens)
  local passes = {}
  for i, token in ipairs(tokens) do
    local kind, micro_batch = token:match "^(%u+)%d+%.(%d+)$"
    passes[i] = { kind = kind, micro_batch = tonumber(micro_batch) }
  end
  return passes
end

--- Moves the next forward pass of a rank before the pass whose turn it is, where one is left.
local function forward_first(rank)
  local passes = rank.passes
  local turn = rank.turn
  for i = turn + 1, #passes do
    if passes[i].kind == "F" then
      local forward = passes[i]
      table.move(passes, turn, i - 1, turn + 1)
      passes[turn] = forward
      return
    end
  end
end

--- Ranks before the first pass: `inputs` are activations that have arrived, by micro-batch;
-- `gradients` have arrived and `used` are taken by a pass; `recomputed` is the micro-batch whose
-- activations are there again.
local function ranks_of(order)
  local ranks = {}
  local n_passes = 0
  for r, tokens in ipairs(order) do
    ranks[r] = { passes = passes_of(tokens), turn = 1, inputs = {}, gradients = 0, used = 0 }
    n_passes = n_passes + #tokens
  end
  return ranks, n_passes
end

--- Is the input of a pass there? A backward pass behind its recomputation needs no gradient more.
local function is_ready(rank, pass, is_first, is_last)
  if pass.kind == "F" then
    return is_first or rank.inputs[pass.micro_batch]
  end
  return is_last or pass.kind == "BW" and rank.recomputed == pass.micro_batch
    or rank.gradients > rank.used
end

--- The makespan of an order: time until its last pass ends. `order` is a list per rank of tokens
-- (F, R and BW of one chunk) as hv.sim.schedule gives it. `q` is { time = function(kind, rank,
-- micro_batch), time of a pass; hop = function(from, to, micro_batch), time of a message; keep =
-- true: ranks wait for their turn }. Both functions are called once per pass and message, so they
-- may draw. Ranks count from 1, micro-batches from 0; the unit of time is the caller's. Raises an
-- error for an order that waits for itself.
function opportunistic.play(order, q)
  local queue = events.queue()
  local ranks, n_left = ranks_of(order)
  local last = #order

  local function start_next(r, now)
    local rank = ranks[r]
    local pass = not rank.busy and rank.passes[rank.turn]
    if pass and pass.kind == "R" and not q.keep and rank.gradients <= rank.used then
      forward_first(rank)
      pass = rank.passes[rank.turn]
    end
    if pass and is_ready(rank, pass, r == 1, r == last) then
      rank.busy = pass
      rank.turn = rank.turn + 1
      if pass.kind == "R" or pass.kind == "BW" and rank.recomputed ~= pass.micro_batch then
        rank.used = rank.used + 1
      end
      queue:push(now + q.time(pass.kind, r, pass.micro_batch), { rank = r, ended = pass })
    end
  end

  local function finish(r, pass, now)
    ranks[r].busy = nil
    n_left = n_left - 1
    if pass.kind == "R" then
      ranks[r].recomputed = pass.micro_batch
    end
    if pass.kind == "F" and r < last then
      queue:push(now + q.hop(r, r + 1, pass.micro_batch),
        { rank = r + 1, input = pass.micro_batch })
    elseif pass.kind == "BW" and r > 1 then
      queue:push(now + q.hop(r, r - 1, pass.micro_batch), { rank = r - 1 })
    end
  end

  local function handle(now, event)
    local rank = ranks[event.rank]
    if event.ended then
      finish(event.rank, event.ended, now)
    elseif event.input then
      rank.inputs[event.input] = true
    else
      rank.gradients = rank.gradients + 1
    end
    start_next(event.rank, now)
  end

  start_next(1, 0)
  local makespan = events.run(queue, handle)
  if n_left > 0 then
    error("opportunistic.play: the order waits for itself", 2)
  end
  return makespan
end

return opportunistic
