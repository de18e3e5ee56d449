--- Reasons, with figures, why no plan exists.
local inventory = require "inventory"
local prices = require "prices"

local reasons = {}

local GIB = 2 ^ 30

--- Why the model's sequences cannot be cut into slices of tokens that run one after the other.
-- @function reasons.unsliced
-- @tparam handle ctx the run's input
-- @treturn string the reason; nil where they can be cut
-- @units none
-- @raise none
-- @usage print(require("reasons").unsliced(ctx) or "slices are possible")
function reasons.unsliced(ctx)
  if ctx.model.kind ~= "transformer" then
    return "the model's layers were measured for whole sequences: slices have no times"
  elseif not ctx.model.causal then
    return "tokens of the model attend to those behind them (causal is false): a slice of a "
      .. "sequence cannot run before the rest"
  end
end

--- Devices by kind: lists in the order of first mention.
local function by_kind(devices)
  local lists = {}
  local known = {}
  for _, device in ipairs(devices) do
    local list = known[device.kind]
    if not list then
      list = {}
      known[device.kind] = list
      lists[#lists + 1] = list
    end
    list[#list + 1] = device
  end
  return lists
end

--- Kinds whose devices together have less than need_bytes as text, "8 x T4-16GB have 117.6 GiB",
-- and the advice about them; nil where every kind has enough.
local function kinds_short(ctx, devices, need_bytes)
  local lists = by_kind(devices)
  local texts = {}
  for _, list in ipairs(lists) do
    local have_bytes = #list * prices.capacity(ctx, list[1])
    if have_bytes < need_bytes then
      texts[#texts + 1] = ("%s have %.1f GiB"):format(inventory.kinds_text(list), have_bytes / GIB)
    end
  end
  if #texts == 0 then
    return nil
  end
  local advice = "leave these out (state drain) or use a strategy that mixes kinds"
  if #texts == #lists then
    advice = "use a strategy that mixes kinds"
  end
  return table.concat(texts, ", "), advice
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
  local have_bytes = 0
  local most_bytes = 0
  for _, device in ipairs(devices) do
    local room_bytes = prices.capacity(ctx, device)
    have_bytes = have_bytes + room_bytes
    most_bytes = math.max(most_bytes, room_bytes)
  end
  local chain = prices.chain(ctx, devices[1].kind,
    { tp = 1, micro_batch = 1, recompute = "full" })
  local need_bytes = prices.bytes(ctx, chain, 1, chain.n, { in_flight = 1 })
  local text = ("%s holds the model: one copy needs %.1f GiB with one micro-batch and full "
    .. "recomputation"):format(what, need_bytes / GIB)
  local kinds = inventory.kinds_text(devices)
  if have_bytes < need_bytes then
    return ("%s, %s have %.1f GiB"):format(text, kinds, have_bytes / GIB)
  end
  if inside == "kind" then
    local short, advice = kinds_short(ctx, devices, need_bytes)
    if short then
      return ("%s, each pipeline stays inside one kind of device, and %s: %s"):format(text, short,
        advice)
    end
  elseif inside == "device" and most_bytes < need_bytes then
    return ("%s, every type of device runs one part of it, each on one device, and the largest "
      .. "has %.1f GiB"):format(text, most_bytes / GIB)
  end
  return ("%s; %s have %.1f GiB together, but no division that was tried fits"):format(text, kinds,
    have_bytes / GIB)
end

return reasons
