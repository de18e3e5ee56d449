-- The division of the layers among the stages of a pipeline (FlashFlex, arXiv 2409.01143, section
-- 4): in proportion to memory, as in the paper, or by speed. `problem` is that of
-- pipeline_search.run.
local formula = require "formula"

local layer_split = {}

-- Stages up to which single layers are moved after the split by speed.
local MOST_STAGES_MOVED = 12

--- Moves single layers between stages as long as the pipeline gets faster. Seconds per layer, fixed
-- seconds and the most layers of every stage are given as time, fixed and caps.
local function move_layers(pipeline, split)
  local times = {}
  local function set(s, layers)
    pipeline[s].layers = layers
    times[s] = layers * split.time[s] + split.fixed[s]
  end
  for s, stage in ipairs(pipeline) do
    set(s, stage.layers)
  end
  local best_s = formula.map_s(times, pipeline.micro_batches)
  local has_moved
  repeat
    has_moved = false
    for i, from in ipairs(pipeline) do
      for j, to in ipairs(pipeline) do
        if i ~= j and from.layers > 1 and to.layers < split.caps[j] then
          set(i, from.layers - 1)
          set(j, to.layers + 1)
          local seconds = formula.map_s(times, pipeline.micro_batches)
          if seconds < best_s * (1 - 1e-12) then
            best_s = seconds
            has_moved = true
          else
            set(i, from.layers + 1)
            set(j, to.layers - 1)
          end
        end
      end
    end
  until not has_moved
end

--- Sets the layers of every stage; false where they do not fit.
local function set_layers(problem, pipeline, split)
  if #pipeline > problem.layers then
    return false
  end
  local shares = hv.opt.distribute(split)
  if not shares then
    return false
  end
  for s, stage in ipairs(pipeline) do
    stage.layers = shares.counts[s]
  end
  return true
end

--- Gives the stages their layers in proportion to memory; false where they do not fit.
function layer_split.by_memory(problem, pipeline)
  local split = { total = problem.layers, objective = "ratio", time = {}, min = {}, caps = {} }
  for s, stage in ipairs(pipeline) do
    split.time[s] = #stage.devices * problem.memory_bytes[stage.devices[1]]
    split.min[s] = 1
    split.caps[s] = problem.most_layers(stage, s, #pipeline)
    if split.caps[s] < 1 then
      return false
    end
  end
  return set_layers(problem, pipeline, split)
end

--- Gives the stages their layers by speed, then moves single layers; false where they do not fit.
function layer_split.by_speed(problem, pipeline)
  local split = { total = problem.layers, objective = "minmax", time = {}, fixed = {}, min = {},
    caps = {} }
  for s, stage in ipairs(pipeline) do
    local compute_s, exchange_s = formula.layer_s(problem, stage)
    local next_stage = pipeline[s + 1]
    split.time[s] = compute_s + exchange_s
    split.fixed[s] = next_stage and formula.hop_s(problem, stage, next_stage) or 0
    split.min[s] = 1
    split.caps[s] = problem.most_layers(stage, s, #pipeline)
    if split.caps[s] < 1 then
      return false
    end
  end
  if not set_layers(problem, pipeline, split) then
    return false
  end
  if #pipeline <= MOST_STAGES_MOVED then
    move_layers(pipeline, split)
  end
  return true
end

return layer_split
