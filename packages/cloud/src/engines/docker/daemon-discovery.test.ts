import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { findDaemon } from './daemon-discovery.ts';

test('a daemon that does not answer in time is reported with how long was waited', async () => {
  const silent = createServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const host = `tcp://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  await assert.rejects(findDaemon([host], 20), /no Docker daemon answers at tcp:\S+ \(waited 0\.02 s\)/);
  await assert.rejects(
    findDaemon(['unix:///nowhere.sock'], 20),
    (error: Error) => !/waited/.test(error.message),
  );
  silent.close();
});

test('an address that cannot be parsed is reported like a daemon that is away', async () => {
  await assert.rejects(findDaemon(['tcp://host:no']), { code: 'unavailable' });
});
