-- How fast models agree that are averaged in groups (Partial Reduce, section 5).
local matrix = require "matrix"

local mixing = {}

--- The mean group matrix of n workers: 1 / P between the members of a group, the identity for
-- others. `rows` are { share, members }, whose shares sum to 1.
function mixing.mean(n, rows)
  local mean = matrix.new(n, n, 1)
  for _, row in ipairs(rows) do
    for _, a in ipairs(row.members) do
      mean[a][a] = mean[a][a] - row.share
      for _, b in ipairs(row.members) do
        mean[a][b] = mean[a][b] + row.share / #row.members
      end
    end
  end
  return mean
end

--- rho, the second eigenvalue of a mean group matrix: with 0 models agree at once, with 1 never.
function mixing.rho(mean)
  return (matrix.eigen(mean))[2] or 0
end

--- Weights of a group's members, which sum to 1: `decay` to the power of the steps that each is
-- behind the foremost, as in a moving average (dynamic partial reduce); decay 1 gives equal
-- weights.
function mixing.weights(behind, decay)
  local weights = {}
  local sum = 0
  for i, steps in ipairs(behind) do
    weights[i] = decay ^ steps
    sum = sum + weights[i]
  end
  for i in ipairs(weights) do
    weights[i] = weights[i] / sum
  end
  return weights
end

--- The mean of W'JW over groups, with J = 1 - 11' / n: 1 off the group G, and |G| ww' - dd' / n on
-- it, where w are the weights and d = |G| w - 1.
local function mean_distance(n, groups, decay)
  local mean = matrix.new(n, n, 1)
  for _, group in ipairs(groups) do
    local size = #group.members
    local w = mixing.weights(group.behind, decay)
    for i, a in ipairs(group.members) do
      mean[a][a] = mean[a][a] - 1 / #groups
      for k, b in ipairs(group.members) do
        mean[a][b] = mean[a][b] + (size * w[i] * w[k] - (size * w[i] - 1) * (
          size * w[k] - 1) / n) / #groups
      end
    end
  end
  return mean
end

--- Centres a symmetric matrix in place: J M J.
local function centre(m, n)
  local mean = {}
  local mean_of_all = 0
  for i = 1, n do
    mean[i] = 0
    for k = 1, n do
      mean[i] = mean[i] + m[i][k] / n
    end
    mean_of_all = mean_of_all + mean[i] / n
  end
  for i = 1, n do
    for k = 1, n do
      m[i][k] = m[i][k] - mean[i] - mean[k] + mean_of_all
    end
  end
end

--- rho under weights by staleness: the largest fraction of the models' squared distance from their
-- mean that a group leaves on average. With equal weights (decay 1), whose group matrices are
-- projections, it is mixing.rho of the mean matrix. `groups` are those of controller.play.
function mixing.rho_by_staleness(n, groups, decay)
  local m = mean_distance(n, groups, decay)
  centre(m, n)
  return math.max(0, (matrix.eigen(m))[1])
end

return mixing
