-- Closed forms and small simulations of mixtures of experts, as their publications state them.
-- Seconds, bytes, tokens.
local formulas = {}

-- Rows of a block of the block-sparse products (Gale et al. 2023, section 5.1).
local BLOCK_ROWS = 128

--- Places of an expert for the tokens of one group: cf · k · tokens / experts, rounded up, and at
-- least `least` (Lepikhin et al. 2021, section 2.2; Fedus et al. 2022, equation 3).
function formulas.capacity(cf, top_k, tokens, experts, least)
  return math.max(least or 0, math.ceil(cf * top_k * tokens / experts - 1e-9))
end

--- Tokens without a place.
function formulas.dropped(loads, capacity)
  local n = 0
  for _, load in ipairs(loads) do
    n = n + math.max(0, load - capacity)
  end
  return n
end

--- 1/E · Σ c_e/S · m_e, with shares of tokens c and mean gates m (Lepikhin et al. 2021, algorithm
-- 1).
function formulas.gshard_loss(shares, gates)
  local sum = 0
  for e, share in ipairs(shares) do
    sum = sum + share * gates[e]
  end
  return sum / #shares
end

--- weight · E · Σ f_e · P_e (Fedus et al. 2022, equation 4).
function formulas.switch_loss(weight, shares, gates)
  return weight * (#shares) ^ 2 * formulas.gshard_loss(shares, gates)
end

--- FLOP of one product with the one-hot tensor of a group: 2 · S · E · C · h; and its elements.
function formulas.one_hot(tokens, experts, capacity, hidden)
  return 2 * tokens * experts * capacity * hidden, tokens * experts * capacity
end

--- Tutel's places: k · int(cf · ⌈tokens / experts⌉), up to a multiple of `align` (tutel,
-- impls/fast_dispatch.py).
function formulas.aligned_capacity(cf, top_k, tokens, experts, align)
  local places = top_k * math.floor(cf * math.ceil(tokens / experts))
  return math.ceil(places / align) * align
end

--- Seconds of an exchange of `bytes` per rank over n ranks, m of them in a node: messages to every
-- other rank one after the other, and in two hops, inside nodes and then between ranks of the same
-- place. near and far = {alpha_s, bytes_per_s} (Hwang et al. 2023, section 3.3).
function formulas.flat_s(n, m, bytes, near, far)
  local each = bytes / n
  return (m - 1) * (near.alpha_s + each / near.bytes_per_s)
    + (n - m) * (far.alpha_s + each / far.bytes_per_s)
end

function formulas.two_hops_s(n, m, bytes, near, far)
  return (m - 1) * (near.alpha_s + bytes / m / near.bytes_per_s)
    + (n / m - 1) * (far.alpha_s + bytes * m / n / far.bytes_per_s)
end

