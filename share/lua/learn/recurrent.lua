-- Choices for a row of layers made by a recurrent network that reads what each layer is like,
-- trained by policy gradients: an LSTM (Hochreiter and Schmidhuber, Neural Computation 9, 1997) or
-- a plain recurrent cell.
-- Library: heterps is its one user so far; systems that learn placements need it next.
local policy = require "learn.policy"
local search = require "search"

local recurrent = {}

-- of a cell: input, forget, output, candidate; or the candidate alone
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

--- What the cell sees at a layer: its features, the state before, and 1.
local function joined(x, h)
  local out = table.move(x, 1, #x, 1, {})
  table.move(h, 1, #h, #out + 1, out)
  out[#out + 1] = 1
  return out
end

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

--- One layer forward: what the way back needs.
local function step(net, x, before)
  local H, s = net.hidden, { seen = joined(x, before.h), h = {}, c = {}, before = before }
  local z = times(net.cell, s.seen)
  for j = 1, H do
    if net.gates == 1 then
      s.h[j], s.c[j] = tanh(z[j]), 0
    else
      z[j], z[H + j], z[2 * H + j] = sigmoid(z[j]), sigmoid(z[H + j]), sigmoid(z[2 * H + j])
      z[3 * H + j] = tanh(z[3 * H + j])
      s.c[j] = z[H + j] * before.c[j] + z[j] * z[3 * H + j]
      s.h[j] = z[2 * H + j] * tanh(s.c[j])
    end
  end
  s.z, s.out = z, joined(s.h, {})
  s.p = policy.softmax(times(net.head, s.out))
  return s
end

--- Probabilities of every layer's choices, with the steps.
local function forward(net, inputs)
  local steps, before = {}, { h = {}, c = {} }
  for j = 1, net.hidden do
    before.h[j], before.c[j] = 0, 0
  end
  for l, x in ipairs(inputs) do
    steps[l] = step(net, x, before)
    before = steps[l]
  end
  return steps
end

--- Gradients of what goes into the gates of one layer, from those of its state; then that of the
-- cell before.
local function gate_gradients(net, s, dh, dc)
  local H, dz, before_c = net.hidden, {}, {}
  for j = 1, H do
    if net.gates == 1 then
      dz[j], before_c[j] = dh[j] * (1 - s.h[j] ^ 2), 0
    else
      local i, f, o, g, t = s.z[j], s.z[H + j], s.z[2 * H + j], s.z[3 * H + j], tanh(s.c[j])
      local d = dc[j] + dh[j] * o * (1 - t * t)
      dz[j], dz[H + j] = d * g * i * (1 - i), d * s.before.c[j] * f * (1 - f)
      dz[2 * H + j], dz[3 * H + j] = dh[j] * t * o * (1 - o), d * i * (1 - g * g)
      before_c[j] = d * f
    end
  end
  return dz, before_c
end

--- Gradients of the weights, from those of the logits of every layer.
local function backward(net, steps, logits)
  local cell, head, n_in = policy.zeros(net.cell), policy.zeros(net.head),
    #steps[1].seen - net.hidden - 1
  local dh, dc = {}, {}
  for j = 1, net.hidden do
    dh[j], dc[j] = 0, 0
  end
  for l = #steps, 1, -1 do
    local s = steps[l]
    for k, g in ipairs(logits[l]) do
      for j, x in ipairs(s.out) do
        head[k][j] = head[k][j] + g * x
      end
      for j = 1, net.hidden do
        dh[j] = dh[j] + g * net.head[k][j]
      end
    end
    local dz, next_c = gate_gradients(net, s, dh, dc)
    for j = 1, net.hidden do
      dh[j] = 0
    end
    for i, d in ipairs(dz) do
      local row, own = cell[i], net.cell[i]
      for k, x in ipairs(s.seen) do
        row[k] = row[k] + d * x
      end
      for j = 1, net.hidden do
        dh[j] = dh[j] + d * own[n_in + j]
      end
    end
    dc = next_c
  end
  return cell, head
end

--- Adam (Kingma and Ba, 2015), uphill.
local function climb(rows, gradient, memory, rate, t)
  for i, row in ipairs(rows) do
    for k, g in ipairs(gradient[i]) do
      local m, v = 0.9 * memory.m[i][k] + 0.1 * g, 0.999 * memory.v[i][k] + 0.001 * g * g
      memory.m[i][k], memory.v[i][k] = m, v
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
-- @usage local net = require("learn.recurrent").new { inputs = 2, choices = 3, cell = "rnn", hidden = 4, seed = 1 }
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
-- @usage local net = require("learn.recurrent").new { inputs = 1, choices = 2, cell = "lstm", hidden = 2, seed = 1 }
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
-- @usage local net = require("learn.recurrent").new { inputs = 1, choices = 2, cell = "lstm", hidden = 2, seed = 1 }
-- assert(#require("learn.recurrent").gradient(net, { { 1 } }, { { 1, { 2 } } }) == 8)
function recurrent.gradient(net, inputs, rows)
  local steps, logits = forward(net, inputs), {}
  for l, s in ipairs(steps) do
    logits[l] = {}
    for k, p in ipairs(s.p) do
      local sum = 0
      for _, row in ipairs(rows) do
        sum = sum + row[1] * ((row[2][l] == k and 1 or 0) - p)
      end
      logits[l][k] = sum
    end
  end
  return backward(net, steps, logits)
end

--- Largest difference of that gradient to one by differences, to test it.
-- @function recurrent.gradient_error
-- @tparam table net {hidden, gates, cell, head} of recurrent.new
-- @tparam table inputs list of lists of features, one per layer
-- @tparam table rows list of {weight, choices = list of one per layer}
-- @treturn number the difference
-- @units any
-- @raise none
-- @usage local net = require("learn.recurrent").new { inputs = 1, choices = 2, cell = "rnn", hidden = 2, seed = 1 }
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
  local worst, cell, head = 0, recurrent.gradient(net, inputs, rows)
  for part, gradient in pairs { cell = cell, head = head } do
    for i, row in ipairs(gradient) do
      for k, g in ipairs(row) do
        worst = math.max(worst, math.abs(slope(net[part][i], k) - g))
      end
    end
  end
  return worst
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
-- @usage local r = require("learn.recurrent").reinforce { inputs = { { 1, 0 }, { 0, 1 } }, choices = 2, penalty = 9,
--   seed = 1, cost = function(s) return s[1] == 2 and s[2] == 1 and 1 or 5 end, budget = 300 }
-- assert(r.cost == 1)
function recurrent.reinforce(q)
  local net = recurrent.new { inputs = #q.inputs[1], choices = q.choices, cell = q.cell or "lstm",
    hidden = q.hidden or 8, seed = q.seed }
  local memory = {}
  for i, rows in ipairs { net.cell, net.head } do
    memory[i] = { m = policy.zeros(rows), v = policy.zeros(rows) }
  end
  local out, baseline, t = { cost = math.huge, evaluations = 0 }, nil, 0
  while out.evaluations < (q.budget or 500) do
    local p, rows, mean = recurrent.probabilities(net, q.inputs), {}, 0
    for b = 1, q.batch or 10 do
      local state = {}
      for l, row in ipairs(p) do
        state[l] = policy.draw(net.random, row)
      end
      local cost = q.cost(state)
      out.evaluations = out.evaluations + 1
      if cost and cost < out.cost then
        out.state, out.cost = state, cost
      end
      rows[b] = { -(cost or q.penalty), state }
      mean = mean + rows[b][1] / (q.batch or 10)
    end
    baseline, t = baseline or mean, t + 1
    for _, row in ipairs(rows) do
      row[1] = (row[1] - baseline) / q.penalty
    end
    baseline = (1 - (q.gamma or 0.1)) * baseline + (q.gamma or 0.1) * mean
    local cell, head = recurrent.gradient(net, q.inputs, rows)
    climb(net.cell, cell, memory[1], q.rate or 0.05, t)
    climb(net.head, head, memory[2], q.rate or 0.05, t)
  end
  out.likeliest = policy.likeliest(recurrent.probabilities(net, q.inputs))
  return out
end

return recurrent
