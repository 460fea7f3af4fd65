import { describe } from 'node:test';
import { withDocker } from '../../packages/testing/src/with-docker.ts';
import { dockerEngineFixture } from '../../packages/testing/src/engine-fixture.ts';
import { volumeSharingSuite } from './volume-sharing.suite.ts';

await withDocker((host) => {
  describe('sharing and copying files, on Docker', () => volumeSharingSuite(() => dockerEngineFixture(host)));
});
