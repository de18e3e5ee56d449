-- For the self-tests, the search of stages, by enumeration.
local checks = {}

--- The least time over all staffings of even stages by plain enumeration: every count of two pools
-- at degree 1.
-- @function checks.least_staffing
-- @tparam table q {layers, batch, quota = of two pools, depths, sizes, time, hop, sync} as
-- stage_dp.search takes them
-- @treturn number the least time
-- @units seconds
-- @raise errors of the functions
-- @usage local zero = function() return 0 end
-- local q = { layers = 2, batch = 2, quota = { 1, 0 }, depths = { 1 }, sizes = { 1 }, hop = zero, sync = zero,
--   time = function() return 3 end }
-- assert(require("testing.oracle").least_staffing(q) == 6)
function checks.least_staffing(q)
  local best = math.huge
  local function extend(c, s, rows, left)
    local n = q.layers // c.depth
    if s > c.depth then
      local worst, sum, sync, m = 0, 0, 0, math.ceil(q.batch / (c.size * c.dp))
      for i, row in ipairs(rows) do
        local after = rows[i + 1] and rows[i + 1].hop or 0
        worst, sum = math.max(worst, row.time + row.hop + after), sum + row.time + 2 * row.hop
        sync = math.max(sync, q.sync(row, (i - 1) * n + 1, i * n, c.dp))
      end
      best = math.min(best, (m - 1) * worst + sum + sync)
      return
    end
    for count = 0, c.dp do
      local row, rest = { time = 0, hop = 0 }, table.move(left, 1, 2, 1, {})
      for k, of in ipairs { count, c.dp - count } do
        if of > 0 then
          row[#row + 1] = { pool = k, tp = 1, n = of }
        end
        row.time = math.max(row.time, of > 0 and q.time(k, 1, c.size, 1, n) or 0)
        rest[k] = rest[k] - of
      end
      for _, a in ipairs(rows[s - 1] or {}) do
        for _, b in ipairs(row) do
          row.hop = math.max(row.hop, q.hop(a, b))
        end
      end
      rows[s] = row
      if rest[1] >= 0 and rest[2] >= 0 then
        extend(c, s + 1, rows, rest)
      end
      rows[s] = nil
    end
  end
  for _, depth in ipairs(q.depths) do
    for _, size in ipairs(q.sizes) do
      for dp = 1, q.quota[1] + q.quota[2] do
        extend({ depth = depth, size = size, dp = dp }, 1, {}, q.quota)
      end
    end
  end
  return best
end

return checks
