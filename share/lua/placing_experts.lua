-- Where experts go: replicas of hot experts on slots, and shadows of the hottest ones.
-- Library: for the systems that place experts by their loads (FasterMoE; balancers of inference),
-- which share these decisions.
local M = {}

--- Indices of a list in falling order of its numbers; equal ones stay in order.
local function falling(x)
  local order = {}
  for i = 1, #x do
    order[i] = i
  end
  table.sort(order, function(a, b)
    if x[a] ~= x[b] then
      return x[a] > x[b]
    end
    return a < b
  end)
  return order
end

--- Items into `n` boxes of `most` each, the heaviest first into the lightest box with room.
-- Returns lists of items and the boxes' weights.
local function pack(weights, n, most)
  local boxes, sums = {}, {}
  for b = 1, n do
    boxes[b], sums[b] = {}, 0
  end
  for _, i in ipairs(falling(weights)) do
    local best
    for b = 1, n do
      if #boxes[b] < most and (not best or sums[b] < sums[best]) then
        best = b
      end
    end
    boxes[best][#boxes[best] + 1] = i
    sums[best] = sums[best] + weights[i]
  end
  return boxes, sums
end

local function heaviest(sums)
  local at = 1
  for b = 2, #sums do
    at = sums[b] > sums[at] and b or at
  end
  return at
end

--- Exchanges items between the heaviest box and others for as long as that box gets lighter and
-- none gets as heavy.
local function even_out(weights, boxes, sums)
  for _ = 1, 100 * #boxes do
    local top, best, gain = heaviest(sums), nil, 1e-12 * sums[heaviest(sums)]
    for b = 1, #boxes do
      for i, x in ipairs(b ~= top and boxes[top] or {}) do
        for k, y in ipairs(boxes[b]) do
          local d = weights[x] - weights[y]
          local after = math.max(sums[top] - d, sums[b] + d)
          if d > 0 and sums[top] - after > gain then
            best, gain = { b, i, k, d }, sums[top] - after
          end
        end
      end
    end
    if not best then
      return
    end
    local b, i, k, d = table.unpack(best)
    boxes[top][i], boxes[b][k] = boxes[b][k], boxes[top][i]
    sums[top], sums[b] = sums[top] - d, sums[b] + d
  end
end

--- How many replicas each expert gets of `slots`: every one goes to the expert with the highest
-- load per replica, which keeps that load as low as it can be.
local function replicate(loads, slots)
  local n = {}
  for e = 1, #loads do
    n[e] = 1
  end
  for _ = #loads + 1, slots do
    local hot = 1
    for e = 2, #loads do
      hot = loads[e] / n[e] > loads[hot] / n[hot] and e or hot
    end
    n[hot] = n[hot] + 1
  end
  return n
end

--- Experts of one node on its devices: expert of every slot, and the load of the busiest device.
local function fill_node(loads, experts, devices, slots)
  local own, items, weights = {}, {}, {}
  for i, e in ipairs(experts) do
    own[i] = loads[e]
  end
  for i, n in ipairs(replicate(own, slots)) do
    for _ = 1, n do
      items[#items + 1] = experts[i]
      weights[#weights + 1] = own[i] / n
    end
  end
  local boxes, sums = pack(weights, devices, slots // devices)
  even_out(weights, boxes, sums)
  local out = {}
  for _, box in ipairs(boxes) do
    for _, item in ipairs(box) do
      out[#out + 1] = items[item]
    end
  end
  return out, sums[heaviest(sums)]
end

--- All nodes, for groups of experts on them: expert of every slot, and the busiest device.
local function fill(q, boxes)
  local size, out, busiest = #q.loads // q.groups, {}, 0
  for _, groups in ipairs(boxes) do
    local experts = {}
    for _, g in ipairs(groups) do
      for k = 1, size do
        experts[#experts + 1] = (g - 1) * size + k
      end
    end
    local slots, load = fill_node(q.loads, experts, q.devices // q.nodes, q.slots // q.nodes)
    table.move(slots, 1, #slots, #out + 1, out)
    busiest = math.max(busiest, load)
  end
  return out, busiest
end

--- Replicas of experts on slots of devices, so that the busiest device has little to do. Groups of
-- consecutive experts stay on one node each (where they come out even over the nodes): tokens that
-- are routed within a group then stay inside it.
-- place{loads = tokens per expert, devices, nodes = 1, slots (of all devices; a multiple of them),
-- groups = 1} -> list: expert of every slot, device by device, node by node; busiest device's load.
-- O(slots² · log) in the usual case. Source of the three steps: EPLB (DeepSeek-AI 2025).
function M.place(q)
  local p = { loads = q.loads, devices = q.devices, nodes = q.nodes or 1, slots = q.slots,
    groups = q.groups or 1 }
  if #p.loads % p.groups ~= 0 or p.groups % p.nodes ~= 0 then
    p.groups, p.nodes = 1, 1
  end
  if p.slots < #p.loads or p.slots % p.devices ~= 0 or p.devices % p.nodes ~= 0 then
    return nil, "slots: expected a multiple of the devices, at least one per expert"
  end
  local size, weights = #p.loads // p.groups, {}
  for g = 1, p.groups do
    weights[g] = 0
    for e = (g - 1) * size + 1, g * size do
      weights[g] = weights[g] + p.loads[e]
    end
  end
  local boxes, sums = pack(weights, p.nodes, p.groups // p.nodes)
  local best, busiest = fill(p, boxes)
  even_out(weights, boxes, sums)
  local other, load = fill(p, boxes)
  if load < busiest then
    return other, load
  end
  return best, busiest
end

--- The heaviest rank without the experts that are shadowed.
local function busiest_left(q, shadowed)
  local sums, most = {}, 0
  for e, load in ipairs(q.loads) do
    local owner = q.owners and q.owners[e] or e
    sums[owner] = (sums[owner] or 0) + (shadowed[e] and 0 or load)
    most = math.max(most, sums[owner])
  end
  return most
end

--- Seconds of a layer whose experts in the set `shadowed` are on all ranks: token_s for each token
-- of the busiest rank and copy_s for a shadow (FasterMoE: He et al. 2022, section 4.1). q as
-- M.shadows takes it; shadowed = {[expert] = true}.
function M.shadows_s(q, shadowed)
  local n = 0
  for _ in pairs(shadowed) do
    n = n + 1
  end
  return q.token_s * busiest_left(q, shadowed) + n * q.copy_s
end

--- Which experts are shadowed on all ranks in an iteration: the hottest ones in turn, for as long
-- as the layer gets faster by token_s for each token of the busiest rank and copy_s for a shadow.
-- shadows{loads = tokens per expert, owners = rank per expert (one each), token_s, copy_s, most =
-- shadows that there is memory for (any number)} -> list of experts, the layer's seconds. O(n²).
-- Source: FasterMoE (He et al. 2022, section 4.1; released shadow_policy.py).
function M.shadows(q)
  local order, out, shadowed = falling(q.loads), {}, {}
  local best_s = M.shadows_s(q, shadowed)
  for i = 1, math.min(#order - 1, q.most or #order) do
    shadowed[order[i]] = true
    local time_s = M.shadows_s(q, shadowed)
    if time_s >= best_s then
      break
    end
    best_s, out[i] = time_s, order[i]
  end
  return out, best_s
end

--- What M.shadows takes, where each owner has one expert: three passes compute 4αH² FLOP a token,
-- and four exchanges send H values; a shadow sends 2αH² values; values have 4 bytes; q as
-- M.shadow takes it.
function M.shadow_figures(q)
  local values = q.alpha * q.hidden ^ 2
  return { loads = q.owner_tokens,
    token_s = 3 * 4 * values / q.flops_per_s + 4 * q.hidden * 4 / q.bytes_per_s,
    copy_s = 2 * values * 4 / q.bytes_per_s }
end

--- Which owners' experts are shadowed, where each has one (M.shadow_figures).
-- shadow{owner_tokens = tokens per owner, bytes_per_s, flops_per_s, alpha (hidden over model
-- width), hidden = model width} -> list of owners, the layer's seconds. O(n²).
function M.shadow(q)
  return M.shadows(M.shadow_figures(q))
end

return M
