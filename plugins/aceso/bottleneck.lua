-- Iterative bottleneck alleviation (Aceso, Liu et al., EuroSys 2024, section 4): a configuration is
-- improved by primitives on its bottleneck stage, several in a row where one does not help.
-- Problems and configurations are those of configuration.lua.
local configuration = require "configuration"
local primitives = require "primitives"

local bottleneck = {}

local DEFAULT_HOPS = 7 -- primitives in a row, as in the paper
local BOTTLENECKS = 3 -- stages that count as bottlenecks
local DEEPER = 3 -- configurations from which a search with one primitive more goes on
local NEAR = 1.2 -- largest ratio to the best time at which a configuration is explored

--- Applies the primitives of a group to stage s. Returns the new configurations, the best of them
-- and `base`, and whether the search has to end. `w` is the state of the search.
local function apply_group(w, rated, base, s, group)
  local found = {}
  local best = base
  for _, name in ipairs(group) do
    for _, config in ipairs(primitives.applied(w.problem, rated, s, name)) do
      local key = configuration.key(config)
      if w.left <= 0 or w.stopping() then
        return found, best, true
      end
      if not w.seen[key] then
        w.seen[key] = true
        w.left = w.left - 1
        local other = configuration.rated(w.problem, config)
        if other then
          found[#found + 1] = other
          w.all[#w.all + 1] = other
          other.rank = #w.all
          if configuration.is_better(other, best) then
            best = other
          end
        end
      end
    end
  end
  return found, best, false
end

--- Up to `hops` primitives in a row on stage s and then on the bottlenecks that follow; the first
-- configuration that is better than `base`, nil where there is none.
local function hop(w, rated, base, s, hops)
  for _, group in ipairs(primitives.groups(rated, s)) do
    local found, best, ended = apply_group(w, rated, base, s, group)
    if best ~= base then
      return best
    elseif ended then
      return nil
    end
    table.sort(found, configuration.comes_first)
    for k = 1, hops > 1 and math.min(DEEPER, #found) or 0 do
      local first_stage = configuration.bottlenecks(found[k])[1]
      local deeper = hop(w, found[k], base, first_stage, hops - 1)
      if deeper then
        return deeper
      end
    end
  end
  return nil
end

--- A configuration better than `rated` by primitives on one of its bottlenecks; nil where there is
-- none.
local function alleviated(w, rated, hops)
  for k, s in ipairs(configuration.bottlenecks(rated)) do
    if k > BOTTLENECKS then
      break
    end
    local found = hop(w, rated, rated, s, hops)
    if found then
      return found
    end
  end
  return nil
end

--- The best configuration not yet explored that is near the best one; nil where there is none.
local function unexplored(w, best)
  local found
  for _, rated in ipairs(w.all) do
    local is_near = best.over > 0 or rated.over == 0 and rated.time_s < NEAR * best.time_s
    if not rated.explored and is_near and (not found or configuration.is_better(rated, found)) then
      found = rated
    end
  end
  return found
end

--- Fine tuning: single operators are moved over each border as long as that helps.
local function tuned(w, rated)
  repeat
    local before = rated
    for s = 1, #rated.config - 1 do
      for _, step in ipairs { 1, -1 } do
        local config = configuration.copy(rated.config)
        config[s].n = config[s].n + step
        config[s + 1].n = config[s + 1].n - step
        local other = not w.stopping() and configuration.rated(w.problem, config)
        if other and configuration.is_better(other, rated) then
          rated = other
        end
      end
    end
  until rated == before
  return rated
end

--- The first configuration for so many stages: even operators and devices, tensor parallel as far
-- as possible, then data parallel. `rank_batch` is the micro-batch of a rank.
local function first_config(problem, stages, rank_batch)
  local devices = 1
  while devices * 2 * stages <= problem.devices and devices * 2 <= problem.power do
    devices = devices * 2
  end
  local function data_degree()
    return math.max(1, devices // problem.tp)
  end
  while devices > 1 and problem.batch % (rank_batch * data_degree()) ~= 0 do
    devices = devices // 2
  end
  local dp = data_degree()
  local config = { micro_batch = rank_batch * dp, free = problem.devices - devices * stages }
  for s = 1, stages do
    local n = problem.n // stages
    if s <= problem.n % stages then
      n = n + 1
    end
    config[s] = { n = n, tp = devices // dp, dp = dp }
  end
  return config
end

--- The best configuration, where it fits, and the best three of all others that fit.
local function fitting_of(w, best)
  local fitting = {}
  if best.over == 0 then
    fitting[1] = best
  end
  table.sort(w.all, configuration.comes_first)
  for k = 1, 3 do
    if w.all[k] and w.all[k].over == 0 then
      fitting[#fitting + 1] = w.all[k]
    end
  end
  return fitting
end

--- The search for one number of stages with options { stages, micro_batch = of a rank in the first
-- configuration, hops, budget = configurations that are priced, stopping = function that says when
-- to end }. Returns the best rated configuration and the list of the best that fit; nil where the
-- first configuration is not possible.
function bottleneck.run(problem, options)
  local w = {
    problem = problem, left = options.budget, seen = {}, all = {},
    stopping = options.stopping or function() return false end,
  }
  local first = first_config(problem, options.stages, options.micro_batch)
  local now = configuration.rated(problem, first)
  if not now then
    return nil
  end
  w.seen[configuration.key(first)] = true
  local best = now
  while w.left > 0 and not w.stopping() do
    local found = alleviated(w, now, options.hops or DEFAULT_HOPS)
    now.explored = true
    found = found or unexplored(w, best)
    if not found then
      break
    end
    now = found
    if configuration.is_better(now, best) then
      best = now
    end
  end
  best = tuned(w, best)
  return best, fitting_of(w, best)
end

return bottleneck
