import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dockerClientOptions } from './daemon-discovery.ts';

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
