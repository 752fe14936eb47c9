// Numbers, text and objects, each by the engine's own library.
function show() { print(Array.prototype.slice.call(arguments).join(' ')); }
show(0.1 + 0.2, 1 / 3, 1e21, 1e-7, 123456789012345680000, -0, NaN, 5e-324, 1.7976931348623157e308);
show((255).toString(16), (0.5).toString(2), (1234.5678).toFixed(2), (0.000123).toExponential(3), (1e21).toPrecision(5));
show(parseInt('0x1f'), parseInt('12abc'), parseFloat('3.25e2x'), Number(''), Number('0b1'), +'  12  ');
show(Math.sqrt(2), Math.pow(2, 0.5), Math.floor(-1.5), Math.round(2.5), Math.max(1, 3, 2), Math.atan2(1, 1));
show(7 % -3, -7 % 3, 1 << 31, -1 >>> 28, 5 & 3 | 8 ^ 2, ~5);
var words = 'the quick brown fox jumps over the lazy dog'.split(' ');
show(words.slice().sort().join(), words.map(function (w) { return w.length; }).reduce(function (a, b) { return a + b; }));
show('Hello'.replace(/l/g, '[$&]'), /(\d+)-(\d+)/.exec('from 12-34 on').slice(1), 'a1b22c333'.match(/\d+/g), 'a,b;c'.split(/[,;]/));
show('abcabc'.lastIndexOf('b'), 'ABC'.toLowerCase(), ' x '.trim() + '|', 'x'.charCodeAt(0), String.fromCharCode(72, 105));
var text = JSON.stringify({ a: [1, { b: 'c"\n' }, null], d: undefined, e: function () {}, f: 1.5 }, null, 1);
show(text);
show(JSON.stringify(JSON.parse(text, function (k, v) { return typeof v === 'number' ? v * 2 : v; })));
function Point(x, y) { this.x = x; this.y = y; }
Point.prototype.toString = function () { return '(' + this.x + ',' + this.y + ')'; };
show(new Point(1, 2), [new Point(3, 4), new Point(5, 6)]);
var made = [];
for (var i = 0; i < 5; i++) made.push((function (n) { return function () { return n * n; }; })(i));
show(made.map(function (f) { return f(); }));
var primes = [], sieve = [];
for (var p = 2; p < 300; p++) {
  if (sieve[p]) continue;
  primes.push(p);
  for (var q = p * p; q < 300; q += p) sieve[q] = true;
}
show(primes);
var keys = [];
for (var k in { one: 1, two: 2, 3: 3, four: 4 }) keys.push(k);
show(keys.sort(), Object.keys({ z: 1, y: 2 }).length, 'x' in { x: 0 }, delete {}.x);
show(new Date(0).getTime(), new Date(Date.UTC(2024, 1, 29, 12, 30, 15, 250)).toISOString());
label: for (var a = 0; a < 5; a++) for (var b = 0; b < 5; b++) { if (b === 3) continue label; if (a === 3) break label; }
show(a, b);
switch (3) { case 1: show('one'); case 3: show('three'); case 4: show('four'); break; default: show('none'); }
