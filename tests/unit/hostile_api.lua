-- Calls functions of the plugin API with spoilt arguments. test_scripting_hostile.c puts this text
-- in front of plan(ctx), which returns hostile(ctx, examples, seed, rounds): the examples of the
-- reference are run and the arguments of every call that they make recorded; then calls are made
-- again with arguments in which something is wrong. Any answer and any error will do.

local natural = { hv = hv, require = require }
local inside = {} -- stand-in of a handle → the handle
local outside = {} -- handle → its stand-in
local handles = {} -- all of them
local calls = {} -- {name, f, args}
local recording = true

-- ---- recording -------------------------------------------------------------------------------

local function holds(v, type_wanted, seen)
  if type(v) == type_wanted or (type_wanted == "stand-in" and inside[v]) then return true end
  if type(v) ~= "table" or seen[v] then return false end
  seen[v] = true
  for k, x in pairs(v) do
    if holds(k, type_wanted, seen) or holds(x, type_wanted, seen) then return true end
  end
  return false
end

local function mapped(v, change, seen)
  local new = change(v)
  if new ~= nil then return new end
  if type(v) ~= "table" then return v end
  if seen[v] then return seen[v] end
  local out = {}
  seen[v] = out
  for k, x in pairs(v) do out[mapped(k, change, seen)] = mapped(x, change, seen) end
  return setmetatable(out, getmetatable(v))
end

local function copy(v) return mapped(v, function(x) return inside[x] and x or nil end, {}) end

local function to_handles(v)
  if not holds(v, "stand-in", {}) then return v end
  return mapped(v, function(x) return x ~= nil and inside[x] or nil end, {})
end

local to_stand_ins

