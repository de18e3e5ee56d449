-- Self-tests of AdaPipe: the catalogue's case by program, order and judge, and random chains
-- against exhaustive enumeration of cuts and of units kept.
local oracle = require "testing.oracle"
local plain = require "testing.plain"
local rows = require "testing.rows"
local stage_cut = require "stage_cut"
local stage_memory = require "stage_memory"

local FROM = "catalogue: adapipe; derived, Sun et al. 2024"

--- A class of layers: seconds of F and B, units { seconds, bytes }.
local function class_of(forward_s, backward_s, list)
  local class = { forward_s = forward_s, backward_s = backward_s, bytes = 0, units = {} }
  for u, unit in ipairs(list) do
    class.units[u] = { name = "u" .. u, seconds = unit[1], bytes = unit[2] }
  end
  return class
end

--- price(first, last, s) for layers with `cap` bytes per stage.
local function price_of(layers, p, cap)
  return function(first, last, s)
    return stage_memory.best(layers, first, last, cap / (p - s + 1))
  end
end

--- All ways to keep units of the layers of a run within `room`: pairs { forward_s, backward_s }.
local function all_sets(layers, first, last, room)
  local sets = { { forward_s = 0, backward_s = 0, bytes = 0 } }
  for l = first, last do
    local grown = {}
    for _, set in ipairs(sets) do
      local class = layers[l]
      for mask = 0, (1 << #class.units) - 1 do
        local own = { forward_s = set.forward_s + class.forward_s,
          backward_s = set.backward_s + class.backward_s, bytes = set.bytes }
        for u, unit in ipairs(class.units) do
          if mask >> (u - 1) & 1 == 1 then
            own.bytes = own.bytes + unit.bytes
          else
            own.backward_s = own.backward_s + unit.seconds
          end
        end
        if own.bytes <= room then
          grown[#grown + 1] = own
        end
      end
    end
    sets = grown
  end
  return sets
end

--- Simulated seconds of 1F1B with these stages.
local function simulated(stages, m)
  local f, b = {}, {}
  for s, stage in ipairs(stages) do
    f[s], b[s] = stage.forward_s, stage.backward_s
  end
  local none = {}
  for s in ipairs(stages) do
    none[s] = 0
  end
  return hv.sim.schedule("1f1b", { ranks = #stages, micro_batches = m, order = false,
    times = { f = f, b = b, w = none } }).makespan
end

--- The least time by the recurrences, and by simulation, over all cuts and sets.
local function exhaustive(layers, p, m, cap)
  local least, least_simulated = math.huge, math.huge
  for _, ends in ipairs(oracle.cuts(#layers, p)) do
    local sets = {}
    for s, last in ipairs(ends) do
      sets[s] = all_sets(layers, (ends[s - 1] or 0) + 1, last, cap / (p - s + 1))
    end
    local chosen = {}
    local function choose(s)
      if s > p then
        least = math.min(least, stage_cut.seconds(chosen, m))
        least_simulated = math.min(least_simulated, simulated(chosen, m))
        return
      end
      for _, set in ipairs(sets[s]) do
        chosen[s] = set
        choose(s + 1)
      end
    end
    choose(1)
  end
  return least, least_simulated
end

local function random_cases(t)
  local equal, gap, cases = 0, 0, 200
  for _ = 1, cases do
    local kinds, layers = {}, {}
    for k = 1, 2 do
      local f = hv.random(4)
      kinds[k] = class_of(f, f + hv.random(4), { { hv.random(3), hv.random(3) },
        k == 1 and { hv.random(3), hv.random(3) } or nil })
    end
    local p = hv.random(2) + 1
    for l = 1, p + hv.random(5 - p) do
      layers[l] = kinds[hv.random(2)]
    end
    local m, cap = p + hv.random(4) - 1, hv.random(12)
    local best = stage_cut.best(#layers, p, m, price_of(layers, p, cap))
    local least, least_simulated = exhaustive(layers, p, m, cap)
    equal = equal + (math.abs(best.seconds - least) < 1e-9 and 1 or 0)
    gap = gap + (simulated(best.stages, m) / least_simulated - 1) / cases
  end
  t.equal("200 random chains: as the best of all cuts and sets [D]", equal, cases,
    "exhaustive enumeration")
  t.ok(("simulated, %.3f %% above the best on average"):format(100 * gap), gap >= -1e-12
    and gap < 0.05, "exhaustive enumeration")
end

--- Milliseconds by the judge of stages of measured layers with these backward passes.
local function judged_ms(t, backward_ms, m)
  local inputs = plain.measured { nodes = 1, devices = 2, layers = 2, forward_ms = 8,
    backward_ms = 1, parameter_bytes = 0, batch = m }
  for s, ms in ipairs(backward_ms) do
    inputs.model.layers[s].backward_ms = { P = ms }
  end
  return t.with(inputs, function(ctx)
    local stages = {}
    for s = 1, 2 do
      stages[s] = { devices = ctx.cluster:address { s }, layers = { s - 1, s } }
    end
    return plain.ms { micro_batch = 1, schedule = { name = "1f1b" },
      replicas = { { micro_batches = m, stages = stages } } }
  end)
end

return function(t)
  local class = class_of(4, 8, { { 1, 1 }, { 2, 1 }, { 1, 2 } })
  local layers = { class, class, class, class }
  local best = stage_cut.best(4, 2, 4, price_of(layers, 2, 8))
  local backward_s = {}
  for s, stage in ipairs(best.stages) do
    backward_s[s] = stage.backward_s
  end
  t.equal("split of four layers [D]", ("%d+%d"):format(best.stages[1].last,
    best.stages[2].last - best.stages[1].last), "2+2", FROM)
  t.equal("their backward passes [D]", ("%g,%g"):format(table.unpack(backward_s)), "18,16", FROM)
  t.near("their makespan [D]", best.seconds, 126, 1e-9, FROM)
  t.near("makespan of the order [D]", simulated(best.stages, 4), 126, 1e-9, FROM)
  local full = stage_cut.best(4, 2, 4, price_of(layers, 2, 0))
  t.near("full recomputation [D]", full.seconds, 160, 1e-9, FROM)
  t.near("makespan by the judge [D]", judged_ms(t, backward_s, 4), 126, 1e-6, FROM)
  random_cases(t)
  rows.search(t, plain.pipelined())
end
