-- Helix's shipped cluster: 4 A100, 8 L4 and 12 T4 serve Llama-2-70B (Helix-ASPLOS25 148b733,
-- examples/simulation).
local LAYERS = 80
local TOKEN_BYTES = 2 -- of a token on its way to the first and from the last node
local HOP_BYTES = 16386 -- of a token with its activation between nodes
local LINK_BYTES_PER_S = 1e9

-- tokens per second of a node by the number of layers it holds
local RATES = {
  A100 = {
    23833.869866324374, 11384.25466586348, 7201.412420877685, 5264.623373853506,
    4096.654503856875, 3124.1430780258565, 2595.6792854008463, 2045.6410473362616,
    1754.3818895649893, 1392.6348207247768, 1212.1768454598214, 952.1073984850639,
  },
  L4 = {
    7557.863040102793, 3625.714747409144, 2171.878169270482, 1476.084625195014,
    1017.5727965236067, 747.7853772615942, 531.7025845523623,
  },
  T4 = {
    5709.207939642649, 2434.367182876655, 1347.8665242379518, 757.8531857227841,
  },
}
local KINDS = { "A100", "L4", "T4" }

-- its placement: kind, layers before the first one, last layer of every node
local PLACEMENT = {
  { 2, 7, 11 }, { 3, 34, 38 }, { 3, 23, 26 }, { 2, 53, 60 }, { 3, 77, 80 }, { 2, 53, 60 },
  { 1, 68, 77 }, { 3, 26, 30 }, { 3, 30, 34 }, { 1, 37, 49 }, { 1, 60, 68 }, { 2, 42, 49 },
  { 3, 33, 37 }, { 3, 38, 42 }, { 2, 3, 7 }, { 3, 0, 3 }, { 3, 11, 14 }, { 1, 14, 23 },
  { 2, 46, 53 }, { 3, 42, 46 }, { 3, 76, 77 }, { 2, 53, 60 }, { 3, 49, 53 }, { 2, 26, 33 },
}

-- its links, from and to a node; 0: source, 25: sink
local LINKS = {
  { 0, 16 }, { 5, 25 }, { 15, 1 }, { 1, 17 }, { 9, 2 }, { 2, 14 }, { 3, 8 }, { 18, 3 },
  { 3, 24 }, { 4, 11 }, { 19, 4 }, { 23, 4 }, { 7, 5 }, { 6, 11 }, { 19, 6 }, { 23, 6 },
  { 11, 7 }, { 8, 9 }, { 13, 10 }, { 10, 23 }, { 22, 11 }, { 14, 12 }, { 12, 23 }, { 24, 13 },
  { 14, 20 }, { 16, 15 }, { 17, 18 }, { 20, 19 }, { 19, 22 }, { 23, 22 },
}

--- The instance for token_flow, and the runs of its placement.
return function()
  local q, runs = { layers = LAYERS, rates = {} }, {}
  local allowed, sink = {}, #PLACEMENT + 1
  for _, link in ipairs(LINKS) do
    local from, to = link[1], link[2]
    local bytes = HOP_BYTES
    if from == 0 or to == sink then
      bytes = TOKEN_BYTES
    end
    allowed[from * 100 + to] = LINK_BYTES_PER_S / bytes
  end
  for i, place in ipairs(PLACEMENT) do
    q.rates[i] = RATES[KINDS[place[1]]]
    runs[i] = { place[2], place[3] }
  end
  function q.link(i, j)
    return allowed[i * 100 + j] or 0
  end
  return q, runs
end
