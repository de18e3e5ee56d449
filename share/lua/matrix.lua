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

--- Rotates the columns p and q of the rows by an angle with this cosine and sine.
local function rotate_columns(rows, p, q, cosine, sine)
  for _, row in ipairs(rows) do
    local at_p, at_q = row[p], row[q]
    row[p] = cosine * at_p - sine * at_q
    row[q] = sine * at_p + cosine * at_q
  end
end

--- The same with the rows p and q.
local function rotate_rows(rows, p, q, cosine, sine)
  local row_p, row_q = rows[p], rows[q]
  for k = 1, #rows do
    local at_p, at_q = row_p[k], row_q[k]
    row_p[k] = cosine * at_p - sine * at_q
    row_q[k] = sine * at_p + cosine * at_q
  end
end

--- One rotation that makes a[p][q] zero; `vectors` collects the rotations.
local function rotate(a, vectors, p, q)
  local theta = (a[q][q] - a[p][p]) / (2 * a[p][q])
  local sign = theta >= 0 and 1 or -1
  local tangent = sign / (math.abs(theta) + math.sqrt(theta * theta + 1))
  local cosine = 1 / math.sqrt(tangent * tangent + 1)
  local sine = tangent * cosine
  rotate_columns(a, p, q, cosine, sine)
  rotate_rows(a, p, q, cosine, sine)
  rotate_columns(vectors, p, q, cosine, sine)
end

--- A copy of a symmetric matrix and its largest entry by amount; raises an error for others.
local function copy_symmetric(a)
  local copy = {}
  local scale = 0
  for i = 1, #a do
    if #a[i] ~= #a then
      error("matrix.eigen: expected a square matrix", 3)
    end
    copy[i] = { table.unpack(a[i]) }
    for j = 1, #a do
      scale = math.max(scale, math.abs(a[i][j]))
    end
  end
  for i = 1, #a do
    for j = 1, i do
      if math.abs(a[i][j] - a[j][i]) > 1e-9 * scale then
        error(("matrix.eigen: not symmetric at %d, %d"):format(i, j), 3)
      end
    end
  end
  return copy, scale
end

local MOST_SWEEPS = 60 -- over all pairs; a few suffice

--- Eigenvalues of a symmetric matrix, largest first, by Jacobi rotations (Golub and Van Loan, 8.5).
-- @function matrix.eigen
-- @tparam table a list of rows, symmetric
-- @treturn table list of eigenvalues, and a list of eigenvectors in the same order
-- @units those of the entries; vectors have length 1
-- @raise a matrix that is not square or not symmetric
-- @usage local values = require("matrix").eigen { { 2, 1 }, { 1, 2 } }
-- assert(math.abs(values[1] - 3) < 1e-12 and math.abs(values[2] - 1) < 1e-12)
function matrix.eigen(a)
  local n = #a
  local m, scale = copy_symmetric(a)
  local rotations = matrix.new(n, n, 1)
  local sweeps = 0
  while off_diagonal(m) > (1e-14 * scale) ^ 2 and sweeps < MOST_SWEEPS do
    sweeps = sweeps + 1
    for p = 1, n - 1 do
      for q = p + 1, n do
        if m[p][q] ~= 0 then
          rotate(m, rotations, p, q)
        end
      end
    end
  end
  local order = {}
  for i = 1, n do
    order[i] = i
  end
  table.sort(order, function(x, y) return m[x][x] > m[y][y] end)
  local values, vectors = {}, {}
  for place, i in ipairs(order) do
    values[place] = m[i][i]
    vectors[place] = {}
    for k = 1, n do
      vectors[place][k] = rotations[k][i]
    end
  end
  return values, vectors
end

return matrix
