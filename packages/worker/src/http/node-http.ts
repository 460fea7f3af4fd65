/**
 * `import … from 'node:http'` would read all exports of that module, among them WebSocket, for which Node loads
 * all of fetch: 14 MB of memory and 30 ms of every cold start.
 */
export const http = process.getBuiltinModule('node:http');
