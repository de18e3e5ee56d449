-- Tests of hv.sim.workers from Lua. `hetviz selftest tests/lua/staleness.lua`.

local function equal(name, got, want)
  if type(got) == "table" then
    got = table.concat(got, " ")
  end
  if got ~= want then
    error(("%s: got %s, expected %s"):format(name, tostring(got), tostring(want)), 2)
  end
end

local function refuses(name, text, what)
  local ok, message = pcall(hv.sim.workers, what)
  equal(name .. " is refused", ok, false)
  if not tostring(message):find(text, 1, true) then
    error(("%s: %s does not say '%s'"):format(name, tostring(message), text), 2)
  end
end

local function check_server()
  local w = { period_s = { 2, 3 }, kind = "wsp", staleness = 0, horizon_s = 600 }
  local r = hv.sim.workers(w)
  equal("in step", r.clocks, "200 200")
  equal("the fast one waits a third", ("%.6f"):format(r.wait[1]), "0.333333")
  w.staleness = nil
  equal("nobody waits", hv.sim.workers(w).clocks, "300 200")
  w.staleness, w.hop_s = 0, 1
  equal("push and pull", ("%.6f"):format(hv.sim.workers(w).rates[2]), "0.200000")
  w.kind = nil
  equal("a server is the default", hv.sim.workers(w).clocks[2], 120)
end

local function check_peers()
  local r = hv.sim.workers { period_s = { 1, 2, 3, 4 }, kind = "partial_reduce", group = 4 }
  equal("groups of all", r.mixing[2], "0.25 0.25 0.25 0.25")
  r = hv.sim.workers { period_s = { 1, 1, 1 }, kind = "gossip",
    weights = { { 0, 1, 0 }, { 1, 0, 0 }, { 1, 0, 0 } } }
  equal("never meet", r.mixing[2][3], 0.0)
end

local function check_refusals()
  refuses("no worker", "period_s", { period_s = {} })
  refuses("a word", "kind", { period_s = { 1 }, kind = "wps" })
  refuses("a key", "stale", { period_s = { 1 }, stale = 1 })
  refuses("hops", "one per worker", { period_s = { 1, 1 }, hop_s = { 1 } })
  refuses("weights", "weights", { period_s = { 1, 1 }, kind = "gossip", weights = { { 0, 1 } } })
  refuses("no time", "above 0", { period_s = { 0 } })
  refuses("too long", "shorter horizon", { period_s = { 1e-9 }, horizon_s = 1 })
end

return {
  api = 1, id = "workers", title = "Tests of workers", kind = "test",
  system = "none", reference = "none", summary = "Checks hv.sim.workers from Lua.",
  plan = function()
    return nil, "this file only tests hv.sim.workers"
  end,
  selftest = function(t)
    check_server()
    t.ok("servers and waves by hand", true)
    check_peers()
    t.ok("groups and gossip", true)
    check_refusals()
    t.ok("wrong arguments are named", true)
  end,
}
