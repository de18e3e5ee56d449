--- What every row of a family keeps: its own search on a small world gives a plan that breaks no
-- rule, a claim with numbers, and every knob that the row says it `sets`.
-- Library: self-tests of families; its chunks are no plugins.
local rows = {}

--- The values of a path in a plan: of the plan, or of its stages and the parts of a list in them.
local function values_at(made, path)
  local found = {}
  local function walk(value, rest)
    local key, behind = rest:match "^([^.]+)%.?(.*)$"
    if not key then
      found[#found + 1] = value == nil and "nothing" or value
    elseif type(value) == "table" and #value > 0 then
      for _, member in ipairs(value) do
        walk(member, rest)
      end
    elseif type(value) == "table" then
      walk(value[key], behind)
    elseif key == "stage" and type(value) == "number" then -- ZeRO's stage alone
      found[#found + 1] = value
    else
      found[#found + 1] = "nothing"
    end
  end
  if made[path:match "^[^.]+"] ~= nil then
    walk(made, path)
  else
    for _, replica in ipairs(made.replicas) do
      walk(replica.stages, path)
    end
  end
  return found
end

--- Checks that a plan has what the row says it sets.
function rows.sets(t, row, made)
  for path, expected in pairs(row.sets or {}) do
    for i, value in ipairs(values_at(made, path)) do
      t.equal(("sets %s, stage %d"):format(path, i - 1), tostring(value), tostring(expected),
        "its row")
    end
  end
end

--- Is it a number, and not infinite?
local function is_finite(value)
  return type(value) == "number" and value == value and math.abs(value) < math.huge
end

--- Checks a claim: its time or memory is finite and above 0; where it has neither, its terms are
-- finite and none is below 0.
function rows.claim(t, claim)
  local figure = claim.iteration_s or claim.peak_memory_GiB
  if figure then
    t.ok(("the claim is finite and above 0: %s"):format(tostring(figure)),
      is_finite(figure) and figure > 0, "its plan")
  end
  local n = 0
  for name, value in pairs(claim.terms or {}) do
    n = n + 1
    t.ok(("term %s is finite, not below 0: %s"):format(name, tostring(value)),
      is_finite(value) and (figure ~= nil or value >= 0), "its plan")
  end
  t.ok("the claim has a figure", figure ~= nil or n > 0, "its plan")
end

--- Runs the search of the row under test on inputs of t.with, and checks its plan and its claim.
function rows.search(t, inputs)
  t.with(inputs, function(ctx, row)
    local made, why = row.plan(ctx)
    t.ok("a plan of its own search: " .. (why or "found"), made ~= nil, "small world")
    if not made then
      return
    end
    rows.sets(t, row, made)
    local verdict = assert(hv.plan.new(made):eval())
    t.equal("rules that its plan breaks", #verdict.violations, 0, "the judge")
    t.equal("knobs of its plan that are approximated", #(verdict.approximated or {}), 0,
      "the judge")
    if row.claim then
      rows.claim(t, row.claim(hv.plan.new(made), ctx))
    end
  end)
end

return rows
