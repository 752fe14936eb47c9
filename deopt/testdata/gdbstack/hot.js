// A function that the JIT compiled, its caller a callback of a builtin, ends in a wait that blocks the thread.
const cell = new Int32Array(new SharedArrayBuffer(4));
let armed = false;

function stop(n) {
  if (!armed) return n;
  console.log("ready");
  Atomics.wait(cell, 0, 0);
  return n;
}

function down(n, a, b) {
  if (n === 0) return stop(n) + a;
  return down(n - 1, a + b, b ^ n) + a * b;
}

function called(x) {
  return down(x, 1, 2) + 0.5;
}

for (let i = 0; i < 100000; i++) down(i % 20, i, 3);
for (let i = 0; i < 2000; i++) [5, 6, 7].map(called);
armed = true;
[9].map((x) => [x].map(called));
