-- Self-tests of virtual workers.
local virtual_workers = require "virtual_workers"

--- Compares lists as text.
local function equal(t, name, got, want, source)
  t.equal(name, type(got) == "table" and table.concat(got, " ") or got, want, source)
end

--- Workers of unequal nodes.
local function check_workers(t)
  local nodes = {}
  for i, kind in ipairs { "a", "b", "a", "b" } do
    nodes[i] = { kind = kind, flops_per_s = 3 - i % 2, ids = { 2 * i - 1, 2 * i } }
  end
  local choices = virtual_workers.equal(nodes)
  equal(t, "two blocks, then one", choices[1].n .. " " .. choices[2].n, "4 2")
  equal(t, "as many as are said", #choices[1].make() .. " " .. #choices[2].make(), "4 2")
  equal(t, "a part of every node", virtual_workers.signature(
    virtual_workers.gpus(choices[2].make()[1])), "a a b b")
  local larger = virtual_workers.larger(nodes)
  equal(t, "two GPUs of every node", #larger .. " " .. larger[1].n .. " "
      .. #virtual_workers.gpus(larger[1].make()[1]),
    "1 1 8")
  equal(t, "staleness", virtual_workers.global_staleness(4, 4) .. " "
      .. virtual_workers.first_waiting(4, 4, 1),
    "22 27")
  equal(t, "groups of equal workers", #virtual_workers.groups(choices[1].make()), 1)
  local odd = virtual_workers.hybrid({ nodes[1], nodes[2], nodes[3] })[1]
  equal(t, "an odd node is a worker of its own", odd.n .. " " .. #odd.make(), "3 3")
end

return function(t)
  check_workers(t)
end
