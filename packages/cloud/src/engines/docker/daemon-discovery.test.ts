import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { dockerClientOptions, findDaemon } from './daemon-discovery.ts';

test('addresses in the format of DOCKER_HOST are parsed', () => {
  assert.equal(dockerClientOptions('unix:///run/docker.sock').socketPath, '/run/docker.sock');
  assert.deepEqual(dockerClientOptions('tcp://10.0.0.1:2375'), {
    protocol: 'http',
    host: '10.0.0.1',
    port: '2375',
  });
  assert.deepEqual(dockerClientOptions('tcp://10.0.0.1:2376'), {
    protocol: 'https',
    host: '10.0.0.1',
    port: '2376',
  });
  assert.deepEqual(dockerClientOptions('10.0.0.1'), { protocol: 'http', host: '10.0.0.1', port: '2375' });
});

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
