--- An order of devices that follows from what they are and how they are linked, and not from the
-- order of the node groups in the cluster file: planners that start from it give the same plan for
-- a file whose groups stand in another order, or where a group is written as several.
local inventory = require "inventory"
local links = require "links"

local device_order = {}

-- Groups above which the links between groups are not looked at: only what nodes are, and names.
local MOST_LINKED = 64
-- Rounds in which groups are told apart by the links to the groups that were told apart before.
local ROUNDS = 2

--- A figure in a text that does not change with the last digits of rounding; "-" where unknown.
local function figure(x)
  return x and ("%.9g"):format(x) or "-"
end

--- The devices by node group, each {devices, first = its first device, count = nodes, size =
-- devices of its first node, text = what distinguishes its nodes from others, links apart}.
local function groups_of(devices)
  local list = {}
  local by_name = {}
  for _, device in ipairs(devices) do
    local group = by_name[device.group]
    if not group then
      group = { devices = {}, first = device, count = 0, size = 0 }
      by_name[device.group] = group
      list[#list + 1] = group
    end
    if group.node ~= device.node then
      group.node = device.node
      group.count = group.count + 1
    end
    if group.count == 1 then
      group.size = group.size + 1
    end
    table.insert(group.devices, device)
  end
  for _, group in ipairs(list) do
    local words = {}
    for i = 1, group.size do
      local device = group.devices[i]
      words[i] = ("%s/%s/%s"):format(device.kind, figure(device.memory_bytes),
        figure(device.usd_per_h))
    end
    group.text = table.concat(words, " ")
  end
  return list
end

--- The link of two groups in words; of one group, that of two of its nodes.
local function link_text(ctx, a, b)
  local from, to = a.first, b.first
  if a == b then
    to = a.devices[a.size + 1]
  end
  local link = links.link(ctx, from.id, to.id)
  return figure(link.bandwidth_bytes_per_s) .. "/" .. figure(link.latency_s)
end

--- Adds to the text of each group how many nodes of each text it reaches over each kind of link. A
-- group that is written as several gives the same texts.
local function add_links(ctx, list)
  local texts = {}
  for i, a in ipairs(list) do
    local nodes = {} -- by link and text
    for _, b in ipairs(list) do
      local count = a == b and a.count - 1 or b.count
      if count > 0 then
        local key = link_text(ctx, a, b) .. " " .. b.text
        nodes[key] = (nodes[key] or 0) + count
      end
    end
    local words = {}
    for key, count in pairs(nodes) do
      words[#words + 1] = count .. " x " .. key
    end
    table.sort(words)
    texts[i] = ("%s {%s}"):format(list[i].text, table.concat(words, ", "))
  end
  -- equal texts get equal numbers, so that they do not grow from round to round
  local distinct = {}
  local number = {}
  for _, text in ipairs(texts) do
    if not number[text] then
      number[text] = true
      distinct[#distinct + 1] = text
    end
  end
  table.sort(distinct)
  for k, text in ipairs(distinct) do
    number[text] = k
  end
  for i, group in ipairs(list) do
    group.text = ("%s #%d"):format(group.text:gsub(" #%d+$", ""), number[texts[i]])
  end
end

--- Are the first devices of two groups of one kind?
local function same_kind(a, b)
  return a.first.kind == b.first.kind
end

--- Sorts groups by their devices, the fastest first: the kind, the size of a node, the link inside
-- it and the text; where all are equal, by the names of zone and group.
local function sort_groups(ctx, list)
  for _, group in ipairs(list) do
    local inside = 0
    if group.size > 1 then
      inside = links.bandwidth(ctx, group.first.id, group.devices[2].id)
    end
    group.keys = { -(group.first.flops_per_s or 0), -(group.first.memory_bytes or 0),
      group.first.kind, -group.size, -inside, group.text, group.first.zone or "",
      group.first.group or "" }
  end
  table.sort(list, function(a, b)
    for k, key in ipairs(a.keys) do
      if key ~= b.keys[k] then
        return key < b.keys[k]
      end
    end
    return false
  end)
end

--- Of the first groups of a sorted list that are of one kind, the position of the one that is
-- linked best to `last`; the first one where that is nil.
local function next_group(ctx, list, last)
  if not last then
    return 1
  end
  local best, best_link
  for i, group in ipairs(list) do
    if not same_kind(group, list[1]) then
      break
    end
    local link = links.link(ctx, last.first.id, group.first.id)
    local bandwidth, latency_s = link.bandwidth_bytes_per_s, link.latency_s
    if not best or bandwidth > best_link.bandwidth_bytes_per_s
      or bandwidth == best_link.bandwidth_bytes_per_s and latency_s < best_link.latency_s then
      best = i
      best_link = link
    end
  end
  return best
end

--- The groups in an order of kinds in which each is followed by the one of the kind that is linked
-- best to it.
local function chained(ctx, list)
  local out = {}
  while #list > 0 do
    out[#out + 1] = table.remove(list, next_group(ctx, list, out[#out]))
  end
  return out
end

--- Devices in an order that does not depend on the order of the node groups in the cluster file:
-- the fastest kind first, groups of a kind so that those with good links follow each other. Nodes
-- of a group, and devices of a node, keep their order.
-- @function device_order.canonical
-- @tparam handle ctx the run's input
-- @tparam table devices list of rows of cluster:devices()
-- @treturn table list of the same rows
-- @units none
-- @raise none
-- @usage local devices = ctx.cluster:devices()
-- assert(#require("device_order").canonical(ctx, devices) == #devices)
function device_order.canonical(ctx, devices)
  local list = groups_of(devices)
  if #list > 1 and #list <= MOST_LINKED then
    for _ = 1, ROUNDS do
      add_links(ctx, list)
    end
  end
  sort_groups(ctx, list)
  if #list <= MOST_LINKED then
    list = chained(ctx, list)
  end
  local out = {}
  for _, group in ipairs(list) do
    table.move(group.devices, 1, #group.devices, #out + 1, out)
  end
  return out
end

--- Devices that can be priced, as inventory.usable gives them, in that order.
-- @function device_order.usable
-- @tparam handle ctx the run's input
-- @tparam[opt] boolean all also those of other fabrics; "hosts": CPUs too
-- @treturn table list of rows of cluster:devices(); nil and the reason when there are none
-- @units as cluster:devices()
-- @raise none
-- @usage print(#require("device_order").usable(ctx))
function device_order.usable(ctx, all)
  local list, why = inventory.usable(ctx, all)
  if not list then
    return nil, why
  end
  return device_order.canonical(ctx, list)
end

return device_order
