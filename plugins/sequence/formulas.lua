-- Closed forms of sequence parallelism, as the publications or their released code state them.
-- Values (elements) that one rank sends for one layer, and seconds. A shape q: { tokens = of a rank
-- (all its sequences), width = of its queries (heads times head size), keys = of its keys alone,
-- heads }; `n` ranks share a sequence.
local formulas = {}

--- Values of an all-to-all of queries, keys, values and outputs over u ranks; where there are fewer
-- heads of keys than ranks, keys are copied (Jacobs et al. 2023, section 3.2; Fang and Zhao 2024,
-- section 3). The same forward and backward.
function formulas.heads(q, u)
  local copies = math.max(1, u / (q.heads * q.keys / q.width))
  return (2 * q.width + 2 * copies * q.keys) * (u - 1) / u * q.tokens
end

--- The project's own count for links of full bandwidth: 4 N h / P, and of tensor parallelism with
-- split norms, 4 N h.
function formulas.heads_per_link(tokens, width, ranks)
  return 4 * tokens * width / ranks, 4 * tokens * width
end

--- Values of one hop of a ring of r ranks, forward and backward: keys and values; with the sums of
-- their gradients, or ("q_do") queries, gradients of outputs and of queries and two statistics per
-- head (Liu et al. 2023, section 3; Sun et al. 2024, section 3).
function formulas.hop(q, backward)
  local forward = 2 * q.keys * q.tokens
  if backward == "q_do" then
    return forward, (3 * q.width + 2 * q.heads) * q.tokens
  end
  return forward, 4 * q.keys * q.tokens
end

--- Values of a ring of r ranks: r - 1 hops ahead; backward what returns to its owner makes r hops.
function formulas.ring(q, r, backward)
  local hop, both = formulas.hop(q, backward)
  local behind = backward == "q_do" and q.width * q.tokens or hop
  return (r - 1) * hop, (r - 1) * (both - behind) + r * behind
end

--- Bytes that a backward pass of a ring of r ranks sends in 16 bits: keys and values r - 1 hops and
-- the sums of their gradients in 32 bits r hops; or queries and gradients of outputs with 32-bit
-- statistics and the gradients of queries behind them, r - 1 hops each (the return hop not
-- counted).
function formulas.ring_backward_bytes(q, r, backward)
  if backward == "q_do" then
    return (r - 1) * (3 * q.width * 2 + 2 * q.heads * 4) * q.tokens
  end
  return (r - 1) * 2 * q.keys * q.tokens * 2 + r * 2 * q.keys * q.tokens * 4
end

--- Values of ring self-attention: a ring of keys and one of values; backward both again, and an
-- all-reduce of their gradients (Li et al. 2021, section 3.2).
function formulas.self_attention(q, n)
  return 2 * (n - 1) * q.keys * q.tokens, 6 * (n - 1) * q.keys * q.tokens
end

--- Bytes of the scores of a rank, heads x own tokens x all tokens of a sequence, that are kept.
function formulas.scores_bytes(heads, own_tokens, sequence)
  return 2 * heads * own_tokens * sequence
end

--- Values in the mean over ranks of a causal ring with helpers: n (n - 1) / 2 pairs of ranks, each
-- 2 tensors forward and 4 backward (Li et al. 2023, section 3.1, and its code).
function formulas.helpers(q, n)
  local pairs_of_a_rank = (n - 1) / 2
  return pairs_of_a_rank * 2 * q.width * q.tokens, pairs_of_a_rank * 4 * q.width * q.tokens
end

--- Steps of n ranks with helpers and cells in which a rank idles; then of a plain causal ring.
function formulas.helper_steps(n)
  local idle = n % 2 == 0 and n // 2 or 0
  return n // 2 + 1, idle, n, n * (n - 1) // 2
end

--- Values of n ranks in teams of c, forward: three gathers and a scatter in the team, and a ring of
-- n / c² teams (derived from the n-body scheme of Liu et al. 2024; without the skew hop).
function formulas.teams(q, n, c)
  local inside = (c - 1) * (2 * q.width + 2 * q.keys) * q.tokens
  return inside + 2 * c * q.keys * q.tokens * (n / c ^ 2 - 1), inside
end

--- Values of a switch from one dimension of the tokens to another over n ranks, of which
-- (n - 1) / n leave the rank (Zhao et al. 2025, section 3).
function formulas.switch(values_of_a_rank, n)
  return values_of_a_rank * (n - 1) / n
end

--- Useful blocks of the last rank of a contiguous causal ring of n: what a synchronous ring waits
-- for.
function formulas.contiguous_blocks(n)
  return n - 0.5
end

--- Tokens of a rank from which on a hop hides behind its block: FLOP/s over bytes/s in 16 bits
-- (Liu et al. 2023, section 3.2).
function formulas.hidden_from(flops_per_s, bytes_per_s)
  return flops_per_s / bytes_per_s
end

--- Seconds of a ring of r ranks whose blocks take block_s and hops hop_s; with windows of w ranks
-- (1: none) the hop between windows takes far_s and has a window's time (Gu et al. 2024, section
-- 4.2).
function formulas.ring_s(r, block_s, hop_s, w, far_s)
  local step_s = math.max(block_s, hop_s)
  if not w or w <= 1 or w >= r then
    return (r - 1) * step_s + block_s
  end
  return (r / w - 1) * math.max(w * step_s, far_s) + (w - 1) * step_s + block_s
end

--- Bytes of activations of a layer: `kind` none | tp | sp | selective | full, t ranks, a heads
-- (Korthikanti et al. 2023, table 2); attention that keeps its scores.
function formulas.activation_bytes(kind, q, t)
  local scores = 5 * q.a * q.s / q.h
  local factor = {
    none = 34 + scores, tp = 10 + (24 + scores) / t, sp = (34 + scores) / t,
    selective = 34 / t, full = 2,
  }
  return q.s * q.b * q.h * factor[kind]
end

--- Share of activations that selective recomputation saves, and of a layer's forward FLOP that it
-- computes again.
function formulas.selective(q)
  local scores = 5 * q.a * q.s / q.h
  return scores / (34 + scores), q.s / (6 * q.h + q.s)
end

return formulas
