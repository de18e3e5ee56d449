--- Convolutional networks as graphs in long form.
--
-- Library: models as data; share/models has some of them as files.
local builder = require "graphs.builder"

local convolutional = {}

local function images(b, batch, size)
  return b:input("images", { b:dim("batch", batch), b:dim("h" .. size, size),
    b:dim("w" .. size, size), b:dim("c3", 3) })
end

--- Convolution, normalisation and (default) relu.
local function unit(b, x, id, out, kernel, stride, pad, activation)
  x = b:conv { x, id, out = out, kernel = kernel, stride = stride, pad = pad }
  return b:norm(id .. ".norm", x, activation == nil and "relu" or activation)
end

local function classifier(b, x, classes)
  x = b:linear { x, "classifier", to = b:dim("classes", classes), bias = true }
  b:loss(x)
  return b:finish()
end

-- ---- residual networks -----------------------------------------------------------------------

local depths = { [50] = { 3, 4, 6, 3 }, [101] = { 3, 4, 23, 3 }, [152] = { 3, 8, 36, 3 } }

local function bottleneck(b, x, id, inner, out, stride)
  local y = unit(b, x, id .. ".conv1", inner, 1)
  y = unit(b, y, id .. ".conv2", inner, 3, stride, 1)
  y = unit(b, y, id .. ".conv3", out, 1, 1, 0, false)
  if b.dims[x.dims[4]] ~= out then
    x = unit(b, x, id .. ".shortcut", out, 1, stride, 0, false)
  end
  return b:each("relu", id, b:each("add", id .. ".sum", y, x))
end