--- Messages of a rank in two hops.
function formulas.two_hop_messages(n, m)
  return (m - 1) + (n // m - 1)
end

--- True where sharding the experts' weights over `shards` ranks sends less than gathering them
-- (tutel, impls/moe_layer.py): tokens have `values` elements, the experts of a rank `parameters`.
function formulas.shards_tokens(values, shards, parameters)
  return values * (shards - 1) * 2 < parameters
end

--- Ranks that share the experts of a layer, and how often each set of them is held: the largest
-- number of the group that divides both (Rajbhandari et al. 2022, section 4.2).
function formulas.expert_ranks(experts, ranks)
  for ep = math.min(experts, ranks), 1, -1 do
    if experts % ep == 0 and ranks % ep == 0 then
      return ep, ranks // ep
    end
  end
end

--- Steps of an exchange over p ranks with a tensor degree of L: p, and p / L + L where only ranks
-- of the same place exchange (section 5.2).
function formulas.coordinated_steps(p, tp)
  return p // tp + tp
end

--- Rows that block-sparse products compute for the tokens of each expert.
function formulas.block_rows(loads)
  local rows = 0
  for _, load in ipairs(loads) do
    rows = rows + math.ceil(load / BLOCK_ROWS) * BLOCK_ROWS
  end
  return rows
end

--- Rows of batched products without drops: as many for every expert as the fullest one has.
function formulas.widest_rows(loads)
  return #loads * math.max(table.unpack(loads))
end

--- Chunks r of dispatch, experts and combine over one network and one device: all dispatches first,
-- then all combines. a = exchange, e = experts, {alpha_s, beta_s} with beta_s for all tokens.
-- Equal to playing the tasks one by one for every r.
function formulas.chunked_s(a, e, r)
  local x, y = a.alpha_s + a.beta_s / r, e.alpha_s + e.beta_s / r
  if r == 1 then
    return 2 * x + y
  end
  return math.max(2 * r * x, 2 * x + r * y, (r + 1) * x + y)
end

--- Where the branch that experts bound is least: √(2β_a/α_e) (Shi et al. 2023, section 4).
function formulas.stationary_chunks(a, e)
  return math.sqrt(2 * a.beta_s / e.alpha_s)
end

--- The number of chunks from 1 to `most` that takes least, the smaller one of equals.
function formulas.chunks(a, e, most)
  local best, best_s = 1, math.huge
  for r = 1, most do
    local time_s = formulas.chunked_s(a, e, r)
    if time_s < best_s then
      best, best_s = r, time_s
    end
  end
  return best, best_s
end

--- Tasks of r chunks as hv.sim.tasks takes them, device work in the order `compute` (list of {name,
-- chunk}, names c1 d1 e c2 d2) and exchanges in that of `network` (a1, a2): seconds {c, d, e, a}.
function formulas.chunk_tasks(seconds, compute, network)
  local needs = { a1 = "c1", d1 = "a1", e = "d1", c2 = "e", a2 = "c2", d2 = "a2" }
  local tasks, number = {}, {}
  local function add(list, resource)
    for i, one in ipairs(list) do
      tasks[#tasks + 1] = { resource = resource, time_s = seconds[one[1]:sub(1, 1)],
        chunk = one, before = i > 1 and #tasks or nil }
      number[one[1] .. one[2]] = #tasks
    end
  end
  add(compute, 1)
  add(network, 2)
  for _, task in ipairs(tasks) do
    local need = needs[task.chunk[1]]
    task.after = {}
    if need then
      table.insert(task.after, number[need .. task.chunk[2]])
    end
    if task.before then
      table.insert(task.after, task.before)
    end
    task.chunk, task.before = nil, nil
  end
  return tasks
end

--- OptSche's orders (Shi et al. 2024, section 4): all compressions, then chunk by chunk
-- decompression, experts, compression, then all decompressions; all dispatches, then all combines.
function formulas.optsche(r)
  local compute, network = {}, {}
  local function all(list, name)
    for chunk = 1, r do
      list[#list + 1] = { name, chunk }
    end
  end
  all(compute, "c1")
  for chunk = 1, r do
    for _, name in ipairs { "d1", "e", "c2" } do
      compute[#compute + 1] = { name, chunk }
    end
  end
  all(compute, "d2")
  all(network, "a1")
  all(network, "a2")
  return compute, network
end

--- Seconds of exchanges inside nodes and between them, n ranks and m in a node: the parts, and both
-- at once (section 5).
function formulas.inside_s(n, m, bytes, bytes_per_s)
  return (m - 1) / n * bytes / bytes_per_s
end

function formulas.outside_s(n, m, bytes, bytes_per_s)
  return (n - m) / n * bytes / bytes_per_s
end

--- Experts on a device: doubled while the exchange takes longer than they do (Li et al. 2023,
-- section 4.3). times(n) = seconds of experts and of the exchange with n of them; fits(n) = memory.
function formulas.packed(most, times, fits)
  local n = 1
  while n < most do
    local expert_s, exchange_s = times(n)
    if expert_s >= exchange_s or 2 * n > most or (fits and not fits(2 * n)) then
      break
    end
    n = 2 * n
  end
  return n
end

--- R, bytes of tokens over bytes of experts between machines (Liu et al. 2023, section 3.2): 2 ·
-- tokens · k · h against n · E · parameters of an expert; BSk / (4nhE) with experts of 8h².
function formulas.ratio(q)
  return 2 * q.tokens * q.top_k * q.hidden / (q.machines * q.experts_per_rank * q.parameters)
end

--- Elements that a machine of m ranks gets from others: tokens there and back, and experts, once
-- per machine.
function formulas.between_machines(q)
  local others = q.machines - 1
  return 2 * q.ranks * q.tokens * q.top_k * q.hidden * others / q.machines,
    q.ranks * q.experts_per_rank * others * q.parameters
end

return formulas
