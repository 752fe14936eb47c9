// Errors that are thrown through functions of the script and of the engine, which in both engines is longjmp.
function show() { print(Array.prototype.slice.call(arguments).join(' ')); }
function attempt(name, f) {
  try {
    show(name, 'gave', f());
  } catch (e) {
    show(name, 'threw', e instanceof Error ? e.name : typeof e + ' ' + e);
  }
}

attempt('number', function () { throw 7; });
attempt('string', function () { throw 'text'; });
attempt('error', function () { throw new RangeError('far'); });
attempt('null', function () { return null.x; });
attempt('undefined', function () { return undefined.call(); });
attempt('unknown', function () { return nothing; });
attempt('call', function () { return (5)(); });
attempt('json', function () { return JSON.parse('{"a": [1, 2, }'); });
attempt('good json', function () { return JSON.stringify(JSON.parse('{"a": [1, 2.5, "x", null, true]}')); });
attempt('regexp', function () { return new RegExp('(a'); });
attempt('eval', function () { return eval('1 +'); });
attempt('good eval', function () { return eval('var q = 6; q * 7'); });
attempt('radix', function () { return (5).toString(99); });
attempt('length', function () { return new Array(-1); });
attempt('uri', function () { return decodeURIComponent('%zz'); });

function nested(n) {
  try {
    if (n === 0) throw new Error('deep');
    return nested(n - 1);
  } finally {
    if (n % 10 === 0) show('finally', n);
  }
}
attempt('nested', function () { return nested(50); });
attempt('from a callback', function () {
  return [3, 1, 2].sort(function (a, b) {
    if (a === 2 || b === 2) throw 'two';
    return a - b;
  });
});
attempt('from replace', function () {
  return 'abc'.replace(/b/, function () { throw 'inside'; });
});
attempt('from a getter', function () {
  return Object.defineProperty({}, 'x', { get: function () { throw 'got'; } }).x;
});
attempt('from toString', function () { return '' + { toString: function () { throw 'made'; } }; });
attempt('recursion', function () {
  function f(n) { return f(n + 1) + 1; }
  return f(0);
});
attempt('rethrown', function () {
  try {
    throw 1;
  } catch (e) {
    throw e + 1;
  } finally {
    show('on the way');
  }
});
attempt('finally wins', function () {
  try {
    throw 1;
  } finally {
    return 'instead';
  }
});

var count = 0, sum = 0;
for (var i = 0; i < 300; i++) {
  try {
    if (i % 3 === 0) throw i;
    count++;
  } catch (e) {
    sum += e;
  }
}
show(count, sum);