--- A residual network of bottlenecks: He et al. 2015, with the stride in the 3x3 convolution as
-- torchvision has it; `width` times as wide inside (Zagoruyko and Komodakis 2016).
-- @function convolutional.resnet
-- @tparam table q {depth = 50, 101 or 152, width (1), batch (1), size of an image's side (224),
-- classes (1000), name, dtype ("f32")}
-- @treturn table {format, name, kind, dims, tensors, ops}: a graph in long form
-- @units none: counts
-- @raise a depth that it does not have
-- @usage print(#require("graphs.convolutional").resnet{ depth = 50 }.ops)
function convolutional.resnet(q)
  local stages = depths[q.depth or 50]
  if not stages then
    error("resnet: depth: expected 50, 101 or 152, found " .. tostring(q.depth), 2)
  end
  local b = builder.new(q.name or "resnet-" .. (q.depth or 50), q.dtype)
  local x = unit(b, images(b, q.batch or 1, q.size or 224), "stem", 64, 7, 2, 3)
  x = b:pool { x, "stem.pool", by = "max", kernel = 3, stride = 2, pad = 1 }
  for stage, blocks in ipairs(stages) do
    local out = 256 << (stage - 1)
    for i = 1, blocks do
      local id = string.format("stage%d.block%d", stage, i)
      local stride = i == 1 and stage > 1 and 2 or 1
      x = bottleneck(b, x, id, out // 4 * (q.width or 1), out, stride)
    end
  end
  return classifier(b, b:mean("pool", x), q.classes or 1000)
end

-- ---- VGG -------------------------------------------------------------------------------------

--- VGG-19: Simonyan and Zisserman 2014, configuration E.
-- @function convolutional.vgg19
-- @tparam table q {batch (1), size (224), classes (1000), dtype ("f32")}
-- @treturn table {format, name, kind, dims, tensors, ops}: a graph in long form
-- @units none: counts
-- @raise none
-- @usage print(#require("graphs.convolutional").vgg19{}.ops)
function convolutional.vgg19(q)
  local b = builder.new("vgg-19", q.dtype)
  local x = images(b, q.batch or 1, q.size or 224)
  for stage, row in ipairs { { 2, 64 }, { 2, 128 }, { 4, 256 }, { 4, 512 }, { 4, 512 } } do
    for i = 1, row[1] do
      local id = string.format("conv%d_%d", stage, i)
      x = b:conv { x, id, out = row[2], kernel = 3, pad = 1, bias = true }
      x = b:each("relu", id .. ".relu", x)
    end
    x = b:pool { x, "pool" .. stage, by = "max", kernel = 2, stride = 2 }
  end
  local hidden = b:dim("features", 4096)
  x = b:linear { x, "fc1", from = { x.dims[2], x.dims[3], x.dims[4] }, to = hidden, bias = true }
  x = b:linear { b:each("relu", "fc1.relu", x), "fc2", to = hidden, bias = true }
  return classifier(b, b:each("relu", "fc2.relu", x), q.classes or 1000)
end

-- ---- Inception -------------------------------------------------------------------------------

--- A branch: rows of {channels, kernel, stride, pad}.
local function branch(b, x, id, rows)
  for i, row in ipairs(rows) do
    x = unit(b, x, id .. "." .. i, row[1], row[2], row[3], row[4])
  end
  return x
end

local function joined(b, id, list)
  local sum = 0
  for _, x in ipairs(list) do
    sum = sum + b.dims[x.dims[4]]
  end
  return b:concat(id, list, 4, b:dim("c" .. sum, sum))
end

local function averaged(b, x, id)
  return b:pool { x, id, by = "mean", kernel = 3, stride = 1, pad = 1 }
end

local function halved(b, x, id)
  return b:pool { x, id, by = "max", kernel = 3, stride = 2 }
end

local function block_a(b, x, id, pooled)
  return joined(b, id, { branch(b, x, id .. ".a", { { 64, 1 } }),
    branch(b, x, id .. ".b", { { 48, 1 }, { 64, 5, 1, 2 } }),
    branch(b, x, id .. ".c", { { 64, 1 }, { 96, 3, 1, 1 }, { 96, 3, 1, 1 } }),
    branch(b, averaged(b, x, id .. ".pool"), id .. ".d", { { pooled, 1 } }) })
end

local function block_c(b, x, id, c)
  local wide, high, pw, ph = { 1, 7 }, { 7, 1 }, { 0, 3 }, { 3, 0 }
  return joined(b, id, { branch(b, x, id .. ".a", { { 192, 1 } }),
    branch(b, x, id .. ".b", { { c, 1 }, { c, wide, 1, pw }, { 192, high, 1, ph } }),
    branch(b, x, id .. ".c", { { c, 1 }, { c, high, 1, ph }, { c, wide, 1, pw },
      { c, high, 1, ph }, { 192, wide, 1, pw } }),
    branch(b, averaged(b, x, id .. ".pool"), id .. ".d", { { 192, 1 } }) })
end

local function block_e(b, x, id)
  local y = branch(b, x, id .. ".b", { { 384, 1 } })
  local z = branch(b, x, id .. ".c", { { 448, 1 }, { 384, 3, 1, 1 } })
  local function both(from, name)
    return branch(b, from, name .. ".wide", { { 384, { 1, 3 }, 1, { 0, 1 } } }),
      branch(b, from, name .. ".high", { { 384, { 3, 1 }, 1, { 1, 0 } } })
  end
  local y1, y2 = both(y, id .. ".b")
  local z1, z2 = both(z, id .. ".c")
  return joined(b, id, { branch(b, x, id .. ".a", { { 320, 1 } }), y1, y2, z1, z2,
    branch(b, averaged(b, x, id .. ".pool"), id .. ".d", { { 192, 1 } }) })
end

--- The second classifier of training, whose loss is added.
local function auxiliary(b, x, classes)
  x = b:pool { x, "aux.pool", by = "mean", kernel = 5, stride = 3 }
  x = branch(b, x, "aux", { { 128, 1 }, { 768, 5 } })
  x = b:linear { b:mean("aux.mean", x), "aux.classifier", to = classes, bias = true }
  return x
end

--- Inception-v3: Szegedy et al. 2015, with the shapes of torchvision.
-- @function convolutional.inception_v3
-- @tparam table q {batch (1), size (299), classes (1000), aux = with the second classifier (true),
-- dtype ("f32")}
-- @treturn table {format, name, kind, dims, tensors, ops}: a graph in long form
-- @units none: counts
-- @raise none
-- @usage print(#require("graphs.convolutional").inception_v3{}.ops)
function convolutional.inception_v3(q)
  local b = builder.new("inception-v3", q.dtype)
  local x = images(b, q.batch or 1, q.size or 299)
  x = branch(b, x, "stem", { { 32, 3, 2 }, { 32, 3 }, { 64, 3, 1, 1 } })
  x = branch(b, halved(b, x, "stem.pool1"), "stem2", { { 80, 1 }, { 192, 3 } })
  x = halved(b, x, "stem.pool2")
  for i, pooled in ipairs { 32, 64, 64 } do
    x = block_a(b, x, "a" .. i, pooled)
  end
  x = joined(b, "b", { branch(b, x, "b.a", { { 384, 3, 2 } }),
    branch(b, x, "b.b", { { 64, 1 }, { 96, 3, 1, 1 }, { 96, 3, 2 } }), halved(b, x, "b.pool") })
  for i, c in ipairs { 128, 160, 160, 192 } do
    x = block_c(b, x, "c" .. i, c)
  end
  local classes = b:dim("classes", q.classes or 1000)
  local aux = q.aux ~= false and auxiliary(b, x, classes)
  local wide, high = { 1, 7 }, { 7, 1 }
  x = joined(b, "d", { branch(b, x, "d.a", { { 192, 1 }, { 320, 3, 2 } }),
    branch(b, x, "d.b", { { 192, 1 }, { 192, wide, 1, { 0, 3 } }, { 192, high, 1, { 3, 0 } },
      { 192, 3, 2 } }), halved(b, x, "d.pool") })
  x = block_e(b, block_e(b, x, "e1"), "e2")
  x = b:linear { b:mean("pool", x), "classifier", to = classes, bias = true }
  if aux then
    local weighted = b:each("scale", "aux.weighted", aux) -- 0.4 of its loss: here of its logits
    x = b:each("add", "both", x, weighted)
  end
  b:loss(x)
  return b:finish()
end

-- ---- U-Net -----------------------------------------------------------------------------------

local function twice(b, x, id, out)
  for i = 1, 2 do
    x = b:conv { x, id .. "." .. i, out = out, kernel = 3, bias = true }
    x = b:each("relu", id .. "." .. i .. ".relu", x)
  end
  return x
end

--- Twice as high and wide by a transposed convolution of 2 x 2: every pixel becomes four.
local function up(b, x, id, out)
  local batch, h, w = x.dims[1], b.dims[x.dims[2]], b.dims[x.dims[3]]
  local kh, kw, c = b:dim("up_h", 2), b:dim("up_w", 2), b:dim("c" .. out, out)
  local weight = b:weight(id .. ".weight", { x.dims[4], kh, kw, c })
  x = b:op("einsum", id .. ".product", { x, weight }, { batch, x.dims[2], kh, x.dims[3], kw, c })
  local h2, w2 = b:dim("h" .. 2 * h, 2 * h), b:dim("w" .. 2 * w, 2 * w)
  x = b:op("reshape", id .. ".pixels", { x }, { batch, h2, w2, c },
    { groups = { [h2] = { x.dims[2], kh }, [w2] = { x.dims[4], kw } } })
  return b:biased(id, x, c)
end

--- The middle of x, as large as `like`.
local function cropped(b, x, id, like)
  local range = {}
  for i = 2, 3 do
    local from, to = b.dims[x.dims[i]], b.dims[like.dims[i]]
    range[x.dims[i]] = { (from - to) // 2, (from - to) // 2 + to }
  end
  return b:op("slice", id, { x }, { x.dims[1], like.dims[2], like.dims[3], x.dims[4] },
    { range = range })
end

--- U-Net: Ronneberger, Fischer and Brox 2015, figure 1: convolutions without padding.
-- @function convolutional.unet
-- @tparam table q {batch (1), size (572: of which 16 · n + 188 are possible), classes (2), channels
-- of an image (1), dtype ("f32")}
-- @treturn table {format, name, kind, dims, tensors, ops}: a graph in long form
-- @units none: counts
-- @raise none
-- @usage print(#require("graphs.convolutional").unet{}.ops)
function convolutional.unet(q)
  local b = builder.new("u-net", q.dtype)
  local size, channels = q.size or 572, q.channels or 1
  local x = b:input("images", { b:dim("batch", q.batch or 1), b:dim("h" .. size, size),
    b:dim("w" .. size, size), b:dim("c" .. channels, channels) })
  local kept = {}
  for level = 1, 5 do
    x = twice(b, x, "down" .. level, 32 << level)
    kept[level] = x
    if level < 5 then
      x = b:pool { x, "down" .. level .. ".pool", by = "max", kernel = 2, stride = 2 }
    end
  end
  for level = 4, 1, -1 do
    local id, c = "up" .. level, 32 << level
    x = up(b, x, id .. ".grow", c)
    local old = cropped(b, kept[level], id .. ".crop", x)
    x = twice(b, joined(b, id .. ".join", { old, x }), id, c)
  end
  x = b:linear { x, "classifier", to = b:dim("classes", q.classes or 2), bias = true }
  b:loss(x)
  return b:finish()
end

return convolutional
