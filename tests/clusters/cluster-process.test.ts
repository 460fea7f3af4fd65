import { processEngineFixture } from '../../packages/testing/src/engine-fixture.ts';
import { clusterEngineSuite } from './cluster-engine.suite.ts';

clusterEngineSuite('process', async () => processEngineFixture());
