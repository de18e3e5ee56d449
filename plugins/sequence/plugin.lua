-- Sequence parallelism: the tokens of a sequence over several devices. One search over degrees,
-- micro-batch, recomputation and ZeRO (degrees) for all systems; inside, the layout of a sequence
-- over its ranks (heads x ring x window x order x team) is chosen among all that the system has
-- (schemes, layouts), and dimensions of tokens by a shortest path (dimensions).
-- Tensor and pipeline degrees are searched as well, as far as the model needs them. What the
-- publications leave open about model states (plain replicas or ZeRO) is searched too. The same
-- search without the system tells what it gains.
local composed = require "composed"
local degrees = require "degrees"
local dimensions = require "dimensions"
local layouts = require "layouts"
local numbers = require "numbers"
local paper = require "paper"
local schemes = require "schemes"

-- Ranks of one sequence at most, and tokens of a rank at least: with fewer than a tile of the
-- kernel it works on padding.
local MOST_RANKS = 512
local LEAST_TOKENS = 128

--- Ranks that may share a sequence: powers of two, and divisors of the number of devices.
local function ranks_of_a_sequence(ctx)
  return function(devices)
    local list, seen = {}, {}
    local most = math.max(2, math.min(#devices, MOST_RANKS, ctx.job.sequence // LEAST_TOKENS))
    for _, set in ipairs { numbers.powers(most), numbers.divisors(#devices) } do
      for _, n in ipairs(set) do
        if n > 1 and n <= most and not seen[n] and ctx.job.sequence % n == 0 then
          seen[n] = true
          list[#list + 1] = n
        end
      end
    end
    table.sort(list)
    return list
  end
end

--- Knobs of a point: ZeRO x the layout of the sequence of least `figure`, `false` where there is no
-- figure and sequences are whole.
local function knobs_of(ctx, zero, figure)
  return function(point)
    local list = {}
    for _, cp in ipairs(figure and layouts.least(ctx, point, figure) or { false }) do
      for _, stage in ipairs(zero) do
        list[#list + 1] = { zero = stage, cp = cp }
      end
    end
    return list
  end
end

--- What the blocks of layers { from, to } of a plan attend along.
local function attended(ctx, layers)
  local rows, list = ctx.model:layers(), {}
  for b = layers[1] + 1, layers[2] do
    list[#list + 1] = rows[b].attends
  end
  return list
end

--- Sets the dimensions of a stage's blocks, by the shortest path.
local function set_dims(ctx, stage)
  local cp = { scheme = "dsp", degree = stage.cp.degree }
  local found = dimensions.shortest(attended(ctx, stage.layers), ctx.model:tokens(), cp.degree, 1)
  cp.dims = found.names
  stage.cp = cp
end

--- Why a model has no dimensions to switch between, or nil.
local function one_dimension(ctx)
  if #ctx.model:tokens() < 2 then
    return "no gain here: the model's tokens have one dimension, so 0 switches save nothing "
      .. "(a model of videos has two: time and space)"
  end
  for b, layer in ipairs(ctx.model:layers()) do
    if not layer.attends then
      return ("block %d attends along all tokens, and can be cut along none of them; ulysses or "
        .. "ring do that"):format(b - 1)
    end
  end
end

--- Can the system run with these degrees? nil: it can; else why not.
local function refusal(ctx, point)
  local list, why = layouts.all(ctx, point)
  if #list == 0 then
    return why
  end
  if ctx.system.id == "dsp" then
    local found, block = dimensions.shortest(attended(ctx, { 0, ctx.model.n_layers }),
      ctx.model:tokens(), point.cp, 1)
    return not found and ("block %d has no dimension beside its own that divides by %d")
      :format(block - 1, point.cp) or nil
  end
end

--- Refinements of the best plan: all layouts, and groups that share the states.
local function refinements(ctx, own)
  local list = { { knob = "cp", values = function(point)
    return layouts.all(ctx, point)
  end } }
  if own.groups then
    list[2] = { knob = "zero", values = function(point)
      return schemes.shardings(ctx.system.id, point.dp * point.cp)
    end }
  end
  return list
end

--- The search of a system with its layouts of least `figure` (time_s or bytes); nil: the same
-- search without the system, sequences whole on every rank.
local function search_of(ctx, figure)
  local own, without = schemes[ctx.system.id], not figure
  local cuts = own.candidates ~= nil
  local spec = degrees.axes(ctx, { tp = degrees.tensor(ctx), pp = degrees.depths(ctx),
    cp = cuts and ranks_of_a_sequence(ctx) or nil })
  spec.recompute = spec.recompute or own.recompute
  if without then
    spec.cp = { 1 }
  end
  spec.knobs = knobs_of(ctx, own.zero, cuts and figure or nil)
  spec.refine = cuts and not without and refinements(ctx, own) or nil
  spec.quiet = without
  function spec.stage(point, stage)
    stage.zero = point.knob.zero
    stage.cp = point.knob.cp or nil
    if stage.cp and stage.cp.scheme == "dsp" then
      set_dims(ctx, stage)
    end
    if without and own.without then
      stage[own.without] = nil
    end
  end
  function spec.fits(point)
    if cuts and not without and point.cp < 2 or not cuts and point.tp < 2 then
      return false, "no degrees leave two ranks for a sequence on these devices"
    end
    local why = cuts and not without and refusal(ctx, point)
    return not why, why or nil, 1
  end
  return spec
end

--- What the plan gains over the same search without the system, as its claim: `claimed` of a plan.
local function gain(ctx, point, verdict)
  if hv.stopping() then
    return nil
  end
  local _, _, whole = degrees.search(ctx, search_of(ctx))
  if not whole then
    return nil
  end
  local claimed = { terms = { without_s = whole.iteration_s } }
  if whole.iteration_s <= verdict.iteration_s then
    claimed.warnings = { ("no gain here: %.4g s with sequences of %d tokens split over %d ranks, "
      .. "%.4g s with whole ones"):format(verdict.iteration_s, ctx.job.sequence,
      math.max(point.cp, point.tp), whole.iteration_s) }
  end
  return claimed
end

local function plan(ctx)
  local refused = ctx.system.id == "dsp" and one_dimension(ctx)
  if refused then
    return nil, refused
  end
  local made, point, verdict = degrees.search(ctx, search_of(ctx, "time_s"))
  if not made then
    made, point, verdict = degrees.search(ctx, search_of(ctx, "bytes"))
  end
  if not made then
    return nil, point
  end
  made.claimed = gain(ctx, point, verdict)
  return made
end

--- Another strategy's plan with the system in it.
local function apply(made, ctx)
  if not schemes[ctx.system.id].candidates then
    return composed.split_norms(made, ctx)
  end
  local refused = ctx.system.id == "dsp" and one_dimension(ctx)
  if refused then
    return nil, refused
  end
  local zero = schemes[ctx.system.id].zero
  return composed.apply(made, ctx, function(stage, cp)
    stage.cp = cp
    if #zero == 1 then
      stage.zero = zero[1]
    end
    if cp.scheme == "dsp" then
      set_dims(ctx, stage)
    end
  end)
end

local cut = { "tp", "cp", "pp" }
local whole = { "tp", "pp" }

--- Options of striped attention: those of all, and the tile of the kernel.
local function with_tile()
  local options = degrees.options(cut)
  options[#options + 1] = { key = "tile", type = "integer", default = 128, min = 1, max = 65536,
    help = "queries and keys that the attention kernel works on at once" }
  return options
end

local common = { "degrees", "micro-batch", "recomputation", "ZeRO stage" }

--- What a system searches: its own decisions, then what all search.
local function searching(own)
  local list = {}
  for _, set in ipairs { own, common } do
    table.move(set, 1, #set, #list + 1, list)
  end
  return list
end

return {
  api = 1, kind = "sequence", needs = { model = "transformer" }, effort = "quick",
  options = degrees.options(cut),
  plan = plan, apply = apply, claim = paper.claim,
  systems = {
    {
      id = "rsa", title = "Ring self-attention", year = 2023, venue = "ACL",
      system = "Sequence Parallelism: Long Sequence Training from System Perspective",
      reference = "arXiv:2105.13120",
      summary = "Keys, then values go around a ring; the scores of a rank's tokens are kept whole.",
      sets = { ["cp.scheme"] = "rsa", ["cp.layout"] = "contiguous", zero = 0 },
      searches = { "degrees", "micro-batch", "recomputation" },
      verified = { "values forward", "values of both passes", "bytes of the scores" },
    },
    {
      id = "megatron_sp", title = "Megatron sequence parallelism", year = 2023, venue = "MLSys",
      system = "Reducing Activation Recomputation in Large Transformer Models",
      reference = "arXiv:2205.05198",
      options = degrees.options(whole, schemes.megatron_sp.recompute),
      summary = "Norms and dropout split over tensor-parallel ranks; attention cores repeated.",
      sets = { sequence_parallel = true, recompute = "selective" },
      searches = { "degrees", "micro-batch", "ZeRO stage" },
      verified = { "MB of a layer: GPT-3", "selective saves: GPT-3",
        "selective computes again: GPT-3", "MB of a layer: MT-NLG", "selective saves: MT-NLG",
        "selective computes again: MT-NLG" },
    },
    {
      id = "usp", title = "Unified sequence parallelism", year = 2024,
      system = "USP: A Unified Sequence Parallelism Approach for Long Context Generative AI",
      reference = "arXiv:2405.07719",
      summary = "All-to-alls of heads in groups, rings between them.",
      sets = { ["cp.scheme"] = "usp" },
      searches = searching { "heads x ring", "order of the ranks" },
      verified = { "1 x 8 ranks, 32 heads of keys [D]", "2 x 4 ranks, 32 heads of keys [D]",
        "4 x 2 ranks, 32 heads of keys [D]", "8 x 1 ranks, 32 heads of keys [D]",
        "1 x 8 ranks, 8 heads of keys [D]", "2 x 4 ranks, 8 heads of keys [D]",
        "4 x 2 ranks, 8 heads of keys [D]", "8 x 1 ranks, 8 heads of keys [D]" },
    },
    {
      id = "ulysses", title = "DeepSpeed-Ulysses", year = 2024, venue = "PODC",
      system = "DeepSpeed Ulysses: System Optimizations for Enabling Training of Extreme Long "
        .. "Sequence Transformer Models",
      reference = "arXiv:2309.14509",
      summary = "All-to-alls give each rank whole sequences of some heads, and take them back.",
      sets = { ["cp.scheme"] = "ulysses" },
      searches = searching {},
      verified = { "values over a link, and of tensor parallelism", "ratio", "values sent [D]",
        "more ranks than heads: refused" },
    },
    {
      id = "ring", title = "Ring attention", year = 2024, venue = "ICLR",
      system = "Ring Attention with Blockwise Transformers for Near-Infinite Context",
      reference = "arXiv:2310.01889",
      summary = "Keys and values go around a ring beside the blocks of attention.",
      sets = { ["cp.scheme"] = "ring", ["cp.layout"] = "contiguous" },
      searches = searching {},
      verified = { "tokens that hide a hop: A100, NVLink",
        "tokens that hide a hop: A100, InfiniBand", "tokens that hide a hop: TPUv4",
        "work of four ranks", "blocks of the slowest of each step",
        "blocks of the slowest of each step, zigzag" },
    },
    {
      id = "striped", title = "Striped attention", year = 2023,
      system = "Striped Attention: Faster Ring Attention for Causal Transformers",
      reference = "arXiv:2311.09431", options = with_tile(),
      summary = "A ring of ranks that have every n-th token, so that a causal mask is shared.",
      sets = { ["cp.scheme"] = "ring", ["cp.layout"] = "striped" },
      searches = searching {},
      verified = { "slowest of each step", "blocks of the slowest of each step",
        "work of four ranks" },
    },
    {
      id = "distflash", title = "DISTFLASHATTN", year = 2024, venue = "COLM",
      system = "DISTFLASHATTN: Distributed Memory-efficient Attention for Long-context LLMs "
        .. "Training",
      reference = "arXiv:2310.03294", options = degrees.options(cut, schemes.distflash.recompute),
      summary = "Early ranks of a causal ring help late ones; checkpoints behind attention.",
      sets = { ["cp.scheme"] = "distflash", ["cp.layout"] = "contiguous" },
      searches = { "degrees", "micro-batch", "none or all but the core recomputed", "ZeRO stage" },
      verified = { "steps and idle cells of 8 ranks, with and without helpers [D]",
        "values in the mean [D]" },
    },
    {
      id = "burst", title = "BurstAttention", year = 2024,
      system = "BurstAttention: An Efficient Distributed Attention Framework for Extremely Long "
        .. "Sequences",
      reference = "arXiv:2403.09347",
      summary = "Two nested rings by the network; backward, queries go around instead of keys.",
      sets = { ["cp.scheme"] = "ring", ["cp.layout"] = "zigzag", ["cp.backward"] = "q_do" },
      searches = searching { "inner ring" },
      verified = { "values of a backward hop, and of a ring's [D]", "ratio [D]",
        "GB of a backward pass [D]", "GB of a ring's backward pass [D]" },
    },
    {
      id = "loongtrain", title = "LoongTrain", year = 2024,
      system = "LoongTrain: Efficient Training of Long-Sequence LLMs with Head-Context Parallelism",
      reference = "arXiv:2406.18485", options = degrees.options(cut, schemes.loongtrain.recompute),
      summary = "Heads x context over two nested rings, placed head first or context first.",
      sets = { ["cp.scheme"] = "loongtrain" },
      searches = { "heads x ring", "window", "order of the ranks", "group of ZeRO", "degrees",
        "micro-batch", "none, all but the core or all recomputed", "ZeRO stage" },
      verified = { "ms of a hop in a node, and between nodes [D]", "ms of a single ring [D]",
        "ms of a double ring [D]" },
    },
    {
      id = "dsp", title = "Dynamic sequence parallelism", year = 2025, venue = "ICML",
      system = "DSP: Dynamic Sequence Parallelism for Multi-Dimensional Transformers",
      reference = "arXiv:2403.10266",
      summary = "Blocks are cut along the dimension of the tokens that they do not attend along.",
      sets = { ["cp.scheme"] = "dsp" },
      searches = searching { "dimension per block" },
      verified = { "values of a pair of blocks, and of all-to-alls of heads",
        "less than all-to-alls of heads, by the judge",
        "switches between four blocks, then with both ends" },
    },
    {
      id = "wallfacer", title = "WallFacer", year = 2024,
      system = "WallFacer: Harnessing Multi-dimensional Ring Parallelism for Efficient Long "
        .. "Sequence Model Training",
      reference = "arXiv:2407.00611",
      summary = "Teams gather their tokens, and pass keys of whole teams around a shorter ring.",
      sets = { ["cp.scheme"] = "wallfacer" },
      searches = searching { "team", "placement of teams" },
      verified = { "16 ranks in teams of 1 [D]", "16 ranks in teams of 2 [D]",
        "16 ranks in teams of 4 [D]", "64 ranks in teams of 1 [D]", "64 ranks in teams of 2 [D]",
        "64 ranks in teams of 4 [D]", "64 ranks in teams of 8 [D]" },
    },
  },
}
