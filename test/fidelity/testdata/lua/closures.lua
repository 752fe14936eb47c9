-- Closures, metatables, recursion, varargs, goto, integer and float keys; garbage is collected on the way.
local function counter(step)
  local n = 0
  return function() n = n + step return n end
end
local a, b = counter(1), counter(10)
a() a() b()
print(a(), b())

local Vector = {}
Vector.__index = Vector
Vector.__add = function(p, q) return setmetatable({x = p.x + q.x, y = p.y + q.y}, Vector) end
Vector.__eq = function(p, q) return p.x == q.x and p.y == q.y end
Vector.__lt = function(p, q) return p.x < q.x end
Vector.__call = function(p, k) return p.x * k + p.y end
Vector.__tostring = function(p) return "(" .. p.x .. "," .. p.y .. ")" end
Vector.__len = function() return 2 end
Vector.__close = function() print("closed") end
local p, q = setmetatable({x = 1, y = 2}, Vector), setmetatable({x = 3.5, y = 4}, Vector)
print(tostring(p + q), p == q, p < q, p(10), #p)
do local guard <close> = p end

local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
print(fib(F or 15))
local function sum(...)
  local s = 0
  for _, v in ipairs({...}) do s = s + v end
  return s, select("#", ...)
end
print(sum(1, 2, 3.5))

local memo = setmetatable({}, {__mode = "k", __index = function(t, k) local v = k * k t[k] = v return v end})
for i = 1, 50 do local _ = memo[i % 7] end
local keys = {}
for k in pairs(memo) do keys[#keys + 1] = k end
table.sort(keys)
print(table.concat(keys, ","))

local garbage = {}
for i = 1, G or 300 do garbage[i % 50 + 1] = {tostring(i), {i}, function() return i end} end
collectgarbage()
print(#garbage, garbage[1][1], garbage[50][3]())
for i = 1, 3 do
  for j = 1, 3 do
    if j == 2 then goto continue end
    io.write(i, ":", j, " ")
    ::continue::
  end
end
print()
print(load("local x <const> = 3; return x * ...")(14))
