-- SpecTrain (Chen et al., arXiv 1809.02839): prediction of weights in a pipeline that keeps no old
-- versions of them.
local spectrain = {}

--- The weight after `versions` more updates of learning rate `rate` by a momentum of `velocity`, in
-- the caller's units.
function spectrain.predicted(weight, rate, velocity, versions)
  return weight - versions * rate * velocity
end

return spectrain
