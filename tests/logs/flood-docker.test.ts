import { withDocker } from '../support/docker.ts';
import { dockerEngine } from '../support/engine-under-test.ts';
import { floodOn } from './flood.suite.ts';

await withDocker((host) => floodOn('Docker', () => dockerEngine(host)));
