--- Candidates of a search: they are ranked by a formula, and the first ones are simulated.
local candidates = {}

--- Text and excess bytes of the first memory violation of a verdict, or nil.
function candidates.memory_reason(verdict)
  for _, v in ipairs(verdict.violations or {}) do
    if v.code == "memory" then
      return v.text, v.by
    end
  end
end

-- What a plan file can hold: micro-batches of a replica, sequences of a micro-batch.
local MOST_MICRO_BATCHES, MOST_SEQUENCES = 1 << 24, 1 << 22

--- Can a plan hold so many micro-batches of so many sequences? False comes with the reason.
function candidates.sizes_fit(micro_batches, sequences)
  if micro_batches > MOST_MICRO_BATCHES then
    return false, ("a plan has at most %d micro-batches per replica, this one needs %d; a larger "
      .. "micro-batch or a smaller global batch fits"):format(MOST_MICRO_BATCHES, micro_batches)
  elseif sequences > MOST_SEQUENCES then
    return false, ("a micro-batch has at most %d sequences, this one needs %d; more micro-batches "
      .. "or a smaller global batch fit"):format(MOST_SEQUENCES, sequences)
  end
  return true
end

--- The same for all replicas of a plan table.
local function all_sizes_fit(plan)
  for _, replica in ipairs(type(plan) == "table" and plan.replicas or {}) do
    local micro_batches = replica.micro_batches or 1 -- a number, or a list with a size of each
    local fits, why = candidates.sizes_fit(
      type(micro_batches) == "table" and #micro_batches or micro_batches,
      replica.micro_batch or plan.micro_batch or 1)
    if not fits then
      return false, why
    end
  end
  return true
end

--- Simulates a plan table: the verdict, or nil, the rule that it breaks, and by how many bytes
-- (infinite for violations other than memory). `iterations`: so many of the job's routing stand for
-- all of them (all).
function candidates.judge(plan, iterations)
  local fits, unfit = all_sizes_fit(plan)
  if not fits then
    return nil, unfit, math.huge
  end
  local verdict, why = hv.plan.new(plan):eval(iterations and { iterations = iterations })
  if not verdict then
    return nil, why, math.huge
  elseif #verdict.violations == 0 then
    return verdict
  end
  local text, excess_bytes = candidates.memory_reason(verdict)
  if text then
    return nil, text, excess_bytes or math.huge
  end
  return nil, verdict.violations[1].text, math.huge
end

--- An iterator that ends early when a share of the run's time is used, so that time is left to
-- simulate what it gave.
-- @function candidates.in_time
-- @tparam function step gives the next item, nil at the end, as search.product does
-- @tparam[opt] number share of the time limit (0.4)
-- @treturn function the items of `step` up to that time
-- @units share is a fraction
-- @raise outside a run
-- @usage local n = 0
-- local step = require("search").product { { 1, 2 }, { 3 } }
-- for _ in require("candidates").in_time(step) do n = n + 1 end
-- assert(n <= 2)
function candidates.in_time(step, share)
  return function()
    if hv.stopping(share or 0.4) then
      return nil
    end
    return step() or nil
  end
end

local function by_claim(a, b)
  if a.claim_s ~= b.claim_s then
    return a.claim_s < b.claim_s
  end
  return a.rank < b.rank
end

