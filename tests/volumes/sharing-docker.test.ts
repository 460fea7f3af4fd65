import { describe } from 'node:test';
import { withDocker } from '../support/docker.ts';
import { dockerEngine } from '../support/engine-under-test.ts';
import { sharingSuite } from './sharing.suite.ts';

await withDocker((host) => {
  describe('sharing and copying files, on Docker', () => sharingSuite(() => dockerEngine(host)));
});
