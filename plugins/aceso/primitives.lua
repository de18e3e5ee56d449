-- Reconfiguration primitives (Aceso, Liu et al., EuroSys 2024, section 3, table 1): changes of
-- one stage, and which of them are expected to relieve it. Configurations are those of
-- configuration.lua.
local configuration = require "configuration"

local primitives = {}

-- What a primitive does to time, memory and communication of its stage (table 1).
local EFFECTS = {
  { name = "move_out", time = -1, memory = -1, communication = 0 },
  { name = "inc_dp", time = -1, memory = -1, communication = 1 },
  { name = "dec_dp", time = 1, memory = 1, communication = -1 },
  { name = "inc_tp", time = -1, memory = -1, communication = 1 },
  { name = "dec_tp", time = 1, memory = 1, communication = -1 },
  { name = "inc_batch", time = -1, memory = 1, communication = 0 },
  { name = "dec_batch", time = 1, memory = -1, communication = 0 },
  { name = "tp_to_dp", time = 0, memory = 1, communication = -1 },
  { name = "dp_to_tp", time = 0, memory = -1, communication = 1 },
}

local MOVE_PARTNERS = 4 -- partners that may take operators
local MOVE_SHARES = { 0.6, 0.3, 0.1, 0 } -- of the difference to the partner
local RESIZE_PARTNERS = 3 -- partners that may give or take devices

--- The configuration in which stage s passes operators to its partner, in number a share of its
-- difference in time or memory; nil where there is no difference. The stages between them pass on
-- as many as they get.
local function with_operators_moved(rated, s, partner, share)
  local own, other, n = rated.stages[s], rated.stages[partner], rated.config[s].n
  local difference, whole
  if rated.over > 0 then
    difference = own.bytes - math.min(own.cap, other.bytes)
    whole = own.bytes
  else
    difference = own.time_s - other.time_s
    whole = own.time_s
  end
  local count = math.max(1, math.floor(n * share * difference / whole + 0.5))
  if difference <= 0 or count >= n then
    return nil
  end
  local config = configuration.copy(rated.config)
  config[s].n = n - count
  config[partner].n = config[partner].n + count
  return config
end

