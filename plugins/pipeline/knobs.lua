-- What each system tries at a point of the degrees: `of(point, about)` gives a list of knobs {
-- schedule = as in a plan, zero, unit, paired }, or nil and the reason; `chunks` = chunks per rank
-- that are tried; `refine` = schedules tried on the best plan; `about` = { slices = function(k,
-- multiple), node_size }.

--- Points with one schedule.
local function only(name)
  return function()
    return { { schedule = { name = name } } }
  end
end

local knobs = {}

knobs.gpipe = { of = only "gpipe" }

knobs.ptdp = {
  chunks = { 1, 2, 3, 4, 6, 8 },
  of = function(point)
    if point.chunks == 1 then
      return { { schedule = { name = "1f1b" } } }
    elseif point.micro_batches % point.pp ~= 0 then
      return nil, "interleaving needs micro-batches in multiples of the stages"
    end
    return { { schedule = { name = "interleaved" } } }
  end,
}

knobs.zb = {
  chunks = { 1, 2 },
  of = function(point)
    if point.chunks == 2 then
      return { { schedule = { name = "zb-v" } },
        { schedule = { name = "zb-v", variant = "heuristic" } } }
    end
    local list = {}
    for i, name in ipairs { "zb-h1", "zb-1p", "zb-h2", "zb-2p" } do
      list[i] = { schedule = { name = name } }
    end
    return list
  end,
}

knobs.chimera = {
  of = function(point)
    if point.pp % 2 ~= 0 then
      return nil, "pipelines in both directions need an even number of stages"
    end
    local list = {}
    for _, pipes in ipairs { 2, 4, 8 } do
      for _, mode in ipairs { "direct", "doubling", "halving" } do
        local fits = point.pp % pipes == 0
          and (mode == "direct" or point.micro_batches > point.pp)
          and (mode ~= "doubling" or point.micro_batches % 2 == 0)
        if fits then
          list[#list + 1] = { schedule = { name = "chimera", pipes = pipes, mode = mode } }
        end
      end
    end
    return list
  end,
}

knobs.hanayo = {
  chunks = { 2, 4, 8 },
  of = function(point)
    return { { schedule = { name = "hanayo", waves = point.chunks // 2 } } }
  end,
}

knobs.ctrlmem = {
  chunks = { 2 },
  of = function()
    local list = {}
    for i, name in ipairs { "v-min", "v-half", "zb-v" } do
      list[i] = { schedule = { name = name } }
    end
    return list
  end,
  -- its search takes long: tried on the best plan, with limits from v-half's to zb-v's
  refine = function(point)
    local list = {}
    for part = 3, 6 do
      list[#list + 1] = { name = "v-adaptive", memory = math.ceil(point.pp * part / 3) }
    end
    return list
  end,
}

knobs.bfpp = {
  chunks = { 1, 2, 4, 8 },
  of = function(point)
    if point.micro_batches < point.pp then
      return nil, "a chunk needs as many micro-batches as there are stages"
    end
    local list = { { schedule = { name = "breadth-first" } } }
    if point.dp > 1 then
      list[2] = { schedule = { name = "breadth-first" }, zero = 1 }
      list[3] = { schedule = { name = "breadth-first" }, zero = 3, unit = "chunk" }
    end
    return list
  end,
}

knobs.seq1f1b = {
  of = function(point, about)
    local list = {}
    for _, k in ipairs { 2, 4, 8 } do
      local slices = about.slices(k, point.tp)
      if slices then
        list[#list + 1] = { schedule = { name = "seq1f1b", slices = slices } }
      end
    end
    if #list == 0 then
      return nil, "the sequence is too short to be cut"
    end
    return list
  end,
}

knobs.bpipe = {
  of = function(point, about)
    if point.pp % 2 ~= 0 then
      return nil, "pairs need an even number of stages"
    elseif about.node_size % (2 * point.tp) ~= 0 then
      return nil, "a node has no room for both stages of a pair"
    end
    return { { schedule = { name = "bpipe" }, paired = true } }
  end,
}

--- The devices of a stage of so many ranks: `paired` puts stage s and p + 1 - s side by side, with
-- replicas of the whole pipeline one behind the other; else stages are.
function knobs.place(point, s)
  local ids, size = {}, point.tp * point.dp
  for i = 1, size do
    local at = (s - 1) * size + i
    if point.knob.paired then
      local replica, rank = (i - 1) // point.tp, (i - 1) % point.tp
      local seat = s <= point.pp // 2 and 2 * (s - 1) or 2 * (point.pp - s) + 1
      at = (replica * point.pp + seat) * point.tp + rank + 1
    end
    ids[i] = point.ids[at]
  end
  return ids
end

return knobs
