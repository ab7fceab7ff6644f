/** Hints for the errors of runs. */
export const explain = {
  disabled: 'Ask an administrator to switch it on, under Administration, Limits and features.',
  disabledAdmin: 'Switch it on under Administration, Limits and features, then run it again.',
  valueHost: 'Open the step and write the host into the address, for example https://example.com/{{input}}. Values may stand in the path and in the query.',
  privateHost: 'The address is in a private network. The operator of the server can allow that: savoir serve --workflow-private',
  networkTitle: 'The sandbox gives this tool no access to this host',
  network: 'A tool reaches only the hosts that the permissions of its skill list. Add the host there, for example network:read:api.example.com, and approve it at the next run.',
  approval: 'Run it again and answer the question in time.',
  model: 'Try again. If it fails again, ask an administrator to check the models.',
  modelAdmin: 'Check the key and the address under Administration, Models and keys.',
  modelBusy: 'If it fails again, choose another model.',
  tool: 'This is what the tool reported. The log and the list of what it accessed say more.',
  other: 'The steps and the log say more.',
  open: 'Open Administration',
}
