-- Tests of share/lua/links. `hetviz selftest tests/lua/test_links.lua`.
local links = require "links"

-- One group of 600 nodes of two devices; a link in a node takes 1 s and 1 byte per second, others 3
-- and 2. There is one for all checks, because links and inventory remember what they have seen.
local cluster = {}
function cluster.groups()
  return { { name = "g", kind = "gpu", first = 1, count = 600, stride = 2, devices = 2,
    first_node = 1 } }
end
function cluster.link(_, a, b)
  local inside = (a - 1) // 2 == (b - 1) // 2
  return { latency_s = inside and 1 or 3, bandwidth_bytes_per_s = inside and 1 or 2 }
end

local function check_exchange(t)
  local ctx = { cluster = cluster }
  t.near("an exchange of 3 by hand: 2 (1 + 4) + 2 (3 + 2)", links.exchange(ctx, { 1, 2, 3 }, 4), 20,
    0)
  t.near("one device has nobody", links.exchange(ctx, { 1 }, 4), 0, 0)
  local heads = {}
  for i = 1, 512 do
    heads[i] = 2 * i - 1
  end
  t.near("512 one by one", links.exchange(ctx, heads, 4), 511 * 10, 0)
  heads[513] = 1025
  t.near("513 by count", links.exchange(ctx, heads, 4), 512 * 10, 0)
end

return {
  api = 1, id = "links-test", title = "Tests of pipelines", kind = "test",
  system = "none", reference = "none", summary =
    "Checks what templates, placement and recovery share.",
  plan = function()
    return nil, "this file only tests libraries"
  end,
  selftest = function(t)
    check_exchange(t)
  end,
}
