-- For the self-tests, the batch split, by a linear program.
local checks = {}

--- Least of the largest steady_i x n_i over whole numbers n_i of 1 and more with the sum of count_i
-- x n_i = total, by the linear program (lp_solve).
-- @function checks.slowest
-- @tparam table steady list of times
-- @tparam table counts list of how often each counts
-- @tparam integer total sum
-- @treturn number the largest
-- @units those of the times
-- @raise none
-- @usage assert(math.abs(require("testing.oracle").slowest({ 1, 2 }, { 1, 1 }, 3) - 2) < 1e-9)
function checks.slowest(steady, counts, total)
  local lp = hv.opt.lp { sense = "min" }
  local longest, sum = lp:var { lower = 0 }, {}
  for i, n in ipairs(counts) do
    local x = lp:var { lower = 1, integer = true }
    sum[x] = n
    lp:row({ [x] = steady[i], [longest] = -1 }, "<=", 0)
  end
  lp:row(sum, "=", total)
  lp:objective { [longest] = 1 }
  return lp:solve({}).objective
end

return checks