local function moved_out(rated, s)
  local list = {}
  for k, partner in ipairs(configuration.partners(rated, s)) do
    if k > MOVE_PARTNERS then
      break
    end
    for _, share in ipairs(MOVE_SHARES) do
      list[#list + 1] = with_operators_moved(rated, s, partner, share)
    end
  end
  return list
end

--- Takes `more` devices (gives them where it is negative) from those that are not used. Returns
-- whether there are enough.
local function settle_with_free(config, more)
  config.free = config.free - more
  return config.free >= 0
end

--- The same with a partner, which halves or doubles a degree; what is too much becomes free.
local function settle_with_partner(problem, config, partner, degree, more)
  local stage = config[partner]
  local devices_before = stage.tp * stage.dp
  if more > 0 then
    while devices_before - stage.tp * stage.dp < more and stage[degree] % 2 == 0 do
      stage[degree] = stage[degree] // 2
    end
  else
    stage[degree] = stage[degree] * 2
  end
  config.free = config.free - more - (stage.tp * stage.dp - devices_before)
  return config.free >= 0 and stage.tp * stage.dp <= problem.power
end

--- The configuration with a degree of stage s doubled or halved; nil where that is not possible.
-- settle(config, more) finds the `more` devices and returns whether it could.
local function with_degree_changed(problem, rated, s, degree, grow, settle)
  local config = configuration.copy(rated.config)
  local stage = config[s]
  local devices_before = stage.tp * stage.dp
  if grow then
    stage[degree] = stage[degree] * 2
  elseif stage[degree] % 2 == 0 then
    stage[degree] = stage[degree] // 2
  else
    return nil
  end
  local devices = stage.tp * stage.dp
  if devices <= problem.power and settle(config, devices - devices_before) then
    return config
  end
  return nil
end

--- A degree of stage s doubled or halved, with devices that are not used or those of a partner.
local function resized(problem, rated, s, degree, grow)
  local list = {}
  list[1] = with_degree_changed(problem, rated, s, degree, grow, settle_with_free)
  for k, partner in ipairs(configuration.partners(rated, s)) do
    if k > RESIZE_PARTNERS then
      break
    end
    for _, partner_degree in ipairs { "tp", "dp" } do
      list[#list + 1] = with_degree_changed(problem, rated, s, degree, grow,
        function(config, more)
          return settle_with_partner(problem, config, partner, partner_degree, more)
        end)
    end
  end
  return list
end

local function with_micro_batch(problem, rated, micro_batch)
  if micro_batch < 1 or problem.batch % micro_batch ~= 0 then
    return {}
  end
  local config = configuration.copy(rated.config)
  config.micro_batch = micro_batch
  return { config }
end

--- Half of one degree of stage s, twice the other.
local function exchanged(rated, s, from, to)
  local config = configuration.copy(rated.config)
  if config[s][from] % 2 ~= 0 then
    return {}
  end
  config[s][from] = config[s][from] // 2
  config[s][to] = config[s][to] * 2
  return { config }
end

--- All configurations that a primitive makes of a rated configuration at stage s.
function primitives.applied(problem, rated, s, name)
  local micro_batch = rated.config.micro_batch
  if name == "move_out" then
    return moved_out(rated, s)
  elseif name == "inc_batch" then
    return with_micro_batch(problem, rated, 2 * micro_batch)
  elseif name == "dec_batch" then
    return with_micro_batch(problem, rated, micro_batch // 2)
  elseif name == "tp_to_dp" then
    return exchanged(rated, s, "tp", "dp")
  elseif name == "dp_to_tp" then
    return exchanged(rated, s, "dp", "tp")
  end
  local direction, degree = name:match "^(%a+)_(%a+)$"
  return resized(problem, rated, s, degree, direction == "inc")
end

-- Parts of a stage's time, with the effect that a primitive has on them: computation, losses from
-- communication and small pieces, and recomputation, which is the price of memory.
local PARTS = {
  { effect = "time", seconds = function(price) return price.ideal_s end },
  { effect = "communication",
    seconds = function(price) return price.time_s - price.ideal_s - price.recompute_s end },
  { effect = "memory", seconds = function(price) return price.recompute_s end },
}

--- The parts of stage s, those first in which the stage has the largest share of all stages' time;
-- `high` where it is above the average.
local function parts_by_share(rated, s)
  local parts = {}
  for i, part in ipairs(PARTS) do
    local sum = 0
    local own = part.seconds(rated.stages[s])
    for _, price in ipairs(rated.stages) do
      sum = sum + part.seconds(price)
    end
    local share = 0
    if sum > 0 then
      share = own / sum
    end
    parts[i] = { rank = i, effect = part.effect, share = share, high = own * #rated.stages > sum }
  end
  table.sort(parts, function(a, b)
    if a.share ~= b.share then
      return a.share > b.share
    end
    return a.rank < b.rank
  end)
  return parts
end

--- Names of the primitives in groups, the most promising first: those that lower the part in which
-- the stage stands out most and raise no other part that is above the average, then the others that
-- lower it, then the same for the next part. While memory is short, those that save it come first.
function primitives.groups(rated, s)
  local groups, taken = {}, {}
  local function add(wanted)
    local group = {}
    for i, row in ipairs(EFFECTS) do
      if not taken[i] and wanted(row) then
        taken[i] = true
        group[#group + 1] = row.name
      end
    end
    if #group > 0 then
      groups[#groups + 1] = group
    end
  end
  if rated.over > 0 then
    add(function(row) return row.memory < 0 end)
  end
  local parts = parts_by_share(rated, s)
  for _, part in ipairs(parts) do
    local function lowers(row)
      return row[part.effect] < 0
    end
    local function raises_a_high_part(row)
      for _, other in ipairs(parts) do
        if other ~= part and other.high and row[other.effect] > 0 then
          return true
        end
      end
      return false
    end
    add(function(row) return lowers(row) and not raises_a_high_part(row) end)
    add(lowers)
  end
  add(function() return true end)
  return groups
end

return primitives
