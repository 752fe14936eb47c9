-- Integers, loops and tables with an array part.
local n = N or 2000
local composite = {}
local count, sum = 0, 0
for i = 2, n do
  if not composite[i] then
    count, sum = count + 1, sum + i
    for j = i * i, n, i do composite[j] = true end
  end
end
print(n, count, sum, sum // count, sum % 97, -7 // 2, -7 % 3, 7 & 12, 7 | 8, 5 ~ 1, ~0, 1 << 62, 1 >> 1, 3 // 0.0)
