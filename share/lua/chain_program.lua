-- Partitions of a chain as integer programs over hv.opt.lp, as papers state them; the core's exact
-- partition is the faster way to the same value.
local chain_program = {}

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
-- @usage local r = require("chain_program").solve { n = 3, parts = 2, load = { { 1, 1, 1 }, { 2, 2, 2 } } }
-- assert(math.abs(r.value - 2) < 1e-6 and r.stages[1][2] == 2)
function chain_program.solve(p, gap)
  local lp, y = hv.opt.lp { sense = "min" }, {}
  local longest = lp:var { lower = 0 }
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
  for s = 1, p.parts do
    -- Σ of what weighs so much per layer of part s, less a constant, as terms
    local function terms_of(weight, more)
      local terms, constant = more or {}, 0
      for l = 1, p.n do
        if s < p.parts then
          terms[y[s][l]] = (terms[y[s][l]] or 0) + weight[l] else
          constant = constant + weight[l]
        end
        if s > 1 then
          terms[y[s - 1][l]] = (terms[y[s - 1][l]] or 0) - weight[l]
        end
      end
      return terms, constant
    end
    local time, ones = { [longest] = -1 }, {}
    for l = 1, p.n do
      ones[l] = 1
    end
    for _, c in ipairs { s - 1, s } do -- the cut behind layer l is there where y falls from 1 to 0
      for l = 1, p.cut and y[c] and p.n - 1 or 0 do
        time[y[c][l]] = (time[y[c][l]] or 0) + p.cut[c][l]
        time[y[c][l + 1]] = (time[y[c][l + 1]] or 0) - p.cut[c][l]
      end
    end
    local terms, constant = terms_of(p.load[s], time)
    lp:row(terms, "<=", -constant)
    terms, constant = terms_of(ones)
    lp:row(terms, ">=", 1 - constant)
    if p.memory then
      local share = {} -- of the capacity, so that rows are alike in size
      for l = 1, p.n do
        share[l] = p.memory[s][l] / p.capacity[s]
      end
      terms, constant = terms_of(share)
      lp:row(terms, "<=", 1 - constant)
    end
  end
  lp:objective { [longest] = 1 }
  local r, stages, from = lp:solve { gap = gap }, {}, 1
  if not r.x then
    return nil
  end
  for s = 1, p.parts do
    local last = s == p.parts and p.n or 0
    for l = 1, s < p.parts and p.n or 0 do
      last = last + (r.x[y[s][l]] > 0.5 and 1 or 0)
    end
    stages[s], from = { from, last }, last + 1
  end
  return { value = r.objective, stages = stages }
end

return chain_program
