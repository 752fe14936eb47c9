-- Patterns, formats, sorting, and conversions in both directions.
local words = {}
for w in ([[the quick brown fox jumps over the lazy dog while the other foxes sleep]]):gmatch("%a+") do
  words[#words + 1] = w
end
table.sort(words)
print(table.concat(words, " "))
table.sort(words, function(a, b) return #a > #b or #a == #b and a < b end)
print(table.concat(words, " "))
print(("hello world"):gsub("o", "0"), ("x=1, y=22"):gsub("(%w+)=(%w+)", "%2=%1"), ("abc"):rep(3, "-"), ("abc"):reverse():upper())
print(string.format("%5d|%-8s|%08.3f|%x|%q|%g|%e|%a|%c|%i%%", 42, "ab", 3.14159, 255, "a\n\"b\"\0c", 1e20, 12345.678, 1.5, 65, 7))
print(tostring(1 / 3), 1e15, 1e16, 2^53, -0.0, 1 / 0, -1 / 0, 100 // 1e-3, tonumber("0x1p4"), tonumber("  12  "), tonumber("1e"), tonumber("z", 36))
print(math.maxinteger, math.mininteger, math.maxinteger + 1 == math.mininteger, 3 | 0, math.type(3), math.type(3.0), 7 // 2.0, 5.5 % -2)
print(string.pack("<i4d", 7, 2.5):byte(1, -1))
print(utf8.char(228, 8364, 128512), #utf8.char(8364), utf8.codepoint("ä", 1))
for k, v in string.gmatch("a=1, b=2, c=3", "(%w+)=(%w+)") do io.write(k, ":", v, " ") end
print(select("#", 1, nil, 3), select(2, "a", "b", "c"))
