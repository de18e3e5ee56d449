-- Self-tests of MPress: the catalogue's four tensors, 200 random placements against the enumeration
-- of all of them, and plans through the judge on plain links.
local oracle = require "testing.oracle"
local placing = require "placing"
local plain = require "testing.plain"
local rows = require "testing.rows"
local search = require "search"
local timeline = require "timeline"

local FROM = "catalogue: mpress"
local GB = 1e9

--- The catalogue's tensors of 2 GB on a device that lacks 6 GB, with or without a peer.
local function four(has_peer)
  local idle_s, again_s = { 0.50, 0.10, 0.40, 0.30 }, { 0.10, 0.05, 0.02, 0.20 }
  local tensors = {}
  for i = 1, 4 do
    tensors[i] = { bytes = 2 * GB, count = 1, alive = 1, interval_s = idle_s[i],
      recompute_s = again_s[i] }
  end
  return { host_bandwidth = 12 * GB, devices = {
    { tensors = tensors, overflow_bytes = 6 * GB, spare_bytes = 0,
      peer_bandwidth = has_peer and 50 * GB or nil },
    { tensors = {}, overflow_bytes = 0, spare_bytes = 2 * GB } } }
end

local function check_catalogue(t)
  local placed = assert(placing.solve(four(true)))
  t.near("least exposed time [D]", placed.value, 0, 1e-9, FROM)
  t.ok("the program is proven", placed.proven)
  t.near("bytes on the peer", placed.devices[1].peers[2], 2 * GB, 1, FROM)
  placed = assert(placing.solve(four(false)))
  t.near("without peers [D]", placed.value, 0.0333, 0.00005, FROM)
  local words = {}
  for i, numbers in ipairs(placed.devices[1].tensors) do
    for _, action in ipairs(placing.ACTIONS) do
      words[i] = numbers[action] == 1 and action or words[i]
    end
  end
  t.equal("its actions [D]", table.concat(words, ","), "host,keep,host,host", FROM)
end

--- A random case of one to three devices with up to four tensors each, some of them alike.
local function random_case()
  local q = { host_bandwidth = 1 + hv.random(4), devices = {} }
  local n_tensors = 0
  for d = 1, hv.random(3) do
    local device = { tensors = {}, overflow_bytes = hv.random(3) > 1 and hv.random(12) - 1 or 0,
      spare_bytes = hv.random(8) - 1, peer_bandwidth = hv.random(3) > 1 and 4 + hv.random(8) or nil,
      slot_s = hv.random(2) == 1 and hv.random(4) or nil }
    for i = 1, math.min(hv.random(3), 5 - n_tensors) do
      n_tensors = n_tensors + 1
      device.tensors[i] = { bytes = hv.random(6), count = 1, alive = hv.random(2),
        interval_s = hv.random(30) / 10 - 0.1, recompute_s = hv.random(20) / 10 }
    end
    q.devices[d] = device
  end
  return q
end

--- Seconds of a choice of actions, all tensors one after the other; nil where it does not fit. What
-- is sent fits on the peers where no device has more than all others have room for, and all of them
-- not more than there is.
local function seconds(q, actions)
  local at, total_s, sent_bytes, room_bytes = 0, 0, 0, 0
  local sent = {}
  for d, device in ipairs(q.devices) do
    room_bytes = room_bytes + device.spare_bytes
    local freed, link_s = 0, { peer = 0, host = 0 }
    sent[d] = 0
    for _, tensor in ipairs(device.tensors) do
      at = at + 1
      local action = actions[at]
      if action == "peer" and not device.peer_bandwidth then
        return nil
      end
      local away_s = action == "peer" and 2 * tensor.bytes / device.peer_bandwidth
        or 2 * tensor.bytes / q.host_bandwidth
      if action == "recompute" then
        total_s = total_s + tensor.recompute_s
      elseif action ~= "keep" then
        total_s = total_s + math.max(0, away_s - tensor.interval_s)
        link_s[action] = link_s[action] + away_s
      end
      freed = freed + (action == "keep" and 0 or tensor.bytes * tensor.alive)
      sent[d] = sent[d] + (action == "peer" and tensor.bytes * tensor.alive or 0)
    end
    if freed < device.overflow_bytes then
      return nil
    end
    for _, used_s in pairs(link_s) do
      total_s = total_s + math.max(0, used_s - (device.slot_s or math.huge))
    end
    sent_bytes = sent_bytes + sent[d]
  end
  for d, device in ipairs(q.devices) do
    if sent[d] > room_bytes - device.spare_bytes then
      return nil
    end
  end
  return sent_bytes <= room_bytes and total_s or nil
