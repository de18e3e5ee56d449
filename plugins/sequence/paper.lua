-- What the publications' own formulas say of a plan: formulas.lua on the shapes and links of its
-- first stage's ranks. Where an exchange hides behind blocks of attention only the rest counts.
local claims = require "claims"
local formulas = require "formulas"
local inventory = require "inventory"
local links = require "links"
local prices = require "prices"

-- FLOP of a backward pass of fused attention, in those of the forward pass.
local BACKWARD = 2.5

--- Devices of n ranks of a stage's first sequence, `apart` ranks from one to the next.
local function members(one, n, apart)
  local list = {}
  for i = 1, n do
    list[i] = one.ids[(i - 1) * apart * one.tp + 1]
  end
  return list
end

--- Seconds of `bytes` over the slowest link between neighbours of a ring.
local function hop_s(ctx, ids, bytes)
  local slowest_s = 0
  for i, id in ipairs(ids) do
    slowest_s = math.max(slowest_s, links.seconds(ctx, id, ids[i % #ids + 1], bytes))
  end
  return slowest_s
end

--- The first layer with attention from one on, or of all.
local function attention_of(ctx, from)
  local rows = ctx.model:layers()
  for l = from, #rows do
    if rows[l].heads > 0 then
      return rows[l]
    end
  end
  return from > 1 and attention_of(ctx, 1) or rows[1]
end

--- Shape of a plan's stage: { q = of formulas, cp, ids, tp, blocks, sequences, flops_per_s, … }.
local function stage_of(ctx, made, s)
  local stage = made.replicas[1].stages[s]
  local cp = type(stage.cp) == "table" and stage.cp or nil
  local one = { stage = stage, cp = cp, tp = stage.tp or 1, ranks = cp and cp.degree or 1,
    ids = ctx.cluster:ids(stage.devices), blocks = stage.layers[2] - stage.layers[1],
    sequences = math.max(1, made.micro_batch // (stage.dp or 1)) }
  local layer = attention_of(ctx, stage.layers[1] + 1)
  one.q = { tokens = one.sequences * ctx.job.sequence / one.ranks, heads = layer.heads / one.tp,
    width = layer.heads * layer.head_dim / one.tp,
    keys = math.max(1, layer.kv_heads / one.tp) * layer.head_dim }
  local kind = inventory.kind(ctx, one.ids[1])
  for _, device in ipairs(ctx.cluster:devices()) do
    if device.kind == kind then
      one.flops_per_s = device.flops_per_s
      break
    end
  end
  return one
end

--- Seconds of a block of attention between `parts` of the sequence, whose heads u ranks share.
local function block_s(ctx, one, parts, u)
  local side = ctx.job.sequence / parts
  local balanced = ctx.model.causal and (one.cp.layout or "contiguous") ~= "contiguous"
  return 4 * one.sequences * side ^ 2 * one.q.width / u / one.flops_per_s / (balanced and 2 or 1)
end

--- Bytes of a hop in 16 bits ahead; sums of gradients are in 32 bits.
local function backward_bytes(q, backward)
  if backward == "q_do" then
    return (3 * q.width * 2 + 2 * q.heads * 4) * q.tokens
  end
  return 2 * q.keys * q.tokens * (2 + 4)
end

--- Exposed seconds of a ring of r ranks `apart`, windows of w, forward and backward; blocks of
-- `parts` of the sequence. `times`: keys of so many ranks go around together.
local function ring_s(ctx, one, r, apart, w, u, times)
  local forward_s = block_s(ctx, one, r * times, u)
  local near = members(one, w > 1 and w or r, apart)
  local far = members(one, r // math.max(w, 1), apart * math.max(w, 1))
  local exposed_s = 0
  for _, pass in ipairs {
    { block_s = forward_s, bytes = 2 * formulas.hop(one.q) },
    { block_s = BACKWARD * forward_s, bytes = backward_bytes(one.q, one.cp.backward) },
  } do
    local bytes = times * pass.bytes
    exposed_s = exposed_s - r * pass.block_s + formulas.ring_s(r, pass.block_s,
      hop_s(ctx, near, bytes), w, hop_s(ctx, far, bytes))
  end
  return exposed_s
end

--- Seconds of so many bytes over the slowest link of a group.
local function group_s(ctx, one, n, apart, bytes)
  return hop_s(ctx, members(one, n, apart), bytes)
end

-- Exposed seconds of a layer, forward and backward, then values that a rank sends, by scheme.
local of_scheme = {}

--- All-to-alls of heads over u ranks, and a ring of the others.
function of_scheme.ring(ctx, one)
  local cp, n = one.cp, one.ranks
  local u = cp.scheme == "ulysses" and n or cp.ulysses or 1
  local ring = n // u
  local far_heads = cp.order == "ring_inner"
  local heads = u > 1 and formulas.heads(one.q, u) or 0
  local exposed_s, forward, backward = 0, heads, heads
  if u > 1 then
    exposed_s = 2 * group_s(ctx, one, u, far_heads and ring or 1, 2 * heads)
  end
  if ring > 1 then
    local ahead, back = formulas.ring(one.q, ring, cp.backward)
    forward, backward = forward + ahead, backward + back
    exposed_s = exposed_s + ring_s(ctx, one, ring, far_heads and 1 or u, cp.inner or 1, u, 1)
  end
  return exposed_s, forward, backward
end

of_scheme.ulysses, of_scheme.usp, of_scheme.loongtrain =
  of_scheme.ring, of_scheme.ring, of_scheme.ring

--- Two rings of half the block each, and an all-reduce behind the backward pass.
function of_scheme.rsa(ctx, one)
  local n = one.ranks
  local ids, half = members(one, n, 1), one.q.keys * one.q.tokens * 2
  local forward, backward = formulas.self_attention(one.q, n)
  local step_s = block_s(ctx, one, n, 1)
  local function hidden(bytes, work_s)
    return formulas.ring_s(n, work_s, hop_s(ctx, ids, bytes)) - n * work_s
  end
  return 2 * hidden(half, step_s / 2) + hidden(2 * half, 2 * step_s)
    + 2 * (n - 1) / n * hop_s(ctx, ids, 2 * n * half), forward, backward
end

--- Half as many steps; each hides what comes for the next.
function of_scheme.distflash(ctx, one)
  local n = one.ranks
  local steps = formulas.helper_steps(n)
  local forward, backward = formulas.helpers(one.q, n)
  local ids, work_s = members(one, n, 1), block_s(ctx, one, n, 1)
  local exposed_s = 0
  for _, pass in ipairs { { work_s, 2 }, { BACKWARD * work_s, 4 } } do
    local bytes = pass[2] * one.q.width * one.q.tokens * 2
    exposed_s = exposed_s + formulas.ring_s(steps, pass[1], hop_s(ctx, ids, bytes))
      - steps * pass[1]
  end
  return exposed_s, forward, backward
end

--- Gathers and sums in a team are exposed, and what the ring of teams does not hide.
function of_scheme.wallfacer(ctx, one)
  local n, c = one.ranks, one.cp.inner or 1
  if c == 1 then
    return of_scheme.ring(ctx, one)
  end
  local forward, inside = formulas.teams(one.q, n, c)
  local spread = one.cp.order == "ring_inner"
  local rounds = n // (c * c)
  local exposed_s = 2 * group_s(ctx, one, c, spread and n // c or 1, 2 * inside)
  if rounds > 1 then
    exposed_s = exposed_s + ring_s(ctx, one, rounds, spread and 1 or c, 1, 1, c)
  end
  return exposed_s, forward -- the publication counts the forward pass alone
end

--- One all-to-all per switch, both ways; per layer in the mean.
function of_scheme.dsp(ctx, one)
  local n, dims, switches = one.ranks, one.cp.dims, 0
  for b, name in ipairs(dims) do
    switches = switches + (name ~= dims[b > 1 and b - 1 or #dims] and 1 or 0)
  end
  local values = formulas.switch(one.q.tokens * ctx.model.hidden, n) * switches / #dims
  return 2 * group_s(ctx, one, n, 1, 2 * values), values, values
end

local paper = {}

--- Bytes of activations of the first stage: its layers times the micro-batches alive, as many as
-- there are stages, are the layers of the model.
local function split_norms(ctx, made)
  local one = stage_of(ctx, made, 1)
  local layer = attention_of(ctx, 1)
  local q = { s = ctx.job.sequence, b = one.sequences, h = ctx.model.hidden, a = layer.heads }
  local bytes = formulas.activation_bytes("selective", q, one.tp)
  return { terms = { activations_bytes = ctx.model.n_layers * bytes, layer_bytes = bytes },
    formula = "activations of 34 s b h / t bytes a layer",
    leaves_out = "states, buffers, embedding and head; feed-forward widths other than 4 h" }
end

--- Values and seconds of all stages.
local function exchanged(ctx, made)
  local own_s, forward, backward = {}, 0, nil
  local exposed_s, optimizer_s = 0, 0
  for s in ipairs(made.replicas[1].stages) do
    local one, pass = stage_of(ctx, made, s), prices.stage(ctx, made, 1, s)
    local layer_s, ahead, back = of_scheme[one.cp.scheme](ctx, one)
    own_s[s] = pass.forward_s + pass.backward_s - (pass.exposed.cp or 0) + one.blocks * layer_s
    forward, backward = math.max(forward, ahead), back and math.max(backward or 0, back)
    exposed_s = math.max(exposed_s, layer_s)
    optimizer_s = math.max(optimizer_s, pass.optimizer_s)
  end
  return { iteration_s = claims.pipeline_s(own_s, made.replicas[1].micro_batches) + optimizer_s,
    terms = { exposed_of_a_layer_s = exposed_s, layer_forward_values = forward,
      layer_backward_values = backward },
    formula = "passes + what blocks of attention do not hide of each layer's exchange",
    leaves_out = "links that several groups of ranks share, reduction of gradients, merging of "
      .. "partial outputs, and host work" }
end

--- The claim of the system that runs, with what plan() found besides.
function paper.claim(made, ctx)
  made = prices.table_of(made)
  local claim = ctx.system.id == "megatron_sp" and split_norms(ctx, made) or exchanged(ctx, made)
  local found = made.claimed or {}
  for name, value in pairs(found.terms or {}) do
    claim.terms[name] = value
  end
  claim.warnings = found.warnings
  return claim
end

return paper
