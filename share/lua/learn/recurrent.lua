-- Choices for a row of layers made by a recurrent network that reads what each layer is like,
-- trained by policy gradients: an LSTM (Hochreiter and Schmidhuber, Neural Computation 9, 1997) or
-- a plain recurrent cell.
-- Library: heterps is its one user so far; systems that learn placements need it next.
local policy = require "learn.policy"
local search = require "search"

local recurrent = {}

-- gates of a cell: input, forget, output and candidate; or the candidate alone
local GATES = { lstm = 4, rnn = 1 }

--- Rows of small numbers drawn evenly, as many columns.
local function drawn(random, rows, columns)
  local out, size = {}, 1 / math.sqrt(columns)
  for i = 1, rows do
    out[i] = {}
    for k = 1, columns do
      out[i][k] = (2 * random() - 1) * size
    end
  end
  return out
end

local function tanh(x)
  local e = math.exp(-2 * math.abs(x))
  return (x < 0 and -1 or 1) * (1 - e) / (1 + e)
end

local function sigmoid(x)
  return 1 / (1 + math.exp(-x))
end

--- What the cell reads at a layer: the features x, the state h of the layer before, and 1 for the
-- bias.
local function joined(x, h)
  local out = table.move(x, 1, #x, 1, {})
  table.move(h, 1, #h, #out + 1, out)
  out[#out + 1] = 1
  return out
end

--- Matrix times vector.
local function times(rows, v)
  local out = {}
  for i, row in ipairs(rows) do
    local sum = 0
    for k, x in ipairs(v) do
      sum = sum + row[k] * x
    end
    out[i] = sum
  end
  return out
end

--- One layer forward. The backward pass reads all of the result: {seen = inputs, z = gates, c =
-- cell, h = state, out = inputs of the head, p = probabilities, before = step of the layer before}.
local function step(net, x, before)
  local H = net.hidden
  local s = { seen = joined(x, before.h), h = {}, c = {}, before = before }
  local z = times(net.cell, s.seen)
  for j = 1, H do
    if net.gates == 1 then
      s.h[j] = tanh(z[j])
      s.c[j] = 0
    else
      local input, forget, output, candidate = j, H + j, 2 * H + j, 3 * H + j
      z[input] = sigmoid(z[input])
      z[forget] = sigmoid(z[forget])
      z[output] = sigmoid(z[output])
      z[candidate] = tanh(z[candidate])
      s.c[j] = z[forget] * before.c[j] + z[input] * z[candidate]
      s.h[j] = z[output] * tanh(s.c[j])
    end
  end
  s.z = z
  s.out = joined(s.h, {})
  s.p = policy.softmax(times(net.head, s.out))
  return s
end

--- A list of n zeros.
local function zeros(n)
  local out = {}
  for j = 1, n do
    out[j] = 0
  end
  return out
end

--- The steps of all layers, with the probabilities of every layer's choices.
local function forward(net, inputs)
  local steps, before = {}, { h = zeros(net.hidden), c = zeros(net.hidden) }
  for l, x in ipairs(inputs) do
    steps[l] = step(net, x, before)
    before = steps[l]
  end
  return steps
end

--- Gradients of what goes into the gates of one layer, from those of its state and cell; then that
-- of the cell before.
local function gate_gradients(net, s, dh, dc)
  local H, dz, before_c = net.hidden, {}, {}
  for j = 1, H do
    if net.gates == 1 then
      dz[j] = dh[j] * (1 - s.h[j] ^ 2)
      before_c[j] = 0
    else
      local i, f, o, g = s.z[j], s.z[H + j], s.z[2 * H + j], s.z[3 * H + j]
      local t = tanh(s.c[j])
      local d = dc[j] + dh[j] * o * (1 - t * t)
      dz[j] = d * g * i * (1 - i)
      dz[H + j] = d * s.before.c[j] * f * (1 - f)
      dz[2 * H + j] = dh[j] * t * o * (1 - o)
      dz[3 * H + j] = d * i * (1 - g * g)
      before_c[j] = d * f
    end
  end
  return dz, before_c
end

--- Adds to the head's gradient and to that of the state h what the logits of one layer give.
local function head_backward(net, s, logits, head, dh)
  for k, g in ipairs(logits) do
    for j, x in ipairs(s.out) do
      head[k][j] = head[k][j] + g * x
    end
    for j = 1, net.hidden do
      dh[j] = dh[j] + g * net.head[k][j]
    end
  end
end

--- Adds to the cell's gradient what the gates of one layer give; the gradient of the state of the
-- layer before.
local function cell_backward(net, s, dz, cell)
  local features = #s.seen - net.hidden - 1
  local before_h = zeros(net.hidden)
  for i, d in ipairs(dz) do
    local row, own = cell[i], net.cell[i]
    for k, x in ipairs(s.seen) do
      row[k] = row[k] + d * x
    end
    for j = 1, net.hidden do
      before_h[j] = before_h[j] + d * own[features + j]
    end
  end
  return before_h
end

--- Gradients of the weights, from those of the logits of every layer.
local function backward(net, steps, logits)
  local cell, head = policy.zeros(net.cell), policy.zeros(net.head)
  local dh, dc = zeros(net.hidden), zeros(net.hidden)
  for l = #steps, 1, -1 do
    local s = steps[l]
    head_backward(net, s, logits[l], head, dh)
    local dz, before_c = gate_gradients(net, s, dh, dc)
    dh = cell_backward(net, s, dz, cell)
    dc = before_c
  end
  return cell, head
end

--- One step of gradient ascent by Adam (Kingma and Ba, 2015), the t-th. memory = {m, v} moments in
-- the shape of the rows.
local function climb(rows, gradient, memory, rate, t)
  for i, row in ipairs(rows) do
    for k, g in ipairs(gradient[i]) do
      local m = 0.9 * memory.m[i][k] + 0.1 * g
      local v = 0.999 * memory.v[i][k] + 0.001 * g * g
      memory.m[i][k] = m
      memory.v[i][k] = v
      row[k] = row[k] + rate * m / (1 - 0.9 ^ t) / (math.sqrt(v / (1 - 0.999 ^ t)) + 1e-8)
    end
  end
end

--- A network with weights drawn by a seed.
-- @function recurrent.new
-- @tparam table q {inputs = features of a layer, choices = of a layer, cell = "lstm" or "rnn",
-- hidden, seed}
-- @treturn table {hidden, gates, random, cell, head = lists of rows of weights}, for
-- recurrent.probabilities
-- @units none
-- @raise none
-- @usage local shape = { inputs = 2, choices = 3, cell = "rnn", hidden = 4, seed = 1 }
-- local net = require("learn.recurrent").new(shape)
-- assert(#require("learn.recurrent").probabilities(net, { { 1, 0 }, { 0, 1 } })[2] == 3)
function recurrent.new(q)
  local random, gates = search.generator(q.seed), GATES[q.cell]
  return { hidden = q.hidden, gates = gates, random = random,
    cell = drawn(random, gates * q.hidden, q.inputs + q.hidden + 1),
    head = drawn(random, q.choices, q.hidden + 1) }
end

--- Probabilities of the choices of every layer.
-- @function recurrent.probabilities
-- @tparam table net {hidden, gates, cell, head} of recurrent.new
-- @tparam table inputs list of lists of features, one per layer
-- @treturn table list of lists of probabilities
-- @units shares
-- @raise none
-- @usage local shape = { inputs = 1, choices = 2, cell = "lstm", hidden = 2, seed = 1 }
-- local net = require("learn.recurrent").new(shape)
-- local p = require("learn.recurrent").probabilities(net, { { 1 } })[1]
-- assert(math.abs(p[1] + p[2] - 1) < 1e-9)
function recurrent.probabilities(net, inputs)
  local out = {}
  for l, s in ipairs(forward(net, inputs)) do
    out[l] = s.p
  end
  return out
end

--- Gradient of the sum of weight · log of the probability of a choice over all layers, by the
-- weights of the network.
-- @function recurrent.gradient
-- @tparam table net {hidden, gates, cell, head} of recurrent.new
-- @tparam table inputs list of lists of features, one per layer
-- @tparam table rows list of {weight, choices = list of one per layer}
-- @treturn table list of rows: gradient of the cell's weights, then of the head's
-- @units any
-- @raise none
-- @usage local shape = { inputs = 1, choices = 2, cell = "lstm", hidden = 2, seed = 1 }
-- local net = require("learn.recurrent").new(shape)
-- assert(#require("learn.recurrent").gradient(net, { { 1 } }, { { 1, { 2 } } }) == 8)
function recurrent.gradient(net, inputs, rows)
  local steps, logits = forward(net, inputs), {}
  for l, s in ipairs(steps) do
    logits[l] = {}
    for k, p in ipairs(s.p) do
      local sum = 0
      for _, row in ipairs(rows) do
        local hit = row[2][l] == k and 1 or 0
        sum = sum + row[1] * (hit - p)
      end
      logits[l][k] = sum
    end
  end
  return backward(net, steps, logits)
end

--- Largest difference of that gradient to one by central differences, to test it.
-- @function recurrent.gradient_error
-- @tparam table net {hidden, gates, cell, head} of recurrent.new
-- @tparam table inputs list of lists of features, one per layer
-- @tparam table rows list of {weight, choices = list of one per layer}
-- @treturn number the difference
-- @units any
-- @raise none
-- @usage local shape = { inputs = 1, choices = 2, cell = "rnn", hidden = 2, seed = 1 }
-- local net = require("learn.recurrent").new(shape)
-- assert(require("learn.recurrent").gradient_error(net, { { 1 } }, { { 1, { 2 } } }) < 1e-6)
function recurrent.gradient_error(net, inputs, rows)
  local function value()
    local sum, p = 0, recurrent.probabilities(net, inputs)
    for _, row in ipairs(rows) do
      for l, k in ipairs(row[2]) do
        sum = sum + row[1] * math.log(p[l][k])
      end
    end
    return sum
  end
  local function slope(own, k)
    local at, small = own[k], 1e-5
    own[k] = at + small
    local up = value()
    own[k] = at - small
    local down = value()
    own[k] = at
    return (up - down) / (2 * small)
  end
  local cell, head = recurrent.gradient(net, inputs, rows)
  local worst = 0
  for part, gradient in pairs { cell = cell, head = head } do
    for i, row in ipairs(gradient) do
      for k, g in ipairs(row) do
        worst = math.max(worst, math.abs(slope(net[part][i], k) - g))
      end
    end
  end
  return worst
end

--- A batch of drawn states: rows {reward, state} and the mean reward. The best state and the number
-- of evaluations are written into `out`.
local function drawn_batch(net, q, batch, out)
  local probabilities = recurrent.probabilities(net, q.inputs)
  local rows, mean = {}, 0
  for b = 1, batch do
    local state = {}
    for l, row in ipairs(probabilities) do
      state[l] = policy.draw(net.random, row)
    end
    local cost = q.cost(state)
    out.evaluations = out.evaluations + 1
    if cost and cost < out.cost then
      out.state = state
      out.cost = cost
    end
    rows[b] = { -(cost or q.penalty), state }
    mean = mean + rows[b][1] / batch
  end
  return rows, mean
end

--- Policy gradient on the network, as HeterPS trains it (Liu et al., FGCS 148, 2023, section 5):
-- rewards −cost, −penalty where there is none, a baseline that follows the batches' means; steps by
-- Adam.
-- @function recurrent.reinforce
-- @tparam table q {inputs = list of lists of features, one per layer, choices = of a layer, cost =
-- function(list of chosen numbers from 1), penalty, cell = "lstm", hidden = 8, budget = 500, batch
-- = 10, rate = 0.05, gamma = 0.1, seed}
-- @treturn table {state, cost, evaluations, likeliest = list of choices that the policy thinks best
-- in the end}
-- @units any, the caller's; budget, batch and evaluations are counts
-- @raise errors of cost
-- @usage local r = require("learn.recurrent").reinforce {
--   inputs = { { 1, 0 }, { 0, 1 } }, choices = 2, penalty = 9, seed = 1, budget = 300,
--   cost = function(s) return s[1] == 2 and s[2] == 1 and 1 or 5 end }
-- assert(r.cost == 1)
function recurrent.reinforce(q)
  local budget, batch = q.budget or 500, q.batch or 10
  local rate, gamma = q.rate or 0.05, q.gamma or 0.1
  local net = recurrent.new { inputs = #q.inputs[1], choices = q.choices, cell = q.cell or "lstm",
    hidden = q.hidden or 8, seed = q.seed }
  local cell_memory = { m = policy.zeros(net.cell), v = policy.zeros(net.cell) }
  local head_memory = { m = policy.zeros(net.head), v = policy.zeros(net.head) }
  local out = { cost = math.huge, evaluations = 0 }
  local baseline, t = nil, 0
  while out.evaluations < budget do
    local rows, mean = drawn_batch(net, q, batch, out)
    baseline = baseline or mean
    t = t + 1
    for _, row in ipairs(rows) do
      row[1] = (row[1] - baseline) / q.penalty
    end
    baseline = (1 - gamma) * baseline + gamma * mean
    local cell, head = recurrent.gradient(net, q.inputs, rows)
    climb(net.cell, cell, cell_memory, rate, t)
    climb(net.head, head, head_memory, rate, t)
  end
  out.likeliest = policy.likeliest(recurrent.probabilities(net, q.inputs))
  return out
end

return recurrent
