-- What each system of the family fixes and searches: candidates(q) = its layouts of a sequence over
-- q.ranks, as `cp` of a plan's stage, where q = { ranks, heads = of a tensor-parallel rank,
-- sequence, causal, options }; zero = stages of ZeRO that are tried, with groups of ranks that
-- share the states where `groups` is set; recompute = ways that are tried, where not all three;
-- without = what else the comparison without the system leaves out.
local numbers = require "numbers"

-- Everything is computed again but the attention core, whose output is kept.
local ALL_BUT_CORE = "qkv+out+up+act+down+norm+experts"

--- Sizes of the part of the ranks that cuts heads: they divide ranks and heads.
local function heads_parts(q)
  local list = {}
  for _, u in ipairs(numbers.divisors(q.ranks)) do
    if q.heads % u == 0 then
      list[#list + 1] = u
    end
  end
  return list
end

--- The layout that balances a causal ring of r ranks, where the sequence divides into its halves.
local function balanced(q, r)
  return q.causal and r > 1 and q.sequence % (2 * q.ranks) == 0 and "zigzag" or nil
end

--- Heads x ring x window x order: `windows(ring)` = sizes of inner rings.
local function rings_of_heads(q, scheme, windows)
  local list = {}
  for _, u in ipairs(heads_parts(q)) do
    local ring = q.ranks // u
    local orders = u > 1 and ring > 1 and { "heads_inner", "ring_inner" } or { "heads_inner" }
    for _, order in ipairs(orders) do
      for _, inner in ipairs(windows(ring)) do
        list[#list + 1] = { scheme = scheme, degree = q.ranks, ulysses = u, order = order,
          inner = inner > 1 and inner or nil, layout = balanced(q, ring) }
      end
    end
  end
  return list
end

--- Windows of a ring: its divisors but itself.
local function windows_of(ring)
  local list = {}
  for _, w in ipairs(numbers.divisors(ring)) do
    if w < ring or ring == 1 then
      list[#list + 1] = w
    end
  end
  return list
end

local function no_windows()
  return { 1 }
end

local schemes = {}

schemes.rsa = {
  zero = { 0 },
  candidates = function(q)
    return { { scheme = "rsa", degree = q.ranks, layout = "contiguous" } }
  end,
}

schemes.megatron_sp = {
  zero = { 0, 1 }, recompute = { "selective" }, without = "sequence_parallel",
}

schemes.usp = {
  zero = { 1, 3 },
  candidates = function(q)
    return rings_of_heads(q, "usp", no_windows)
  end,
}

schemes.ulysses = {
  zero = { 1, 3 },
  candidates = function(q)
    if q.heads % q.ranks ~= 0 then
      return {}, ("%d attention heads cannot be dealt to %d ranks; usp adds a ring for the rest")
        :format(q.heads, q.ranks)
    end
    return { { scheme = "ulysses", degree = q.ranks } }
  end,
}

schemes.loongtrain = {
  zero = { 1, 3 }, recompute = { "none", ALL_BUT_CORE, "full" }, groups = true,
  candidates = function(q)
    return rings_of_heads(q, "loongtrain", windows_of)
  end,
}

schemes.ring = {
  zero = { 1, 3 },
  candidates = function(q)
    return { { scheme = "ring", degree = q.ranks, layout = "contiguous" } }
  end,
}

schemes.distflash = {
  zero = { 1, 3 }, recompute = { "none", ALL_BUT_CORE },
  candidates = function(q)
    return { { scheme = "distflash", degree = q.ranks, layout = "contiguous" } }
  end,
}

schemes.striped = {
  zero = { 1, 3 },
  candidates = function(q)
    return { { scheme = "ring", degree = q.ranks, layout = "striped", tile = q.options.tile } }
  end,
}

schemes.burst = {
  zero = { 1, 3 },
  candidates = function(q)
    local list = {}
    for _, inner in ipairs(windows_of(q.ranks)) do
      list[#list + 1] = { scheme = "ring", degree = q.ranks, inner = inner > 1 and inner or nil,
        layout = balanced(q, q.ranks), backward = "q_do" }
    end
    return list
  end,
}

schemes.wallfacer = {
  zero = { 1, 3 },
  candidates = function(q)
    local list = {}
    for c = 1, q.ranks do
      local orders = c > 1 and c * c < q.ranks and { "heads_inner", "ring_inner" }
        or { "heads_inner" }
      for _, order in ipairs(q.ranks % (c * c) == 0 and orders or {}) do
        list[#list + 1] = { scheme = "wallfacer", degree = q.ranks, inner = c > 1 and c or nil,
          order = order, layout = balanced(q, q.ranks // c) }
      end
    end
    return list
  end,
}

schemes.dsp = {
  zero = { 1, 3 },
  candidates = function(q)
    return { { scheme = "dsp", degree = q.ranks } }
  end,
}

--- All shardings of the states over n holders, as `zero` of a plan's stage: the stages that a
-- system tries, and where it searches groups those of powers of two.
function schemes.shardings(id, n)
  local own, list = schemes[id], {}
  for _, stage in ipairs(own.zero) do
    list[#list + 1] = stage
    for _, group in ipairs(own.groups and numbers.powers(n) or {}) do
      if group > 1 and n % group == 0 then
        list[#list + 1] = { stage = stage, shard_group = group }
      end
    end
  end
  return list
end

return schemes
