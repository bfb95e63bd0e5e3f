-- One bucket that several gateways share: see src/admission/bucket.rs, whose twin it is.
-- KEYS: the bucket. ARGV: tokens of a whole period, its microseconds, the amount, what the asker believes to be
-- left in thousandths, and "take" or "charge". Gives whether it was granted, thousandths left, microseconds to wait, and
-- the number of this decision, since answers may be read in another order than they were given in.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local count, per, amount = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local held = redis.call('HMGET', KEYS[1], 'left', 'at', 'seq')
local left, at, seq = tonumber(held[1]), tonumber(held[2]), (tonumber(held[3]) or 0) + 1
if not left then
  -- Full and forgotten, or lost with a restart: what the asker knows holds. A charge that it knows of is in there.
  if ARGV[5] == 'charge' then return {1, 0, 0, 0} end
  left, at = tonumber(ARGV[4]) / 1000, now
end
left = math.min(count, left + math.max(0, now - at) * count / per)
local granted, wait = 1, 0
if ARGV[5] == 'take' and left < amount then
  granted, wait = 0, math.ceil((amount - left) * per / count)
else
  left = math.min(count, left - amount)
end
-- A clock that was set back fills nothing until it has caught up.
redis.call('HSET', KEYS[1], 'left', string.format('%.17g', left), 'at', string.format('%.0f', math.max(now, at)),
  'seq', string.format('%.0f', seq))
-- When it is full again there is nothing to remember.
redis.call('PEXPIRE', KEYS[1], math.ceil((count - left) * per / count / 1000) + 1000)
return {granted, math.floor(left * 1000), wait, seq}
