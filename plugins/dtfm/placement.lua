-- Which vertices hold which stage of which replica (DT-FM, Yuan et al., NeurIPS 2022, sections 3
-- and 4): the division into stages of least communication, and the pipelines through it. Instances
-- are described in network.lua.
local communication = require "communication"
local equal_groups = require "equal_groups"

-- Divisions that the search tries at least.
local LEAST_BUDGET = 20

local placement = {}

--- Divisions that the search may try. One costs a matching per pair of stages, so the option's
-- number falls with the square of the stages beyond 8, and with the vertices beyond 64.
local function budget_of(instance)
  local budget = instance.budget * 64 // math.max(64, instance.stages * instance.stages) * 64
    // math.max(64, #instance.class)
  return math.max(LEAST_BUDGET, budget)
end

--- The division of least communication that the search finds: a list of groups of vertices, {COMM,
-- DATAP, PIPEP} in seconds, and the groups' order.
function placement.place(instance)
  local n_devices = #instance.class * (instance.block or 1)
  local groups = equal_groups.evolve {
    n = #instance.class, parts = instance.stages, seed = instance.seed,
    budget = budget_of(instance),
    cost = function(groups) return (communication.cost(instance, groups)) end,
    class = function(v) return instance.class[v] end,
    weight = function(v, w)
      local a, b = instance.class[v], instance.class[w]
      return 2 * (instance.delay_s[a][b] + instance.dp_bytes * instance.stages
        / (n_devices * instance.rate_bytes_per_s[a][b]))
    end,
  }
  local total_s, data_s, pipeline_s, order = communication.cost(instance, groups)
  return groups, { total_s, data_s, pipeline_s }, order
end

--- The stages in the order of the path, each a list of the vertices of pipeline 1, 2, …: every
-- stage is joined to the one before by their matching.
function placement.wired(instance, groups, order)
  local stages = { groups[order[1]] }
  for s = 2, #order do
    local group = groups[order[s]]
    local _, columns = communication.matching(instance, stages[s - 1], group)
    stages[s] = {}
    for i, j in ipairs(columns) do
      stages[s][i] = group[j]
    end
  end
  return stages
end

return placement
