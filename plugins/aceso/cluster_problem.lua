-- The problem of configuration.lua for the run's model, job and devices. The paper has equal
-- devices; here a stage of several kinds is as fast as its slowest, with the least memory.
local grids = require "grids"
local inventory = require "inventory"
local links = require "links"
local numbers = require "numbers"
local stage_price = require "stage_price"

local cluster_problem = {}

--- The largest tensor degree that divides the model and a node, in powers of two.
local function largest_tp(nodes, layers)
  local largest = 1
  for _, node in ipairs(nodes) do
    for _, tp in ipairs(numbers.powers(#node.ids)) do
      if grids.tp_fits(layers, tp) then
        largest = math.max(largest, tp)
      end
    end
  end
  return largest
end

--- The price of a stage on all kinds of devices of its place; price_on(kind) gives that of one.
local function on_all_kinds(place, price_on)
  local worst
  for kind in pairs(place.kinds) do
    local price = price_on(kind)
    worst = worst or { time_s = 0, ideal_s = 0, recompute_s = price.recompute_s, bytes = 0,
      cap = price.cap, output_bytes = price.output_bytes }
    if price.bytes / price.cap > worst.bytes / worst.cap then
      worst.bytes = price.bytes
      worst.cap = price.cap
      worst.entries = price.entries
    end
    worst.time_s = math.max(worst.time_s, price.time_s)
    worst.ideal_s = math.max(worst.ideal_s, price.ideal_s)
  end
  return worst
end

--- Seconds of the transfers between a stage and its neighbours for one micro-batch; `places` are
-- those of all stages.
local function transfer_s(ctx, places, index, bytes)
  local before, own, after = places[index - 1], places[index], places[index + 1]
  local seconds = 0
  if before then
    seconds = links.seconds(ctx, before.ids[#before.ids], own.ids[1], bytes)
  end
  if after then
    seconds = seconds + links.seconds(ctx, own.ids[#own.ids], after.ids[1], bytes)
  end
  return seconds
end

--- The problem, with place(config) besides: the devices of each stage, false where they do not fit
-- on the nodes. `reserve_bytes` of every device stay free; `known` is a table that problems of one
-- run share.
function cluster_problem.of(ctx, devices, reserve_bytes, known)
  local nodes, layers = inventory.nodes(devices), ctx.model:layers()
  local problem = { n = ctx.model.n_layers, devices = #devices, batch = ctx.job.global_batch,
    tp = largest_tp(nodes, layers), power = 1 }
  while problem.power * 2 <= problem.devices do
    problem.power = problem.power * 2
  end
  local places, stage_prices = {}, {}
  function problem.place(config)
    local sizes = {}
    for s, stage in ipairs(config) do
      sizes[s] = stage.tp .. "x" .. stage.dp
    end
    local key = table.concat(sizes, " ")
    if places[key] == nil then
      places[key] = inventory.first_fit(nodes, config)
    end
    return places[key]
  end
  function problem.price(stage)
    if stage.tp > problem.tp or not grids.tp_fits(layers, stage.tp) then
      return nil
    end
    local place = problem.place(stage.config)
    if not place then
      return nil
    end
    local price = on_all_kinds(place[stage.index], function(kind)
      local key = ("%s %d %d %d %d %d %d"):format(kind, stage.from, stage.to, stage.tp, stage.dp,
        stage.micro_batch, stage.behind)
      if not stage_prices[key] then
        stage_prices[key] = stage_price.of(ctx, known, kind, stage, problem.batch, reserve_bytes)
      end
      return stage_prices[key]
    end)
    price.time_s = price.time_s + transfer_s(ctx, place, stage.index, price.output_bytes)
    return price
  end
  return problem
end

return cluster_problem
