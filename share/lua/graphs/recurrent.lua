--- Recurrent networks as graphs in long form: cells of all steps share their weights.
--
-- Library: models as data; share/models has some of them as files.
local builder = require "graphs.builder"

local recurrent = {}

--- One step of an LSTM from its share of the input's product and the state before; PyTorch's
-- equations. All have a dimension "step" of one element.
local function cell(b, id, gates, state, w, gate_dim)
  local step, hidden = b:dim("step", 1), gates.dims[4]
  local part, parts = b:dim("gate", 1), {}
  if state.h then
    local before = b:dim(hidden .. "_before", b.dims[hidden])
    local y = b:op("einsum", id .. ".turn", { builder.as(state.h, { gates.dims[1], step, before }),
      w }, gates.dims)
    gates = b:each("add", id .. ".gates", gates, y)
  end
  for i, kind in ipairs { "sigmoid", "sigmoid", "tanh", "sigmoid" } do -- in, forget, cell, out
    local slice = b:op("slice", id .. ".part" .. i, { gates },
      { gates.dims[1], step, part, hidden }, { range = { [gate_dim] = { i - 1, i } } })
    slice = b:op("reduce", id .. ".gate" .. i, { slice }, { gates.dims[1], step, hidden },
      { by = "sum" })
    parts[i] = b:each(kind, id .. ".on" .. i, slice)
  end
  local c = b:each("mul", id .. ".new", parts[1], parts[3])
  if state.c then
    c = b:each("add", id .. ".cell", c, b:each("mul", id .. ".kept", parts[2], state.c))
  end
  return { c = c, h = b:each("mul", id .. ".out", parts[4], b:each("tanh", id .. ".seen", c)) }
end

--- A layer of LSTM cells over all steps of x [batch, steps, width]; `back`: from the last step on.
-- Two biases, as cuDNN and PyTorch have them.
local function lstm(b, id, x, hidden, back)
  local gate, steps = b:dim("gates", 4), b.dims[x.dims[2]]
  local from = x.dims[3] == hidden and b:dim(hidden .. "_in", b.dims[hidden]) or x.dims[3]
  local before = b:dim(hidden .. "_before", b.dims[hidden])
  local w_in = b:weight(id .. ".in", { from, gate, hidden })
  local w = b:weight(id .. ".turn", { before, gate, hidden })
  local all = { x.dims[1], x.dims[2], gate, hidden }
  local input = builder.as(x, { x.dims[1], x.dims[2], from })
  local g = b:op("einsum", id .. ".product", { input, w_in }, all)
  for i = 1, 2 do
    g = b:each("add", id .. ".biased" .. i, g, b:weight(id .. ".bias" .. i, { gate, hidden }))
  end
  local state, outs, step = {}, {}, b:dim("step", 1)
  for t = 1, steps do
    local at = back and steps + 1 - t or t
    local name = id .. ".step" .. at
    local share = b:op("slice", name, { g }, { x.dims[1], step, gate, hidden },
      { range = { [x.dims[2]] = { at - 1, at } } })
    state = cell(b, name, share, state, w, gate)
    outs[at] = state.h
  end
  return b:op("concat", id, outs, { x.dims[1], x.dims[2], hidden }, { along = x.dims[2] })
end

--- Additive attention with a scale (Bahdanau et al. 2015, normalised): queries of all steps.
local function attention(b, q, keys_of, hidden)
  local k = b:dim("attended", b.dims[hidden])
  local batch, s, t = q.dims[1], q.dims[2], keys_of.dims[2]
  local keys = b:linear { keys_of, "attention.keys", to = k }
  local query = b:linear { q, "attention.query", to = k }
  local sum = b:op("add", "attention.sum", { query, keys }, { batch, s, t, k })
  sum = b:each("add", "attention.biased", sum, b:weight("attention.bias", { k }))
  local row = b:weight("attention.row", { k })
  local scale = b:weight("attention.scale", {})
  row = b:op("mul", "attention.scaled", { row, scale }, { k })
  local scores = b:op("einsum", "attention.scores",
    { b:each("tanh", "attention.tanh", sum), row }, { batch, s, t })
  scores = b:op("softmax", "attention.weights", { scores }, { batch, s, t }, { over = t })
  return b:op("einsum", "attention.context", { scores, keys_of }, { batch, s, hidden })
end

--- A translator of LSTM layers with attention: Wu et al. 2016 in the form of MLPerf (the first
-- layer of the encoder goes both ways, residuals from the third layer on, one table for both
-- languages).
-- @function recurrent.gnmt
-- @tparam table q {layers of encoder and decoder each (4), hidden (1024), vocab (32320), tokens of
-- both sentences (8), batch (1), dtype ("f32")}
-- @treturn table {format, name, kind, dims, tensors, ops}: a graph in long form
-- @units none: counts
-- @raise none
-- @usage print(#require("graphs.recurrent").gnmt{ tokens = 2 }.ops)
function recurrent.gnmt(q)
  local b = builder.new(q.name or "gnmt", q.dtype)
  local layers, tokens = q.layers or 4, q.tokens or 8
  local batch, vocab = b:dim("batch", q.batch or 1), b:dim("vocab", q.vocab or 32320)
  local hidden = b:dim("hidden", q.hidden or 1024)
  local double = b:dim("both", 2 * b.dims[hidden])
  local s, t = b:dim("target", tokens), b:dim("source", tokens)
  local table_of = b:weight("embedding.weight", { vocab, hidden })
  local function embedded(id, steps)
    return b:op("embedding", id .. ".embedding",
      { table_of, b:input(id, { batch, steps }, "s32") }, { batch, steps, hidden },
      { rows = vocab })
  end
  local x = embedded("source", t)
  x = b:concat("encoder1", { lstm(b, "encoder1.forth", x, hidden),
    lstm(b, "encoder1.back", x, hidden, true) }, 3, double)
  for i = 2, layers do
    local y = lstm(b, "encoder" .. i, x, hidden)
    x = i > 2 and b:each("add", "encoder" .. i .. ".sum", y, x) or y
  end
  local y = lstm(b, "decoder1", embedded("target", s), hidden)
  local context = attention(b, y, x, hidden)
  x = y
  for i = 2, layers do
    y = lstm(b, "decoder" .. i, b:concat("decoder" .. i .. ".with", { x, context }, 3, double),
      hidden)
    x = i > 2 and b:each("add", "decoder" .. i .. ".sum", y, x) or y
  end
  x = b:linear { x, "classifier", to = vocab, bias = true }
  b:loss(x)
  return b:finish()
end

return recurrent
