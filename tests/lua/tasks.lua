-- Tests of hv.sim.tasks from Lua. `hetviz selftest tests/lua/tasks.lua`.

local function equal(name, got, want)
  if type(got) == "table" then
    got = table.concat(got, " ")
  end
  if got ~= want then
    error(("%s: got %s, expected %s"):format(name, tostring(got), tostring(want)), 2)
  end
end

--- The call must raise an error that contains the text.
local function refuses(name, text, what)
  local ok, message = pcall(hv.sim.tasks, what)
  equal(name .. " is refused", ok, false)
  if not tostring(message):find(text, 1, true) then
    error(("%s: %s does not say '%s'"):format(name, tostring(message), text), 2)
  end
end

local function check_orders()
  local r = hv.sim.tasks { resources = { "gpu", "link" }, tasks = {
    { resource = "gpu", time_s = 2 },
    { resource = "link", time_s = 3, after = { 1 } },
    { resource = "gpu", time_s = 1, after = { 1 } },
    { resource = { "link", "gpu" }, time_s = 4, after = { 2, 3 } },
  } }
  equal("makespan", r.makespan, 9.0)
  equal("span", r.spans[2], "2.0 5.0")
  equal("held together", r.spans[4], "5.0 9.0")
  equal("busy", r.busy, "7.0 7.0")
  equal("critical", r.critical, "1 2 4")
  r = hv.sim.tasks { resources = 1, tasks = {
    { resource = 1, time_s = 1 }, { resource = 1, time_s = 1, priority = 1 } } }
  equal("priority", r.spans[1], "1.0 2.0")
  equal("critical by the resource", r.critical, "2 1")
  equal("nothing", hv.sim.tasks { resources = 1, tasks = {} }.makespan, 0.0)
end

local function check_limits()
  local r = hv.sim.tasks { resources = 2, caps = { memory_bytes = { 5 } }, tasks = {
    { resource = 1, time_s = 1, memory_bytes = 4 },
    { resource = 1, time_s = 1, memory_bytes = 3 },
    { resource = 1, time_s = 2, memory_bytes = -4, after = { 4 }, priority = -1 },
    { resource = 2, time_s = 5, after = { 1 } },
  } }
  equal("waits for memory", r.spans[2], "8.0 9.0")
  equal("peak", r.peak, "4.0 0.0")
  equal("critical through memory", r.critical, "1 4 3 2")
  r = hv.sim.tasks { resources = 2, caps = { credits = 3 }, tasks = {
    { resource = 1, time_s = 2, credits = 2 }, { resource = 2, time_s = 1, credits = 2 } } }
  equal("waits for credits", r.spans[2], "2.0 3.0")
  r = hv.sim.tasks { resources = { "a", "b" }, tasks = {
    { resource = "a", time_s = 10, chunk_s = 2 },
    { resource = "b", time_s = 3 },
    { resource = "a", time_s = 1, priority = 5, after = { 2 } },
  } }
  equal("interrupted between chunks", r.spans[3], "4.0 5.0")
  equal("goes on after it", r.spans[1], "0.0 11.0")
  equal("interruptions", r.interruptions, 1)
end

local function check_refusals()
  local one = { resource = 1, time_s = 1 }
  refuses("a key", "did you mean 'tasks'", { task = {}, resources = 1 })
  refuses("a key of a task", "did you mean 'time_s'",
    { resources = 1, tasks = { { resource = 1, times = 1 } } })
  refuses("no time", "time_s: expected a number", { resources = 1, tasks = { { resource = 1 } } })
  refuses("no list", "tasks: expected a list", { resources = 1 })
  refuses("no table", "a list of tables", { resources = 1, tasks = { 7 } })
  refuses("no resources", "resources: expected", { tasks = { one } })
  refuses("a resource too many", "resource: expected",
    { resources = 1, tasks = { { resource = 2, time_s = 1 } } })
  refuses("a name nobody has", "resource: expected",
    { resources = { "a" }, tasks = { { resource = "b", time_s = 1 } } })
  refuses("a resource twice", "task 1: holds a resource twice",
    { resources = 1, tasks = { { resource = { 1, 1 }, time_s = 1 } } })
  refuses("two of a name", "a occurs twice", { resources = { "a", "a" }, tasks = {} })
  refuses("a task that is not there", "after: expected numbers of tasks",
    { resources = 1, tasks = { { resource = 1, time_s = 1, after = { 3 } } } })
  refuses("a circle", "task 1 waits for task 2", { resources = 1, tasks = {
    { resource = 1, time_s = 1, after = { 2 } }, { resource = 1, time_s = 1, after = { 1 } } } })
  refuses("too little memory", "no task can continue", { resources = 1, caps = { memory_bytes = 1 },
    tasks = { { resource = 1, time_s = 1, memory_bytes = 2 } } })
  refuses("memory of nobody", "resource: expected",
    { resources = 1, caps = { memory_bytes = { 1, 2 } }, tasks = {} })
end

return {
  api = 1, id = "tasks", title = "Tests of task graphs", kind = "test",
  system = "none", reference = "none", summary = "Checks hv.sim.tasks from Lua.",
  plan = function()
    return nil, "this file only tests hv.sim.tasks"
  end,
  selftest = function(t)
    check_orders()
    t.ok("orders done by hand", true)
    check_limits()
    t.ok("memory, credits and chunks", true)
    check_refusals()
    t.ok("wrong arguments are named", true)
  end,
}