end

--- The least exposed time, by all choices of actions.
local function enumerated(q)
  local lists, best = {}, math.huge
  for _, device in ipairs(q.devices) do
    for _ in ipairs(device.tensors) do
      lists[#lists + 1] = placing.ACTIONS
    end
  end
  for actions in search.product(lists) do
    best = math.min(best, seconds(q, actions) or math.huge)
  end
  return best
end

local function check_oracle(t)
  oracle.exact(t, "200 random placements against enumeration [D]", FROM, { draw = random_case,
    least = enumerated, solve = function(q)
      local placed = placing.solve(q)
      return placed and placed.value
    end })
end

--- Four layers of 2 GB of activations on four devices.
local function world(memory_GiB)
  local inputs = plain.measured { nodes = 1, devices = 4, layers = 8, forward_ms = 100,
    backward_ms = 200, parameter_bytes = 1e6, batch = 16, memory_GiB = memory_GiB }
  for _, layer in ipairs(inputs.model.layers) do
    layer.activation_bytes = GB
  end
  return inputs
end

--- A copy to the host that its pass cannot hide takes as long as the bandwidth says, which the
-- program is given: 64 GB forward, of which one layer computes for 0.1 s.
local function check_host(t)
  local inputs = world(80)
  inputs.model.layers[1].activation_bytes = 64 * GB
  t.with(inputs, function(ctx)
    local one = ctx.cluster:address { 1 }
    local pass = hv.cost.stage { devices = one, layers = { 0, 1 }, micro_batch = 1,
      offload = { { what = "activations", to = "host" } } }
    local bandwidth = ctx.cluster:devices()[1].host_bytes_per_s
    t.near("bandwidth to the host by the judge", 64 * GB / pass.forward_s / bandwidth, 1, 1e-6,
      "PCIe 3.0 x16 where the device gives none")
    local hidden = hv.cost.stage { devices = one, layers = { 1, 2 }, micro_batch = 1,
      offload = { { what = "activations", to = "host" } } }
    t.near("a copy behind its pass shows no bandwidth", hidden.forward_s, 0.1, 1e-9,
      "1 GB in 0.1 s of computing")
  end)
end

local function check_judge(t)
  -- four stages of 0.2 + 0.4 s: between the passes of a micro-batch the first one runs both passes
  -- of three others: F_i, B_(i-3), F_(i+1), … B_(i-1), F_(i+3), B_i
  t.near("idle time of the first stage [D]",
    timeline.intervals({ 0.2, 0.2, 0.2, 0.2 }, { 0.4, 0.4, 0.4, 0.4 }, 16)[1], 1.8, 1e-9, FROM)
  local function run(memory_GiB)
    return t.with(world(memory_GiB), function()
      local made = assert(hv.strategy("mpress", { micro_batch = 1 }))
      local away = 0
      for _, stage in ipairs(made:table().replicas[1].stages) do
        away = away + #(stage.offload or {})
      end
      return made:eval().iteration_s, away
    end)
  end
  local roomy_s, none = run(80) -- four copies, four micro-batches of 8 · 0.3 s each
  t.equal("with room nothing is moved", none, 0, FROM)
  t.near("seconds with room", roomy_s, 9.6, 1e-3, FROM)
  local tight_s, away = run(7)
  t.ok("without room activations are elsewhere", away > 0, FROM)
  t.near("seconds of 16 micro-batches and four stages, copies hidden", tight_s, 19 * 0.6, 1e-3,
    FROM)
end

return function(t)
  check_catalogue(t)
  check_oracle(t)
  check_host(t)
  check_judge(t)
  rows.search(t, plain.pipelined())
end
