import { after, test } from 'node:test';
import { findOrStartDocker } from '../../../../testing/src/docker-daemon.mjs';
import { createTestImage } from '../../../../testing/src/docker-test-image.mjs';
import { engineSuite } from '../suite/engine.suite.ts';
import { dockerEngineSuite } from './docker-engine.suite.ts';
import { TEST_HOST, VIRTUAL_GPU } from './docker-test-engine.ts';

/** A port probe disconnects without reading, so socket errors are ignored. */
const SERVER =
  "require('node:net').createServer((socket) => socket.on('error', () => " +
  "undefined).end('hello')).listen(Number(process.env.PORT), '0.0.0.0')";

/** The daemon of the whole test run, or one for this file. */
const given = process.env[TEST_HOST];
const docker = given === undefined ? await findOrStartDocker() : { host: given, stop: async () => undefined };
if ('reason' in docker) test('the Docker suites', { skip: docker.reason }, () => undefined);
else {
  process.env[TEST_HOST] = docker.host;
  const image = await createTestImage(docker.host, `localhost/berth-test:p${process.pid}`, {
    volume: '/data',
  });
  engineSuite('the Docker engine', {
    module: new URL('docker-test-engine.ts', import.meta.url),
    shellImage: image.name,
    unsupportedImage: 'local/shell',
    gpuTypeId: VIRTUAL_GPU.gpuTypeId,
    listenCommand: ['node', '-e', SERVER],
  });
  dockerEngineSuite(docker.host, image.name);
  after(async () => {
    await image.remove();
    await docker.stop();
  });
}
