// Starts `reframe dap` for sessions of the type "reframe". All else is the program's own.
'use strict';
const vscode = require('vscode');

exports.activate = (context) => {
  context.subscriptions.push(
    vscode.debug.registerDebugAdapterDescriptorFactory('reframe', {
      createDebugAdapterDescriptor: () => new vscode.DebugAdapterExecutable(vscode.workspace.getConfiguration('reframe').get('path'), ['dap']),
    })
  );
};
