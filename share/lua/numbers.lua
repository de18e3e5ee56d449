--- Arithmetic and lists: even splits, divisors, ranges, permutations. Nothing here uses `hv`.
local numbers = {}

local divisors_of = {} -- those that numbers.divisor_from has asked for: finding them takes sqrt(n)

--- Splits n into `parts` whole numbers that differ by at most one; the first ones are larger.
function numbers.even(n, parts)
  local counts = {}
  for i = 1, parts do
    counts[i] = n // parts + (i <= n % parts and 1 or 0)
  end
  return counts
end

--- Counts per stage to half-open ranges from 0: {2, 3} -> {{0, 2}, {2, 5}}.
function numbers.ranges(counts)
  local ranges = {}
  local first = 0
  for i, n in ipairs(counts) do
    ranges[i] = { first, first + n }
    first = first + n
  end
  return ranges
end

--- Divisors of n, ascending.
function numbers.divisors(n)
  local low = {} -- up to the square root of n
  local high = {}
  local d = 1
  while d * d <= n do
    if n % d == 0 then
      low[#low + 1] = d
      if d * d ~= n then
        table.insert(high, 1, n // d)
      end
    end
    d = d + 1
  end
  for _, x in ipairs(high) do
    low[#low + 1] = x
  end
  return low
end

--- The least divisor of n that is at least x (nil where there is none).
function numbers.divisor_from(n, x)
  divisors_of[n] = divisors_of[n] or numbers.divisors(n)
  for _, d in ipairs(divisors_of[n]) do
    if d >= x then
      return d
    end
  end
end

--- Powers of two up to n.
function numbers.powers(n)
  local list = {}
  local power = 1
  while power <= n do
    list[#list + 1] = power
    power = power * 2
  end
  return list
end

--- Greatest common divisor.
function numbers.gcd(a, b)
  while b ~= 0 do
    a, b = b, a % b
  end
  return a
end

--- Groups rows that have the same key.
-- @function numbers.joined
-- @tparam table rows list of anything
-- @tparam function key_of function(row) giving its key
-- @treturn table list of {row = the first, copies = all of them}, in order of first mention
-- @units none
-- @raise what key_of raises
-- @usage assert(#require("numbers").joined({ 1, 2, 3 }, function(x) return x % 2 end) == 2)
function numbers.joined(rows, key_of)
  local list = {}
  local by_key = {}
  for _, row in ipairs(rows) do
    local key = key_of(row)
    if not by_key[key] then
      by_key[key] = { row = row, copies = {} }
      list[#list + 1] = by_key[key]
    end
    table.insert(by_key[key].copies, row)
  end
  return list
end

--- n values of a list from position `from` on.
function numbers.slice(list, from, n)
  return table.move(list, from, from + n - 1, 1, {})
end

--- Divisors of n just below and just above x (nil where there is none).
function numbers.neighbours(n, x)
  local below, above
  for _, d in ipairs(numbers.divisors(n)) do
    if d < x then
      below = d
    elseif d > x and not above then
      above = d
    end
  end
  return below, above
end

--- "a", "a or b" for the values that exist.
function numbers.either(a, b)
  if a and b then
    return a .. " or " .. b
  end
  return tostring(a or b)
end

--- All permutations of 1 … n, in lexical order.
-- @function numbers.permutations
-- @tparam integer n how many, at most 9
-- @treturn table list of lists
-- @units none: numbers from 1
-- @raise n above 9
-- @usage assert(#require("numbers").permutations(4) == 24)
function numbers.permutations(n)
  if n > 9 then
    error("numbers.permutations: expected at most 9, found " .. n, 2)
  end
  local list = {}
  local current = {}
  local is_used = {}
  local function place(k)
    if k > n then
      list[#list + 1] = { table.unpack(current) }
      return
    end
    for i = 1, n do
      if not is_used[i] then
        is_used[i] = true
        current[k] = i
        place(k + 1)
        is_used[i] = nil
      end
    end
  end
  place(1)
  return list
end

return numbers
