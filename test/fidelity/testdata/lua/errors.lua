-- Errors, which Lua raises by longjmp, and coroutines.
print(pcall(error, "x"))
print(select("#", pcall(error)))
print(select(2, pcall(error, { code = 2 })).code)
print(select(2, pcall(function() local a = nil; return a.b end)))
local co = coroutine.wrap(function(a)
  for i = 1, 3 do a = a + coroutine.yield(a) end
  error("end")
end)
print(co(1), co(2), co(3))
print(pcall(co, 4))
print(pcall(co))
print(xpcall(function() error("deep") end, function(m) return "handled " .. m end))
local closing = setmetatable({}, { __close = function(_, e) print("closed", e) end })
print(pcall(function() local x <close> = closing; error("leaving") end))
local function f(n)
  if n == 0 then error("bottom", 0) end
  local _, e = pcall(f, n - 1)
  error(e .. n, 0)
end
print(pcall(f, depth or 20))
print(pcall(string.rep, "x", 1 << 40))
print(load("x = = 1"))
print(pcall(table.sort, { 1, 2, 3, 4, 5 }, function() error("in sort") end))
print(pcall(string.gsub, "hello world", "(%w+)", function(w) if #w > 3 then error(w) end end))
local within
within = function() return pcall(within) end -- as deep as Lua lets C go
print(select("#", within()))
local function sum(n) return n == 0 and 0 or n + sum(n - 1) end
print(pcall(sum, 500))
local caught = 0
for i = 1, times or 300 do
  if not pcall(function() if i % 3 == 0 then error() end end) then caught = caught + 1 end
end
print(caught)
