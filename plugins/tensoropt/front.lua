-- The front of time against memory over the graph of choices: costs of operators are pairs, pairs
-- of a path add up, and what another pair beats in both falls away (cost frontier tracking).
local splits = require "operator_splits"

local front = {}

-- Points that a table cell keeps. The publication merges close points as well.
local KEEP = { 16, 4 }
-- Where tables are too large, each operator keeps so many of its fastest ways.
local FEWER = { false, 8, 4, 2 }

local function between(seconds)
  return { seconds, 0 }
end

--- The front: list of { seconds, bytes, choices, priced } in order of seconds, proven where nothing
-- was left out; or nil and the reason. bytes(way) is what a way holds on a device.
function front.of(priced, bytes)
  local function cost(way)
    return { splits.seconds(way), bytes(way) }
  end
  local why
  for _, most in ipairs(FEWER) do
    local own = most and splits.fewer(priced, most) or priced
    for _, keep in ipairs(KEEP) do
      local problem = splits.problem(own, cost, between)
      problem.semiring, problem.keep = "pareto", keep
      local ok, solved, reason = pcall(hv.opt.graph_dp, problem)
      if ok and solved then
        local list = { proven = solved.proven and own == priced }
        for i, point in ipairs(solved.front) do
          list[i] = { seconds = point.value, bytes = point.memory, choices = point.choices,
            priced = own }
        end
        return list
      end
      why = ok and reason or solved
    end
  end
  return nil, why
end

return front
