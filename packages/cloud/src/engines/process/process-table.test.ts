import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { findListeningSocket, parseTcpTable } from './listening-sockets.ts';
import { isAlive } from './instance-processes.ts';
import { allProcesses, environmentOf, findProcess, parseStat, residentBytes } from './process-table.ts';

const notLinux = process.platform !== 'linux' && 'Linux only';

describe('the process table', () => {
  test('a process name may contain spaces and parentheses', () => {
    const stat =
      '4711 (a) b (c)) S 1 4700 4699 0 -1 4194304 114 0 0 0 10 20 3 4 20 0 1 0 642263 2654208 380 0';
    assert.deepEqual(parseStat(stat), {
      pid: 4711,
      parent: 1,
      group: 4700,
      session: 4699,
      startTicks: 642263,
      ended: false,
      cpuTicks: 37,
    });
  });

  test('finds this process', { skip: notLinux }, () => {
    const own = findProcess(process.pid);
    assert.equal(own?.pid, process.pid);
    assert.ok(
      allProcesses().some(({ pid, startTicks }) => pid === process.pid && startTicks === own.startTicks),
    );
    assert.ok(residentBytes(process.pid) > 10_000_000);
    assert.equal(environmentOf(process.pid)?.['PATH'], process.env['PATH']);
  });

  test('a process is identified by its id and its start time', { skip: notLinux }, () => {
    const own = findProcess(process.pid);
    assert.ok(own !== undefined && isAlive(own));
    assert.equal(isAlive({ ...own, startTicks: own.startTicks - 1 }), false);
    assert.equal(findProcess(2 ** 22 + 1), undefined);
  });
});

describe('listening sockets', () => {
  test('parses the TCP tables', () => {
    const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1 0 100 0 0 10 0
   1: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 112 1 0 100 0 0 10 0
   2: 0100007F:1F91 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 113 1 0 100 0 0 10 0
`;
    assert.deepEqual(parseTcpTable(table), [
      { host: '127.0.0.1', port: 8080, inode: 111 },
      { host: '127.0.0.1', port: 80, inode: 112 },
    ]);
    const table6 = `  sl  local_address remote_address st
   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 114 1
   1: 0000000000000000FFFF00000100007F:1F91 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 115 1
   2: 00000000000000000000000001000000:1F92 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 116 1
`;
    assert.deepEqual(
      parseTcpTable(table6).map(({ host }) => host),
      ['::1', '127.0.0.1', '0000:0000:0000:0000:0000:0000:0000:0001'],
    );
  });

  test('only a socket of the given processes counts', { skip: notLinux }, async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    assert.deepEqual(
      findListeningSocket([1, port], () => [process.pid]),
      { host: '127.0.0.1', port },
    );
    assert.equal(
      findListeningSocket([port], () => [process.ppid]),
      undefined,
    );
    server.close();
    await once(server, 'close');
    assert.equal(
      findListeningSocket([port], () => [process.pid]),
      undefined,
    );
  });
});
