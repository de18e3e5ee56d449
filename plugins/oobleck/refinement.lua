-- Search for the best state of a product of choices, one choice per place.
local search = require "search"

local refinement = {}

local function copy_of(list)
  return table.move(list, 1, #list, 1, {})
end

--- The best of all states.
local function exhaustive(lists, best, try, stopping)
  for state in search.product(lists) do
    if stopping() then
      break
    end
    best = try(copy_of(state), best) or best
  end
  return best
end

--- The best state that coordinate descent finds: all choices of one place after the other, until no
-- change improves.
local function by_coordinates(lists, best, try, stopping)
  local improved = true
  while improved do
    improved = false
    for i, choices in ipairs(lists) do
      for _, choice in ipairs(choices) do
        if stopping() then
          return best
        end
        local state = copy_of(best.state)
        state[i] = choice
        local found = choice ~= best.state[i] and try(state, best)
        if found then
          best = found
          improved = true
        end
      end
    end
  end
  return best
end

--- The best result from the start `best` on: of all states where there are at most `most`, else by
-- coordinate descent. `lists` are the choices of each place; try(state, best) gives a result {
-- state, … } that is better than `best`, or nil; stopping() ends the search.
function refinement.best(lists, best, most, try, stopping)
  local n_states = 1
  for _, choices in ipairs(lists) do
    n_states = n_states * #choices
  end
  if n_states <= most then
    return exhaustive(lists, best, try, stopping)
  end
  return by_coordinates(lists, best, try, stopping)
end

return refinement
