// Drives `reframe dap` with the client of Visual Studio Code's own tests (@vscode/debugadapter-testsupport), which also checks the protocol.
// Usage: node vscode.js CONFIGURATION, a JSON object; NODE_PATH has the modules.
'use strict';
const assert = require('assert');
const { DebugClient } = require('@vscode/debugadapter-testsupport');

const given = JSON.parse(process.argv[2]);

// client starts an adapter. No wait is shorter than that of the test.
async function client() {
  const dc = new DebugClient(given.binary, 'dap', 'reframe', undefined, true);
  dc.defaultTimeout = given.patience;
  await dc.start();
  return dc;
}

// request sends a request for which the client has no method.
async function request(dc, command, args) {
  const response = await dc.send(command, args);
  assert.ok(response.success, command);
  return response.body;
}

// valueOf reads a variable of the scope Values of the innermost frame.
async function valueOf(dc, threadId, name) {
  const frame = (await dc.stackTraceRequest({ threadId })).body.stackFrames[0];
  const scopes = (await dc.scopesRequest({ frameId: frame.id })).body.scopes;
  const values = scopes.find((s) => s.name === 'Values');
  const variables = (await dc.variablesRequest({ variablesReference: values.variablesReference })).body.variables;
  return variables.find((v) => v.name === name).value;
}

// A program stops at a line, with its condition, and ends.
async function launches() {
  const dc = await client();
  const [, , stopped] = await Promise.all([
    dc.waitForEvent('initialized').then(async () => {
      const set = await dc.setBreakpointsRequest({ source: { path: given.launch.ir }, breakpoints: [{ line: given.line, condition: '%n == 2' }] });
      assert.strictEqual(set.body.breakpoints[0].verified, true);
      assert.strictEqual(set.body.breakpoints[0].line, given.line);
      await dc.setExceptionBreakpointsRequest({ filters: [] });
      await dc.configurationDoneRequest();
    }),
    dc.launch(given.launch),
    dc.assertStoppedLocation('breakpoint', { path: given.launch.ir, line: given.line }),
  ]);
  const threadId = (await dc.threadsRequest()).body.threads[0].id;
  assert.ok(stopped.body.stackFrames.length > 2);
  assert.strictEqual(await valueOf(dc, threadId, '%n'), '2');
  await Promise.all([dc.waitForEvent('exited'), dc.waitForEvent('terminated'), dc.continueRequest({ threadId })]);
  await dc.stop();
}

// hitBreakpoint is the client's own test of this: a launch, one breakpoint, and the stop at it.
async function hits() {
  const dc = await client();
  await dc.hitBreakpoint(given.launch, { path: given.launch.ir, line: given.line });
  await dc.stop();
}

// Attaches to a process, and steps from its exit in both directions.
async function attaches() {
  const dc = await client();
  await dc.initializeRequest();
  const initialized = dc.waitForEvent('initialized');
  await dc.attachRequest(given.attach);
  await initialized;
  const entry = dc.waitForEvent('stopped');
  await dc.configurationDoneRequest();
  const threadId = (await entry).body.threadId;
  const move = async (command) => {
    const stopped = dc.waitForEvent('stopped');
    await request(dc, command, { threadId });
    return (await stopped).body;
  };
  const frames = (await dc.stackTraceRequest({ threadId })).body.stackFrames;
  const exit = frames.find((f) => f.name.startsWith('sum_opt'));
  assert.strictEqual((await dc.evaluateRequest({ expression: 'acc + 1', frameId: exit.id, context: 'watch' })).body.result, '5526');
  assert.strictEqual((await move('next')).reason, 'step');
  assert.strictEqual(await valueOf(dc, threadId, '%sq'), '676');
  await move('stepIn');
  assert.strictEqual(await valueOf(dc, threadId, '%acc1'), '6201');
  await move('stepBack');
  await move('reverseContinue');
  const frame = (await dc.stackTraceRequest({ threadId })).body.stackFrames[0];
  const scope = (await dc.scopesRequest({ frameId: frame.id })).body.scopes[0];
  const again = dc.waitForEvent('stopped');
  await dc.setVariableRequest({ variablesReference: scope.variablesReference, name: '%i', value: '999' });
  await again;
  assert.match((await move('stepOut')).text, /returned i64 1003526/);
  await assert.rejects(dc.send('writeMemory', { memoryReference: '0x10', data: 'AAAA' }), /the target does not change/);
  await dc.stop(); // which disconnects
}

(async () => {
  await launches();
  await hits();
  await attaches();
  console.log('ok');
})().catch((e) => {
  console.error(e);
  process.exit(1);
});
