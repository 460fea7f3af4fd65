import { withDocker } from '../../packages/testing/src/with-docker.ts';
import { dockerEngineFixture } from '../../packages/testing/src/engine-fixture.ts';
import { logFloodSuite } from './log-flood.suite.ts';

await withDocker((host) => logFloodSuite('Docker', () => dockerEngineFixture(host)));
