-- When the gradients of a layout are reduced.
local reduction = {}

--- Whether gradients are reduced beside the backward passes, from the options `overlap` and `zero`
-- and the job's precision. "auto" follows the software: Megatron-LM and DeepSpeed's pipeline engine
-- reduced after the last backward pass in their fp16 years; under ZeRO 3 gradients are always
-- reduced layer by layer.
function reduction.overlaps(options, job)
  if options.overlap == "auto" then
    return job.precision ~= "fp16" or options.zero == 3
  end
  return options.overlap == "yes"
end

return reduction
