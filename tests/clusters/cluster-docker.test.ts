import { withDocker } from '../support/docker.ts';
import { dockerEngine } from '../support/engine-under-test.ts';
import { clustersOn } from './cluster.suite.ts';

await withDocker((host) => clustersOn('Docker', () => dockerEngine(host)));
