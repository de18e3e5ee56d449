--- Graphs in long form (tables of hetviz.model/1, kind graph) layer by layer: dimensions named by
-- what they are and their size, weights beside the operators that read them.
--
-- Library: the builders of models in this folder, and plugins of users.
local builder = {}

local Builder = {}
Builder.__index = Builder

--- A graph to which layers are added.
-- @function builder.new
-- @tparam string name of the model
-- @tparam[opt] string dtype of weights and activations ("f32")
-- @treturn table: with the functions of this library (`b:conv{…}`) and `b:finish()`; tensors that
-- these take and give are {name, dims}
-- @units none
-- @raise none
-- @usage local b = require("graphs.builder").new("mlp")
-- local x = b:input("x", { b:dim("batch", 8), b:dim("features", 64) })
-- x = b:linear{ x, "up", to = b:dim("ffn", 256), bias = true }
-- print(#b:finish().ops)
function builder.new(name, dtype)
  return setmetatable({ name = name, dtype = dtype or "f32", dims = {}, tensors = {}, ops = {} },
    Builder)
end

--- The dimension of that name, made where it is new; its name where one of that name has another
-- size.
function Builder:dim(name, size)
  if self.dims[name] ~= nil and self.dims[name] ~= size then
    return self:dim(name .. "_" .. size, size)
  end
  self.dims[name] = size
  return name
end

local function given(b, name, dims, role, dtype)
  if b.tensors[name] then
    error("the tensor " .. name .. " is there already", 3)
  end
  b.tensors[name] = { dims = dims, role = role, dtype = dtype }
  return { name = name, dims = dims }
end

--- An input; `dtype` where it is not that of the model (row numbers: "s32").
function Builder:input(name, dims, dtype)
  return given(self, name, dims, "input", dtype or self.dtype)
end

--- A parameter.
function Builder:weight(name, dims)
  return given(self, name, dims, "parameter", self.dtype)
end

--- Same tensor, its dimensions by other names: what operators see.
function builder.as(x, dims)
  return { name = x.name, dims = x.dims, as = dims }
end

local function reads(x)
  return x.as and { tensor = x.name, as = x.as } or x.name
end

--- An operator: kind, id, operands, dimensions of the result, other members of the file.
function Builder:op(kind, id, operands, out, more)
  local op = { id = id, op = kind, ["in"] = {}, out = out }
  for i, x in ipairs(operands) do
    op["in"][i] = reads(x)
  end
  for key, value in pairs(more or {}) do
    op[key] = value
  end
  self.ops[#self.ops + 1] = op
  return { name = id, dims = out }
end

--- An operator on each element of one or two tensors, in the dimensions of the first.
function Builder:each(kind, id, x, y)
  return self:op(kind, id, { x, y }, x.dims)
end

--- x with its bias over one dimension.
function Builder:biased(id, x, dim)
  return self:each("add", id, x, self:weight(id .. ".bias", { dim }))
end

--- q = {x, id, to = dimension of the result, from = dimensions that are summed (the last), bias}:
-- a product with a weight.
function Builder:linear(q)
  local x, id = q[1], q[2]
  local from = q.from or { x.dims[#x.dims] }
  local gone, seen, out, weight = {}, {}, {}, {}
  for _, d in ipairs(from) do
    gone[d] = true
  end
  -- a dimension that is summed and one that is written may be one size
  for i, d in ipairs(x.dims) do
    seen[i] = d
    if not gone[d] then
      out[#out + 1] = d
    elseif d == q.to then
      seen[i] = self:dim(d .. "_in", self.dims[d])
    end
    if gone[d] then
      weight[#weight + 1] = seen[i]
    end
  end
  out[#out + 1] = q.to
  weight[#weight + 1] = q.to
  local w = self:weight(id .. ".weight", weight)
  local y = self:op("einsum", q.bias and id .. ".product" or id, { builder.as(x, seen), w }, out)
  return q.bias and self:biased(id, y, q.to) or y
end

-- ---- images: batch, height, width, channels --------------------------------------------------

local function pair(v, default)
  v = v or default
  return type(v) == "table" and v or { v, v }
end

--- Size of a side behind a window.
local function side(size, kernel, stride, pad, ceil)
  local room = size + 2 * pad - kernel
  return (ceil and (room + stride - 1) // stride or room // stride) + 1
end

--- Windows over height and width: the dimensions of the result, and the member `window`.
local function windows(b, x, q, taps)
  local kernel, stride, pad = pair(q.kernel), pair(q.stride, 1), pair(q.pad, 0)
  local seen, out, window = { x.dims[1] }, { x.dims[1] }, {}
  for i, letter in ipairs { "h", "w" } do
    local size = b.dims[x.dims[i + 1]]
    local n = side(size, kernel[i], stride[i], pad[i], q.ceil)
    seen[i + 1] = b:dim(letter .. size .. "_in", size)
    out[i + 1] = b:dim(letter .. n, n)
    -- the last window of a rounded-up side reaches over the end
    local behind = (n - 1) * stride[i] + kernel[i] - size - pad[i]
    behind = math.max(behind, pad[i])
    if (size + pad[i] + behind - kernel[i]) // stride[i] + 1 > n then
      behind = pad[i]
    end
    window[out[i + 1]] = { of = seen[i + 1], size = kernel[i], stride = stride[i],
      pad = { pad[i], behind }, tap = taps and b:dim("k" .. letter .. kernel[i], kernel[i]) or nil }
  end
  return seen, out, window, kernel
end

--- q = {x, id, out = channels, kernel = n or {h, w}, stride (1), pad (0), bias}: a convolution.
function Builder:conv(q)
  local x, id = q[1], q[2]
  local channels = self.dims[x.dims[4]]
  local seen, out, window, kernel = windows(self, x, q, true)
  seen[4] = self:dim("c" .. channels .. "_in", channels)
  out[4] = self:dim("c" .. q.out, q.out)
  local w = self:weight(id .. ".weight", { self:dim("kh" .. kernel[1], kernel[1]),
    self:dim("kw" .. kernel[2], kernel[2]), seen[4], out[4] })
  local y = self:op("conv", q.bias and id .. ".product" or id, { builder.as(x, seen), w }, out,
    { window = window })
  return q.bias and self:biased(id, y, out[4]) or y
end

--- q = {x, id, by = "max" or "mean", kernel, stride, pad, ceil = sides are rounded up}: a pool.
function Builder:pool(q)
  local x = q[1]
  local seen, out, window = windows(self, x, q, false)
  seen[4], out[4] = x.dims[4], x.dims[4]
  return self:op("pool", q[2], { builder.as(x, seen) }, out, { by = q.by, window = window })
end

--- Batch normalisation with its activation: scale and shift per channel. The statistics are those
-- of each device's own images, as in data-parallel training, and are not counted.
function Builder:norm(id, x, activation)
  local c = { x.dims[#x.dims] }
  x = self:each("mul", id .. ".scaled", x, self:weight(id .. ".weight", c))
  x = self:each("add", id, x, self:weight(id .. ".bias", c))
  return activation and self:each(activation, id .. "." .. activation, x) or x
end

--- The mean of every channel.
function Builder:mean(id, x)
  return self:op("reduce", id, { x }, { x.dims[1], x.dims[4] }, { by = "mean" })
end

--- Tensors behind each other along their dimension number `at`; the result's is `dim`.
function Builder:concat(id, list, at, dim)
  local out = table.move(list[1].dims, 1, #list[1].dims, 1, {})
  out[at] = dim
  return self:op("concat", id, list, out, { along = dim })
end

--- The loss of a classification: cross-entropy with labels by number.
function Builder:loss(x)
  local rest = table.move(x.dims, 1, #x.dims - 1, 1, {})
  local labels = self:input("labels", rest, "s32")
  return self:op("cross_entropy", "loss", { x, labels }, rest, { over = x.dims[#x.dims] })
end

--- The table of the file; `hv.graph` takes it too.
function Builder:finish()
  return { format = "hetviz.model/1", name = self.name, kind = "graph", dims = self.dims,
    tensors = self.tensors, ops = self.ops }
end

-- ---- files -----------------------------------------------------------------------------------

--- Members of an operator and of its windows in the order in which people read them.
local members = { "id", "op", "in", "out", "by", "over", "along", "rows", "window", "groups",
  "range", "tensor", "as", "of", "tap", "size", "stride", "pad", "dims", "role", "dtype" }
local place = {}
for i, key in ipairs(members) do
  place[key] = i
end

local function keys_of(t)
  local keys = {}
  for key in pairs(t) do
    keys[#keys + 1] = key
  end
  table.sort(keys, function(a, b)
    local x, y = place[a] or #members + 1, place[b] or #members + 1
    return x < y or x == y and a < b
  end)
  return keys
end

--- JSON in one line. Empty tables are lists: the long form has no empty objects.
local function compact(v)
  if type(v) == "string" then
    return '"' .. v .. '"'
  elseif type(v) ~= "table" then
    return tostring(v)
  end
  local list = {}
  if #v > 0 or next(v) == nil then
    for i, x in ipairs(v) do
      list[i] = compact(x)
    end
    return "[" .. table.concat(list, ", ") .. "]"
  end
  for i, key in ipairs(keys_of(v)) do
    list[i] = '"' .. key .. '": ' .. compact(v[key])
  end
  return "{" .. table.concat(list, ", ") .. "}"
end

local function by_name(t)
  local lines = {}
  for i, key in ipairs(keys_of(t)) do
    lines[i] = '  "' .. key .. '": ' .. compact(t[key])
  end
  return "{\n" .. table.concat(lines, ",\n") .. "\n }"
end

--- A graph as the text of its file, one tensor or operator a line.
-- @function builder.text
-- @tparam table graph of a builder: {format, name, kind, dims, tensors, ops}
-- @tparam[opt] string source where the shape is from ("x-source" of the file)
-- @treturn string JSON
-- @units none
-- @raise none
-- @usage local c = require "graphs.convolutional"
-- print(require("graphs.builder").text(c.vgg19{}))
function builder.text(graph, source)
  local ops = {}
  for i, op in ipairs(graph.ops) do
    ops[i] = "  " .. compact(op)
  end
  return table.concat { '{\n "format": "', graph.format, '",\n "name": "', graph.name,
    '",\n "kind": "graph",\n', source and ' "x-source": "' .. source .. '",\n' or "",
    ' "dims": ', by_name(graph.dims), ',\n "tensors": ', by_name(graph.tensors),
    ',\n "ops": [\n', table.concat(ops, ",\n"), "\n ]\n}" }
end

return builder
