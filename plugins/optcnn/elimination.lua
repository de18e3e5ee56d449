-- The least sum of the graph of choices: compute, sums of gradients and transfers add up (equation
-- 1 of the publication).
local splits = require "operator_splits"

local elimination = {}

-- Where the graph's tables are too large, each operator keeps so many of its cheapest ways, fewer
-- and fewer; what is found then is not proven.
local FEWER = { 32, 16, 8, 4, 2 }

--- The choices of the least sum, or nil and the reason: too large tables raise an error.
local function solve(priced)
  local ok, solved, why = pcall(hv.opt.graph_dp, splits.problem(priced, splits.seconds))
  if ok then
    return solved, why
  end
  return nil, solved
end

--- The best choices: { seconds, choices, priced = where they count, proven }; or nil and why not.
function elimination.least(priced)
  local solved, why = solve(priced)
  local all = solved ~= nil
  for _, most in ipairs(FEWER) do
    if solved then
      break
    end
    priced = splits.fewer(priced, most)
    solved, why = solve(priced)
  end
  if not solved then
    return nil, why
  end
  return { seconds = solved.value, choices = solved.choices, priced = priced,
    proven = all and solved.proven }
end

return elimination
