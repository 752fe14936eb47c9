-- Goes through much of Lua's C code, the same way each time: from C functions into the interpreter and back, by
-- callbacks, metamethods, coroutines, errors and finalizers.
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end

local words = {}
for i = 1, 60 do words[i] = string.format("%s-%03d-%g", ("x"):rep(i % 7), (i * 37) % 101, i / 3) end

local function sorted(less)
  local t = table.move(words, 1, #words, 1, {})
  table.sort(t, less)
  return table.concat(t, ",")
end

local vector = setmetatable({}, {
  __index = function(_, k) return k * 2 end,
  __call = function(_, a, b) return a .. b end,
  __len = function() return 3 end,
  __concat = function(a, b) return tostring(a) .. tostring(b) end,
  __tostring = function() return "vector" end,
  __close = function() collectgarbage("step") end,
  __lt = function() return true end,
})

local function generate(n)
  return coroutine.wrap(function()
    for i = 1, n do coroutine.yield(i, pcall(error, { code = i })) end
  end)
end

for round = 1, 6 do
  fib(12)
  sorted(function(a, b) return a > b end)
  sorted()
  local text = sorted():gsub("%w+", function(w) return w:upper():reverse() end)
  text = text:gsub("(%d+)", { ["001"] = "one" }):gsub("x+", "%0%0")
  for k, v in text:gmatch("(%w+)-(%w+)") do assert(k and v) end
  assert(string.find(text, "([%w-]+),%1") == nil)
  for i, ok, e in generate(5) do assert(not ok and e.code == i) end
  local f = assert(load("local a, b = ... ; return function(c) return a + b * c end", "=chunk", "t"))
  assert(f(1, 2)(3) == 7)
  assert(load(string.dump(f))(1, 2)(3) == 7)
  local ok, message = xpcall(function() local x = nil; return x.field end, debug.traceback)
  assert(not ok and message:find("index"))
  do local closed <close> = vector end
  assert(vector[4] == 8 and vector(1, 2) == "12" and #vector == 3 and vector < setmetatable({}, getmetatable(vector)))
  assert(tostring(vector) .. vector == "vectorvector")
  local pack = string.pack("<i4zs2d", round, "zero", "counted", 1.5)
  assert(select(2, string.unpack("<i4zs2d", pack)) == "zero")
  for _ = 1, 40 do setmetatable({}, { __gc = function() words[1] = words[1] end }) end
  collectgarbage()
  assert(utf8.char(0x20ac, 0x1f600):len() == 7 and utf8.len("äöü") == 3)
  assert(os.date("!%Y", 0) == "1970" and math.tointeger(8.0) == 8)
end
print(fib(15), #sorted())