--- Sorts candidates { claim_s, rank, build() } by claim_s and simulates them in that order until
-- `tries` valid plans were found, at most four times as many candidates. Returns the plan with the
-- least simulated time, or the least weigh(verdict, candidate) where `weigh` is given, that value
-- and the candidate; or nil and the violation of the least excess of memory.
function candidates.best(list, tries, weigh)
  table.sort(list, by_claim)
  local best, best_candidate
  local best_value = math.huge
  local reason
  local least_excess_bytes = math.huge
  local n_valid = 0
  for i, candidate in ipairs(list) do
    if n_valid >= tries or i > 4 * tries or (best and hv.stopping()) then
      break
    end
    hv.progress(n_valid / tries, ("plan %d of %d"):format(i, #list))
    local plan = candidate.build()
    local verdict, why, excess_bytes = candidates.judge(plan)
    if verdict then
      n_valid = n_valid + 1
      local value = weigh and weigh(verdict, candidate) or verdict.iteration_s
      if value < best_value then
        best = plan
        best_value = value
        best_candidate = candidate
        hv.incumbent(plan)
      end
    elseif not reason or excess_bytes < least_excess_bytes then
      reason = why
      least_excess_bytes = excess_bytes
    end
  end
  if not best then
    return nil, reason
  end
  return best, best_value, best_candidate
end

-- Candidates of a large cluster that are simulated as soon as they are added.
local EARLY = 4

--- A collection of candidates in the order in which they are added: add(candidate), or add(nil,
-- reason, miss) where there is none; the reason with the least miss is kept. With `early` the first
-- candidates are simulated at once until one is valid, in case the time runs out: on large
-- clusters.
function candidates.new(early)
  local all = { list = {}, reason = nil, miss = math.huge }
  function all.add(candidate, reason, miss)
    if candidate then
      candidate.rank = #all.list + 1
      all.list[candidate.rank] = candidate
      if early and candidate.rank <= EARLY then
        early = not hv.incumbent(candidate.build())
      end
    elseif reason and miss < all.miss then
      all.reason = reason
      all.miss = miss
    end
  end

  --- Bytes by which the candidate of least claim exceeds a memory; 0 where it does not, or breaks
  -- another rule.
  function all.over()
    local first
    for _, candidate in ipairs(all.list) do
      if not first or first.claim_s > candidate.claim_s then
        first = candidate
      end
    end
    local verdict, _, excess_bytes = candidates.judge(first.build())
    if verdict or excess_bytes == math.huge then
      return 0
    end
    return excess_bytes
  end

  --- The plan that candidates.best chooses, else that of the collection `before`; or nil and the
  -- reason, `otherwise` where there are no candidates and no reason was added.
  function all.best(tries, otherwise, weigh)
    if #all.list == 0 then
      return nil, all.reason or otherwise
    end
    local reason
    local collection = all
    while collection do
      local best, why = candidates.best(collection.list, tries, weigh)
      if best then
        return best
      end
      reason = reason or why
      collection = collection.before
    end
    return nil, reason or all.reason
  end

  return all
end

-- Searches with different reserves: enough to double 32 MiB up to 4 GiB and to halve the last step.
local MOST_SEARCHES = 10

--- Searches again with less memory as long as the first choice of a planner, whose formula knows
-- memory only roughly, exceeds it: search(reserve_bytes) gives a collection. The reserve grows by
-- 1.1 times the excess, and at least to twice its size, since a cut of whole layers may not change
-- before it is as large as what the formula misses; where nothing fits any more, it goes half of
-- the way back. Returns the last collection with a candidate, which tries those of before where
-- none of its own is valid, or nil.
function candidates.within(search)
  local reserve_bytes = 0
  local fits_bytes, too_much_bytes = 0, nil
  local last
  for _ = 1, MOST_SEARCHES do
    local all = search(reserve_bytes)
    if #all.list > 0 then
      all.before = last
      last = all
      fits_bytes = reserve_bytes
      local excess_bytes = hv.stopping() and 0 or all.over()
      if excess_bytes == 0 then
        break
      end
      reserve_bytes = math.max(reserve_bytes + 1.1 * excess_bytes, 2 * reserve_bytes)
    elseif last then
      too_much_bytes = reserve_bytes
    else
      break
    end
    if too_much_bytes and reserve_bytes >= too_much_bytes then
      reserve_bytes = (fits_bytes + too_much_bytes) / 2
    end
  end
  return last
end

--- The option `tries` of systems that rank plans by a formula.
-- @function candidates.tries_option
-- @tparam integer default how many plans are simulated
-- @treturn table a row of `options` of a plugin: {key, type, default, min, max, help}
-- @units none
-- @raise none
-- @usage assert(require("candidates").tries_option(8).key == "tries")
function candidates.tries_option(default)
  return { key = "tries", type = "integer", default = default, min = 1, max = 1000,
    help = "number of fitting plans that are simulated, in the order of the formula" }
end

--- The option `micro_batch` of systems that try powers of two.
-- @function candidates.micro_batch_option
-- @tparam integer default the largest micro-batch
-- @treturn table a row of `options` of a plugin: {key, type, default, min, max, help}
-- @units sequences
-- @raise none
-- @usage assert(require("candidates").micro_batch_option(8).default == 8)
function candidates.micro_batch_option(default)
  return { key = "micro_batch", type = "integer", default = default, min = 1, max = 4096,
    help = "largest micro-batch in sequences; powers of two up to it are tried" }
end

return candidates
