--- Small operator graphs behind plain links, in which self-tests of systems that decide per
-- operator can try every choice through the judge.
-- Library: self-tests of systems; their chunks are no plugins.
local plain = require "testing.plain"
local splits = require "operator_splits"

local world = {}

--- Two products with an activation between them, on four nodes of one device: the first has few
-- rows and large weights, the second many elements and few weights.
function world.chain()
  return {
    cluster = plain.cluster { nodes = 4, memory_GBps = 1e6 },
    model = {
      format = "hetviz.model/1", name = "chain", kind = "graph",
      dims = { rows = 256, narrow = 64, wide = 4096 },
      tensors = {
        x = { dims = { "rows", "narrow" }, role = "input" },
        up = { dims = { "narrow", "wide" }, role = "parameter" },
        down = { dims = { "wide", "narrow" }, role = "parameter" },
      },
      ops = {
        { id = "first", op = "einsum", ["in"] = { "x", "up" }, out = { "rows", "wide" } },
        { id = "active", op = "relu", ["in"] = { "first" }, out = { "rows", "wide" } },
        { id = "second", op = "einsum", ["in"] = { "active", "down" }, out = { "rows", "narrow" } },
      },
    },
    job = { format = "hetviz.job/1", global_batch = 1, sequence = 1, precision = "fp32",
      optimizer = "none" },
  }
end

--- Edges of the catalogue's diamond of four operators with two ways each.
world.DIAMOND = { { 1, 2, { { 0, 4 }, { 3, 0 } } }, { 1, 3, { { 0, 2 }, { 5, 0 } } },
  { 2, 4, { { 0, 1 }, { 2, 0 } } }, { 3, 4, { { 0, 3 }, { 1, 0 } } } }

--- Operators of one class each with these seconds (and bytes) per way, and edges of seconds.
function world.priced_of(nodes, edges, bytes)
  local priced = { ops = {}, classes = {}, edges = edges }
  for i, seconds in ipairs(nodes) do
    priced.ops[i], priced.classes[i] = { id = "o" .. i, class = i }, {}
    for k, s in ipairs(seconds) do
      priced.classes[i][k] = {
        forward_s = s, backward_s = 0, exchange_s = 0, sums_s = 0,
        parameters = 0, kept_bytes = bytes and bytes[i][k] or 0 }
    end
  end
  return priced
end

--- Seconds of choices.
function world.sum_of(priced, choices)
  local sum = 0
  for i, op in ipairs(priced.ops) do
    sum = sum + splits.seconds(priced.classes[op.class][choices[i]])
  end
  for _, edge in ipairs(priced.edges) do
    sum = sum + edge[3][choices[edge[1]]][choices[edge[2]]]
  end
  return sum
end

--- Calls visit(choices) for all choices.
function world.each(priced, visit)
  local choices = {}
  local function from(i)
    if i > #priced.ops then
      return visit(choices)
    end
    for k in ipairs(priced.classes[priced.ops[i].class]) do
      choices[i] = k
      from(i + 1)
    end
  end
  from(1)
end

--- A random graph of up to six operators with up to three ways each.
function world.random()
  local nodes, edges, bytes = {}, {}, {}
  for i = 1, 2 + hv.random(4) do
    nodes[i], bytes[i] = {}, {}
    for k = 1, hv.random(3) do
      nodes[i][k], bytes[i][k] = hv.random(20), hv.random(20)
    end
    for from = 1, i - 1 do
      if hv.random(2) == 1 then
        local rows = {}
        for a = 1, #nodes[from] do
          rows[a] = {}
          for b = 1, #nodes[i] do
            rows[a][b] = hv.random(10) - 1
          end
        end
        edges[#edges + 1] = { from, i, rows }
      end
    end
  end
  return world.priced_of(nodes, edges, bytes)
end

return world
