--- Reasons, with figures, why no plan exists.
local inventory = require "inventory"
local prices = require "prices"

local reasons = {}

--- Kinds whose devices have less than `need` as "8 x T4-16GB have 117.6 GiB", and what to do about
-- them.
local function kinds_short(ctx, devices, need)
  local by, order, texts = {}, {}, {}
  for _, d in ipairs(devices) do
    if not by[d.kind] then
      by[d.kind], order[#order + 1] = {}, d.kind
    end
    table.insert(by[d.kind], d)
  end
  for _, kind in ipairs(order) do
    local have = #by[kind] * prices.capacity(ctx, by[kind][1])
    if have < need then
      texts[#texts + 1] = ("%s have %.1f GiB"):format(inventory.kinds_text(by[kind]), have / 2 ^ 30)
    end
  end
  if #texts == 0 then
    return nil
  end
  local all = #texts == #order
  return table.concat(texts, ", "), all and "take a strategy that mixes kinds"
    or "leave these out (state drain) or take a strategy that mixes kinds"
end

--- Why no division of the devices holds the model, with the figures that are short: of all devices
-- together, of a kind where pipelines stay inside kinds, of a device where runs of layers sit on
-- one.
-- @function reasons.too_small
-- @tparam handle ctx the run's input
-- @tparam table devices list of rows with kind
-- @tparam string what what was tried, as the subject of a sentence
-- @tparam[opt] string inside "kind" or "device": what a pipeline, or a run of layers, stays inside
-- @treturn string the reason
-- @units GiB in the text
-- @raise a kind the cluster has not
-- @usage print(require("reasons").too_small(ctx, ctx.cluster:devices(), "no grid"))
function reasons.too_small(ctx, devices, what, inside)
  local own, have, most = prices.chain(ctx, devices[1].kind,
    { tp = 1, micro_batch = 1, recompute = "full" }), 0, 0
  for _, d in ipairs(devices) do
    local room = prices.capacity(ctx, d)
    have, most = have + room, math.max(most, room)
  end
  local need = prices.bytes(ctx, own, 1, own.n, { in_flight = 1 })
  local text = ("%s holds the model: one copy needs %.1f GiB with one micro-batch and full recomputation"):format(what,
    need / 2 ^ 30)
  local short, advice
  if inside == "kind" and have >= need then
    short, advice = kinds_short(ctx, devices, need)
  end
  if short then
    return ("%s, each pipeline stays inside one kind of device, and %s: %s"):format(text, short,
      advice)
  elseif have >= need and inside == "device" and most < need then
    return ("%s, every type of device runs one part of it, each on one device, and the largest has %.1f GiB"):format(
      text, most / 2 ^ 30)
  elseif have >= need then
    return ("%s; %s have %.1f GiB together, but not in the pieces that were tried"):format(text,
      inventory.kinds_text(devices), have / 2 ^ 30)
  end
  return ("%s, %s have %.1f GiB"):format(text, inventory.kinds_text(devices), have / 2 ^ 30)
end

return reasons
