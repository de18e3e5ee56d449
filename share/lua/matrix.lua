-- Small dense matrices: lists of rows.
-- Library: preduce is its one user so far; spectral gaps of other gossip averages need it next.
local matrix = {}

--- A matrix of zeros, or with `diagonal` on its diagonal.
-- @function matrix.new
-- @tparam integer rows how many rows
-- @tparam[opt] integer columns how many columns (default: rows)
-- @tparam[opt] number diagonal value on the diagonal (default 0)
-- @treturn table list of rows, each a list of numbers
-- @units any, the caller's
-- @raise none
-- @usage assert(require("matrix").new(2, 2, 1)[2][2] == 1)
function matrix.new(rows, columns, diagonal)
  local m = {}
  for i = 1, rows do
    m[i] = {}
    for j = 1, columns or rows do
      m[i][j] = i == j and diagonal or 0
    end
  end
  return m
end

--- The product of two matrices. O(n³).
-- @function matrix.mul
-- @tparam table a list of rows
-- @tparam table b list of rows, as many as a has columns
-- @treturn table list of rows
-- @units any, the caller's
-- @raise shapes that do not fit
-- @usage assert(require("matrix").mul({ { 1, 2 } }, { { 3 }, { 4 } })[1][1] == 11)
function matrix.mul(a, b)
  if #a[1] ~= #b then
    error(("matrix.mul: %d columns times %d rows"):format(#a[1], #b), 2)
  end
  local out = matrix.new(#a, #b[1])
  for i = 1, #a do
    for j = 1, #b[1] do
      local sum = 0
      for k = 1, #b do
        sum = sum + a[i][k] * b[k][j]
      end
      out[i][j] = sum
    end
  end
  return out
end

--- Sum of squares off the diagonal.
local function off_diagonal(a)
  local sum = 0
  for i = 1, #a do
    for j = 1, #a do
      sum = sum + (i ~= j and a[i][j] ^ 2 or 0)
    end
  end
  return sum
end

--- One rotation that makes a[p][q] zero; v collects the rotations.
local function rotate(a, v, p, q)
  local theta = (a[q][q] - a[p][p]) / (2 * a[p][q])
  local t = (theta >= 0 and 1 or -1) / (math.abs(theta) + math.sqrt(theta * theta + 1))
  local c = 1 / math.sqrt(t * t + 1)
  local s = t * c
  for k = 1, #a do
    a[k][p], a[k][q] = c * a[k][p] - s * a[k][q], s * a[k][p] + c * a[k][q]
  end
  for k = 1, #a do
    a[p][k], a[q][k] = c * a[p][k] - s * a[q][k], s * a[p][k] + c * a[q][k]
  end
  for k = 1, #v do
    v[k][p], v[k][q] = c * v[k][p] - s * v[k][q], s * v[k][p] + c * v[k][q]
  end
end

--- Eigenvalues of a symmetric matrix, largest first, by Jacobi rotations (Golub and Van Loan, 8.5).
-- @function matrix.eigen
-- @tparam table a list of rows, symmetric
-- @treturn table list of eigenvalues, and a list of eigenvectors in the same order
-- @units those of the entries; vectors have length 1
-- @raise a matrix that is not square or not symmetric
-- @usage local values = require("matrix").eigen { { 2, 1 }, { 1, 2 } }
-- assert(math.abs(values[1] - 3) < 1e-12 and math.abs(values[2] - 1) < 1e-12)
function matrix.eigen(a)
  local n, m, scale = #a, {}, 0
  for i = 1, n do
    if #a[i] ~= n then
      error("matrix.eigen: expected a square matrix", 2)
    end
    m[i] = { table.unpack(a[i]) }
    for j = 1, n do
      scale = math.max(scale, math.abs(a[i][j]))
    end
  end
  for i = 1, n do
    for j = 1, i do
      if math.abs(a[i][j] - a[j][i]) > 1e-9 * scale then
        error(("matrix.eigen: not symmetric at %d, %d"):format(i, j), 2)
      end
    end
  end
  local v, sweeps = matrix.new(n, n, 1), 0
  while off_diagonal(m) > (1e-14 * scale) ^ 2 and sweeps < 60 do
    sweeps = sweeps + 1
    for p = 1, n - 1 do
      for q = p + 1, n do
        if m[p][q] ~= 0 then
          rotate(m, v, p, q)
        end
      end
    end
  end
  local order, values, vectors = {}, {}, {}
  for i = 1, n do
    order[i] = i
  end
  table.sort(order, function(x, y) return m[x][x] > m[y][y] end)
  for at, i in ipairs(order) do
    values[at], vectors[at] = m[i][i], {}
    for k = 1, n do
      vectors[at][k] = v[k][i]
    end
  end
  return values, vectors
end

return matrix
