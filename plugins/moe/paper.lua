-- What the publications' own formulas say of a plan: formulas.lua on the figures of its first stage
-- with experts. Terms are of one layer and, but where a name says otherwise, of one micro-batch.
local formulas = require "formulas"
local knobs = require "knobs"
local links = require "links"
local mixture = require "mixture"
local prices = require "prices"

--- Figures of the first stage: its knobs of experts, first layer, group, tokens of a rank.
local function figures(made, ctx)
  local stage = made.replicas[1].stages[1]
  local micro_batch = made.replicas[1].micro_batch or made.micro_batch
  local layer = (mixture.layers(ctx))[1]
  local moe = stage.moe or {}
  local one = moe[1] or moe
  local group = mixture.group(ctx, stage, one.ep)
  return { stage = stage, moe = one, layer = layer, group = group, micro_batch = micro_batch,
    nodes = mixture.nodes(ctx, group), hidden = ctx.model.hidden,
    tokens = mixture.tokens(ctx, stage, micro_batch), width = ctx.job.activation_bytes }
end

--- Bytes that a rank hands to an exchange of all places.
local function places_bytes(x, places)
  return x.layer.experts * places * x.hidden * x.width
end

--- Tokens of each expert in the first iteration of the job's routing on one rank.
local function loads_of(x)
  return hv.trace { sources = 1, tokens = x.tokens }[1][1][1]
end

--- Shares of the tokens that the experts get, which are also taken for the mean gates.
local function shares_of(x)
  local shares, sum = {}, 0
  for _, load in ipairs(loads_of(x)) do
    sum = sum + load
  end
  for e, load in ipairs(loads_of(x)) do
    shares[e] = load / sum
  end
  return shares
end

-- Weight of the Switch Transformer's loss (Fedus et al. 2022, section 2.2).
local SWITCH_WEIGHT = 0.01

local of = {}

function of.gshard(x)
  local shares = shares_of(x)
  local places = formulas.capacity(x.moe.capacity_factor, x.layer.top_k, x.tokens,
    x.layer.experts, x.moe.min_capacity)
  local flops, mask = formulas.one_hot(x.tokens, x.layer.experts, places, x.hidden)
  return { terms = { exchange_bytes = places_bytes(x, places), one_hot_flops = flops,
      mask_bytes = mask * x.width, balance_loss = formulas.gshard_loss(shares, shares) },
    formula = ("C = max(4, cf k S / E) = %d places; 2 S E C h each way by one-hot products")
      :format(places),
    leaves_out = "groups within a micro-batch, random routing of the second expert" }
end

function of.switch(x)
  local shares = shares_of(x)
  local places = formulas.capacity(x.moe.capacity_factor, x.layer.top_k, x.tokens, x.layer.experts)
  return { terms = { exchange_bytes = places_bytes(x, places),
      expert_flops = 2 * x.layer.parameters * x.layer.experts * places,
      balance_loss = formulas.switch_loss(SWITCH_WEIGHT, shares, shares) },
    formula = ("C = cf tokens / E = %d places, all sent and computed"):format(places),
    leaves_out = "expert dropout, which takes no time" }
end

--- Links of a group as {alpha_s, bytes_per_s}: to the nearest rank and to the farthest.
local function near_and_far(ctx, group)
  local near, far
  for i = 2, #group do
    local l = links.link(ctx, group[1], group[i])
    local one = { alpha_s = l.latency_s, bytes_per_s = l.bandwidth_bytes_per_s }
    near = (not near or one.bytes_per_s > near.bytes_per_s) and one or near
    far = (not far or one.bytes_per_s < far.bytes_per_s) and one or far
  end
  return near, far
end

function of.tutel(x, ctx)
  local near, far = near_and_far(ctx, x.group)
  local n, m = #x.group, #x.group // x.nodes
  local bytes = mixture.bytes(ctx, x.layer, x.tokens)
  if not near then
    return { terms = {}, formula = "all experts on every rank", leaves_out = "exchanges" }
  end
  local cf, shards = x.moe.capacity_factor or 0, x.moe.expert_shards or 1
  local of_shards = shards > 1 and (formulas.shards_tokens(x.tokens * x.hidden, shards,
    x.layer.parameters * x.layer.experts * shards / n) and "; shards get tokens"
    or "; shards get weights") or ""
  return { terms = { flat_s = formulas.flat_s(n, m, bytes, near, far), flat_messages = n - 1,
      two_hops_s = m > 1 and formulas.two_hops_s(n, m, bytes, near, far) or nil,
      two_hops_messages = m > 1 and formulas.two_hop_messages(n, m) or nil,
      places = cf > 0 and formulas.aligned_capacity(cf, x.layer.top_k, x.tokens, x.layer.experts,
        shards * (x.moe.degree or 1)) or nil },
    formula = "one exchange: n - 1 messages, or (m - 1) + (n / m - 1) larger ones" .. of_shards,
    leaves_out = "chunks, and what is shared of a NIC" }
end

