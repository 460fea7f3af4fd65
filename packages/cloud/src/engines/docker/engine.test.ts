import { after, test } from 'node:test';
import { dockerForTests } from '../../../../../scripts/docker-for-tests.mjs';
import { makeTestImage } from '../../../../../scripts/docker-test-image.mjs';
import { engineSuite } from '../engine.suite.ts';
import { dockerSuite } from './docker.suite.ts';
import { TEST_HOST, VIRTUAL_GPU } from './test-engine.ts';

/** Whoever only looks whether it listens goes away without reading. */
const SERVER =
  "require('node:net').createServer((socket) => socket.on('error', () => undefined).end('hello')).listen(Number(process.env.PORT), '0.0.0.0')";

/** The daemon of the whole run, or else one of this file alone. */
const given = process.env[TEST_HOST];
const docker = given === undefined ? await dockerForTests() : { host: given, stop: async () => undefined };
if ('reason' in docker) test('the Docker suites', { skip: docker.reason }, () => undefined);
else {
  process.env[TEST_HOST] = docker.host;
  const image = await makeTestImage(docker.host, `localhost/berth-test:p${process.pid}`, { volume: '/data' });
  engineSuite('the Docker engine', {
    module: new URL('test-engine.ts', import.meta.url),
    shell: image.name,
    impossible: 'local/shell',
    gpuTypeId: VIRTUAL_GPU.gpuTypeId,
    listen: ['node', '-e', SERVER],
  });
  dockerSuite(docker.host, image.name);
  after(async () => {
    await image.remove();
    await docker.stop();
  });
}
