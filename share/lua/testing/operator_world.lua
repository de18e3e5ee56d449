--- Small operator graphs behind plain links, in which self-tests of systems that decide per operator
-- can try every choice through the judge.
-- Library: self-tests of systems; their chunks are no plugins.
local plain = require "testing.plain"

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

return world
