-- What the publications' own formulas say of a plan: formulas.lua on the times of its slowest
-- stage. All of them are of equal stages and leave out transfers, the gradients' reduction and the
-- step.
local formulas = require "formulas"
local links = require "links"
local prices = require "prices"

--- The slowest stage of a plan and the sizes that the formulas need: { f, b, w, pass_s, p, m, v }.
local function slowest(ctx, made)
  local replica = made.replicas[1]
  local one = { pass_s = 0, p = #replica.stages, m = replica.micro_batches, v = 1 }
  for s, stage in ipairs(replica.stages) do
    local pass = prices.stage(ctx, made, 1, s)
    if pass.forward_s + pass.backward_s > one.pass_s then
      one.f, one.w, one.pass_s = pass.forward_s, pass.weight_s, pass.forward_s + pass.backward_s
      one.b = pass.backward_s - pass.weight_s
    end
    one.v = type(stage.layers[1]) == "table" and #stage.layers or 1
  end
  return one
end

local LEAVES_OUT = "transfers, the reduction of gradients, the optimizer's step, unequal stages"

--- A claim of `seconds` by the formula, with its bubble as a share of the whole.
local function claimed(seconds, one, formula, leaves_out)
  return { iteration_s = seconds, terms = { bubble_s = seconds - one.m * one.pass_s },
    formula = formula, leaves_out = leaves_out or LEAVES_OUT }
end

local of = {}

function of.gpipe(one)
  return claimed((formulas.gpipe(one.p, one.m, one.pass_s)), one, "(M + K - 1) (F + B)")
end

function of.ptdp(one)
  local bubble = formulas.interleaved(one.p, one.m, one.v)
  return claimed(one.m * one.pass_s * (1 + bubble), one, "M (F + B) (1 + (p - 1) / (v M))")
end

function of.bfpp(one)
  local bubble = formulas.interleaved(one.p, one.m, one.v)
  return claimed(one.m * one.pass_s * (1 + bubble), one, "M (F + B) (1 + (p - 1) / (v M))",
    LEAVES_OUT .. ", the first chunk's gather and the last chunk's reduction")
end

function of.zb(one, made)
  local bubble_s = formulas.zero_bubble(made.schedule.name, one.p, one.f, one.b, one.w)
  return claimed(one.m * one.pass_s + bubble_s, one,
    "M (F + B + W) + bubble of the variant, longest span of a stage",
    LEAVES_OUT .. ", and the validation of gradients behind the step")
end

function of.chimera(one, made, ctx)
  local order = hv.sim.schedule("chimera", { ranks = one.p, micro_batches = one.m, order = false,
    options = { pipes = made.schedule.pipes, mode = made.schedule.mode },
    times = { f = one.f, b = one.b, w = one.w } })
  local kinds, reduce_s = prices.kinds(ctx), 0
  for _, stage in ipairs(made.replicas[1].stages) do
    reduce_s = math.max(reduce_s, prices.stage_sync(ctx, stage, kinds))
  end
  local claim = claimed(order.makespan + reduce_s, one,
    "passes on the critical path + the longest all-reduce of a stage",
    "transfers, the optimizer's step, unequal stages, reductions beside passes")
  claim.terms.all_reduce_s = reduce_s
  return claim
end

function of.hanayo(one)
  local bubble = formulas.hanayo(one.p, one.v // 2)
  return claimed(one.m * one.pass_s / (1 - bubble), one,
    "M (F + B) / (1 - (2p - 2) / (3pW + p - 1)), as recalled: unverified",
    LEAVES_OUT .. ", and more micro-batches than devices")
end

function of.ctrlmem(one, made)
  local bubble = formulas.controllable(made.schedule.name, one.p, one.m)
  return claimed(one.m * one.pass_s / (1 - bubble), one,
    "M (F + B + W) / (1 - bubble): nominal, for F = B = W; none for v-adaptive")
end

function of.seq1f1b(one, made)
  local k = #made.schedule.slices
  return claimed((one.m * k + one.p - 1) * one.pass_s / k, one, "(M k + p - 1) (F + B) / k",
    LEAVES_OUT .. ", and what kernels lose on short slices")
end

function of.bpipe(one, made, ctx)
  local replica = made.replicas[1]
  local moved_s = 0 -- beyond a slot: an eviction and a load of the first stage's activations
  local first, last = replica.stages[1], replica.stages[one.p]
  local bytes = prices.stage(ctx, made, 1, 1).memory.activation_bytes
  local seconds = 2 * links.seconds(ctx, ctx.cluster:ids(first.devices)[1],
    ctx.cluster:ids(last.devices)[1], bytes)
  if formulas.paired(one.p)[1] < one.p then
    moved_s = math.max(0, seconds - one.pass_s)
  end
  local claim = claimed((one.m + one.p - 1) * one.pass_s + one.m * moved_s, one,
    "(M + p - 1) (F + B) + M max(0, 2 A / BW - (F + B))")
  claim.terms.exposed_transfers_s = one.m * moved_s
  return claim
end

local paper = {}

--- The claim of the system that runs.
function paper.claim(made, ctx)
  made = prices.table_of(made)
  return of[ctx.system.id](slowest(ctx, made), made, ctx)
end

return paper
