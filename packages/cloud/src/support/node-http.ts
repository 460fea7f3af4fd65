import type * as http from 'node:http';

/**
 * Node's HTTP without Node's fetch. `import … from 'node:http'` reads every export of that module, among them
 * WebSocket, for which Node loads all of fetch: 14 MB of memory and 30 ms of every start. Types can be
 * imported from 'node:http' itself.
 */
export const { Agent, createServer, request, Server, ServerResponse, STATUS_CODES } =
  process.getBuiltinModule('node:http');

export type Agent = http.Agent;
export type Server = http.Server;
export type ServerResponse = http.ServerResponse;
