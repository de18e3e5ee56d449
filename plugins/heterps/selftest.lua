-- Self-tests of the provisioning of device types.
local provisioning = require "provisioning"
local search = require "search"

--- 4 layers of 2 s on one type whose devices hold `most` layers, a unit a second: devices per
-- stage, and the cost.
local function held(most)
  local q = { types = { { price = 3 } }, compute = { { 2, 2, 2, 2 } },
    exchange = { { 0, 0, 0, 0 } }, alpha = 1,
    beta = 1, batch = 1, rate = 1, examples = 1 }
  function q.short(stages)
    for _, s in ipairs(stages) do
      if s.last - s.first + 1 > most then
        return s
      end
    end
  end
  local stages, cost = provisioning.stages(q, { 1, 1, 1, 1 })
  if not stages then
    return "none"
  end
  for i, s in ipairs(stages) do
    stages[i] = s.k
  end
  return ("%s: %g"):format(table.concat(stages, " "), cost)
end

local function check_provisioning(t)
  t.equal("all layers on a device", held(4), "8: 24", "by hand: 8 s in 1 s, 8 devices of 3")
  t.equal("half of them", held(2), "4 4: 24", "by hand")
  t.equal("three: cut evenly", held(3), "4 4: 24", "by hand")
  t.equal("one", held(1), "2 2 2 2: 24", "by hand")
  t.equal("not one", held(0), "none", "by hand")
  local random, right, found = search.generator(9), true, 0
  for _ = 1, 60 do
    local q = { types = {}, compute = {}, exchange = {}, choices = {}, alpha = 0.9, beta = 0.8,
      batch = 1, rate = 1,
      examples = 1 }
    for l = 1, 4 do
      q.choices[l] = 2
    end
    for k = 1, 2 do
      q.types[k], q.compute[k], q.exchange[k] = { price = random(9), available = 20 + random(200) },
        {}, {}
      for l = 1, 4 do
        q.compute[k][l], q.exchange[k][l] = random(6), random()
      end
    end
    local _, least = provisioning.enumerate(q)
    local _, single = provisioning.other(q, { search = "single" })
    local _, greedy = provisioning.other(q, { search = "greedy", rounds = 100 })
    local _, genetic = provisioning.other(q, { search = "genetic", rounds = 100, seed = 1 })
    found = found + (least and 1 or 0)
    for _, cost in ipairs { single or math.huge, greedy or math.huge, genetic or math.huge } do
      right = right and cost >= (least or math.huge) - 1e-9
    end
    right = right and (greedy or math.huge) <= (single or math.huge)
      and (genetic or math.huge) <= (single or math.huge)
  end
  t.ok("60 random instances: no search beats the enumeration, none is worse than one type for all",
    right, "property")
  t.ok("some of them can be reached", found > 5, "property")
end

return function(t)
  check_provisioning(t)
end