local function recorded(name, f)
  return function(...)
    local args = table.pack(...)
    for i = 1, args.n do args[i] = to_handles(args[i]) end
    if recording and #calls < 2000 then
      local kept = { n = args.n }
      for i = 1, args.n do kept[i] = copy(args[i]) end
      calls[#calls + 1] = { name = name, f = f, args = kept }
    end
    local results = table.pack(f(table.unpack(args, 1, args.n)))
    for i = 1, results.n do results[i] = to_stand_ins(results[i]) end
    return table.unpack(results, 1, results.n)
  end
end

local function stand_in(u)
  if outside[u] then return outside[u] end
  local kind = tostring(u):match("([%w_]+)$") or "?"
  local p = setmetatable({}, {
    __index = function(_, key)
      local v = u[key]
      if type(v) ~= "function" then return to_stand_ins(v) end
      return recorded(kind .. ":" .. tostring(key), v)
    end,
    __len = function() return #u end,
    __eq = function(a, b) return inside[a] == inside[b] end,
    __tostring = function() return tostring(u) end,
  })
  inside[p], outside[u] = u, p
  handles[#handles + 1] = u
  return p
end

to_stand_ins = function(v)
  if not holds(v, "userdata", {}) then return v end
  return mapped(v, function(x) return type(x) == "userdata" and stand_in(x) or nil end, {})
end

local function recorded_table(name, t)
  local out = {}
  for k, v in pairs(t) do
    if type(v) == "function" then
      out[k] = recorded(name .. "." .. tostring(k), v)
    elseif type(v) == "table" and name:sub(1, 2) == "hv" then
      out[k] = recorded_table(name .. "." .. tostring(k), v)
    else
      out[k] = v
    end
  end
  return out
end

-- ---- drawing ---------------------------------------------------------------------------------

local state = 1
local function draw(n) -- a whole number from 1 to n
  state = (state * 6364136223846793005 + 1442695040888963407) & math.maxinteger
  return (state >> 20) % n + 1
end
local function one_of(list) return list[draw(#list)] end

local numbers = {
  0, -0.0, 1, -1, 2, 3, 7, 0.5, -0.5, 1.5, 1e-300, 5e-324, 1e9, 1e15, 1e308, -1e308, 1 / 0, -1 / 0,
  0 / 0, 1 << 16, 1 << 20, 1 << 24, 1 << 31, (1 << 31) - 1, -(1 << 31), 1 << 32, (1 << 32) - 1,
  1 << 40, 1 << 53, (1 << 53) + 1, 1 << 62, math.maxinteger, math.mininteger, 255, 256, 65535, 4096,
}
local texts = {
  "", "x", "0", "1e3", " ", "a[0].0", "a[0].*", "*", "a[99].0", "h[0].7", "1f1b", "<=", "max",
  "\0\255", "%s%n", "ü", ("x"):rep(70), ("x"):rep(1 << 16), "[", "{F0.0|B0.0}", "F0.0", "-1",
}

-- a table whose answers change from one look to the next
local function liar(t)
  local looks = 0
  local answers = { 1, -1, "x", t, 0 / 0, false, 1 << 40, {}, 2 }
  return setmetatable(type(t) == "table" and t or {}, {
    __index = function()
      looks = looks + 1
      return answers[looks % 10 + 1]
    end,
    __len = function()
      looks = looks + 1
      return one_of { 0, 1, 2, 3, 100, -1, 1 << 40, looks }
    end,
    __eq = function() return looks % 2 == 0 end,
    __lt = function() return looks % 3 == 0 end,
    __call = function() return looks end,
    __newindex = function() end,
  })
end

local hostile_value

-- functions for solvers to call: they fail, answer anything, call again, spoil the arguments
local function hostile_function(args, again)
  local calls_left = 3
  return one_of {
    function() end,
    function() return 1 end,
    function(x) return type(x) == "number" and x or 1 end,
    function() return 0 / 0 end,
    function() return -1 end,
    function() return "x" end,
    function() return {} end,
    function() error("no") end,
    function() error({}) end,
    function() return hostile_value(args, again) end,
    function() coroutine.yield(1) return 1 end,
    function()
      for k, v in pairs(args) do
        if type(v) == "table" then for i in pairs(v) do v[i] = nil end end
        if draw(2) == 1 then args[k] = nil end
      end
      return 1
    end,
    function()
      calls_left = calls_left - 1
      if calls_left > 0 then pcall(again) end
      return 1
    end,
  }
end

hostile_value = function(args, again)
  local which = draw(20)
  if which <= 7 then return one_of(numbers) end
  if which <= 9 then return one_of(texts) end
  if which == 10 then return nil end
  if which == 11 then return draw(2) == 1 end
  if which == 12 then return {} end
  if which == 13 then
    return one_of { { {} }, { {}, { 1 } }, { { 1, 2 }, { 1 } }, { {}, { 1, 2, 3 } } }
  end
  if which == 14 then
    local t = { 1, 2 }
    t[3] = t
    return t
  end
  if which == 15 then return liar({ 1, 2, 3 }) end
  if which == 16 then return { [1] = 1, [1 << 40] = 2, [-1] = 3, [0.5] = 4, x = 5 } end
  if which == 17 then return hostile_function(args, again) end
  if which == 18 and #handles > 0 then return one_of(handles) end
  if which == 19 then
    local t = {}
    for i = 1, 10 ^ draw(4) do t[i] = i end
    return t
  end
  local deep = {}
  for _ = 1, 300 do deep = { deep } end
  return deep
end

-- every place of the arguments: {table, key}
local function places_of(args)
  local places, seen = {}, {}
  local function walk(t, depth)
    if seen[t] then return end
    seen[t] = true
    for k, v in pairs(t) do
      if #places < 400 and not (depth == 0 and k == "n") then
        places[#places + 1] = { t, k }
        if type(v) == "table" and depth < 6 and not getmetatable(v) then walk(v, depth + 1) end
      end
    end
  end
  walk(args, 0)
  return places
end

-- a row of another width: none, fewer, more
local function spoil_row(rows)
  local row = rows[one_of { 1, 1, draw(rawlen(rows)) }]
  if type(row) ~= "table" or getmetatable(row) then return end
  local n = rawlen(row)
  local wanted = one_of { 0, 0, n - 1, n + 1, 2 * n, draw(50) }
  for i = n, wanted + 1, -1 do row[i] = nil end
  for i = n + 1, wanted do row[i] = row[n] or 1 end
end

local function spoil_table(t, args, again)
  local which = draw(8)
  local n = rawlen(t)
  if type(t[1]) == "table" and which <= 4 then
    spoil_row(t)
    return
  end
  if which == 1 then
    t[n] = nil
  elseif which == 2 then
    t[n + 1] = hostile_value(args, again)
  elseif which == 3 then
    for k in pairs(t) do t[k] = nil end
  elseif which == 4 then
    t[one_of { 0, -1, 1, n + 2, 1 << 40, "x", 0.5, true }] = hostile_value(args, again)
  elseif which == 5 then
    liar(t)
  elseif which == 6 then
    t[draw(n + 1)] = t
  elseif which == 7 and n > 0 then
    local last = t[n]
    for i = n + 1, n + draw(20) do t[i] = last end
  elseif n > 0 then
    table.remove(t, draw(n))
  end
end

local function spoil(args, again)
  local places = places_of(args)
  if #places == 0 or draw(12) == 1 then
    args.n = args.n + 1
    args[args.n] = hostile_value(args, again)
    return
  end
  local place = one_of(places)
  local t, k = place[1], place[2]
  local v, which = t[k], draw(6)
  if which == 1 then
    if t ~= args then t[k] = nil end
  elseif type(v) == "table" and not getmetatable(v) and which <= 4 then
    spoil_table(v, args, again)
  elseif type(v) == "number" and which <= 4 then
    t[k] = one_of { -v, v + 1, v - 1, v * 1000, v + 0.5, 0, v * 1e9, v // 2 }
  elseif which == 5 then
    local other = one_of(places)
    t[k], other[1][other[2]] = other[1][other[2]], t[k]
  else
    t[k] = hostile_value(args, again)
  end
end

local function attack(call)
  local args = { n = call.args.n }
  for i = 1, args.n do args[i] = copy(call.args[i]) end
  local function again() return call.f(table.unpack(args, 1, args.n)) end
  for _ = 1, draw(3) do spoil(args, again) end
  local how = draw(8)
  if how == 1 then
    coroutine.wrap(function() pcall(again) end)()
  elseif how == 2 then
    pcall(again)
    pcall(again)
  else
    pcall(again)
  end
end

-- examples: list of functions of ctx. Returns nil and the names of what was called.
local function hostile(ctx, examples, seed, rounds) -- luacheck: ignore
  state = seed
  local own = { cluster = stand_in(ctx.cluster), model = stand_in(ctx.model) }
  for i = 1, 5 do draw(i) end
  handles[#handles + 1] = natural.hv.opt.lp {}
  handles[#handles + 1] = natural.hv.strategy("uniform")
  hv = recorded_table("hv", natural.hv) -- luacheck: ignore
  require = function(name) -- luacheck: ignore
    local library = natural.require(name)
    if type(library) ~= "table" then return library end
    return recorded_table(name:match("[%w_]+$"), library)
  end
  local view = setmetatable(own, { __index = function(_, key) return to_stand_ins(ctx[key]) end })
  local called = {}
  for _, example in ipairs(examples) do
    local ok, why = pcall(example, view)
    if not ok then called[#called + 1] = "failed: " .. tostring(why) end
  end
  recording = false
  for _, call in ipairs(calls) do called[#called + 1] = call.name end
  if #calls == 0 then return nil, table.concat(called, "\n") end
  for _ = 1, rounds do attack(one_of(calls)) end
  return nil, table.concat(called, "\n")
end
