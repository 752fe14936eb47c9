// Starts `reframe dap` for sessions of the type "reframe". The program does everything else.
'use strict';
const vscode = require('vscode');

exports.activate = (context) => {
  context.subscriptions.push(
    vscode.debug.registerDebugAdapterDescriptorFactory('reframe', {
      createDebugAdapterDescriptor: () => new vscode.DebugAdapterExecutable(vscode.workspace.getConfiguration('reframe').get('path'), ['dap']),
    })
  );
};
