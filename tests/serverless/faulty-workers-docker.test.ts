import { faultyWorkersSuite } from './faulty-workers.suite.ts';
import { withDocker } from '../../packages/testing/src/with-docker.ts';
import { dockerEngineFixture } from '../../packages/testing/src/engine-fixture.ts';

await withDocker((host) => faultyWorkersSuite('Docker', () => dockerEngineFixture(host)));
