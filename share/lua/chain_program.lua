-- Partitions of a chain as integer programs over hv.opt.lp, as papers state them; the core's exact
-- partition is the faster way to the same value.
local chain_program = {}

--- Variables y[s][l] for the first parts - 1 parts: 1 when layer l is in part s or before it.
local function add_variables(lp, p)
  local y = {}
  for s = 1, p.parts - 1 do
    y[s] = {}
    for l = 1, p.n do
      y[s][l] = lp:var { lower = 0, upper = 1, integer = true }
      if l > 1 then
        lp:row({ [y[s][l]] = 1, [y[s][l - 1]] = -1 }, "<=", 0)
      end
      if s > 1 then
        lp:row({ [y[s][l]] = 1, [y[s - 1][l]] = -1 }, ">=", 0)
      end
    end
  end
  return y
end

--- The sum of the weights of the layers of part s: terms, added to `terms`, and a constant.
local function sum_of_part(p, y, s, weights, terms)
  local constant = 0
  for l = 1, p.n do
    if s < p.parts then
      terms[y[s][l]] = (terms[y[s][l]] or 0) + weights[l]
    else
      constant = constant + weights[l]
    end
    if s > 1 then
      terms[y[s - 1][l]] = (terms[y[s - 1][l]] or 0) - weights[l]
    end
  end
  return terms, constant
end

--- Adds the times of the cuts on both sides of part s to the terms. The cut c lies behind layer l
-- where y[c] falls from 1 to 0.
local function add_cuts(p, y, s, terms)
  if not p.cut then
    return
  end
  for _, c in ipairs { s - 1, s } do
    if y[c] then
      for l = 1, p.n - 1 do
        terms[y[c][l]] = (terms[y[c][l]] or 0) + p.cut[c][l]
        terms[y[c][l + 1]] = (terms[y[c][l + 1]] or 0) - p.cut[c][l]
      end
    end
  end
end

--- The rows of part s: its time is at most `longest`, it has a layer, and it fits in memory.
local function add_part(lp, p, y, s, longest)
  local terms = { [longest] = -1 }
  add_cuts(p, y, s, terms)
  local _, constant = sum_of_part(p, y, s, p.load[s], terms)
  lp:row(terms, "<=", -constant)
  local ones = {}
  for l = 1, p.n do
    ones[l] = 1
  end
  terms, constant = sum_of_part(p, y, s, ones, {})
  lp:row(terms, ">=", 1 - constant)
  if p.memory then
    local shares = {} -- of the capacity, so that rows are alike in size
    for l = 1, p.n do
      shares[l] = p.memory[s][l] / p.capacity[s]
    end
    terms, constant = sum_of_part(p, y, s, shares, {})
    lp:row(terms, "<=", 1 - constant)
  end
end

--- First and last layer of each part in a solution.
local function ranges_of(p, y, values)
  local ranges = {}
  local first = 1
  for s = 1, p.parts do
    local last = p.n
    if s < p.parts then
      last = 0
      for l = 1, p.n do
        if values[y[s][l]] > 0.5 then
          last = last + 1
        end
      end
    end
    ranges[s] = { first, last }
    first = last + 1
  end
  return ranges
end

--- Cuts n layers into parts, in order, so that the longest part with its cuts is shortest: y[s][l]
-- = 1 when layer l is in part s or before it (HetPipe, Park et al., USENIX ATC 2020, section 7).
-- @function chain_program.solve
-- @tparam table p {n, parts, load = a list of n times per part, memory = a list of n bytes per
-- part, capacity = bytes per part, cut = a list of n - 1 times per cut, paid by both neighbours}
-- with the keys of hv.opt.partition
-- @tparam[opt] number gap share of the optimum within which to stop (0)
-- @treturn table {value, stages = list of {first, last}}; nil where none fits
-- @units any unit of time, bytes; layers from 1, inclusive
-- @raise as hv.opt.lp
-- @usage local r = require("chain_program").solve {
--   n = 3, parts = 2, load = { { 1, 1, 1 }, { 2, 2, 2 } } }
-- assert(math.abs(r.value - 2) < 1e-6 and r.stages[1][2] == 2)
function chain_program.solve(p, gap)
  local lp = hv.opt.lp { sense = "min" }
  local longest = lp:var { lower = 0 }
  local y = add_variables(lp, p)
  for s = 1, p.parts do
    add_part(lp, p, y, s, longest)
  end
  lp:objective { [longest] = 1 }
  local found = lp:solve { gap = gap, proof = false }
  if not found.x then
    return nil
  end
  return { value = found.objective, stages = ranges_of(p, y, found.x) }
end

return chain_program
