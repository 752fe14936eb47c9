-- Floating point: the planets of the outer solar system, and the mathematics library.
local bodies = {
  {0, 0, 0, 0, 0, 0, 39.47841760435743},
  {4.84143144246472, -1.16032004402743, -0.10362204447112, 0.60632639299583, 2.81198684491627, -0.02521836165988, 0.03769367487038},
  {8.34336671824458, 4.12479856412430, -0.40352341711432, -1.01077434617879, 1.82566237123041, 0.00841576137658, 0.01128632613196},
  {12.8943695621391, -15.1111514016986, -0.22330757889265, 1.08279100644153, 0.86871301816960, -0.01083263740136, 0.00172372405705},
  {15.3796971148509, -25.9193146099879, 0.17925877295037, 0.97909073224389, 0.59469899864767, -0.03475595555078, 0.00203368686992},
}
local function energy()
  local e = 0
  for i, a in ipairs(bodies) do
    e = e + a[7] * (a[4]^2 + a[5]^2 + a[6]^2) / 2
    for j = i + 1, #bodies do
      local b = bodies[j]
      e = e - a[7] * b[7] / math.sqrt((a[1] - b[1])^2 + (a[2] - b[2])^2 + (a[3] - b[3])^2)
    end
  end
  return e
end
print(string.format("%.9f", energy()))
for _ = 1, STEPS or 50 do
  for i, a in ipairs(bodies) do
    for j = i + 1, #bodies do
      local b = bodies[j]
      local dx, dy, dz = a[1] - b[1], a[2] - b[2], a[3] - b[3]
      local d2 = dx * dx + dy * dy + dz * dz
      local mag = 0.01 / (d2 * math.sqrt(d2))
      a[4], a[5], a[6] = a[4] - dx * b[7] * mag, a[5] - dy * b[7] * mag, a[6] - dz * b[7] * mag
      b[4], b[5], b[6] = b[4] + dx * a[7] * mag, b[5] + dy * a[7] * mag, b[6] + dz * a[7] * mag
    end
  end
  for _, a in ipairs(bodies) do
    a[1], a[2], a[3] = a[1] + 0.01 * a[4], a[2] + 0.01 * a[5], a[3] + 0.01 * a[6]
  end
end
print(string.format("%.9f", energy()))
print(math.floor(-2.5), math.ceil(-2.5), math.fmod(-7, 3), math.fmod(7.5, 2), math.abs(-3), math.tointeger(4.0), math.ult(1, -1), math.modf(-3.7))
