-- Configurations of a pipeline and their time and memory (Aceso, Liu et al., EuroSys 2024, section
-- 3). A configuration is a list of stages { n = operators, tp, dp } with micro_batch = sequences
-- that enter the pipeline at once, and free = devices that are not used.
--
-- A problem has n = operators in order, devices, batch = sequences of an iteration, power = largest
-- number of devices of a stage, tp = largest tensor degree of the first configuration, and
-- price(stage) for a stage { from, to = its operators, tp, dp, micro_batch, index = its place,
-- behind = number of stages behind it, config }. price gives nil where the stage is not possible,
-- or
--   time_s       one micro-batch forward and backward
--   ideal_s      the same without losses from tensor or data parallelism
--   recompute_s  the part of time_s that is recomputation
--   bytes, cap   memory that is needed, and that there is
local configuration = {}

local EQUAL_TIME = 1 - 1e-9 -- times with a ratio above this one count as equal

function configuration.copy(config)
  local out = { micro_batch = config.micro_batch, free = config.free }
  for s, stage in ipairs(config) do
    out[s] = { n = stage.n, tp = stage.tp, dp = stage.dp }
  end
  return out
end

--- A text that two configurations share where they are the same.
function configuration.key(config)
  local parts = { config.micro_batch }
  for s, stage in ipairs(config) do
    parts[s + 1] = ("%d:%d:%d"):format(stage.n, stage.tp, stage.dp)
  end
  return table.concat(parts, " ")
end

--- The pipeline's time as each stage gives it, t (M - 1) + sum of all t for M micro-batches, and
-- the place of the stage that gives the largest, which is the time of the pipeline. `times` are
-- those of one micro-batch.
function configuration.stage_times(times, micro_batches)
  local sum = 0
  for _, time in ipairs(times) do
    sum = sum + time
  end
  local list = {}
  local worst = 1
  for s, time in ipairs(times) do
    list[s] = time * (micro_batches - 1) + sum
    if list[s] > list[worst] then
      worst = s
    end
  end
  return list, worst
end

--- A configuration with its figures; nil where a stage is not possible: { config, time_s, stages =
-- prices, list = times by configuration.stage_times, over = largest ratio of needed to available
-- memory where it is above 1, else 0 }.
function configuration.rated(problem, config)
  local stages = {}
  local times = {}
  local over = 0
  local at = 0
  for s, stage in ipairs(config) do
    local price
    if stage.n > 0 and config.micro_batch % stage.dp == 0 then
      price = problem.price {
        from = at + 1, to = at + stage.n, tp = stage.tp, dp = stage.dp,
        micro_batch = config.micro_batch, index = s, behind = #config - s, config = config,
      }
    end
    if not price then
      return nil
    end
    at = at + stage.n
    stages[s] = price
    times[s] = price.time_s
    if price.bytes > price.cap then
      over = math.max(over, price.bytes / price.cap)
    end
  end
  local list, worst = configuration.stage_times(times, problem.batch // config.micro_batch)
  return { config = config, time_s = list[worst], stages = stages, list = list, over = over }
end

--- Whether rated configuration a is better than b: less over the memory, then faster.
function configuration.is_better(a, b)
  if a.over ~= b.over then
    return a.over < b.over
  end
  return a.time_s < b.time_s * EQUAL_TIME
end

--- The order of table.sort for rated configurations with a rank: best first, equals by rank.
function configuration.comes_first(a, b)
  return configuration.is_better(a, b) or not configuration.is_better(b, a) and a.rank < b.rank
end

--- Places from the largest value on; equals in their order.
local function by_value(places, value)
  table.sort(places, function(a, b)
    if value[a] ~= value[b] then
      return value[a] > value[b]
    end
    return a < b
  end)
  return places
end

--- Stages from the bottleneck on: by memory while something does not fit, else by time.
function configuration.bottlenecks(rated)
  local places, value = {}, {}
  for s, price in ipairs(rated.stages) do
    places[s] = s
    if rated.over > 0 then
      value[s] = price.bytes / price.cap
    else
      value[s] = rated.list[s]
    end
  end
  return by_value(places, value)
end

--- Partners of stage s for an exchange of operators or devices: those with most free memory first
-- while something does not fit, else those with most idle device time, less what parallelism loses.
function configuration.partners(rated, s)
  local places, idle = {}, {}
  for p, price in ipairs(rated.stages) do
    if rated.over > 0 then
      idle[p] = 1 - price.bytes / price.cap
    else
      local devices = rated.config[p].tp * rated.config[p].dp
      idle[p] = (rated.time_s - rated.list[p]) * devices
        * math.min(1, price.ideal_s / price.time_s)
    end
    if p ~= s then
      places[#places + 1] = p
    end
  end
  return by_value(places, idle)
end

return configuration
