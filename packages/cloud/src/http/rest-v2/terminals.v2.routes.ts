import { BerthError } from '../../support/errors.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { integer, list, object, stringEnum, text } from '../rest/json-schema.ts';
import { byId } from './common.v2.schema.ts';
import { TERMINAL_SIZE } from '../../domain/limits.ts';

const query = object(
  {},
  {
    cmd: list(text(), {
      description: 'The command, one parameter per argument; default: the shell of the image',
    }),
    tty: stringEnum(['true', 'false'], {
      description:
        'In a terminal, or through pipes. A shell has one unless this says otherwise, a command has none',
    }),
    columns: integer({ ...TERMINAL_SIZE, description: 'The size of the terminal' }),
    rows: integer({ ...TERMINAL_SIZE }),
    term: text({ description: 'Which kind of terminal the other side is, such as xterm-256color' }),
    api_key: text({ description: 'The key, where no header can be sent' }),
  },
);

const description =
  'Opens as a WebSocket; any other request is refused. Binary frames are bytes in and out, text frames ' +
  'are JSON: resize, eof and signal in, open, stream, exit and error out. The documentation has a page ' +
  'on it.';

/** Terminals are WebSockets and are served elsewhere; these describe them, and refuse plain requests. */
export function terminalOperations(): Operation[] {
  const handle = (): never => {
    throw new BerthError('rule', 'a terminal is a WebSocket: open this address with one');
  };
  return [
    operation({
      id: 'openPodTerminal',
      method: 'GET',
      path: '/pods/{id}/terminal',
      tag: 'Pods',
      summary: 'Open a terminal in a pod, or run a command in it',
      description,
      access: 'write',
      params: byId,
      query,
      status: 200,
      errorStatuses: [400, 404, 409, 422],
      handle,
    }),
    operation({
      id: 'openWorkerTerminal',
      method: 'GET',
      path: '/serverless/{id}/workers/{workerId}/terminal',
      tag: 'Serverless',
      summary: 'Open a terminal in a worker, or run a command in it',
      description,
      access: 'write',
      params: object({ id: text({ minLength: 1 }), workerId: text({ minLength: 1 }) }),
      query,
      status: 200,
      errorStatuses: [400, 404, 409, 422],
      handle,
    }),
  ];
}
