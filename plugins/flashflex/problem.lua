-- The problem that formula and pipeline_search take, for the devices of a run: figures come from
-- the cost model, formulas are the paper's.
local grids = require "grids"
local links = require "links"
local pipeline = require "pipeline"

local problem = {}

--- Gives p.bandwidth(a, b) in bytes per second between devices; all links between two machines are
-- equal.
local function add_bandwidth(ctx, p)
  local between = {} -- by two machines
  function p.bandwidth(a, b)
    local m, n = p.machine[a], p.machine[b]
    if m == n then
      return links.bandwidth(ctx, p.ids[a], p.ids[b])
    end
    between[m] = between[m] or {}
    if not between[m][n] then
      between[m][n] = links.bandwidth(ctx, p.ids[a], p.ids[b])
    end
    return between[m][n]
  end
end

--- Gives p.is_degree(n): can n devices split a layer?
local function add_degrees(ctx, p)
  local layers = ctx.model:layers()
  local known = {}
  function p.is_degree(n)
    if known[n] == nil then
      known[n] = grids.tp_fits(layers, n)
    end
    return known[n]
  end
end

--- Gives p.most_layers(stage, s, stages): how many layers fit into stage s.
local function add_memory(ctx, p, kind_number, setting)
  local function most_layers(stage, s, stages)
    local tables = pipeline.tables(ctx, {
      devices = { { kind = p.kinds[stage.devices[1]] } }, tp = #stage.devices,
      micro_batch = setting.micro_batch, recompute = setting.recompute,
    }, stages - s + 1)
    return pipeline.most(tables, s == 1 or s == stages)
  end
  local known = {}
  function p.most_layers(stage, s, stages)
    local size = kind_number[p.kinds[stage.devices[1]]] * 4096 + #stage.devices
    local key = (size * 1048576 + stages - s) * 2 + (s > 1 and 1 or 0)
    known[key] = known[key] or most_layers(stage, s, stages)
    return known[key]
  end
end

--- The problem on a list of rows of cluster:devices(), which it numbers by position; `setting` is
-- {micro_batch, recompute = "none" or "full"}.
function problem.of(ctx, devices, setting)
  local p = { flops_per_s = {}, memory_bytes = {}, machine = {}, ids = {}, kinds = {},
    hidden = ctx.model.hidden, layers = ctx.model.n_layers, tokens = ctx.job.sequence,
    vocab = ctx.model.vocab, batch = ctx.job.global_batch, micro_batch = setting.micro_batch,
    recompute = setting.recompute == "full" }
  local kind_number = {}
  local n_kinds = 0
  for i, device in ipairs(devices) do
    p.flops_per_s[i] = device.flops_per_s or 1
    p.memory_bytes[i] = device.memory_bytes
    p.machine[i] = device.node .. device.kind
    p.ids[i] = device.id
    p.kinds[i] = device.kind
    if not kind_number[device.kind] then
      kind_number[device.kind] = n_kinds
      n_kinds = n_kinds + 1
    end
  end
  add_bandwidth(ctx, p)
  add_degrees(ctx, p)
  add_memory(ctx, p, kind_number, setting)
  return p
end

return problem