function of.dsmoe(x)
  local tp = prices.degree(x.stage)
  local p = #x.group * tp
  local coordinated = formulas.coordinated_steps(p, tp)
  return { terms = { exchange_steps = p, coordinated_steps = coordinated },
    formula = ("ep = %d ranks of min(E, G), steps of an exchange: %d, coordinated %d"):format(
      #x.group, p, coordinated),
    leaves_out = "times, and how tokens choose between the experts of a residual layer" }
end

function of.scattermoe(x)
  local rows = formulas.block_rows(loads_of(x))
  return { terms = { saved_input_bytes = x.tokens * x.hidden * x.width,
      gathered_copy_bytes = rows * x.hidden * x.width },
    formula = ("saves the tokens, not %d gathered rows"):format(rows),
    leaves_out = "how fast scattered rows are read" }
end

function of.megablocks(x)
  local loads = loads_of(x)
  local rows = formulas.block_rows(loads)
  return { terms = { expert_flops = 2 * x.layer.parameters * rows },
    formula = ("sum of tokens in blocks of 128 = %d rows, the widest expert for all %.0f"):format(
      rows, formulas.widest_rows(loads)),
    leaves_out = "that ranks wait for the busiest one, and the exchange of counts" }
end

function of.pipemoe(x, ctx)
  local fit = mixture.fits(ctx, x.stage, x.micro_batch, x.layer)
  local r = type(x.moe.degree) == "table" and x.moe.degree[1] or x.moe.degree or 1
  return { terms = { chunked_s = formulas.chunked_s(fit.exchange, fit.expert, r),
      whole_s = formulas.chunked_s(fit.exchange, fit.expert, 1),
      stationary_chunks = fit.expert.alpha_s > 0
        and formulas.stationary_chunks(fit.exchange, fit.expert) or nil },
    formula = ("max(2 r x, 2 x + r e, (r + 1) x + e) with r = %d forward"):format(r),
    leaves_out = "work of the host and of the gate" }
end

function of.schemoe(x, ctx)
  local near, far = near_and_far(ctx, x.group)
  local n, m = #x.group, #x.group // x.nodes
  local ratio = x.moe.compress and x.moe.compress.ratio or 1
  local bytes = mixture.bytes(ctx, x.layer, x.tokens) / ratio
  local inside_s = formulas.inside_s(n, m, bytes, near.bytes_per_s)
  local outside_s = formulas.outside_s(n, m, bytes, far.bytes_per_s)
  return {
    terms = { exchange_s = math.max(inside_s, outside_s), in_turns_s = inside_s + outside_s },
    formula = "max((m - 1) / n S / B_in, (n - m) / n S / B_out)",
    leaves_out = "latencies, and links that both share" }
end

function of.lina(x, ctx)
  local fit = mixture.fits(ctx, x.stage, x.micro_batch, x.layer)
  return { terms = { expert_s = fit.expert.alpha_s + fit.expert.beta_s,
      exchange_s = fit.exchange.alpha_s + fit.exchange.beta_s },
    formula = ("%d experts on a device: doubled while they take less than their exchange"):format(
      x.layer.experts // #x.group),
    leaves_out = "inference, whose experts follow the tokens' path" }
end

function of.janus(x, ctx)
  local q = { tokens = x.tokens, top_k = x.layer.top_k, hidden = x.hidden,
    ranks = #x.group // x.nodes, machines = x.nodes, experts_per_rank = x.layer.experts / #x.group,
    parameters = x.layer.parameters }
  local tokens, experts = formulas.between_machines(q)
  return { terms = { tokens_bytes = tokens * x.width, experts_bytes = experts * x.width },
    formula = ("R = 2 tokens k h / (n E parameters) = %.3g: %s move"):format(formulas.ratio(q),
      knobs.janus.ratio({ ctx = ctx }, x.stage, x.micro_batch, x.layer) > 1 and "experts"
        or "tokens"),
    leaves_out = "links inside machines, and many small products" }
end

function of.tamoe(x, ctx)
  local world = { ctx = ctx, layers = { x.layer } }
  local shares = knobs.tamoe.shares(world, x.stage)
  local beta, slowest_s = knobs.tamoe.betas(world, x.group), 0
  local bytes = mixture.bytes(ctx, x.layer, x.tokens)
  for i, row in ipairs(shares) do
    for j, share in ipairs(row) do
      slowest_s = math.max(slowest_s, beta[i][j] * share * bytes)
    end
  end
  return { terms = { slowest_pair_s = slowest_s },
    formula = "c = k S / (E sum 1 / beta) / beta, or the program where columns are uneven",
    leaves_out = "latencies, what pairs share, and how well the gate's loss reaches its target" }
end

function of.fastmoe(x)
  local loads, ep = loads_of(x), #x.group
  local worst = 0
  for rank = 1, ep do
    local sum = 0
    for e = (rank - 1) * #loads // ep + 1, rank * #loads // ep do
      sum = sum + loads[e]
    end
    worst = math.max(worst, sum * ep)
  end
  return { terms = { busiest_flops = 3 * 2 * x.layer.parameters * worst,
      busiest_bytes = 4 * worst * x.hidden * x.width },
    formula = ("3 passes and 4 exchanges of the busiest worker, %.0f tokens of %.0f in the mean")
      :format(worst, x.tokens * x.layer.top_k),
    leaves_out = "the exchange of counts, and tokens of the worker's own" }
end

local paper = {}

--- The claim of the system that runs.
function paper.claim(made, ctx)
  return of[ctx.system.id](figures(prices.table_of(made), ctx), ctx)
end

return paper
