--- Recommendation models as graphs in long form.
--
-- Library: models as data; share/models has some of them as files.
local builder = require "graphs.builder"

local recommendation = {}

--- Rows of the 26 tables of Criteo's terabyte at most 40 million each. Source: MLPerf Training,
-- DLRM (num_embeddings_per_feature).
local terabyte = { 39884406, 39043, 17289, 7420, 20263, 3, 7120, 1543, 63, 38532951, 2953546,
  403346, 10, 2208, 11938, 155, 4, 976, 14, 39979771, 25641295, 39664984, 585935, 12972, 108, 36 }

local function mlp(b, x, id, widths)
  for i, n in ipairs(widths) do
    local to = b:dim(id .. i, n)
    x = b:linear { x, id .. "_mlp" .. i, to = to, bias = true }
    x = b:each(id == "top" and i == #widths and "sigmoid" or "relu", id .. "_act" .. i, x)
  end
  return x
end

--- DLRM: Naumov et al. 2019: embeddings and dense features, products of all pairs, two MLPs.
-- @function recommendation.dlrm
-- @tparam table q {batch (1), rows = list of the tables' rows (Criteo's terabyte as in MLPerf),
-- bottom = widths ({512, 256, 128}), top = widths ({1024, 1024, 512, 256, 1}), dense (13), dtype}
-- @treturn table {format, name, kind, dims, tensors, ops}: a graph in long form
-- @units none: counts
-- @raise none
-- @usage print(#require("graphs.recommendation").dlrm{}.ops)
function recommendation.dlrm(q)
  local b = builder.new("dlrm", q.dtype)
  local rows, bottom = q.rows or terabyte, q.bottom or { 512, 256, 128 }
  local batch, one = b:dim("batch", q.batch or 1), b:dim("one", 1)
  local width = b:dim("width", bottom[#bottom])
  local x = b:input("features", { batch, b:dim("features", q.dense or 13) })
  local bottoms = mlp(b, x, "bottom", bottom)
  local list = { b:op("reshape", "dense", { bottoms }, { batch, one, width }) }
  for i, n in ipairs(rows) do
    local r = b:dim("rows" .. i, n)
    local e = b:op("embedding", "embedding" .. i, { b:weight("table" .. i, { r, width }),
      b:input("index" .. i, { batch }, "s32") }, { batch, width }, { rows = r })
    list[#list + 1] = b:op("reshape", "vector" .. i, { e }, { batch, one, width })
  end
  local n = #rows + 1
  local f, g = b:dim("vectors", n), b:dim("others", n)
  local all = b:concat("vectors", list, 2, f)
  local others = builder.as(all, { batch, g, width })
  local z = b:op("einsum", "products", { all, others }, { batch, f, g })
  local pairs_of = b:dim("square", n * n)
  z = b:op("reshape", "square", { z }, { batch, pairs_of }, { groups = { [pairs_of] = { f, g } } })
  local p = b:dim("pairs", n * (n - 1) // 2)
  z = b:op("gather", "pairs", { z, b:input("below", { p }, "s32") }, { p, batch },
    { rows = pairs_of })
  z = b:op("transpose", "pairs.turned", { z }, { batch, p })
  local sum = b.dims[width] + b.dims[p]
  x = b:concat("interaction", { builder.as(bottoms, { batch, width }), z }, 2, b:dim("joined", sum))
  mlp(b, x, "top", q.top or { 1024, 1024, 512, 256, 1 })
  return b:finish()
end

return recommendation
