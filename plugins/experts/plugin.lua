-- Experts that are placed as tokens come: four policies of one walk over the iterations of the
-- job's routing. Degrees, micro-batch and recomputation are searched for every expert degree,
-- without placements and with copies of the hottest experts, for which there must be memory; the
-- policy then decides from the tokens of the iteration before, and a plan records its decisions
-- (`moe.adapt` of kind record, or places where all iterations are alike). Of these plans, with
-- several values of what the publications leave to the user, and of those without any placement,
-- the judge's fastest is taken.
local engine = require "engine"
local mixture = require "mixture"
local paper = require "paper"

local interval = { key = "interval", type = "integer", default = 0, min = 0, max = 65536,
  help = "iterations over which a move must pay; 0: several are tried" }

local SEARCHED = { "degrees", "micro-batch", "recomputation" }

return {
  api = 1, kind = "experts", needs = { model = "layers" }, effort = "medium",
  claim = paper.claim,
  plan = function(ctx)
    return engine.plan(ctx, ctx.system.id)
  end,
  apply = function(made, ctx)
    return engine.apply(made, ctx, ctx.system.id)
  end,
  systems = {
    {
      id = "fastermoe", title = "FasterMoE", year = 2022, venue = "PPoPP",
      system = "FasterMoE: Modeling and Optimizing Training of Large-Scale Dynamic Pre-Trained "
        .. "Models",
      reference = "doi:10.1145/3503221.3508418",
      summary = "Shadows of the hottest experts on all ranks, sent anew in each iteration; chunks "
        .. "of the exchange beside the experts.",
      sets = { ["moe.all_to_all"] = "flat" },
      searches = { SEARCHED[1], SEARCHED[2], SEARCHED[3], "chunks", "shadows by iteration" },
      options = mixture.options { { key = "off_node", type = "number", default = 1, min = 0,
        max = 1, help = "share of a rank's tokens that its gate lets leave the node" } },
      verified = { "without shadows", "one shadow", "two shadows", "which is shadowed",
        "exchange in four groups", "one shadow by the judge" },
    },
    {
      id = "smartmoe", title = "SmartMoE", year = 2023, venue = "USENIX ATC",
      system = "SmartMoE: Efficiently Training Sparsely-Activated Models through Combining "
        .. "Offline and Online Parallelization",
      reference = "https://www.usenix.org/conference/atc23/presentation/zhai",
      summary = "Experts change places so that loads are even, as far as that pays for the move of "
        .. "weights and states.",
      sets = { ["moe.all_to_all"] = "flat" },
      searches = { SEARCHED[1], SEARCHED[2], SEARCHED[3], "places by iteration", "interval" },
      options = mixture.options { interval },
      verified = { "eight experts on four ranks", "places bind", "the optimum with places",
        "even loads by the judge", "moves carry their states" },
    },
    {
      id = "flexmoe", title = "FlexMoE", year = 2023, venue = "SIGMOD",
      system = "FlexMoE: Scaling Large-scale Sparse Pre-trained Model Training via Dynamic Device "
        .. "Placement",
      reference = "arXiv:2304.03946",
      summary = "Replicas of experts come, go and change ranks; what they send for gradients and "
        .. "moves counts (factors unverified).",
      sets = { ["moe.all_to_all"] = "flat" },
      searches = { SEARCHED[1], SEARCHED[2], SEARCHED[3], "replicas and places by iteration",
        "slots", "interval", "threshold" },
      options = mixture.options { interval,
        { key = "slots", type = "integer", default = 0, min = 0, max = 65536,
          help = "slots of a rank besides those of its share of experts; 0: several are tried" },
        { key = "threshold", type = "number", default = 0, min = 0, max = 1000,
          help = "busiest rank over the mean up to which places stay; 0: several are tried" } },
      verified = { "replicas", "most tokens of a replica", "the last replica stays",
        "FlexMoE, FasterMoE, FastMoE at a skew of 1.2", "alike without skew" },
    },
    {
      id = "prophet", title = "Prophet", year = 2023, venue = "CLUSTER",
      system = "Prophet: Fine-grained Load Balancing for Parallel Training of Large-scale MoE "
        .. "Models",
      reference = "doi:10.1109/CLUSTER52292.2023.00015",
      summary = "Copies of hot experts on the ranks that have most of their tokens, sent behind "
        .. "the layer before (factors unverified).",
      sets = { ["moe.all_to_all"] = "flat" },
      searches = { SEARCHED[1], SEARCHED[2], SEARCHED[3], "copies by iteration" },
      options = mixture.options(),
      verified = { "no copies [D]", "copies everywhere [D]", "all but one rank [D]",
        "all but two ranks [D]", "copies of some ranks through the judge" },
    },
  },
}
