import { withDocker } from '../../packages/testing/src/with-docker.ts';
import { dockerEngineFixture } from '../../packages/testing/src/engine-fixture.ts';
import { clusterEngineSuite } from './cluster-engine.suite.ts';

await withDocker((host) => clusterEngineSuite('Docker', () => dockerEngineFixture(host)));
