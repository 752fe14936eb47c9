-- Errors through Lua and C, of all kinds, and coroutines: in Lua as it comes they are setjmp and longjmp.
local depth, rounds = F or 150, STEPS or 300
local function show(...) print(select('#', ...), ...) end

show(pcall(error))
show(pcall(error, 'text', 0))
show(pcall(error, {1}) == false)
show(select(2, pcall(error, setmetatable({}, {__tostring = function() return 'made' end}))) ~= nil)
show(pcall(function() local x = nil; return x.y end))
show(pcall(function() return 1 + {} end))
show(pcall(function() return #5 end))
show(pcall(function() return {} < {} end))
show(pcall(function() return ('x'):rep(-1) .. nil end))
show(pcall(string.rep, 'x', 1 << 60))
show(pcall(string.format, '%d', 1.5))
show(pcall(string.find, 'x', '[a'))
show(pcall(table.concat, {1, {}, 3}))
show(pcall(setmetatable, 1, {}))
show(pcall(next, {}, 'none'))
show(pcall(load, 5))
show(load('x ='))
show(load('return ...', 'chunk', 't', {})(7))
show(xpcall(function() error('inner', 0) end, function(m) return 'handled ' .. m end))
show(xpcall(function() error() end, function(m) error('again') end))
show(pcall(table.sort, {3, 1, 2, 5, 4}, function(a, b) error('compared', 0) end))
show(pcall(string.gsub, 'abc', '%w', function(c) if c == 'b' then error('at b', 0) end end))

local function down(n)
  if n == 0 then error('deep', 0) end
  local ok, m = pcall(down, n - 1)
  error(m .. (n % 50 == 0 and '.' or ''), 0)
end
show(pcall(down, depth))
if F then
  local function endless(n) return 1 + endless(n + 1) end
  local ok, m = pcall(endless, 0)
  show(ok, m:match('stack overflow'))
end

local caught = 0
for i = 1, rounds do
  local ok, v = pcall(function() if i % 3 == 0 then error(i, 0) end return i end)
  if not ok then caught = caught + v end
end
show(caught)

local co = coroutine.wrap(function(a)
  for i = 1, 3 do
    local ok, v = pcall(function() a = a + coroutine.yield(a) error('after a yield', 0) end)
    a = a + (ok and 1000 or #v)
  end
  error('the end', 0)
end)
show(co(1), co(10), co(100))
show(pcall(co, 1000))
show(pcall(co))
local threads = {}
for i = 1, 10 do threads[i] = coroutine.create(function() for k = 1, i do coroutine.yield(k * i) end error({i}) end) end
local total = 0
for round = 1, 12 do
  for i = 1, 10 do
    local ok, v = coroutine.resume(threads[i])
    if ok and v then total = total + v elseif type(v) == 'table' then total = total + 1000 * v[1] end
  end
end
show(total, coroutine.status(threads[1]))
do
  local log = {}
  local ok, m = pcall(function()
    local a <close> = setmetatable({}, {__close = function(_, e) log[#log + 1] = 'a ' .. tostring(e) end})
    local b <close> = setmetatable({}, {__close = function(_, e) log[#log + 1] = 'b ' .. tostring(e) error('closing', 0) end})
    error('body', 0)
  end)
  show(ok, m, table.concat(log, ', '))
end
goto done
::done::
