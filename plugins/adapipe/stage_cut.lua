-- The outer choice of AdaPipe: stage boundaries by a program from the last stage to the first that
-- carries warm-up, ending and steady time of 1F1B. The recurrences are derived here (the paper's
-- are not printed word for word): with F and B of stage s of p, W(s) = max((p - s + 1) F, F + W(s +
-- 1) + B(s + 1)) first forward to first backward pass E(s) = max((p - s + 1) B, B + E(s + 1) + F(s
-- + 1)) first of the last backward passes to the end M(s) = max(F + B, M(s + 1)), T = W(1) + E(1) +
-- (m - p) M(1) A stage sees of those behind it W + B, E + F and M only, and its own times grow with
-- them: entries dominated in these three are left out, and the program is exact.
local stage_cut = {}

--- Time of stages { forward_s, backward_s } by the recurrences.
function stage_cut.seconds(stages, micro_batches)
  local p = #stages
  local after
  for s = p, 1, -1 do
    after = stage_cut.before(stages[s], after, p - s + 1)
  end
  return after.W + after.E + (micro_batches - p) * after.M
end

--- The entry of a stage with `after` behind it, `alive` = p - s + 1.
function stage_cut.before(stage, after, alive)
  local F, B = stage.forward_s, stage.backward_s
  local entry = { F = F, B = B, W = alive * F, E = alive * B, M = F + B, after = after,
    stage = stage }
  if after then
    entry.W = math.max(entry.W, F + after.W + after.B)
    entry.E = math.max(entry.E, B + after.E + after.F)
    entry.M = math.max(entry.M, after.M)
  end
  return entry
end

--- Is a no worse than b in all that matters to the stages before?
local function dominates(a, b)
  return a.W + a.B <= b.W + b.B and a.E + a.F <= b.E + b.F and a.M <= b.M
end

--- Adds an entry to a front without dominated ones.
local function add(front, entry)
  for _, other in ipairs(front) do
    if dominates(other, entry) then
      return
    end
  end
  local n = 0
  for i, other in ipairs(front) do
    if not dominates(entry, other) then
      n = n + 1
      front[n] = other
    end
    if n < i then
      front[i] = nil
    end
  end
  front[n + 1] = entry
end

--- Cuts n layers into p stages for m >= p micro-batches: price(first, last, s) = { forward_s,
-- backward_s, … } or nil where the run does not fit, longest_s = runs that take longer per
-- micro-batch lead to no better plan (none). Returns { seconds, stages = list of what price gave,
-- with first and last }, or nil.
function stage_cut.best(n, p, m, price, longest_s)
  local fronts = { [n + 1] = { false } } -- by first layer of the stages that follow
  for s = p, 1, -1 do
    local next_fronts = {}
    for first = s == 1 and 1 or s, s == 1 and 1 or n - p + s do
      local front = {}
      for last = first, s == p and n or n - p + s do
        local rest = fronts[last + 1]
        local stage = rest and (s < p or last == n) and price(first, last, s)
        if stage and stage.forward_s + stage.backward_s <= (longest_s or math.huge) then
          for _, after in ipairs(rest) do
            local entry = stage_cut.before(stage, after or nil, p - s + 1)
            entry.first, entry.last = first, last
            if s > 1 then
              add(front, entry)
            else
              front[#front + 1] = entry
            end
          end
        end
      end
      next_fronts[first] = #front > 0 and front or nil
    end
    fronts = next_fronts
  end
  local best
  for _, entry in ipairs(fronts[1] or {}) do
    local seconds = entry.W + entry.E + (m - p) * entry.M
    if not best or seconds < best.seconds then
      best = { seconds = seconds, entry = entry }
    end
  end
  if not best then
    return nil
  end
  best.stages = {}
  local entry = best.entry
  while entry do
    local stage = entry.stage
    best.stages[#best.stages + 1] = { first = entry.first, last = entry.last,
      forward_s = stage.forward_s, backward_s = stage.backward_s, kept = stage.kept }
    entry = entry.after
  end
  return best
end

return stage_cut
