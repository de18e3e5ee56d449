-- Self-tests of the deal of a batch over devices and of runs of nodes.
local checks = require "checks"
local deal = require "deal"
local staged = require "staged"

--- Compares lists as text.
local function equal(t, name, got, want, source)
  t.equal(name, type(got) == "table" and table.concat(got, " ") or got, want, source)
end

--- Invariants on many small instances: the sum is kept and every item fits.
local function check_loads(t)
  local kept, fitting = true, true
  for a = 1, 4 do
    for b = 1, 4 do
      for cap = 4, 12 do
        local items = {
          { speed = a, fixed = 1, unit = 1, cap = cap },
          { speed = b, fixed = 1, unit = 1, cap = 9 },
          { speed = 1, fixed = 0, unit = 2, cap = 12 },
        }
        local ok, sum = deal.deal(items, 15, 0), 0
        for _, item in ipairs(items) do
          sum = sum + item.n
          fitting = fitting and (not ok or deal.use(item) <= 1 + 1e-9)
        end
        kept = kept and sum == 15
        local room = cap - 1 + 8 + 6
        fitting = fitting and (ok ~= nil) == (room >= 15)
      end
    end
  end
  equal(t, "shares add up to the batch", kept, true)
  equal(t, "feasible exactly where the memory is enough", fitting, true)
end

--- Runs of equal nodes, most memory first; their nodes dealt out to equal pipelines.
local function check_stages(t)
  local nodes = {}
  for i = 1, 6 do
    local big = i > 2
    nodes[i] = { kind = big and "big" or "fast", ids = { 2 * i - 1, 2 * i }, memory_bytes = big
        and 2 or 1,
      flops_per_s = 1 }
  end
  local runs = staged.runs(nodes)
  equal(t, "most memory first", runs[1][1].kind, "big")
  equal(t, "pipelines", staged.copies(runs), "1 2")
  local list = staged.deal(runs, 2, false)
  equal(t, "stages", #list, 3)
  equal(t, "both pipelines' nodes", list[1].ids, "5 6 9 10")
  equal(t, "merged", staged.deal(runs, 1, true)[1].ids, "5 6 7 8 9 10 11 12")
  equal(t, "heads", staged.heads({ 5, 6, 9, 10 }, 2), "5 9")
  equal(t, "join", staged.join { { ids = { 1 } }, { ids = { 3, 2 } } }, "1 3 2")
  equal(t, "ranks", #staged.ranks(nodes, 2), 6)
  equal(t, "no item, no reason", staged.shortage(nil, 1, nil, nodes[1]), nil)
end

--- The check of a deal sees what it looks for.
local function check_dealt(t)
  local items = { { fixed = 1, unit = 1, cap = 4, n = 3 }, { fixed = 5, unit = 1, cap = 4, n = 0 } }
  local whole, right = checks.dealt(items, 3, true)
  t.ok("dealt well", whole and right)
  t.ok("a unit is lost", not checks.dealt(items, 4, true))
  items[1].n = 4
  t.ok("too full, and said to fit", not checks.dealt(items, 4, true)
      and not select(2, checks.dealt(items, 4, true)))
  t.ok("rightly given up", select(2, checks.dealt(items, 4, nil)))
end

return function(t)
  check_dealt(t)
  check_loads(t)
  check_stages(t)
end
