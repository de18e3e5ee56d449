-- Closed forms and recursions of data-parallel systems, as their publications state them. Seconds,
-- bytes; gradients in the order in which they arrive (the last layer first).
local formulas = {}

--- The buckets of gradients: a bucket closes when its size reaches the cap, caps[1] for the first,
-- caps[2] and so on for those behind it, the last one for all others (Li et al. 2020, section 3.2).
-- Returns a list of { bytes, ready_s }.
function formulas.buckets(gradients, caps)
  local list, bucket = {}, nil
  for _, gradient in ipairs(gradients) do
    bucket = bucket or { bytes = 0 }
    bucket.bytes = bucket.bytes + gradient.bytes
    bucket.ready_s = gradient.ready_s
    if bucket.bytes >= caps[math.min(#list + 1, #caps)] then
      list[#list + 1] = bucket
      bucket = nil
    end
  end
  list[#list + 1] = bucket
  return list
end

--- End of the last of these reductions, one after the other, none before it is ready.
function formulas.end_of(list, reduce_s)
  local end_s = 0
  for _, one in ipairs(list) do
    end_s = math.max(end_s, one.ready_s) + reduce_s(one.bytes)
  end
  return end_s
end

--- The fused tensors of a background loop that looks at every multiple of cycle_s: what is ready
-- then is packed in order up to `cap` bytes (Sergeev and Del Balso 2018). As formulas.buckets.
function formulas.fused(gradients, cap, cycle_s)
  local list, bucket = {}, nil
  for _, gradient in ipairs(gradients) do
    local tick_s = math.ceil(gradient.ready_s / cycle_s - 1e-9) * cycle_s
    if not bucket or bucket.ready_s ~= tick_s or bucket.bytes + gradient.bytes > cap then
      bucket = { bytes = 0, ready_s = tick_s }
      list[#list + 1] = bucket
    end
    bucket.bytes = bucket.bytes + gradient.bytes
  end
  return list
end

--- Forward end and total of n equal units whose weights are gathered and whose gradients are
-- scattered in one stream: {n, forward_s, backward_s, gather_s, scatter_s, limit = units that are
-- whole at most (2), prefetch = passes that a gather is ahead of its own (1), reshard = weights are
-- gathered again for the backward pass (true)} (Zhao et al. 2023, section 3.3). The last unit is
-- kept for its backward pass.
function formulas.units(q)
  local limit, prefetch = q.limit or 2, q.prefetch or 1
  local ahead = math.min(prefetch + 1, limit) -- a gather waits for the pass so many units before
  local stream_s, now_s = 0, 0
  local end_s, gathered_s = {}, {}
  for u = 1, q.n do
    stream_s = math.max(stream_s, end_s[u - ahead] or 0) + q.gather_s
    now_s = math.max(now_s, stream_s) + q.forward_s
    end_s[u] = now_s
  end
  local forward_s, next_u = now_s, q.n - 1
  for u = q.n, 1, -1 do
    local function gather(first)
      while q.reshard ~= false and next_u >= math.max(1, first) do
        stream_s = math.max(stream_s, now_s) + q.gather_s
        gathered_s[next_u] = stream_s
        next_u = next_u - 1
      end
    end
    gather(u)
    now_s = math.max(now_s, gathered_s[u] or 0)
    gather(u - ahead + 1)
    now_s = now_s + q.backward_s
    stream_s = math.max(stream_s, now_s) + q.scatter_s
  end
  return forward_s, math.max(now_s, stream_s)
end

--- Bytes of the model states of a rank: `stage` of ZeRO over d ranks, per parameter `weight` and
-- `gradient` bytes and `rest` of optimizer states (Rajbhandari et al. 2020, section 5).
function formulas.states_bytes(parameters, d, stage, weight, gradient, rest)
  local parts = { rest, gradient, weight } -- in the order in which the stages shard them
  local bytes = 0
  for level, part in ipairs(parts) do
    bytes = bytes + (stage >= level and part / d or part)
  end
  return parameters * bytes
end

--- Elements that a rank sends per parameter in an iteration of m micro-batches: replicated and
-- stage 1 reduce once, stage 2 scatters every micro-batch and gathers once, stage 3 gathers twice
-- and scatters every micro-batch (section 7).
function formulas.volume(stage, d, m)
  local part = (d - 1) / d
  if stage < 2 then
    return 2 * part
  elseif stage == 2 then
    return (m + 1) * part
  end
  return 3 * m * part
end

--- Bytes across hosts per rank, of a model of so many bytes on `ranks` with `host` per host: as
-- replicas, fully sharded, and sharded inside hosts (Zhao et al. 2023, section 3.2).
function formulas.across_hosts(bytes, ranks, host)
  local part = (ranks - 1) / ranks
  return 2 * bytes * part, 3 * bytes * part, 2 * bytes * (ranks - 1) / (host * ranks)
end

--- Parts of the weights that enter a node when p ranks on nodes of k gather them: in one ring, and
-- among ranks of the same place in their nodes first (Zhang et al. 2022, section 3.3).
function formulas.between_nodes(p, k)
  return (p - 1) / p, (p - k) / p
end

--- Bytes that a rank sends for the gradients of s micro-batches of `bytes`, with groups of p of n
-- ranks: scattered inside the group every time, then the shards reduced between groups; and over
-- all ranks every time (section 3.4).
function formulas.two_hops(bytes, n, p, s)
  local groups = n // p
  return s * (p - 1) / p * bytes, 2 * (groups - 1) / groups * bytes / p,
    s * (n - 1) / n * bytes
end

return formulas
