-- Times that deviate at random: normal draws, and the mean makespan of an order under them.
local opportunistic = require "opportunistic"

local jitter = {}

local PASS_DIVISOR = 5 -- the deviation of a message is this many times that of a pass

--- A draw of mean 0 and deviation 1 from two uniform draws (Box and Muller).
function jitter.normal()
  local radius = math.sqrt(-2 * math.log(1 - hv.random()))
  return radius * math.cos(2 * math.pi * hv.random())
end

--- A normal draw, drawn anew while it is below `least`.
function jitter.at_least(mean, deviation, least)
  local drawn
  repeat
    drawn = mean + deviation * jitter.normal()
  until drawn >= least
  return drawn
end

--- The mean makespan of `plays` plays of an order: messages take longer by the absolute value of a
-- draw of `deviation`, passes deviate by a fifth of it to both sides. `times` is { f, b = list per
-- rank, hop = list per pair of neighbours }, in the unit of `deviation`.
function jitter.mean_makespan(order, times, deviation, plays)
  local sum = 0
  for _ = 1, plays do
    sum = sum + opportunistic.play(order, {
      time = function(kind, rank)
        local mean = kind == "BW" and times.b[rank] or times.f[rank]
        return math.max(0, mean + deviation / PASS_DIVISOR * jitter.normal())
      end,
      hop = function(from, to)
        return times.hop[math.min(from, to)] + math.abs(deviation * jitter.normal())
      end })
  end
  return sum / plays
end

return jitter
