-- Which tensors of a stage are kept, lie on a peer or in the host's memory, or are computed again:
-- an integer program (Zhou et al. 2023 refine a profile step by step; the program is exact for the
-- same costs). Tensors that are equal are one row with a number. Bytes and seconds are those of a
-- micro-batch; a tensor that is away or computed again frees its bytes for `alive` micro-batches.
local placing = {}

placing.ACTIONS = { "keep", "peer", "host", "recompute" }

--- Seconds that an action adds to a micro-batch: what a copy there and back needs beyond the time
-- between the passes, or the second forward pass.
function placing.cost_s(q, device, tensor, action)
  if action == "peer" then
    return math.max(0, 2 * tensor.bytes / device.peer_bandwidth - tensor.interval_s)
  elseif action == "host" then
    return math.max(0, 2 * tensor.bytes / q.host_bandwidth - tensor.interval_s)
  end
  return action == "recompute" and tensor.recompute_s or 0
end

--- Bytes that an action frees on the device.
function placing.freed_bytes(tensor, action)
  if action == "keep" then
    return 0
  elseif action == "recompute" then
    return (tensor.bytes - (tensor.input_bytes or 0)) * tensor.alive
  end
  return tensor.bytes * tensor.alive
end

--- A variable for the time of a link beyond a slot: copies to one place wait for each other.
local function beyond_slot(lp, device, terms, objective)
  if device.slot_s then
    local over = lp:var {}
    terms[over] = -1
    lp:row(terms, "<=", device.slot_s)
    objective[over] = 1
  end
end

--- Adds the tensors of device d; gives their variables by tensor and action.
local function add_device(lp, q, d, objective)
  local device, numbers, freed, peer = q.devices[d], {}, {}, {}
  local links = { peer = {}, host = {} }
  for i, tensor in ipairs(device.tensors) do
    local total = {}
    numbers[i] = {}
    for _, action in ipairs(placing.ACTIONS) do
      local allowed = action ~= "peer" or device.peer_bandwidth
      local x = lp:var { upper = allowed and tensor.count or 0, integer = true }
      numbers[i][action], total[x] = x, 1
      objective[x] = allowed and placing.cost_s(q, device, tensor, action) or 0
      freed[x] = placing.freed_bytes(tensor, action)
      if action == "peer" then
        peer[x] = tensor.bytes * tensor.alive
        links.peer[x] = device.peer_bandwidth and 2 * tensor.bytes / device.peer_bandwidth or 0
      elseif action == "host" then
        links.host[x] = 2 * tensor.bytes / q.host_bandwidth
      end
    end
    lp:row(total, "=", tensor.count)
  end
  lp:row(freed, ">=", math.max(0, device.overflow_bytes))
  beyond_slot(lp, device, links.host, objective)
  beyond_slot(lp, device, links.peer, objective)
  return numbers, peer
end

--- Bytes of every device on every peer: those sent are dealt to peers, none to more than its room.
local function add_flows(lp, q, sent)
  local flows, rooms = {}, {}
  for d in ipairs(q.devices) do
    flows[d] = {}
    local terms = sent[d]
    for p, other in ipairs(q.devices) do
      if p ~= d and other.spare_bytes > 0 then
        local y = lp:var {}
        flows[d][p], terms[y] = y, -1
        rooms[p] = rooms[p] or {}
        rooms[p][y] = 1
      end
    end
    lp:row(terms, "=", 0)
  end
  for p, terms in pairs(rooms) do
    lp:row(terms, "<=", q.devices[p].spare_bytes)
  end
  return flows
end

--- The placement of least exposed time. q = {host_bandwidth, devices = list of {tensors = list of
-- {bytes, count, alive, interval_s, recompute_s, input_bytes = kept when it is computed again},
-- overflow_bytes = to be freed, spare_bytes = for peers, peer_bandwidth (nil: no peers), slot_s =
-- time of a link per micro-batch (nil: no limit)}}. Returns {value, devices = list of {tensors =
-- list of numbers by action, peers = bytes by device}, proven}; nil where too little can be freed.
function placing.solve(q)
  local lp, objective, numbers, sent = hv.opt.lp { sense = "min" }, {}, {}, {}
  for d in ipairs(q.devices) do
    numbers[d], sent[d] = add_device(lp, q, d, objective)
  end
  local flows = add_flows(lp, q, sent)
  lp:objective(objective)
  local r = lp:solve { time_limit_s = 2 }
  if not r.x then
    return nil
  end
  local out = { value = r.objective, proven = r.proven, devices = {} }
  for d, device in ipairs(q.devices) do
    local own = { tensors = {}, peers = {} }
    for i in ipairs(device.tensors) do
      own.tensors[i] = {}
      for action, x in pairs(numbers[d][i]) do
        own.tensors[i][action] = math.floor(r.x[x] + 0.5)
      end
    end
    for p, y in pairs(flows[d]) do
      own.peers[p] = r.x[y] > 1e-9 * q.devices[p].spare_bytes and r.x[y] or nil
    end
    out.devices[d] = own
  end
  return out
end

return placing
