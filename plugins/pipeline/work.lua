-- Work of a run of tokens in a sequence: FLOP grow with its length and with the tokens before it.
local work = {}

--- FLOP of `tokens` tokens behind `context` others through layer l's attention.
local function attention(kind, l, tokens, context)
  return hv.cost.op { op = "attention", layer = l, device = kind, tokens = tokens,
    context = context }.flops
end

--- lin and quad of the whole model: x tokens at the end of `pre` take lin · x + quad · (pre · x -
-- x² / 2). The model's layers have operators (are not measured).
function work.of_model(ctx)
  local kind, s = ctx.cluster:groups()[1].kind, ctx.job.sequence // 2
  local lin, quad = 0, 0
  for l = 1, ctx.model.n_layers do
    local first, second = attention(kind, l, s, 0), attention(kind, l, s, s)
    local per_pair = (second - first) / s ^ 2
    quad = quad + per_pair
    lin = lin + first / s - per_pair * s / 2
      + hv.cost.op { op = "ffn", layer = l, device = kind, tokens = s }.flops / s
  end
  return lin + hv.cost.op { op = "head", device = kind, tokens = s }.flops / s, quad
end

return work
