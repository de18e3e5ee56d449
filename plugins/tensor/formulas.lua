-- Volumes of one transformer layer under tensor parallelism, as the publications state them: values
-- (not bytes) that a rank sends or receives. `x` = { b, s, h }: sequences, length, width; the
-- feed-forward part is 4 h wide. Inputs of the layer's four products have 7 b s h values, their
-- outputs 9 b s h, their weights 12 h².
local formulas = {}

local function tokens(x)
  return x.b * x.s * x.h
end

local function weights(x)
  return 12 * x.h ^ 2
end

--- Two all-reduces of the activations each way over p ranks (Shoeybi et al. 2019, section 3).
function formulas.lines(x, p)
  return 4 * (p - 1) / p * tokens(x)
end

--- Activations of a layer that stay for the backward pass, in bytes of 16-bit values: the part that
-- t ranks do not split, and the part that they do (Korthikanti et al. 2022, section 4.2).
function formulas.saved_bytes(x, heads, t)
  return tokens(x) * (10 + 24 / t + 5 * heads * x.s / (x.h * t))
end

--- Forward values on a grid of p = q x q ranks with broadcasts along trees (Xu et al. 2021,
-- table 1), those of the backward pass with recomputation, and forward ones that a rank receives
-- where panels are passed on in pieces.
function formulas.grid(x, p)
  local q = math.sqrt(p)
  local steps = math.log(p, 2) / (2 * q)
  return steps * (7 * tokens(x) + weights(x)), steps * (21 * tokens(x) + 3 * weights(x)),
    formulas.grids(x, q, 1)
end

--- Forward values that a rank receives in d grids of q x q ranks, and the reduction of the weights'
-- gradients between the grids, once per iteration (Wang et al. 2021, section 3).
function formulas.grids(x, q, d)
  local forward = (q - 1) / q ^ 2 * (7 * tokens(x) / d + weights(x))
  return forward, 2 * (d - 1) / d * weights(x) / q ^ 2
end

--- Forward values on a cube of q x q x q ranks; as many in the backward pass, and what gathering
-- inputs and weights again adds to it (Bian et al. 2021, section 3).
function formulas.cube(x, q)
  local part = (q - 1) / q ^ 3
  return part * (16 * tokens(x) + weights(x)), part * (7 * tokens(x) + weights(x))
end

--- Weights of a layer on a rank of d grids of q x q ranks, or of a cube (d = q).
function formulas.weights_held(x, q, cube)
  return weights(x) / (cube and q ^ 3 or q ^ 2)
end

--- Transfers of a product on p processors: Cannon's, 2.5d, and grids as deep as they are wide (Wang
-- et al. 2021, section 3.1).
function formulas.transfers(p)
  return 2 * p ^ 1.5 - 2 * p ^ 0.5, 2 * p - 2 * p ^ (1 / 3), 2 * p ^ (2 / 3)
end

return formulas
