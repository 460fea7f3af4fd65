import { badWorkers } from './bad-workers.suite.ts';
import { withDocker } from '../support/docker.ts';
import { dockerEngine } from '../support/engine-under-test.ts';

await withDocker((host) => badWorkers('Docker', () => dockerEngine(host)));
