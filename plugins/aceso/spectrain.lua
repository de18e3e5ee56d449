-- SpecTrain (Chen et al., arXiv 1809.02839): prediction of weights in a pipeline that keeps no old
-- versions.
local spectrain = {}

--- The weight that a stage uses in place of the one `versions` updates ahead: it moves `weight`
-- along the momentum. `rate` is the learning rate, `velocity` that of the momentum; any unit, the
-- caller's.
function spectrain.predicted(weight, rate, velocity, versions)
  return weight - versions * rate * velocity
end

return spectrain
