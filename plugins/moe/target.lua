-- Where TA-MoE sends tokens (Chen et al. 2022, section 4): shares of every rank's tokens for each
-- rank, so that the slowest pair of ranks takes least. beta[i][j] = seconds of a share between
-- ranks i and j, above 0 also inside a rank.
local target = {}

-- Ranks above which the linear program is too large.
target.MOST = 32

--- Closed form: shares in proportion to 1 / beta. Returns the shares, and whether every rank gets
-- as much as it has, as the balance of experts asks.
function target.closed(beta)
  local shares, columns, even = {}, {}, true
  for i, row in ipairs(beta) do
    local sum = 0
    for _, b in ipairs(row) do
      sum = sum + 1 / b
    end
    shares[i] = {}
    for j, b in ipairs(row) do
      shares[i][j] = 1 / b / sum
      columns[j] = (columns[j] or 0) + shares[i][j]
    end
  end
  for _, column in ipairs(columns) do
    even = even and math.abs(column - 1) < 1e-9
  end
  return shares, even
end

--- The least slowest pair with balanced rows and columns, and no share above `most`: a linear
-- program. Returns shares and the time of the slowest pair; nil and the reason.
function target.solve(beta, most)
  local n = #beta
  local lp = hv.opt.lp { sense = "min" }
  local time, x = lp:var {}, {}
  lp:objective { [time] = 1 }
  for i = 1, n do
    x[i] = {}
    for j = 1, n do
      x[i][j] = lp:var { upper = most }
      lp:row({ [x[i][j]] = beta[i][j], [time] = -1 }, "<=", 0)
    end
  end
  for i = 1, n do
    local row, column = {}, {}
    for j = 1, n do
      row[x[i][j]], column[x[j][i]] = 1, 1
    end
    lp:row(row, "=", 1)
    lp:row(column, "=", 1)
  end
  local found = lp:solve {}
  if not found.x then
    return nil, "the linear program of the shares has no answer: " .. tostring(found.status)
  end
  local shares = {}
  for i = 1, n do
    shares[i] = {}
    for j = 1, n do
      shares[i][j] = math.max(0, found.x[x[i][j]])
    end
  end
  return shares, found.objective
end

--- The shares for these links: the closed form where it balances the columns and keeps below
-- `most`, else the linear program; nil and the reason where that is too large.
function target.shares(beta, most)
  local shares, even = target.closed(beta)
  for _, row in ipairs(shares) do
    for _, share in ipairs(row) do
      even = even and share <= most + 1e-12
    end
  end
  if even then
    return shares
  elseif #beta > target.MOST then
    return nil, ("unlike links of %d ranks: the linear program of the shares is solved for at most "
      .. "%d"):format(#beta, target.MOST)
  end
  return target.solve(beta, most)
end

--- Penalties of the gate's loss: 1 / share, scaled to a sum of 1 over a rank's experts.
function target.penalties(row)
  local sum, list = 0, {}
  for j, share in ipairs(row) do
    list[j] = 1 / share
    sum = sum + list[j]
  end
  for j in ipairs(list) do
    list[j] = list[j] / sum
  end
  return list
end

return target
